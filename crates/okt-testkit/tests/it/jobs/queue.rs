//! Who comes when.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use okt_model::{JobState, NewJob, RepositoryId, Waiting};
use okt_queue::JobContext;
use okt_store::outbox::When;
use okt_testkit::jobs::waiting;
use sqlx::AssertSqlSafe;

use crate::jobs::test_queue::{Errand, TestQueue, deliver, errand};

fn job(repository: RepositoryId, n: i64) -> NewJob {
    waiting(repository, &errand(n))
}

async fn enqueue(queue: &TestQueue, jobs: &[NewJob]) {
    let mut conn = queue.databases.acquire_tasks().await.expect("a connection");
    okt_queue::enqueue(&mut conn, jobs).await.expect("they are queued");
}

#[tokio::test]
async fn repositories_take_turns_and_within_one_the_first_comes_first() {
    let queue = TestQueue::open().await;
    let (a, b, c) = (RepositoryId::mint(), RepositoryId::mint(), RepositoryId::mint());
    let crowd: Vec<_> = (0..200).map(|n| job(a, n)).collect();
    enqueue(&queue, &crowd).await;
    enqueue(&queue, &[job(b, 1000), job(b, 1001), job(b, 1002)]).await;
    enqueue(&queue, &[job(c, 2000)]).await;
    let mut urgent = job(a, 3000);
    urgent.priority = -1;
    enqueue(&queue, &[urgent]).await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&order);
    let worker = queue
        .worker(1, move |errand: Errand, ctx: JobContext| {
            let seen = Arc::clone(&seen);
            async move {
                // The one place for newcomers has a life of its own.
                seen.lock().unwrap().push(errand.n);
                ctx.begin().await?.commit(None).await
            }
        })
        .await;
    let last = crowd.last().unwrap().id;
    queue.until(last, JobState::Completed).await;
    worker.stop().await;
    let order = order.lock().unwrap().clone();
    let place = |n: i64| order.iter().position(|seen| *seen == n).unwrap();
    assert!(place(3000) <= 1, "{order:?}");
    assert!(place(1000) <= 5 && place(2000) <= 5, "{order:?}");
    assert!(place(1002) <= 10, "{order:?}");
    let of_a: Vec<_> = order.iter().filter(|n| **n < 200).collect();
    assert!(of_a.is_sorted(), "{of_a:?}");
}

/// A tenant that comes back is not punished for what it was given before.
#[tokio::test]
async fn turns_do_not_run_ahead_of_what_is_served() {
    let queue = TestQueue::open().await;
    let (a, b) = (RepositoryId::mint(), RepositoryId::mint());
    let worker =
        queue.worker(8, |_, ctx: JobContext| async move { ctx.begin().await?.commit(None).await }).await;
    let many: Vec<_> = (0..500).map(|n| job(a, n)).collect();
    enqueue(&queue, &many).await;
    for job in &many {
        queue.until(job.id, JobState::Completed).await;
    }
    worker.stop().await;
    enqueue(&queue, &(0..100).map(|n| job(b, n)).collect::<Vec<_>>()).await;
    let late = job(a, 1);
    enqueue(&queue, std::slice::from_ref(&late)).await;
    let ahead = format!(
        "SELECT count(*) FROM okt_tasks.jobs WHERE state = 'available'
            AND turn < (SELECT turn FROM okt_tasks.jobs WHERE id = '{}')",
        late.id
    );
    assert!(queue.count(&ahead).await <= 1, "{}", queue.count(&ahead).await);
}

#[tokio::test]
async fn the_same_work_is_not_queued_twice_and_the_second_asker_is_told_where_it_is_done() {
    let queue = TestQueue::open().await;
    let keyed = Errand { n: 1, key: Some("source 1".to_owned()) };
    let first = queue.push(&keyed).await;
    let worker = queue
        .worker(1, |errand, ctx: JobContext| async move {
            tokio::time::sleep(Duration::from_millis(600)).await;
            deliver(errand, ctx).await
        })
        .await;
    queue.until(first, JobState::Running).await;
    let second = queue.push(&keyed).await;
    let job = queue.until(second, JobState::Cancelled).await;
    assert_eq!(job.output.unwrap()["duplicate_of"], first.to_string());
    queue.until(first, JobState::Completed).await;
    // The work is done, so it may be asked for anew.
    let third = queue.push(&keyed).await;
    queue.until(third, JobState::Completed).await;
    assert_eq!(queue.effects(1).await, 2);
    worker.stop().await;
}

#[tokio::test]
async fn a_job_is_not_run_before_its_time() {
    let queue = TestQueue::open().await;
    let worker = queue.worker(1, deliver).await;
    let later = When { priority: 0, delay_ms: 1500 };
    let id = queue.push_for(queue.repository, &errand(1), later).await;
    let job = queue.until(id, JobState::Scheduled).await;
    assert_eq!(job.waiting_for, Some(Waiting::Schedule));
    let job = queue.until(id, JobState::Completed).await;
    let waited = job.started_at.unwrap() - job.created_at;
    assert!(waited.num_milliseconds() >= 1300 && waited.num_milliseconds() < 4500, "{waited}");
    worker.stop().await;
}

#[tokio::test]
async fn a_kind_that_is_switched_off_waits_and_says_for_whom() {
    let queue = TestQueue::open().await;
    let worker = queue.worker(0, deliver).await;
    let id = queue.push(&errand(1)).await;
    queue.until(id, JobState::Available).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let job = queue.find(id).await.unwrap();
    assert_eq!((job.state, job.attempt), (JobState::Available, 0));
    worker.stop().await;
    assert_eq!(queue.find(id).await.unwrap().waiting_for, Some(Waiting::Worker));
    let worker = queue.worker(1, deliver).await;
    queue.until(id, JobState::Completed).await;
    worker.stop().await;
}

/// The plans of the statements that run all day, on a table that was small when they were first made.
#[tokio::test]
async fn claiming_and_queueing_read_no_more_than_they_need() {
    let queue = TestQueue::open().await;
    queue.sql(
        "INSERT INTO okt_tasks.jobs (id, repository_id, kind, state, priority, turn, payload, max_attempts)
         SELECT gen_random_uuid(), gen_random_uuid(), 'errand', 'available', 0, g, '{}', 10
           FROM generate_series(1, 50000) AS g;
         ANALYZE okt_tasks.jobs",
    )
    .await;
    let claim = include_str!("../../../../okt-queue/src/sql/claim.sql");
    let claim =
        claim.replace("$1", "7").replace("$2", "'{errand,other,third}'").replace("$3", "'{100,100,100}'");
    let mut conn = queue.database.connect().await;
    let plan: Vec<String> = sqlx::query_scalar(AssertSqlSafe(format!("EXPLAIN (COSTS OFF) {claim}")))
        .fetch_all(&mut conn)
        .await
        .unwrap();
    let plan = plan.join("\n");
    assert!(plan.contains("Index Scan using jobs_waiting_idx"), "{plan}");
    assert!(plan.contains("jobs_pkey"), "{plan}");
    assert!(!plan.contains("Seq Scan") && !plan.contains("Sort"), "{plan}");
}
