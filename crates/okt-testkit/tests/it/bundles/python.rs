//! Bundles that another program writes and reads, which knows no more of them than their description.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::{app, asked, export, fill, import, opened};

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/bundle-python/bundle.py")
}

fn python(arguments: &[&str]) -> Value {
    let ran = Command::new("python3").arg(script()).args(arguments).output().expect("python3 runs");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    serde_json::from_slice(&ran.stdout).unwrap_or_default()
}

#[tokio::test]
async fn a_bundle_of_another_program_is_taken_in() {
    let folder = tempfile::tempdir().unwrap();
    for old in [false, true] {
        let path = folder.path().join(format!("{old}.gz"));
        let file = path.to_str().unwrap();
        let more: &[&str] = if old { &["--old"] } else { &[] };
        python(&[&["write", file], more].concat());
        let read = python(&["read", file]);
        let app = app(false).await;
        let before = asked(&app).await;
        let taken = import(&app, &std::fs::read(&path).unwrap()).await;
        assert_eq!(taken["sha256"], read["sha256"], "both compute the same hash");
        assert_eq!(taken["rows"]["facts"]["added"], 3, "{taken:#}");
        assert_eq!(taken["rows"]["citations_lost"], 1, "{taken:#}");
        app.quiet().await;
        assert_eq!(asked(&app).await, before);
        let facts = app.read("/facts?limit=200").await;
        let mut texts: Vec<&str> =
            facts["data"].as_array().unwrap().iter().map(|fact| fact["text"].as_str().unwrap()).collect();
        texts.sort_unstable();
        let mut expected: Vec<&str> =
            read["facts"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
        expected.sort_unstable();
        assert_eq!(texts, expected);
        let summary = "SELECT count(*) FROM okt_repository.concept_summaries WHERE content = 'They nest on cliffs and roofs.'";
        assert_eq!(app.count(summary).await, 1, "a citation that leads nowhere keeps its text");
        let annotated = "SELECT count(*) FROM okt_repository.report_sentences WHERE state = 'supported'";
        assert_eq!(app.count(annotated).await, 1);
    }
}

#[tokio::test]
async fn another_program_reads_a_bundle_of_ours() {
    let app = app(true).await;
    fill(&app).await;
    let (output, bundle) = export(&app, json!({"include_bodies": true})).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bees.gz");
    std::fs::write(&path, &bundle).unwrap();
    let read = python(&["read", path.to_str().unwrap()]);
    assert_eq!(read["sha256"], output["sha256"]);
    let (metadata, _) = opened(&bundle);
    assert_eq!(read["rows"]["facts"], metadata.fact_count);
    assert_eq!(read["rows"]["concept_summaries"], metadata.summary_count);
    assert_eq!((&read["rows"]["images"], &read["rows"]["bodies"]), (&json!(1), &json!(2)), "{read}");
    assert!(read["vectors"]["fact_vectors"].as_u64().unwrap() >= 5, "{read}");
}
