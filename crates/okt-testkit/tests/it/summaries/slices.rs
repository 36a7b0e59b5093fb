//! Slices while workers die and facts come, go and are merged: no fact is covered twice, none is lost, and closed slices change
//! only when one of their facts is gone.
//!
//! The short form. `OKT_SUMMARY_KILLS=30 cargo nextest run --workspace -E 'test(summaries::slices)'` is the long one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use okt_model::{FactId, JobId, MergedBy, SourceId};
use okt_store::concept_relations;
use okt_store::fact_merges::{self, Merge};
use okt_store::outbox::When;
use okt_store::summary_states::{self, HeldConcept};
use okt_testkit::app::TestApp;
use okt_testkit::jobs::{self, program};
use okt_testkit::llm::{Behaviour, Latency};
use okt_testkit::process::Process;
use okt_testkit::wait::eventually;
use serde_json::json;
use uuid::Uuid;

use super::{Stored, app, check, deeds, fact_id, link, say, settle, stored};
use crate::facts::faults::{number, paid_twice};

/// Merges the newer of two facts into the older one, and returns it; nothing if one of them is gone.
pub(super) async fn merge(app: &TestApp, one: FactId, other: FactId) -> Option<Uuid> {
    let databases = app.service.api.app.databases();
    loop {
        let mut tx = databases.begin("default", app.repository).await.unwrap();
        let facts: Vec<(i64, Uuid)> = sqlx::query_as(
            "SELECT no, id FROM okt_repository.facts WHERE id = ANY ($1) AND status = 'stable' ORDER BY no",
        )
        .bind(vec![one.uuid(), other.uuid()])
        .fetch_all(&mut *tx)
        .await
        .unwrap();
        let [(into, _), (fact, lost)] = facts[..] else { return None };
        let merge = Merge { fact, into, cosine: 0.99, by: MergedBy::Cosine };
        match fact_merges::merge(&mut tx, app.repository, &[merge], JobId::mint()).await {
            Ok(()) => {
                tx.commit().await.unwrap();
                return Some(lost);
            }
            Err(error) => assert!(error.retryable(), "{error:?}"),
        }
    }
}

/// What grows with each step of writing: concepts are held, their slices get facts, models answer, texts are stored, names are
/// defined.
const STEPS: [&str; 5] = [
    "SELECT coalesce(max(extract(epoch FROM locked_at) * 1000), 0)::bigint FROM okt_repository.summary_states",
    "SELECT coalesce(sum(revision), 0)::bigint FROM okt_repository.concept_summaries",
    "SELECT count(*) FROM okt_repository.model_answers",
    "SELECT coalesce(sum(written), 0)::bigint FROM okt_repository.concept_summaries",
    "SELECT coalesce(sum(version), 0)::bigint FROM okt_repository.concept_syntheses",
];

/// Closed slices that were written at some moment: each is as it was, or has lost a fact.
#[expect(clippy::print_stdout, reason = "how much was seen is worth reading")]
async fn check_closed(app: &TestApp, seen: &[BTreeMap<(i64, i32), Stored>]) {
    let mut conn = app.connect().await;
    let alive = "SELECT id FROM okt_repository.facts WHERE status IN ('new', 'stable')";
    let alive: Vec<Uuid> = sqlx::query_scalar(alive).fetch_all(&mut conn).await.unwrap();
    let alive: BTreeSet<Uuid> = alive.into_iter().collect();
    let now = stored(&mut conn).await;
    let (mut same, mut changed) = (0, 0);
    for (place, slice) in seen.iter().flatten().filter(|(_, slice)| !slice.is_open && slice.current) {
        let left: BTreeSet<Uuid> = slice.facts.intersection(&alive).copied().collect();
        if left == slice.facts {
            assert_eq!(now.get(place), Some(slice), "{place:?}");
            same += 1;
        } else {
            // The number of one that is gone may be given again.
            assert!(left.is_empty() || now[place].facts == left, "{place:?}: {slice:#?} {:#?}", now[place]);
            changed += 1;
        }
    }
    println!("{same} closed slices are as they were, {changed} have lost facts");
    assert!(same > 0, "some were written before somebody died");
}

/// Merges and rejects some of these facts, which are those of the hives in their order, and deletes a source.
async fn disturb(app: &TestApp, hives: &[Vec<String>], source: SourceId) {
    let (one, other) = (fact_id(app, &hives[0][0]).await, fact_id(app, &hives[0][1]).await);
    let (reject, status) =
        (format!("/facts/{}", fact_id(app, &hives[1][2]).await), json!({"status": "rejected"}));
    let delete = format!("/sources/{source}");
    let (_, rejected, deleted) =
        tokio::join!(merge(app, one, other), app.put(&reject, &status), app.delete(&delete));
    assert!(rejected.status.is_success() && deleted.status == 204, "{rejected:?} {deleted:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_dies_no_fact_is_lost_or_covered_twice() {
    let kills = number("OKT_SUMMARY_KILLS", STEPS.len());
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
    let (mut killed, mut sources, mut seen) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..kills {
        let mut all = Vec::new();
        for (at, hive) in hives.iter().enumerate() {
            let texts = deeds(hive, 1 + round * 10, 7);
            let source = say(&app, &texts).await;
            link(&app, &format!("Hive {hive}"), "Place", &texts).await;
            all.push(texts);
            // Those of the first two are merged and rejected.
            if at > 1 {
                sources.push(source);
            }
        }
        let source = sources.swap_remove(sources.len() / 2);
        let step = STEPS[round % STEPS.len()];
        let before = app.count(step).await;
        let databases = app.service.api.app.databases();
        jobs::push(databases, app.repository, &okt_model::RefreshConceptRelations {}, When::default()).await;
        let workers: Vec<Process> =
            (0..2).map(|_| Process::serve_as(program(), &["--role", "worker"], &settings)).collect();
        let taken = eventually(Duration::from_secs(20), step, async || {
            let now = app.count(step).await;
            if now > before { Ok(()) } else { Err(now) }
        });
        tokio::join!(disturb(&app, &all, source), taken);
        killed.push(app.models.elapsed_ms());
        drop(workers);
        seen.push(stored(&mut app.connect().await).await);
    }
    let worker = Process::serve_as(program(), &["--role", "worker"], &settings);
    // Locks of the dead are believed for two seconds.
    tokio::time::sleep(Duration::from_millis(2_200)).await;
    settle(&app).await;
    settle(&app).await;
    drop(worker);
    check(&app).await;
    check_closed(&app, &seen).await;
    let stats = app.models.await_stats(|stats| stats.in_flight == 0).await;
    let twice = paid_twice(&stats);
    println!("{} good answers after {kills} kills, once more: {twice:?}", stats.good_answers());
    // With a deleted source everything is forgotten that was answered about its concept, of which one answer may wait to be used.
    let near =
        |moment: &u64| killed.iter().any(|kill| (kill.saturating_sub(400)..=kill + 100).contains(moment));
    let far: Vec<&u64> = twice.iter().filter(|moment| !near(moment)).collect();
    assert!(far.len() <= kills, "paid for again, and nobody died then: {far:?} {killed:?}");
}

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

    let (one, other) = (fact_id(&app, &texts[0]).await, fact_id(&app, &texts[1]).await);
    let lost = merge(&app, one, other).await.unwrap();
    settle(&app).await;
    check(&app).await;
    let after = stored(&mut app.connect().await).await;
    for (place, slice) in &before {
        if slice.facts.contains(&lost) {
            assert_eq!(after[place].facts.len(), slice.facts.len() - 1);
            assert_ne!(after[place].content, slice.content);
        } else {
            assert_eq!(after.get(place), Some(slice));
        }
    }
}

/// Two jobs share the concepts that wait, and whoever has held one for too long has lost it. What changes meanwhile is not
/// missed.
#[tokio::test]
async fn a_concept_has_one_writer() {
    const HOUR: Duration = Duration::from_hours(1);
    let app = app(Behaviour::default(), &[]).await;
    for hive in ["A", "B", "C", "D"] {
        let texts = deeds(hive, 1, 2);
        say(&app, &texts).await;
        link(&app, &format!("Hive {hive}"), "Place", &texts).await;
    }
    let (databases, repository) = (app.service.api.app.databases(), app.repository);
    let begin = async || databases.begin("default", repository).await.unwrap();
    let (one, other, heir) = (JobId::mint(), JobId::mint(), JobId::mint());
    let mut tx = begin().await;
    concept_relations::recompute(&mut tx, repository).await.unwrap();
    assert_eq!(summary_states::take_in(&mut tx, repository, 2).await.unwrap(), 4);
    tx.commit().await.unwrap();

    // At the same moment: neither has committed.
    let (mut first, mut second) = (begin().await, begin().await);
    let ours = summary_states::claim(&mut first, repository, one, HOUR, (3, false)).await.unwrap();
    let theirs = summary_states::claim(&mut second, repository, other, HOUR, (9, false)).await.unwrap();
    assert_eq!((ours.len(), theirs.len()), (3, 1));
    assert!(ours.iter().all(|held| held.no != theirs[0].no), "{ours:?} {theirs:?}");
    first.commit().await.unwrap();
    second.commit().await.unwrap();
    let mut tx = begin().await;
    assert_eq!(summary_states::claim(&mut tx, repository, heir, HOUR, (9, false)).await.unwrap(), []);
    assert_eq!(
        summary_states::claim(&mut tx, repository, one, HOUR, (9, false)).await.unwrap(),
        ours,
        "its own again"
    );

    // Too long.
    let taken = summary_states::claim(&mut tx, repository, heir, Duration::ZERO, (2, false)).await.unwrap();
    assert_eq!(taken, ours[..2]);
    assert!(!summary_states::hold(&mut tx, repository, one, ours[0].no).await.unwrap());
    assert!(!summary_states::finish(&mut tx, repository, one, ours[0]).await.unwrap());
    assert!(summary_states::hold(&mut tx, repository, one, ours[2].no).await.unwrap());

    // Facts change while it writes: the concept waits again.
    summary_states::mark_all(&mut tx, repository).await.unwrap();
    assert!(summary_states::finish(&mut tx, repository, one, ours[2]).await.unwrap());
    let again = summary_states::claim(&mut tx, repository, other, HOUR, (9, false)).await.unwrap();
    let changed = HeldConcept { changed: ours[2].changed + 1, ..ours[2] };
    assert!(again.contains(&changed), "{again:?}");
    assert!(summary_states::finish(&mut tx, repository, other, changed).await.unwrap());
    assert_eq!(summary_states::claim(&mut tx, repository, one, HOUR, (9, false)).await.unwrap(), []);
    tx.commit().await.unwrap();
}
