//! What is told, to whom, and in which words.

use okt_testkit::receiver::Receiver;
use serde_json::{Value, json};

use super::{NAME, SUN, app, app_with, deliveries, delivery, source, webhook};

#[tokio::test]
async fn a_source_is_told_once_and_without_a_word_of_it() {
    let receiver = Receiver::start().await;
    let app = app(&receiver).await;
    let (good, secret) = webhook(&app, &receiver.url("/good"), &["source.processed"]).await;
    let (bad, other) = webhook(&app, &receiver.url("/bad"), &["source.failed"]).await;
    let id = source(&app).await;
    let messages = receiver.await_messages("/good", 1).await;
    let message = &messages[0];
    assert!(message.is_signed_with(&secret) && !message.is_signed_with(&other), "{message:?}");
    assert_eq!(message.header("content-type"), "application/json");
    assert!(message.header("user-agent").starts_with("okt/"));
    let body = message.json();
    assert_eq!(
        (&body["type"], &body["data"]["source_id"]),
        (&json!("source.processed"), &json!(id)),
        "{body:#}"
    );
    assert_eq!(body["data"]["repository_id"], json!(app.repository));
    assert_eq!(body["data"]["url"], json!(format!("/r/bees/sources/{id}")));
    let text = String::from_utf8(message.body.clone()).unwrap();
    assert!(!text.contains(NAME) && !text.contains("sun"), "{text}");
    let told = delivery(&app, &good, "it is delivered", |one| one["state"] == "delivered").await;
    assert_eq!(told["id"].as_str().unwrap(), message.header("webhook-id"));
    assert_eq!(told["data"], json!({"source_id": id}));
    let attempts = super::attempts(&told);
    assert_eq!(
        (attempts.len(), &attempts[0]["status"], &attempts[0]["error"]),
        (1, &json!(204), &Value::Null)
    );

    // One that fails, by the same way; why is a code.
    let failed = app.add_page("/that-may-not-be-fetched").await;
    assert_eq!(app.settled(&failed).await["status"], "failed");
    let message = receiver.await_messages("/bad", 1).await.remove(0);
    assert!(message.is_signed_with(&other));
    let body = message.json();
    assert_eq!(
        (&body["type"], &body["data"]["source_id"]),
        (&json!("source.failed"), &json!(failed)),
        "{body:#}"
    );
    assert!(body["data"]["code"].is_string() && body["data"]["message"].is_null(), "{body:#}");
    app.quiet().await;
    assert_eq!((receiver.messages("/good").len(), receiver.messages("/bad").len()), (1, 1));
    assert_eq!((deliveries(&app, &good).await.len(), deliveries(&app, &bad).await.len()), (1, 1));
}

#[tokio::test]
async fn whoever_waits_for_a_source_does_not_wait_for_receivers() {
    let receiver = Receiver::start().await;
    let app = app(&receiver).await;
    receiver.answer("/", okt_testkit::receiver::Answering::Status(500, String::new()));
    webhook(&app, &receiver.url("/"), &["source.processed"]).await;
    let added = app.upload(NAME, "text/plain", SUN.as_bytes()).await.json();
    receiver.await_messages("/", 1).await;
    // The next attempt is seconds away, and the stream of the job has an end.
    let path = app.path(&format!("/jobs/{}/events", added["job_id"].as_str().unwrap()));
    let events = app.service.request(http::Method::GET, &path).bearer_auth(&app.owner.token);
    let ends = tokio::time::timeout(std::time::Duration::from_mins(1), async {
        let told = events.send().await.unwrap().text().await.unwrap();
        assert!(told.contains("source_decomposition") && !told.contains("deliver_webhook"), "{told}");
    });
    ends.await.expect("the stream ends");
    // And nothing of the receiver is where more people look.
    let jobs = app.read("/jobs?kind=deliver_webhook").await.to_string();
    assert!(jobs.contains("deliver_webhook"), "{jobs}");
    assert!(!jobs.contains("127.0.0.1") && !jobs.contains("receiver"), "{jobs}");
}

#[tokio::test]
async fn what_changes_a_report_and_what_is_exported_is_told() {
    let receiver = Receiver::start().await;
    let mut app =
        app_with(&receiver, &[("SVC__PROVIDERS__EMBEDDING__MODEL", okt_model::EMBEDDING_MODEL)]).await;
    app.work().await;
    let events = ["report.health_changed", "graph.exported"];
    let (_, secret) = webhook(&app, &receiver.url("/"), &events).await;
    let made = app.post("/reports", &json!({"title": "Bees", "body_markdown": SUN})).await.json();
    let report = made["id"].as_str().unwrap();
    app.quiet().await;
    assert_eq!(receiver.messages("/").len(), 0, "a first check is no change");
    source(&app).await;
    let message = receiver.await_messages("/", 1).await.remove(0);
    assert!(message.is_signed_with(&secret));
    let body = message.json();
    let data = &body["data"];
    assert_eq!(
        (&body["type"], &data["report_id"]),
        (&json!("report.health_changed"), &json!(report)),
        "{body:#}"
    );
    assert_eq!((&data["changed"], &data["counts"]["supported"]), (&json!(1), &json!(1)), "{body:#}");
    assert_eq!(data["url"], json!(format!("/r/bees/reports/{report}")));

    let job = app.post("/export-graph", &json!({"name": "Bees", "destination": "file"})).await.json();
    let message = receiver.await_messages("/", 2).await.remove(1);
    let body = message.json();
    assert_eq!(
        (&body["type"], &body["data"]["job_id"]),
        (&json!("graph.exported"), &job["job_id"]),
        "{body:#}"
    );
    assert!(body["data"]["bytes"].as_u64().unwrap() > 0, "{body:#}");
}

#[tokio::test]
async fn addresses_are_those_of_the_service_where_it_knows_its_own() {
    let receiver = Receiver::start().await;
    let mut app = app_with(&receiver, &[("SVC_OAUTH_ISSUER", "https://okt.example")]).await;
    app.work().await;
    let (id, _) = webhook(&app, &receiver.url("/"), &["source.processed"]).await;
    let sent = app.post(&format!("/webhooks/{id}/test"), &json!({})).await;
    assert_eq!(sent.status, 202, "{sent:?}");
    let body = receiver.await_messages("/", 1).await.remove(0).json();
    assert_eq!(
        (&body["type"], &body["data"]["webhook_id"]),
        (&json!("webhook.test"), &json!(id)),
        "{body:#}"
    );
    assert_eq!(body["data"]["url"], "https://okt.example/r/bees");
}

#[tokio::test]
async fn an_answer_that_is_done_and_one_whose_evidence_changed_are_told() {
    let receiver = Receiver::start().await;
    let app = app(&receiver).await;
    webhook(&app, &receiver.url("/"), &["answer.done", "answer.evidence_changed"]).await;
    source(&app).await;
    app.quiet().await;
    let asked = app.post("/ask", &json!({"question": SUN, "mode": "extractive"})).await;
    assert!(asked.status.is_success(), "{asked:?}");
    let message = receiver.await_messages("/", 1).await.remove(0);
    assert!(!String::from_utf8(message.body.clone()).unwrap().contains("sun"), "{message:?}");
    let body = message.json();
    let data = &body["data"];
    assert_eq!((&body["type"], &data["status"]), (&json!("answer.done"), &json!("extractive")), "{body:#}");
    let id = data["answer_id"].as_str().unwrap();
    assert_eq!(data["url"], json!(format!("/r/bees/answers/{id}")));
    let answer = app.read(&format!("/answers/{id}")).await;
    let fact = answer["sentences"][0]["fact_ids"][0].as_str().unwrap();
    let rejected = app.put(&format!("/facts/{fact}"), &json!({"status": "rejected", "reason": "no"})).await;
    assert!(rejected.status.is_success(), "{rejected:?}");
    let body = receiver.await_messages("/", 2).await.remove(1).json();
    assert_eq!(
        (&body["type"], &body["data"]["answer_id"]),
        (&json!("answer.evidence_changed"), &json!(id)),
        "{body:#}"
    );
    app.quiet().await;
    assert_eq!(receiver.messages("/").len(), 2, "each is told once");
}
