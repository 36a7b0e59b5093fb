//! `okt_repository` has no foreign keys: what deletes a row deletes what refers to it. Here somebody looks.

use std::collections::BTreeMap;

use okt_model::{
    AliasBy, ConceptMergedBy, ContentHash, Decided, Difference, FactId, FactStatus, InvestigationId, JobId,
    MarkKind, NewConceptMerge, NewFact, RepositoryId, SourceId, UnitKind, UserId,
};
use okt_store::concept_aliases::{self, NewAlias};
use okt_store::concept_relations::{self, Folded};
use okt_store::concept_summaries::{self, SliceChanges, SliceState};
use okt_store::concepts::{self, Emptied};
use okt_store::contexts::{self, NewContext};
use okt_store::fact_contradictions::{self, NewContradiction};
use okt_store::fact_merges::{self, Merge};
use okt_store::search_units::{self, NewUnit};
use okt_store::source_marks::NewMark;
use okt_store::write_fence::{self, Closed};
use okt_store::{
    Connection, Databases, Purpose, concept_merges, concept_readings, concept_twins, concept_vectors,
    curation, investigations, moves, source_marks, sources, summary_states, webhooks,
};
use okt_testkit::concepts::{file_concept, link_facts};
use okt_testkit::db::TestDatabase;
use okt_testkit::facts::{insert_source, new_fact, replace_facts};
use sqlx::{AssertSqlSafe, PgConnection};
use uuid::Uuid;

use crate::repositories::{isolation_answers, isolation_judgements, isolation_reports, isolation_webhooks};

/// Table and column that refer to a row of the same repository, and what they refer to.
const REFERENCES: [(&str, &str, &str, &str); 67] = [
    ("answer_events", "answer_no", "answers", "no"),
    ("answer_facts", "answer_no", "answers", "no"),
    ("answer_feedback", "answer_no", "answers", "no"),
    ("answer_sources", "answer_no", "answers", "no"),
    ("answer_sources", "source_id", "sources", "id"),
    ("answers", "conversation_no", "conversations", "no"),
    ("concept_aliases", "concept_no", "concepts", "no"),
    ("concept_merges", "concept_no", "concepts", "no"),
    ("concept_merges", "into_no", "concepts", "no"),
    ("concept_readings", "fact_no", "facts", "no"),
    ("concept_readings", "source_no", "sources", "no"),
    ("concept_relations", "concept_no", "concepts", "no"),
    ("concept_relations", "other_no", "concepts", "no"),
    ("concept_summaries", "concept_no", "concepts", "no"),
    ("concept_summaries", "import_no", "imports", "no"),
    ("concept_syntheses", "import_no", "imports", "no"),
    ("concept_verdicts", "one_no", "concepts", "no"),
    ("concept_verdicts", "other_no", "concepts", "no"),
    ("concept_words", "concept_no", "concepts", "no"),
    ("concepts", "context_no", "contexts", "no"),
    ("concepts", "import_no", "imports", "no"),
    ("concepts", "merged_into", "concepts", "no"),
    ("contexts", "merging_into", "contexts", "no"),
    ("curation_keys", "curation_no", "curation", "no"),
    ("fact_concepts", "concept_no", "concepts", "no"),
    ("fact_concepts", "fact_no", "facts", "no"),
    ("fact_concepts", "import_no", "imports", "no"),
    ("fact_contradictions", "fact_no", "facts", "no"),
    ("fact_contradictions", "other_no", "facts", "no"),
    ("fact_judgements", "fact_no", "facts", "no"),
    ("fact_judgements", "other_no", "facts", "no"),
    ("fact_merges", "fact_no", "facts", "no"),
    ("fact_merges", "into_no", "facts", "no"),
    ("fact_sources", "fact_no", "facts", "no"),
    ("fact_sources", "image_id", "source_images", "id"),
    ("fact_sources", "import_no", "imports", "no"),
    ("fact_sources", "source_no", "sources", "no"),
    ("facts", "merged_into", "facts", "no"),
    ("former_names", "concept_no", "concepts", "no"),
    ("former_names", "context_no", "contexts", "no"),
    ("investigation_sources", "investigation_no", "investigations", "no"),
    ("investigation_sources", "source_no", "sources", "no"),
    ("investigations", "import_no", "imports", "no"),
    ("model_answers", "subject_id", "sources", "id"),
    ("parted_concepts", "concept_no", "concepts", "no"),
    ("parted_concepts", "other_no", "concepts", "no"),
    ("rejected_aliases", "concept_no", "concepts", "no"),
    ("rejected_links", "concept_no", "concepts", "no"),
    ("rejected_links", "instead_no", "concepts", "no"),
    // Once the log is folded.
    ("relation_facts", "fact_no", "facts", "no"),
    ("report_annotations", "report_no", "reports", "no"),
    ("report_annotations", "sentence_no", "report_sentences", "no"),
    ("report_changes", "report_no", "reports", "no"),
    ("report_sentences", "report_no", "reports", "no"),
    ("report_words", "report_no", "reports", "no"),
    ("reports", "import_no", "imports", "no"),
    ("reports", "parent_no", "reports", "no"),
    ("search_units", "source_no", "sources", "no"),
    ("source_images", "source_id", "sources", "id"),
    ("source_marks", "by_no", "sources", "no"),
    ("source_marks", "source_no", "sources", "no"),
    ("source_texts", "source_id", "sources", "id"),
    ("sources", "import_no", "imports", "no"),
    ("summary_facts", "concept_no", "concepts", "no"),
    ("summary_facts", "fact_no", "facts", "no"),
    ("summary_states", "concept_no", "concepts", "no"),
    ("webhook_deliveries", "webhook_id", "webhooks", "id"),
];

/// What looks like a reference and names something of another database, or something that may be gone.
const ELSEWHERE: [(&str, &str); 30] = [
    // An answer says what became of its facts.
    ("answer_facts", "fact_id"),
    ("answer_facts", "fact_no"),
    // It outlives the answer.
    ("answer_spending", "answer_id"),
    ("answers", "job_id"),
    ("audit_outbox", "actor_id"),
    ("audit_outbox", "credential_id"),
    ("audit_outbox", "request_id"),
    ("concept_merges", "job_id"),
    // In the store of vectors; clean-up makes both fit.
    ("concepts", "vector_id"),
    ("curation", "job_id"),
    ("fact_merges", "job_id"),
    ("fact_sources", "chunk_no"),
    ("model_answers", "call_id"),
    ("model_answers", "job_id"),
    ("outbox", "job_id"),
    // A job whose subject is gone has nothing to do.
    ("outbox", "subject_id"),
    ("imports", "job_id"),
    // A key of somebody else.
    ("imports", "key_id"),
    // What became of a fact is found out when it is counted.
    ("relation_changes", "fact_no"),
    // Until the sentence is checked without the fact.
    ("report_annotations", "fact_no"),
    ("report_annotations", "through_no"),
    // The history outlives what made it.
    ("report_changes", "fact_no"),
    ("report_changes", "sentence_no"),
    ("report_changes", "source_no"),
    ("report_facts", "fact_no"),
    // Titles are those of sentence 0.
    ("report_words", "sentence_no"),
    // Only compared with newer ones.
    ("reports", "told_no"),
    ("search_units", "vector_id"),
    ("sources", "job_id"),
    // What became of a fact is found out when it is compared.
    ("unchecked_facts", "fact_no"),
];

async fn count(conn: &mut PgConnection, table: &str, condition: &str) -> i64 {
    let count = format!("SELECT count(*) FROM okt_repository.{table} c WHERE {condition}");
    sqlx::query_scalar(AssertSqlSafe(count)).fetch_one(conn).await.unwrap()
}

/// References to rows that are not there, of all repositories.
async fn dangling(conn: &mut PgConnection) -> Vec<String> {
    let mut found = Vec::new();
    for (child, column, parent, key) in REFERENCES {
        let missing = format!(
            "c.{column} IS NOT NULL AND NOT EXISTS (SELECT FROM okt_repository.{parent} p
                 WHERE p.repository_id = c.repository_id AND p.{key} = c.{column})"
        );
        let count = count(conn, child, &missing).await;
        if count > 0 {
            found.push(format!("{count} of {child}.{column}"));
        }
    }
    found
}

/// Looks at the catalogue, so that whoever adds a column has to say what it refers to.
#[tokio::test]
async fn every_column_that_refers_to_a_row_is_looked_at() {
    let database = TestDatabase::migrated().await;
    let mut found: Vec<(String, String)> = sqlx::query_as(
        r"SELECT c.relname::text, a.attname::text
            FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
           WHERE c.relnamespace = 'okt_repository'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
             AND c.relname <> 'migrations' AND a.attname <> 'repository_id'
             AND a.attname ~ '_(id|no|into)$'",
    )
    .fetch_all(&mut database.connect().await)
    .await
    .unwrap();
    let mut known: Vec<(String, String)> = REFERENCES
        .iter()
        .map(|(table, column, ..)| (table, column))
        .chain(ELSEWHERE.iter().map(|(table, column)| (table, column)))
        .map(|(table, column)| ((*table).to_owned(), (*column).to_owned()))
        .collect();
    found.sort();
    known.sort();
    assert_eq!(found, known);
}

#[tokio::test]
async fn nothing_refers_to_what_was_deleted() {
    let database = TestDatabase::migrated().await;
    let databases = Databases::open(&database.config(&[]), &[Purpose::Worker]).await.unwrap().remove(0);
    let mut watcher = database.connect().await;
    let (one, other) = (RepositoryId::mint(), RepositoryId::mint());
    let sources_of_one = fill(&databases, &mut watcher, one).await;
    let sources_of_other = fill(&databases, &mut watcher, other).await;
    fold(&databases, one).await;
    fold(&databases, other).await;
    for (child, column, ..) in REFERENCES {
        let there = count(&mut watcher, child, &format!("c.{column} IS NOT NULL")).await;
        assert!(there > 0, "{child}.{column} is not tried");
    }
    assert_eq!(dangling(&mut watcher).await, [""; 0]);

    merge_contexts(&databases, one).await;
    fold(&databases, one).await;
    assert_eq!(dangling(&mut watcher).await, [""; 0], "after a context became a part of another one");

    // Facts that no source makes any more: one with duplicates, and a duplicate.
    replace_facts(&databases, one, sources_of_one[0], &[fact("f3")], FactStatus::New).await;
    fold(&databases, one).await;
    assert_eq!(dangling(&mut watcher).await, [""; 0], "after facts were replaced");

    for source in sources_of_one {
        let mut tx = databases.begin("default", one).await.unwrap();
        let no = search_units::read_source(&mut tx, one, source).await.unwrap().unwrap().no;
        assert!(sources::delete(&mut tx, one, source).await.unwrap());
        // As the job does that deletion asks for.
        let units = search_units::list_of_source(&mut tx, one, no, None, 1_000).await.unwrap();
        search_units::give_up(&mut tx, one, no, &units).await.unwrap();
        tx.commit().await.unwrap();
        fold(&databases, one).await;
        assert_eq!(dangling(&mut watcher).await, [""; 0], "after a source was deleted");
    }
    let left = format!("c.repository_id = '{one}'");
    for table in [
        "facts",
        "fact_sources",
        "fact_concepts",
        "concept_readings",
        "fact_merges",
        "fact_contradictions",
        "fact_judgements",
        "model_answers",
        "relation_changes",
        "relation_facts",
        "concept_relations",
        "search_units",
        "search_lists",
        "investigation_sources",
        "source_marks",
        "summary_facts",
    ] {
        assert_eq!(count(&mut watcher, table, &left).await, 0, "{table}");
    }

    write_fence::close(&databases, "default", other, &Closed::Deleted).await.unwrap();
    for table in moves::TABLES.into_iter().filter(|table| table.schema == "okt_repository") {
        while moves::remove(&databases, other, table, "default", 2).await.unwrap() > 0 {}
    }
    assert_eq!(dangling(&mut watcher).await, [""; 0], "after a repository was removed");
    assert_eq!(count(&mut watcher, "sources", &format!("c.id = '{}'", sources_of_other[0])).await, 0);
}

/// Has the facts of a source found.
async fn index(databases: &Databases, repository: RepositoryId, source: SourceId) {
    let mut tx = databases.begin("default", repository).await.unwrap();
    let read = search_units::read_source(&mut tx, repository, source).await.unwrap().unwrap();
    let words = BTreeMap::from([("says".to_owned(), 1)]);
    let units: Vec<NewUnit> = read
        .facts
        .iter()
        .map(|(no, _)| NewUnit { kind: UnitKind::Fact, no: *no, sentences: None, words: words.clone() })
        .collect();
    search_units::put(&mut tx, repository, read.no, &units, None).await.unwrap();
    tx.commit().await.unwrap();
}

fn fact(text: &str) -> NewFact {
    new_fact(&format!("What {text} says."))
}

/// Three sources with texts, images, answers, facts, merges, contradictions and concepts.
async fn fill(databases: &Databases, watcher: &mut PgConnection, repository: RepositoryId) -> [SourceId; 3] {
    let mut made = Vec::new();
    for facts in [["f1", "f2", "f3"].as_slice(), &["f2", "f4"], &["f5"]] {
        let source = insert_source(databases, repository).await;
        let image = plant(&mut *watcher, repository, source).await;
        let mut facts: Vec<NewFact> = facts.iter().map(|text| fact(text)).collect();
        facts[0].image = Some(image.into());
        replace_facts(databases, repository, source, &facts, FactStatus::New).await;
        index(databases, repository, source).await;
        made.push(source);
    }
    let numbers: Vec<(i64, Vec<u8>)> =
        sqlx::query_as("SELECT no, content_hash FROM okt_repository.facts WHERE repository_id = $1")
            .bind(repository.uuid())
            .fetch_all(&mut *watcher)
            .await
            .unwrap();
    let number = |text: &str| {
        let ContentHash(hash) = fact(text).hash;
        numbers.iter().find(|(_, other)| other.as_slice() == hash).unwrap().0
    };
    let mut tx = databases.begin("default", repository).await.unwrap();
    let merge = |fact: &str, into: &str| Merge {
        fact: number(fact),
        into: number(into),
        cosine: 0.99,
        by: okt_model::MergedBy::Cosine,
    };
    fact_merges::merge(&mut tx, repository, &[merge("f4", "f1"), merge("f5", "f2")], JobId::mint())
        .await
        .unwrap();
    let contradiction = |one: &str, other: &str| NewContradiction {
        facts: (number(one), number(other)),
        difference: Difference::Number,
        cosine: 0.95,
        found_by: okt_model::ContradictionFoundBy::RefusedMerge,
    };
    let found = [contradiction("f1", "f3"), contradiction("f2", "f3")];
    fact_contradictions::insert(&mut tx, repository, &found).await.unwrap();
    for (one, other) in [("f1", "f3"), ("f2", "f3")] {
        let pair = (number(one).min(number(other)), number(one).max(number(other)));
        isolation_judgements::plant(&mut tx, repository, pair).await;
    }

    let context = |label: &str| NewContext {
        label: label.to_owned(),
        description: String::new(),
        ontology_class: None,
    };
    contexts::insert(&mut tx, repository, &[context("old"), context("new")]).await.unwrap();
    for (name, label) in [("bees", "old"), ("bees", "new"), ("hives", "old")] {
        let concept = file_concept(&mut tx, repository, name, label).await.unwrap();
        let facts: Vec<i64> = numbers.iter().map(|(no, _)| *no).collect();
        link_facts(&mut tx, repository, concept, &facts).await.unwrap();
        let alias = NewAlias { concept, text: format!("{name} and the like"), by: AliasBy::Builtin };
        concept_aliases::insert(&mut tx, repository, &[alias]).await.unwrap();
    }
    let merge = NewConceptMerge {
        concept: file_concept(&mut tx, repository, "apiaries", "old").await.unwrap(),
        into: file_concept(&mut tx, repository, "hives", "old").await.unwrap(),
        by: ConceptMergedBy::Judge,
        job: Some(JobId::mint()),
        person: None,
        reason: None,
    };
    concept_merges::insert(&mut tx, repository, &merge).await.unwrap().unwrap();
    let pair = concept_vectors::list(&mut tx, repository, 0, 2).await.unwrap();
    let verdict = [((pair[0], pair[1]), "unsure")];
    concept_twins::insert_verdicts(&mut tx, repository, &verdict, 1).await.unwrap();
    // One fact that waits to be read for concepts, and one that was.
    let batch = [(number("f1"), number("f1"))];
    concept_readings::plan(&mut tx, repository, made[0], 1, &batch).await.unwrap();
    concept_readings::finish(&mut tx, repository, made[0], 1, &[number("f2")]).await.unwrap();
    cover(&mut tx, repository, &[number("f1"), number("f3")]).await;
    for title in ["One", "Another"] {
        let id = InvestigationId::mint();
        investigations::insert(&mut tx, repository, id, title, None).await.unwrap();
        for source in &made {
            investigations::link(&mut tx, repository, id, *source).await.unwrap();
        }
    }
    others(&mut tx, repository, number("f5")).await;
    // Of three sources each supersedes the one before it.
    for pair in made.windows(2) {
        let person = UserId::mint();
        let mark = NewMark { kind: MarkKind::Superseded, by: Some(pair[1]), reason: None, person };
        assert!(source_marks::set(&mut tx, repository, pair[0], mark).await.unwrap());
    }
    tx.commit().await.unwrap();
    curate(databases, repository, &fact("f1").text).await;
    // A context that is about to be merged.
    let merged = "UPDATE okt_repository.contexts c SET merging_into = t.no FROM okt_repository.contexts t
          WHERE c.repository_id = $1 AND c.label = 'old' AND t.repository_id = $1 AND t.label = 'new'";
    sqlx::query(merged).bind(repository.uuid()).execute(&mut *watcher).await.unwrap();
    for (table, column, ..) in REFERENCES.iter().filter(|(_, column, ..)| *column == "import_no") {
        let marked = format!("UPDATE okt_repository.{table} SET {column} = 1 WHERE repository_id = $1");
        sqlx::query(AssertSqlSafe(marked)).bind(repository.uuid()).execute(&mut *watcher).await.unwrap();
    }
    made.try_into().unwrap()
}

/// What rests on facts: a report, an answer, webhooks, an import and a definition.
async fn others(tx: &mut Connection, repository: RepositoryId, fact: i64) {
    isolation_reports::plant(tx, repository, fact, 0).await;
    let webhook = isolation_webhooks::plant(tx, repository).await.webhook;
    isolation_webhooks::plant(tx, repository).await;
    assert!(webhooks::delete(tx, repository, webhook).await.unwrap());
    isolation_answers::plant(tx, repository, FactId::mint(), fact).await;
    for statement in [
        "INSERT INTO okt_repository.imports (repository_id, no, kind, job_id, sha256, key_id, facts)
         VALUES ($1, 1, 'bundle', gen_random_uuid(), sha256('x'), 'k', 1)",
        "INSERT INTO okt_repository.concept_syntheses
               (repository_id, name_key, version, canonical_name, content, model, promptset_hash, question, inputs, dropped,
                summaries, concepts, facts, images, image_sources)
         VALUES ($1, 'x', 1, 'X', 'x', 'm', sha256('x'), sha256('x'), sha256('x'), 0, '{}', '{}', '{}', '{}', '{}')",
    ] {
        sqlx::query(statement).bind(repository.uuid()).execute(&mut *tx).await.unwrap();
    }
}

/// Every concept is summed up, by a slice with these facts.
async fn cover(conn: &mut Connection, repository: RepositoryId, facts: &[i64]) {
    summary_states::take_in(conn, repository, 0).await.unwrap();
    for concept in concept_vectors::list(conn, repository, 0, 100).await.unwrap() {
        let fact_count = i32::try_from(facts.len()).unwrap();
        let changes = SliceChanges {
            added: facts.iter().map(|fact| (*fact, 1)).collect(),
            changed: vec![SliceState { number: 1, is_open: true, fact_count }],
            ..SliceChanges::default()
        };
        concept_summaries::change(conn, repository, concept, &changes).await.unwrap();
    }
}

/// What people leave: one split that stays, one that is undone, and what keeps machines from other things.
async fn curate(databases: &Databases, repository: RepositoryId, text: &str) {
    let decided = Decided { person: UserId::mint(), reason: None };
    let mut tx = databases.begin("default", repository).await.unwrap();
    let fact: Uuid =
        sqlx::query_scalar("SELECT id FROM okt_repository.facts WHERE repository_id = $1 AND text = $2")
            .bind(repository.uuid())
            .bind(text)
            .fetch_one(&mut *tx)
            .await
            .unwrap();
    let bees = file_concept(&mut tx, repository, "bees", "new").await.unwrap();
    let hives = file_concept(&mut tx, repository, "hives", "old").await.unwrap();
    let old = contexts::find(&mut tx, repository, "old").await.unwrap().unwrap().no;
    let new = contexts::find(&mut tx, repository, "new").await.unwrap().unwrap().no;
    let undone = curation::split(&mut tx, repository, decided, hives, ("combs", old), &[fact.into()]).await;
    let undone = undone.unwrap().unwrap();
    // Even with a merge that was taken back, and a name that it had.
    let merge = NewConceptMerge {
        concept: bees,
        into: undone.made,
        by: ConceptMergedBy::Person,
        job: None,
        person: Some(decided.person),
        reason: None,
    };
    let merge = curation::merge(&mut tx, repository, &merge).await.unwrap().unwrap();
    let renamed = curation::rename(&mut tx, repository, decided, undone.made, Some("wax"), None).await;
    let renamed = renamed.unwrap().unwrap().unwrap();
    for step in [renamed, merge, undone.step] {
        curation::undo(&mut tx, repository, step, decided.person).await.unwrap().unwrap();
    }
    curation::split(&mut tx, repository, decided, hives, ("combs", new), &[fact.into()]).await.unwrap();
    curation::rename(&mut tx, repository, decided, bees, Some("honey bees"), None).await.unwrap();
    curation::rename(&mut tx, repository, decided, hives, Some("beehives"), None).await.unwrap();
    curation::remove_alias(&mut tx, repository, decided, bees, "bees and the like").await.unwrap().unwrap();
    curation::mark_fact(&mut tx, repository, decided, fact.into(), true).await.unwrap().unwrap();
    tx.commit().await.unwrap();
}

/// What reading a source leaves beside its facts; returns the image.
async fn plant(watcher: &mut PgConnection, repository: RepositoryId, source: SourceId) -> Uuid {
    let planted = "WITH texts AS (
             INSERT INTO okt_repository.source_texts
                    (repository_id, source_id, text, markdown, sentences, segmenter, segmenter_hash)
             VALUES ($1, $2, '', '', '{}', '', '')),
         answers AS (
             INSERT INTO okt_repository.model_answers
                    (repository_id, key, subject_kind, subject_id, call_id, model, operation, answer, tokens_in,
                     tokens_out, micro_usd, latency_ms, retries, characters)
             VALUES ($1, sha256($2::text::bytea), 'source', $2, gen_random_uuid(), '', '', '', 0, 0, 0, 0, 0, 0))
         INSERT INTO okt_repository.source_images (repository_id, source_id, id, kind, position)
         VALUES ($1, $2, gen_random_uuid(), 'inline', 0) RETURNING id";
    sqlx::query_scalar(planted).bind(repository.uuid()).bind(source.uuid()).fetch_one(watcher).await.unwrap()
}

async fn fold(databases: &Databases, repository: RepositoryId) {
    let mut tx = databases.begin("default", repository).await.unwrap();
    while concept_relations::fold(&mut tx, repository, 2).await.unwrap() != Folded::default() {}
    tx.commit().await.unwrap();
}

/// As the job does it.
async fn merge_contexts(databases: &Databases, repository: RepositoryId) {
    let mut tx = databases.begin("default", repository).await.unwrap();
    let old = contexts::find(&mut tx, repository, "old").await.unwrap().unwrap().no;
    let new = contexts::find(&mut tx, repository, "new").await.unwrap().unwrap().no;
    while concepts::empty(&mut tx, repository, old, new, 1).await.unwrap() != Emptied::default() {}
    assert!(contexts::delete(&mut tx, repository, old).await.unwrap());
    tx.commit().await.unwrap();
}
