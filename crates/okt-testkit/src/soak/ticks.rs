//! Periodic jobs of many processes that keep dying: each tick has its one run.

use std::path::Path;
use std::time::Duration;

use super::{Dice, Yard};

#[derive(Debug)]
pub struct Outcome {
    pub kills: usize,
    /// From the first to the last.
    pub ticks: i64,
    /// Ticks that did not end in exactly one job that was completed.
    pub wrong: i64,
}

pub async fn run(program: &Path, url: &str, seed: u64, kills: usize) -> Outcome {
    let mut dice = Dice::new(seed);
    let mut yard = Yard::new(program, url, &[], &["--slots", "2", "--tick-ms", "1000"]).await;
    for _ in 0..3 {
        yard.hire();
    }
    assert!(
        yard.wait_for("SELECT count(*) FROM okt_soak.ticks", 1, Duration::from_secs(30)).await,
        "no tick"
    );
    for _ in 0..kills {
        tokio::time::sleep(Duration::from_millis(300 + dice.below(600))).await;
        // The one that ran the last tick: were there a leader, it would be this one.
        let last = "SELECT pid FROM okt_soak.runs WHERE kind = 'soak_tick' ORDER BY at DESC LIMIT 1";
        let pid = yard.count(last).await;
        if yard.has(pid) {
            yard.kill_pid(pid);
        } else {
            yard.kill(dice.index(3));
        }
        yard.hire();
    }
    // Whoever was killed in the middle of a tick left it to others.
    tokio::time::sleep(Duration::from_secs(10)).await;
    // A tick is a whole second of the database's clock; its job is made within it.
    let ticks = "SELECT (floor(extract(epoch FROM max(created_at))) - floor(extract(epoch FROM min(created_at))) + 1)::bigint
                   FROM okt_tasks.jobs WHERE kind = 'soak_tick'
                    AND created_at < clock_timestamp() - interval '8 seconds'";
    let good = "SELECT count(*) FROM (
                    SELECT floor(extract(epoch FROM created_at)) FROM okt_tasks.jobs
                     WHERE kind = 'soak_tick' AND created_at < clock_timestamp() - interval '8 seconds'
                     GROUP BY 1 HAVING count(*) = 1 AND bool_and(state = 'completed')) AS t";
    let (total, right) = (yard.count(ticks).await, yard.count(good).await);
    Outcome { kills, ticks: total, wrong: total - right }
}
