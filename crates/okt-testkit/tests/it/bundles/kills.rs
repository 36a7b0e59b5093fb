//! Processes that are killed in the middle of an import or an export: nobody sees half of a graph, the next process comes to the same
//! hash, and no file is left that no row speaks of.

use std::time::Duration;

use okt_store::{Blobs, Databases, Purpose};
use okt_testkit::app::TestApp;
use okt_testkit::jobs::program;
use okt_testkit::process::Process;
use okt_testkit::wait::eventually;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _};

use super::{builder, download, export, fill, rows, upload};
use crate::sources::blobs::files_below;

/// Tables that an import writes, in an order that mixes early and late ones.
const WRITTEN: [&str; 25] = [
    "facts",
    "report_annotations",
    "sources",
    "outbox",
    "source_texts",
    "source_images",
    "source_marks",
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
    "report_words",
    "report_facts",
    "counters",
];
/// Tables that an export reads.
const READ: [&str; 16] = [
    "facts",
    "concept_syntheses",
    "sources",
    "source_texts",
    "source_images",
    "fact_sources",
    "source_marks",
    "concepts",
    "concept_aliases",
    "fact_concepts",
    "concept_summaries",
    "summary_facts",
    "investigations",
    "investigation_sources",
    "reports",
    "report_annotations",
];

/// Three of them, or all if `OKT_BUNDLE_KILLS` is set.
fn some(points: &'static [&'static str]) -> &'static [&'static str] {
    if std::env::var_os("OKT_BUNDLE_KILLS").is_some() { points } else { &points[..3] }
}

/// Whether somebody waits for a table.
const WAITS: &str = "SELECT count(*) FROM pg_locks l WHERE NOT l.granted AND l.locktype = 'relation'
                        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())";

/// Runs a process until it waits for this table, and kills it there. `false`: it ended the job without it.
async fn killed_at(app: &TestApp, table: &str, mode: &str, job: &str) -> bool {
    let mut conn = app.connect().await;
    let mut tx = conn.begin().await.unwrap();
    tx.execute(AssertSqlSafe(format!("LOCK TABLE okt_repository.{table} IN {mode} MODE"))).await.unwrap();
    let worker = Process::serve_as(program(), &["--role", "worker"], &app.process_settings());
    let ended = format!("SELECT count(*) FROM okt_tasks.jobs WHERE id = '{job}' AND finished_at IS NOT NULL");
    let stopped = eventually(Duration::from_mins(2), "the process waits", async || {
        if app.count(&ended).await > 0 {
            return Ok(false);
        }
        if app.count(WAITS).await > 0 { Ok(true) } else { Err(worker.log()) }
    })
    .await;
    drop(worker);
    tx.rollback().await.unwrap();
    stopped
}

#[tokio::test]
async fn an_import_that_is_killed_anywhere_leaves_nothing_and_is_run_again() {
    let one = super::app(false).await;
    fill(&one).await;
    let (output, bundle) = export(&one, json!({"include_bodies": true})).await;
    drop(one);
    let mut app = builder(false).start().await;
    let mut killed = 0;
    for table in some(&WRITTEN) {
        let name = json!({"name": format!("{table} {killed}")});
        let made = app.post("/api/v1/repositories", &name).await;
        assert_eq!(made.status, 201, "{made:?}");
        app.repository = made.json()["id"].as_str().unwrap().parse().unwrap();
        let before = rows(&app).await;
        let asked = json!({"upload_id": upload(&app, &bundle).await});
        let job = app.post("/import-graph", &asked).await.json()["job_id"].as_str().unwrap().to_owned();
        if killed_at(&app, table, "SHARE", &job).await {
            killed += 1;
            assert_eq!(rows(&app).await, before, "{table}: nothing is there");
        }
        let worker = Process::serve_as(program(), &["--role", "worker"], &app.process_settings());
        let ended: Value = app.ended(&job).await;
        assert_eq!(ended["state"], "completed", "{table}: {ended:#}\n{}", worker.log());
        let (again, _) = export(&app, json!({})).await;
        assert_eq!(again["sha256"], output["sha256"], "{table}");
    }
    println!("killed at {killed} of {} tables", some(&WRITTEN).len());
    assert_eq!(killed, some(&WRITTEN).len());
    no_strays(&app).await;
}

#[tokio::test]
async fn an_export_that_is_killed_anywhere_is_run_again() {
    let mut app = builder(false).start().await;
    app.work().await;
    fill(&app).await;
    let (output, _) = export(&app, json!({"include_bodies": true})).await;
    app.rest();
    let mut killed = 0;
    for table in some(&READ) {
        let body = json!({"name": "Bees", "destination": "file", "include_bodies": true});
        let job = app.post("/export-graph", &body).await.json()["job_id"].as_str().unwrap().to_owned();
        killed += usize::from(killed_at(&app, table, "ACCESS EXCLUSIVE", &job).await);
        let worker = Process::serve_as(program(), &["--role", "worker"], &app.process_settings());
        let ended: Value = app.ended(&job).await;
        assert_eq!(ended["state"], "completed", "{table}: {ended:#}\n{}", worker.log());
        assert_eq!(ended["output"]["sha256"], output["sha256"], "{table}");
        assert_eq!(download(&app, &format!("/export-graph/{job}/file"), None).await.0, 200);
    }
    println!("killed at {killed} of {} tables", some(&READ).len());
    assert_eq!(killed, some(&READ).len());
    no_strays(&app).await;
}

#[tokio::test]
async fn an_import_that_is_cancelled_leaves_nothing() {
    let (one, mut app) = (super::app(false).await, builder(false).start().await);
    fill(&one).await;
    let (_, bundle) = export(&one, json!({})).await;
    let before = rows(&app).await;
    let asked = json!({"upload_id": upload(&app, &bundle).await});
    let job = app.post("/import-graph", &asked).await.json()["job_id"].as_str().unwrap().to_owned();
    let mut conn = app.connect().await;
    let mut tx = conn.begin().await.unwrap();
    tx.execute("LOCK TABLE okt_repository.reports IN SHARE MODE").await.unwrap();
    app.work().await;
    eventually(Duration::from_mins(1), "it waits", async || match app.count(WAITS).await {
        0 => Err("nobody waits"),
        _ => Ok(()),
    })
    .await;
    let cancelled = app.post(&format!("/jobs/{job}/cancel"), &json!({})).await;
    assert!(cancelled.status.is_success(), "{cancelled:?}");
    tx.rollback().await.unwrap();
    assert_eq!(app.ended(&job).await["state"], "cancelled");
    assert_eq!(rows(&app).await, before);
}

/// What rows speak of is there, and nothing else is.
async fn no_strays(app: &TestApp) {
    let config = app.service.api.app.config().clone();
    let databases = Databases::open(&config, &[Purpose::Worker]).await.unwrap();
    let blobs = Blobs::open(&config.providers.storage).unwrap();
    okt_jobs::cleanup_files(&databases[0], &blobs, Duration::ZERO, |_| {}).await.unwrap();
    let kept = files_below(&config.providers.storage.root).len();
    let wanted = "SELECT count(*) FROM (SELECT id, body_sha256 FROM okt_repository.sources WHERE body_sha256 IS NOT NULL
                   UNION SELECT source_id, sha256 FROM okt_repository.source_images WHERE sha256 IS NOT NULL) AS f";
    assert_eq!(i64::try_from(kept).unwrap(), app.count(wanted).await);
}
