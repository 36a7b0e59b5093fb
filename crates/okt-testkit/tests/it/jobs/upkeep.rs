//! What any worker does for all: jobs that got lost, rows that are kept no longer, jobs that come back by themselves.

use std::time::{Duration, Instant};

use okt_model::JobState;
use okt_testkit::cluster::free_port;

use crate::jobs::test_queue::{TestQueue, deliver, errand};

#[tokio::test]
async fn a_job_that_the_queue_lost_is_found_by_its_outbox_entry() {
    let queue = TestQueue::open().await;
    let id = queue.push(&errand(1)).await;
    let other = queue.push(&errand(2)).await;
    // As after the queue's database was restored from yesterday's copy.
    queue
        .sql(
            "UPDATE okt_repository.outbox SET carried_at = clock_timestamp() - interval '20 minutes',
                arrived_at = clock_timestamp() - interval '20 minutes'",
        )
        .await;
    queue
        .sql(&format!(
            "UPDATE okt_repository.outbox SET arrived_at = clock_timestamp() WHERE job_id = '{other}'"
        ))
        .await;
    let worker = queue.worker(1, deliver).await;
    queue.until(id, JobState::Completed).await;
    assert_eq!(queue.effects(1).await, 1);
    assert!(queue.find(other).await.is_none(), "that one may still be on its way");
    worker.stop().await;
}

#[tokio::test]
async fn old_jobs_are_forgotten_with_their_notes_and_never_come_back() {
    let queue = TestQueue::open().await;
    let worker = queue
        .worker(1, |errand, ctx: okt_queue::JobContext| async move {
            if errand.n == 1 {
                Err(okt_model::Error::NotFound("source").into())
            } else {
                deliver(errand, ctx).await
            }
        })
        .await;
    let (bad, good) = (queue.push(&errand(1)).await, queue.push(&errand(2)).await);
    queue.until(bad, JobState::Discarded).await;
    queue.until(good, JobState::Completed).await;
    worker.stop().await;
    assert_eq!(queue.count("SELECT count(*) FROM okt_repository.outbox").await, 1);
    queue
        .sql(
            "UPDATE okt_tasks.jobs SET finished_at = clock_timestamp() - interval '3 days';
         UPDATE okt_repository.outbox SET arrived_at = clock_timestamp() - interval '8 days'",
        )
        .await;
    let worker = queue.worker(1, deliver).await;
    queue.until_forgotten(good).await;
    assert!(queue.find(bad).await.is_some(), "it is kept for a week");
    worker.stop().await;
    queue.sql("UPDATE okt_tasks.jobs SET finished_at = clock_timestamp() - interval '8 days'").await;
    let worker = queue.worker(1, deliver).await;
    queue.until_forgotten(bad).await;
    queue.until_none("SELECT count(*) FROM okt_repository.outbox").await;
    worker.stop().await;
    assert_eq!(queue.effects(1).await, 0);
}

/// As many as are looked at in one go wait for their database to come back.
#[tokio::test]
async fn old_jobs_of_a_database_that_is_away_keep_nobody_elses() {
    let queue = TestQueue::open().await;
    queue.sql(
        "INSERT INTO okt_tasks.jobs (id, repository_id, database, kind, state, priority, turn, payload, max_attempts,
                                     finished_at)
         SELECT gen_random_uuid(), gen_random_uuid(), database, 'errand', 'discarded', 0, 0, '{}', 10,
                clock_timestamp() - age
           FROM (SELECT 'away' AS database, interval '9 days' AS age FROM generate_series(1, 2500)
                  UNION ALL
                 SELECT 'default', interval '8 days') AS old",
    )
    .await;
    let nowhere = format!("postgres://okt@127.0.0.1:{}/okt", free_port());
    let settings = [("SVC__DATABASES__AWAY__URL", &*nowhere)];
    let body = std::sync::Arc::new(|errand, ctx| -> futures_util::future::BoxFuture<'static, _> {
        Box::pin(deliver(errand, ctx))
    });
    let worker = queue.worker_with(&settings, 1, body).await;
    queue.until_none("SELECT count(*) FROM okt_tasks.jobs WHERE database = 'default'").await;
    assert_eq!(queue.count("SELECT count(*) FROM okt_tasks.jobs").await, 2_500);
    worker.stop().await;
}

#[tokio::test]
async fn a_second_worker_that_starts_takes_nothing_from_the_first() {
    let queue = TestQueue::open().await;
    let slow = |errand, ctx: okt_queue::JobContext| async move {
        tokio::time::sleep(Duration::from_secs(8)).await;
        deliver(errand, ctx).await
    };
    let first = queue.worker(1, slow).await;
    let id = queue.push(&errand(1)).await;
    queue.until(id, JobState::Running).await;
    let second = queue.worker(1, slow).await;
    let job = queue.until(id, JobState::Completed).await;
    assert_eq!((job.attempt, job.crashes), (1, 0), "{job:?}");
    first.stop().await;
    second.stop().await;
}

/// As when a process is killed, inside of one: nothing is said, and the connection is gone.
#[tokio::test]
async fn a_worker_that_vanishes_leaves_its_job_to_another() {
    let queue = TestQueue::open().await;
    let first = queue
        .worker(1, |_, _| async {
            tokio::time::sleep(Duration::from_mins(1)).await;
            Err(okt_model::Error::Overloaded("never").into())
        })
        .await;
    let id = queue.push(&errand(1)).await;
    queue.until(id, JobState::Running).await;
    drop(first);
    let gone = Instant::now();
    let second = queue.worker(1, deliver).await;
    let job = queue.until(id, JobState::Completed).await;
    assert!(gone.elapsed() < Duration::from_secs(15), "{:?}", gone.elapsed());
    assert_eq!((job.attempt, job.crashes), (2, 1), "{job:?}");
    assert!(job.failures[0].message.contains("died or stopped sending heartbeats"), "{job:?}");
    second.stop().await;
}

#[tokio::test]
async fn the_audit_and_keys_are_cleaned_by_jobs_of_their_own() {
    let queue = TestQueue::open().await;
    // From before keys had to end.
    queue.sql(
        "INSERT INTO okt_system.users (id, email, email_key, name, password_hash)
         VALUES ('00000000-0000-0000-0000-000000000001', 'a@b', 'a@b', 'a', '');
         INSERT INTO okt_system.api_keys (id, user_id, name, prefix, hash, permissions, expires_at)
         SELECT gen_random_uuid(), '00000000-0000-0000-0000-000000000001', coalesce(days::text, 'none'), '', sha256(coalesce(days::text, '')::bytea), '{}',
                now() + days * interval '1 day'
           FROM unnest('{NULL,1,4000}'::int[]) AS days",
    )
    .await;
    queue.sql(
        "INSERT INTO okt_system.audit (id, at, actor_kind, action, object, request_id)
         SELECT gen_random_uuid(), now() - interval '31 days', 'service', 'old', '', '' FROM generate_series(1, 10)",
    )
    .await;
    let config = queue.database.config(&[]);
    let mut workers = Vec::new();
    for _ in 0..3 {
        workers.push(
            queue
                .start(
                    &[],
                    okt_testkit::jobs::kinds(&config).await,
                    None,
                    okt_jobs::periodic(&config).unwrap(),
                )
                .await,
        );
    }
    let done = "SELECT count(*) FROM okt_tasks.jobs WHERE kind IN ('cleanup_audit', 'cleanup_expired') AND state = 'completed'";
    queue.until_count(done, 2).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(queue.count("SELECT count(*) FROM okt_system.audit WHERE action = 'old'").await, 0);
    // Unless midnight has just passed.
    let jobs = queue.count("SELECT count(*) FROM okt_tasks.jobs WHERE kind = 'cleanup_audit'").await;
    assert!((1..=2).contains(&jobs), "{jobs}");
    let deleted =
        "SELECT sum((output ->> 'deleted')::bigint)::bigint FROM okt_tasks.jobs WHERE kind = 'cleanup_audit'";
    assert_eq!(queue.count(deleted).await, 10);
    let within =
        "SELECT count(*) FROM okt_system.api_keys WHERE expires_at < now() + interval '90 days 1 hour'";
    assert_eq!(queue.count(within).await, 3, "none lives for longer than api_keys.max_ttl from now");
    let soon = "SELECT count(*) FROM okt_system.api_keys WHERE expires_at < now() + interval '2 days'";
    assert_eq!(queue.count(soon).await, 1, "one that ends sooner does");
    for worker in workers {
        worker.stop().await;
    }
}

/// One that has none would never run, and nobody would hear of it.
#[tokio::test]
async fn every_kind_of_job_has_a_queue() {
    let database = okt_testkit::db::TestDatabase::migrated().await;
    let config = database.config(&[]);
    let kinds = okt_testkit::jobs::kinds(&config).await;
    let without: Vec<&str> = kinds.names().filter(|kind| !config.task.queues.contains_key(*kind)).collect();
    assert!(without.is_empty(), "{without:?}");
    assert!(kinds.names().any(|kind| kind == "sweep_search"));
}
