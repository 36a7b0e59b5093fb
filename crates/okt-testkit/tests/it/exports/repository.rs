//! Whole repositories.

use std::collections::BTreeSet;
use std::time::Duration;

use http::Method;
use okt_model::{JobId, MergedBy, SourceId};
use okt_store::concept_relations::{self, Folded};
use okt_store::fact_merges::{self, Merge};
use okt_testkit::accounts::repository;
use okt_testkit::app::TestApp;
use okt_testkit::concepts::{file_concept, link_facts};
use okt_testkit::wait::eventually;
use serde_json::{Value, json};

use super::say;

async fn export(app: &TestApp, format: &str) -> String {
    let answer = app.get(&format!("/export?format={format}")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.text
}

/// The nodes of a type, as JSON-LD has them.
fn nodes<'a>(document: &'a Value, kind: &str) -> Vec<&'a Value> {
    let is = |node: &&Value| match &node["@type"] {
        Value::Array(kinds) => kinds.contains(&json!(kind)),
        other => other == kind,
    };
    document["@graph"].as_array().unwrap().iter().filter(is).collect()
}

/// What facts come from, as JSON-LD has it: the ids of facts and sources.
fn origins(document: &Value) -> Vec<(String, String)> {
    let nodes = document["@graph"].as_array().unwrap().iter();
    let said = nodes.filter(|node| !node["prov:hadPrimarySource"].is_null());
    let id = |value: &Value| value.as_str().unwrap().to_owned();
    said.map(|node| (id(&node["@id"]), id(&node["prov:hadPrimarySource"]))).collect()
}

async fn fact(app: &TestApp, text: &str) -> (i64, uuid::Uuid) {
    let found = "SELECT no, id FROM okt_repository.facts WHERE repository_id = $1 AND text = $2";
    let found = sqlx::query_as(found).bind(app.repository.uuid()).bind(text);
    found.fetch_one(&mut app.connect().await).await.unwrap()
}

async fn merge(app: &TestApp, text: &str, into: &str) {
    let (fact, into) = (fact(app, text).await.0, fact(app, into).await.0);
    let mut tx = app.service.api.app.databases().begin("default", app.repository).await.unwrap();
    let merge = Merge { fact, into, cosine: 0.99, by: MergedBy::Cosine };
    fact_merges::merge(&mut tx, app.repository, &[merge], JobId::mint()).await.unwrap();
    tx.commit().await.unwrap();
}

async fn concern(app: &TestApp, name: &str, texts: &[&str]) {
    let mut numbers = Vec::new();
    for text in texts {
        numbers.push(fact(app, text).await.0);
    }
    let mut tx = app.service.api.app.databases().begin("default", app.repository).await.unwrap();
    let concept = file_concept(&mut tx, app.repository, name, "Species").await.unwrap();
    link_facts(&mut tx, app.repository, concept, &numbers).await.unwrap();
    while concept_relations::fold(&mut tx, app.repository, 100).await.unwrap() != Folded::default() {}
    tx.commit().await.unwrap();
}

fn urn(id: impl std::fmt::Display) -> String {
    format!("urn:uuid:{id}")
}

#[tokio::test]
async fn every_row_is_there_once_however_many_pages_it_takes() {
    let app = TestApp::start().await;
    // One fact of more sources than a page has, and more facts than a page has of one source.
    let many: Vec<String> = (0..130).map(|n| format!("Fact number {n} of many.")).collect();
    let mut expected = BTreeSet::new();
    let texts: Vec<&str> = many.iter().map(String::as_str).collect();
    let source = say(&app, app.repository, "Many", &texts).await;
    let mut sources = vec![source];
    for n in 0..220 {
        sources.push(say(&app, app.repository, &format!("Source {n}"), &[texts[0]]).await);
    }
    for text in &many {
        expected.insert((urn(fact(&app, text).await.1), urn(source)));
    }
    let first = fact(&app, &many[0]).await.1;
    expected.extend(sources.iter().map(|source| (urn(first), urn(source))));
    concern(&app, "Honey bee", &[texts[0], texts[60], texts[129]]).await;
    concern(&app, "Waggle dance", &[texts[60], texts[129]]).await;

    let document: Value = serde_json::from_str(&export(&app, "jsonld").await).unwrap();
    assert_eq!(nodes(&document, "okt:Source").len(), 221);
    assert_eq!(nodes(&document, "okt:Fact").len(), 130);
    assert_eq!(nodes(&document, "skos:Concept").len(), 2);
    let found = origins(&document);
    assert_eq!(found.len(), expected.len(), "each once");
    assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected);

    let xml = export(&app, "graphml").await;
    for (part, count) in [
        ("<data key=\"node_type\">source</data>", 221),
        ("<data key=\"node_type\">fact</data>", 130),
        ("<data key=\"node_type\">concept</data>", 2),
        ("<data key=\"edge_relation\">from</data>", expected.len()),
        ("<data key=\"edge_relation\">about</data>", 5),
        ("<data key=\"edge_shared_fact_count\">2</data>", 1),
    ] {
        assert_eq!(xml.matches(part).count(), count, "{part}");
    }
    let table = export(&app, "csv").await;
    assert_eq!(table.lines().count(), 1 + expected.len());
    assert_eq!(table.matches("\"Honey bee; Waggle dance\"").count(), 2);
}

#[tokio::test]
async fn only_what_is_one_s_own_and_holds_is_exported() {
    let app = TestApp::start().await;
    let kept = say(&app, app.repository, "Kept", &["Bees dance.", "Bees waggle.", "Bees swim."]).await;
    let other = say(&app, app.repository, "Other", &["Honey bees dance."]).await;
    let theirs = repository(&app.service).await;
    let foreign = say(&app, theirs, "Foreign", &["Wasps sting."]).await;
    merge(&app, "Honey bees dance.", "Bees dance.").await;
    let rejected = fact(&app, "Bees swim.").await.1;
    let done = app.put(&format!("/facts/{rejected}"), &json!({"status": "rejected"})).await;
    assert_eq!(done.status, 200, "{done:?}");
    let (canonical, waggle) = (fact(&app, "Bees dance.").await.1, fact(&app, "Bees waggle.").await.1);

    let document: Value = serde_json::from_str(&export(&app, "jsonld").await).unwrap();
    let ids: BTreeSet<&str> =
        nodes(&document, "okt:Fact").iter().map(|node| node["@id"].as_str().unwrap()).collect();
    assert_eq!(ids, BTreeSet::from([&*urn(canonical), &*urn(waggle)]));
    // The duplicate gives its source to the fact that stands for it.
    let expected = [(canonical, kept), (canonical, other), (waggle, kept)];
    let expected: BTreeSet<_> = expected.map(|(fact, source)| (urn(fact), urn(source))).into();
    assert_eq!(origins(&document).into_iter().collect::<BTreeSet<_>>(), expected);
    for format in ["jsonld", "graphml", "csv"] {
        let text = export(&app, format).await;
        for hidden in ["Wasps", "Foreign", &foreign.to_string(), "Bees swim.", &rejected.to_string()] {
            assert!(!text.contains(hidden), "{format} has {hidden}");
        }
        assert!(text.contains("Bees waggle.") && text.contains(&other.to_string()), "{format}");
    }
}

#[tokio::test]
async fn retracted_sources_and_facts_say_so() {
    let app = TestApp::start().await;
    let gone = say(&app, app.repository, "Gone", &["Bees swim.", "Bees dance."]).await;
    let good = say(&app, app.repository, "Good", &["Bees dance."]).await;
    let swim = fact(&app, "Bees swim.").await.1;
    let plain = export(&app, "jsonld").await;
    assert!(!plain.contains("okt:retracted") && !plain.contains("okt:mark"), "{plain}");
    let mark = json!({"kind": "retracted", "reason": "made up"});
    app.put(&format!("/sources/{gone}/mark"), &mark).await;
    let older = json!({"kind": "superseded", "by": gone});
    app.put(&format!("/sources/{good}/mark"), &older).await;

    let document: Value = serde_json::from_str(&export(&app, "jsonld").await).unwrap();
    let retracted: Vec<_> =
        nodes(&document, "okt:Fact").into_iter().filter(|node| node["okt:retracted"] == true).collect();
    assert_eq!(retracted.len(), 1);
    assert_eq!(retracted[0]["@id"], urn(swim));
    let sources = nodes(&document, "okt:Source");
    let of = |id: SourceId| *sources.iter().find(|node| node["@id"] == urn(id)).unwrap();
    assert_eq!(of(gone)["okt:mark"], "retracted");
    assert_eq!(of(gone)["prov:qualifiedInvalidation"]["rdfs:comment"], "made up");
    assert_eq!(of(good)["okt:supersededBy"], urn(gone));
    let table = export(&app, "csv").await;
    let marked = |text: &str| table.lines().filter(|line| line.contains(text)).count();
    assert_eq!((marked("\"retracted\""), marked("\"superseded\""), marked("\"yes\"")), (2, 1, 1));
    let xml = export(&app, "graphml").await;
    assert_eq!(xml.matches("<data key=\"node_retracted\">true</data>").count(), 2);
}

#[tokio::test]
async fn sentences_are_where_they_are_said_to_be() {
    let mut app = TestApp::start().await;
    let text =
        "蜂 und 🐝: was?\n\nVarroa mites killed 40 percent of all honey bee colonies in Norway in 2006.\n";
    let source = app.add_text("bees.txt", text).await;
    app.work().await;
    assert_eq!(app.settled(&source).await["status"], "processed");
    let parsed: Vec<char> = app.source(&source).await["parsed_text"].as_str().unwrap().chars().collect();
    let document: Value = serde_json::from_str(&export(&app, "jsonld").await).unwrap();
    let mut quotes = BTreeSet::new();
    for node in document["@graph"].as_array().unwrap() {
        let selectors = node["prov:qualifiedPrimarySource"]["oa:hasSelector"].as_array();
        for at in selectors.into_iter().flatten() {
            let place = |end: &str| at[end].as_str().unwrap().parse::<usize>().unwrap();
            let cut: String = parsed[place("oa:start")..place("oa:end")].iter().collect();
            assert_eq!(at["oa:exact"], cut);
            quotes.insert(cut);
        }
    }
    assert!(!quotes.is_empty(), "{document:#}");
    let table = export(&app, "csv").await;
    for quote in quotes {
        let first = if quote.starts_with('=') { "'" } else { "" };
        assert!(table.contains(&format!("\"{first}{quote}\"")), "{quote}: {table}");
    }
}

#[tokio::test]
async fn it_is_recorded_before_anything_leaves() {
    let app = TestApp::start().await;
    export(&app, "graphml").await;
    let refused = app.get("/export?format=xlsx").await;
    assert_eq!(refused.status, 422, "{refused:?}");
    let audit = app.read("/audit?action=repository.exported").await;
    let rows = audit["data"].as_array().unwrap();
    assert_eq!(rows.len(), 1, "{audit:#}");
    assert_eq!(rows[0]["object"], "graphml");
    assert_eq!(rows[0]["actor"], json!(app.owner.id));
}

#[tokio::test]
async fn a_slow_reader_holds_no_connection_and_sees_nothing_later() {
    let app = TestApp::start().await;
    let source = say(&app, app.repository, "Long", &["Bees dance."]).await;
    // More than lies between two programs.
    let more = "INSERT INTO okt_repository.facts (repository_id, id, text, content_hash, kind, status, model, source_count)
                SELECT $1, gen_random_uuid(), n || repeat('x', 3900), sha256(n::text::bytea), 'text', 'stable', 'model', 1
                  FROM generate_series(1, 6000) AS n";
    let mut conn = app.connect().await;
    sqlx::query(more).bind(app.repository.uuid()).execute(&mut conn).await.unwrap();
    let links = "INSERT INTO okt_repository.fact_sources (repository_id, source_no, fact_no, sentences)
                 SELECT f.repository_id, s.no, f.no, '{}' FROM okt_repository.facts f
                   JOIN okt_repository.sources s ON s.repository_id = f.repository_id AND s.id = $2
                  WHERE f.repository_id = $1 AND f.text <> 'Bees dance.'";
    let links = sqlx::query(links).bind(app.repository.uuid()).bind(source.uuid());
    links.execute(&mut conn).await.unwrap();

    let path = app.path("/export?format=jsonld");
    let request = app.service.request(Method::GET, &path).bearer_auth(&app.owner.token);
    let mut response = request.send().await.unwrap();
    let mut read = response.chunk().await.unwrap().unwrap().to_vec();
    let busy = "SELECT count(*) FROM pg_stat_activity
                 WHERE datname = current_database() AND state LIKE 'idle in transaction%'";
    // Others of the service begin and end theirs meanwhile.
    eventually(Duration::from_secs(20), "nobody reads, and nobody holds a transaction", async || {
        let held: i64 = sqlx::query_scalar(busy).fetch_one(&mut conn).await.unwrap();
        if held == 0 { Ok(()) } else { Err(held) }
    })
    .await;
    let late = say(&app, app.repository, "Late", &["Bees sleep.", "Bees dance."]).await;
    concern(&app, "Late concept", &["Bees sleep."]).await;
    while let Some(piece) = response.chunk().await.unwrap() {
        read.extend_from_slice(&piece);
    }
    assert!(read.len() > 20_000_000, "{} bytes", read.len());
    let document: Value = serde_json::from_slice(&read).unwrap();
    assert_eq!(nodes(&document, "okt:Fact").len(), 6_001);
    let text = String::from_utf8(read).unwrap();
    for hidden in ["Bees sleep.", &late.to_string(), "Late concept"] {
        assert!(!text.contains(hidden), "{hidden}");
    }
    assert!(export(&app, "jsonld").await.contains("Bees sleep."), "the next one has it");
}
