//! From the note to the effect: once, or not at all.

use okt_model::{JobId, JobState};
use okt_queue::JobError;
use okt_store::outbox::{self, When};

use crate::shop::{Errand, Shop, deliver, errand, write};

#[tokio::test]
async fn a_job_is_done_if_and_only_if_the_transaction_that_wanted_it_was_committed() {
    let shop = Shop::open().await;
    let (wanted, unwanted) = (JobId::mint(), JobId::mint());
    let mut tx = shop.databases.begin("default", shop.repository).await.unwrap();
    outbox::push(&mut tx, shop.repository, unwanted, &errand(1), When::default()).await.unwrap();
    drop(tx);
    let mut tx = shop.databases.begin("default", shop.repository).await.unwrap();
    outbox::push(&mut tx, shop.repository, wanted, &errand(2), When::default()).await.unwrap();
    let worker = shop.worker(2, deliver).await;
    // The worker runs, and what is not committed is not there.
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    assert!(shop.find(wanted).await.is_none());
    tx.commit().await.unwrap();
    let job = shop.until(wanted, JobState::Completed).await;
    assert_eq!((job.attempt, job.crashes), (1, 0));
    assert_eq!((shop.effects(1).await, shop.effects(2).await), (0, 1));
    assert!(shop.find(unwanted).await.is_none());
    assert_eq!(
        shop.count("SELECT count(*) FROM okt_repository.outbox").await,
        0,
        "the note went with the effect"
    );
    worker.stop().await;
}

#[tokio::test]
async fn a_note_that_is_carried_again_changes_nothing() {
    let shop = Shop::open().await;
    // It fails first, so that the note is still there when the job has run.
    let worker = shop
        .worker(2, |errand, ctx| async move {
            if ctx.attempt() == 1 {
                return Err(JobError::Failed(okt_model::Error::Overloaded("come back later")));
            }
            deliver(errand, ctx).await
        })
        .await;
    let id = shop.push(&errand(1)).await;
    shop.until(id, JobState::Retryable).await;
    shop.sql("UPDATE okt_repository.outbox SET carried_at = NULL, arrived_at = NULL").await;
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while shop.count("SELECT count(*) FROM okt_repository.outbox WHERE arrived_at IS NULL").await > 0 {
        assert!(std::time::Instant::now() < deadline, "it was not carried");
    }
    shop.sql("UPDATE okt_tasks.jobs SET scheduled_at = clock_timestamp()").await;
    shop.until(id, JobState::Completed).await;
    // Once more, after its end: there is no note, so a job that runs again has no effect.
    shop.sql("UPDATE okt_tasks.jobs SET state = 'available', finished_at = NULL, finished_in = NULL").await;
    let job = shop.until(id, JobState::Completed).await;
    assert_eq!((job.attempt, shop.effects(1).await), (3, 1));
    assert_eq!(shop.count("SELECT count(*) FROM okt_tasks.jobs").await, 1);
    worker.stop().await;
}

#[tokio::test]
async fn two_runs_at_the_same_time_have_one_effect() {
    let shop = Shop::open().await;
    let slow = |errand: Errand, ctx: okt_queue::JobContext| async move {
        let mut effect = ctx.begin().await?;
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        write(&mut effect, errand.n).await?;
        effect.commit(None).await
    };
    let (first, second) = (shop.worker(1, slow).await, shop.worker(1, slow).await);
    let id = shop.push(&errand(1)).await;
    shop.until(id, JobState::Running).await;
    // As a rescue that was wrong would do it.
    shop.sql("UPDATE okt_tasks.jobs SET state = 'available', owner = NULL").await;
    shop.until(id, JobState::Completed).await;
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    assert_eq!(shop.effects(1).await, 1);
    assert_eq!(shop.count("SELECT claims::bigint FROM okt_tasks.jobs").await, 2, "it did run twice");
    first.stop().await;
    second.stop().await;
}

#[tokio::test]
async fn successors_come_with_the_effect_and_only_with_it() {
    let shop = Shop::open().await;
    let worker = shop
        .worker(4, |errand: Errand, ctx| async move {
            let mut effect = ctx.begin().await?;
            write(&mut effect, errand.n).await?;
            if errand.n < 3 {
                let next = Errand { n: errand.n + 1, key: None };
                effect.push(&next, When::default()).await?;
            }
            if errand.n == 2 && ctx.attempt() == 1 {
                // The transaction is dropped with everything in it.
                return Err(JobError::Failed(okt_model::Error::Overloaded("not now")));
            }
            effect.commit(Some(serde_json::json!({ "n": errand.n }))).await
        })
        .await;
    let first = shop.push(&errand(1)).await;
    let job = shop.until(first, JobState::Completed).await;
    assert_eq!(job.output.unwrap()["n"], 1);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while shop.effects(3).await == 0 {
        shop.sql("UPDATE okt_tasks.jobs SET scheduled_at = clock_timestamp() WHERE state = 'retryable'")
            .await;
        assert!(std::time::Instant::now() < deadline, "the chain broke");
    }
    assert_eq!([shop.effects(1).await, shop.effects(2).await, shop.effects(3).await], [1, 1, 1]);
    assert_eq!(shop.count("SELECT count(*) FROM okt_tasks.jobs").await, 3);
    worker.stop().await;
}

#[tokio::test]
async fn jobs_that_wait_for_the_world_hold_no_connection() {
    let shop = Shop::open().await;
    let settings = [("SVC__DATABASES__DEFAULT__MAX_CONNS", "2")];
    let deed = std::sync::Arc::new(
        |errand: Errand, ctx: okt_queue::JobContext| -> futures_util::future::BoxFuture<'static, _> {
            Box::pin(async move {
                tokio::time::sleep(std::time::Duration::from_millis(700)).await;
                deliver(errand, ctx).await
            })
        },
    );
    let worker = shop.worker_with(&settings, 100, deed).await;
    let mut last = None;
    for n in 0..100 {
        last = Some(shop.push(&errand(n)).await);
    }
    shop.until(last.unwrap(), JobState::Running).await;
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while shop.count("SELECT count(*) FROM done").await < 100 {
        assert!(std::time::Instant::now() < deadline, "they held each other up");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(shop.count("SELECT count(DISTINCT n) FROM done").await, 100);
    worker.stop().await;
}
