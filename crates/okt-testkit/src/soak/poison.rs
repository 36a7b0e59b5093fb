//! Jobs that do harm among jobs that do not: the others finish, and the harm is bounded and says why.

use std::path::Path;
use std::time::{Duration, Instant};

use okt_model::RepositoryId;

use super::kinds::{Harm, Poison, Step};
use super::{Dice, TestWorkers};

#[derive(Debug)]
pub struct Outcome {
    pub innocent: i64,
    /// Innocent jobs whose effect happened exactly once.
    pub finished: i64,
    pub poison: i64,
    /// How often the most persistent of them ran.
    pub runs: i64,
    /// Poison that ended set aside, with a reason.
    pub explained: i64,
    /// Processes that died of it.
    pub deaths: usize,
    pub seconds: f64,
}

pub async fn run(program: &Path, url: &str, seed: u64, jobs: i64, poison: i64) -> Outcome {
    let mut dice = Dice::new(seed);
    let mut workers = TestWorkers::new(program, url, &[], &["--slots", "8"]).await;
    for _ in 0..3 {
        workers.spawn();
    }
    let started = Instant::now();
    let repositories: Vec<RepositoryId> = (0..5).map(|_| RepositoryId::mint()).collect();
    let innocent = jobs - poison;
    let (mut good, mut bad) = (0, 0);
    while good < innocent || bad < poison {
        let repository = dice.pick(&repositories);
        if good < innocent {
            let many = (innocent - good).min(innocent / poison + 1);
            let steps: Vec<Step> =
                (good..good + many).map(|n| Step { n, step: 1, steps: 1, work_ms: dice.below(10) }).collect();
            workers.push(repository, &steps).await.expect("the database is up");
            good += many;
        }
        if bad < poison {
            let how = match bad % 3 {
                0 => Harm::Panic,
                1 => Harm::Refuse,
                _ => Harm::Abort,
            };
            workers.push(repository, &[Poison { how }]).await.expect("the database is up");
            bad += 1;
        }
    }
    let (mut deaths, deadline) = (0, Instant::now() + Duration::from_mins(10));
    while workers.left().await > 0 {
        assert!(Instant::now() < deadline, "it did not end: {} left", workers.left().await);
        deaths += workers.replace_dead();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let once = "SELECT count(*) FROM (SELECT n FROM okt_soak.effects GROUP BY n HAVING count(*) = 1) AS e";
    let runs = "SELECT max(c) FROM (SELECT count(*) AS c FROM okt_soak.runs WHERE kind = 'soak_poison' GROUP BY job_id) AS r";
    let explained = "SELECT count(*) FROM okt_tasks.jobs WHERE kind = 'soak_poison' AND state = 'discarded'
                        AND length(failures -> -1 ->> 'message') > 10";
    Outcome {
        innocent,
        finished: workers.count(once).await,
        poison,
        runs: workers.count(runs).await,
        explained: workers.count(explained).await,
        deaths,
        seconds: started.elapsed().as_secs_f64(),
    }
}
