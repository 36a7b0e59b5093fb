//! A model that misbehaves, and processes that die: every source ends, links are those of an undisturbed run, nothing is paid
//! twice.
//!
//! The short form. `OKT_FAULT_SOURCES=200 OKT_FAULT_KILLS=10 cargo nextest run --workspace -E 'test(concepts::faults)'` is the
//! long one.

use std::collections::BTreeSet;
use std::time::Duration;

use okt_testkit::app::{MODEL, TestApp};
use okt_testkit::jobs::program;
use okt_testkit::process::Process;
use okt_testkit::wait::eventually;

use crate::facts::essay;
use crate::facts::faults::{bad_day, number, paid_twice};

/// What the facts of an essay lead to: a text and a name.
fn expected(number: usize, sentences: usize) -> BTreeSet<(String, String)> {
    let text = essay(number, sentences);
    let mut links = BTreeSet::new();
    for sentence in text.split_inclusive('.').map(str::trim).filter(|sentence| !sentence.is_empty()) {
        let words: Vec<&str> = sentence.split_whitespace().map(|word| word.trim_end_matches('.')).collect();
        let places = words.windows(2).filter(|pair| pair[0] == "apiary" || pair[0] == "hive");
        links.extend(places.map(|pair| (sentence.to_owned(), pair.join(" "))));
        links.insert((sentence.to_owned(), "bees".to_owned()));
    }
    links
}

async fn links(app: &TestApp) -> BTreeSet<(String, String)> {
    let rows: Vec<(String, String)> = sqlx::query_as(
        "SELECT f.text, c.name_key FROM okt_repository.fact_concepts l
           JOIN okt_repository.facts f ON f.repository_id = l.repository_id AND f.no = l.fact_no
           JOIN okt_repository.concepts c ON c.repository_id = l.repository_id AND c.no = l.concept_no",
    )
    .fetch_all(&mut app.service.database.connect().await)
    .await
    .unwrap();
    rows.into_iter().collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn links_are_those_of_an_undisturbed_run() {
    let (sources, kills) = (number("OKT_FAULT_SOURCES", 16), number("OKT_FAULT_KILLS", 3));
    let app = TestApp::builder().models(bad_day(21), "").concepts(MODEL).start().await;
    let mut settings = app.process_settings();
    settings.push(("SVC__PROVIDERS__LLM_RETRY__PER_CALL_TIMEOUT", "1s"));
    let sentences = |n: usize| 12 + n % 25;
    let mut ids = Vec::new();
    for n in 0..sources {
        ids.push(app.add_text(&format!("{n}.txt"), &essay(n, sentences(n))).await);
    }
    let mut killed = Vec::new();
    for n in 0..kills {
        let worker = Process::serve_as(program(), &["--role", "worker"], &settings);
        tokio::time::sleep(Duration::from_millis(1_500 + 273 * (n as u64 % 9))).await;
        killed.push(app.models.elapsed_ms());
        drop(worker);
    }
    let worker = Process::serve_as(program(), &["--role", "worker"], &settings);
    let (mut whole, mut cut, mut unread) = (0, 0, 0);
    let mut wanted = BTreeSet::new();
    for (n, id) in ids.iter().enumerate() {
        let seen = eventually(Duration::from_mins(20), "the source ends", async || {
            let seen = app.source(id).await;
            let ended = seen["status"] == "failed" || !seen["extraction"]["concepts"].is_null();
            if ended { Ok(seen) } else { Err(seen) }
        })
        .await;
        let found = &seen["extraction"]["concepts"];
        if seen["extraction"]["dropped"]["truncated"].is_number() {
            // It says so itself: facts are missing, and their links with them.
            cut += 1;
        } else if seen["status"] == "processed" && found["failed"] == 0 {
            whole += 1;
            wanted.extend(expected(n, sentences(n)));
        } else {
            // What is missing says why.
            let why = if seen["status"] == "failed" { &seen["failure"] } else { &found["failure"] };
            assert!(!why["message"].as_str().unwrap().is_empty(), "{seen:#}");
            unread += 1;
        }
    }
    drop(worker);
    let stats = app.models.await_stats(|stats| stats.in_flight == 0).await;
    let twice = paid_twice(&stats);
    println!(
        "{whole} whole, {cut} cut, {unread} not, after {kills} kills; {} good answers, once more: {twice:?}",
        stats.good_answers()
    );
    for moment in &twice {
        let near = killed.iter().any(|kill| (kill.saturating_sub(300)..=kill + 100).contains(moment));
        assert!(near, "an answer of {moment} ms was paid for again, and nobody died then: {killed:?}");
    }
    assert!(whole * 2 > sources, "most come through: {whole} of {sources}");
    let linked = links(&app).await;
    let missing: Vec<_> = wanted.difference(&linked).collect();
    assert!(missing.is_empty(), "{} links are missing: {missing:#?}", missing.len());
    let mut all = BTreeSet::new();
    for n in 0..sources {
        all.extend(expected(n, sentences(n)));
    }
    let surplus: Vec<_> = linked.difference(&all).collect();
    assert!(surplus.is_empty(), "{} links are nobody's: {surplus:#?}", surplus.len());
}
