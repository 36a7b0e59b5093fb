//! The roof: commands of the one binary, and how a process starts and ends.
//!
//! Each command has a file of its name. To add one: a variant in [`Command`], a file, a line in [`run`].

mod admin;
mod config;
mod migrate;
mod parse_worker;
mod secret;
pub mod serve;
mod telemetry;
mod vectors;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand};
use okt_config::{LoadOptions, Loaded};

/// Knowledge-graph research service: sources become atomic facts, traceable to the sentence.
#[derive(Parser)]
#[command(name = "okt", version, propagate_version = true)]
struct Cli {
    /// Override file, or a folder that holds okt.toml.
    #[arg(long, global = true, value_name = "PATH")]
    config: Option<PathBuf>,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve the API and run background work.
    Serve(serve::ServeArgs),
    /// Bring the databases up to date.
    Migrate(migrate::MigrateArgs),
    /// What an operator does at the keyboard.
    Admin(admin::AdminArgs),
    /// Find out what is wrong, and mend it.
    Doctor(vectors::DoctorArgs),
    /// Make the vectors of facts anew with the model that the configuration names, while the old ones are searched.
    Reembed,
    /// Look at the configuration.
    Config(config::ConfigArgs),
    /// Reads one document from standard input, locked in. The service starts it; there is no other use.
    #[command(hide = true)]
    ParseWorker(parse_worker::ParseWorkerArgs),
}

/// Runs the command line; errors go to standard error in words, with exit code 1.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    // It reads what strangers wrote: nothing of the service is set up in it that they could reach.
    if let Command::ParseWorker(args) = &cli.command {
        return parse_worker::main(args);
    }
    match run(&cli) {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "okt: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> anyhow::Result<ExitCode> {
    // Two crates bring a provider each; without a choice the first TLS connection would panic.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    match &cli.command {
        Command::Serve(args) => serve::main(load(cli.config.clone())?, args, serve::service),
        Command::Migrate(args) => migrate::main(&load(cli.config.clone())?, args),
        Command::Admin(args) => admin::main(&load(cli.config.clone())?, args),
        Command::Doctor(args) => vectors::doctor(&load(cli.config.clone())?, args),
        Command::Reembed => vectors::reembed(&load(cli.config.clone())?),
        Command::Config(args) => {
            let (options, environment) = (load_options(cli.config.clone())?, environment()?);
            config::run(args, || okt_config::load(&options, &environment))?;
            Ok(ExitCode::SUCCESS)
        }
        Command::ParseWorker(args) => Ok(parse_worker::main(args)),
    }
}

/// Loads the configuration the way every command does.
pub fn load(config: Option<PathBuf>) -> anyhow::Result<Loaded> {
    let options = load_options(config)?;
    Ok(okt_config::load(&options, &environment()?)?)
}

fn load_options(config: Option<PathBuf>) -> anyhow::Result<LoadOptions> {
    let binary = std::env::current_exe().context("can't tell where this program lies")?;
    let working_dir = std::env::current_dir().context("can't tell the current folder")?;
    let binary_dir = binary.parent().unwrap_or(&working_dir).to_owned();
    Ok(LoadOptions { config, binary_dir, working_dir })
}

/// A setting whose value is not text must not be passed over in silence; other programs' variables are their affair.
fn environment() -> anyhow::Result<BTreeMap<String, String>> {
    let mut environment = BTreeMap::new();
    for (name, value) in std::env::vars_os() {
        let Ok(name) = name.into_string() else { continue };
        match value.into_string() {
            Ok(value) => {
                environment.insert(name, value);
            }
            Err(_) if okt_config::is_setting(&name) => {
                anyhow::bail!("environment {name}: its value is not UTF-8 text")
            }
            Err(_) => {}
        }
    }
    Ok(environment)
}
