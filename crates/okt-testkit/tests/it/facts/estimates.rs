//! What it will cost is known before it is spent.

use std::time::Duration;

use http::Method;
use okt_testkit::app::TestApp;
use okt_testkit::jobs;
use okt_testkit::wait::eventually;
use serde_json::{Value, json};

use crate::facts::{essay, test_app};

const SOURCES: usize = 30;
/// Those from which the rest is learnt.
const FIRST: usize = 12;

async fn estimate(app: &TestApp, ids: &[String]) -> Value {
    let answer = app.ask(Method::POST, "/sources/estimate", &json!({"source_ids": ids})).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

/// How far `guess` is from `truth`, as a share of it.
fn off(guess: &Value, truth: &Value) -> f64 {
    let (guess, truth) = (guess.as_f64().unwrap(), truth.as_f64().unwrap());
    (guess - truth).abs() / truth
}

/// Sources of different lengths and manners.
fn text(n: usize) -> String {
    let story = format!(
        "Honey bees of apiary {n} find their way home by the light of the sky. They remember the shape of the horizon, and the \
                 smell of the fields that they have crossed. A forager that has found food tells the others by a dance on the \
                 comb, whose angle to the vertical is the angle of the flight to the sun.\n\n"
    );
    match n % 3 {
        0 => essay(n, 10 + 3 * n),
        1 => vec![story; 2 + n / 4].join("That is a part of the story, and it goes on in the same way. "),
        _ => format!("{}{story}", essay(n, 12 + n)),
    }
}

#[tokio::test]
async fn the_estimate_is_within_fifteen_percent_of_what_is_then_used() {
    let app = test_app(&[]).await;
    let config = app.service.api.app.config();
    // Fetched only, at first.
    let fetcher = jobs::worker(config, jobs::kinds(config).await, Vec::new(), |settings| {
        settings.slots.remove("source_decomposition");
    });
    let fetcher = fetcher.await;
    let (mut first, mut ids) = (Vec::new(), Vec::new());
    for n in 0..SOURCES + FIRST {
        let id = app.add_text(&format!("{n}.txt"), &text(n + 5)).await;
        if n < FIRST { first.push(id) } else { ids.push(id) }
    }
    for id in first.iter().chain(&ids) {
        app.until(id, |seen| seen["status"] == "fetched").await;
    }
    fetcher.stop().await;
    let early = app.ask(Method::POST, "/sources/estimate", &json!({"source_ids": []})).await;
    assert_eq!(early.status, 422, "{early:?}");
    let cold = estimate(&app, &ids).await;
    assert_eq!(cold["basis"], "rule_of_thumb");
    assert_eq!(app.models.stats().requests, 0, "nobody was asked");

    let mut app = app;
    // Held back until the others are done, so that there is a history.
    let mut conn = app.service.database.connect().await;
    eventually(Duration::from_secs(30), "every source waits in the queue", async || {
        let queued: i64 =
            sqlx::query_scalar("SELECT count(*) FROM okt_tasks.jobs WHERE kind = 'source_decomposition'")
                .fetch_one(&mut conn)
                .await
                .unwrap();
        if usize::try_from(queued).unwrap() == ids.len() + first.len() { Ok(()) } else { Err(queued) }
    })
    .await;
    let hold = "UPDATE okt_tasks.jobs SET state = 'scheduled', scheduled_at = now() + interval '1 hour'
                 WHERE kind = 'source_decomposition' AND NOT subject_id = ANY ($1::text[]::uuid[])";
    sqlx::query(hold).bind(&first).execute(&mut conn).await.unwrap();
    app.work().await;
    for id in &first {
        app.settled(id).await;
    }
    let warm = estimate(&app, &ids).await;
    let before = app.models.await_stats(|stats| stats.in_flight == 0).await;
    let go = "UPDATE okt_tasks.jobs SET scheduled_at = now() WHERE kind = 'source_decomposition' AND state = 'scheduled'";
    sqlx::query(go).execute(&mut conn).await.unwrap();
    for id in &ids {
        let seen = app.settled(id).await;
        assert_eq!(seen["status"], "processed", "{seen:#}");
    }
    let after = app.models.await_stats(|stats| stats.in_flight == 0).await;
    let used = json!({
        "calls": after.good_answers() - before.good_answers(),
        "tokens_in": after.tokens_in - before.tokens_in,
        "tokens_out": after.tokens_out - before.tokens_out,
    });
    println!("used {used}\nby a rule of thumb {}\nby history {}", cold["total"], warm["total"]);
    assert_eq!(warm["basis"], "history");
    for estimate in [&cold, &warm] {
        let total = &estimate["total"];
        assert_eq!(total["calls"], used["calls"]);
        for tokens in ["tokens_in", "tokens_out"] {
            assert!(off(&total[tokens], &used[tokens]) <= 0.15, "{tokens}: {total}");
        }
    }

    // What was answered costs nothing.
    let again = estimate(&app, &ids[..2]).await;
    assert_eq!((&again["total"]["calls"], &again["total"]["usd"]), (&json!(0), &json!(0.0)), "{again:#}");
    assert_eq!(again["total"]["answered_chunks"], again["total"]["chunks"]);
}
