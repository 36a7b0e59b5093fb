//! Facts: from the text of a source to statements that rest on its sentences, with and without a model.

mod budget;
mod estimates;
mod eval;
mod eval_posture;
mod extraction;
mod extractive;
pub(crate) mod faults;
mod injections;
mod limits;
mod nothing;
mod promptsets;
mod routes;
mod together;

use std::fmt::Write as _;
use std::time::Duration;

use okt_testkit::app::TestApp;
use okt_testkit::llm::Behaviour;
use okt_testkit::wait::eventually;
use serde_json::Value;

/// With a model that behaves, a dollar for a million tokens read and four for a million written.
async fn test_app(settings: &[(&str, &str)]) -> TestApp {
    test_app_with(Behaviour::default(), "input_cost_per_1m = 1.0\noutput_cost_per_1m = 4.0", settings).await
}

async fn test_app_with(behaviour: Behaviour, model: &str, settings: &[(&str, &str)]) -> TestApp {
    TestApp::builder().models(behaviour, model).settings(settings).start().await
}

/// The job of a source in this state: the source says a moment earlier what becomes of it.
async fn job_in(app: &TestApp, state: &str, source: &Value) -> Value {
    let path = format!("/jobs/{}", source["job_id"].as_str().unwrap());
    eventually(Duration::from_secs(10), state, async || {
        let job = app.read(&path).await;
        if job["state"] == state { Ok(job) } else { Err(job) }
    })
    .await
}

/// A text of so many sentences that no other number has.
pub(crate) fn essay(number: usize, sentences: usize) -> String {
    let mut text = String::new();
    for n in 0..sentences {
        let (month, count) = (n % 12 + 1, number * 1_000 + n);
        let _ = write!(
            text,
            "In month {month} of the survey the keepers of apiary {number} counted {count} bees at the entrance of hive {n}. "
        );
        if n % 6 == 5 {
            text.push_str("\n\n");
        }
    }
    text
}
