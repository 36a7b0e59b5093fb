//! Slices while workers die and facts come, go and are merged: no fact is covered twice, none is lost, and closed slices change
//! only when one of their facts is gone.
//!
//! The short form. `OKT_SUMMARY_KILLS=30 cargo nextest run --workspace -E 'test(summaries::slices)'` is the long one.

use std::time::Duration;

use okt_model::{FactId, JobId, MergedBy};
use okt_store::fact_merges::{self, Merge};
use okt_store::outbox::When;
use okt_testkit::app::TestApp;
use okt_testkit::jobs::{self, program};
use okt_testkit::llm::{Behaviour, Latency};
use okt_testkit::process::Process;
use serde_json::json;

use super::{app, check, deeds, fact_id, link, say, settle, stored};
use crate::facts::faults::{number, paid_twice};

/// Merges the second of two facts into the first.
async fn merge(app: &TestApp, one: FactId, other: FactId) {
    let databases = app.service.api.app.databases();
    loop {
        let mut tx = databases.begin("default", app.repository).await.unwrap();
        let numbers: Vec<i64> = sqlx::query_scalar(
            "SELECT no FROM okt_repository.facts WHERE id = ANY ($1) AND status = 'stable' ORDER BY no",
        )
        .bind(vec![one.uuid(), other.uuid()])
        .fetch_all(&mut *tx)
        .await
        .unwrap();
        let [into, fact] = numbers[..] else { return };
        let merge = Merge { fact, into, cosine: 0.99, by: MergedBy::Cosine };
        match fact_merges::merge(&mut tx, app.repository, &[merge], JobId::mint()).await {
            Ok(_) => return tx.commit().await.unwrap(),
            Err(error) => assert!(error.retryable(), "{error:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_dies_no_fact_is_lost_or_covered_twice() {
    let kills = number("OKT_SUMMARY_KILLS", 4);
    let slow = Latency::LogNormal { median_ms: 40.0, sigma: 0.5 };
    let app = app(Behaviour { latency: slow, ..Behaviour::default() }, &[]).await;
    let mut settings = app.process_settings();
    settings.extend([
        ("SVC__TASK__HEARTBEAT_INTERVAL", "200ms"),
        ("SVC__TASK__HEARTBEAT_TIMEOUT", "1s"),
        ("SVC__PROVIDERS__SUMMARIZATION__MAX_CONCEPTS_PER_RUN", "3"),
        ("SVC__PROVIDERS__SUMMARIZATION__LOCK_STALENESS", "2s"),
        ("SVC__TASK__REFRESH_CONCEPT_RELATIONS_INTERVAL", "1s"),
    ]);
    let hives = ["A", "B", "C", "D", "E"];
    let (mut killed, mut sources) = (Vec::new(), Vec::new());
    for round in 0..kills {
        let mut all = Vec::new();
        for hive in hives {
            let texts = deeds(hive, 1 + round * 10, 7);
            sources.push(say(&app, &texts).await);
            link(&app, &format!("Hive {hive}"), "Place", &texts).await;
            all.push(texts);
        }
        let databases = app.service.api.app.databases();
        jobs::push(databases, app.repository, &okt_model::RefreshConceptRelations {}, When::default()).await;
        let workers: Vec<Process> =
            (0..2).map(|_| Process::serve_as(program(), &["--role", "worker"], &settings)).collect();
        // Meanwhile facts are merged, rejected and deleted.
        tokio::time::sleep(Duration::from_millis(900 + 170 * (round as u64 % 5))).await;
        let (one, other) = (fact_id(&app, &all[0][0]).await, fact_id(&app, &all[0][1]).await);
        merge(&app, one, other).await;
        let rejected = fact_id(&app, &all[1][2]).await;
        let answer = app.put(&format!("/facts/{rejected}"), &json!({"status": "rejected"})).await;
        assert!(answer.status.is_success(), "{answer:?}");
        let source = sources.swap_remove(sources.len() / 2);
        assert_eq!(app.delete(&format!("/sources/{source}")).await.status, 204);
        tokio::time::sleep(Duration::from_millis(90 * (round as u64 % 4))).await;
        killed.push(app.models.elapsed_ms());
        drop(workers);
    }
    let worker = Process::serve_as(program(), &["--role", "worker"], &settings);
    // Locks of the dead are believed for two seconds.
    tokio::time::sleep(Duration::from_millis(2_200)).await;
    settle(&app).await;
    settle(&app).await;
    drop(worker);
    check(&app).await;
    let stats = app.models.await_stats(|stats| stats.in_flight == 0).await;
    let twice = paid_twice(&stats);
    println!("{} good answers after {kills} kills, once more: {twice:?}", stats.good_answers());
    for moment in &twice {
        let near = killed.iter().any(|kill| (kill.saturating_sub(400)..=kill + 100).contains(moment));
        assert!(near, "an answer of {moment} ms was paid for again, and nobody died then: {killed:?}");
    }
}

/// Two workers at the same moment, and a third that takes over what one of them has left.
#[tokio::test]
async fn a_closed_slice_changes_only_when_it_loses_a_fact() {
    let mut app = app(Behaviour::default(), &[]).await;
    app.work().await;
    let texts = deeds("A", 1, 10);
    say(&app, &texts).await;
    link(&app, "Hive A", "Place", &texts).await;
    settle(&app).await;
    check(&app).await;
    let before = stored(&mut app.connect().await).await;
    assert_eq!(before.values().filter(|slice| slice.is_open).count(), 1, "{before:#?}");

    // A duplicate of a fact of the first slice, and one of the open slice.
    let lost = fact_id(&app, &texts[1]).await;
    merge(&app, fact_id(&app, &texts[0]).await, lost).await;
    settle(&app).await;
    check(&app).await;
    let after = stored(&mut app.connect().await).await;
    for (place, slice) in &before {
        if slice.facts.contains(&lost.uuid()) {
            assert_eq!(after[place].facts.len(), 3);
            assert_ne!(after[place].content, slice.content);
        } else {
            assert_eq!(after.get(place), Some(slice));
        }
    }
}
