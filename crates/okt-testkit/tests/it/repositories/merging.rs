//! Merging contexts while others write, and while processes die.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use okt_model::{ConceptId, FactFilter, JobId, MigrateContext, RepositoryId};
use okt_store::outbox::{self, When};
use okt_store::{Databases, concepts, contexts, facts};
use okt_testkit::concepts::{file_concept, link_facts};
use okt_testkit::db::run;
use okt_testkit::wait::eventually;
use uuid::Uuid;

use crate::repositories::two_databases::TwoDatabases;

const CONCEPTS: i64 = 2_000;
const LINKS: i64 = 100_000;

/// Facts and the names of the concepts that they were linked to.
type Said = Arc<Mutex<HashSet<(String, i64)>>>;

/// Two contexts: one with all the concepts and links, the other with half of the names.
async fn fill(fixture: &TwoDatabases, id: RepositoryId) -> (i64, i64, Said) {
    let mut conn = fixture.service.database.connect().await;
    run(
        &mut conn,
        &format!(
            "INSERT INTO okt_repository.contexts (repository_id, no, label, description, concept_count)
             VALUES ('{id}', 1000001, 'Old', '', {CONCEPTS}), ('{id}', 1000002, 'New', '', {CONCEPTS} / 2);
             INSERT INTO okt_repository.concepts (repository_id, id, no, canonical_name, name_key, context_no)
             SELECT '{id}'::uuid, gen_random_uuid(), n, 'Concept ' || n, 'concept ' || n, 1000001 FROM generate_series(1, {CONCEPTS}) AS n
             UNION ALL
             SELECT '{id}', gen_random_uuid(), {CONCEPTS} + n, 'concept ' || n, 'concept ' || n, 1000002
               FROM generate_series(1, {CONCEPTS} / 2) AS n;
             SELECT setval('okt_repository.concepts_no_seq', 10000000);
             INSERT INTO okt_repository.counters VALUES ('{id}', 'concepts', {CONCEPTS} * 3 / 2);
             INSERT INTO okt_repository.fact_concepts
             SELECT '{id}'::uuid, 1 + n % {CONCEPTS}, n FROM generate_series(1, {LINKS}) AS n;
             ANALYZE okt_repository.concepts, okt_repository.contexts, okt_repository.fact_concepts;"
        ),
    )
    .await;
    let said = (1..=LINKS).map(|n| (format!("concept {}", 1 + n % CONCEPTS), n)).collect();
    (1_000_001, 1_000_002, Arc::new(Mutex::new(said)))
}

async fn merge(databases: &Databases, id: RepositoryId, source: i64, target: i64) {
    let mut tx = databases.begin("default", id).await.unwrap();
    assert!(contexts::mark_merging(&mut tx, id, source, target).await.unwrap());
    outbox::push(&mut tx, id, JobId::mint(), &MigrateContext { source, target }, When::default())
        .await
        .unwrap();
    tx.commit().await.unwrap();
}

/// Links facts to concepts that it knows of, and files new ones under a label that is going away.
async fn write(
    databases: Databases,
    id: RepositoryId,
    known: Vec<(String, ConceptId)>,
    said: Said,
    stop: Arc<AtomicBool>,
    first: i64,
) {
    let mut fact = first;
    while !stop.load(Ordering::Relaxed) {
        fact += 1;
        let at = usize::try_from(fact * 7919).unwrap() % known.len();
        let written: okt_model::Result<String> = async {
            let mut tx = databases.begin("default", id).await?;
            let (name, concept) = match fact % 4 {
                // By a name that is there already, by a new one, and by ids that may be out of date.
                0 => (known[at].0.clone(), file_concept(&mut tx, id, &known[at].0, "old").await?),
                1 => {
                    let name = format!("novelty {fact}");
                    (name.clone(), file_concept(&mut tx, id, &name, "OLD").await?)
                }
                _ => known[at].clone(),
            };
            let said = "INSERT INTO okt_repository.facts
                               (repository_id, id, no, text, content_hash, kind, model, status, source_count)
                        VALUES ($1, gen_random_uuid(), $2, 'Said.', sha256($2::text::bytea), 'text', 'model', 'stable', 1)";
            sqlx::query(said).bind(id.uuid()).bind(fact).execute(&mut *tx).await.map_err(okt_pg::Error::from)?;
            link_facts(&mut tx, id, concept, &[fact]).await?;
            tx.commit().await?;
            Ok(name)
        }
        .await;
        match written {
            Ok(name) => drop(said.lock().unwrap().insert((name.to_lowercase(), fact))),
            // A deadlock is broken by giving up one of the two, who tries again; the label is gone in the end.
            Err(error) => assert!(error.retryable() || error.to_string() == "context not found", "{error:?}"),
        }
    }
}

/// Every link is with a concept of its name in the other context, or with one that was merged into that, and what is counted is there.
async fn check(fixture: &TwoDatabases, id: RepositoryId, said: &Said) {
    let mut conn = fixture.service.database.connect().await;
    let links: Vec<(String, i64)> = sqlx::query_as(
        "SELECT c.name_key, l.fact_no
           FROM okt_repository.fact_concepts l
           JOIN okt_repository.concepts m ON m.repository_id = l.repository_id AND m.no = l.concept_no
           JOIN okt_repository.concepts c
             ON c.repository_id = l.repository_id AND c.no = coalesce(m.merged_into, m.no)
          WHERE l.repository_id = $1 AND c.merged_into IS NULL AND c.context_no = 1000002",
    )
    .bind(id.uuid())
    .fetch_all(&mut conn)
    .await
    .unwrap();
    let found: HashSet<_> = links.into_iter().collect();
    let said = said.lock().unwrap().clone();
    let lost: Vec<_> = said.difference(&found).take(5).collect();
    assert!(lost.is_empty(), "lost {} of {}: {lost:?}", said.difference(&found).count(), said.len());
    assert_eq!(found.len(), said.len(), "no link that nobody made");
    for (statement, expected) in [
        ("SELECT count(*) FROM okt_repository.fact_concepts", i64::try_from(said.len()).unwrap()),
        ("SELECT count(*) FROM okt_repository.contexts WHERE label = 'Old'", 0),
        (
            "SELECT count(*) FROM okt_repository.concepts WHERE merged_into IS NULL AND context_no <> 1000002",
            0,
        ),
        (
            "SELECT (SELECT concept_count FROM okt_repository.contexts WHERE label = 'New') - count(*)
               FROM okt_repository.concepts WHERE merged_into IS NULL",
            0,
        ),
        (
            "SELECT (SELECT value FROM okt_repository.counters WHERE name = 'concepts') - count(*)
               FROM okt_repository.concepts WHERE merged_into IS NULL",
            0,
        ),
    ] {
        assert_eq!(fixture.count("default", statement).await, expected, "{statement}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_link_is_lost_while_others_write_and_workers_die() {
    let fixture = TwoDatabases::new().await;
    let id = RepositoryId::from(Uuid::from_u128(7));
    let (source, target, said) = fill(&fixture, id).await;
    let mut conn = fixture.service.database.connect().await;
    let known: Vec<(String, Uuid)> = sqlx::query_as(
        "SELECT canonical_name, id FROM okt_repository.concepts WHERE context_no = 1000001 ORDER BY no",
    )
    .fetch_all(&mut conn)
    .await
    .unwrap();
    let known: Vec<_> = known.into_iter().map(|(name, id)| (name, ConceptId::from(id))).collect();
    let (databases, stop) = (fixture.service.api.app.databases().clone(), Arc::new(AtomicBool::new(false)));
    let writers: Vec<_> = (1..=3)
        .map(|n| {
            let (known, said, stop) = (known.clone(), Arc::clone(&said), Arc::clone(&stop));
            tokio::spawn(write(databases.clone(), id, known, said, stop, n * 10_000_000))
        })
        .collect();

    let mut worker = fixture.worker().await;
    merge(&databases, id, source, target).await;
    let left =
        "SELECT count(*) FROM okt_repository.concepts WHERE context_no = 1000001 AND merged_into IS NULL";
    let (mut deaths, began) = (0, Instant::now());
    for share in [3, 2] {
        eventually(Duration::from_mins(1), "concepts are merged", async || {
            let left = fixture.count("default", left).await;
            if left > CONCEPTS * (share - 1) / share { Err(left) } else { Ok(()) }
        })
        .await;
        if fixture.count("default", left).await > 0 {
            deaths += 1;
        }
        // Dropped, it ends as a crash would, in the middle of whatever it does.
        drop(worker);
        worker = fixture.worker().await;
    }
    assert!(deaths > 0, "it was over before anybody died");
    fixture.until("default", "SELECT count(*) FROM okt_repository.contexts WHERE label = 'Old'", 0).await;
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    worker.stop().await;
    let beside = said.lock().unwrap().len() - usize::try_from(LINKS).unwrap();
    println!("{deaths} deaths, {beside} links written meanwhile, {:?}", began.elapsed());
    assert!(beside > 100, "{beside}");
    check(&fixture, id, &said).await;
}

/// Three contexts with a concept of the same name in each; the first is merged into the second, and that into the third.
#[tokio::test]
async fn facts_are_found_by_a_concept_that_was_merged_twice() {
    let fixture = TwoDatabases::new().await;
    let id = RepositoryId::from(Uuid::from_u128(8));
    let mut conn = fixture.service.database.connect().await;
    let planted = format!(
        "INSERT INTO okt_repository.contexts (repository_id, no, label, description)
         VALUES ('{id}', 1000001, 'First', ''), ('{id}', 1000002, 'Second', ''), ('{id}', 1000003, 'Third', '');
         INSERT INTO okt_repository.facts (repository_id, id, text, content_hash, kind, model, status, source_count)
         VALUES ('{id}', gen_random_uuid(), 'Bees dance.', sha256('Bees dance.'), 'text', 'model', 'stable', 1);"
    );
    run(&mut conn, &planted).await;
    let mut tx = fixture.service.api.app.databases().begin("default", id).await.unwrap();
    let mut known = Vec::new();
    for context in ["First", "Second", "Third"] {
        known.push(file_concept(&mut tx, id, "Honey bee", context).await.unwrap());
    }
    let all = facts::list(&mut tx, id, &FactFilter::default(), false, None, 10).await.unwrap();
    link_facts(&mut tx, id, known[0], &[all[0].no]).await.unwrap();
    for (source, target) in [(1_000_001, 1_000_002), (1_000_002, 1_000_003)] {
        assert_eq!(concepts::empty(&mut tx, id, source, target, 10).await.unwrap().merged, 1);
    }
    for concept in known {
        let filter = FactFilter { concepts: vec![concept], ..FactFilter::default() };
        let found = facts::list(&mut tx, id, &filter, false, None, 10).await.unwrap();
        assert_eq!(found.len(), 1, "{concept}");
    }
}
