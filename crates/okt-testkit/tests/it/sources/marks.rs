//! Sources that were retracted or superseded, and what rests on them.

use std::collections::BTreeMap;
use std::time::Duration;

use http::Method;
use okt_model::{Difference, FactStatus, IndexSource, JobId, MarkOrigin, MergedBy, RepositoryId, SourceId};
use okt_store::fact_contradictions::{self, NewContradiction};
use okt_store::fact_merges::{self, Merge};
use okt_store::outbox::When;
use okt_store::source_marks;
use okt_store::sources::{self, NewSource};
use okt_testkit::accounts::{give, register, repository};
use okt_testkit::app::TestApp;
use okt_testkit::client::Answer;
use okt_testkit::concepts::{file_concept, link_facts};
use okt_testkit::facts::{insert_source, new_fact, replace_facts};
use okt_testkit::jobs;
use okt_testkit::multipart::{CONTENT_TYPE, form};
use okt_testkit::wait::eventually;
use serde_json::{Value, json};
use uuid::Uuid;

const BOTH: &str = "Hive A stands on the roof of the town hall.";
const ONLY: &str = "Hive A stands on the roof of the school.";

/// A source that says this.
async fn say(app: &TestApp, texts: &[&str]) -> SourceId {
    let databases = app.service.api.app.databases();
    let source = insert_source(databases, app.repository).await;
    let facts: Vec<_> = texts.iter().map(|text| new_fact(text)).collect();
    replace_facts(databases, app.repository, source, &facts, FactStatus::Stable).await;
    source
}

/// The number and the id of a fact.
async fn fact(app: &TestApp, text: &str) -> (i64, Uuid) {
    let found = sqlx::query_as("SELECT no, id FROM okt_repository.facts WHERE text = $1").bind(text);
    found.fetch_one(&mut app.connect().await).await.unwrap()
}

async fn mark(app: &TestApp, source: SourceId, body: Value) -> Answer {
    app.put(&format!("/sources/{source}/mark"), &body).await
}

async fn retract(app: &TestApp, source: SourceId) {
    let marked = mark(app, source, json!({"kind": "retracted"})).await;
    assert_eq!(marked.status, 200, "{marked:?}");
}

async fn unmark(app: &TestApp, source: SourceId) {
    let removed = app.delete(&format!("/sources/{source}/mark")).await;
    assert_eq!(removed.status, 204, "{removed:?}");
}

/// Everything in which a mark can be seen, by its path.
async fn everything(app: &TestApp, paths: &[String]) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for path in paths {
        all.insert(path.clone(), app.read(path).await);
    }
    all
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "every place where it shows, before, meanwhile and after")]
async fn what_rests_on_retracted_sources_alone_says_so_until_the_mark_is_removed() {
    let mut app = TestApp::start().await;
    app.work().await;
    let (one, other) = (say(&app, &[BOTH, ONLY]).await, say(&app, &[BOTH]).await);
    let ((both_no, both), (only_no, only)) = (fact(&app, BOTH).await, fact(&app, ONLY).await);
    let databases = app.service.api.app.databases();
    let mut tx = databases.begin("default", app.repository).await.unwrap();
    let concept = file_concept(&mut tx, app.repository, "Hive A", "Place").await.unwrap();
    link_facts(&mut tx, app.repository, concept, &[both_no, only_no]).await.unwrap();
    let apart = NewContradiction {
        facts: (both_no, only_no),
        difference: Difference::Name,
        cosine: 0.96,
        found_by: okt_model::ContradictionFoundBy::RefusedMerge,
    };
    fact_contradictions::insert(&mut tx, app.repository, &[apart]).await.unwrap();
    tx.commit().await.unwrap();
    for source in [one, other] {
        jobs::push(databases, app.repository, &IndexSource::of(source), When::default()).await;
    }
    let found = "/search?q=roof&mode=lexical&types=facts,sources&grouped=false".to_owned();
    eventually(Duration::from_mins(2), "both facts are found", async || {
        let rows = app.read(&found).await["data"].as_array().unwrap().len();
        if rows >= 2 { Ok(()) } else { Err(rows) }
    })
    .await;
    let paths = [
        format!("/sources/{one}?include="),
        "/sources".to_owned(),
        "/facts".to_owned(),
        format!("/facts/{both}"),
        format!("/facts/{only}"),
        format!("/sources/{one}/facts"),
        format!("/facts/{both}/group"),
        found.clone(),
        format!("/concepts/{concept}/facts"),
        format!("/concepts/{concept}/sources"),
        format!("/concepts/{concept}/timeline"),
        format!("/concepts/{concept}/summaries"),
        format!("/concepts/{concept}/definition"),
    ];
    let before = everything(&app, &paths).await;
    for (path, seen) in &before {
        let text = seen.to_string();
        assert!(!text.contains("\"retracted\":true") && !text.contains("\"superseded\":true"), "{path}");
    }

    retract(&app, one).await;
    let seen = everything(&app, &paths).await;
    let of = |path: &str| {
        let known = paths.iter().find(|known| *known == path);
        &seen[known.or_else(|| paths.iter().find(|known| known.starts_with(path))).unwrap()]
    };
    let retracted = |row: &Value| (row["retracted"].clone(), row["retracted_sources"].clone());
    assert_eq!(of(&format!("/sources/{one}?"))["mark"]["kind"], "retracted");
    let row = |path: &str, id: &str| {
        let rows = of(path)["data"].as_array().unwrap();
        let of_id = |row: &&Value| row["id"] == id || row["fact"]["id"] == id || row["source_id"] == id;
        rows.iter().find(of_id).unwrap_or_else(|| panic!("{id} in {path}: {rows:#?}")).clone()
    };
    assert_eq!(row("/sources", &one.to_string())["mark"]["origin"], "person");
    assert_eq!(row("/sources", &other.to_string())["mark"], Value::Null);
    let (kept, gone) = ((json!(false), json!(1)), (json!(true), json!(1)));
    for path in ["/facts", &format!("/sources/{one}/facts"), &format!("/concepts/{concept}/facts")] {
        assert_eq!(retracted(&row(path, &both.to_string())), kept, "{path}");
        assert_eq!(retracted(&row(path, &only.to_string())), gone, "{path}");
    }
    let dated = row(&format!("/concepts/{concept}/timeline"), &only.to_string());
    assert_eq!(retracted(&dated["fact"]), gone);
    let shown = of(&format!("/facts/{both}"));
    assert_eq!(retracted(shown), kept, "{shown:#}");
    assert_eq!(shown["candidate_contradictions"][0]["retracted"], true, "that side rests on nothing else");
    let marks: Vec<&Value> =
        shown["sources"].as_array().unwrap().iter().map(|source| &source["mark"]["kind"]).collect();
    assert_eq!(marks, [&json!("retracted"), &Value::Null]);
    let shown = of(&format!("/facts/{only}"));
    assert_eq!((retracted(shown), &shown["candidate_contradictions"][0]["retracted"]), (gone, &json!(false)));
    assert_eq!(row("/search", &both.to_string())["retracted"], false);
    assert_eq!(row("/search", &only.to_string())["retracted"], true);
    let of_concept = row(&format!("/concepts/{concept}/sources"), &one.to_string());
    assert_eq!(of_concept["mark"]["kind"], "retracted");
    let slice = &of(&format!("/concepts/{concept}/summaries"))["data"][0];
    let definition = of(&format!("/concepts/{concept}/definition"));
    for (text, was) in [(slice, &before[&paths[11]]["data"][0]), (definition, &before[&paths[12]])] {
        assert_eq!(text["retracted_facts"], json!([only]), "{text:#}");
        assert_eq!(text["content"], was["content"], "nothing is written anew");
    }

    retract(&app, other).await;
    let now = app.read(&format!("/facts/{both}")).await;
    assert_eq!(retracted(&now), (json!(true), json!(2)), "{now:#}");
    assert_eq!(app.read(&format!("/facts/{only}")).await["candidate_contradictions"][0]["retracted"], true);
    let rows = app.read(&found).await;
    for row in rows["data"].as_array().unwrap() {
        assert_eq!(row["retracted"], true, "facts and sources: {row:#}");
    }
    let slices = app.read(&paths[11]).await;
    assert_eq!(slices["data"][0]["retracted_facts"].as_array().unwrap().len(), 2, "{slices:#}");

    // Superseded is something else, and is counted by itself.
    let superseded =
        mark(&app, other, json!({"kind": "superseded", "by": one, "reason": " New data "})).await;
    assert_eq!(superseded.status, 200, "{superseded:?}");
    let superseded = superseded.json();
    assert_eq!((&superseded["by"], &superseded["reason"]), (&json!(one), &json!("New data")));
    let now = app.read(&format!("/facts/{both}")).await;
    assert_eq!(
        (retracted(&now), &now["superseded"], &now["superseded_sources"]),
        ((json!(false), json!(1)), &json!(false), &json!(1))
    );
    unmark(&app, one).await;
    unmark(&app, other).await;
    assert_eq!(everything(&app, &paths).await, before, "everything is back");
}

#[tokio::test]
async fn a_fact_rests_on_the_sources_of_its_duplicates_too() {
    let app = TestApp::start().await;
    let (one, other) = (say(&app, &[BOTH]).await, say(&app, &[ONLY]).await);
    let ((canonical, id), (duplicate, _)) = (fact(&app, BOTH).await, fact(&app, ONLY).await);
    let databases = app.service.api.app.databases();
    let mut tx = databases.begin("default", app.repository).await.unwrap();
    let merge = Merge { fact: duplicate, into: canonical, cosine: 0.97, by: MergedBy::Cosine };
    fact_merges::merge(&mut tx, app.repository, &[merge], JobId::mint()).await.unwrap();
    tx.commit().await.unwrap();
    for (source, expected) in [(one, vec![]), (other, vec![canonical, duplicate])] {
        retract(&app, source).await;
        let mut tx = databases.begin("default", app.repository).await.unwrap();
        let asked = [canonical, duplicate, canonical, -1];
        let found = source_marks::list_retracted_facts(&mut tx, app.repository, &asked).await.unwrap();
        tx.commit().await.unwrap();
        let mut found: Vec<i64> = found.into_iter().collect();
        found.sort_unstable();
        assert_eq!(found, expected);
        let seen = app.read(&format!("/facts/{id}")).await;
        assert_eq!(seen["retracted"], !expected.is_empty(), "{seen:#}");
        assert_eq!(seen["source_count"], 2);
    }
}

#[tokio::test]
async fn a_mark_is_set_by_who_may_and_makes_no_circle() {
    let app = TestApp::start().await;
    let mut ids = Vec::new();
    for number in 0..4 {
        ids.push(say(&app, &[&format!("Hive {number} is green.")]).await);
    }
    let [a, b, c, d] = ids[..] else { panic!("{ids:?}") };
    let viewer = register(&app.service, "viewer").await;
    give(&app.service, viewer.id, &app.repository.to_string(), "viewer").await;
    let path = format!("/sources/{a}/mark");
    let refused = app.send(&viewer, Method::PUT, &path, &json!({"kind": "retracted"})).await;
    assert_eq!(refused.status, 403, "{refused:?}");
    assert_eq!(app.delete_as(&viewer, &path).await.status, 403);
    let refused =
        app.put(&format!("/sources/{}/mark", SourceId::mint()), &json!({"kind": "retracted"})).await;
    assert_eq!(refused.status, 404, "{refused:?}");
    for body in [
        json!({"kind": "withdrawn"}),
        json!({}),
        json!({"kind": "retracted", "by": b}),
        json!({"kind": "superseded", "by": SourceId::mint()}),
        json!({"kind": "retracted", "reason": "x".repeat(1_001)}),
    ] {
        assert_eq!(mark(&app, a, body.clone()).await.status, 422, "{body}");
    }
    assert_eq!(app.delete(&path).await.status, 404, "nothing to remove");
    assert_eq!(app.count("SELECT count(*) FROM okt_repository.source_marks").await, 0);

    let by = |by: SourceId| json!({"kind": "superseded", "by": by});
    for (source, later, status) in
        [(a, a, 409), (a, b, 200), (b, c, 200), (c, a, 409), (c, b, 409), (c, d, 200)]
    {
        let answer = mark(&app, source, by(later)).await;
        assert_eq!(answer.status, status, "{source} by {later}: {answer:?}");
    }
    // Nor do two that come at once.
    unmark(&app, a).await;
    for source in [b, c] {
        unmark(&app, source).await;
    }
    let (one, other) = tokio::join!(mark(&app, a, by(b)), mark(&app, b, by(a)));
    let mut statuses = [one.status.as_u16(), other.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);

    // The mark outlives what supersedes the source, and goes with the source itself.
    assert_eq!(mark(&app, c, by(d)).await.status, 200);
    let again = mark(&app, c, by(d)).await;
    assert_eq!(again.status, 200, "as it was");
    assert_eq!(app.delete(&format!("/sources/{d}")).await.status, 204);
    let seen = app.read(&format!("/sources/{c}?include=")).await;
    assert_eq!(
        (&seen["mark"]["kind"], &seen["mark"]["by"]),
        (&json!("superseded"), &Value::Null),
        "{seen:#}"
    );
    assert_eq!(app.delete(&format!("/sources/{c}")).await.status, 204);
    let left = "SELECT count(*) FROM okt_repository.source_marks m
                 WHERE NOT EXISTS (SELECT FROM okt_repository.sources s WHERE s.no = m.source_no)";
    assert_eq!(app.count(left).await, 0);
    let told = app.read("/audit?action=source.marked").await;
    assert_eq!(told["data"].as_array().unwrap().len(), 5, "one for each that changed something: {told:#}");
    let told = app.read("/audit?action=source.mark_removed").await;
    assert_eq!(told["data"].as_array().unwrap().len(), 3, "{told:#}");
}

/// A source of this DOI; `named` if it was added by it, otherwise its document says so.
async fn paper(app: &TestApp, repository: RepositoryId, doi: &str, named: bool) -> SourceId {
    let id = SourceId::mint();
    let new = NewSource {
        locator: Some(id.to_string()),
        doi: named.then(|| doi.to_owned()),
        ..NewSource::new(id, JobId::mint(), format!("https://example.org/{id}"))
    };
    let mut tx = app.service.api.app.databases().begin("default", repository).await.unwrap();
    assert!(sources::insert(&mut tx, repository, &new).await.unwrap());
    tx.commit().await.unwrap();
    let said = sqlx::query("UPDATE okt_repository.sources SET doi = $2 WHERE id = $1");
    said.bind(id.uuid()).bind(doi).execute(&mut app.connect().await).await.unwrap();
    id
}

async fn send_list(app: &TestApp, list: &[u8], rest: &str) -> Answer {
    app.send_form(&format!("/sources/marks{rest}"), form(&[], "retractions.csv", "text/csv", list)).await
}

const HEAD: &str = "Record ID,Title,Subject,Institution,Journal,Publisher,Country,Author,URLS,ArticleType,RetractionDate,\
                    RetractionDOI,RetractionPubMedID,OriginalPaperDate,OriginalPaperDOI,OriginalPaperPubMedID,\
                    RetractionNature,Reason,Paywalled,Notes";

/// A row of the public list.
fn row(title: &str, date: &str, doi: &str, nature: &str) -> String {
    let reason = "+Concerns/Issues About Data;+Duplication of Image;";
    format!(
        "1,{title},(BLS) Biology;,\"Institute, of \"\"Bees\"\"\",J,P,Sweden,A;B,,Research Article;,{date},10.1000/NOTICE,0,\
         1/1/2001 0:00,{doi},0,{nature},{reason},No,\"a note,\r\nin two lines\"\r\n"
    )
}

#[tokio::test]
async fn a_list_of_retractions_marks_the_sources_that_it_names() {
    let app = TestApp::start().await;
    let mine = app.repository;
    let mut ids = BTreeMap::new();
    for name in ["a", "b", "c", "d", "e", "f", "h"] {
        ids.insert(name, paper(&app, mine, &format!("10.1000/{name}"), true).await);
    }
    ids.insert("g", paper(&app, mine, "10.1000/g", false).await);
    let strangers = repository(&app.service).await;
    paper(&app, strangers, "10.1000/a", true).await;
    assert_eq!(mark(&app, ids["e"], json!({"kind": "superseded", "by": ids["a"]})).await.status, 200);
    retract(&app, ids["f"]).await;
    unmark(&app, ids["f"]).await;
    retract(&app, ids["h"]).await;

    let list = [
        format!("\u{feff}{HEAD}\r\n"),
        row("\"Bees, and more\"", "4/29/2014 0:00", "https://doi.org/10.1000/A", "Retraction"),
        row("Bees", "5/29/2014 0:00", "10.1000/a", "Retraction"),
        row("Concern", "1/1/2015 0:00", "10.1000/b", "Expression of concern"),
        row("Mended", "1/1/2015 0:00", "10.1000/b", "Correction"),
        row("Who knows", "1/1/2015 0:00", "10.1000/b", "Something else"),
        row("Taken back", "1/1/2015 0:00", "10.1000/c", "Retraction"),
        row("Taken back", "1/1/2016 0:00", "10.1000/c", "Reinstatement"),
        row("Again", "1/1/2017 0:00", "10.1000/d", "Retraction"),
        row("Again", "1/1/2016 0:00", "10.1000/d", "Reinstatement"),
        "too,few\r\n".to_owned(),
        row("No name", "1/1/2016 0:00", "unavailable", "Retraction"),
        row("Elsewhere", "1/1/2016 0:00", "10.1000/elsewhere", "Retraction"),
        row("A person knows", "1/1/2016 0:00", "10.1000/e", "Retraction"),
        row("A person knows", "1/1/2016 0:00", "10.1000/f", "Retraction"),
        row("By its document", "1/1/2016 0:00", "10.1000/g", "Retraction"),
        row("Known", "1/1/2016 0:00", "10.1000/h", "Retraction"),
    ]
    .concat();
    let rows = "SELECT count(*) FROM okt_repository.source_marks";
    let before = app.count(rows).await;
    let skipped = json!({
        "bad_row": 1, "no_doi": 1, "not_in_repository": 1, "duplicate": 1, "expression_of_concern": 1,
        "correction": 1, "reinstatement": 2, "other_nature": 1, "reinstated": 1, "decided_by_person": 2,
    });
    let counts = |seen: &Value| {
        ["dry_run", "rows", "matched", "marked", "already_marked"].map(|name| seen[name].clone())
    };
    let dry = send_list(&app, list.as_bytes(), "?dry_run=true").await;
    assert_eq!(dry.status, 200, "{dry:?}");
    let dry = dry.json();
    assert_eq!(counts(&dry), [json!(true), json!(16), json!(7), json!(3), json!(1)], "{dry:#}");
    assert_eq!(dry["skipped"], skipped);
    assert_eq!(app.count(rows).await, before, "a dry run writes nothing");
    assert_eq!(app.read(&format!("/sources/{}?include=", ids["a"])).await["mark"], Value::Null);

    let done = send_list(&app, list.as_bytes(), "").await;
    assert_eq!(done.status, 200, "{done:?}");
    let done = done.json();
    assert_eq!(counts(&done), [json!(false), json!(16), json!(7), json!(3), json!(1)], "{done:#}");
    assert_eq!((&done["skipped"], &done["data"]), (&skipped, &dry["data"]), "as it was said");
    let mut marked: Vec<&str> =
        done["data"].as_array().unwrap().iter().map(|row| row["doi"].as_str().unwrap()).collect();
    marked.sort_unstable();
    assert_eq!(marked, ["10.1000/a", "10.1000/d", "10.1000/g"]);
    let seen = app.read(&format!("/sources/{}?include=", ids["a"])).await["mark"].clone();
    assert_eq!((&seen["kind"], &seen["origin"]), (&json!("retracted"), &json!("list")));
    assert_eq!(seen["user_id"], json!(app.owner.id));
    assert_eq!(
        seen["reason"], "Concerns/Issues About Data; Duplication of Image (2014-05-29, 10.1000/notice)",
        "the later notice"
    );
    let kept = app.read(&format!("/sources/{}?include=", ids["e"])).await["mark"].clone();
    assert_eq!((&kept["kind"], &kept["origin"]), (&json!("superseded"), &json!("person")), "{kept:#}");
    assert_eq!(app.read(&format!("/sources/{}?include=", ids["f"])).await["mark"], Value::Null);
    let theirs = format!("{rows} WHERE repository_id = '{strangers}'");
    assert_eq!(app.count(&theirs).await, 0, "another tenant's source of the same DOI");
    let told = app.read("/audit?action=source.marks_imported").await;
    assert_eq!(told["data"].as_array().unwrap().len(), 1, "{told:#}");

    // The same again changes nothing; who removes a mark of a list has the last word.
    unmark(&app, ids["a"]).await;
    let again = send_list(&app, list.as_bytes(), "").await.json();
    assert_eq!(counts(&again), [json!(false), json!(16), json!(7), json!(0), json!(3)], "{again:#}");
    assert_eq!(again["skipped"]["decided_by_person"], 3);
    assert_eq!(app.read(&format!("/sources/{}?include=", ids["a"])).await["mark"], Value::Null);
    let databases = app.service.api.app.databases();
    let mut tx = databases.begin("default", mine).await.unwrap();
    let numbers: Vec<(i64, Option<String>)> =
        source_marks::match_dois(&mut tx, mine, &["10.1000/a".to_owned(), "10.1000/e".to_owned()])
            .await
            .unwrap()
            .into_iter()
            .map(|found| (found.no, None))
            .collect();
    assert_eq!(numbers.len(), 2);
    let marked = source_marks::insert_retracted(&mut tx, mine, &numbers, MarkOrigin::Provider, None).await;
    assert_eq!(marked.unwrap(), [0_i64; 0], "nor does a provider overwrite what a person said");
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn what_is_no_list_of_retractions_is_refused() {
    let app = TestApp::start().await;
    paper(&app, app.repository, "10.1000/a", true).await;
    for list in ["", "Title,Author\r\nBees,Ada\r\n", "%PDF-1.7"] {
        let answer = send_list(&app, list.as_bytes(), "").await;
        assert_eq!(answer.status, 422, "{list:?}: {answer:?}");
    }
    let many = format!("doi\n{}", "10.1000/a\n".repeat(200_001));
    assert_eq!(send_list(&app, many.as_bytes(), "").await.status, 422);
    let titled = form(&[("title", "Bees")], "a.csv", "text/csv", b"doi\n10.1000/a\n");
    assert_eq!(app.send_form("/sources/marks", titled).await.status, 422);
    assert_eq!(app.count("SELECT count(*) FROM okt_repository.source_marks").await, 0);

    let viewer = register(&app.service, "viewer").await;
    give(&app.service, viewer.id, &app.repository.to_string(), "viewer").await;
    let path = app.path("/sources/marks");
    let list = form(&[], "a.csv", "text/csv", b"doi\n10.1000/a\n");
    let request = app.service.request(Method::POST, &path).bearer_auth(&viewer.token);
    let refused = Answer::of(request.header("content-type", CONTENT_TYPE).body(list.clone())).await;
    assert_eq!(refused.status, 403, "{refused:?}");
    let marked = app.send_form("/sources/marks", list).await;
    assert_eq!((marked.status.as_u16(), &marked.json()["marked"]), (200, &json!(1)), "a list of DOIs alone");
}
