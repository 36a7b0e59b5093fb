//! `okt-test soak SCENARIO`: jobs under kill, outage and poison, at full length. Each prints its seed and what came of it, and
//! fails when a promise did not hold. Needs the services' environment.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use okt_testkit::db::TestDatabase;
use okt_testkit::soak::{fairness, frozen, kills, new_seed, outages, poison, recovery, ticks, worker};

#[derive(Args)]
pub struct Options {
    /// The same numbers come again with the same seed.
    #[arg(long, global = true)]
    seed: Option<u64>,
    #[command(subcommand)]
    scenario: Scenario,
}

#[derive(Subcommand)]
enum Scenario {
    /// Random kill -9 of processes.
    Kills {
        #[arg(long, default_value_t = 50_000)]
        jobs: i64,
        #[arg(long, default_value_t = 1_000)]
        kills: i64,
        #[arg(long, default_value_t = 4)]
        workers: usize,
        /// Without the one transaction; has to find duplicates.
        #[arg(long)]
        naive: bool,
    },
    /// PostgreSQL stops as in a crash.
    Outages {
        #[arg(long, default_value_t = 100)]
        stops: usize,
    },
    /// How soon a job runs again whose process was killed.
    Recovery {
        #[arg(long, default_value_t = 100)]
        kills: usize,
    },
    /// A process is stopped past its time and goes on.
    Frozen {
        #[arg(long, default_value_t = 100)]
        times: usize,
    },
    /// Jobs that do harm among jobs that do not.
    Poison {
        #[arg(long, default_value_t = 5_000)]
        jobs: i64,
        #[arg(long, default_value_t = 50)]
        poison: i64,
    },
    /// Periodic jobs of processes that keep dying.
    Ticks {
        #[arg(long, default_value_t = 100)]
        kills: usize,
    },
    /// One tenant's crowd beside another's single job.
    Fairness {
        #[arg(long, default_value_t = 50_000)]
        waiting: usize,
        #[arg(long, default_value_t = 200)]
        samples: usize,
    },
    /// A process of the above; not for people.
    #[command(hide = true)]
    Worker {
        #[arg(long)]
        slots: u32,
        #[arg(long)]
        naive: bool,
        #[arg(long)]
        tick_ms: Option<u64>,
        /// How long a job may run.
        #[arg(long)]
        limit_ms: Option<u64>,
    },
}

pub async fn run(options: Options) -> anyhow::Result<()> {
    if let Scenario::Worker { slots, naive, tick_ms, limit_ms } = options.scenario {
        let period = |ms: Option<u64>| ms.map(Duration::from_millis);
        return worker(slots, naive, period(tick_ms), period(limit_ms)).await;
    }
    let (seed, program) = (options.seed.unwrap_or_else(new_seed), std::env::current_exe()?);
    say(&format!("seed {seed}"));
    play(options.scenario, seed, program).await
}

async fn play(scenario: Scenario, seed: u64, program: PathBuf) -> anyhow::Result<()> {
    let database = TestDatabase::empty().await;
    let good = match scenario {
        Scenario::Kills { jobs, kills, workers, naive } => {
            let plan = kills::Plan { seed, jobs, kills, workers, naive };
            let outcome = kills::run(&program, database.url(), plan).await;
            say(&format!("{outcome:#?}"));
            outcome.lost == 0 && (outcome.twice > 0) == naive
        }
        Scenario::Outages { stops } => {
            let outcome = outages::run(&program, seed, stops).await;
            say(&format!("{outcome:#?}"));
            outcome.lost == 0 && outcome.twice == 0 && outcome.back_within <= 5.0
        }
        Scenario::Recovery { kills } => {
            let (p99, longest) = recovery::run(&program, database.url(), kills).await;
            say(&format!("{kills} kills: p99 {p99:.1} s, longest {longest:.1} s"));
            p99 <= 15.0
        }
        Scenario::Frozen { times } => {
            let outcome = frozen::run(&program, database.url(), times).await;
            say(&format!("{outcome:#?}"));
            outcome.refused == outcome.times && outcome.wrong == 0
        }
        Scenario::Poison { jobs, poison } => {
            let outcome = poison::run(&program, database.url(), seed, jobs, poison).await;
            say(&format!("{outcome:#?}"));
            outcome.finished == outcome.innocent && outcome.runs <= 3 && outcome.explained == outcome.poison
        }
        Scenario::Ticks { kills } => {
            let outcome = ticks::run(&program, database.url(), seed, kills).await;
            say(&format!("{outcome:#?}"));
            outcome.wrong == 0 && outcome.ticks > 1
        }
        Scenario::Fairness { waiting, samples } => {
            let migrated = TestDatabase::migrated().await;
            fairness::prepare(&migrated).await;
            let outcome = fairness::run(&migrated.config(&[]), waiting, samples).await;
            say(&format!("{outcome:#?}"));
            outcome.beside_p95 <= 2.0 * outcome.idle_p95
        }
        Scenario::Worker { .. } => true,
    };
    anyhow::ensure!(good, "a promise did not hold; run it again with --seed {seed}");
    Ok(())
}

#[expect(clippy::print_stdout, reason = "a tool talks to the person who runs it")]
fn say(text: &str) {
    println!("{text}");
}
