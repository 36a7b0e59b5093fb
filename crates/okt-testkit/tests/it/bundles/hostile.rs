//! Bundles that are wrong: refused whole, with a place and a reason.

use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use super::{app, export, rows, try_import};

fn unpacked(bundle: &[u8]) -> String {
    let mut text = String::new();
    GzDecoder::new(bundle).read_to_string(&mut text).unwrap();
    text
}

fn packed(text: &str) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    out.write_all(text.as_bytes()).unwrap();
    out.finish().unwrap()
}

fn message(job: &Value) -> String {
    assert_eq!(job["state"], "discarded", "{job:#}");
    job["errors"][0]["message"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_wrong_bundle_leaves_nothing_behind() {
    let app = app(false).await;
    let source = app.add_text("bees.txt", super::TEXT).await;
    app.settled(&source).await;
    app.quiet().await;
    let (_, bundle) = export(&app, json!({})).await;
    let text = unpacked(&bundle);
    let other = super::app(false).await;
    let before = rows(&other).await;
    let bomb = packed(&format!("{{\"schema_version\":2,{}", " ".repeat(12 << 20)));
    let stated = text.find("\"sha256\":\"").unwrap();
    // Without the hash of the whole, which would have to be computed anew.
    let mut long = text.clone();
    long.replace_range(stated..stated + "\"sha256\":\"\",".len() + 64, "");
    let body = "Bees fly.\\n\\n".repeat(50_001);
    let report = format!(
        "{{\"idx\":0,\"title\":\"Long\",\"body_md\":\"{body}\",\"status\":\"pending\",\"parent_idx\":-1}}"
    );
    let long = long.replacen("\"report_count\":0", "\"report_count\":1", 1);
    let long = long.replacen("\"reports\":[]", &format!("\"reports\":[{report}]"), 1);
    let cases: [(&str, Vec<u8>); 9] = [
        ("gzip", b"PK not a gzip file".to_vec()),
        ("schema_version", packed(&text.replacen("\"schema_version\":2", "\"schema_version\":3", 1))),
        ("metadata.sha256", packed(&text.replacen("Honey bees find", "Honey bees lose", 1))),
        ("content_hash", packed(&text.replacen("\"text\":\"Honey", "\"text\":\"No honey", 1))),
        ("metadata.fact_count", packed(&text.replacen("\"fact_count\":", "\"fact_count\":7", 1))),
        ("times as large", bomb),
        ("bundle", bundle[..bundle.len() / 2].to_vec()),
        ("50000 sentences", packed(&long)),
        (
            "nested",
            packed(&text.replacen("\"sources\":", &format!("\"x\":{},\"sources\":", "[".repeat(90)), 1)),
        ),
    ];
    for (reason, bytes) in cases {
        let job = try_import(&other, &bytes, false).await;
        assert!(message(&job).contains(reason), "{reason}: {job:#}");
        assert_eq!(rows(&other).await, before, "{reason}");
    }
    let form = okt_testkit::multipart::form(&[], "empty", "application/gzip", b"");
    assert_eq!(other.send_form("/graph-uploads", form).await.status, 422);
}

/// A source at an address that nobody may fetch is taken in as it is, and not fetched: not now, and not when somebody tries.
#[tokio::test]
async fn an_address_of_a_bundle_is_nothing_that_is_fetched() {
    let (one, other) = (app(false).await, app(false).await);
    let source = one.add_text("bees.txt", super::TEXT).await;
    one.settled(&source).await;
    one.quiet().await;
    let (_, bundle) = export(&one, json!({})).await;
    let text = unpacked(&bundle);
    let at = text.find("\"sources\":[{\"idx\":0,").unwrap() + "\"sources\":[{\"idx\":0,".len();
    let stated = text.find("\"sha256\":\"").unwrap();
    for (url, taken) in [("http://169.254.169.254/latest", true), ("javascript:alert(1)", false)] {
        let mut text = format!("{}\"url\":\"{url}\",{}", &text[..at], &text[at..]);
        // Without the hash of the whole, which would have to be computed anew.
        text.replace_range(stated..stated + "\"sha256\":\"\",".len() + 64, "");
        let job = try_import(&other, &packed(&text), false).await;
        assert_eq!(job["state"] == "completed", taken, "{url}: {job:#}");
    }
    let sources = other.read("/sources").await;
    let id = sources["data"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(sources["data"][0]["url"], "http://169.254.169.254/latest");
    other.sql("UPDATE okt_repository.sources SET status = 'failed', failure = '{\"stage\": \"fetch\", \"code\": \"x\", \"message\": \"x\", \"retryable\": true}'").await;
    assert_eq!(other.post(&format!("/sources/{id}/retry"), &json!({})).await.status, 202);
    // Its text is there, so it is read anew from that.
    other.settled(&id).await;
    assert!(other.web.asked().is_empty());
}

/// Nobody elsewhere decides for good what lists may say here, and no source supersedes itself through others.
#[tokio::test]
async fn marks_of_a_bundle_are_no_persons_and_make_no_circle() {
    let (one, other) = (app(false).await, app(false).await);
    for n in 1..=5 {
        let source =
            one.add_text(&format!("{n}.txt"), &format!("Hive {n} of the valley has {n}00 bees.")).await;
        one.settled(&source).await;
    }
    // Two supersede each other, a third one leads there, and one is superseded by one that was retracted.
    one.sql(
        "WITH s AS (SELECT repository_id, no, row_number() OVER (ORDER BY no) AS n FROM okt_repository.sources)
         INSERT INTO okt_repository.source_marks (repository_id, source_no, kind, by_no, origin)
         SELECT a.repository_id, a.no, CASE a.n WHEN 5 THEN 'retracted' ELSE 'superseded' END, b.no, 'person'
           FROM s a LEFT JOIN s b ON (a.n, b.n) IN ((1, 2), (2, 1), (3, 1), (4, 5))",
    )
    .await;
    one.quiet().await;
    let (_, bundle) = export(&one, json!({})).await;
    let text = unpacked(&bundle);
    assert_eq!(text.matches("\"marked_source\"").count(), 5);
    // What would keep every list from marking it.
    let removed = text.replacen("\"text\":\"retracted\"", "\"text\":\"\"", 1);
    assert_ne!(removed, text);
    let job = try_import(&other, &packed(&removed), false).await;
    assert_eq!(job["state"], "completed", "{job:#}");
    let marks = "SELECT count(*) FROM okt_repository.source_marks";
    assert_eq!(other.count(marks).await, 1);
    let kept = format!("{marks} WHERE kind = 'superseded' AND by_no IS NOT NULL AND origin = 'list'");
    assert_eq!(other.count(&kept).await, 1);
}
