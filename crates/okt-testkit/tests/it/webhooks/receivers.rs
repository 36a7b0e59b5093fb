//! Receivers that are slow, wrong, private, redirecting, gone or endless.

use std::time::Duration;

use okt_testkit::receiver::{Answering, Receiver};
use okt_testkit::wait::eventually;
use serde_json::{Value, json};

use super::{app, attempts, deliveries, delivery, hurry, seen, source, webhook};

const EVENTS: [&str; 1] = ["source.processed"];

fn failing() -> Answering {
    Answering::Status(500, "Internal\u{202e} \n error".to_owned())
}

#[tokio::test]
async fn a_receiver_that_is_wrong_is_told_again_until_it_is_right() {
    let receiver = Receiver::start().await;
    let app = app(&receiver).await;
    receiver.answer("/", failing());
    let (id, secret) = webhook(&app, &receiver.url("/"), &EVENTS).await;
    source(&app).await;
    let failed = delivery(&app, &id, "it fails twice", |one| attempts(one).len() >= 2).await;
    let first = &attempts(&failed)[0];
    assert_eq!(
        (&first["status"], &first["error"], &first["response"]),
        (&json!(500), &json!("the receiver answered 500"), &json!("Internal error")),
        "{failed:#}"
    );
    assert!(seen(&app, &id).await["failing_since"].is_string());
    receiver.answer("/", Answering::Status(200, String::new()));
    let told = delivery(&app, &id, "it is delivered", |one| one["state"] == "delivered").await;
    assert_eq!(told["next_attempt_at"], Value::Null);
    let messages = receiver.messages("/");
    assert_eq!(messages.len(), attempts(&told).len());
    for message in &messages {
        assert!(message.is_signed_with(&secret));
        assert_eq!(message.header("webhook-id"), told["id"].as_str().unwrap());
        assert_eq!(message.body, messages[0].body, "the same words in every attempt");
    }
    assert_eq!(seen(&app, &id).await["failing_since"], Value::Null);
}

#[tokio::test]
async fn eight_attempts_are_the_end_and_days_of_failure_disable() {
    let receiver = Receiver::start().await;
    let app = app(&receiver).await;
    receiver.answer("/", failing());
    let (id, _) = webhook(&app, &receiver.url("/"), &EVENTS).await;
    source(&app).await;
    let failed = delivery(&app, &id, "it is given up", |one| one["state"] == "failed").await;
    assert_eq!((attempts(&failed).len(), &failed["next_attempt_at"]), (8, &Value::Null), "{failed:#}");
    assert_eq!(receiver.messages("/").len(), 8);
    assert_eq!(seen(&app, &id).await["enabled"], true, "half a day is not enough");

    app.sql("UPDATE okt_repository.webhooks SET failing_since = now() - interval '71 hours'").await;
    let again = async |count: usize| {
        app.post(&format!("/sources/{}/process", failed["data"]["source_id"].as_str().unwrap()), &json!({}))
            .await;
        eventually(Duration::from_mins(3), "it is given up", async || {
            hurry(&app).await;
            let all = deliveries(&app, &id).await;
            let ended = all.iter().filter(|one| one["state"] == "failed").count();
            if ended == count { Ok(()) } else { Err(json!(all)) }
        })
        .await;
    };
    again(2).await;
    assert_eq!(seen(&app, &id).await["enabled"], true);
    app.sql("UPDATE okt_repository.webhooks SET failing_since = now() - interval '73 hours'").await;
    again(3).await;
    let disabled = seen(&app, &id).await;
    assert_eq!((&disabled["enabled"], &disabled["disabled"]["code"]), (&json!(false), &json!("failing")));
    assert!(disabled["disabled"]["message"].as_str().unwrap().contains("three days"), "{disabled:#}");
    let told = receiver.messages("/").len();
    // From now on nothing is written for it.
    let process = format!("/sources/{}/process", failed["data"]["source_id"].as_str().unwrap());
    assert!(app.post(&process, &json!({})).await.status.is_success());
    app.quiet().await;
    assert_eq!((deliveries(&app, &id).await.len(), receiver.messages("/").len()), (3, told));
    // A person has mended it.
    receiver.answer("/", Answering::Status(204, String::new()));
    let enabled = app.put(&format!("/webhooks/{id}"), &json!({"enabled": true})).await.json();
    assert_eq!(
        (&enabled["enabled"], &enabled["disabled"], &enabled["failing_since"]),
        (&json!(true), &Value::Null, &Value::Null)
    );
    let audit = app.read("/audit?action=webhook.disabled").await;
    let rows = audit["data"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[0]["object"]), (1, &json!(format!("{id} failing"))), "{audit:#}");
    assert!(app.post(&process, &json!({})).await.status.is_success());
    receiver.await_messages("/", told + 1).await;
}

#[tokio::test]
async fn a_receiver_that_is_gone_is_told_nothing_more() {
    let receiver = Receiver::start().await;
    let app = app(&receiver).await;
    receiver.answer("/", Answering::Status(410, "gone".to_owned()));
    let (id, _) = webhook(&app, &receiver.url("/"), &EVENTS).await;
    let id_of = source(&app).await;
    let failed = delivery(&app, &id, "it has failed", |one| one["state"] == "failed").await;
    assert_eq!(attempts(&failed).len(), 1, "{failed:#}");
    let disabled = seen(&app, &id).await;
    assert_eq!(
        (&disabled["enabled"], &disabled["disabled"]["code"]),
        (&json!(false), &json!("gone")),
        "{disabled:#}"
    );

    // A test goes there all the same, and changes nothing.
    receiver.answer("/", Answering::Status(200, String::new()));
    let sent = app.post(&format!("/webhooks/{id}/test"), &json!({})).await;
    assert_eq!(sent.status, 202, "{sent:?}");
    eventually(Duration::from_mins(1), "the test is delivered", async || {
        let all = deliveries(&app, &id).await;
        let test =
            all.iter().find(|one| one["id"] == sent.json()["delivery_id"]).cloned().unwrap_or_default();
        if test["state"] == "delivered" && test["event"] == "webhook.test" { Ok(()) } else { Err(json!(all)) }
    })
    .await;
    assert_eq!(seen(&app, &id).await["enabled"], false);
    assert!(app.post(&format!("/sources/{id_of}/process"), &json!({})).await.status.is_success());
    app.quiet().await;
    assert_eq!(receiver.messages("/").len(), 2);
}

#[tokio::test]
async fn what_waits_when_a_webhook_is_disabled_is_not_sent() {
    let receiver = Receiver::start().await;
    let app = app(&receiver).await;
    receiver.answer("/", failing());
    let (id, _) = webhook(&app, &receiver.url("/"), &EVENTS).await;
    source(&app).await;
    receiver.await_messages("/", 1).await;
    let disabled = app.put(&format!("/webhooks/{id}"), &json!({"enabled": false})).await.json();
    assert_eq!(disabled["disabled"]["code"], "person", "{disabled:#}");
    let told = receiver.messages("/").len();
    let failed = delivery(&app, &id, "it has failed", |one| one["state"] == "failed").await;
    let last = attempts(&failed).last().unwrap();
    assert_eq!(
        (&last["error"], receiver.messages("/").len()),
        (&json!("not sent: the webhook is disabled"), told)
    );
}

#[tokio::test]
async fn one_that_is_slow_private_redirecting_or_endless_holds_nobody_up() {
    let receiver = Receiver::start().await;
    // Nobody listens there any more.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let both = format!("{},{free}", receiver.allowed());
    let mut app = super::app_with(&receiver, &[(super::ALLOWED, &both)]).await;
    app.work().await;
    receiver.answer("/silent", Answering::Silent);
    receiver.answer("/redirect", Answering::Redirect(receiver.url("/elsewhere")));
    receiver.answer("/endless", Answering::Endless(200));
    receiver.answer("/wrong", Answering::Endless(503));
    let mut hooks = Vec::new();
    for path in ["/silent", "/redirect", "/endless", "/wrong", "/good"] {
        hooks.push(webhook(&app, &receiver.url(path), &EVENTS).await.0);
    }
    // Addresses of before a rule, or names that lead elsewhere by now: they are looked at again when something is sent.
    for url in [format!("http://{free}/"), "http://10.0.0.1/".to_owned(), "http://localhost/".to_owned()] {
        let (id, _) = webhook(&app, &receiver.url("/moved"), &EVENTS).await;
        app.sql(&format!("UPDATE okt_repository.webhooks SET url = '{url}' WHERE id = '{id}'")).await;
        hooks.push(id);
    }
    source(&app).await;
    receiver.await_messages("/good", 1).await;
    let first = async |n: usize| {
        eventually(Duration::from_mins(2), "the first attempt ends", async || {
            let all = deliveries(&app, &hooks[n]).await;
            let first = all.first().and_then(|one| attempts(one).first().cloned());
            first.ok_or(json!(all))
        })
        .await
    };
    let silent = first(0).await;
    assert!((9_000..20_000).contains(&silent["ms"].as_u64().unwrap()), "{silent:#}");
    assert!(silent["error"].as_str().unwrap().contains("10s") && silent["status"].is_null(), "{silent:#}");
    let redirect = first(1).await;
    assert_eq!(redirect["status"], 302, "{redirect:#}");
    assert!(redirect["error"].as_str().unwrap().contains("redirects"), "{redirect:#}");
    assert_eq!(receiver.messages("/elsewhere").len(), 0);
    let endless = first(2).await;
    assert_eq!((&endless["status"], &endless["error"]), (&json!(200), &Value::Null), "{endless:#}");
    let wrong = first(3).await;
    assert_eq!(
        (&wrong["status"], wrong["response"].as_str().unwrap().len()),
        (&json!(503), 300),
        "{wrong:#}"
    );
    assert_eq!(first(4).await["error"], Value::Null);
    for n in [5, 6, 7] {
        let refused = first(n).await;
        assert!(refused["status"].is_null() && refused["error"].is_string(), "{refused:#}");
    }
    assert!(first(5).await["error"].as_str().unwrap().contains("cannot connect"));
    assert!(first(6).await["error"].as_str().unwrap().contains("not public"));
    assert_eq!(receiver.messages("/moved").len(), 0);
}
