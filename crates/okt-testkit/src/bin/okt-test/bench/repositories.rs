//! What a million repositories cost whoever looks at a few: listing, opening and being let in against the same with a
//! thousand, by the clock, and the plans of the statements behind them. Built and run in release: `cargo xtask bench`.
//!
//! Both installations lie on a server of their own and are asked in turns. It has memory for all rows, as whoever has a
//! million tenants gives it: what is measured is the statements, not the reading of files. An argument is another number
//! than a million.

use std::process::Command;

use anyhow::{Context, ensure};
use okt_testkit::cluster::Cluster;
use okt_testkit::tenants::{Installation, compare};

const FEW: u32 = 1_000;
const MANY: u32 = 1_000_000;
const SAMPLES: usize = 400;
/// What has to be reached.
const LIMIT: f64 = 1.3;

/// Set for the second of the two processes: what it finds databases on.
const SERVER: &str = "OKT_TEST_DATABASE_URL";
const SECOND: &str = "OKT_BENCH_SECOND";

pub async fn run(arguments: &[String]) -> anyhow::Result<()> {
    if std::env::var_os(SECOND).is_some() {
        return measure(arguments).await;
    }
    let cluster = Cluster::start_with(&["shared_buffers=3GB", "max_wal_size=8GB"]);
    let own = std::env::current_exe().context("cannot find the path of this program")?;
    let second = Command::new(own)
        .args(std::env::args().skip(1))
        .env(SECOND, "1")
        .env(SERVER, cluster.url())
        .status()
        .context("can't start a second process")?;
    ensure!(second.success(), "the measuring process failed");
    Ok(())
}

async fn measure(arguments: &[String]) -> anyhow::Result<()> {
    let many = arguments.first().map_or(Ok(MANY), |text| text.parse())?;
    let started = std::time::Instant::now();
    let (small, large) = (Installation::of(FEW).await, Installation::of(many).await);
    println!("{FEW} and {many} repositories loaded in {:.0} s", started.elapsed().as_secs_f64());
    let (few_plans, many_plans) = (small.plans().await, large.plans().await);
    let figures = compare(&small, &large, SAMPLES).await;
    for figure in &figures {
        println!("{figure} (limit {LIMIT})");
    }
    ensure!(few_plans == many_plans, "with {FEW}:\n{few_plans}\nwith {many}:\n{many_plans}");
    println!("the plans are the same");
    let worst = figures.iter().map(okt_testkit::tenants::Figure::ratio).fold(0.0, f64::max);
    ensure!(worst <= LIMIT, "{worst:.2} is more than {LIMIT}");
    Ok(())
}
