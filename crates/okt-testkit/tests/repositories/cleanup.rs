use std::time::Duration;

use http::Method;
use okt_jobs::CleanupExpired;
use okt_model::{CleanupRepository, JobId};
use okt_queue::jobs;
use okt_store::outbox::{self, When};
use okt_store::{Blobs, concepts, counters};
use okt_testkit::accounts::{api_key_in, count, sql};
use serde_json::json;
use uuid::Uuid;

use crate::house::{House, REPOSITORIES, id_of, path};
use crate::{isolation_facts, isolation_sources};

/// Rows of a repository in every table of its home.
pub fn rows(id: Uuid) -> String {
    let counts = okt_store::moves::TABLES
        .map(|table| format!("(SELECT count(*) FROM {} WHERE repository_id = '{id}')", table.path()));
    format!("SELECT {}", counts.join(" + "))
}

/// Something in every table.
pub async fn furnish(house: &House, id: Uuid, database: &str) {
    let mut tx = house.service.api.app.databases().begin(database, id.into()).await.unwrap();
    let concept = concepts::file(&mut tx, id.into(), "Varroosis", "Disease").await.unwrap();
    concepts::link(&mut tx, id.into(), concept, &(1..=6_000).collect::<Vec<_>>()).await.unwrap();
    // Beside the three that are planted below.
    counters::add(&mut tx, id.into(), "facts", 5_997).await.unwrap();
    let job = JobId::mint();
    let (source, _) = isolation_sources::plant(&mut tx, id.into(), job, &job.to_string()).await;
    isolation_facts::plant(&mut tx, id.into(), source).await;
    let payload = CleanupRepository { repository: id.into() };
    // Of a kind that nobody here runs for a repository.
    outbox::push(&mut tx, id.into(), JobId::mint(), &payload, When { priority: 0, delay_ms: 3_600_000 })
        .await
        .unwrap();
    sqlx::query("INSERT INTO okt_vectors.points VALUES ($1, 'okt_facts/3', $2, '[0.6,0.8,0]')")
        .bind(id)
        .bind(source.uuid())
        .execute(&mut *tx)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let mut file = blobs(house).begin(id.into(), source);
    file.write(b"an original".as_slice().into()).await.unwrap();
    file.finish().await.unwrap();
}

fn blobs(house: &House) -> Blobs {
    Blobs::open(&house.service.api.app.config().providers.storage).unwrap()
}

#[tokio::test]
async fn a_deleted_repository_is_hidden_at_once_and_cleaned_up_behind_the_scenes() {
    let house = House::new().await;
    let (id, kept) = (house.repository().await, house.repository().await);
    for one in [id, kept] {
        furnish(&house, one, "default").await;
    }
    let (_, key) = api_key_in(&house.service, &house.ada, &["repository:read"], id).await;
    let other = house.service.beside().await;
    let preview = house.delete(&house.ada, &path(id, "?dry_run=true")).await;
    assert_eq!(preview.json()["counts"]["facts"], 6_000, "{preview:?}");
    for who in [&house.ada, &house.admin] {
        assert_eq!(other.get_as(&who.token, &path(id, "")).await.status, 200);
    }
    let before = house.count("default", &rows(kept)).await;
    assert_eq!(house.delete(&house.ada, &path(id, "")).await.status, 204);

    assert_eq!(other.get_as(&house.ada.token, &path(id, "")).await.status, 404, "on every process");
    assert_eq!(house.get(&house.admin, &path(id, "")).await.status, 404);
    assert_eq!(house.service.get_as(&key, &path(id, "")).await.status, 401, "its keys are over");
    assert_eq!(house.delete(&house.ada, &path(id, "")).await.status, 404);
    // Whoever may do everything hears of it from another process within a second.
    tokio::time::sleep(Duration::from_millis(1_050)).await;
    assert_eq!(other.get_as(&house.admin.token, &path(id, "")).await.status, 404);

    assert!(house.count("default", &rows(id)).await > 6_000);
    let worker = house.worker().await;
    house.until("default", &rows(id), 0).await;
    let tidy = format!(
        "SELECT count(*) FROM okt_system.repositories WHERE id = '{id}' AND untidy_since IS NULL AND name = '' AND owner_id IS NULL"
    );
    house.until("default", &tidy, 1).await;
    worker.stop().await;
    assert_eq!(house.count("default", &rows(kept)).await, before, "nobody else's");
    // Nobody writes there any more, however long ago they asked where it lives.
    let refused = house.service.api.app.databases().begin("default", id.into()).await.err().unwrap();
    assert_eq!(refused.to_string(), "repository not found");
    let waiting =
        format!("SELECT count(*) FROM okt_tasks.jobs WHERE repository_id = '{id}' AND finished_at IS NULL");
    assert_eq!(house.count("default", &waiting).await, 0, "its jobs are over");
    assert_eq!(
        blobs(&house).repositories().await.unwrap(),
        [kept.into()],
        "and its files, and nobody else's"
    );
}

#[tokio::test]
async fn a_clean_up_that_was_cut_off_or_never_asked_for_is_done_again() {
    let house = House::new().await;
    let id = house.repository().await;
    furnish(&house, id, "default").await;
    assert_eq!(house.delete(&house.ada, &path(id, "")).await.status, 204);
    // The one that was asked for is lost, and so is a part of the work.
    sql(&house.service, "DELETE FROM okt_tasks.jobs").await;
    sql(
        &house.service,
        &format!("DELETE FROM okt_repository.fact_concepts WHERE repository_id = '{id}' AND fact_no < 3000"),
    )
    .await;
    // One that was never finished, an hour ago.
    let half = house.repository().await;
    sql(
        &house.service,
        &format!("UPDATE okt_system.repositories SET state = 'creating' WHERE id = '{half}'"),
    )
    .await;
    sql(&house.service, "UPDATE okt_system.repositories SET untidy_since = now() - interval '2 hours' WHERE state <> 'active'").await;
    let databases = house.service.api.app.databases();
    let worker = house.worker().await;
    jobs::push(databases, &CleanupExpired {}, Duration::ZERO).await.unwrap();
    for one in [id, half] {
        house.until("default", &rows(one), 0).await;
    }
    house
        .until("default", "SELECT count(*) FROM okt_system.repositories WHERE untidy_since IS NOT NULL", 0)
        .await;
    worker.stop().await;
    let deleted = "SELECT count(*) FROM okt_system.repositories WHERE state = 'deleted'";
    let all = "SELECT count(*) FROM okt_system.repositories";
    assert_eq!((count(&house.service, deleted).await, count(&house.service, all).await), (1, 1));
    let settings = "SELECT count(*) FROM okt_system.repository_settings";
    assert_eq!(count(&house.service, settings).await, 0, "only the id is left");
}

/// Whoever makes and deletes all day leaves nothing but ids.
#[tokio::test]
async fn a_repository_that_lives_elsewhere_is_cleaned_up_there() {
    let house = House::new().await;
    let made = house.make(&house.admin, &json!({"name": "There", "database": "second"})).await;
    furnish(&house, id_of(&made), "second").await;
    let worker = house.worker().await;
    assert_eq!(
        house.send(&house.admin, Method::DELETE, &format!("{REPOSITORIES}/there"), &json!({})).await.status,
        204
    );
    house.until("second", &rows(id_of(&made)), 0).await;
    worker.stop().await;
}
