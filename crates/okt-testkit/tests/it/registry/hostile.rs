use okt_model::content_hash;
use okt_testkit::app::TestApp;
use okt_testkit::registry::package;
use serde_json::{Value, json};

use super::{FACTS, add, id, is_imported, start};

/// All that the repository knows, but for the source that is just being added.
async fn rows(app: &TestApp) -> String {
    let mut conn = app.connect().await;
    let mut all = Vec::new();
    for table in [
        "facts",
        "fact_sources",
        "concepts",
        "concept_aliases",
        "fact_concepts",
        "contexts",
        "imports",
    ] {
        let rows = format!(
            "SELECT coalesce(string_agg(t::text, ',' ORDER BY t::text), '') FROM okt_repository.{table} t"
        );
        let rows: String = sqlx::query_scalar(sqlx::AssertSqlSafe(rows)).fetch_one(&mut conn).await.unwrap();
        all.push(format!("{table}: {rows}"));
    }
    all.join("\n")
}

/// A package with something wrong in it leaves nothing, and the source is fetched.
#[tokio::test]
async fn a_package_with_something_wrong_leaves_nothing() {
    let (mut app, registry) = start().await;
    app.web.page("/empty", okt_testkit::web::Page::html("nothing").status(404));
    let dangling = json!("0197a3c0-0000-7000-8000-00000000dead");
    let cases: [(&str, Value); 8] = [
        ("/schema_version", json!(2)),
        ("/facts/2/content", json!("Gulls do not drink.")),
        ("/facts/2/concept_ids/0", dangling.clone()),
        ("/facts/2/content", json!("x".repeat(4_001))),
        ("/summaries/0/concept_id", dangling),
        ("/concepts/0/canonical_name", json!("\u{0}")),
        ("/facts/1/id", json!("00000000-0000-0000-0000-000000000001")),
        ("/decomposed_at", json!("now")),
    ];
    let before = rows(&app).await;
    for (pointer, value) in cases {
        let mut package = package(&FACTS);
        *package.pointer_mut(pointer).unwrap() = value;
        registry.offer(&app.web.url("/empty"), &package);
        let source = app.add_page("/empty").await;
        let seen = app.settled(&source).await;
        assert_eq!(
            (&seen["status"], &seen["failure"]["code"]),
            (&json!("failed"), &json!("not_found")),
            "{pointer}"
        );
        assert_eq!(rows(&app).await, before, "{pointer}");
        assert_eq!(app.delete(&format!("/sources/{source}")).await.status, 204);
    }
    app.rest();
}

/// Ids of other rows get a package nothing of theirs.
#[tokio::test]
async fn a_package_with_the_ids_of_other_facts_changes_none_of_them() {
    let (app, registry) = start().await;
    registry.offer(&app.web.url("/gulls"), &package(&FACTS));
    let victim = id(&add(&app).await);
    let before = app.facts(&victim).await;
    let mut theft = package(&FACTS);
    for fact in theft["facts"].as_array_mut().unwrap() {
        let text = format!("Not so: {}", fact["content"].as_str().unwrap());
        fact["content_hash"] = json!(content_hash(&text).to_string());
        fact["content"] = json!(text);
    }
    theft["concepts"][0]["canonical_name"] = json!("Thief");
    theft["concepts"][0]["aliases"] = json!([]);
    registry.offer(&app.web.url("/theft"), &theft);
    let source = app.add_page("/theft").await;
    assert!(is_imported(&app.settled(&source).await));
    assert_eq!(app.facts(&victim).await, before);
    assert_eq!(app.count("SELECT count(*) FROM okt_repository.facts").await, 6);
    let ids = "SELECT count(DISTINCT id) FROM (SELECT id FROM okt_repository.facts UNION ALL SELECT id FROM okt_repository.concepts) AS i";
    assert_eq!(app.count(ids).await, 8, "nobody shares an id");
    let gulls = "SELECT count(*) FROM okt_repository.concepts WHERE canonical_name IN ('Gull', 'Thief')";
    assert_eq!(app.count(gulls).await, 2);
}
