//! Secrets: shown once, kept so that nobody can read them, and changed without a gap.

use std::time::Duration;

use okt_testkit::accounts::{api_key, give, register, tables_with};
use okt_testkit::jobs::program;
use okt_testkit::process::Process;
use okt_testkit::receiver::Receiver;
use okt_testkit::wait::eventually;
use serde_json::{Value, json};

use super::{app, attempts, deliveries, seen, webhook};

const EVENTS: [&str; 1] = ["source.processed"];

async fn test(app: &okt_testkit::app::TestApp, id: &str) {
    let sent = app.post(&format!("/webhooks/{id}/test"), &json!({})).await;
    assert_eq!(sent.status, 202, "{sent:?}");
}

#[tokio::test]
async fn for_a_day_both_secrets_sign() {
    let receiver = Receiver::start().await;
    let app = app(&receiver).await;
    let (id, first) = webhook(&app, &receiver.url("/"), &EVENTS).await;
    let rotate = format!("/webhooks/{id}/rotate");
    let rotated = app.post(&rotate, &json!({})).await;
    assert_eq!(rotated.status, 200, "{rotated:?}");
    let second = rotated.json()["secret"].as_str().unwrap().to_owned();
    assert!(second.starts_with("whsec_") && second != first);
    assert_eq!(
        seen(&app, &id).await["previous_secret_expires_at"],
        rotated.json()["previous_secret_expires_at"]
    );
    test(&app, &id).await;
    let both = receiver.await_messages("/", 1).await.remove(0);
    assert!(both.is_signed_with(&first) && both.is_signed_with(&second), "{both:?}");
    assert_eq!(both.header("webhook-signature").split(' ').count(), 2);

    app.sql("UPDATE okt_repository.webhooks SET previous_until = now() - interval '1 second'").await;
    test(&app, &id).await;
    let one = receiver.await_messages("/", 2).await.remove(1);
    assert!(!one.is_signed_with(&first) && one.is_signed_with(&second), "{one:?}");
    assert_eq!(seen(&app, &id).await["previous_secret_expires_at"], Value::Null);
    // It is forgotten, too.
    okt_queue::jobs::push(app.service.api.app.databases(), &okt_jobs::CleanupAudit {}, Duration::ZERO)
        .await
        .unwrap();
    let kept = "SELECT count(*) FROM okt_repository.webhooks WHERE previous_secret IS NOT NULL";
    eventually(Duration::from_mins(1), "the secret before is forgotten", async || {
        match app.count(kept).await {
            0 => Ok(()),
            kept => Err(kept),
        }
    })
    .await;

    // Of three, the last two.
    let third = app.post(&rotate, &json!({})).await.json()["secret"].as_str().unwrap().to_owned();
    let fourth = app.post(&rotate, &json!({})).await.json()["secret"].as_str().unwrap().to_owned();
    test(&app, &id).await;
    let last = receiver.await_messages("/", 3).await.remove(2);
    let signed = [&second, &third, &fourth].map(|secret| last.is_signed_with(secret));
    assert_eq!(signed, [false, true, true]);
}

#[tokio::test]
async fn nobody_else_sees_a_secret_an_address_or_a_delivery() {
    let receiver = Receiver::start().await;
    let app = app(&receiver).await;
    let url = receiver.url("/path-that-is-a-secret-itself");
    let (id, secret) = webhook(&app, &url, &EVENTS).await;
    test(&app, &id).await;
    receiver.await_messages("/path-that-is-a-secret-itself", 1).await;
    let repository = app.repository.to_string();
    let mut people = vec![("stranger", 404, register(&app.service, "eve").await)];
    for role in ["viewer", "curator", "editor"] {
        let person = register(&app.service, role).await;
        give(&app.service, person.id, &repository, role).await;
        people.push((role, 403, person));
    }
    for (who, status, person) in &people {
        for path in ["/webhooks".to_owned(), format!("/webhooks/{id}/deliveries")] {
            assert_eq!(app.get_as(person, &path).await.status, *status, "{who} {path}");
        }
        // Nor by what they may read.
        for path in ["/jobs?limit=200", "/sources", "/settings"] {
            let answer = app.get_as(person, path).await;
            let text = format!("{answer:?}");
            assert!(!text.contains("path-that-is") && !text.contains(&id), "{who} {path}: {text}");
        }
    }
    // A key that is for something else.
    let (_, key) = api_key(&app.service, &app.owner, &["source:read"]).await;
    assert_eq!(app.service.get_as(&key, &app.path("/webhooks")).await.status, 403);
    // After it was made nobody is shown the secret, and nothing keeps it as it is: not the answer that is kept for the same
    // request, nor the audit, nor its own row.
    let list = app.read("/webhooks").await.to_string();
    assert!(list.contains("path-that-is") && !list.contains("whsec_"), "{list}");
    let audit = app.read("/audit").await.to_string();
    assert!(audit.contains("webhook.created") && !audit.contains("path-that-is"), "{audit}");
    let bare = secret.strip_prefix("whsec_").unwrap();
    assert_eq!(tables_with(&app.service, bare).await, [""; 0]);
    for table in ["webhooks", "webhook_deliveries", "outbox"] {
        let raw = format!(
            "SELECT count(*) FROM okt_repository.{table} t WHERE strpos(t::text, '{bare}') > 0
                OR strpos(t::text, encode(decode('{bare}', 'base64'), 'hex')) > 0"
        );
        assert_eq!(app.count(&raw).await, 0, "{table}");
    }
}

#[tokio::test]
async fn a_secret_outlives_a_change_of_the_signing_secret_while_the_one_before_is_known() {
    const FRESH: &str = "another secret that is long enough for tests";
    let receiver = Receiver::start().await;
    // Nobody works in this process.
    let app = super::app_with(&receiver, &[]).await;
    let (id, secret) = webhook(&app, &receiver.url("/"), &EVENTS).await;
    let settings = app.process_settings();
    let before = settings.iter().find(|(name, _)| *name == "AUTH_JWTSECRET").unwrap().1;
    let serve = |previous: &str| {
        let mut settings = settings.clone();
        settings.extend([("AUTH_JWTSECRET", FRESH), ("SVC__AUTH__JWT_SECRET_PREVIOUS", previous)]);
        Process::serve_as(program(), &["--role", "worker"], &settings)
    };
    let worker = serve(before);
    test(&app, &id).await;
    let message = receiver.await_messages("/", 1).await.remove(0);
    assert!(message.is_signed_with(&secret), "{message:?}");
    drop(worker);

    // What it was kept under is not known any more.
    let _worker = serve("");
    test(&app, &id).await;
    let told = eventually(Duration::from_mins(1), "it is tried", async || {
        let all = deliveries(&app, &id).await;
        let first = all.first().and_then(|one| attempts(one).first().cloned());
        first.ok_or(json!(all))
    })
    .await;
    assert!(told["error"].as_str().unwrap().contains("rotate"), "{told:#}");
    assert_eq!(receiver.messages("/").len(), 1);
}
