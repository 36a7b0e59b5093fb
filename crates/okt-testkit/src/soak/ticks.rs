//! Periodic jobs of many processes that keep dying: each tick has its one run.

use std::path::Path;
use std::time::Duration;

use super::{Dice, TestWorkers};

#[derive(Debug)]
pub struct Outcome {
    pub kills: usize,
    /// From the first to the last.
    pub ticks: i64,
    /// Ticks without a completed job of their own, and jobs that belong to no tick.
    pub wrong: i64,
}

pub async fn run(program: &Path, url: &str, seed: u64, kills: usize) -> Outcome {
    let mut dice = Dice::new(seed);
    let mut workers = TestWorkers::new(program, url, &[], &["--slots", "2", "--tick-ms", "1000"]).await;
    for _ in 0..3 {
        workers.spawn();
    }
    assert!(
        workers.wait_for("SELECT count(*) FROM okt_soak.ticks", 1, Duration::from_secs(30)).await,
        "no tick"
    );
    for _ in 0..kills {
        tokio::time::sleep(Duration::from_millis(300 + dice.below(600))).await;
        // The one that ran the last tick: were there a leader, it would be this one.
        let last = "SELECT pid FROM okt_soak.runs WHERE kind = 'soak_tick' ORDER BY at DESC LIMIT 1";
        let pid = workers.count(last).await;
        if workers.has(pid) {
            workers.kill_pid(pid);
        } else {
            workers.kill(dice.index(3));
        }
        workers.spawn();
    }
    // Whoever was killed in the middle of a tick left it to others.
    tokio::time::sleep(Duration::from_secs(10)).await;
    // A tick is a second of the database's clock, and its job's id is made of it. One moment for all that is counted:
    // what is younger has had no time to end.
    let last = workers.count("SELECT floor(extract(epoch FROM clock_timestamp()))::bigint - 8").await;
    let jobs = "JOIN okt_tasks.jobs j ON j.id = md5('soak_tick:' || tick)::uuid";
    let first = workers
        .count(&format!(
            "SELECT min(tick) FROM generate_series({last}::bigint - 3600, {last}) AS tick {jobs}"
        ))
        .await;
    let right = format!(
        "SELECT count(*) FROM generate_series({first}::bigint, {last}) AS tick {jobs} WHERE j.state = 'completed'"
    );
    let strays = format!(
        "SELECT count(*) FROM okt_tasks.jobs WHERE kind = 'soak_tick'
            AND id NOT IN (SELECT md5('soak_tick:' || tick)::uuid FROM generate_series({first}::bigint, {last} + 60) AS tick)"
    );
    let ticks = last - first + 1;
    let wrong = ticks - workers.count(&right).await + workers.count(&strays).await;
    Outcome { kills, ticks, wrong }
}
