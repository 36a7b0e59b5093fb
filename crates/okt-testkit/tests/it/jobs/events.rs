use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use okt_http::StreamRules;
use okt_model::{JobId, Progress};
use okt_queue::{JobContext, Kinds};
use okt_testkit::accounts::{session, sql, take};
use okt_testkit::db::run;
use okt_testkit::wait::eventually;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use crate::jobs::listener::{Heard, Listener, ask};
use crate::jobs::tenants::{Step, Tenants, job};

async fn listen(tenants: &Tenants, last: Option<&str>) -> Listener {
    Listener::open(&tenants.service, &tenants.ours.token, &tenants.ours.path("events"), last).await
}

async fn cancel(tenants: &Tenants, job: JobId) {
    let path = tenants.ours.path(&format!("jobs/{job}/cancel"));
    assert_eq!(tenants.post(&tenants.ours.token, &path).await.status, 202);
}

fn told(jobs: &[JobId], state: &str) -> Vec<(JobId, String)> {
    jobs.iter().map(|job| (*job, state.to_owned())).collect()
}

fn sorted(mut jobs: Vec<(JobId, String)>) -> Vec<(JobId, String)> {
    jobs.sort();
    jobs
}

#[tokio::test]
async fn a_stream_begins_with_what_has_not_ended_and_goes_on_with_what_changes() {
    let tenants = Tenants::new(&[("SVC__SERVER__WRITE_TIMEOUT", "1s")]).await;
    tenants
        .service
        .api
        .edge()
        .set_stream_rules(StreamRules { alive: Duration::from_millis(600), ..StreamRules::default() });
    let jobs = tenants.waiting(&tenants.ours, 3).await;
    cancel(&tenants, jobs[0]).await;
    let mut stream = listen(&tenants, None).await;
    for (name, value) in
        [("content-type", "text/event-stream"), ("cache-control", "no-store"), ("x-accel-buffering", "no")]
    {
        assert_eq!(stream.header(name), value);
    }
    assert_eq!(sorted(stream.all().await), told(&jobs[1..], "available"));
    // For longer than a request may take.
    for _ in 0..3 {
        let heard = stream.next().await;
        assert!(matches!(&heard, Some(Heard::Comment(text)) if text == "alive"), "{heard:?}");
    }
    cancel(&tenants, jobs[1]).await;
    assert_eq!(stream.told().await, (jobs[1], "cancelled".to_owned()));
    let new = tenants.waiting(&tenants.ours, 1).await;
    assert_eq!(stream.told().await, (new[0], "available".to_owned()));
    // Until the order of ends has been read once more.
    let heard = async {
        loop {
            match stream.next().await.unwrap() {
                Heard::Comment(_) => {}
                heard => break heard,
            }
        }
    };
    assert!(matches!(heard.await, Heard::Place), "what did not change is not told again");
}

#[tokio::test]
async fn a_job_whose_time_has_come_says_so() {
    let tenants = Tenants::new(&[]).await;
    let mut soon = job(&tenants.ours);
    soon.kind = "nobody_runs_this".to_owned();
    soon.delay_ms = 1_000;
    let mut stream = listen(&tenants, None).await;
    tenants.enqueue(std::slice::from_ref(&soon)).await;
    assert_eq!(stream.told().await, (soon.id, "scheduled".to_owned()));
    let worker = tenants.worker(1, Kinds::default()).await;
    assert_eq!(stream.told().await, (soon.id, "available".to_owned()));
    worker.stop().await;
}

#[tokio::test]
async fn whoever_comes_back_hears_of_every_job_that_ended_meanwhile() {
    let tenants = Tenants::new(&[]).await;
    let jobs = tenants.waiting(&tenants.ours, 6).await;
    let mut stream = listen(&tenants, None).await;
    assert_eq!(stream.all().await.len(), 6);
    cancel(&tenants, jobs[0]).await;
    stream.told().await;
    let last = stream.last.clone();
    drop(stream);
    for job in &jobs[1..4] {
        cancel(&tenants, *job).await;
    }
    let mut stream = listen(&tenants, last.as_deref()).await;
    let heard = stream.all().await;
    let ended: Vec<_> = heard.iter().filter(|(_, state)| state == "cancelled").map(|(job, _)| *job).collect();
    assert_eq!(ended.iter().collect::<BTreeSet<_>>(), jobs[..4].iter().collect(), "{heard:?}");
    assert_eq!(ended[ended.len() - 3..], jobs[1..4], "in the order of their ends");
    assert_eq!(
        sorted(heard.into_iter().filter(|(_, state)| state == "available").collect()),
        told(&jobs[4..], "available")
    );

    // From the very last place nothing is told again but what has not ended; as long as somebody on the same server may
    // still come in before them, what ended is told once more.
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        stream = listen(&tenants, stream.last.as_deref()).await;
        let heard = sorted(stream.all().await);
        if heard == told(&jobs[4..], "available") {
            break;
        }
        assert!(Instant::now() < deadline, "{heard:?}");
    }
}

/// Numbers of transactions are given out in another order than they end.
#[tokio::test]
async fn a_job_whose_end_was_begun_first_and_committed_last_is_not_lost() {
    let tenants = Tenants::new(&[]).await;
    let jobs = tenants.waiting(&tenants.ours, 3).await;
    let mut slow = tenants.service.database.connect().await;
    let end = format!(
        "BEGIN; UPDATE okt_tasks.jobs SET state = 'completed', finished_at = now(),
                       finished_in = pg_current_xact_id()::text::bigint WHERE id = '{}'",
        jobs[0]
    );
    run(&mut slow, &end).await;
    let mut stream = listen(&tenants, None).await;
    assert_eq!(stream.all().await.len(), 3);
    for job in &jobs[1..] {
        cancel(&tenants, *job).await;
        assert_eq!(stream.told().await, (*job, "cancelled".to_owned()));
    }
    // Also after the stream has looked at the order of ends once more.
    while !matches!(stream.next().await, Some(Heard::Place)) {}
    let mut places = vec![stream.last.clone()];
    let mut stream = listen(&tenants, Some("3")).await;
    for job in &jobs[1..] {
        assert_eq!(stream.told().await, (*job, "cancelled".to_owned()));
        places.push(stream.last.clone());
    }
    stream.all().await;
    places.push(stream.last.clone());
    drop(stream);
    run(&mut slow, "COMMIT").await;
    for last in places {
        let heard = listen(&tenants, last.as_deref()).await.all().await;
        assert!(heard.contains(&(jobs[0], "completed".to_owned())), "{last:?}: {heard:?}");
    }
}

#[tokio::test]
async fn jobs_that_ended_together_can_be_heard_of_a_few_at_a_time() {
    let tenants = Tenants::new(&[]).await;
    let jobs = tenants.waiting(&tenants.ours, 20).await;
    let end = "state = 'completed', finished_at = now(), finished_in = pg_current_xact_id()::text::bigint";
    sql(&tenants.service, &format!("UPDATE okt_tasks.jobs SET {end}")).await;
    let (jobs, mut seen) = (BTreeSet::from_iter(jobs), BTreeSet::new());
    // As long as somebody on the same server may still come in before them, the place does not move and they are told again.
    let (mut last, deadline) = (Some("3".to_owned()), Instant::now() + Duration::from_secs(30));
    while seen != jobs {
        assert!(Instant::now() < deadline, "heard of {} of {}", seen.len(), jobs.len());
        let mut stream = listen(&tenants, last.as_deref()).await;
        for _ in 0..2 {
            seen.insert(stream.told().await.0);
        }
        last = stream.last;
    }
}

/// What was said between two connections is not said again.
#[tokio::test]
async fn a_stream_looks_around_when_the_connection_it_hears_by_was_lost() {
    let tenants = Tenants::new(&[]).await;
    let jobs = tenants.waiting(&tenants.ours, 1).await;
    let mut stream = listen(&tenants, None).await;
    assert_eq!(stream.all().await.len(), 1);
    let end = "state = 'completed', finished_at = now(), finished_in = pg_current_xact_id()::text::bigint";
    sql(&tenants.service, &format!("UPDATE okt_tasks.jobs SET {end}")).await;
    assert_eq!(stream.all().await, []);
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE datname = current_database() AND query LIKE '%LISTEN%' AND pid <> pg_backend_pid()";
    sql(&tenants.service, cut).await;
    assert_eq!(stream.told().await, (jobs[0], "completed".to_owned()));
}

/// The end is told by nobody: a message that got lost.
#[tokio::test]
async fn an_end_that_was_not_announced_is_told_with_the_next_ones() {
    let tenants = Tenants::new(&[]).await;
    let jobs = tenants.waiting(&tenants.ours, 2).await;
    let mut stream = listen(&tenants, None).await;
    assert_eq!(stream.all().await.len(), 2);
    let end = "state = 'completed', finished_at = now(), finished_in = pg_current_xact_id()::text::bigint";
    sql(&tenants.service, &format!("UPDATE okt_tasks.jobs SET {end} WHERE id = '{}'", jobs[0])).await;
    cancel(&tenants, jobs[1]).await;
    assert_eq!(stream.told().await, (jobs[1], "cancelled".to_owned()));
    assert_eq!(stream.told().await, (jobs[0], "completed".to_owned()));
}

#[tokio::test]
async fn a_last_event_id_of_another_world_counts_as_none() {
    let tenants = Tenants::new(&[]).await;
    let jobs = tenants.waiting(&tenants.ours, 2).await;
    cancel(&tenants, jobs[0]).await;
    let ahead = format!("9223372036854775807-{}", JobId::mint().uuid().simple());
    for last in ["", "seven", "-1", "0", "9223372036854775807", &ahead, "12345678901-0199", "1'; DROP TABLE"]
    {
        let mut stream = listen(&tenants, Some(last)).await;
        assert_eq!(stream.all().await, told(&jobs[1..], "available"), "{last:?}");
        assert!(
            stream.last.unwrap().parse::<i64>().unwrap() < 4_000_000_000,
            "{last:?} is of no use any more"
        );
    }
    // From the beginning of time there is more to tell.
    let heard = listen(&tenants, Some("3")).await.all().await;
    assert_eq!(heard, [told(&jobs[..1], "cancelled"), told(&jobs[1..], "available")].concat());
}

#[tokio::test]
async fn three_hundred_jobs_end_while_a_client_comes_and_goes_and_none_is_missed() {
    let tenants = Tenants::new(&[("SVC__RATE_LIMITS__API_PER_MINUTE", "0")]).await;
    let kinds = Kinds::default().repository(|step: Step, ctx: JobContext| async move {
        ctx.progress(Progress { stage: "working".to_owned(), ..Progress::default() });
        tokio::time::sleep(Duration::from_millis(u64::from(step.n % 40))).await;
        ctx.begin().await?.commit(None).await
    });
    let worker = tenants.worker(8, kinds).await;
    let mut open: BTreeSet<JobId> = BTreeSet::new();
    let (mut last, mut connections) = (None, 0);
    let mut seen: BTreeMap<JobId, String> = BTreeMap::new();
    let deadline = Instant::now() + Duration::from_secs(100);
    let mut made = 0;
    while made < 300 || !open.is_empty() {
        assert!(Instant::now() < deadline, "{} of 300 are missing", open.len());
        let mut stream = listen(&tenants, last.as_deref()).await;
        connections += 1;
        for n in 0..if made < 300 { 12 } else { 0 } {
            open.insert(tenants.push(&tenants.ours, &Step { n: made + n, source: None }, 0).await);
        }
        made = (made + 12).min(300);
        for _ in 0..4 + connections % 9 {
            let Ok(job) = tokio::time::timeout(Duration::from_millis(400), stream.job()).await else { break };
            let job = job.expect("the stream goes on");
            let (id, state) = (crate::jobs::tenants::id(&job), job["state"].as_str().unwrap().to_owned());
            if state == "completed" {
                open.remove(&id);
            }
            seen.insert(id, state);
        }
        last = stream.last.clone();
    }
    assert_eq!(seen.values().filter(|state| *state == "completed").count(), 300);
    assert!(connections > 30, "{connections}");
    worker.stop().await;
}

#[tokio::test]
async fn a_stream_of_a_job_tells_its_state_until_the_last() {
    let tenants = Tenants::new(&[]).await;
    let gate = Arc::new(Semaphore::new(0));
    let waits = Arc::clone(&gate);
    let kinds = Kinds::default().repository(move |_: Step, ctx: JobContext| {
        let gate = Arc::clone(&waits);
        async move {
            ctx.progress(Progress { stage: "reading".to_owned(), ..Progress::default() });
            drop(gate.acquire().await);
            ctx.begin().await?.commit(None).await
        }
    });
    let one = tenants.push(&tenants.ours, &Step::default(), 0).await;
    let path = tenants.ours.path(&format!("jobs/{one}/events"));
    let (service, token) = (&tenants.service, &tenants.ours.token);
    let mut stream = Listener::open(service, token, &path, None).await;
    let first = stream.job().await.unwrap();
    assert_eq!(first["waiting_for"], "relay", "it is on its way to the queue");
    let worker = tenants.worker(1, kinds).await;
    let mut running = stream.job().await.unwrap();
    while running["progress"].is_null() {
        running = stream.job().await.unwrap();
    }
    assert_eq!((&running["state"], &running["progress"]["stage"]), (&"running".into(), &"reading".into()));
    // Others are none of its business.
    cancel(&tenants, tenants.waiting(&tenants.ours, 1).await[0]).await;
    gate.add_permits(1);
    assert_eq!(stream.told().await, (one, "completed".to_owned()));
    assert!(stream.next().await.is_none(), "there is nothing more to come");

    let mut again = Listener::open(service, token, &path, None).await;
    assert_eq!(again.told().await, (one, "completed".to_owned()));
    assert!(again.next().await.is_none());
    let known = ask(service, token, &path, again.last.as_deref()).await;
    assert_eq!(known.status(), 204, "a browser that hears this does not come back");
    let unknown =
        ask(service, token, &tenants.ours.path(&format!("jobs/{}/events", JobId::mint())), None).await;
    assert_eq!(unknown.status(), 404);
    worker.stop().await;
}

#[tokio::test]
async fn the_streams_of_two_tenants_are_apart() {
    let tenants = Tenants::new(&[]).await;
    let mut ours = listen(&tenants, None).await;
    let (service, theirs) = (&tenants.service, &tenants.theirs);
    let mut eves = Listener::open(service, &theirs.token, &theirs.path("events"), None).await;
    assert!(ours.all().await.is_empty() && eves.all().await.is_empty());
    let (mine, hers) = (tenants.waiting(&tenants.ours, 2).await, tenants.waiting(theirs, 2).await);
    // Told of both in one breath, as a worker does.
    let mut conn = service.api.app.databases().acquire_tasks().await.unwrap();
    okt_queue::enqueue(&mut conn, &[job(&tenants.ours), job(theirs)]).await.unwrap();
    drop(conn);
    cancel(&tenants, mine[0]).await;
    let seen = |heard: Vec<(JobId, String)>| heard.into_iter().map(|(job, _)| job).collect::<BTreeSet<_>>();
    let (we, they) = (seen(ours.all().await), seen(eves.all().await));
    assert_eq!((we.len(), they.len()), (3, 3));
    assert!(we.is_superset(&mine.into_iter().collect()) && they.is_superset(&hers.into_iter().collect()));
    assert!(we.is_disjoint(&they));
    // Whoever comes back with the other's place hears of their own all the same.
    let eves = Listener::open(service, &theirs.token, &theirs.path("events"), Some("3")).await.all().await;
    assert!(seen(eves).is_disjoint(&we));
}

#[tokio::test]
async fn a_drain_ends_streams_and_does_not_wait_for_them() {
    let tenants = Tenants::new(&[("SVC__SERVER__DRAIN_DELAY", "300ms")]).await;
    let waiting = tenants.waiting(&tenants.ours, 1).await;
    let path = tenants.ours.path(&format!("jobs/{}/events", waiting[0]));
    let mut one = Listener::open(&tenants.service, &tenants.ours.token, &path, None).await;
    let mut all = listen(&tenants, None).await;
    let (first, second) = (one.told().await, all.told().await);
    assert_eq!(first, second);
    let started = Instant::now();
    tenants.service.stop_and_wait().await;
    let (ended, elapsed) = ((one.job().await, all.job().await), started.elapsed());
    assert_eq!(ended, (None, None), "the streams end in peace");
    assert!(elapsed < Duration::from_secs(10), "{elapsed:?}");
}

#[tokio::test]
async fn a_stream_ends_when_its_reader_may_not_read_any_more() {
    let tenants = Tenants::new(&[]).await;
    let (service, ours) = (&tenants.service, &tenants.ours);
    let check = Duration::from_millis(300);
    service.api.edge().set_stream_rules(StreamRules { check, fresh: check, ..StreamRules::default() });
    let waiting = tenants.waiting(ours, 1).await;
    let other = session(service, ours.person.id).await;
    let mut leaves = Listener::open(service, &other, &ours.path("events"), None).await;
    let mut stays = listen(&tenants, None).await;
    let one = ours.path(&format!("jobs/{}/events", waiting[0]));
    let mut one = Listener::open(service, &ours.token, &one, None).await;
    for stream in [&mut leaves, &mut stays, &mut one] {
        stream.told().await;
    }
    tokio::time::sleep(check * 3).await;
    let left = service.request(http::Method::POST, "/api/v1/auth/logout").bearer_auth(&other).send().await;
    assert_eq!(left.unwrap().status(), 204);
    let end = |ended: Result<_, _>| ended.expect("the stream ends");
    let within = Duration::from_secs(3);
    assert!(end(tokio::time::timeout(within, leaves.job()).await).is_none());
    assert!(tokio::time::timeout(check * 3, stays.job()).await.is_err(), "the other session goes on");

    take(service, ours.person.id, &ours.id.to_string(), "editor").await;
    assert!(end(tokio::time::timeout(within, stays.job()).await).is_none());
    assert!(end(tokio::time::timeout(within, one.job()).await).is_none());
}

#[tokio::test]
async fn a_stream_ends_after_its_time_and_can_be_taken_up_again() {
    let tenants = Tenants::new(&[]).await;
    let lifetime = Duration::from_secs(1);
    tenants.service.api.edge().set_stream_rules(StreamRules { lifetime, ..StreamRules::default() });
    let jobs = tenants.waiting(&tenants.ours, 1).await;
    let mut stream = listen(&tenants, None).await;
    stream.told().await;
    assert!(stream.job().await.is_none());
    cancel(&tenants, jobs[0]).await;
    let mut stream = listen(&tenants, stream.last.as_deref()).await;
    assert_eq!(stream.told().await, (jobs[0], "cancelled".to_owned()));
}

#[tokio::test]
async fn streams_are_limited_for_a_caller_and_for_the_process() {
    let tenants = Tenants::new(&[]).await;
    let rules = StreamRules { per_caller: 3, per_process: 6, ..StreamRules::default() };
    tenants.service.api.edge().set_stream_rules(rules);
    let (service, ours, theirs) = (&tenants.service, &tenants.ours, &tenants.theirs);
    let mut open = Vec::new();
    for _ in 0..3 {
        open.push(listen(&tenants, None).await);
    }
    let refused = ask(service, &ours.token, &ours.path("events"), None).await;
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers()["retry-after"], "30");
    for _ in 0..2 {
        open.push(Listener::open(service, &theirs.token, &theirs.path("events"), None).await);
    }
    assert_eq!(ask(service, &theirs.token, &theirs.path("events"), None).await.status(), 503);
    // Whoever hangs up makes room.
    drop(open);
    eventually(Duration::from_secs(10), "there is room again", async || {
        let status = ask(service, &ours.token, &ours.path("events"), None).await.status();
        if status == 200 { Ok(()) } else { Err(status) }
    })
    .await;
}

#[tokio::test]
async fn many_silent_streams_hold_no_connection_to_the_database() {
    let tenants = Tenants::new(&[("SVC__DATABASES__DEFAULT__MAX_CONNS", "2")]).await;
    let mut streams = Vec::new();
    for _ in 0..40 {
        streams.push(listen(&tenants, None).await);
    }
    let new = tenants.waiting(&tenants.ours, 1).await;
    for stream in &mut streams {
        assert_eq!(stream.told().await, (new[0], "available".to_owned()));
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    for (name, pool) in tenants.service.api.app.databases().usage() {
        assert_eq!(pool.open, pool.idle, "{name}");
    }
}

/// Beyond its connection, which takes some 14 KB whatever it is used for.
#[tokio::test]
async fn a_silent_stream_takes_little_memory() {
    const MANY: usize = 500;
    let tenants = Tenants::new(&[("SVC__RATE_LIMITS__API_PER_MINUTE", "0")]).await;
    tenants
        .service
        .api
        .edge()
        .set_stream_rules(StreamRules { per_caller: 2 * MANY, ..StreamRules::default() });
    tenants.waiting(&tenants.ours, 3).await;
    let address = tenants.service.url.trim_start_matches("http://");
    let open = async |path: &str, expected: &str| {
        #[expect(clippy::disallowed_methods, reason = "a client that takes no memory itself")]
        let mut stream = TcpStream::connect(address).await.unwrap();
        let bearer = &tenants.ours.token;
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {bearer}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        while text.matches(expected).count() < 3 {
            let mut buffer = [0; 4096];
            let read = stream.read(&mut buffer).await.unwrap();
            text.push_str(&String::from_utf8_lossy(&buffer[..read]));
        }
        stream
    };
    let mut all = Vec::with_capacity(5 * MANY);
    let mut grown = async |many: usize, path: &str, expected: &str| {
        let before = resident();
        for _ in 0..many {
            all.push(open(path, expected).await);
        }
        resident().saturating_sub(before) / many
    };
    let (silence, events) = ("/healthz", tenants.ours.path("events"));
    // What is allocated once is there after the first, and what the start of a service has left free is taken up.
    grown(1_200, silence, ": ").await;
    grown(50, &events, "event: job").await;
    let connection = grown(MANY, silence, ": ").await;
    let stream = grown(MANY, &events, "event: job").await;
    println!("{stream} bytes for a stream, {connection} for a connection");
    assert!(stream < connection + 10_000, "{stream} bytes for a stream, {connection} for a connection");
}

/// In bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}
