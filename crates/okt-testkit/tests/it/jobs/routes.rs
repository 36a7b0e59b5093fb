use std::sync::Arc;
use std::time::Duration;

use http::Method;
use okt_model::{Cost, Error, JobId, Payload, Progress, RepositoryId, Subject, SubjectKind, Waiting};
use okt_queue::{JobContext, JobError, Kinds};
use okt_testkit::accounts::{api_key, api_key_in, count, give, register, send, session, sql};
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};
use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::jobs::tenants::{Step, Tenants, id, ids, job};

/// Jobs that wait for a permit of the test's.
fn held_by(gate: &Arc<Semaphore>) -> Kinds {
    let gate = Arc::clone(gate);
    Kinds::default().repository(move |_: Step, ctx: JobContext| {
        let gate = Arc::clone(&gate);
        async move {
            drop(gate.acquire().await);
            ctx.begin().await?.commit(Some(json!({"done": true}))).await
        }
    })
}

async fn set(tenants: &Tenants, job: JobId, change: &str) {
    sql(&tenants.service, &format!("UPDATE okt_tasks.jobs SET {change} WHERE id = '{job}'")).await;
}

#[tokio::test]
async fn a_job_is_shown_with_what_it_did_and_what_it_cost() {
    let tenants = Tenants::new(&[]).await;
    let source = Uuid::from_u128(7);
    let kinds = Kinds::default().repository(|_: Step, ctx: JobContext| async move {
        let stage = || "reading".to_owned();
        ctx.progress(Progress {
            stage: stage(),
            done: 2,
            total: Some(5),
            message: Some("so far".to_owned()),
        });
        ctx.spent(Cost { tokens_in: 10, tokens_out: 3, usd: okt_model::Money::from_micros(250_000) });
        tokio::time::sleep(Duration::from_millis(600)).await;
        if ctx.attempt() == 1 {
            return Err(JobError::Failed(Error::Overloaded("no room")));
        }
        ctx.begin().await?.commit(Some(json!({"facts": 4}))).await
    });
    let worker = tenants.worker(1, kinds).await;
    let job = tenants.push(&tenants.ours, &Step { n: 1, source: Some(source) }, 0).await;
    let shown = tenants.until(job, |job| job["state"] == "completed").await;
    worker.stop().await;

    let mut fields: Vec<_> = shown.as_object().unwrap().keys().map(String::as_str).collect();
    fields.sort_unstable();
    let expected = [
        "attempt",
        "cost",
        "created_at",
        "errors",
        "finished_at",
        "heartbeat_at",
        "id",
        "kind",
        "max_attempts",
        "output",
        "priority",
        "progress",
        "queue",
        "repository_id",
        "scheduled_at",
        "source_id",
        "started_at",
        "state",
        "successors",
    ];
    assert_eq!(fields, expected);
    assert_eq!(shown["repository_id"], tenants.ours.id.to_string());
    assert_eq!((&shown["kind"], &shown["queue"]), (&json!(Step::KIND), &json!(Step::KIND)));
    assert_eq!(shown["source_id"], source.to_string());
    assert_eq!((&shown["attempt"], &shown["max_attempts"]), (&json!(2), &json!(10)));
    let progress = json!({"stage": "reading", "done": 2, "total": 5, "message": "so far"});
    assert_eq!(shown["progress"], progress);
    assert_eq!(shown["cost"], json!({"tokens_in": 20, "tokens_out": 6, "usd": 0.5}));
    assert_eq!(shown["errors"][0]["message"], "no room");
    assert_eq!((&shown["errors"][0]["attempt"], &shown["output"]), (&json!(1), &json!({"facts": 4})));

    let by_admin = tenants.get(&tenants.admin, &format!("/api/v1/jobs/{job}")).await;
    assert_eq!(by_admin.json(), shown);
    assert_eq!(ids(&tenants.get(&tenants.admin, "/api/v1/jobs").await), [job]);
}

#[tokio::test]
async fn nothing_of_a_repository_can_be_seen_or_changed_through_another() {
    let tenants = Tenants::new(&[]).await;
    let (ours, theirs) = (&tenants.ours, &tenants.theirs);
    let [mine] = tenants.waiting(ours, 1).await[..] else { panic!() };
    let [hers] = tenants.waiting(theirs, 1).await[..] else { panic!() };
    assert_eq!(ids(&tenants.get(&ours.token, &ours.path("jobs")).await), [mine]);
    assert_eq!(ids(&tenants.get(&theirs.token, &theirs.path("jobs")).await), [hers]);

    // Their job under our roof is no job at all.
    let unknown = JobId::mint();
    for end in ["", "/events"] {
        let asked = tenants.get(&ours.token, &ours.path(&format!("jobs/{hers}{end}"))).await;
        assert_eq!((asked.status.as_u16(), asked.problem()), (404, "not_found".to_owned()));
        let never = tenants.get(&ours.token, &ours.path(&format!("jobs/{unknown}{end}"))).await;
        assert_eq!(asked.json()["detail"], never.json()["detail"]);
    }
    for (deed, state) in [("retry", "discarded"), ("cancel", "available")] {
        set(&tenants, hers, &format!("state = '{state}'")).await;
        let asked = tenants.post(&ours.token, &ours.path(&format!("jobs/{hers}/{deed}"))).await;
        assert_eq!(asked.status, 404, "{asked:?}");
        let kept = tenants.get(&theirs.token, &theirs.path(&format!("jobs/{hers}"))).await.json();
        assert_eq!(kept["state"], state);
    }
    let filtered = tenants.get(&ours.token, &ours.path("jobs?state=available&kind=embed_facts")).await;
    assert_eq!(ids(&filtered), [mine]);
    let stats = tenants.get(&ours.token, &ours.path("jobs/stats")).await.json();
    assert_eq!(stats["data"][0]["available"], 1);

    // A repository that one may not read answers as one that does not exist, and as one that can't.
    for repository in [theirs.id.to_string(), RepositoryId::mint().to_string(), "nothing".to_owned()] {
        for path in ["jobs", "jobs/stats", "events", &format!("jobs/{hers}"), &format!("jobs/{hers}/events")]
        {
            let asked = tenants.get(&ours.token, &format!("/api/v1/repositories/{repository}/{path}")).await;
            assert_eq!(asked.status, 404, "{path}: {asked:?}");
            assert_eq!(asked.json()["detail"], "repository not found");
        }
        for deed in ["cancel", "retry"] {
            let path = format!("/api/v1/repositories/{repository}/jobs/{hers}/{deed}");
            assert_eq!(tenants.post(&ours.token, &path).await.status, 404);
        }
    }
    let kept = tenants.get(&theirs.token, &theirs.path(&format!("jobs/{hers}"))).await.json();
    assert_eq!(kept["state"], "available");

    // The installation's list is the sysadmin's alone.
    for path in ["/api/v1/jobs", "/api/v1/jobs/stats", &format!("/api/v1/jobs/{mine}")] {
        assert_eq!(tenants.get(&ours.token, path).await.status, 403);
        assert_eq!(tenants.get(&tenants.admin, path).await.status, 200);
    }
    assert_eq!(ids(&tenants.get(&tenants.admin, "/api/v1/jobs").await), [hers, mine]);
}

#[tokio::test]
async fn a_credential_does_in_a_repository_what_it_was_given_and_nothing_elsewhere() {
    let tenants = Tenants::new(&[]).await;
    let (service, ours) = (&tenants.service, &tenants.ours);
    let [mine] = tenants.waiting(ours, 1).await[..] else { panic!() };
    let list = ours.path("jobs");
    let cancel = ours.path(&format!("jobs/{mine}/cancel"));

    let viewer = register(service, "viewer").await;
    give(service, viewer.id, &ours.id.to_string(), "viewer").await;
    let viewer = session(service, viewer.id).await;
    assert_eq!(tenants.get(&viewer, &list).await.status, 200);
    let refused = tenants.post(&viewer, &cancel).await;
    assert_eq!((refused.status.as_u16(), refused.problem()), (403, "forbidden".to_owned()));
    let denied = format!(
        "SELECT count(*) FROM okt_system.audit WHERE action = 'request.denied' AND object = 'job:cancel'
            AND repository_id = '{}'",
        ours.id
    );
    assert_eq!(count(service, &denied).await, 1);

    let (_, reads) = api_key(service, &ours.person, &["job:read"]).await;
    assert_eq!(tenants.get(&reads, &list).await.status, 200);
    assert_eq!(tenants.post(&reads, &cancel).await.status, 403);
    give(service, ours.person.id, &tenants.theirs.id.to_string(), "viewer").await;
    let (_, bound) = api_key_in(service, &ours.person, &["job:read"], tenants.theirs.id.uuid()).await;
    assert_eq!(tenants.get(&bound, &list).await.status, 404);
    okt_testkit::accounts::take(service, ours.person.id, &tenants.theirs.id.to_string(), "viewer").await;

    let client = okt_testkit::accounts::access_token(service, ours.person.id, "job:read").await;
    assert_eq!(tenants.get(&client, &list).await.status, 200);
    let refused = tenants.post(&client, &cancel).await;
    assert_eq!(refused.status, 403);
    let challenge = refused.header("www-authenticate");
    assert!(challenge.contains("insufficient_scope") && challenge.contains("job:cancel"), "{challenge}");
    // Another scope would not show them somebody else's repository.
    let hidden = tenants.get(&client, &tenants.theirs.path("jobs")).await;
    assert_eq!((hidden.status.as_u16(), hidden.header("www-authenticate")), (404, ""));
}

#[tokio::test]
async fn jobs_are_found_by_state_kind_and_subject() {
    let tenants = Tenants::new(&[]).await;
    let ours = &tenants.ours;
    let [source, investigation, report] = [1, 2, 3].map(Uuid::from_u128);
    let mut jobs = Vec::from([(); 5].map(|()| job(ours)));
    jobs[1].kind = "cleanup_facts".to_owned();
    jobs[2].subject = Some(Subject::new(SubjectKind::Source, source));
    jobs[3].subject = Some(Subject::new(SubjectKind::Investigation, investigation));
    jobs[4].subject = Some(Subject::new(SubjectKind::Report, report));
    tenants.enqueue(&jobs).await;
    set(&tenants, jobs[0].id, "state = 'discarded', finished_at = now()").await;
    for (filter, expected) in [
        ("state=discarded".to_owned(), vec![0]),
        ("state=running".to_owned(), vec![]),
        ("kind=cleanup_facts".to_owned(), vec![1]),
        ("kind=embed_facts&state=available".to_owned(), vec![4, 3, 2]),
        (format!("source_id={source}"), vec![2]),
        (format!("investigation_id={investigation}"), vec![3]),
        (format!("report_id={report}"), vec![4]),
    ] {
        let expected: Vec<_> = expected.into_iter().map(|n: usize| jobs[n].id).collect();
        for (token, path) in [(&ours.token, ours.path("jobs")), (&tenants.admin, "/api/v1/jobs".to_owned())] {
            assert_eq!(
                ids(&tenants.get(token, &format!("{path}?{filter}")).await),
                expected,
                "{path} {filter}"
            );
        }
    }
    let unknown = tenants.get(&ours.token, &ours.path("jobs?state=lost")).await;
    assert_eq!((unknown.status.as_u16(), unknown.problem()), (422, "invalid".to_owned()));
    assert_eq!(unknown.json()["errors"][0]["field"], "state");
    let two = ours.path(&format!("jobs?report_id={report}&source_id={source}"));
    let two = tenants.get(&ours.token, &two).await;
    assert_eq!((two.status.as_u16(), &two.json()["errors"][0]["field"]), (422, &json!("report_id")));
    assert_eq!(tenants.get(&ours.token, &ours.path("jobs?source_id=seven")).await.status, 422);
}

#[tokio::test]
async fn pages_go_from_the_newest_to_the_oldest_without_a_gap() {
    let tenants = Tenants::new(&[]).await;
    let mut expected = tenants.waiting(&tenants.ours, 7).await;
    tenants.waiting(&tenants.theirs, 3).await;
    expected.reverse();
    let (mut seen, mut path) = (Vec::new(), tenants.ours.path("jobs?limit=3"));
    loop {
        let page = tenants.get(&tenants.ours.token, &path).await;
        seen.extend(ids(&page));
        // What is new meanwhile does not move the next page.
        tenants.waiting(&tenants.ours, 1).await;
        match page.json()["next_cursor"].as_str() {
            Some(cursor) => path = tenants.ours.path(&format!("jobs?limit=3&cursor={cursor}")),
            None => break,
        }
    }
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_job_that_waits_is_cancelled_at_once_and_one_that_ended_not_at_all() {
    let tenants = Tenants::new(&[]).await;
    let ours = &tenants.ours;
    let [waiting, ended] = tenants.waiting(ours, 2).await[..] else { panic!() };
    set(&tenants, ended, "state = 'completed', finished_at = now()").await;

    let cancelled = tenants.post(&ours.token, &ours.path(&format!("jobs/{waiting}/cancel"))).await;
    assert_eq!(cancelled.status, 202, "{cancelled:?}");
    assert_eq!((id(&cancelled.json()), &cancelled.json()["state"]), (waiting, &json!("cancelled")));
    for job in [waiting, ended] {
        let again = tenants.post(&ours.token, &ours.path(&format!("jobs/{job}/cancel"))).await;
        assert_eq!((again.status.as_u16(), again.problem()), (409, "conflict".to_owned()));
        assert_eq!(again.json()["detail"], "the job has ended, so it can't be cancelled");
    }
    for unknown in [JobId::mint().to_string(), "seven".to_owned()] {
        for deed in ["cancel", "retry"] {
            let path = ours.path(&format!("jobs/{unknown}/{deed}"));
            assert_eq!(tenants.post(&ours.token, &path).await.status, 404);
        }
    }
    let recorded = format!(
        "SELECT count(*) FROM okt_system.audit WHERE action = 'job.cancelled' AND object = '{waiting}'
            AND repository_id = '{}' AND actor_id = '{}' AND request_id = '{}'",
        ours.id,
        ours.person.id,
        cancelled.header("x-request-id")
    );
    assert_eq!(count(&tenants.service, &recorded).await, 1);
    let all = "SELECT count(*) FROM okt_system.audit WHERE action LIKE 'job%'";
    assert_eq!(count(&tenants.service, all).await, 1, "what was refused was not done");
}

#[tokio::test]
async fn a_job_that_runs_stops_when_it_is_cancelled() {
    let tenants = Tenants::new(&[]).await;
    let ours = &tenants.ours;
    let worker = tenants.worker(1, held_by(&Arc::new(Semaphore::new(0)))).await;
    let job = tenants.push(ours, &Step::default(), 0).await;
    tenants.until(job, |job| job["state"] == "running").await;
    let retried = tenants.post(&ours.token, &ours.path(&format!("jobs/{job}/retry"))).await;
    assert_eq!(retried.json()["detail"], "the job is running; cancel it first");
    let cancelled = tenants.post(&ours.token, &ours.path(&format!("jobs/{job}/cancel"))).await;
    assert_eq!(cancelled.status, 202);
    let stopped = tenants.until(job, |job| job["state"] == "cancelled").await;
    assert!(stopped["finished_at"].is_string());
    worker.stop().await;
}

#[tokio::test]
async fn a_job_that_was_given_up_is_tried_again_and_another_is_not() {
    let tenants = Tenants::new(&[]).await;
    let ours = &tenants.ours;
    let gate = Arc::new(Semaphore::new(0));
    let worker = tenants.worker(1, held_by(&gate)).await;
    let first = tenants.push(ours, &Step::default(), 0).await;
    tenants.until(first, |job| job["state"] == "running").await;
    let second = tenants.push(ours, &Step::default(), 0).await;
    tenants.until(second, |job| job["waiting_for"] == "slot").await;
    set(&tenants, second, "state = 'discarded', attempt = 10, finished_at = now(), finished_in = 1").await;

    let retry = ours.path(&format!("jobs/{second}/retry"));
    let request = || tenants.service.request(Method::POST, &retry).bearer_auth(&ours.token);
    let retried = okt_testkit::client::Answer::of(request().header("idempotency-key", "once")).await;
    assert_eq!(retried.status, 202, "{retried:?}");
    let job = retried.json();
    assert_eq!(
        (&job["state"], &job["attempt"], &job["finished_at"]),
        (&json!("available"), &json!(0), &Value::Null)
    );
    let again = okt_testkit::client::Answer::of(request().header("idempotency-key", "once")).await;
    assert_eq!((again.status.as_u16(), again.header("idempotency-replayed")), (202, "true"));
    let waits = tenants.post(&ours.token, &retry).await;
    assert_eq!((waits.status.as_u16(), waits.problem()), (409, "conflict".to_owned()));
    assert_eq!(waits.json()["detail"], "the job is queued and has not failed; there is nothing to retry");

    gate.add_permits(10);
    let done = tenants.until(second, |job| job["state"] == "completed").await;
    assert_eq!(done["output"], json!({"done": true}), "its effect has happened");
    let ended = tenants.post(&ours.token, &retry).await;
    assert_eq!((ended.status.as_u16(), ended.problem()), (409, "conflict".to_owned()));
    let recorded =
        format!("SELECT count(*) FROM okt_system.audit WHERE action = 'job.retried' AND object = '{second}'");
    assert_eq!(count(&tenants.service, &recorded).await, 1);
    worker.stop().await;
}

#[tokio::test]
async fn a_job_can_be_asked_for_before_the_queue_has_it() {
    let tenants = Tenants::new(&[]).await;
    let ours = &tenants.ours;
    let now = tenants.push(ours, &Step { n: 1, source: Some(Uuid::from_u128(9)) }, 0).await;
    let later = tenants.push(ours, &Step::default(), 3_600_000).await;
    for (job, state) in [(now, "available"), (later, "scheduled")] {
        let shown = tenants.job(job).await;
        assert_eq!((&shown["state"], &shown["waiting_for"]), (&json!(state), &json!("relay")));
        assert_eq!((&shown["kind"], &shown["attempt"]), (&json!(Step::KIND), &json!(0)));
    }
    assert_eq!(tenants.job(now).await["source_id"], Uuid::from_u128(9).to_string());
    for deed in ["cancel", "retry"] {
        let asked = tenants.post(&ours.token, &ours.path(&format!("jobs/{now}/{deed}"))).await;
        assert_eq!((asked.status.as_u16(), asked.problem()), (409, "conflict".to_owned()));
        assert_eq!(asked.json()["detail"], "the job has not reached the queue yet, try again in a moment");
    }
    let through_theirs = tenants.theirs.path(&format!("jobs/{now}"));
    assert_eq!(tenants.get(&tenants.theirs.token, &through_theirs).await.status, 404);

    let worker = tenants.worker(1, held_by(&Arc::new(Semaphore::new(9)))).await;
    tenants.until(now, |job| job["state"] == "completed").await;
    tenants.until(later, |job| job["waiting_for"] == "schedule").await;
    worker.stop().await;
}

#[tokio::test]
async fn a_job_that_does_not_run_says_why() {
    let tenants = Tenants::new(&[]).await;
    let ours = &tenants.ours;
    let [first, second] = [(); 2].map(|()| Step::default());
    let [waiting] = tenants.waiting(ours, 1).await[..] else { panic!() };
    assert_eq!(tenants.job(waiting).await["waiting_for"], "worker", "nobody runs its kind");
    let mut put_off = job(ours);
    put_off.delay_ms = 3_600_000;
    tenants.enqueue(std::slice::from_ref(&put_off)).await;
    assert_eq!(tenants.job(put_off.id).await["waiting_for"], "schedule");

    let gate = Arc::new(Semaphore::new(0));
    let fails = Arc::clone(&gate);
    let kinds = Kinds::default().repository(move |step: Step, ctx: JobContext| {
        let gate = Arc::clone(&fails);
        async move {
            match step.n {
                1 => return Err(JobError::Failed(Error::Overloaded("no room"))),
                2 => {
                    let hour = Duration::from_hours(1);
                    return Err(JobError::Waits { why: Waiting::Budget, delay: hour });
                }
                _ => drop(gate.acquire().await),
            }
            ctx.begin().await?.commit(None).await
        }
    });
    let worker = tenants.worker(1, kinds).await;
    let running = tenants.until(waiting, |job| job["state"] == "running").await;
    assert!(running.get("waiting_for").is_none(), "{running}");
    let second = tenants.push(ours, &Step { n: 2, ..second }, 0).await;
    let first = tenants.push(ours, &Step { n: 1, ..first }, 0).await;
    tenants.until(second, |job| job["waiting_for"] == "slot").await;
    gate.add_permits(9);
    let failed = tenants.until(first, |job| job["state"] == "retryable").await;
    assert_eq!(failed["waiting_for"], "retry");
    let waits = tenants.until(second, |job| job["state"] == "scheduled").await;
    assert_eq!((&waits["waiting_for"], &waits["attempt"]), (&json!("budget"), &json!(0)));
    worker.stop().await;
}

#[tokio::test]
async fn jobs_are_counted_by_kind_and_state() {
    let tenants = Tenants::new(&[]).await;
    let ours = &tenants.ours;
    let jobs = tenants.waiting(ours, 8).await;
    let states = ["scheduled", "running", "retryable", "completed", "completed", "cancelled", "discarded"];
    for (job, state) in jobs.iter().zip(states) {
        set(&tenants, *job, &format!("state = '{state}'")).await;
    }
    tenants.waiting(&tenants.theirs, 2).await;
    for (number, since) in [(101, "NULL"), (102, "now()")] {
        let worker = "INSERT INTO okt_tasks.workers VALUES";
        let values = format!("({number}, 'a test', '{{cleanup_facts}}', now(), {since})");
        sql(&tenants.service, &format!("{worker} {values}")).await;
    }

    let counted = tenants.get(&ours.token, &ours.path("jobs/stats")).await.json();
    let idle = json!({"kind": "cleanup_facts", "workers": 1, "scheduled": 0, "available": 0, "running": 0, "retryable": 0,
                      "completed": 0, "cancelled": 0, "discarded": 0});
    let busy = json!({"kind": Step::KIND, "workers": 0, "scheduled": 1, "available": 1, "running": 1, "retryable": 1,
                      "completed": 2, "cancelled": 1, "discarded": 1});
    assert_eq!(counted, json!({"data": [idle, busy], "complete": true}));
    let everybodys = tenants.get(&tenants.admin, "/api/v1/jobs/stats").await.json();
    assert_eq!(everybodys["data"][1]["available"], 3);
    assert_eq!(everybodys["data"][1]["completed"], Value::Null, "they are not counted");
}

#[tokio::test]
async fn what_the_dead_hold_is_given_back_and_what_the_living_hold_is_not() {
    let tenants = Tenants::new(&[]).await;
    let jobs = tenants.waiting(&tenants.ours, 3).await;
    let (dead, silent, living) = (101, 102, 103);
    for (number, since) in [(dead, "now() - interval '6 seconds'"), (silent, "NULL"), (living, "NULL")] {
        let worker =
            format!("INSERT INTO okt_tasks.workers VALUES ({number}, 'a test', '{{}}', now(), {since})");
        sql(&tenants.service, &worker).await;
    }
    for (job, owner) in jobs.iter().zip([dead, silent, living]) {
        set(&tenants, *job, &format!("state = 'running', owner = {owner}, claims = 1, heartbeat_at = now()"))
            .await;
    }
    let mut alive: PgConnection = tenants.service.database.connect().await;
    okt_testkit::db::run(&mut alive, &format!("SELECT pg_advisory_lock({living})")).await;

    let rescue = "/api/v1/admin/jobs/rescue";
    assert_eq!(tenants.post(&tenants.ours.token, rescue).await.status, 403);
    let rescued = tenants.post(&tenants.admin, rescue).await;
    assert_eq!((rescued.status.as_u16(), rescued.json()), (200, json!({"rescued": 1})));
    let states = [jobs[0], jobs[1], jobs[2]].map(async |job| tenants.job(job).await["state"].clone());
    let [first, second, third] = states;
    assert_eq!(
        (first.await, second.await, third.await),
        (json!("available"), json!("running"), json!("running"))
    );
    assert_eq!(tenants.post(&tenants.admin, rescue).await.json(), json!({"rescued": 0}));
    let recorded =
        "SELECT count(*) FROM okt_system.audit WHERE action = 'jobs.rescued' AND object = '1 jobs'";
    assert_eq!(count(&tenants.service, recorded).await, 1);
    alive.close().await.unwrap();
}

#[tokio::test]
async fn a_body_is_not_asked_for() {
    let tenants = Tenants::new(&[]).await;
    let [job] = tenants.waiting(&tenants.ours, 1).await[..] else { panic!() };
    let cancel = tenants.ours.path(&format!("jobs/{job}/cancel"));
    let answer = send(&tenants.service, &tenants.ours.token, Method::POST, &cancel, &json!({})).await;
    assert_eq!(answer.status, 202);
}
