//! What any worker does for all: jobs that got lost, rows that are kept no longer, jobs that come back by themselves.

use std::time::{Duration, Instant};

use okt_model::JobState;

use crate::shop::{Shop, deliver, errand};

#[tokio::test]
async fn a_job_that_the_queue_lost_is_found_by_its_note() {
    let shop = Shop::open().await;
    let id = shop.push(&errand(1)).await;
    let other = shop.push(&errand(2)).await;
    // As after the queue's database was restored from yesterday's copy.
    shop.sql(
        "UPDATE okt_repository.outbox SET carried_at = clock_timestamp() - interval '20 minutes',
                arrived_at = clock_timestamp() - interval '20 minutes'",
    )
    .await;
    shop.sql(&format!(
        "UPDATE okt_repository.outbox SET arrived_at = clock_timestamp() WHERE job_id = '{other}'"
    ))
    .await;
    let worker = shop.worker(1, deliver).await;
    shop.until(id, JobState::Completed).await;
    assert_eq!(shop.effects(1).await, 1);
    assert!(shop.find(other).await.is_none(), "that one may still be on its way");
    worker.stop().await;
}

#[tokio::test]
async fn old_jobs_are_forgotten_with_their_notes_and_never_come_back() {
    let shop = Shop::open().await;
    let worker = shop
        .worker(1, |errand, ctx: okt_queue::JobContext| async move {
            if errand.n == 1 {
                Err(okt_model::Error::NotFound("source").into())
            } else {
                deliver(errand, ctx).await
            }
        })
        .await;
    let (bad, good) = (shop.push(&errand(1)).await, shop.push(&errand(2)).await);
    shop.until(bad, JobState::Discarded).await;
    shop.until(good, JobState::Completed).await;
    worker.stop().await;
    assert_eq!(shop.count("SELECT count(*) FROM okt_repository.outbox").await, 1);
    shop.sql(
        "UPDATE okt_tasks.jobs SET finished_at = clock_timestamp() - interval '3 days';
         UPDATE okt_repository.outbox SET arrived_at = clock_timestamp() - interval '8 days'",
    )
    .await;
    let worker = shop.worker(1, deliver).await;
    let deadline = Instant::now() + Duration::from_secs(10);
    while shop.find(good).await.is_some() {
        assert!(Instant::now() < deadline, "it is kept for ever");
    }
    assert!(shop.find(bad).await.is_some(), "it is kept for a week");
    worker.stop().await;
    shop.sql("UPDATE okt_tasks.jobs SET finished_at = clock_timestamp() - interval '8 days'").await;
    let worker = shop.worker(1, deliver).await;
    let deadline = Instant::now() + Duration::from_secs(10);
    while shop.count("SELECT count(*) FROM okt_repository.outbox").await > 0 || shop.find(bad).await.is_some()
    {
        assert!(Instant::now() < deadline, "it is kept for ever");
    }
    worker.stop().await;
    assert_eq!(shop.effects(1).await, 0);
}

#[tokio::test]
async fn a_second_worker_that_starts_takes_nothing_from_the_first() {
    let shop = Shop::open().await;
    let slow = |errand, ctx: okt_queue::JobContext| async move {
        tokio::time::sleep(Duration::from_secs(8)).await;
        deliver(errand, ctx).await
    };
    let first = shop.worker(1, slow).await;
    let id = shop.push(&errand(1)).await;
    shop.until(id, JobState::Running).await;
    let second = shop.worker(1, slow).await;
    let job = shop.until(id, JobState::Completed).await;
    assert_eq!((job.attempt, job.crashes), (1, 0), "{job:?}");
    first.stop().await;
    second.stop().await;
}

/// As when a process is killed, inside of one: nothing is said, and the connection is gone.
#[tokio::test]
async fn a_worker_that_vanishes_leaves_its_job_to_another() {
    let shop = Shop::open().await;
    let first = shop
        .worker(1, |_, _| async {
            tokio::time::sleep(Duration::from_mins(1)).await;
            Err(okt_model::Error::Overloaded("never").into())
        })
        .await;
    let id = shop.push(&errand(1)).await;
    shop.until(id, JobState::Running).await;
    drop(first);
    let gone = Instant::now();
    let second = shop.worker(1, deliver).await;
    let job = shop.until(id, JobState::Completed).await;
    assert!(gone.elapsed() < Duration::from_secs(15), "{:?}", gone.elapsed());
    assert_eq!((job.attempt, job.crashes), (2, 1), "{job:?}");
    assert!(job.failures[0].message.contains("died or fell silent"), "{job:?}");
    second.stop().await;
}

#[tokio::test]
async fn the_audit_is_cleaned_by_a_job_of_its_own_once_a_day() {
    let shop = Shop::open().await;
    shop.sql(
        "INSERT INTO okt_system.audit (id, at, actor_kind, action, object, request_id)
         SELECT gen_random_uuid(), now() - interval '31 days', 'service', 'old', '', '' FROM generate_series(1, 10)",
    )
    .await;
    let config = shop.database.config(&[]);
    let mut workers = Vec::new();
    for _ in 0..3 {
        workers.push(
            shop.start(&[], okt_testkit::jobs::kinds(&config), None, okt_jobs::periodic().unwrap()).await,
        );
    }
    let deadline = Instant::now() + Duration::from_secs(20);
    let done = "SELECT count(*) FROM okt_tasks.jobs WHERE kind IN ('cleanup_audit', 'cleanup_expired') AND state = 'completed'";
    while shop.count(done).await < 2 {
        assert!(Instant::now() < deadline, "it was not cleaned");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(shop.count("SELECT count(*) FROM okt_system.audit WHERE action = 'old'").await, 0);
    // Unless midnight has just passed.
    let jobs = shop.count("SELECT count(*) FROM okt_tasks.jobs WHERE kind = 'cleanup_audit'").await;
    assert!((1..=2).contains(&jobs), "{jobs}");
    let deleted =
        "SELECT sum((output ->> 'deleted')::bigint)::bigint FROM okt_tasks.jobs WHERE kind = 'cleanup_audit'";
    assert_eq!(shop.count(deleted).await, 10);
    for worker in workers {
        worker.stop().await;
    }
}
