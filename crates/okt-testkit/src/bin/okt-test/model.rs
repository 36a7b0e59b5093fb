//! `okt-test model`: the model server of the tests as a process of its own. Prints its address and serves until it is
//! stopped; `GET /stats` tells what it counted.

use std::future::pending;

use clap::Args;
use okt_testkit::llm::{Behaviour, Faults, Latency, ModelServer};

#[derive(Args)]
pub struct Options {
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

#[expect(clippy::print_stdout, reason = "whoever starts it reads the address there")]
pub async fn run(options: Options) {
    let behaviour = Behaviour {
        latency: Latency::LogNormal { median_ms: options.latency_ms, sigma: options.sigma },
        faults: options.faults,
        obedient: options.obedient,
        most_facts: options.most_facts,
        seed: options.seed,
        retry_after_secs: options.retry_after_secs,
        dimensions: options.dimensions,
        ..Behaviour::default()
    };
    let server = ModelServer::start_at(options.port, behaviour).await;
    println!("{}", server.base_url());
    pending::<()>().await;
}
