//! What is known of concepts, in words: slices of their facts, definitions of their names, and what stands in for both without
//! a model.

mod citations;
mod costs;
mod definitions;
mod deleting;
mod extractive;
mod failing;
mod slices;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use okt_extract::summaries::{citations as cited_in, claims};
use okt_model::{ConceptId, FactId, FactStatus, RefreshConceptRelations, SourceId};
use okt_store::outbox::When;
use okt_testkit::app::{MODEL, TestApp};
use okt_testkit::concepts::{file_concept, link_facts};
use okt_testkit::facts::{insert_source, new_fact, replace_facts};
use okt_testkit::jobs;
use okt_testkit::llm::Behaviour;
use okt_testkit::wait::eventually;
use sqlx::PgConnection;
use uuid::Uuid;

/// Both stages on, and slices of four facts.
const ON: [(&str, &str); 6] = [
    ("SVC__PROVIDERS__SUMMARIZATION__ENABLED", "true"),
    ("SVC__PROVIDERS__SUMMARIZATION__MODEL", MODEL),
    ("SVC__PROVIDERS__SUMMARIZATION__BATCH_SIZE", "4"),
    ("SVC__PROVIDERS__SYNTHESIS__MODEL", MODEL),
    ("SVC__CONCEPTS__MIN_CONCEPT_FACT_COUNT", "2"),
    ("SVC__TASK__QUEUES__SYNTHESIZE_CONCEPT", "8"),
];

async fn app(behaviour: Behaviour, settings: &[(&'static str, &'static str)]) -> TestApp {
    let catalogue = "input_cost_per_1m = 1.0\noutput_cost_per_1m = 2.0";
    TestApp::builder().models(behaviour, catalogue).settings(&ON).settings(settings).start().await
}

/// A source that says this, and nothing else speaks of the concept in these words.
async fn say(app: &TestApp, texts: &[String]) -> SourceId {
    let databases = app.service.api.app.databases();
    let source = insert_source(databases, app.repository).await;
    let facts: Vec<_> = texts.iter().map(|text| new_fact(text)).collect();
    replace_facts(databases, app.repository, source, &facts, FactStatus::Stable).await;
    source
}

/// The concept that these facts speak of from now on.
async fn link(app: &TestApp, name: &str, context: &str, texts: &[String]) -> ConceptId {
    let mut tx = app.service.api.app.databases().begin("default", app.repository).await.unwrap();
    let concept = file_concept(&mut tx, app.repository, name, context).await.unwrap();
    let numbers: Vec<i64> = sqlx::query_scalar(
        "SELECT no FROM okt_repository.facts WHERE repository_id = $1 AND text = ANY ($2)",
    )
    .bind(app.repository.uuid())
    .bind(texts)
    .fetch_all(&mut *tx)
    .await
    .unwrap();
    assert_eq!(numbers.len(), texts.len(), "facts of different texts");
    link_facts(&mut tx, app.repository, concept, &numbers).await.unwrap();
    tx.commit().await.unwrap();
    concept
}

/// So many things that a hive did, from a number on.
fn deeds(hive: &str, from: usize, count: usize) -> Vec<String> {
    (from..from + count).map(|n| format!("Hive {hive} gave {n} jars of honey in season {n}.")).collect()
}

/// Has everything counted that changed, and waits until all that follows is done.
async fn settle(app: &TestApp) {
    let databases = app.service.api.app.databases();
    jobs::push(databases, app.repository, &RefreshConceptRelations {}, When::default()).await;
    settled(app).await;
}

async fn settled(app: &TestApp) {
    const KINDS: &str = "('refresh_concept_relations', 'summarize_concepts', 'synthesize_concept')";
    eventually(Duration::from_mins(4), "all is written", async || {
        let open = format!(
            "SELECT (SELECT count(*) FROM okt_repository.outbox
                      WHERE kind IN {KINDS} AND NOT EXISTS (SELECT FROM okt_tasks.jobs j WHERE j.id = job_id AND j.finished_at IS NOT NULL))
                  + (SELECT count(*) FROM okt_tasks.jobs WHERE kind IN {KINDS} AND finished_at IS NULL)"
        );
        let open = app.count(&open).await;
        if open == 0 { Ok(()) } else { Err(open) }
    })
    .await;
}

/// A stored slice: its concept, number, whether it is open, its text and its facts.
#[derive(Debug, PartialEq, Eq)]
struct Stored {
    is_open: bool,
    content: String,
    facts: BTreeSet<Uuid>,
    current: bool,
}

async fn stored(conn: &mut PgConnection) -> BTreeMap<(i64, i32), Stored> {
    let rows: Vec<(i64, i32, bool, String, Vec<Uuid>, bool)> = sqlx::query_as(
        "SELECT s.concept_no, s.slice_number, s.is_open, s.content,
                ARRAY(SELECT f.id FROM okt_repository.summary_facts l
                        JOIN okt_repository.facts f ON f.repository_id = l.repository_id AND f.no = l.fact_no
                       WHERE l.repository_id = s.repository_id AND l.concept_no = s.concept_no
                         AND l.slice_number = s.slice_number),
                -- A slice that has lost a fact is to be written again.
                s.written = s.revision AND s.fact_count = (SELECT count(*) FROM okt_repository.summary_facts l
                       WHERE l.repository_id = s.repository_id AND l.concept_no = s.concept_no
                         AND l.slice_number = s.slice_number)
           FROM okt_repository.concept_summaries s",
    )
    .fetch_all(conn)
    .await
    .unwrap();
    rows.into_iter()
        .map(|(concept, number, is_open, content, facts, current)| {
            ((concept, number), Stored { is_open, content, facts: facts.into_iter().collect(), current })
        })
        .collect()
}

fn cited(content: &str) -> BTreeSet<Uuid> {
    cited_in(content).into_iter().map(|citation| citation.fact.uuid()).collect()
}

/// Every fact of a concept that is summed up is in one of its slices and no other fact is; slices are as full as they may be;
/// no text cites what it does not cover, and no sentence says something without a citation.
async fn check(app: &TestApp) {
    check_kept(app).await;
    let unwritten = "SELECT count(*) FROM okt_repository.concept_summaries WHERE written < revision";
    assert_eq!(app.count(unwritten).await, 0, "a slice is not written");
}

/// As [`check`], also where a model had no usable answer for some slices.
async fn check_kept(app: &TestApp) {
    let mut conn = app.connect().await;
    let uncovered = "SELECT count(*) FROM (
             SELECT s.concept_no, r.fact_no FROM okt_repository.summary_states s
               JOIN okt_repository.relation_facts r ON r.repository_id = s.repository_id AND s.concept_no = ANY (r.concepts)
             EXCEPT SELECT concept_no, fact_no FROM okt_repository.summary_facts) AS missing";
    assert_eq!(app.count(uncovered).await, 0, "a fact is in no slice");
    let surplus = "SELECT count(*) FROM (
             SELECT concept_no, fact_no FROM okt_repository.summary_facts
             EXCEPT SELECT unnest(concepts), fact_no FROM okt_repository.relation_facts) AS surplus";
    assert_eq!(app.count(surplus).await, 0, "a slice covers a fact that is not its concept's");
    let missed = "SELECT count(*) FROM okt_repository.concepts c
                   WHERE c.merged_into IS NULL AND c.fact_count >= 2
                     AND NOT EXISTS (SELECT FROM okt_repository.summary_states s WHERE s.concept_no = c.no)";
    assert_eq!(app.count(missed).await, 0, "a concept is not summed up");
    let open = "SELECT count(*) FROM (SELECT FROM okt_repository.concept_summaries
                                       WHERE is_open GROUP BY concept_no HAVING count(*) > 1) AS open";
    assert_eq!(app.count(open).await, 0, "a concept has two open slices");
    for ((concept, number), slice) in stored(&mut conn).await {
        assert!(!slice.facts.is_empty() && slice.facts.len() <= 4, "{concept} {number}: {slice:?}");
        assert!(cited(&slice.content).is_subset(&slice.facts), "{concept} {number}: {slice:#?}");
        for claim in claims(&slice.content) {
            assert!(!claim.facts.is_empty(), "{claim:?}");
        }
    }
    let texts: Vec<(String, String, Vec<Uuid>, Vec<Uuid>)> = sqlx::query_as(
        "SELECT DISTINCT ON (s.name_key) s.name_key, s.content, s.facts,
                ARRAY(SELECT f.id FROM okt_repository.concepts c
                        JOIN okt_repository.summary_facts l ON l.concept_no = c.no
                        JOIN okt_repository.facts f ON f.no = l.fact_no
                       WHERE c.name_key = s.name_key AND c.merged_into IS NULL)
           FROM okt_repository.concept_syntheses s ORDER BY s.name_key, s.version DESC",
    )
    .fetch_all(&mut conn)
    .await
    .unwrap();
    for (name, content, facts, covered) in texts {
        let (cited, covered) = (cited(&content), covered.into_iter().collect::<BTreeSet<Uuid>>());
        assert!(cited.is_subset(&covered), "{name}: {content}");
        assert_eq!(cited, facts.into_iter().collect(), "{name}");
        for claim in claims(&content) {
            assert!(!claim.facts.is_empty(), "{name}: {claim:?}");
        }
    }
}

/// Calls of an operation that were paid for.
async fn calls(app: &TestApp, operation: &str) -> u64 {
    let usage = app.read("/ai/usage?group_by=operation").await;
    let rows = usage["data"].as_array().unwrap();
    rows.iter().find(|row| row["key"] == operation).map_or(0, |row| row["calls"].as_u64().unwrap())
}

async fn fact_id(app: &TestApp, text: &str) -> FactId {
    let id: Uuid = sqlx::query_scalar("SELECT id FROM okt_repository.facts WHERE text = $1")
        .bind(text)
        .fetch_one(&mut app.connect().await)
        .await
        .unwrap();
    id.into()
}
