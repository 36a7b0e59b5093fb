//! Reports are found by their words.

use http::Method;
use okt_testkit::accounts::api_key_in;
use serde_json::{Value, json};

use super::{HEIGHT, SUN, health, started, write};

#[tokio::test]
async fn a_report_is_found_by_a_sentence_by_whoever_may_read_reports() {
    let app = started().await;
    let report = write(&app, "Bees", &format!("{SUN} {HEIGHT}")).await;
    health(&app, &report, "it is read", |counts| counts["unsupported"] == 2).await;
    let path = "/search?q=tallest+hive+in+the+valley&types=reports&mode=lexical";
    let found = app.read(path).await;
    let row = &found["data"][0];
    assert_eq!(
        (&row["id"], &row["type"], &row["text"]),
        (&json!(report), &json!("reports"), &json!(HEIGHT)),
        "{found:#}"
    );
    let key = async |permissions: &[&str]| {
        let (_, key) = api_key_in(&app.service, &app.owner, permissions, app.repository.uuid()).await;
        let path = app.path(path);
        let answer = okt_testkit::accounts::send(&app.service, &key, Method::GET, &path, &Value::Null);
        answer.await.status.as_u16()
    };
    assert_eq!(key(&["fact:read"]).await, 403);
    assert_eq!(key(&["fact:read", "report:read"]).await, 200);
}
