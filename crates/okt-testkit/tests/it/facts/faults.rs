//! A model that misbehaves, and processes that die: every source ends, nothing is silently empty, nothing is paid twice.
//!
//! The short forms. `OKT_FAULT_SOURCES=1000 OKT_FAULT_KILLS=20 cargo nextest run --workspace -E 'test(misbehaves)'` is the
//! long one.

use std::collections::BTreeMap;
use std::time::Duration;

use okt_testkit::app::TestApp;
use okt_testkit::jobs::program;
use okt_testkit::llm::{Behaviour, Fate, Faults, Latency, Stats};
use okt_testkit::process::Process;
use okt_testkit::wait::eventually;
use serde_json::Value;

use crate::facts::{essay, test_app_with};

/// What models do to us on a bad day.
pub(crate) fn bad_day(seed: u64) -> Behaviour {
    Behaviour {
        latency: Latency::LogNormal { median_ms: 60.0, sigma: 0.5 },
        faults: Faults {
            rate_limited: 0.30,
            error: 0.10,
            hang: 0.05,
            garbage: 0.05,
            truncated: 0.02,
            html: 0.01,
            ..Faults::default()
        },
        seed,
        retry_after_secs: 0,
        ..Behaviour::default()
    }
}

pub(crate) fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn sentences(n: usize) -> usize {
    15 + n % 40
}

struct Ends {
    processed: usize,
    /// By the code of their failure.
    failed: BTreeMap<String, usize>,
}

/// Waits for all to end, and looks at each.
async fn ends(app: &TestApp, ids: &[String], limit: Duration) -> Ends {
    let mut ends = Ends { processed: 0, failed: BTreeMap::new() };
    for (n, id) in ids.iter().enumerate() {
        let seen = eventually(limit, "the source ends", async || {
            let seen = app.source(id).await;
            if ["processed", "failed"].iter().any(|end| seen["status"] == *end) {
                Ok(seen)
            } else {
                Err(seen)
            }
        })
        .await;
        check(&seen, sentences(n), &mut ends);
    }
    ends
}

fn check(seen: &Value, sentences: usize, ends: &mut Ends) {
    let facts = usize::try_from(seen["fact_count"].as_u64().unwrap()).unwrap();
    if seen["status"] == "processed" {
        let truncated = seen["extraction"]["dropped"]["truncated"].as_u64().is_some();
        assert!(facts == sentences || (truncated && facts > 0), "none is silently empty: {seen:#}");
        ends.processed += 1;
    } else {
        let failure = &seen["failure"];
        assert!(!failure["message"].as_str().unwrap().is_empty(), "{seen:#}");
        assert_eq!(failure["retryable"], true, "{seen:#}");
        *ends.failed.entry(failure["code"].as_str().unwrap().to_owned()).or_default() += 1;
    }
}

/// Calls that were answered, well or not.
fn paid(stats: &Stats) -> u64 {
    stats.good_answers() as u64 + stats.fate(Fate::Garbage) + stats.fate(Fate::Truncated)
}

/// What was answered well more than once, by the moments of the first answers.
pub(crate) fn paid_twice(stats: &Stats) -> Vec<u64> {
    stats
        .good
        .values()
        .filter(|times| times.len() > 1)
        .flat_map(|times| times[..times.len() - 1].to_vec())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_misbehaves_loses_nothing_and_is_not_paid_twice() {
    let sources = number("OKT_FAULT_SOURCES", 24);
    let settings = [
        ("SVC__TASK__QUEUES__SOURCE_DECOMPOSITION", "16"),
        ("SVC__PROVIDERS__LLM_RETRY__PER_CALL_TIMEOUT", "1s"),
        ("SVC__PROVIDERS__LLM_RETRY__MAX_DELAY", "1s"),
    ];
    let mut app = test_app_with(bad_day(11), "", &settings).await;
    let mut ids = Vec::new();
    for n in 0..sources {
        ids.push(app.add_text(&format!("{n}.txt"), &essay(n, sentences(n))).await);
    }
    app.work().await;
    let ends = ends(&app, &ids, Duration::from_mins(20)).await;
    let stats = app.models.await_stats(|stats| stats.in_flight == 0).await;
    println!(
        "{} processed, failed {:?}; {} requests, {:?}",
        ends.processed, ends.failed, stats.requests, stats.fates
    );
    assert_eq!(paid_twice(&stats), Vec::<u64>::new());
    assert!(ends.processed * 2 > sources, "most come through: {} of {sources}", ends.processed);
    let told = app.read("/ai/usage").await;
    assert_eq!(told["total"]["calls"], paid(&stats), "every call that was answered is in the books");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_misbehaves_and_workers_that_are_killed_lose_nothing() {
    let (sources, kills) = (number("OKT_FAULT_SOURCES", 16), number("OKT_FAULT_KILLS", 3));
    let app = test_app_with(bad_day(12), "", &[]).await;
    let mut settings = app.process_settings();
    settings.push(("SVC__PROVIDERS__LLM_RETRY__PER_CALL_TIMEOUT", "1s"));
    let mut ids = Vec::new();
    for n in 0..sources {
        ids.push(app.add_text(&format!("{n}.txt"), &essay(n, sentences(n))).await);
    }
    let mut killed = Vec::new();
    for n in 0..kills {
        let worker = Process::serve_as(program(), &["--role", "worker"], &settings);
        tokio::time::sleep(Duration::from_millis(900 + 173 * (n as u64 % 9))).await;
        killed.push(app.models.elapsed_ms());
        drop(worker);
    }
    let worker = Process::serve_as(program(), &["--role", "worker"], &settings);
    let ends = ends(&app, &ids, Duration::from_mins(20)).await;
    drop(worker);
    let stats = app.models.await_stats(|stats| stats.in_flight == 0).await;
    let twice = paid_twice(&stats);
    println!(
        "{} processed, failed {:?} after {kills} kills; {} good answers, {} of them once more: {twice:?}, killed at {killed:?}",
        ends.processed,
        ends.failed,
        stats.good_answers(),
        twice.len()
    );
    // An answer that was on its way to a process when it died can't have been written down. No other is asked for again.
    for moment in &twice {
        let near = killed.iter().any(|kill| (kill.saturating_sub(300)..=kill + 100).contains(moment));
        assert!(near, "an answer of {moment} ms was paid for again, and nobody died then: {killed:?}");
    }
    assert!(twice.len() <= 2 * kills, "{} answers were lost by {kills} kills", twice.len());
    // Nor is anything in the books that was not paid for, and only what was lost so is missing there.
    let told = app.read("/ai/usage").await["total"]["calls"].as_u64().unwrap();
    let paid = paid(&stats);
    println!("{paid} calls were paid for, {told} are in the books");
    assert!(told <= paid && paid - told <= 4 * kills as u64, "{told} of {paid}");
    assert!(ends.processed * 2 > sources, "most come through: {} of {sources}", ends.processed);
}
