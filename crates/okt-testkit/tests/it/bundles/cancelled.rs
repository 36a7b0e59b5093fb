//! Imports and exports that are cancelled before and after their rows are written, and while vectors are.

use std::time::Duration;

use okt_testkit::app::TestApp;
use okt_testkit::wait::eventually;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _};

use super::{builder, download, export, fill, opened, rows, upload};

/// Runs jobs until this one waits for a table with such a statement, and cancels it there; how it ended.
async fn cancelled_at(app: &mut TestApp, job: &str, (table, mode): (&str, &str), statement: &str) -> Value {
    let mut conn = app.connect().await;
    let mut tx = conn.begin().await.unwrap();
    tx.execute(AssertSqlSafe(format!("LOCK TABLE {table} IN {mode} MODE"))).await.unwrap();
    app.work().await;
    let waits = format!(
        "SELECT count(*) FROM pg_stat_activity
          WHERE datname = current_database() AND wait_event_type = 'Lock' AND position('{statement}' IN query) > 0"
    );
    eventually(Duration::from_mins(1), "it waits", async || match app.count(&waits).await {
        0 => Err("nobody waits"),
        _ => Ok(()),
    })
    .await;
    let cancelled = app.post(&format!("/jobs/{job}/cancel"), &json!({})).await;
    assert!(cancelled.status.is_success(), "{cancelled:?}");
    tx.rollback().await.unwrap();
    let ended = app.ended(job).await;
    app.rest();
    assert_eq!(ended["state"], "cancelled", "{ended:#}");
    ended
}

#[tokio::test]
async fn an_import_that_is_cancelled_leaves_none_of_its_rows_or_all() {
    let (one, mut app) = (super::app(true).await, builder(true).start().await);
    fill(&one).await;
    let (output, bundle) = export(&one, json!({"include_bodies": true})).await;
    let before = rows(&app).await;
    let start = async |app: &TestApp| {
        let asked = json!({"upload_id": upload(app, &bundle).await});
        app.post("/import-graph", &asked).await.json()["job_id"].as_str().unwrap().to_owned()
    };
    // All of it was found right, and it is asked which files are needed.
    let job = start(&app).await;
    let place = ("okt_repository.sources", "ACCESS EXCLUSIVE");
    cancelled_at(&mut app, &job, place, "s.locator_hash = n.locator").await;
    assert_eq!(rows(&app).await, before);
    // The rows are there, and their vectors are not.
    let job = start(&app).await;
    let place = ("okt_vectors.points", "SHARE");
    cancelled_at(&mut app, &job, place, "INSERT INTO okt_vectors.points").await;
    assert_eq!(rows(&app).await["facts"], rows(&one).await["facts"]);
    app.work().await;
    let again = app.post(&format!("/jobs/{job}/retry"), &json!({})).await;
    assert!(again.status.is_success(), "{again:?}");
    let ended = app.ended(&job).await;
    assert_eq!(ended["state"], "completed", "{ended:#}");
    let embedded = "SELECT count(*) FROM okt_repository.facts WHERE embedded_in IS NOT NULL";
    assert_eq!(app.count(embedded).await, one.count(embedded).await);
    app.quiet().await;
    let (again, _) = export(&app, json!({"include_bodies": true})).await;
    assert_eq!(again["sha256"], output["sha256"]);
}

#[tokio::test]
async fn an_export_that_is_cancelled_leaves_no_file() {
    let mut app = builder(true).start().await;
    app.work().await;
    fill(&app).await;
    let (output, bundle) = export(&app, json!({})).await;
    app.quiet().await;
    app.rest();
    let all = opened(&bundle).1.len() as u64;
    for (table, statement, least, most) in [
        ("okt_repository.report_annotations", "FROM okt_repository.report_annotations a", 1, all - 1),
        ("okt_vectors.points", "SELECT id, embedding::real[]", all, all),
    ] {
        let body = json!({"name": "Bees", "destination": "file"});
        let job = app.post("/export-graph", &body).await.json()["job_id"].as_str().unwrap().to_owned();
        let ended = cancelled_at(&mut app, &job, (table, "ACCESS EXCLUSIVE"), statement).await;
        assert_eq!(ended["progress"]["stage"], "rows", "{ended:#}");
        let done = ended["progress"]["done"].as_u64().unwrap();
        assert!((least..=most).contains(&done), "{least} to {most}: {ended:#}");
        assert_eq!(download(&app, &format!("/export-graph/{job}/file"), None).await.0, 404);
    }
    app.work().await;
    let (again, _) = export(&app, json!({})).await;
    assert_eq!(again["sha256"], output["sha256"]);
}
