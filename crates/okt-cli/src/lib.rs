//! The commands of the one binary, and how a process starts and ends.
//!
//! Each command has a file of its name. To add one: a variant in [`Command`], a file, a line in [`run`].

mod admin;
mod bundle;
mod check;
mod client;
mod config;
mod dedup;
mod eval;
mod mcp;
mod migrate;
mod parse_worker;
mod report;
mod secret;
pub mod serve;
mod telemetry;
mod vectors;
mod version;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Parser, Subcommand};
use okt_config::{LoadOptions, Loaded};

/// Knowledge-graph research service: sources become atomic facts, traceable to the sentence.
#[derive(Parser)]
#[command(name = "okt", version = version::LONG.as_str(), propagate_version = true)]
struct Cli {
    /// Configuration file, or a directory that contains okt.toml.
    #[arg(long, global = true, value_name = "PATH")]
    config: Option<PathBuf>,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve the HTTP API and run background jobs.
    Serve(serve::ServeArgs),
    /// Apply pending schema migrations to all databases.
    Migrate(migrate::MigrateArgs),
    /// Administer accounts and repositories.
    Admin(admin::AdminArgs),
    /// Check the stored data, and repair it.
    Doctor(vectors::DoctorArgs),
    /// Re-embed all facts with the configured embedding model. The old vectors are searched until it is done.
    Reembed,
    /// Check merges of facts against the policy in force.
    Dedup(dedup::DedupArgs),
    /// Show or check the configuration.
    Config(config::ConfigArgs),
    /// Write a repository into a bundle, take one in, or look at one.
    Bundle(bundle::BundleArgs),
    /// Check a text against the facts of a repository.
    Report(report::ReportArgs),
    /// Connect an agent that starts a program (Model Context Protocol): messages go between standard input and output and a service.
    Mcp(mcp::McpArgs),
    /// Measure how well documents are read, facts made, compared and found, on a data set of your own or a public one.
    Eval(eval::EvalArgs),
    /// Parse one document from standard input in a sandbox. Started by the service; not for direct use.
    #[command(hide = true)]
    ParseWorker(parse_worker::ParseWorkerArgs),
    /// Recognise the text in one picture from standard input in a sandbox. Started by the service; not for direct use.
    #[command(hide = true)]
    OcrWorker(parse_worker::OcrWorkerArgs),
}

/// Runs the command line; errors go to standard error in words, with exit code 1.
pub fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| refuse(&error));
    // It reads what strangers wrote: nothing of the service is set up in it that they could reach.
    match &cli.command {
        Command::ParseWorker(args) => return parse_worker::main(args),
        Command::OcrWorker(args) => return parse_worker::recognise(args),
        _ => {}
    }
    match run(&cli) {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "okt: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// As the parser of arguments would, with what somebody may have meant who gives a setting as an option.
fn refuse(error: &clap::Error) -> ! {
    let _ = error.print();
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg)
        && let Some(word) = given.strip_prefix("--")
        && let Some((setting, variable)) = okt_config::variable_for(word.split('=').next().unwrap_or(word))
    {
        let _ = writeln!(
            std::io::stderr(),
            "\n{setting} is a setting, not an option: set it in okt.toml, or for one start: {variable}=… okt serve"
        );
    }
    std::process::exit(error.exit_code())
}

fn run(cli: &Cli) -> anyhow::Result<ExitCode> {
    // Two crates bring a provider each; without a choice the first TLS connection would panic.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    match &cli.command {
        Command::Serve(args) => serve::main(load(cli.config.clone())?, args, serve::service),
        Command::Migrate(args) => migrate::main(&load(cli.config.clone())?, args),
        Command::Admin(args) => admin::main(&load(cli.config.clone())?, args),
        Command::Doctor(args) => vectors::doctor(args, || load(cli.config.clone())),
        Command::Reembed => vectors::reembed(&load(cli.config.clone())?),
        Command::Dedup(args) => dedup::main(&load(cli.config.clone())?, args),
        Command::Config(args) => {
            let (options, environment) = (load_options(cli.config.clone())?, environment()?);
            config::run(args, || okt_config::load(&options, &environment))
        }
        Command::Bundle(args) => Ok(bundle::main(args)),
        Command::Report(args) => Ok(report::main(args)),
        Command::Mcp(args) => mcp::main(args),
        Command::Eval(args) => eval::run(args, || load(cli.config.clone())),
        Command::ParseWorker(args) => Ok(parse_worker::main(args)),
        Command::OcrWorker(args) => Ok(parse_worker::recognise(args)),
    }
}

/// Loads the configuration the way every command does.
pub fn load(config: Option<PathBuf>) -> anyhow::Result<Loaded> {
    let options = load_options(config)?;
    Ok(okt_config::load(&options, &environment()?)?)
}

fn load_options(config: Option<PathBuf>) -> anyhow::Result<LoadOptions> {
    let binary = std::env::current_exe().context("cannot find the path of this program")?;
    let working_dir = std::env::current_dir().context("cannot find the current directory")?;
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
                anyhow::bail!("environment {name}: the value is not valid UTF-8")
            }
            Err(_) => {}
        }
    }
    Ok(environment)
}
