//! How jobs end that do not simply succeed, and what they say.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use okt_model::{Error, JobState, Progress, Waiting};
use okt_queue::jobs::{TenantFilter, cancel, retry};
use okt_queue::{JobContext, JobError};
use okt_testkit::wait::eventually;

use crate::jobs::test_queue::{Errand, TestQueue, deliver, errand};

#[tokio::test]
async fn a_failure_that_may_pass_is_tried_again_and_the_history_is_kept() {
    let queue = TestQueue::open().await;
    let worker = queue
        .worker(1, |errand, ctx: JobContext| async move {
            static RUNS: AtomicUsize = AtomicUsize::new(0);
            match RUNS.fetch_add(1, Ordering::Relaxed) {
                0 => Err(Error::Unavailable { service: "the model", cause: "no answer".into() }.into()),
                1 => Err(JobError::RetryAfter {
                    error: Error::Overloaded("too many calls"),
                    after: Duration::from_hours(2),
                }),
                _ => deliver(errand, ctx).await,
            }
        })
        .await;
    let id = queue.push(&errand(1)).await;
    let job = queue.until(id, JobState::Retryable).await;
    assert_eq!(job.waiting_for, Some(Waiting::Retry));
    assert_eq!(job.failures[0].message, "the model did not answer");
    assert!(job.scheduled_at <= job.failures[0].at + Duration::from_secs(6), "{job:?}");
    queue.sql("UPDATE okt_tasks.jobs SET scheduled_at = clock_timestamp()").await;
    let deadline = Instant::now() + Duration::from_secs(10);
    let job = loop {
        let job = queue.until(id, JobState::Retryable).await;
        if job.failures.len() == 2 {
            break job;
        }
        assert!(Instant::now() < deadline);
    };
    // What the other side asked for is respected, however long our own wait would be.
    assert!(job.scheduled_at > job.failures[1].at + Duration::from_mins(119), "{job:?}");
    // Nobody has to wait for that.
    assert_eq!(
        retry(&queue.databases, TenantFilter::Repository(queue.repository), id).await.unwrap(),
        Some(())
    );
    queue.until(id, JobState::Completed).await;
    assert_eq!(queue.effects(1).await, 1);
    worker.stop().await;
}

#[tokio::test]
async fn a_failure_that_can_not_pass_ends_at_once_and_can_be_tried_again_by_hand() {
    let queue = TestQueue::open().await;
    let works = Arc::new(AtomicUsize::new(0));
    let switch = Arc::clone(&works);
    let worker = queue
        .worker(1, move |errand, ctx| {
            let works = switch.load(Ordering::Relaxed);
            async move {
                match works {
                    0 => Err(Error::NotFound("source").into()),
                    1 => Err(Error::internal("the secret inside").into()),
                    _ => deliver(errand, ctx).await,
                }
            }
        })
        .await;
    let id = queue.push(&errand(1)).await;
    let job = queue.until(id, JobState::Discarded).await;
    assert_eq!((job.attempt, &*job.failures[0].message), (1, "source not found"));
    works.store(1, Ordering::Relaxed);
    retry(&queue.databases, TenantFilter::All, id).await.unwrap().unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    let job = loop {
        let job = queue.until(id, JobState::Discarded).await;
        if job.failures.len() == 2 {
            break job;
        }
        assert!(Instant::now() < deadline);
    };
    assert!(job.failures[1].message.starts_with("internal error"), "{job:?}");
    assert!(!format!("{job:?}").contains("secret"), "{job:?}");
    works.store(2, Ordering::Relaxed);
    retry(&queue.databases, TenantFilter::All, id).await.unwrap().unwrap();
    queue.until(id, JobState::Completed).await;
    assert_eq!(queue.effects(1).await, 1);
    assert_eq!(retry(&queue.databases, TenantFilter::All, id).await.unwrap(), None, "it has ended well");
    worker.stop().await;
}

#[tokio::test]
async fn attempts_run_out_and_say_so() {
    let queue = TestQueue::open().await;
    let worker = queue.worker(1, |_, _| async { Err(Error::Overloaded("always full").into()) }).await;
    let id = queue.push(&errand(1)).await;
    queue.until(id, JobState::Retryable).await;
    queue.sql("UPDATE okt_tasks.jobs SET attempt = 9, scheduled_at = clock_timestamp()").await;
    let job = queue.until(id, JobState::Discarded).await;
    let last = &job.failures.last().unwrap().message;
    assert_eq!(last, "always full (discarded after 10 attempts)");
    worker.stop().await;
}

#[tokio::test]
async fn what_has_to_wait_says_why_and_loses_no_attempt() {
    let queue = TestQueue::open().await;
    let worker = queue
        .worker(1, |errand, ctx: JobContext| async move {
            static ASKED: AtomicUsize = AtomicUsize::new(0);
            if ASKED.fetch_add(1, Ordering::Relaxed) < 2 {
                return Err(JobError::Waits { why: Waiting::Budget, delay: Duration::from_hours(1) });
            }
            deliver(errand, ctx).await
        })
        .await;
    let id = queue.push(&errand(1)).await;
    for _ in 0..2 {
        let job = queue.until(id, JobState::Scheduled).await;
        assert_eq!((job.attempt, job.waiting_for), (0, Some(Waiting::Budget)));
        assert!(job.failures.is_empty(), "{job:?}");
        queue.sql("UPDATE okt_tasks.jobs SET state = 'available' WHERE state = 'scheduled'; NOTIFY okt_jobs_waiting, 'errand'").await;
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    let job = queue.until(id, JobState::Completed).await;
    assert_eq!(job.attempt, 1);
    worker.stop().await;
}

#[tokio::test]
async fn cancelling_reaches_what_waits_and_what_runs() {
    let queue = TestQueue::open().await;
    let worker = queue
        .worker(1, |errand, ctx: JobContext| async move {
            ctx.progress(Progress { stage: "waiting".into(), done: 1, total: Some(3), message: None });
            tokio::time::sleep(Duration::from_secs(30)).await;
            deliver(errand, ctx).await
        })
        .await;
    let running = queue.push(&errand(1)).await;
    queue.until(running, JobState::Running).await;
    let waiting = queue.push(&errand(2)).await;
    let seen = queue.until(waiting, JobState::Available).await;
    assert_eq!(seen.waiting_for, Some(Waiting::Slot));
    let theirs = TenantFilter::Repository(okt_model::RepositoryId::mint());
    assert_eq!(cancel(&queue.databases, theirs, waiting).await.unwrap(), None, "not somebody else's");

    let ours = TenantFilter::Repository(queue.repository);
    assert_eq!(cancel(&queue.databases, ours, waiting).await.unwrap(), Some(JobState::Cancelled));
    eventually(Duration::from_secs(20), "the job says how far it is", async || {
        queue.find(running).await.unwrap().progress.ok_or("nothing")
    })
    .await;
    let asked = Instant::now();
    assert_eq!(cancel(&queue.databases, ours, running).await.unwrap(), Some(JobState::Running));
    queue.until(running, JobState::Cancelled).await;
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    assert_eq!(cancel(&queue.databases, ours, running).await.unwrap(), None, "it has ended");
    assert_eq!(queue.count("SELECT count(*) FROM done").await, 0);
    worker.stop().await;
}

#[tokio::test]
async fn a_graceful_stop_gives_jobs_back_without_losing_an_attempt() {
    let queue = TestQueue::open().await;
    let settings = [("SVC__SERVER__DRAIN_TIMEOUT", "500ms")];
    let slow = Arc::new(|errand: Errand, ctx: JobContext| -> futures_util::future::BoxFuture<'static, _> {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(if errand.n == 1 { 30_000 } else { 200 })).await;
            deliver(errand, ctx).await
        })
    });
    let worker = queue.worker_with(&settings, 2, slow).await;
    let (long, short) = (queue.push(&errand(1)).await, queue.push(&errand(2)).await);
    queue.until(long, JobState::Running).await;
    queue.until(short, JobState::Running).await;
    let stopping = Instant::now();
    worker.stop().await;
    assert!(stopping.elapsed() < Duration::from_secs(15), "{:?}", stopping.elapsed());
    let job = queue.find(long).await.unwrap();
    assert_eq!((job.state, job.attempt, job.crashes), (JobState::Available, 0, 0), "{job:?}");
    assert!(job.failures.is_empty(), "{job:?}");
    assert_eq!(job.waiting_for, Some(Waiting::Worker), "nobody is left to run it");
    assert_eq!(queue.find(short).await.unwrap().state, JobState::Completed, "it had the time");
    assert_eq!(queue.count("SELECT count(*) FROM okt_tasks.workers").await, 0);
    let next = queue.worker(2, deliver).await;
    let job = queue.until(long, JobState::Completed).await;
    assert_eq!(job.attempt, 1);
    next.stop().await;
}

#[tokio::test]
async fn a_job_that_can_not_be_read_waits_as_one_of_an_unknown_kind_does() {
    let queue = TestQueue::open().await;
    let (broken, strange) = (queue.push(&errand(1)).await, queue.push(&errand(2)).await);
    // Written by another release.
    queue
        .sql(&format!(
            "UPDATE okt_repository.outbox SET payload = '{{\"m\": 1}}' WHERE job_id = '{broken}';
         UPDATE okt_repository.outbox SET kind = 'unheard_of' WHERE job_id = '{strange}'"
        ))
        .await;
    let worker = queue.worker(1, deliver).await;
    let job = queue.until(broken, JobState::Scheduled).await;
    assert_eq!((job.waiting_for, job.attempt), (Some(Waiting::Worker), 0), "{job:?}");
    let job = queue.until(strange, JobState::Available).await;
    assert_eq!(job.waiting_for, Some(Waiting::Worker), "{job:?}");
    worker.stop().await;
}

/// As after a rescue that was wrong: the same process claims what it is still running.
#[tokio::test]
async fn a_job_that_comes_back_to_the_process_that_runs_it_is_ended_by_the_newer_run() {
    let queue = TestQueue::open().await;
    let worker = queue
        .worker(2, |errand, ctx: JobContext| async move {
            tokio::time::sleep(Duration::from_millis(1500)).await;
            deliver(errand, ctx).await
        })
        .await;
    let id = queue.push(&errand(1)).await;
    queue.until(id, JobState::Running).await;
    queue
        .sql("UPDATE okt_tasks.jobs SET state = 'available', owner = NULL; NOTIFY okt_jobs_waiting, 'errand'")
        .await;
    let job = queue.until(id, JobState::Completed).await;
    assert_eq!((job.attempt, job.crashes, queue.effects(1).await), (2, 0, 1), "{job:?}");
    worker.stop().await;
}

/// As after a claim whose answer got lost: the queue says that the process has it, and the process knows nothing.
#[tokio::test]
async fn a_job_that_was_claimed_without_hearing_of_it_is_given_back_and_costs_nothing() {
    let queue = TestQueue::open().await;
    let id = queue.push(&errand(1)).await;
    let worker = queue.worker(1, deliver).await;
    queue.until(id, JobState::Completed).await;
    let lost = queue.push(&errand(2)).await;
    queue.until(lost, JobState::Completed).await;
    queue.sql(&format!(
        "INSERT INTO okt_repository.outbox (repository_id, job_id, kind, payload, priority, scheduled_at, arrived_at)
         SELECT repository_id, id, kind, payload, 0, now(), now() FROM okt_tasks.jobs WHERE id = '{lost}';
         UPDATE okt_tasks.jobs SET state = 'running', finished_at = NULL, finished_in = NULL,
                owner = (SELECT id FROM okt_tasks.workers) WHERE id = '{lost}';
         SELECT pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE '%pg_advisory_lock%'"
    ))
    .await;
    let job = queue.until(lost, JobState::Completed).await;
    assert_eq!((job.attempt, job.crashes, queue.effects(2).await), (1, 0, 2), "{job:?}");
    worker.stop().await;
}

#[tokio::test]
async fn what_a_job_spent_is_kept_however_short_it_was_and_however_often_it_ran() {
    let queue = TestQueue::open().await;
    let worker = queue
        .worker(1, |errand, ctx: JobContext| async move {
            ctx.spent(okt_model::Cost {
                tokens_in: 10,
                tokens_out: 1,
                usd: okt_model::Money::from_micros(250_000),
            });
            if ctx.attempt() == 1 {
                return Err(Error::Overloaded("once more").into());
            }
            deliver(errand, ctx).await
        })
        .await;
    let id = queue.push(&errand(1)).await;
    let job = queue.until(id, JobState::Retryable).await;
    assert_eq!(job.cost.tokens_in, 10);
    queue.sql("UPDATE okt_tasks.jobs SET scheduled_at = clock_timestamp()").await;
    let job = queue.until(id, JobState::Completed).await;
    assert_eq!((job.cost.tokens_in, job.cost.tokens_out), (20, 2));
    assert_eq!(job.cost.usd, okt_model::Money::from_micros(500_000), "{job:?}");
    worker.stop().await;
}
