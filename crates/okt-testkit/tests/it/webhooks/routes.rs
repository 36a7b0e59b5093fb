//! Making, changing and deleting webhooks, and what is kept of deliveries.

use std::time::Duration;

use okt_testkit::app::TestApp;
use okt_testkit::receiver::{Answering, Receiver};
use okt_testkit::wait::eventually;
use serde_json::{Value, json};

use super::{app, deliveries, seen, source, webhook};

const EVENTS: [&str; 1] = ["source.processed"];

#[tokio::test]
async fn an_address_that_nothing_is_sent_to_is_refused() {
    let receiver = Receiver::start().await;
    let app = app(&receiver).await;
    let (id, _) = webhook(&app, &receiver.url("/"), &EVENTS).await;
    for (url, why) in [
        ("", "absolute URL"),
        ("hooks.example.org", "absolute URL"),
        ("ftp://example.org/", "http and https"),
        ("http://ada:secret@example.org/", "user name"),
        ("http://10.1.2.3/", "not public"),
        ("http://[::1]/", "not public"),
        ("http://169.254.169.254/latest/meta-data", "not public"),
        ("http://127.0.0.1:1/", "80 and 443"),
    ] {
        let body = json!({"url": url, "events": EVENTS});
        for answer in [
            app.post("/webhooks", &body).await,
            app.put(&format!("/webhooks/{id}"), &json!({ "url": url })).await,
        ] {
            assert_eq!(answer.status, 422, "{url}: {answer:?}");
            let error = &answer.json()["errors"][0];
            assert_eq!(error["field"], "url", "{url}: {error}");
            assert!(error["message"].as_str().unwrap().contains(why), "{url}: {error}");
        }
    }
    for (body, field) in [
        (json!({"url": receiver.url("/"), "events": []}), "events"),
        (json!({"url": receiver.url("/"), "events": ["source.deleted"]}), "events"),
        (json!({"url": receiver.url("/"), "events": ["webhook.test"]}), "events"),
        (json!({"url": receiver.url("/"), "events": EVENTS, "description": "x".repeat(201)}), "description"),
        (json!({"url": format!("{}{}", receiver.url("/"), "x".repeat(2048)), "events": EVENTS}), "url"),
        (json!({"url": receiver.url("/"), "events": EVENTS, "secret": "mine"}), "secret"),
    ] {
        let answer = app.post("/webhooks", &body).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.json()["errors"][0]["field"]),
            (422, &json!(field)),
            "{answer:?}"
        );
    }
}

#[tokio::test]
async fn production_wants_https_but_for_addresses_that_the_operator_names() {
    let receiver = Receiver::start().await;
    let allowed = receiver.allowed();
    let settings = [
        (super::ALLOWED, allowed.as_str()),
        ("SVC__MODE", "production"),
        ("AUTH_JWTSECRET", "hk3Qz8vN1pXw6rTy0bLm5sJd9gFc2aEu"),
    ];
    let app = TestApp::builder().settings(&settings).start().await;
    webhook(&app, &receiver.url("/"), &EVENTS).await;
    let plain = app.post("/webhooks", &json!({"url": "http://192.0.2.1/", "events": EVENTS})).await;
    assert_eq!(plain.status, 422, "{plain:?}");
    assert!(plain.json()["errors"][0]["message"].as_str().unwrap().contains("only https"), "{plain:?}");
}

#[tokio::test]
async fn webhooks_are_listed_changed_and_deleted() {
    let receiver = Receiver::start().await;
    let app = app(&receiver).await;
    let mut ids = Vec::new();
    for n in 0..20 {
        ids.push(webhook(&app, &receiver.url(&format!("/{n}")), &EVENTS).await.0);
    }
    let one_more = app.post("/webhooks", &json!({"url": receiver.url("/"), "events": EVENTS})).await;
    assert_eq!((one_more.status.as_u16(), one_more.problem().as_str()), (409, "conflict"), "{one_more:?}");
    let mut listed = Vec::new();
    let mut path = "/webhooks?limit=7".to_owned();
    loop {
        let page = app.read(&path).await;
        listed.extend(
            page["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()),
        );
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("/webhooks?limit=7&cursor={cursor}");
    }
    assert_eq!(listed, ids);

    let change =
        json!({"description": " Ours ", "events": ["graph.exported", "source.failed", "graph.exported"]});
    let changed = app.put(&format!("/webhooks/{}", ids[0]), &change).await.json();
    assert_eq!(
        (&changed["description"], &changed["events"], &changed["enabled"]),
        (&json!("Ours"), &json!(["source.failed", "graph.exported"]), &json!(true)),
        "{changed:#}"
    );
    assert_eq!(changed["url"], receiver.url("/0"), "what is left out stays");
    assert_eq!(seen(&app, &ids[0]).await, changed);
    for (method, path) in [
        ("DELETE", format!("/webhooks/{}", ids[0])),
        ("DELETE", format!("/webhooks/{}", ids[0])),
        ("PUT", format!("/webhooks/{}", ids[0])),
        ("POST", format!("/webhooks/{}/rotate", ids[0])),
        ("POST", format!("/webhooks/{}/test", ids[0])),
        ("GET", format!("/webhooks/{}/deliveries", ids[0])),
    ] {
        let gone = seen(&app, &ids[0]).await.is_null();
        let answer = match method {
            "GET" => app.get(&path).await,
            "DELETE" => app.delete(&path).await,
            _ => app.ask(method.parse().unwrap(), &path, &json!({})).await,
        };
        assert_eq!(answer.status, if gone { 404 } else { 204 }, "{method} {path}: {answer:?}");
    }
}

#[tokio::test]
async fn a_webhook_that_is_deleted_takes_along_what_waits() {
    let receiver = Receiver::start().await;
    let app = app(&receiver).await;
    receiver.answer("/", Answering::Status(500, String::new()));
    let (id, _) = webhook(&app, &receiver.url("/"), &EVENTS).await;
    source(&app).await;
    receiver.await_messages("/", 1).await;
    assert_eq!(app.delete(&format!("/webhooks/{id}")).await.status, 204);
    let told = receiver.messages("/").len();
    super::hurry(&app).await;
    app.quiet().await;
    assert!(receiver.messages("/").len() <= told + 1, "one may have been on its way");
    assert_eq!(app.count("SELECT count(*) FROM okt_repository.webhook_deliveries").await, 0);
    assert_eq!(
        app.count("SELECT count(*) FROM okt_repository.outbox WHERE kind = 'deliver_webhook'").await,
        0
    );
}

#[tokio::test]
async fn deliveries_are_paged_and_kept_for_a_while() {
    let receiver = Receiver::start().await;
    let mut app = app(&receiver).await;
    let (id, _) = webhook(&app, &receiver.url("/"), &EVENTS).await;
    app.rest();
    let mut sent = Vec::new();
    for _ in 0..5 {
        let answer = app.post(&format!("/webhooks/{id}/test"), &json!({})).await.json();
        sent.push(answer["delivery_id"].as_str().unwrap().to_owned());
    }
    sent.reverse();
    let mut listed = Vec::new();
    let base = format!("/webhooks/{id}/deliveries?state=waiting&limit=2");
    let mut path = base.clone();
    loop {
        let page = app.read(&path).await;
        listed.extend(
            page["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()),
        );
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("{base}&cursor={cursor}");
    }
    assert_eq!(listed, sent);
    assert_eq!(app.get(&format!("/webhooks/{id}/deliveries?state=lost")).await.status, 422);
    app.work().await;
    receiver.await_messages("/", 5).await;
    app.quiet().await;

    // The first was delivered 8 days ago, the second failed then, the third 31 days ago; the fourth waits for nobody, and the
    // fifth was delivered today.
    for (n, change) in [
        "created_at = now() - interval '8 days'",
        "created_at = now() - interval '8 days', state = 'failed'",
        "created_at = now() - interval '31 days', state = 'failed'",
        "created_at = now() - interval '2 days', state = 'waiting', next_attempt_at = now() - interval '2 days'",
    ]
    .iter()
    .enumerate()
    {
        app.sql(&format!("UPDATE okt_repository.webhook_deliveries SET {change} WHERE id = '{}'", sent[n])).await;
    }
    // As it comes back by itself once a day.
    okt_queue::jobs::push(app.service.api.app.databases(), &okt_jobs::CleanupAudit {}, Duration::ZERO)
        .await
        .unwrap();
    let left = eventually(Duration::from_mins(2), "the old ones are gone", async || {
        let all = deliveries(&app, &id).await;
        if all.len() == 3 { Ok(all) } else { Err(json!(all)) }
    })
    .await;
    let states: Vec<(&Value, &Value)> = left.iter().map(|one| (&one["id"], &one["state"])).collect();
    assert_eq!(
        states,
        [
            (&json!(sent[1]), &json!("failed")),
            (&json!(sent[3]), &json!("failed")),
            (&json!(sent[4]), &json!("delivered"))
        ]
    );
    let lost = super::attempts(&left[1]).last().unwrap();
    assert_eq!(lost["error"], "not sent: its job was cancelled or given up", "{lost:#}");
}

#[tokio::test]
async fn the_same_request_makes_one_webhook_and_one_secret() {
    let receiver = Receiver::start().await;
    let app = app(&receiver).await;
    let ask = async |path: &str, body: &Value| {
        let request = app.service.request(http::Method::POST, &app.path(path)).bearer_auth(&app.owner.token);
        okt_testkit::client::Answer::of(request.header("idempotency-key", path).json(body)).await
    };
    let body = json!({"url": receiver.url("/"), "events": EVENTS});
    let (first, again) = (ask("/webhooks", &body).await.json(), ask("/webhooks", &body).await.json());
    assert_eq!(first, again);
    let rotate = format!("/webhooks/{}/rotate", first["id"].as_str().unwrap());
    let (first, again) = (ask(&rotate, &json!({})).await.json(), ask(&rotate, &json!({})).await.json());
    assert_eq!(first, again);
    assert_eq!(app.read("/webhooks").await["data"].as_array().unwrap().len(), 1);
}
