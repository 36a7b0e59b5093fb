//! Pages of one answer, while the store of vectors goes away and comes back.

use okt_testkit::app::TestApp;
use serde_json::{Value, json};

use super::{add, rows, search, settled};

const AWAY: &str = "ALTER TABLE okt_vectors.points RENAME TO points_away";
const BACK: &str = "ALTER TABLE okt_vectors.points_away RENAME TO points";

async fn page(app: &TestApp, cursor: Option<&str>) -> Value {
    let cursor = cursor.map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
    search(app, "honey bees", &format!("&types=facts&limit=1{cursor}")).await
}

/// All pages that follow one.
async fn follow(app: &TestApp, mut page_now: Value) -> Vec<String> {
    let mut ids = Vec::new();
    loop {
        ids.extend(rows(&page_now).iter().map(|row| row["id"].as_str().unwrap().to_owned()));
        let Some(next) = page_now["next_cursor"].as_str() else { return ids };
        page_now = page(app, Some(next)).await;
    }
}

fn said(page: &Value) -> (&Value, &Value) {
    (&page["search_mode"], &page["degraded_reason"])
}

#[tokio::test]
async fn pages_are_of_one_answer_while_vectors_go_and_come_back() {
    let mut app = TestApp::builder().vectors().start().await;
    app.work().await;
    let mut ids = Vec::new();
    for (name, text) in [
        (
            "a",
            "The honey bees of Norway dance on the comb. Bergen has stored its honey in cells of wax since 1902.",
        ),
        ("b", "Sweden sold honey to Denmark in 1902. The insects of Finland visit flowers in spring."),
        ("c", "The brown bears of Alaska eat honey in summer. Cuba makes sugar of cane."),
    ] {
        ids.push(add(&app, name, name, text).await);
    }
    settled(&app, &ids).await;
    let first = page(&app, None).await;
    assert_eq!(said(&first), (&json!("hybrid"), &Value::Null), "{first:#}");
    let whole = follow(&app, first.clone()).await;
    assert!(whole.len() > 2, "{whole:?}");
    let next = first["next_cursor"].as_str().unwrap();

    app.sql(AWAY).await;
    // It can't go on as it began, and what is lexical has no place in it.
    let second = page(&app, Some(next)).await;
    assert_eq!(said(&second), (&json!("hybrid"), &json!("vectors_away")), "{second:#}");
    assert_eq!((&second["data"], &second["next_cursor"]), (&json!([]), &Value::Null));
    let begun_without = page(&app, None).await;
    assert_eq!(said(&begun_without), (&json!("lexical"), &json!("vectors_away")), "{begun_without:#}");
    assert!(begun_without["next_cursor"].is_string(), "{begun_without:#}");

    app.sql(BACK).await;
    let second = page(&app, Some(next)).await;
    assert_eq!(said(&second), (&json!("hybrid"), &Value::Null), "{second:#}");
    assert_eq!(follow(&app, first).await, whole);
    // What began without them ends without them, though a new question has them.
    let second = page(&app, begun_without["next_cursor"].as_str()).await;
    assert_eq!(said(&second), (&json!("lexical"), &json!("vectors_away")), "{second:#}");
    let lexical = search(&app, "honey bees", "&types=facts&mode=lexical&limit=200").await;
    let lexical: Vec<String> =
        rows(&lexical).iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(follow(&app, begun_without).await, lexical);
    assert_eq!(said(&page(&app, None).await), (&json!("hybrid"), &Value::Null));
}
