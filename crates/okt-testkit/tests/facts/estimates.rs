//! What it will cost is known before it is spent.

use http::Method;
use okt_testkit::jobs;
use serde_json::{Value, json};

use crate::desk::{Desk, essay};

const SOURCES: usize = 50;
/// Those from which the rest is learnt.
const FIRST: usize = 12;

async fn estimate(desk: &Desk, ids: &[String]) -> Value {
    let answer = desk.ask(Method::POST, "/sources/estimate", &json!({"source_ids": ids})).await;
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
    let desk = Desk::open(&[]).await;
    let config = desk.service.api.app.config();
    // Fetched only, at first.
    let fetcher = jobs::worker(config, jobs::kinds(config), Vec::new(), |settings| {
        settings.slots.remove("source_decomposition");
    });
    let fetcher = fetcher.await;
    let (mut first, mut ids) = (Vec::new(), Vec::new());
    for n in 0..SOURCES + FIRST {
        let id = desk.add(&format!("{n}.txt"), &text(n + 5)).await;
        if n < FIRST { first.push(id) } else { ids.push(id) }
    }
    for id in first.iter().chain(&ids) {
        desk.until(id, |seen| seen["status"] == "fetched").await;
    }
    fetcher.stop().await;
    let early = desk.ask(Method::POST, "/sources/estimate", &json!({"source_ids": []})).await;
    assert_eq!(early.status, 422, "{early:?}");
    let cold = estimate(&desk, &ids).await;
    assert_eq!(cold["basis"], "rule_of_thumb");
    assert_eq!(desk.models.stats().requests, 0, "nobody was asked");

    let mut desk = desk;
    // Held back until the others are done, so that there is a history.
    let mut conn = desk.service.database.connect().await;
    let hold = "UPDATE okt_tasks.jobs SET state = 'scheduled', scheduled_at = now() + interval '1 hour'
                 WHERE kind = 'source_decomposition' AND NOT source_id = ANY ($1::text[]::uuid[])";
    sqlx::query(hold).bind(&first).execute(&mut conn).await.unwrap();
    desk.work().await;
    for id in &first {
        desk.settled(id).await;
    }
    let warm = estimate(&desk, &ids).await;
    let before = desk.models.await_stats(|stats| stats.in_flight == 0).await;
    let go = "UPDATE okt_tasks.jobs SET scheduled_at = now() WHERE kind = 'source_decomposition' AND state = 'scheduled'";
    sqlx::query(go).execute(&mut conn).await.unwrap();
    for id in &ids {
        let seen = desk.settled(id).await;
        assert_eq!(seen["status"], "processed", "{seen:#}");
    }
    let after = desk.models.await_stats(|stats| stats.in_flight == 0).await;
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
    let again = estimate(&desk, &ids[..2]).await;
    assert_eq!((&again["total"]["calls"], &again["total"]["usd"]), (&json!(0), &json!(0.0)), "{again:#}");
    assert_eq!(again["total"]["answered_chunks"], again["total"]["chunks"]);
}
