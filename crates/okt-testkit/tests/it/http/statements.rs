use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use okt_testkit::client::Answer;
use okt_testkit::served::TestService;
use serde_json::json;
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

/// Counts the statements that are sent to PostgreSQL, as the driver logs them.
#[derive(Clone, Default)]
struct Statements(Arc<AtomicUsize>);

impl<S: Subscriber> Layer<S> for Statements {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() == "sqlx::query" {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// On one thread, so that all of the service logs to this test's subscriber.
#[tokio::test]
async fn an_authenticated_get_of_one_row_sends_one_statement_beyond_the_session_look_up() {
    let statements = Statements::default();
    let _logging = tracing::subscriber::set_default(tracing_subscriber::registry().with(statements.clone()));
    // One connection, because a new one costs a statement of its own.
    let service = TestService::product(&[("SVC__DATABASES__DEFAULT__MAX_CONNS", "1")]).await;
    let account = json!({"email": "ada@example.org", "password": "correct horse"});
    let registered = service.request(http::Method::POST, "/api/v1/auth/register").json(&account);
    let registered = Answer::of(registered).await.json();
    let (token, id) = (registered["token"].as_str().unwrap(), registered["user"]["id"].as_str().unwrap());

    let count = async |path: &str| {
        let before = statements.0.load(Ordering::Relaxed);
        assert_eq!(service.get_as(token, path).await.status, 200);
        statements.0.load(Ordering::Relaxed) - before
    };
    assert_eq!(count("/api/v1/users/me").await, 3, "the session, the roles, the row");
    for path in ["/api/v1/users/me", &format!("/api/v1/users/{id}")] {
        assert_eq!(count(path).await, 2, "{path}: the session and the row");
    }
    assert_eq!(count("/api/v1/permissions").await, 1, "the session alone");

    let change = "UPDATE okt_system.role_assignments SET created_at = created_at";
    okt_testkit::db::run(&mut service.database.connect().await, change).await;
    let before = statements.0.load(Ordering::Relaxed);
    assert_eq!(service.get_as(token, "/api/v1/users/me").await.status, 200);
    assert_eq!(statements.0.load(Ordering::Relaxed) - before, 3, "roles that changed are read again, once");
    assert_eq!(count("/api/v1/users/me").await, 2);
}
