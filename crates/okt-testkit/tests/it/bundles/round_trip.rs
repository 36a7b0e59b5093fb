//! From one instance to another and back.

use okt_app::Origin;
use okt_interchange::bundle::OwnedRow;
use okt_jobs::spaces;
use okt_model::{BlobHash, SourceFile};
use okt_store::{Blobs, Databases, Purpose};
use okt_testkit::app::{MODEL, TestApp, count};
use okt_testkit::jobs::tools;
use okt_testkit::llm::Behaviour;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{app, asked, builder, export, fill, image, import, opened, rows, try_import};
use crate::bundles::download;

#[tokio::test]
async fn a_graph_has_one_hash_wherever_it_is() {
    let (one, other) = (app(true).await, app(true).await);
    fill(&one).await;
    let (output, bundle) = export(&one, json!({"include_bodies": true})).await;
    let hash = output["sha256"].as_str().unwrap().to_owned();
    let (metadata, _) = opened(&bundle);
    assert_eq!(metadata.sha256, hash);
    assert!(metadata.fact_count >= 6 && metadata.concept_count >= 2, "{metadata:?}");
    assert!(metadata.summary_count > 0 && metadata.synthesis_count > 0, "{metadata:?}");
    assert_eq!((metadata.report_count, metadata.investigation_count), (2, 1));
    assert!(!metadata.embedding_model.is_empty());
    // With or without files.
    let (without, small) = export(&one, json!({"include_images": false})).await;
    assert_eq!(without["sha256"], hash.as_str());
    assert!(small.len() < bundle.len());

    let before = asked(&other).await;
    let taken = import(&other, &bundle).await;
    assert_eq!(taken["sha256"], hash.as_str());
    assert_eq!(taken["rows"]["facts"]["added"], metadata.fact_count, "{taken:#}");
    assert_eq!(taken["rows"]["citations_lost"], 0, "{taken:#}");
    assert_eq!(taken["vectors"]["used"], true, "{taken:#}");
    other.quiet().await;
    assert_eq!(asked(&other).await, before, "nobody is asked for anything");
    let (again, _) = export(&other, json!({"include_bodies": true})).await;
    if again["sha256"] != hash.as_str() {
        let (_, there) = export(&other, json!({"include_bodies": true})).await;
        differ(&bundle, &there);
    }
    assert_eq!(again["sha256"], hash.as_str());
    let kept = |table: &str| format!("SELECT count(*) FROM okt_repository.{table}");
    for table in ["source_images WHERE sha256 IS NOT NULL", "sources WHERE body_sha256 IS NOT NULL"] {
        assert_eq!(other.count(&kept(table)).await, one.count(&kept(table)).await, "{table}");
    }
    let all = "facts WHERE embedded_in IS NOT NULL";
    assert_eq!(other.count(&kept(all)).await, one.count(&kept(all)).await);
    // Once more adds nothing.
    let there = rows(&other).await;
    let again = import(&other, &bundle).await;
    assert_eq!(rows(&other).await, there);
    assert_eq!(again["rows"]["facts"]["added"], 0, "{again:#}");
    other.quiet().await;
    assert_eq!(asked(&other).await, before);
}

/// Says where two bundles differ.
#[expect(clippy::print_stdout, reason = "it says why a test fails")]
fn differ(one: &[u8], other: &[u8]) {
    let ((one_says, one), (other_says, other)) = (opened(one), opened(other));
    if one_says.source_count != other_says.source_count || one.len() != other.len() {
        println!("{one_says:?}\n{other_says:?}\n{} and {} rows", one.len(), other.len());
    }
    let mut shown = 0;
    for (one, other) in one.iter().zip(&other) {
        let (one, other) = (format!("{one:?}"), format!("{other:?}"));
        let ids = |text: &str| -> String {
            let parts = text.split('"').map(|part| if part.len() == 36 { "id" } else { part });
            parts.collect::<Vec<_>>().join("\"")
        };
        if ids(&one) != ids(&other) && shown < 20 {
            shown += 1;
            println!("- {one:.1500}\n+ {other:.1500}");
        }
    }
}

#[tokio::test]
async fn a_graph_without_files_and_vectors_has_the_same_hash() {
    let (one, other) = (app(false).await, app(false).await);
    fill(&one).await;
    let (output, bundle) = export(&one, json!({"include_images": false})).await;
    assert!(opened(&bundle).0.embedding_model.is_empty());
    let before = asked(&other).await;
    import(&other, &bundle).await;
    other.quiet().await;
    assert_eq!(asked(&other).await, before);
    let (again, there) = export(&other, json!({})).await;
    if again["sha256"] != output["sha256"] {
        differ(&bundle, &there);
    }
    assert_eq!(again["sha256"], output["sha256"]);
    // The original is known of, and not there.
    assert_eq!(
        other.count("SELECT count(*) FROM okt_repository.sources WHERE body_sha256 IS NOT NULL").await,
        0
    );
    assert_eq!(other.count("SELECT count(*) FROM okt_repository.sources WHERE stated_body").await, 2);
    let facts = other.read("/facts?limit=200").await;
    let id = facts["data"][0]["id"].as_str().unwrap();
    let fact = other.read(&format!("/facts/{id}")).await;
    assert!(!fact["sources"][0]["sentences"].as_array().is_none_or(Vec::is_empty), "{fact:#}");
}

#[tokio::test]
async fn what_is_there_already_is_kept() {
    let (one, other) = (app(false).await, app(false).await);
    fill(&one).await;
    let source = other.add_text("mites.txt", super::OTHER).await;
    other.settled(&source).await;
    other.quiet().await;
    let (there, before) = (rows(&other).await, asked(&other).await);
    let (_, bundle) = export(&one, json!({"include_bodies": true})).await;
    let said = try_import(&other, &bundle, true).await;
    assert_eq!(said["state"], "completed", "{said:#}");
    assert_eq!(rows(&other).await, there, "a dry run changes nothing");
    let taken = import(&other, &bundle).await;
    assert_eq!(said["output"]["rows"], taken["rows"], "the dry run told what would come");
    assert_eq!(taken["rows"]["sources"], json!({"added": 1, "linked": 1}), "{taken:#}");
    let (all, now) = (rows(&one).await, rows(&other).await);
    for table in [
        "sources",
        "facts",
        "fact_sources",
        "concepts",
        "fact_concepts",
        "relation_facts",
        "concept_relations",
    ] {
        assert_eq!(now[table], all[table], "{table}");
    }
    other.quiet().await;
    assert_eq!(asked(&other).await, before);
    let counted = "SELECT count(*) FROM okt_repository.facts f
                    WHERE f.merged_into IS NULL
                      AND f.source_count <> (SELECT count(DISTINCT l.source_no) FROM okt_repository.fact_sources l
                                               JOIN okt_repository.facts m ON m.no = l.fact_no
                                              WHERE m.no = f.no OR m.merged_into = f.no)";
    assert_eq!(other.count(counted).await, 0);
    let seen = other.get("/").await;
    assert_eq!(seen.json()["counts"]["sources"], 2, "{seen:?}");
}

#[tokio::test]
async fn a_bundle_is_fetched_in_parts_and_by_those_who_may() {
    let app = app(false).await;
    let asked = app.post("/export-graph", &json!({"destination": "file"})).await;
    let job = asked.json()["job_id"].as_str().unwrap().to_owned();
    assert_eq!(app.ended(&job).await["state"], "completed");
    let path = format!("/export-graph/{job}/file");
    let (status, whole) = download(&app, &path, None).await;
    assert_eq!(status, 200);
    let (status, part) = download(&app, &path, Some("bytes=2-9")).await;
    assert_eq!((status, part.as_slice()), (206, &whole[2..10]));
    assert_eq!(download(&app, &path, Some("bytes=99999999-")).await.0, 416);
    let nobody = okt_model::JobId::mint();
    assert_eq!(download(&app, &format!("/export-graph/{nobody}/file"), None).await.0, 404);
    let registry = app.post("/export-graph", &json!({"destination": "registry"})).await;
    assert_eq!((registry.status.as_u16(), registry.problem().as_str()), (503, "not_configured"));
    let registry = app.post("/import-graph", &json!({"registry_graph_id": "x"})).await;
    assert_eq!((registry.status.as_u16(), registry.problem().as_str()), (503, "not_configured"));
    let both = app.post("/import-graph", &json!({})).await;
    assert_eq!(both.status, 422, "{both:?}");
    let unknown = app.post("/import-graph", &json!({"upload_id": nobody.to_string()})).await;
    assert_eq!(unknown.status, 422, "{unknown:?}");
    // The name of a repository is that of its bundle.
    assert_eq!(opened(&whole).0.name, "Bees");
}

#[tokio::test]
async fn contradictions_come_along_with_what_was_said_of_them() {
    let (one, other) = (app(false).await, app(false).await);
    fill(&one).await;
    one.sql(
        "INSERT INTO okt_repository.fact_contradictions
                (repository_id, fact_no, other_no, difference, cosine, found_by, judged_by, confidence)
         SELECT repository_id, min(no), max(no), 'number', 0.91, 'posture', 'a-model', 0.8
           FROM okt_repository.facts WHERE merged_into IS NULL GROUP BY repository_id",
    )
    .await;
    let open = one.read("/contradictions").await;
    let pairs: Vec<_> = open["data"].as_array().unwrap().iter().map(|pair| pair["id"].clone()).collect();
    assert!(!pairs.is_empty());
    let said = json!({"state": "scope_differs", "note": "The second count is of 2019"});
    let put = one.put(&format!("/contradictions/{}", pairs[0].as_str().unwrap()), &said).await;
    assert_eq!(put.status, 200, "{put:?}");
    let (_, bundle) = export(&one, json!({})).await;
    import(&other, &bundle).await;
    other.quiet().await;
    let told = async |app: &TestApp, state: &str| {
        let listed = app.read(&format!("/contradictions?state={state}")).await;
        let told = |pair: &Value| {
            let mut facts = [0, 1].map(|side| pair["facts"][side]["fact_text"].to_string());
            facts.sort();
            json!([
                pair["state"],
                pair["note"],
                pair["difference"],
                pair["cosine"],
                pair["found_by"],
                pair["judged_by"],
                pair["confidence"],
                facts
            ])
            .to_string()
        };
        let mut rows: Vec<_> = listed["data"].as_array().unwrap().iter().map(told).collect();
        rows.sort();
        rows
    };
    for state in ["open", "scope_differs"] {
        assert_eq!(told(&other, state).await, told(&one, state).await, "{state}");
    }
    let theirs = &other.read("/contradictions?state=scope_differs").await["data"][0];
    assert_eq!((&theirs["note"], &theirs["user_id"]), (&said["note"], &Value::Null));
    // What people say here holds, also when the bundle comes again.
    let id = theirs["id"].as_str().unwrap();
    let put = other.put(&format!("/contradictions/{id}"), &json!({"state": "real"})).await;
    assert_eq!(put.status, 200, "{put:?}");
    import(&other, &bundle).await;
    assert_eq!(other.read("/contradictions?state=real").await["data"][0]["id"], id);
    assert_eq!(other.read("/contradictions?state=scope_differs").await["data"], json!([]));
}

#[tokio::test]
async fn what_was_retracted_is_retracted_here_too() {
    let (one, other) = (app(false).await, app(false).await);
    fill(&one).await;
    // By the titles of the reports.
    let stand = async |app: &TestApp| {
        let mut rows = Vec::new();
        for report in app.read("/reports").await["data"].as_array().unwrap() {
            let health = app.read(&format!("/reports/{}/health", report["id"].as_str().unwrap())).await;
            assert_eq!(
                (&health["status"], &health["counts"]["waiting"]),
                (&json!("annotated"), &json!(0)),
                "{health:#}"
            );
            rows.push((report["title"].to_string(), health["counts"].to_string()));
        }
        rows.sort();
        rows
    };
    // Both sources say so, and only one is retracted.
    let held = "Varroa mites killed 40 percent of all honey bee colonies in Norway in 2006.";
    let report = one.post("/reports", &json!({"title": "Colonies", "body_markdown": held})).await;
    assert_eq!(report.status, 201, "{report:?}");
    one.quiet().await;
    let before = stand(&one).await;
    let claim = "Honey bees find the way back to their hive by the position of the sun.";
    let found = one.post("/evidence", &json!({ "claim": claim })).await.json();
    let source = found["facts"][0]["sources"][0]["id"].as_str().unwrap().to_owned();
    let mark = json!({"kind": "retracted", "reason": "It was made up"});
    let marked = one.put(&format!("/sources/{source}/mark"), &mark).await;
    assert!(marked.status.is_success(), "{marked:?}");
    one.quiet().await;
    let after = stand(&one).await;
    assert_ne!(before, after, "a sentence rests on it alone");
    let (output, bundle) = export(&one, json!({})).await;
    import(&other, &bundle).await;
    for (text, state) in [(held, "supported"), (claim, "unsupported")] {
        let stands = format!(
            "SELECT count(*) FROM okt_repository.report_sentences WHERE text = '{text}' AND state = '{state}'"
        );
        for app in [&one, &other] {
            assert_eq!(app.count(&stands).await, 1, "{text}");
        }
    }
    other.quiet().await;
    assert_eq!(stand(&other).await, after);
    let kept = "SELECT count(*) FROM okt_repository.source_marks
                 WHERE kind = 'retracted' AND reason = 'It was made up' AND origin = 'list' AND person IS NULL";
    assert_eq!(other.count(kept).await, 1, "it is nothing that a person said here");
    let found = other.post("/evidence", &json!({ "claim": claim })).await.json();
    assert_eq!(found["facts"][0]["retracted"], true, "{found:#}");
    // It is no part of the hash, and is taken on.
    let (again, there) = export(&other, json!({})).await;
    assert_eq!(again["sha256"], output["sha256"]);
    let marks = |bundle: &[u8]| {
        let rows = opened(bundle).1.into_iter();
        let marks = rows.filter_map(|row| match row {
            OwnedRow::Curation(row) if row.kind == "marked_source" => {
                Some((row.source_idx, row.text, row.note))
            }
            _ => None,
        });
        marks.collect::<Vec<_>>()
    };
    assert_eq!(marks(&there), marks(&bundle));
    assert_eq!(marks(&bundle).len(), 1);
    // What was taken back here stays so, also when the bundle comes again.
    let here = found["facts"][0]["sources"][0]["id"].as_str().unwrap();
    assert!(other.delete(&format!("/sources/{here}/mark")).await.status.is_success());
    import(&other, &bundle).await;
    assert_eq!(other.count(kept).await, 0);
}

#[tokio::test]
async fn a_picture_of_two_sources_is_stored_for_each() {
    let (one, other) = (app(false).await, app(false).await);
    for (name, text) in [("bees.txt", super::TEXT), ("mites.txt", super::OTHER)] {
        let source = one.add_text(name, text).await;
        one.settled(&source).await;
        image(&one, &source).await;
    }
    one.quiet().await;
    let (_, bundle) = export(&one, json!({})).await;
    import(&other, &bundle).await;
    let blobs = Blobs::open(&other.service.api.app.config().providers.storage).unwrap();
    let files: Vec<(Uuid, Vec<u8>)> =
        sqlx::query_as("SELECT source_id, sha256 FROM okt_repository.source_images")
            .fetch_all(&mut other.connect().await)
            .await
            .unwrap();
    assert_eq!(files.len(), 2);
    for (source, hash) in files {
        let hash = BlobHash(hash.try_into().unwrap());
        let file = SourceFile { repository: other.repository, source: source.into(), hash };
        assert!(blobs.read(file, None).await.unwrap().is_some(), "{file:?}");
    }
}

#[tokio::test]
async fn the_hash_stays_when_facts_are_embedded_by_another_model() {
    let catalogue = "input_cost_per_1m = 1.0\noutput_cost_per_1m = 2.0\npassage_prefix = \"passage: \"";
    let mut one = builder(false)
        .models(Behaviour { dimensions: 64, ..Behaviour::default() }, catalogue)
        .settings(&[
            ("SVC__PROVIDERS__EMBEDDING__MODEL", MODEL),
            ("SVC__PROVIDERS__EMBEDDING__DIMENSIONS", "64"),
        ])
        .start()
        .await;
    one.work().await;
    fill(&one).await;
    let (before, bundle) = export(&one, json!({})).await;
    assert_eq!(opened(&bundle).0.embedding_dimensions, 64);
    one.rest();
    let mut changed = one.service.api.app.config().clone();
    changed.providers.ai.models[0].passage_prefix = "text: ".to_owned();
    let databases = Databases::open(&changed, &[Purpose::Worker]).await.unwrap().remove(0);
    let tools = tools(&changed, &databases).await;
    assert!(spaces::reembed(&databases, &tools, |_, _| ()).await.unwrap().changed);
    one.work_as(&changed).await;
    one.quiet().await;
    let (after, bundle) = export(&one, json!({})).await;
    assert_eq!(after["sha256"], before["sha256"]);
    // Where another model is used, facts are embedded anew.
    let other = app(true).await;
    let taken = import(&other, &bundle).await;
    assert_eq!(taken["vectors"]["used"], false, "{taken:#}");
    assert_eq!(taken["sha256"], before["sha256"]);
    other.quiet().await;
    let bare =
        "SELECT count(*) FROM okt_repository.facts WHERE embedded_in IS NULL AND status IN ('new', 'stable')";
    assert_eq!(other.count(bare).await, 0);
}

#[tokio::test]
async fn the_hash_stays_when_the_repository_moves_to_another_database() {
    let mut app = builder(false).second_database().start().await;
    app.work().await;
    fill(&app).await;
    let (before, bundle) = export(&app, json!({"include_bodies": true})).await;
    let id = app.repository.to_string();
    let moved = app.service.api.app.move_repository(&Origin::service("test"), &id, "second").await.unwrap();
    assert_eq!(moved.from, "default");
    let facts = "SELECT count(*) FROM okt_repository.facts";
    assert!(count(&mut app.second().connect().await, facts).await > 0);
    let (after, _) = export(&app, json!({"include_bodies": true})).await;
    assert_eq!(after["sha256"], before["sha256"]);
    let again = import(&app, &bundle).await;
    assert_eq!(again["rows"]["facts"]["added"], 0, "{again:#}");
    assert_eq!(again["rows"]["sources"]["added"], 0, "{again:#}");
}

#[tokio::test]
async fn pages_and_the_places_of_sentences_come_along() {
    const PDF: &[u8] = include_bytes!("../../../../../docs/sample/tides.pdf");
    let (one, other) = (app(false).await, app(false).await);
    let added = one.upload("tides.pdf", "application/pdf", PDF).await;
    assert_eq!(added.status, 202, "{added:?}");
    let source = added.json()["source_id"].as_str().unwrap().to_owned();
    assert_eq!(one.settled(&source).await["status"], "processed");
    one.quiet().await;
    let (output, bundle) = export(&one, json!({"include_bodies": true})).await;
    import(&other, &bundle).await;
    other.quiet().await;
    let texts = async |app: &TestApp| -> Vec<(String, Vec<i32>, Option<String>, String)> {
        sqlx::query_as("SELECT text, sentences, boxes, pages FROM okt_repository.source_texts")
            .fetch_all(&mut app.connect().await)
            .await
            .unwrap()
    };
    let (here, there) = (texts(&one).await, texts(&other).await);
    assert_eq!(here, there);
    let [(_, sentences, boxes, pages)] = here.as_slice() else { panic!("{} texts", here.len()) };
    assert!(!sentences.is_empty() && boxes.is_some() && pages != "[]", "{pages}");
    let (again, _) = export(&other, json!({"include_bodies": true})).await;
    assert_eq!(again["sha256"], output["sha256"]);
}

#[tokio::test]
async fn a_job_says_how_many_bytes_it_wrote_and_rows_it_took_in() {
    let (one, other) = (app(true).await, app(false).await);
    fill(&one).await;
    let asked = one.post("/export-graph", &json!({"name": "Bees", "destination": "file"})).await.json();
    let job = asked["job_id"].as_str().unwrap();
    let ended = one.ended(job).await;
    let (_, bundle) = download(&one, &format!("/export-graph/{job}/file"), None).await;
    let progress = &ended["progress"];
    assert_eq!((&progress["stage"], &progress["done"]), (&json!("bytes"), &json!(bundle.len())), "{ended:#}");
    // Images and vectors are no rows.
    let rows = json!(opened(&bundle).1.len());
    let ended = try_import(&other, &bundle, false).await;
    assert_eq!(ended["state"], "completed", "{ended:#}");
    let progress = &ended["progress"];
    assert_eq!(
        (&progress["stage"], &progress["done"], &progress["total"]),
        (&json!("rows"), &rows, &rows),
        "{ended:#}"
    );
}
