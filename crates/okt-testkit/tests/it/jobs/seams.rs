//! Where one job meets another: payloads of other versions, twins, successors.

use std::sync::Arc;
use std::time::{Duration, Instant};

use okt_model::{JobId, JobState, Payload, RepositoryId, Waiting};
use okt_queue::{Finished, JobContext, JobError, Kinds};
use okt_store::outbox::{self, When};
use okt_testkit::cluster::free_port;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;
use tokio::sync::Semaphore;

use crate::jobs::listener::{Listener, ask};
use crate::jobs::tenants::{Step, Tenants, id, ids};
use crate::jobs::test_queue::{TestQueue, write};

/// What a process of this version knows of an errand.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Old {
    n: i64,
}

/// What one of the next version knows.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Newer {
    n: i64,
    only_pages: Vec<u32>,
}

impl Payload for Old {
    const KIND: &'static str = "errand";
}

impl Payload for Newer {
    const KIND: &'static str = "errand";
}

/// Upkeep that is the same whoever asks for it.
#[derive(Serialize, Deserialize)]
struct Tidy {}

impl Payload for Tidy {
    const KIND: &'static str = "errand";
    const INTERNAL: bool = true;

    fn unique_key(&self) -> Option<String> {
        Some("tidy".to_owned())
    }
}

fn slots() -> std::collections::BTreeMap<String, u32> {
    [("errand".to_owned(), 2)].into()
}

async fn push<P: Payload>(queue: &TestQueue, repository: RepositoryId, payload: &P, delay_ms: i64) -> JobId {
    let id = JobId::mint();
    let mut tx = queue.databases.begin("default", repository).await.unwrap();
    let when = When { priority: 0, delay_ms };
    outbox::push(&mut tx, repository, id, payload, when).await.unwrap();
    tx.commit().await.unwrap();
    id
}

#[tokio::test]
async fn a_payload_of_a_newer_process_waits_for_one_and_loses_no_attempt() {
    let queue = TestQueue::open().await;
    let old = Kinds::default().repository(|old: Old, ctx: JobContext| async move {
        let mut tx = ctx.begin().await?;
        write(&mut tx, old.n).await?;
        tx.commit(None).await
    });
    let old = queue.start(&[], old, Some(slots()), vec![]).await;
    let newer = push(&queue, queue.repository, &Newer { n: 1, only_pages: vec![3] }, 0).await;
    let understood = push(&queue, queue.repository, &Old { n: 2 }, 0).await;
    queue.until(understood, JobState::Completed).await;
    for _ in 0..3 {
        let job = queue.until(newer, JobState::Scheduled).await;
        assert_eq!((job.attempt, job.waiting_for), (0, Some(Waiting::Worker)), "{job:?}");
        assert!(job.failures.is_empty() && job.scheduled_at > job.created_at, "{job:?}");
        queue.sql("UPDATE okt_tasks.jobs SET scheduled_at = clock_timestamp()").await;
        tokio::time::sleep(Duration::from_millis(1_500)).await;
    }
    let kinds = Kinds::default().repository(|newer: Newer, ctx: JobContext| async move {
        assert_eq!(newer.only_pages, [3]);
        let mut tx = ctx.begin().await?;
        write(&mut tx, newer.n).await?;
        tx.commit(None).await
    });
    old.stop().await;
    let newest = queue.start(&[], kinds, Some(slots()), vec![]).await;
    queue.sql("UPDATE okt_tasks.jobs SET scheduled_at = clock_timestamp()").await;
    let job = queue.until(newer, JobState::Completed).await;
    assert_eq!((job.attempt, queue.effects(1).await), (1, 1));
    newest.stop().await;
}

#[tokio::test]
async fn upkeep_that_is_asked_for_a_thousand_times_leaves_one_job() {
    let queue = TestQueue::open().await;
    let kinds = Kinds::default()
        .repository(|_: Tidy, ctx: JobContext| async move { ctx.begin().await?.commit(None).await });
    let worker = queue.start(&[], kinds, Some(slots()), vec![]).await;
    let other = RepositoryId::mint();
    for n in 0..1_000 {
        push(&queue, if n % 10 == 0 { other } else { queue.repository }, &Tidy {}, 3_600_000).await;
    }
    let deadline = Instant::now() + Duration::from_secs(20);
    while queue.count("SELECT count(*) FROM okt_repository.outbox WHERE arrived_at IS NULL").await > 0 {
        assert!(Instant::now() < deadline, "they do not arrive");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(queue.count("SELECT count(*) FROM okt_tasks.jobs").await, 2, "one for each repository");
    assert_eq!(queue.count("SELECT count(*) FROM okt_repository.outbox").await, 2);
    // A job that is asked for anew when its twin has ended is not superfluous.
    queue.sql("UPDATE okt_tasks.jobs SET scheduled_at = clock_timestamp()").await;
    while queue.count("SELECT count(*) FROM okt_repository.outbox").await > 0 {
        assert!(Instant::now() < deadline, "it is not run");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let again = push(&queue, queue.repository, &Tidy {}, 0).await;
    queue.until(again, JobState::Completed).await;
    worker.stop().await;
}

/// The one that runs may have looked already at what has changed since.
#[tokio::test]
async fn upkeep_that_is_asked_for_while_it_runs_is_done_once_more() {
    let queue = TestQueue::open().await;
    let open = Arc::new(Semaphore::new(0));
    let gate = Arc::clone(&open);
    let kinds = Kinds::default().repository(move |_: Tidy, ctx: JobContext| {
        let gate = Arc::clone(&gate);
        async move {
            gate.acquire().await.unwrap().forget();
            let mut tx = ctx.begin().await?;
            write(&mut tx, 7).await?;
            tx.commit(None).await
        }
    });
    let worker = queue.start(&[], kinds, Some([("errand".to_owned(), 1)].into()), vec![]).await;
    let first = push(&queue, queue.repository, &Tidy {}, 0).await;
    queue.until(first, JobState::Running).await;
    let next = push(&queue, queue.repository, &Tidy {}, 3_600_000).await;
    queue.until(next, JobState::Scheduled).await;
    for _ in 0..20 {
        push(&queue, queue.repository, &Tidy {}, 0).await;
    }
    queue.until_none("SELECT count(*) FROM okt_repository.outbox WHERE arrived_at IS NULL").await;
    assert_eq!(
        queue.count("SELECT count(*) FROM okt_tasks.jobs").await,
        2,
        "one that runs, and one that waits"
    );
    queue.sql("UPDATE okt_tasks.jobs SET scheduled_at = clock_timestamp() WHERE state = 'scheduled'").await;
    open.add_permits(2);
    queue.until(next, JobState::Completed).await;
    assert_eq!(queue.effects(7).await, 2);
    worker.stop().await;
}

/// As many relayed outbox entries as a busy week leaves, and a few jobs that ended badly.
#[tokio::test]
async fn what_ended_badly_is_found_without_reading_what_did_not() {
    let queue = TestQueue::open().await;
    queue.sql(
        "INSERT INTO okt_tasks.jobs (id, repository_id, database, kind, state, priority, turn, payload, max_attempts,
                                     subject_kind, subject_id, finished_at, end_handled)
         SELECT gen_random_uuid(), gen_random_uuid(), 'default', 'retrieve_source',
                CASE WHEN g % 3 = 0 THEN 'available' ELSE 'discarded' END, 0, g, '{}', 10, 'source', gen_random_uuid(),
                CASE WHEN g % 3 > 0 THEN now() - interval '1 hour' END, g > 15
           FROM generate_series(1, 50000) AS g;
         ANALYZE okt_tasks.jobs",
    )
    .await;
    let query = include_str!("../../../../okt-queue/src/sql/unhandled.sql");
    let query = query
        .replace("$1", "'{retrieve_source,source_decomposition}'")
        .replace("$2", "10")
        .replace("$3", "'{}'")
        .replace("$4", "500");
    let mut conn = queue.database.connect().await;
    let plan: Value = sqlx::query_scalar(AssertSqlSafe(format!("EXPLAIN (ANALYZE, FORMAT JSON) {query}")))
        .fetch_one(&mut conn)
        .await
        .unwrap();
    assert!(plan.to_string().contains("jobs_unhandled_idx"), "{plan:#}");
    assert!(read_rows(&plan) <= 60, "{plan:#}");
    let ended = okt_queue::ended::list_unhandled(
        &queue.databases,
        &["retrieve_source"],
        Duration::from_secs(10),
        &[],
        500,
    );
    let found: Vec<JobId> = ended.await.unwrap().iter().map(|job| job.id).collect();
    assert_eq!(found.len(), 10);
    okt_queue::ended::mark_handled(&queue.databases, &found).await.unwrap();
    let left = queue.count(&format!("SELECT count(*) FROM ({query}) AS unhandled")).await;
    assert_eq!(left, 0, "each is handled once");
}

/// All rows that the steps of a plan gave and threw away.
fn read_rows(plan: &Value) -> u64 {
    match plan {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| match name.as_str() {
                "Actual Rows" | "Rows Removed by Filter" | "Rows Removed by Index Recheck" => {
                    value.as_f64().map_or(0, |rows| {
                        #[expect(
                            clippy::cast_possible_truncation,
                            clippy::cast_sign_loss,
                            reason = "a small count"
                        )]
                        let rows = rows as u64;
                        rows
                    })
                }
                _ => read_rows(value),
            })
            .sum(),
        Value::Array(all) => all.iter().map(read_rows).sum(),
        _ => 0,
    }
}

/// The first asks for two more, and one of them for a last one.
fn chain(open: &Arc<Semaphore>) -> Kinds {
    let open = Arc::clone(open);
    Kinds::default().repository(move |step: Step, ctx: JobContext| {
        let open = Arc::clone(&open);
        async move {
            open.acquire().await.unwrap().forget();
            run(step, ctx).await
        }
    })
}

async fn run(step: Step, ctx: JobContext) -> Result<Finished, JobError> {
    let mut tx = ctx.begin().await?;
    let next: &[u32] = match step.n {
        1 => &[2, 3],
        3 => &[4],
        _ => &[],
    };
    for n in next {
        tx.push(&Step { n: *n, source: None }, When::default()).await?;
    }
    tx.commit(Some(json!({ "n": step.n }))).await
}

#[tokio::test]
async fn a_job_names_its_successors_and_its_stream_goes_on_until_they_have_ended() {
    let tenants = Tenants::new(&[]).await;
    let (service, token) = (&tenants.service, &tenants.ours.token);
    let first = tenants.push(&tenants.ours, &Step { n: 1, source: None }, 0).await;
    let stranger = tenants.push(&tenants.ours, &Step { n: 9, source: None }, 3_600_000).await;
    let path = tenants.ours.path(&format!("jobs/{first}/events"));
    let mut stream = Listener::open(service, token, &path, None).await;
    let open = Arc::new(Semaphore::new(0));
    let worker = tenants.worker(1, chain(&open)).await;
    open.add_permits(1);
    let done = tenants.until(first, |job| job["state"] == "completed").await;
    let successors: Vec<JobId> = done["successors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|id| id.as_str().unwrap().parse().unwrap())
        .collect();
    assert_eq!(successors.len(), 2, "known as soon as it has ended: {done:#}");
    open.add_permits(3);
    let mut heard: Vec<Value> = Vec::new();
    while let Ok(job) = tokio::time::timeout(Duration::from_secs(20), stream.job()).await {
        let Some(job) = job else { break };
        heard.push(job);
    }
    let ended: Vec<&Value> = heard.iter().filter(|job| job["state"] == "completed").collect();
    let mut numbers: Vec<u64> = ended.iter().map(|job| job["output"]["n"].as_u64().unwrap()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers, [1, 2, 3, 4], "all of them, and the stream has ended: {heard:#?}");
    assert!(heard.iter().all(|job| id(job) != stranger), "{heard:#?}");
    let last = stream.last.clone();
    assert_eq!(ask(service, token, &path, last.as_deref()).await.status(), 204);
    assert_eq!(ask(service, token, &path, Some("0123456789abcdef")).await.status(), 200);
    // In lists, too.
    let listed = tenants.get(token, &tenants.ours.path("jobs?state=completed")).await;
    assert_eq!(ids(&listed).len(), 4);
    let shown =
        listed.json()["data"].as_array().unwrap().iter().find(|job| id(job) == first).cloned().unwrap();
    assert_eq!(shown["successors"], done["successors"]);
    worker.stop().await;
}

#[tokio::test]
async fn a_stream_waits_for_a_successor_that_is_still_on_its_way() {
    let tenants = Tenants::new(&[]).await;
    let first = tenants.push(&tenants.ours, &Step { n: 1, source: None }, 0).await;
    let open = Arc::new(Semaphore::new(1));
    let worker = tenants.worker(1, chain(&open)).await;
    tenants.until(first, |job| job["state"] == "completed").await;
    worker.stop().await;
    // As if the relay had not come for them yet.
    okt_testkit::accounts::sql(
        &tenants.service,
        "DELETE FROM okt_tasks.jobs WHERE caused_by IS NOT NULL;
         UPDATE okt_repository.outbox SET arrived_at = NULL, carried_at = NULL",
    )
    .await;
    let path = tenants.ours.path(&format!("jobs/{first}/events"));
    let mut stream = Listener::open(&tenants.service, &tenants.ours.token, &path, None).await;
    let mut waiting = Vec::new();
    for _ in 0..3 {
        let job = tokio::time::timeout(Duration::from_secs(5), stream.job()).await.unwrap().unwrap();
        waiting.push(job["waiting_for"].clone());
    }
    assert_eq!(waiting, [json!(null), json!("relay"), json!("relay")]);
    open.add_permits(3);
    let worker = tenants.worker(1, chain(&open)).await;
    let rest = async { while stream.job().await.is_some() {} };
    tokio::time::timeout(Duration::from_secs(20), rest).await.expect("the stream ends");
    worker.stop().await;
}

/// What a job came to is in the queue; only what it asked for may still be elsewhere.
#[tokio::test]
async fn a_job_that_ended_is_shown_while_the_database_of_its_repository_is_away() {
    let nowhere = format!("postgres://okt@127.0.0.1:{}/okt", free_port());
    let tenants = Tenants::new(&[("SVC__DATABASES__ELSEWHERE__URL", &nowhere)]).await;
    let job = tenants.push(&tenants.ours, &Step { n: 2, source: None }, 0).await;
    let worker = tenants.worker(1, chain(&Arc::new(Semaphore::new(1)))).await;
    tenants.until(job, |job| job["state"] == "completed").await;
    worker.stop().await;
    let lives_in = async |database: &str| {
        let id = tenants.ours.id;
        let moved = format!("UPDATE okt_system.repositories SET database = '{database}' WHERE id = '{id}'");
        okt_testkit::accounts::sql(&tenants.service, &moved).await;
        // Until nobody remembers the other place.
        tokio::time::sleep(Duration::from_millis(1_100)).await;
    };
    lives_in("elsewhere").await;
    assert_eq!(tenants.job(job).await["output"], json!({"n": 2}));
    let path = tenants.ours.path(&format!("jobs/{job}/events"));
    let mut stream = Listener::open(&tenants.service, &tenants.ours.token, &path, None).await;
    assert_eq!(stream.told().await, (job, "completed".to_owned()));
    let more = tokio::time::timeout(Duration::from_secs(2), stream.job()).await;
    assert!(more.is_err(), "nobody can say yet that nothing comes of it: {more:?}");
    lives_in("default").await;
    let ended = tokio::time::timeout(Duration::from_secs(10), stream.job()).await;
    assert_eq!(ended.expect("the stream ends"), None);
}

#[tokio::test]
async fn a_job_that_gives_up_has_said_so_and_can_be_retried() {
    let queue = TestQueue::open().await;
    let worker = queue
        .worker(1, |errand, ctx: JobContext| async move {
            let mut tx = ctx.begin_discardable().await?;
            write(&mut tx, errand.n).await?;
            if shop_is_closed(&mut tx).await {
                return tx.discard("the shop is closed".to_owned(), Some(json!({"closed": true}))).await;
            }
            tx.commit(None).await
        })
        .await;
    let id = queue.push(&crate::jobs::test_queue::errand(1)).await;
    let job = queue.until(id, JobState::Discarded).await;
    assert_eq!((job.failures[0].message.as_str(), job.attempt), ("the shop is closed", 1), "{job:?}");
    assert_eq!((job.output, queue.effects(1).await), (Some(json!({"closed": true})), 1));
    queue.sql("INSERT INTO done (n) VALUES (77)").await;
    let tenant = okt_queue::jobs::TenantFilter::Repository(queue.repository);
    okt_queue::jobs::retry(&queue.databases, tenant, id).await.unwrap().unwrap();
    queue.until(id, JobState::Completed).await;
    assert_eq!(queue.effects(1).await, 2, "its effect happened now");
    assert_eq!(queue.count("SELECT count(*) FROM okt_repository.outbox").await, 0);
    worker.stop().await;
}

async fn shop_is_closed(conn: &mut okt_store::Connection) -> bool {
    let open: bool =
        sqlx::query_scalar("SELECT EXISTS (SELECT FROM done WHERE n = 77)").fetch_one(conn).await.unwrap();
    !open
}
