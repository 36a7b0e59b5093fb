use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use okt_testkit::client::{Answer, client};
use okt_testkit::db::TestDatabase;
use okt_testkit::process::Process;
use okt_testkit::wait::eventually;
use tokio::sync::RwLock;

use super::OKT;

const RATE: u64 = 200;

/// How long a process may take to be ready.
const LIMIT: Duration = Duration::from_secs(30);

/// How many restarts there are. `OKT_RESTARTS` makes it more.
const RESTARTS: usize = 10;

/// What a balancer knows: the addresses that said they are ready when last asked.
type Ready = Arc<RwLock<Vec<String>>>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_rolling_restarts_of_two_processes_under_load_fail_no_request() {
    let restarts = std::env::var("OKT_RESTARTS").map_or(RESTARTS, |text| text.parse().unwrap());
    let database = TestDatabase::migrated().await;
    let settings = [("SVC__DATABASES__DEFAULT__URL", database.url()), ("SVC__SERVER__DRAIN_DELAY", "500ms")];
    let mut processes = [Process::serve(&*OKT, &settings), Process::serve(&*OKT, &settings)];
    let known = Arc::new(RwLock::new(processes.each_ref().map(|process| process.url.clone()).to_vec()));
    let ready = Ready::default();
    let over = Arc::new(AtomicBool::new(false));
    let (sent, failures) = (Arc::new(AtomicUsize::new(0)), Arc::new(RwLock::new(Vec::new())));

    let prober = tokio::spawn(probe(Arc::clone(&known), Arc::clone(&ready), Arc::clone(&over)));
    eventually(LIMIT, "both are ready", async || match ready.read().await.len() {
        2 => Ok(()),
        some => Err(some),
    })
    .await;
    let load =
        tokio::spawn(load(Arc::clone(&ready), Arc::clone(&over), Arc::clone(&sent), Arc::clone(&failures)));

    for round in 0..restarts {
        let old = &mut processes[round % 2];
        old.terminate();
        let status = old.wait();
        assert!(status.success(), "it drained and left in peace: {status}\n{}", old.log());
        *old = Process::serve(&*OKT, &settings);
        *known.write().await = processes.each_ref().map(|process| process.url.clone()).to_vec();
        let fresh = &processes[round % 2].url;
        eventually(LIMIT, "the new one is ready", async || {
            let ready = ready.read().await;
            if ready.contains(fresh) { Ok(()) } else { Err(format!("{ready:?}")) }
        })
        .await;
    }
    over.store(true, Ordering::Relaxed);
    load.await.unwrap();
    prober.await.unwrap();

    let failures = failures.read().await;
    let sent = sent.load(Ordering::Relaxed);
    println!("{restarts} restarts, {sent} requests, {} failed", failures.len());
    assert!(sent > 1000, "the load was real: {sent}");
    assert!(
        failures.is_empty(),
        "{} of {sent} failed: {:?}",
        failures.len(),
        &failures[..failures.len().min(5)]
    );
}

/// Asks everybody every 50 ms, as a balancer would every few seconds.
async fn probe(known: Ready, ready: Ready, over: Arc<AtomicBool>) {
    let client = client();
    while !over.load(Ordering::Relaxed) {
        let mut up = Vec::new();
        for url in known.read().await.clone() {
            let answer = Answer::try_of(client.get(format!("{url}/readyz"))).await;
            if answer.is_ok_and(|answer| answer.status == 200) {
                up.push(url);
            }
        }
        *ready.write().await = up;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// An open loop: a request every so often, whether or not the ones before have been answered.
async fn load(
    ready: Ready,
    over: Arc<AtomicBool>,
    sent: Arc<AtomicUsize>,
    failures: Arc<RwLock<Vec<String>>>,
) {
    let client = client();
    let mut tick = tokio::time::interval(Duration::from_micros(1_000_000 / RATE));
    let mut requests = tokio::task::JoinSet::new();
    while !over.load(Ordering::Relaxed) {
        tick.tick().await;
        let number = sent.fetch_add(1, Ordering::Relaxed);
        let urls = ready.read().await.clone();
        let Some(url) = urls.get(number % urls.len().max(1)).cloned() else {
            failures.write().await.push("nobody was ready".to_owned());
            continue;
        };
        let (client, failures) = (client.clone(), Arc::clone(&failures));
        requests.spawn(async move {
            match Answer::try_of(client.get(format!("{url}/api/v1/repositories/presets"))).await {
                Ok(answer) if answer.status == 200 => {}
                Ok(answer) => failures.write().await.push(format!("{}", answer.status)),
                Err(error) => failures.write().await.push(format!("{error:?}")),
            }
        });
    }
    requests.join_all().await;
}

#[tokio::test]
async fn leaving_is_announced_before_it_happens() {
    let database = TestDatabase::migrated().await;
    let settings = [("SVC__DATABASES__DEFAULT__URL", database.url()), ("SVC__SERVER__DRAIN_DELAY", "2s")];
    let mut process = Process::serve(&*OKT, &settings);
    let (client, url) = (client(), process.url.clone());
    process.terminate();
    let ready = eventually(Duration::from_secs(2), "it says that it leaves", async || {
        let ready = Answer::of(client.get(format!("{url}/readyz"))).await;
        if ready.status == 503 { Ok(ready) } else { Err(format!("{ready:?}")) }
    })
    .await;
    assert_eq!(ready.json()["status"], "draining");
    assert_eq!(ready.header("retry-after"), "1");
    assert_eq!(ready.header("connection"), "close");
    let served = Answer::of(client.get(format!("{url}/api/v1/repositories/presets"))).await;
    assert_eq!(served.status, 200, "requests are still taken for a moment");
    assert!(process.wait().success());
    assert!(client.get(format!("{url}/healthz")).send().await.is_err());
}
