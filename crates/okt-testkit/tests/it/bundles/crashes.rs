//! Imports and exports that are stopped: run again they come to the same.

use serde_json::{Value, json};

use super::{app, export, fill, rows, upload};

/// Where an import is stopped: when it writes to this table for the first time.
const POINTS: [&str; 10] = [
    "sources",
    "source_texts",
    "facts",
    "fact_sources",
    "concepts",
    "fact_concepts",
    "concept_relations",
    "concept_summaries",
    "reports",
    "report_annotations",
];

#[tokio::test]
async fn an_import_that_is_stopped_anywhere_is_run_again() {
    let (one, other) = (app(false).await, app(false).await);
    fill(&one).await;
    let (output, bundle) = export(&one, json!({})).await;
    let before = rows(&other).await;
    other
        .sql("CREATE FUNCTION public.stop() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'stopped' USING ERRCODE = '23514'; END $$")
        .await;
    for table in POINTS {
        other
            .sql(&format!(
                "CREATE TRIGGER stop BEFORE INSERT ON okt_repository.{table} FOR EACH STATEMENT EXECUTE FUNCTION public.stop()"
            ))
            .await;
        let asked = json!({"upload_id": upload(&other, &bundle).await});
        let asked = other.post("/import-graph", &asked).await.json();
        let job = asked["job_id"].as_str().unwrap().to_owned();
        let stopped: Value = other.ended(&job).await;
        assert_eq!(stopped["state"], "discarded", "{table}: {stopped:#}");
        assert_eq!(rows(&other).await, before, "{table}: nothing is there");
        other.sql(&format!("DROP TRIGGER stop ON okt_repository.{table}")).await;
        other.sql("DELETE FROM okt_repository.outbox").await;
        let uploads = other.service.api.app.config().providers.storage.root.clone();
        drop(std::fs::remove_dir_all(
            uploads.join(format!("repositories/{}/graph-uploads", other.repository)),
        ));
    }
    super::import(&other, &bundle).await;
    other.quiet().await;
    let (again, _) = export(&other, json!({})).await;
    assert_eq!(again["sha256"], output["sha256"]);
}

/// Where it had committed the rows and died before it said so.
#[tokio::test]
async fn an_import_that_died_after_its_rows_were_there_ends_well() {
    let (one, other) = (app(true).await, app(true).await);
    fill(&one).await;
    let (output, bundle) = export(&one, json!({"include_bodies": true})).await;
    // The vectors can't be marked, after all rows were committed.
    other
        .sql(
            "CREATE FUNCTION public.stop() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN IF NEW.embedded_in IS NOT NULL THEN RAISE EXCEPTION 'stopped' USING ERRCODE = '23514'; END IF; RETURN NEW; END $$",
        )
        .await;
    other.sql("CREATE TRIGGER stop BEFORE UPDATE ON okt_repository.facts FOR EACH ROW EXECUTE FUNCTION public.stop()").await;
    let asked = json!({"upload_id": upload(&other, &bundle).await});
    let job = other.post("/import-graph", &asked).await.json()["job_id"].as_str().unwrap().to_owned();
    assert_eq!(other.ended(&job).await["state"], "discarded");
    let there = rows(&other).await;
    assert!(there["facts"] > 0);
    other.sql("DROP TRIGGER stop ON okt_repository.facts").await;
    assert!(other.post(&format!("/jobs/{job}/retry"), &json!({})).await.status.is_success());
    let ended = other.ended(&job).await;
    assert_eq!(ended["state"], "completed", "{ended:#}");
    assert_eq!(rows(&other).await, there);
    assert_eq!(
        ended["output"]["vectors"]["facts"],
        other.count("SELECT count(*) FROM okt_repository.facts WHERE embedded_in IS NOT NULL").await
    );
    other.quiet().await;
    let (again, _) = export(&other, json!({})).await;
    assert_eq!(again["sha256"], output["sha256"]);
}
