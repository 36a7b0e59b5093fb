//! Random `kill -9` of processes in the middle of their work: nothing is lost, nothing happens twice.

use std::path::Path;
use std::time::{Duration, Instant};

use okt_model::RepositoryId;

use super::kinds::Step;
use super::{Dice, TestWorkers};

#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub seed: u64,
    pub jobs: i64,
    pub kills: i64,
    pub workers: usize,
    /// Write the effect and delete the outbox entry in two transactions.
    pub naive: bool,
}

#[derive(Debug)]
pub struct Outcome {
    pub jobs: i64,
    pub kills: i64,
    pub seconds: f64,
    /// Effects that never happened.
    pub lost: i64,
    /// Effects that happened more than once.
    pub twice: i64,
    /// Jobs that ran more than once.
    pub run_again: i64,
    /// Jobs that were there at three crashes, were set aside, and were tried again by hand.
    pub set_aside: usize,
}

pub async fn run(program: &Path, url: &str, plan: Plan) -> Outcome {
    let mut dice = Dice::new(plan.seed);
    let naive: &[&str] = if plan.naive { &["--naive"] } else { &[] };
    let arguments = [&["--slots", "8"], naive].concat();
    let mut workers = TestWorkers::new(program, url, &[], &arguments).await;
    let repositories: Vec<RepositoryId> = (0..20).map(|_| RepositoryId::mint()).collect();
    // Every job asks for a second one.
    let pairs = plan.jobs / 2;
    let started = Instant::now();
    for _ in 0..plan.workers {
        workers.spawn();
    }
    let (mut pushed, mut kills) = (0, 0);
    while kills < plan.kills || pushed < pairs {
        // In step with the kills, so that the last of them meets as much work as the first.
        let due = if kills >= plan.kills { pairs } else { pairs * (kills + 1) / plan.kills };
        while pushed < due {
            let many = (due - pushed).min(100);
            let steps: Vec<Step> = (pushed..pushed + many)
                .map(|n| Step { n, step: 1, steps: 2, work_ms: dice.below(20) })
                .collect();
            let repository = dice.pick(&repositories);
            workers.push(repository, &steps).await.expect("the database is up");
            pushed += many;
        }
        if kills < plan.kills {
            tokio::time::sleep(Duration::from_millis(20 + dice.below(200))).await;
            workers.kill(dice.index(workers.running()));
            workers.spawn();
            kills += 1;
        }
    }
    let mut set_aside = 0;
    let deadline = Instant::now() + Duration::from_mins(5) + started.elapsed();
    loop {
        assert!(
            workers.finish(deadline.saturating_duration_since(Instant::now())).await,
            "it did not end: {} left",
            workers.left().await
        );
        let again = workers.retry_discarded().await;
        set_aside += again;
        if again == 0 {
            break;
        }
    }
    let effects = "SELECT count(*) FROM (SELECT n, step FROM okt_soak.effects GROUP BY n, step";
    Outcome {
        jobs: pairs * 2,
        kills,
        seconds: started.elapsed().as_secs_f64(),
        lost: pairs * 2 - workers.count(&format!("{effects}) AS e")).await,
        twice: workers.count(&format!("{effects} HAVING count(*) > 1) AS e")).await,
        run_again: workers.count("SELECT count(*) FROM okt_tasks.jobs WHERE attempt > 1 OR claims > 1").await,
        set_aside,
    }
}
