use std::sync::Arc;
use std::time::{Duration, Instant};

use okt_testkit::client::{Answer, client};
use okt_testkit::cluster::Cluster;
use okt_testkit::db::run;
use okt_testkit::process::Process;
use sqlx::Connection;

use crate::load::{SERVER, open_loop};

/// How often PostgreSQL goes away. `OKT_OUTAGES` makes it more.
const OUTAGES: usize = 2;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_going_away_under_load_is_said_and_over_within_5_s() {
    let outages = std::env::var("OKT_OUTAGES").map_or(OUTAGES, |text| text.parse().unwrap());
    let cluster = Arc::new(Cluster::start());
    let server = Process::serve(SERVER, &[("SVC__DATABASES__DEFAULT__URL", &cluster.url())]);
    let mut conn = sqlx::PgConnection::connect(&cluster.url()).await.unwrap();
    run(&mut conn, "INSERT INTO notes (text) VALUES ('here')").await;
    drop(conn);
    server.await_ready().await;

    for outage in 1..=outages {
        let started = Instant::now();
        let load = tokio::spawn(open_loop(format!("{}/notes/1", server.url), 100, Duration::from_secs(14)));
        tokio::time::sleep(Duration::from_secs(2)).await;
        let cut = started.elapsed();
        let stopping = Arc::clone(&cluster);
        tokio::task::spawn_blocking(move || stopping.down()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let ready = Answer::of(client().get(format!("{}/readyz", server.url))).await;
        assert_eq!(ready.status, 503, "readiness says so");
        tokio::time::sleep(Duration::from_secs(2)).await;
        let starting = Arc::clone(&cluster);
        tokio::task::spawn_blocking(move || starting.up()).await.unwrap();
        let back = started.elapsed();

        let shots = load.await.unwrap();
        let (mut refused, mut last_refusal) = (0, back);
        for shot in &shots {
            match shot.status() {
                200 => {}
                503 => {
                    let answer = shot.answer.as_ref().unwrap();
                    assert_eq!(answer.header("retry-after"), "1");
                    assert!(["unavailable", "overloaded"].contains(&answer.problem().as_str()), "{answer:?}");
                    // The loop's clock starts a moment after ours.
                    let slack = Duration::from_millis(100);
                    assert!(shot.at + shot.took + slack >= cut, "refused before the cut, at {:?}", shot.at);
                    refused += 1;
                    last_refusal = last_refusal.max(shot.at);
                }
                other => panic!("{other} at {:?}: {:?}", shot.at, shot.answer),
            }
        }
        let recovery = last_refusal.saturating_sub(back);
        println!(
            "outage {outage}: {refused} of {} refused, normal {} ms after the start",
            shots.len(),
            recovery.as_millis()
        );
        assert!(refused > 0, "the outage was real");
        assert!(recovery < Duration::from_secs(5), "{recovery:?}");
        let after = shots.iter().filter(|shot| shot.at > back + Duration::from_secs(5)).count();
        assert!(after > 50, "the load went on afterwards: {after}");
        assert_eq!(Answer::of(client().get(format!("{}/readyz", server.url))).await.status, 200);
    }
}
