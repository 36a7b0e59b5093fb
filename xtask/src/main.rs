//! Chores of the workspace: `cargo xtask <chore>`.

mod bench;
mod cargo;
mod ci;
mod figures;
mod layers;
mod soak;
mod sqlx;
mod web;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "xtask")]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Check that no crate uses one on its own layer or above, nor an engine it must not know.
    Layers {
        /// Another workspace to look at.
        #[arg(long, value_name = "Cargo.toml")]
        manifest_path: Option<PathBuf>,
    },
    /// Build in release, compare what we do with the bare engines under it, and write `docs/performance.md`; needs the services'
    /// environment, and a machine that does nothing else.
    Bench {
        /// Which; all if none is named.
        #[arg(value_name = "BENCHMARK")]
        named: Vec<String>,
    },
    /// Formatting, lints, layers, all tests; needs the services' environment.
    Ci,
    /// Build in release, run jobs under kill, outage and poison at full length, and write `docs/trust/README.md`; takes half an
    /// hour and needs the services' environment.
    Soak {
        /// Which; all if none is named.
        #[arg(value_name = "SCENARIO")]
        named: Vec<String>,
    },
    /// Record what the database says about every checked query; needs the services' environment.
    Sqlx {
        /// Record nothing; fail when the records are not true, or clippy finds something.
        #[arg(long)]
        check: bool,
    },
    /// Build the web UI into `web/dist`, from where it becomes a part of the binary. Needs npm.
    Web,
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().chore {
        Chore::Layers { manifest_path } => layers::check(manifest_path),
        Chore::Bench { named } => bench::run(&named),
        Chore::Ci => ci::run(),
        Chore::Soak { named } => soak::run(&named),
        Chore::Sqlx { check } => sqlx::record(check),
        Chore::Web => web::build(),
    }
}
