//! What was done in a repository is in the audit: once, and whatever happens on the way.

use http::Method;
use okt_testkit::accounts::sql;
use serde_json::json;

use crate::repositories::two_databases::{TwoDatabases, id_of, path};

const OUTBOX: &str = "SELECT count(*) FROM okt_repository.audit_outbox";

#[tokio::test]
async fn what_was_done_is_recorded_once_however_late() {
    let fixture = TwoDatabases::new().await;
    let record = fixture.make(&fixture.admin, &json!({"name": "There", "database": "second"})).await;
    let id = id_of(&record);
    let contexts = path(id, "settings/contexts");
    // Whoever wants to write to the audit fails; what people do does not.
    sql(&fixture.service, "ALTER TABLE okt_system.audit RENAME TO away").await;
    for label in ["Hive", "Comb"] {
        let added = fixture.send(&fixture.admin, Method::POST, &contexts, &json!({"label": label})).await;
        assert_eq!(added.status, 201, "{added:?}");
    }
    let removed = fixture.delete(&fixture.admin, &format!("{contexts}/Comb")).await;
    assert_eq!(removed.status, 204, "{removed:?}");
    // What was refused is not recorded.
    let refused = fixture.delete(&fixture.admin, &format!("{contexts}/Wax")).await;
    assert_eq!(refused.status, 404, "{refused:?}");
    assert_eq!(fixture.count("second", OUTBOX).await, 3);
    sql(&fixture.service, "ALTER TABLE okt_system.away RENAME TO audit").await;

    // One who was killed between the copy and the deletion.
    let half: (uuid::Uuid, chrono::DateTime<chrono::Utc>) =
        sqlx::query_as("SELECT id, at FROM okt_repository.audit_outbox WHERE object = 'Hive'")
            .fetch_one(&mut fixture.second().connect().await)
            .await
            .unwrap();
    sql(
        &fixture.service,
        &format!(
            "INSERT INTO okt_system.audit (id, at, actor_kind, action, object, repository_id, request_id)
             VALUES ('{}', '{}', 'session', 'context.added', 'Hive', '{id}', 'copied')",
            half.0,
            half.1.to_rfc3339()
        ),
    )
    .await;

    let app = fixture.service.api.app.clone();
    let upkeep = tokio::spawn(async move { app.keep_up().await });
    fixture.until("second", OUTBOX, 0).await;
    upkeep.abort();
    let seen = fixture.get(&fixture.admin, &path(id, "audit")).await.json();
    let seen: Vec<(String, String)> = seen["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["action"].to_string(), entry["object"].to_string()))
        .filter(|(action, _)| action.contains("context"))
        .collect();
    let expected = [("context.deleted", "Comb"), ("context.added", "Comb"), ("context.added", "Hive")];
    let expected: Vec<_> =
        expected.iter().map(|(action, object)| (format!("\"{action}\""), format!("\"{object}\""))).collect();
    assert_eq!(seen, expected, "each once, in the order in which it was done");

    // Where nothing is in the way, it is there with the answer.
    let added = fixture.send(&fixture.admin, Method::POST, &contexts, &json!({"label": "Wax"})).await;
    assert_eq!(added.status, 201, "{added:?}");
    assert_eq!(fixture.count("second", OUTBOX).await, 0);
    let recorded = "SELECT count(*) FROM okt_system.audit WHERE object = 'Wax' AND actor_id IS NOT NULL AND address IS NOT NULL";
    assert_eq!(fixture.count("default", recorded).await, 1);
}
