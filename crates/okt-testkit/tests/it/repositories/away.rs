//! A database that only holds repositories does not answer: everybody else goes on.

use std::time::Duration;

use http::Method;
use okt_testkit::cluster::free_port;
use okt_testkit::jobs::TestWorker;
use serde_json::json;

use crate::repositories::cleanup::{furnish, rows};
use crate::repositories::two_databases::{TwoDatabases, path};

/// Comes before all other databases in every list.
const AWAY: &str = "SVC__DATABASES__AWAY__URL";

#[tokio::test]
async fn jobs_for_all_databases_go_on_where_one_does_not_answer() {
    let nowhere = format!("postgres://okt@127.0.0.1:{}/okt", free_port());
    let fixture =
        TwoDatabases::with(&[(AWAY, &nowhere), ("SVC__BOOTSTRAP__DEFAULT_REPOSITORY", "false")]).await;
    let (id, deleted) = (fixture.repository().await, fixture.repository().await);
    // Nothing is fetched: the job is cancelled before anybody runs it.
    let added = fixture
        .send(&fixture.ada, Method::POST, &path(id, "sources"), &json!({"url": "http://127.0.0.1:1/a"}))
        .await;
    assert_eq!(added.status, 202, "{added:?}");
    let added = added.json();
    let (source, job) = (added["source_id"].as_str().unwrap(), added["job_id"].as_str().unwrap());
    furnish(&fixture, deleted, "default").await;

    // It carries the job to the queue, and runs none of that kind.
    let idle = fixture.worker_for(okt_queue::Kinds::default()).await;
    fixture.until("default", &format!("SELECT count(*) FROM okt_tasks.jobs WHERE id = '{job}'"), 1).await;
    idle.stop().await;
    let cancelled =
        fixture.send(&fixture.ada, Method::POST, &path(id, &format!("jobs/{job}/cancel")), &json!({})).await;
    assert!(cancelled.status.is_success(), "{cancelled:?}");
    let old = "UPDATE okt_repository.outbox SET arrived_at = arrived_at - interval '1 minute'";
    okt_testkit::accounts::sql(&fixture.service, old).await;
    assert_eq!(fixture.delete(&fixture.ada, &path(deleted, "")).await.status, 204);
    let helper = format!(
        "INSERT INTO okt_system.role_assignments (user_id, domain, role) VALUES ('{}', '{deleted}', 'viewer')",
        fixture.admin.id
    );
    okt_testkit::accounts::sql(&fixture.service, &helper).await;

    let settle = okt_queue::Periodic::new(&okt_jobs::SettleSources {}, Duration::from_secs(1)).unwrap();
    let _worker = TestWorker::start(fixture.service.api.app.config(), vec![settle]).await;
    let failed =
        format!("SELECT count(*) FROM okt_repository.sources WHERE id = '{source}' AND status = 'failed'");
    fixture.until("default", &failed, 1).await;
    // It takes nothing but the system database to forget people.
    let people = format!("SELECT count(*) FROM okt_system.role_assignments WHERE domain = '{deleted}'");
    fixture.until("default", &people, 0).await;
    // What lies where somebody answers is removed; the rest keeps the repository on the list.
    fixture.until("default", &rows(deleted), 0).await;
    let untidy = format!(
        "SELECT count(*) FROM okt_system.repositories WHERE id = '{deleted}' AND untidy_since IS NOT NULL"
    );
    assert_eq!(fixture.count("default", &untidy).await, 1);
}
