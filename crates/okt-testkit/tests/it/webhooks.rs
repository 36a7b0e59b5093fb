//! Webhooks: who is told what, how it is signed, and what becomes of receivers that do not take it.

mod events;
mod kills;
mod receivers;
mod routes;
mod secrets;

use std::time::Duration;

use okt_testkit::app::TestApp;
use okt_testkit::receiver::Receiver;
use okt_testkit::wait::eventually;
use serde_json::{Value, json};

const ALLOWED: &str = "SVC__PROVIDERS__RESOLUTION__FETCH__ALLOW_PRIVATE";
// On its own in every word, so that it is a fact without a model.
const SUN: &str = "Honey bees find the way back to their hive by the position of the sun.";
/// A secret that nobody may meet outside.
const NAME: &str = "bees-of-the-secret-valley.txt";

/// An app that may tell a receiver, with these settings besides.
async fn app_with(receiver: &Receiver, more: &[(&str, &str)]) -> TestApp {
    let allowed = receiver.allowed();
    let mut settings = vec![(ALLOWED, allowed.as_str())];
    settings.extend_from_slice(more);
    TestApp::builder().settings(&settings).start().await
}

async fn app(receiver: &Receiver) -> TestApp {
    let mut app = app_with(receiver, &[]).await;
    app.work().await;
    app
}

/// A webhook of the owner's; its id and its secret.
async fn webhook(app: &TestApp, url: &str, events: &[&str]) -> (String, String) {
    let made = app.post("/webhooks", &json!({"url": url, "events": events})).await;
    assert_eq!(made.status, 201, "{made:?}");
    let made = made.json();
    let text = |field: &str| made[field].as_str().unwrap().to_owned();
    (text("id"), text("secret"))
}

async fn seen(app: &TestApp, id: &str) -> Value {
    let list = app.read("/webhooks").await;
    list["data"].as_array().unwrap().iter().find(|one| one["id"] == id).cloned().unwrap_or(Value::Null)
}

async fn deliveries(app: &TestApp, id: &str) -> Vec<Value> {
    app.read(&format!("/webhooks/{id}/deliveries?limit=200")).await["data"].as_array().unwrap().clone()
}

/// The only delivery of a webhook, once this is so. What waits for its next attempt does not wait long.
async fn delivery(app: &TestApp, id: &str, what: &str, is: impl Fn(&Value) -> bool) -> Value {
    eventually(Duration::from_mins(3), what, async || {
        hurry(app).await;
        let all = deliveries(app, id).await;
        match all.as_slice() {
            [one] if is(one) => Ok(one.clone()),
            _ => Err(json!(all)),
        }
    })
    .await
}

/// It is time for whatever waits.
async fn hurry(app: &TestApp) {
    app.sql(
        "UPDATE okt_tasks.jobs SET scheduled_at = clock_timestamp() WHERE kind = 'deliver_webhook' AND state = 'scheduled'",
    )
    .await;
}

/// A source that says this, processed.
async fn source(app: &TestApp) -> String {
    let id = app.add_text(NAME, SUN).await;
    assert_eq!(app.settled(&id).await["status"], "processed");
    id
}

fn attempts(delivery: &Value) -> &Vec<Value> {
    delivery["attempts"].as_array().unwrap()
}
