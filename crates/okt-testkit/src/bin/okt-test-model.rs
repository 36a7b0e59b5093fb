//! `okt-test-model`: the model server of the tests as a process of its own. Prints its address and serves until it is
//! stopped; `GET /stats` tells what it counted.
#![expect(clippy::print_stdout, reason = "whoever starts it reads the address there")]

use std::future::pending;

use clap::Parser;
use okt_testkit::llm::{Behaviour, Faults, Latency, ModelServer};

/// In truth a model is somebody else's machine, so it takes little of the one that is measured.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
struct Cli {
    /// On loopback; 0 for any that is free.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Median of the time that an answer takes.
    #[arg(long, default_value_t = 0.0)]
    latency_ms: f64,
    /// Spread of that time; 0 for always the same.
    #[arg(long, default_value_t = 0.0)]
    sigma: f64,
    /// Shares from 0 to 1: `rate=..,error=..,hang=..,garbage=..,truncated=..,html=..,down=..`.
    #[arg(long, default_value = "")]
    faults: Faults,
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[arg(long, default_value_t = 1)]
    retry_after_secs: u64,
    /// Numbers in a vector.
    #[arg(long, default_value_t = 1_024)]
    dimensions: usize,
    /// Answers what stands behind `OBEY:` in the text.
    #[arg(long)]
    obedient: bool,
    /// The most that it tells of a text.
    #[arg(long, default_value_t = usize::MAX)]
    most_facts: usize,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let cli = Cli::parse();
    let behaviour = Behaviour {
        latency: Latency::LogNormal { median_ms: cli.latency_ms, sigma: cli.sigma },
        faults: cli.faults,
        obedient: cli.obedient,
        most_facts: cli.most_facts,
        seed: cli.seed,
        retry_after_secs: cli.retry_after_secs,
        dimensions: cli.dimensions,
        keep: false,
    };
    let server = ModelServer::start_at(cli.port, behaviour).await;
    println!("{}", server.base_url());
    pending::<()>().await;
}
