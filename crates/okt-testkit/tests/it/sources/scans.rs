//! Pages that are pictures: read by tesseract where it is installed, and marked.

use serde_json::Value;

use crate::sources::test_app;

const SCAN: &[u8] = include_bytes!("../../../../okt-parse/fixtures/pdf/scan.pdf");

async fn read(settings: &[(&str, &str)]) -> Value {
    let mut app = test_app(settings).await;
    let added = app.upload("scan.pdf", "application/pdf", SCAN).await;
    app.work().await;
    let source = added.json()["source_id"].as_str().unwrap().to_owned();
    app.settled(&source).await;
    app.get(&format!("/{source}")).await.json()
}

#[tokio::test]
async fn a_scanned_page_is_recognised_and_marked() {
    let source = read(&[]).await;
    let why = "is tesseract at /usr/bin/tesseract, or named in OKT_TESSERACT?";
    assert_eq!(source["status"], "processed", "{why} {source}");
    assert_eq!(source["pages"][0]["ocr"], true, "{source}");
    let text = source["parsed_text"].as_str().unwrap();
    assert!(text.contains("The village has one well. Everybody knows how deep it is."), "{text}");
    let (sentences, boxes) = (&source["sentence_offsets"], &source["sentence_boxes"]);
    assert_eq!(sentences.as_array().unwrap().len(), boxes.as_array().unwrap().len());
}

#[tokio::test]
async fn without_recognition_a_scan_fails_and_says_why() {
    let source = read(&[("SVC__PROVIDERS__PARSING__OCR", "false")]).await;
    assert_eq!(
        (&source["status"], &source["failure"]["code"]),
        (&"failed".into(), &"no_text".into()),
        "{source}"
    );
    assert!(source["failure"]["message"].as_str().unwrap().contains("does not recognise text"), "{source}");
}
