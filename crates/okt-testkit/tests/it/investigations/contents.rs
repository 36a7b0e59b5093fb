//! What the sources of an investigation say: facts and concepts.

use okt_model::{JobId, MergedBy};
use okt_store::concept_relations::{self, Folded};
use okt_store::fact_merges::{self, Merge};
use okt_testkit::app::TestApp;
use okt_testkit::concepts::{file_concept, link_facts};
use serde_json::{Value, json};

use super::{add, begin, column, investigation, say};

async fn number(app: &TestApp, text: &str) -> i64 {
    let no = "SELECT no FROM okt_repository.facts WHERE repository_id = $1 AND text = $2";
    let no = sqlx::query_scalar(no).bind(app.repository.uuid()).bind(text);
    no.fetch_one(&mut app.connect().await).await.unwrap()
}

/// One fact becomes a duplicate of another.
async fn merge(app: &TestApp, text: &str, into: &str) {
    let (fact, into) = (number(app, text).await, number(app, into).await);
    let mut tx = app.service.api.app.databases().begin("default", app.repository).await.unwrap();
    let merge = Merge { fact, into, cosine: 0.99, by: MergedBy::Cosine };
    fact_merges::merge(&mut tx, app.repository, &[merge], JobId::mint()).await.unwrap();
    tx.commit().await.unwrap();
}

async fn reject(app: &TestApp, text: &str, rejected: bool) {
    let id = "SELECT id FROM okt_repository.facts WHERE repository_id = $1 AND text = $2";
    let id: uuid::Uuid = sqlx::query_scalar(id)
        .bind(app.repository.uuid())
        .bind(text)
        .fetch_one(&mut app.connect().await)
        .await
        .unwrap();
    let status = if rejected { "rejected" } else { "stable" };
    let done = app.put(&format!("/facts/{id}"), &json!({"status": status})).await;
    assert_eq!(done.status, 200, "{done:?}");
}

/// These facts speak of a concept from now on, and it is counted.
async fn concern(app: &TestApp, name: &str, texts: &[&str]) {
    let mut numbers = Vec::new();
    for text in texts {
        numbers.push(number(app, text).await);
    }
    let mut tx = app.service.api.app.databases().begin("default", app.repository).await.unwrap();
    let concept = file_concept(&mut tx, app.repository, name, "Species").await.unwrap();
    link_facts(&mut tx, app.repository, concept, &numbers).await.unwrap();
    tx.commit().await.unwrap();
    fold(app).await;
}

async fn fold(app: &TestApp) {
    let mut tx = app.service.api.app.databases().begin("default", app.repository).await.unwrap();
    while concept_relations::fold(&mut tx, app.repository, 100).await.unwrap() != Folded::default() {}
    tx.commit().await.unwrap();
}

async fn facts(app: &TestApp, id: &str) -> Vec<String> {
    let list = format!("/investigations/{id}/facts");
    let whole = column(app, &list, 50, "text").await;
    for limit in [1, 2, 3] {
        assert_eq!(column(app, &list, limit, "text").await, whole, "in pages of {limit}");
    }
    assert_eq!(investigation(app, id).await["fact_count"], json!(whole.len()));
    whole
}

async fn concepts(app: &TestApp, id: &str) -> Vec<(String, i64)> {
    let list = format!("/investigations/{id}/concepts");
    let page = app.read(&list).await;
    assert_eq!(page["complete"], json!(true), "{page:#}");
    let rows = page["data"].as_array().unwrap();
    let name = |row: &Value| row["canonical_name"].as_str().unwrap().to_owned();
    let found: Vec<_> = rows.iter().map(|row| (name(row), row["fact_count"].as_i64().unwrap())).collect();
    let names: Vec<String> = found.iter().map(|(name, _)| name.clone()).collect();
    for limit in [1, 2] {
        assert_eq!(column(app, &list, limit, "canonical_name").await, names, "in pages of {limit}");
    }
    found
}

#[tokio::test]
async fn facts_are_listed_once_as_they_stand_and_concepts_are_counted_by_them() {
    let app = TestApp::start().await;
    let id = begin(&app, "Bees").await;
    let one = say(&app, &["Bees dance.", "Bees make wax."]).await;
    let two = say(&app, &["Bees dance.", "Honey bees dance.", "Wasps make paper."]).await;
    let elsewhere = say(&app, &["Bees dance.", "Ants farm fungi."]).await;
    concern(&app, "Bee", &["Bees dance.", "Bees make wax.", "Honey bees dance."]).await;
    concern(&app, "Wasp", &["Wasps make paper."]).await;
    concern(&app, "Insect", &["Bees dance.", "Wasps make paper.", "Ants farm fungi."]).await;
    assert_eq!(facts(&app, &id).await, [""; 0]);
    assert_eq!(concepts(&app, &id).await, []);

    // What two sources say is with the newest.
    add(&app, &id, one).await;
    assert_eq!(facts(&app, &id).await.len(), 2);
    add(&app, &id, two).await;
    let all = facts(&app, &id).await;
    assert_eq!(all.len(), 4, "{all:?}");
    assert_eq!(all[3], "Bees make wax.", "the oldest source last: {all:?}");
    let expected = [("Bee", 3), ("Insect", 2), ("Wasp", 1)].map(|(name, count)| (name.to_owned(), count));
    let mut found = concepts(&app, &id).await;
    assert_eq!(found, expected, "the source that is elsewhere does not count");

    // Merged: shown as the canonical fact, also where only a source of its duplicate belongs to the investigation.
    merge(&app, "Honey bees dance.", "Ants farm fungi.").await;
    fold(&app).await;
    let mut merged = facts(&app, &id).await;
    merged.sort();
    assert_eq!(merged, ["Ants farm fungi.", "Bees dance.", "Bees make wax.", "Wasps make paper."]);
    merge(&app, "Bees make wax.", "Bees dance.").await;
    fold(&app).await;
    let mut merged = facts(&app, &id).await;
    merged.sort();
    assert_eq!(merged, ["Ants farm fungi.", "Bees dance.", "Wasps make paper."], "both sources say the same");
    found = concepts(&app, &id).await;
    found.sort();
    let expected = [("Bee", 2), ("Insect", 3), ("Wasp", 1)].map(|(name, count)| (name.to_owned(), count));
    assert_eq!(found, expected);

    // Rejected: not shown, with all that was merged into it.
    reject(&app, "Ants farm fungi.", true).await;
    let mut left = facts(&app, &id).await;
    left.sort();
    assert_eq!(left, ["Bees dance.", "Wasps make paper."]);
    let counted = concepts(&app, &id).await;
    assert!(
        counted.contains(&("Insect".to_owned(), 2)),
        "at once, also before it is counted anew: {counted:?}"
    );
    fold(&app).await;
    assert_eq!(concepts(&app, &id).await, counted);
    reject(&app, "Ants farm fungi.", false).await;
    assert_eq!(facts(&app, &id).await.len(), 3);

    // Unlinked, and deleted.
    assert_eq!(app.delete(&format!("/investigations/{id}/sources/{two}")).await.status, 204);
    assert_eq!(facts(&app, &id).await, ["Bees dance."], "which its other fact was merged into");
    assert_eq!(app.delete(&format!("/sources/{one}")).await.status, 204);
    assert_eq!(facts(&app, &id).await, [""; 0]);
    assert_eq!(concepts(&app, &id).await, []);
    assert_eq!(app.facts(&elsewhere.to_string()).await.len(), 2);
}

/// Sources that have no facts (yet) do not end the list, and no request looks at all of them.
#[tokio::test]
async fn many_sources_without_facts_are_passed_over_in_pages() {
    let app = TestApp::start().await;
    let id = begin(&app, "Bees").await;
    let oldest = say(&app, &["Bees dance.", "Bees make wax."]).await;
    add(&app, &id, oldest).await;
    let many = format!(
        "WITH made AS (
             INSERT INTO okt_repository.sources (repository_id, id, job_id, url, status)
             SELECT '{0}', gen_random_uuid(), gen_random_uuid(), 'https://example.org/' || n, 'pending'
               FROM generate_series(1, 450) AS n
             RETURNING repository_id, no)
         INSERT INTO okt_repository.investigation_sources (repository_id, investigation_no, source_no)
         SELECT m.repository_id, i.no, m.no FROM made m, okt_repository.investigations i WHERE i.repository_id = '{0}'",
        app.repository
    );
    app.sql(&many).await;
    let list = format!("/investigations/{id}/facts");
    let first = app.read(&list).await;
    assert_eq!(first["data"], json!([]), "{first:#}");
    assert_ne!(first["next_cursor"], Value::Null);
    for limit in [1, 2, 50] {
        let mut found = column(&app, &list, limit, "text").await;
        found.sort();
        assert_eq!(found, ["Bees dance.", "Bees make wax."], "in pages of {limit}");
    }
    let seen = investigation(&app, &id).await;
    assert_eq!((&seen["progress"]["total"], &seen["fact_count"]), (&json!(451), &json!(2)), "{seen:#}");
    assert_eq!(column(&app, &format!("/investigations/{id}/sources"), 200, "id").await.len(), 451);
}

/// Of more facts than are looked at the rest is not counted, and the answer says so.
#[tokio::test]
async fn a_count_that_is_not_whole_says_so() {
    let app = TestApp::start().await;
    let id = begin(&app, "Bees").await;
    let source = say(&app, &["Bees dance."]).await;
    add(&app, &id, source).await;
    let many = format!(
        "WITH made AS (
             INSERT INTO okt_repository.facts (repository_id, id, text, content_hash, kind, status, model, source_count)
             SELECT '{0}', gen_random_uuid(), 'Hive ' || n, sha256(n::text::bytea), 'text', 'stable', 'x', 1
               FROM generate_series(1, 10000) AS n
             RETURNING no)
         INSERT INTO okt_repository.fact_sources (repository_id, source_no, fact_no, chunk_no, sentences)
         SELECT '{0}', s.no, m.no, 0, '{{0}}' FROM made m, okt_repository.sources s WHERE s.repository_id = '{0}'",
        app.repository
    );
    app.sql(&many).await;
    let seen = investigation(&app, &id).await;
    assert_eq!(
        (&seen["fact_count"], &seen["fact_count_complete"]),
        (&json!(10_001), &json!(false)),
        "{seen:#}"
    );
    assert_eq!(app.read(&format!("/investigations/{id}/concepts")).await["complete"], json!(false));
    app.sql(
        "DELETE FROM okt_repository.fact_sources WHERE fact_no = (SELECT max(no) FROM okt_repository.facts)",
    )
    .await;
    let seen = investigation(&app, &id).await;
    assert_eq!(
        (&seen["fact_count"], &seen["fact_count_complete"]),
        (&json!(10_000), &json!(true)),
        "{seen:#}"
    );
}
