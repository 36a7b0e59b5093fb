//! From the outbox entry to the effect: once, or not at all.

use std::time::Duration;

use okt_model::{JobId, JobState};
use okt_queue::JobError;
use okt_store::outbox::{self, When};
use okt_testkit::wait::eventually;

use crate::jobs::test_queue::{Errand, TestQueue, deliver, errand, write};

#[tokio::test]
async fn a_job_is_done_if_and_only_if_the_transaction_that_wanted_it_was_committed() {
    let queue = TestQueue::open().await;
    let (wanted, unwanted) = (JobId::mint(), JobId::mint());
    let mut tx = queue.databases.begin("default", queue.repository).await.unwrap();
    outbox::push(&mut tx, queue.repository, unwanted, &errand(1), When::default()).await.unwrap();
    drop(tx);
    let mut tx = queue.databases.begin("default", queue.repository).await.unwrap();
    outbox::push(&mut tx, queue.repository, wanted, &errand(2), When::default()).await.unwrap();
    let worker = queue.worker(2, deliver).await;
    // The worker runs, and what is not committed is not there.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(queue.find(wanted).await.is_none());
    tx.commit().await.unwrap();
    let job = queue.until(wanted, JobState::Completed).await;
    assert_eq!((job.attempt, job.crashes), (1, 0));
    assert_eq!((queue.effects(1).await, queue.effects(2).await), (0, 1));
    assert!(queue.find(unwanted).await.is_none());
    assert_eq!(
        queue.count("SELECT count(*) FROM okt_repository.outbox").await,
        0,
        "the outbox entry went with the effect"
    );
    worker.stop().await;
}

#[tokio::test]
async fn a_note_that_is_carried_again_changes_nothing() {
    let queue = TestQueue::open().await;
    // It fails first, so that the outbox entry is still there when the job has run.
    let worker = queue
        .worker(2, |errand, ctx| async move {
            if ctx.attempt() == 1 {
                return Err(JobError::Failed(okt_model::Error::Overloaded("come back later")));
            }
            deliver(errand, ctx).await
        })
        .await;
    let id = queue.push(&errand(1)).await;
    queue.until(id, JobState::Retryable).await;
    queue.sql("UPDATE okt_repository.outbox SET carried_at = NULL, arrived_at = NULL").await;
    queue.until_none("SELECT count(*) FROM okt_repository.outbox WHERE arrived_at IS NULL").await;
    queue.sql("UPDATE okt_tasks.jobs SET scheduled_at = clock_timestamp()").await;
    queue.until(id, JobState::Completed).await;
    // Once more, after its end: there is no outbox entry, so a job that runs again has no effect.
    queue.sql("UPDATE okt_tasks.jobs SET state = 'available', finished_at = NULL, finished_in = NULL").await;
    let job = queue.until(id, JobState::Completed).await;
    assert_eq!((job.attempt, queue.effects(1).await), (3, 1));
    assert_eq!(queue.count("SELECT count(*) FROM okt_tasks.jobs").await, 1);
    worker.stop().await;
}

#[tokio::test]
async fn two_runs_at_the_same_time_have_one_effect() {
    let queue = TestQueue::open().await;
    let slow = |errand: Errand, ctx: okt_queue::JobContext| async move {
        let mut tx = ctx.begin().await?;
        tokio::time::sleep(Duration::from_millis(300)).await;
        write(&mut tx, errand.n).await?;
        tx.commit(None).await
    };
    let (first, second) = (queue.worker(1, slow).await, queue.worker(1, slow).await);
    let id = queue.push(&errand(1)).await;
    queue.until(id, JobState::Running).await;
    // As a rescue that was wrong would do it.
    queue.sql("UPDATE okt_tasks.jobs SET state = 'available', owner = NULL").await;
    queue.until(id, JobState::Completed).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(queue.effects(1).await, 1);
    assert_eq!(queue.count("SELECT claims::bigint FROM okt_tasks.jobs").await, 2, "it did run twice");
    first.stop().await;
    second.stop().await;
}

#[tokio::test]
async fn successors_come_with_the_effect_and_only_with_it() {
    let queue = TestQueue::open().await;
    let worker = queue
        .worker(4, |errand: Errand, ctx| async move {
            let mut tx = ctx.begin().await?;
            write(&mut tx, errand.n).await?;
            if errand.n < 3 {
                let next = Errand { n: errand.n + 1, key: None };
                tx.push(&next, When::default()).await?;
            }
            if errand.n == 2 && ctx.attempt() == 1 {
                // The transaction is dropped with everything in it.
                return Err(JobError::Failed(okt_model::Error::Overloaded("not now")));
            }
            tx.commit(Some(serde_json::json!({ "n": errand.n }))).await
        })
        .await;
    let first = queue.push(&errand(1)).await;
    let job = queue.until(first, JobState::Completed).await;
    assert_eq!(job.output.unwrap()["n"], 1);
    eventually(Duration::from_secs(20), "the chain is complete", async || {
        queue
            .sql("UPDATE okt_tasks.jobs SET scheduled_at = clock_timestamp() WHERE state = 'retryable'")
            .await;
        if queue.effects(3).await == 0 { Err("the third is missing") } else { Ok(()) }
    })
    .await;
    assert_eq!([queue.effects(1).await, queue.effects(2).await, queue.effects(3).await], [1, 1, 1]);
    assert_eq!(queue.count("SELECT count(*) FROM okt_tasks.jobs").await, 3);
    worker.stop().await;
}

#[tokio::test]
async fn jobs_that_wait_for_the_world_hold_no_connection() {
    let queue = TestQueue::open().await;
    let settings = [("SVC__DATABASES__DEFAULT__MAX_CONNS", "2")];
    let deed = std::sync::Arc::new(
        |errand: Errand, ctx: okt_queue::JobContext| -> futures_util::future::BoxFuture<'static, _> {
            Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(700)).await;
                deliver(errand, ctx).await
            })
        },
    );
    let worker = queue.worker_with(&settings, 100, deed).await;
    let mut last = None;
    for n in 0..100 {
        last = Some(queue.push(&errand(n)).await);
    }
    queue.until(last.unwrap(), JobState::Running).await;
    queue.until_count("SELECT count(*) FROM done", 100).await;
    assert_eq!(queue.count("SELECT count(DISTINCT n) FROM done").await, 100);
    worker.stop().await;
}
