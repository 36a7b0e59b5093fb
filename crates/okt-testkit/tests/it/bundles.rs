//! Graph Bundles: a repository as one file, and such a file as a part of a repository.

mod backup;
mod cancelled;
mod command;
mod crashes;
mod hostile;
mod kills;
mod python;
mod round_trip;

use std::collections::BTreeMap;

use http::Method;
use okt_interchange::bundle::{Limits, Metadata, OwnedRow, Row, read};
use okt_model::{ImageId, RefreshConceptRelations};
use okt_store::blobs::Blobs;
use okt_store::outbox::When;
use okt_testkit::app::{MODEL, TestApp, TestAppBuilder};
use okt_testkit::jobs;
use okt_testkit::llm::Behaviour;
use okt_testkit::multipart::form;
use serde_json::{Value, json};
use uuid::Uuid;

const TEXT: &str = "Honey bees find the way back to their hive by the position of the sun. \
    Varroa mites killed 40 percent of all honey bee colonies in Norway in 2006. \
    The Norwegian Beekeepers Association counted 52,000 hives in Norway in 2006. \
    Oxalic acid kills Varroa mites on adult honey bees in winter.";
const OTHER: &str = "Varroa mites killed 40 percent of all honey bee colonies in Norway in 2006. \
    Oslo Hive Institute counted 52,000 colonies in Norway in 2019. \
    The Norwegian Beekeepers Association was founded in 1884.";

/// With concepts by rule, summaries and definitions by a model that counts, and perhaps vectors.
async fn app(vectors: bool) -> TestApp {
    let mut app = builder(vectors).start().await;
    app.work().await;
    app
}

fn builder<'a>(vectors: bool) -> TestAppBuilder<'a> {
    let catalogue = "input_cost_per_1m = 1.0\noutput_cost_per_1m = 2.0";
    let builder = TestApp::builder().models(Behaviour::default(), catalogue).settings(&[
        ("SVC__PROVIDERS__DECOMPOSITION__FACT_EXTRACTION__MODEL", "builtin-extractive-1"),
        ("SVC__PROVIDERS__DECOMPOSITION__CONCEPT_EXTRACTION__MODEL", "builtin-concepts-1"),
        ("SVC__PROVIDERS__SUMMARIZATION__ENABLED", "true"),
        ("SVC__PROVIDERS__SUMMARIZATION__MODEL", MODEL),
        ("SVC__PROVIDERS__SYNTHESIS__MODEL", MODEL),
        ("SVC__CONCEPTS__MIN_CONCEPT_FACT_COUNT", "2"),
    ]);
    if vectors { builder.vectors() } else { builder }
}

/// Two sources, what was made of them, an image, an investigation, and a report with a part.
async fn fill(app: &TestApp) {
    let one = app.add_text("bees.txt", TEXT).await;
    let other = app.add_text("mites.txt", OTHER).await;
    for source in [&one, &other] {
        assert_eq!(app.settled(source).await["status"], "processed");
    }
    let made = app.post("/investigations", &json!({"title": "Mites", "topic": "Why colonies die"})).await;
    assert_eq!(made.status, 201, "{made:?}");
    let investigation = made.json()["id"].as_str().unwrap().to_owned();
    let linked =
        app.post(&format!("/investigations/{investigation}/sources"), &json!({"source_id": one})).await;
    assert!(linked.status.is_success(), "{linked:?}");
    let body = "# Bees\n\nHoney bees find the way back to their hive by the position of the sun. \
                Varroa mites killed 70 percent of all honey bee colonies in Norway in 2006.";
    let report = app.post("/reports", &json!({"title": "Bees in Norway", "body_markdown": body})).await;
    assert_eq!(report.status, 201, "{report:?}");
    let report = report.json()["id"].as_str().unwrap().to_owned();
    let part = json!({"title": "Mites", "body_markdown": "Oxalic acid kills mites.", "parent_id": report});
    assert_eq!(app.post("/reports", &part).await.status, 201);
    image(app, &one).await;
    let databases = app.service.api.app.databases();
    jobs::push(databases, app.repository, &RefreshConceptRelations {}, When::default()).await;
    app.quiet().await;
}

/// An image of a source, on which a fact rests.
async fn image(app: &TestApp, source: &str) {
    let source: Uuid = source.parse().unwrap();
    let blobs = Blobs::open(&app.service.api.app.config().providers.storage).unwrap();
    let mut incoming = blobs.begin(app.repository, source.into());
    incoming.write(b"\x89PNG and so on, 27 bytes".to_vec().into()).await.unwrap();
    let blob = incoming.finish().await.unwrap();
    let (id, hash, size, repository) = (ImageId::mint(), blob.hash, blob.size, app.repository);
    app.sql(&format!(
        "INSERT INTO okt_repository.source_images
                (repository_id, source_id, id, kind, position, url, width, height, alt_text, content_type, sha256, size)
         VALUES ('{repository}', '{source}', '{id}', 'inline', 0, 'https://example.org/bee.png', 4, 3, 'A bee', 'image/png',
                 decode('{hash}', 'hex'), {size})"
    ))
    .await;
    app.sql(&format!(
        "UPDATE okt_repository.fact_sources l SET image_id = '{id}'
           FROM okt_repository.sources s
          WHERE s.id = '{source}' AND l.source_no = s.no
            AND l.fact_no = (SELECT min(o.fact_no) FROM okt_repository.fact_sources o WHERE o.source_no = s.no)"
    ))
    .await;
}

/// What the export job says, and the file.
async fn export(app: &TestApp, options: Value) -> (Value, Vec<u8>) {
    let mut body = json!({"name": "Bees", "destination": "file"});
    body.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
    let asked = app.post("/export-graph", &body).await;
    assert_eq!(asked.status, 202, "{asked:?}");
    let job = asked.json()["job_id"].as_str().unwrap().to_owned();
    let ended = app.ended(&job).await;
    assert_eq!(ended["state"], "completed", "{ended:#}");
    let file = download(app, &format!("/export-graph/{job}/file"), None).await;
    assert_eq!(file.0, 200);
    (ended["output"].clone(), file.1)
}

async fn download(app: &TestApp, rest: &str, range: Option<&str>) -> (u16, Vec<u8>) {
    let request = app.service.request(Method::GET, &app.path(rest)).bearer_auth(&app.owner.token);
    let request = if let Some(range) = range { request.header("range", range) } else { request };
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.bytes().await.unwrap().to_vec())
}

/// The id of an upload.
async fn upload(app: &TestApp, bundle: &[u8]) -> String {
    let sent =
        app.send_form("/graph-uploads", form(&[], "bees.okt.json.gz", "application/gzip", bundle)).await;
    assert_eq!(sent.status, 201, "{sent:?}");
    sent.json()["upload_id"].as_str().unwrap().to_owned()
}

/// The import job as it ended.
async fn try_import(app: &TestApp, bundle: &[u8], dry_run: bool) -> Value {
    let upload = upload(app, bundle).await;
    let asked = app.post("/import-graph", &json!({"upload_id": upload, "dry_run": dry_run})).await;
    assert_eq!(asked.status, 202, "{asked:?}");
    app.ended(asked.json()["job_id"].as_str().unwrap()).await
}

/// What the import job says.
async fn import(app: &TestApp, bundle: &[u8]) -> Value {
    let ended = try_import(app, bundle, false).await;
    assert_eq!(ended["state"], "completed", "{ended:#}");
    ended["output"].clone()
}

/// Rows of the tables that a bundle is about.
async fn rows(app: &TestApp) -> BTreeMap<&'static str, i64> {
    let mut rows = BTreeMap::new();
    for table in [
        "sources",
        "source_texts",
        "source_images",
        "facts",
        "fact_sources",
        "fact_merges",
        "concepts",
        "concept_words",
        "concept_aliases",
        "fact_concepts",
        "relation_facts",
        "concept_relations",
        "concept_summaries",
        "summary_facts",
        "concept_syntheses",
        "investigations",
        "investigation_sources",
        "reports",
        "report_sentences",
        "report_annotations",
        "report_words",
        "contexts",
    ] {
        rows.insert(table, app.count(&format!("SELECT count(*) FROM okt_repository.{table}")).await);
    }
    rows
}

/// Calls of models that were paid for, and requests to models and the web.
async fn asked(app: &TestApp) -> (i64, u64, usize) {
    let calls = app.count("SELECT count(*) FROM okt_system.ai_calls").await;
    (calls, app.models.stats().requests, app.web.asked().len())
}

/// What a bundle says of itself, and all rows of its sections.
fn opened(bundle: &[u8]) -> (Metadata, Vec<OwnedRow>) {
    let mut rows = Vec::new();
    let read = read(bundle, &Limits::default(), &mut |row| {
        rows.push(match row {
            Row::Source(row) => OwnedRow::Source(row.clone()),
            Row::SourceImage(row) => OwnedRow::SourceImage(row.clone()),
            Row::Fact(row) => OwnedRow::Fact(row.clone()),
            Row::FactSource(row) => OwnedRow::FactSource(row.clone()),
            Row::Reference(row) => OwnedRow::Reference(row.clone()),
            Row::Concept(row) => OwnedRow::Concept(row.clone()),
            Row::Alias(row) => OwnedRow::Alias(row.clone()),
            Row::FactConcept(row) => OwnedRow::FactConcept(row.clone()),
            Row::Summary(row) => OwnedRow::Summary(row.clone()),
            Row::Synthesis(row) => OwnedRow::Synthesis(row.clone()),
            Row::Investigation(row) => OwnedRow::Investigation(row.clone()),
            Row::InvestigationSource(row) => OwnedRow::InvestigationSource(row.clone()),
            Row::Report(row) => OwnedRow::Report(row.clone()),
            Row::Annotation(row) => OwnedRow::Annotation(row.clone()),
            Row::Curation(row) => OwnedRow::Curation(row.clone()),
            _ => return Ok(()),
        });
        Ok(())
    });
    (read.unwrap().metadata, rows)
}
