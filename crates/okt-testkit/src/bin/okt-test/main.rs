//! `okt-test`: everything that tests and people start beside the product. One program, because each links the whole of it.

mod bench;
mod model;
mod server;
mod soak;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// As the product has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compare the product with the engines under it.
    Bench(bench::Options),
    /// Run jobs under kill, outage and poison.
    Soak(soak::Options),
    /// Serve as a model for tests; prints its address.
    Model(model::Options),
    /// Serve the notes service of the tests.
    Serve(server::Options),
}

fn main() -> anyhow::Result<ExitCode> {
    let cli = Cli::parse();
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    match cli.command {
        Command::Serve(options) => return server::run(options),
        Command::Bench(options) if options.single_threaded() => {
            one_thread()?.block_on(bench::run(options))?;
        }
        Command::Bench(options) => tokio::runtime::Runtime::new()?.block_on(bench::run(options))?,
        Command::Soak(options) => tokio::runtime::Runtime::new()?.block_on(soak::run(options))?,
        // In truth a model is somebody else's machine, so it takes little of the one that is measured.
        Command::Model(options) => one_thread()?.block_on(model::run(options)),
    }
    Ok(ExitCode::SUCCESS)
}

fn one_thread() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}
