//! The short forms of what `okt-test soak` does at length: jobs under kill, outage and poison.

use std::path::Path;
use std::time::Duration;

use okt_model::RepositoryId;
use okt_testkit::db::TestDatabase;
use okt_testkit::soak::kinds::{Harm, Poison, Step};
use okt_testkit::soak::{TestWorkers, fairness, frozen, kills, new_seed, outages, poison, recovery, ticks};

/// The processes that are killed.
const PROGRAM: &str = env!("CARGO_BIN_EXE_okt-test");

fn program() -> &'static Path {
    Path::new(PROGRAM)
}

#[expect(clippy::print_stdout, reason = "a failed run can be repeated with it")]
fn seed() -> u64 {
    let seed = new_seed();
    println!("seed {seed}");
    seed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thirty_kills_lose_nothing_and_nothing_happens_twice() {
    let database = TestDatabase::migrated().await;
    let plan = kills::Plan { seed: seed(), jobs: 1500, kills: 30, workers: 3, naive: false };
    let outcome = kills::run(program(), database.url(), plan).await;
    println!("{outcome:?}");
    assert_eq!((outcome.lost, outcome.twice), (0, 0), "{outcome:?}");
    assert!(outcome.run_again > 0, "the kills met nothing: {outcome:?}");
}

/// What the test above would find if it had to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_one_transaction_kills_make_duplicates() {
    let database = TestDatabase::migrated().await;
    let plan = kills::Plan { seed: seed(), jobs: 2000, kills: 60, workers: 3, naive: true };
    let outcome = kills::run(program(), database.url(), plan).await;
    println!("{outcome:?}");
    assert!(outcome.twice > 0, "{outcome:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_stopping_under_load_loses_no_promise_and_work_is_back_within_5_s() {
    let outcome = outages::run(program(), seed(), 3).await;
    println!("{outcome:?}");
    assert_eq!((outcome.lost, outcome.twice), (0, 0), "{outcome:?}");
    assert!(outcome.promised > 50, "{outcome:?}");
    assert!(outcome.back_within <= 5.0, "{outcome:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_process_gives_its_job_back_within_15_s() {
    let database = TestDatabase::migrated().await;
    let (p99, longest) = recovery::run(program(), database.url(), 2).await;
    println!("p99 {p99:.1} s, longest {longest:.1} s");
    assert!(p99 <= 15.0, "{p99}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_frozen_process_says_afterwards_is_refused() {
    let database = TestDatabase::migrated().await;
    let outcome = frozen::run(program(), database.url(), 3).await;
    println!("{outcome:?}");
    assert_eq!((outcome.refused, outcome.wrong), (3, 0), "{outcome:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn poison_runs_three_times_at_most_and_the_others_finish() {
    let database = TestDatabase::migrated().await;
    let outcome = poison::run(program(), database.url(), seed(), 1000, 12).await;
    println!("{outcome:?}");
    assert_eq!(outcome.finished, outcome.innocent, "{outcome:?}");
    assert_eq!(outcome.explained, outcome.poison, "{outcome:?}");
    assert!(outcome.runs <= 3, "{outcome:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_tick_has_one_job_however_many_processes_die() {
    let database = TestDatabase::migrated().await;
    let outcome = ticks::run(program(), database.url(), seed(), 10).await;
    println!("{outcome:?}");
    assert_eq!(outcome.wrong, 0, "{outcome:?}");
    assert!(outcome.ticks >= 5, "{outcome:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_with_everything_waiting_does_not_hold_up_another() {
    let database = TestDatabase::migrated().await;
    fairness::prepare(&database).await;
    let outcome = fairness::run(&database.config(&[]), 5_000, 20).await;
    println!("{outcome:?}");
    // Behind the crowd it would be two minutes. How it compares with an idle queue is measured by the long form.
    assert!(outcome.beside_p95 <= 5_000.0, "{outcome:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_never_yields_gives_its_slot_back() {
    let database = TestDatabase::migrated().await;
    // One slot for each kind, and work enough behind the stubborn one.
    let mut workers =
        TestWorkers::new(program(), database.url(), &[], &["--slots", "1", "--limit-ms", "2000"]).await;
    workers.spawn();
    let repository = RepositoryId::mint();
    let spin = Poison { how: Harm::Spin(40) };
    let stubborn = workers.push(repository, &[spin]).await.unwrap()[0];
    let runs = "SELECT count(*) FROM okt_soak.runs WHERE kind = 'soak_poison'";
    assert!(workers.wait_for(runs, 1, Duration::from_secs(20)).await, "it did not start");
    let next = workers.push(repository, &[Poison { how: Harm::Refuse }]).await.unwrap()[0];
    workers.push(repository, &[Step { n: 1, step: 1, steps: 1, work_ms: 1 }]).await.unwrap();
    // Other kinds are not held up at all.
    assert!(workers.wait_for("SELECT count(*) FROM okt_soak.effects", 1, Duration::from_secs(10)).await);
    // Whoever gets it: the one behind, or the stubborn one once more, which is tried again after anything up to 5 s.
    // Its limit of 2 s, the 10 s that it has to yield, and as much again as a slow machine needs.
    assert!(workers.wait_for(runs, 2, Duration::from_secs(20)).await, "the slot did not come back");
    let said = format!(
        "SELECT count(*) FROM okt_tasks.jobs WHERE id = '{stubborn}' AND failures -> -1 ->> 'message' LIKE '%timed out after 2 s%'"
    );
    assert!(workers.wait_for(&said, 1, Duration::from_secs(5)).await, "nobody hears why");
    let behind = format!("SELECT count(*) FROM okt_tasks.jobs WHERE id = '{next}' AND state = 'discarded'");
    assert!(workers.wait_for(&behind, 1, Duration::from_secs(40)).await, "the one behind never ran");
}
