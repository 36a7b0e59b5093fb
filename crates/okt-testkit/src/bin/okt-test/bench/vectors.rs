//! What the stores of vectors cost: writing against the bare client and the bare statement in the same batches, and a
//! small repository in pgvector among many others against the same one alone. Built and run in release: `cargo xtask bench`.
//!
//! `okt-test bench vectors POINTS ROUNDS`: points of others, and how often the arms take turns. A million takes some minutes to
//! load and a few gigabytes.

use anyhow::ensure;
use okt_testkit::vectors::measure;

const OTHERS: u32 = 50_000;
const ROUNDS: usize = 3;
/// How many are written in each arm.
const WRITTEN: usize = 6_500;
/// What has to be reached: of the bare points a second, and times as long as alone.
const WRITING: f64 = 0.8;
const AMONG_OTHERS: f64 = 1.3;

pub async fn run(arguments: &[String]) -> anyhow::Result<()> {
    let others = arguments.first().map_or(Ok(OTHERS), |text| text.parse())?;
    let rounds = arguments.get(1).map_or(Ok(ROUNDS), |text| text.parse())?;
    let qdrant = measure::upsert_to_qdrant(WRITTEN, rounds).await?;
    println!("writing to Qdrant: {qdrant:.3} of bare (limit {WRITING})");
    let pgvector = measure::upsert_to_pgvector(WRITTEN, rounds).await?;
    println!("writing to pgvector: {pgvector:.3} of bare (limit {WRITING})");
    let among = measure::among_others(others, rounds).await?;
    println!(
        "a small repository among {others} points of others: {among:.3} times as long (limit {AMONG_OTHERS})"
    );
    ensure!(qdrant >= WRITING && pgvector >= WRITING && among <= AMONG_OTHERS, "worse than a limit");
    Ok(())
}
