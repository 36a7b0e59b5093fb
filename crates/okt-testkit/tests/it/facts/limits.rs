//! Models are asked no more often, and no more at once, than their provider allows; all processes together.

use std::time::{Duration, Instant};

use okt_testkit::jobs;
use okt_testkit::llm::{Behaviour, Faults, Latency};
use serde_json::json;

use crate::facts::{essay, job_in, test_app_with};

#[tokio::test]
async fn calls_in_a_minute_are_counted_over_all_processes() {
    // Twenty in a second.
    let app = test_app_with(Behaviour::default(), "rate_limit_rpm = 1200", &[]).await;
    let mut ids = Vec::new();
    for n in 0..4 {
        ids.push(app.add_text(&format!("{n}.txt"), &essay(n, 240)).await);
    }
    let begun = Instant::now();
    let config = app.service.api.app.config();
    // Two that share nothing but the database.
    let one = jobs::worker(config, jobs::kinds(config).await, Vec::new(), |_| {}).await;
    let two = jobs::worker(config, jobs::kinds(config).await, Vec::new(), |_| {}).await;
    for id in &ids {
        assert_eq!(app.settled(id).await["status"], "processed");
    }
    let took = begun.elapsed();
    let stats = app.models.await_stats(|stats| stats.in_flight == 0).await;
    let calls = u32::try_from(stats.good_answers()).unwrap();
    assert!(calls >= 40, "{calls} are too few to tell");
    let least = Duration::from_millis(50) * (calls - 1);
    assert!(took >= least, "{calls} calls in {took:?}");
    let mut times: Vec<u64> = stats.good.values().flatten().copied().collect();
    times.sort_unstable();
    for window in times.windows(31) {
        assert!(
            window[30] - window[0] >= 1_000,
            "more than 30 calls in a second where 20 are allowed: {window:?}"
        );
    }
    one.stop().await;
    two.stop().await;
}

#[tokio::test]
async fn no_more_calls_are_out_than_a_model_can_take() {
    let slow = Behaviour { latency: Latency::Fixed(30), ..Behaviour::default() };
    let mut app = test_app_with(slow, "max_in_flight = 3", &[]).await;
    let mut ids = Vec::new();
    for n in 0..6 {
        ids.push(app.add_text(&format!("{n}.txt"), &essay(n, 100)).await);
    }
    app.work().await;
    for id in &ids {
        assert_eq!(app.settled(id).await["status"], "processed");
    }
    assert_eq!(app.models.stats().most_in_flight, 3);
}

/// A provider that wants to be left alone for long is left alone, and the job says so.
#[tokio::test]
async fn a_job_waits_for_a_provider_that_says_how_long() {
    let busy = Behaviour {
        faults: Faults { rate_limited: 1.0, ..Faults::default() },
        retry_after_secs: 3,
        ..Behaviour::default()
    };
    let mut app = test_app_with(busy, "", &[]).await;
    app.work().await;
    let id = app.add_text("essay.txt", &essay(1, 10)).await;
    let seen = app.until(&id, |seen| seen["waiting_for"] == "rate_limit").await;
    let job = job_in(&app, "scheduled", &seen).await;
    assert_eq!((&job["waiting_for"], &job["attempt"]), (&json!("rate_limit"), &json!(0)), "{job:#}");
    app.models.behave(Behaviour::default());
    let seen = app.settled(&id).await;
    assert_eq!((&seen["status"], &seen["fact_count"]), (&json!("processed"), &json!(10)), "{seen:#}");
}
