//! The commands of the one binary, and how a process starts and ends.
//!
//! Each command has a file of its name. To add one: a variant in [`Command`], a file, a line in [`run`].

mod admin;
mod ask;
mod backup;
mod bundle;
mod check;
mod client;
mod config;
mod dedup;
mod doctor;
mod eval;
mod mcp;
mod migrate;
mod parse_worker;
mod reference;
mod registry;
mod report;
mod secret;
pub mod serve;
mod telemetry;
mod up;
mod vectors;
mod version;
mod words;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, Parser, Subcommand};
use client::remote;
use okt_config::{LoadOptions, Loaded};

/// Knowledge-graph research service: sources become atomic facts, traceable to the sentence.
#[derive(Parser)]
#[command(name = "okt", version = version::LONG.as_str(), propagate_version = true, after_help = EXIT_CODES)]
struct Cli {
    /// Configuration file, or a directory that contains okt.toml.
    #[arg(long, global = true, value_name = "PATH")]
    config: Option<PathBuf>,

    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "Commands that ask a service exit with 0 if it is done, 1 if what was checked or waited for came out badly, 2 for a \
    wrong command line, 3 if the service refused or could not be asked. All others exit with 0, or with 1 for an error. \
    Data goes to standard output, everything else to standard error. NO_COLOR turns colours off.";

#[derive(Subcommand)]
enum Command {
    /// Start everything for one person: a private PostgreSQL, the service, and the web UI in the browser.
    Up(up::UpArgs),
    /// Serve the HTTP API and run background jobs.
    Serve(serve::ServeArgs),
    /// Apply pending schema migrations to all databases.
    Migrate(migrate::MigrateArgs),
    /// Say which build this is and, if asked, whether the databases miss migrations of it.
    ///
    /// Exit codes: 0 if no migration is missing, also where a newer release has migrated, 1 if one is or a database can't be looked at.
    Version(version::VersionArgs),
    /// Write all databases and files into a folder, as they are at this moment. Nothing has to stop.
    Backup(backup::BackupArgs),
    /// Put a backup into empty databases and an empty storage. Nothing may run.
    Restore(backup::RestoreArgs),
    /// Sign in to a service, so that other commands work there.
    Login(client::login::LoginArgs),
    /// End what `okt login` began.
    Logout,
    /// List, make and choose repositories of a service.
    Repo(client::repo::RepoArgs),
    /// Add sources to a repository, and watch what becomes of them.
    Source(client::source::SourceArgs),
    /// Search a repository. Exits with 1 if nothing is found.
    Search(client::find::SearchArgs),
    /// Show and list facts.
    Fact(client::find::FactArgs),
    /// Show and list concepts.
    Concept(client::find::ConceptArgs),
    /// List, watch, cancel and retry background jobs.
    Job(client::job::JobArgs),
    /// Show what a repository has spent on models.
    Usage(client::job::UsageArgs),
    /// Call any route of the HTTP API and print its answer.
    Api(client::job::ApiArgs),
    /// Administer accounts and repositories.
    Admin(admin::AdminArgs),
    /// Look at everything that the service needs: what is wrong, why, and the command that mends it.
    ///
    /// Exit codes: 0 if nothing is broken, 1 if something is.
    Doctor(doctor::DoctorArgs),
    /// Re-embed all facts with the configured embedding model. The old vectors are searched until it is done.
    Reembed,
    /// Check merges of facts against the policy in force.
    Dedup(dedup::DedupArgs),
    /// Show or check the configuration.
    Config(config::ConfigArgs),
    /// Serve a shared registry of packages and bundles, and look after its keys.
    Registry(registry::RegistryArgs),
    /// Write a repository into a bundle, take one in, or look at one.
    Bundle(bundle::BundleArgs),
    /// Ask a question of the facts of a repository.
    ///
    /// Exit codes: 0 with an answer, 1 where nothing is known, 2 for a wrong command line, 3 if the service could not be asked.
    Ask(ask::AskArgs),
    /// Check a text against the facts of a repository.
    Report(report::ReportArgs),
    /// Connect an agent that starts a program (Model Context Protocol): messages go between standard input and output and a service.
    Mcp(mcp::McpArgs),
    /// Measure how well documents are read, facts made, compared and found, and questions answered, on a data set of your own or a
    /// public one.
    Eval(eval::EvalArgs),
    /// Print what makes a shell complete commands and options.
    Completions(words::CompletionsArgs),
    /// Write manual pages, one for each command.
    Man(words::ManArgs),
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
        Command::Up(args) => up::main(cli.config.clone(), args),
        Command::Serve(args) => serve::main(load(cli.config.clone())?, args, serve::service),
        Command::Migrate(args) => migrate::main(&load(cli.config.clone())?, args),
        Command::Version(args) => version::main(args, || load(cli.config.clone())),
        Command::Admin(args) => admin::main(&load(cli.config.clone())?, args),
        Command::Login(args) => Ok(remote::end(client::login::login(args))),
        Command::Logout => Ok(remote::end(client::login::logout())),
        Command::Repo(args) => Ok(remote::end(client::repo::main(args))),
        Command::Source(args) => Ok(remote::end(client::source::main(args))),
        Command::Search(args) => Ok(remote::end(client::find::search(args))),
        Command::Fact(args) => Ok(remote::end(client::find::fact(args))),
        Command::Concept(args) => Ok(remote::end(client::find::concept(args))),
        Command::Job(args) => Ok(remote::end(client::job::main(args))),
        Command::Usage(args) => Ok(remote::end(client::job::usage(args))),
        Command::Api(args) => Ok(remote::end(client::job::api(args))),
        Command::Completions(args) => words::completions(args, &mut Cli::command()),
        Command::Man(args) => words::man(args, Cli::command()),
        Command::Backup(args) => backup::main(&load(cli.config.clone())?, args),
        Command::Restore(args) => backup::restore(args, || load(cli.config.clone())),
        Command::Doctor(args) => doctor::main(args, || load(cli.config.clone())),
        Command::Reembed => vectors::reembed(&load(cli.config.clone())?),
        Command::Dedup(args) => dedup::main(&load(cli.config.clone())?, args),
        Command::Config(args) => {
            let options = load_options(cli.config.clone())?;
            let environment = up::complete(&options, environment()?)?;
            config::run(args, || okt_config::load(&options, &environment))
        }
        Command::Registry(args) => registry::main(load(cli.config.clone())?, args),
        Command::Bundle(args) => Ok(bundle::main(args)),
        Command::Ask(args) => Ok(ask::main(args)),
        Command::Report(args) => Ok(report::main(args)),
        Command::Mcp(args) => mcp::main(args),
        Command::Eval(args) => eval::run(args, || load(cli.config.clone())),
        Command::ParseWorker(args) => Ok(parse_worker::main(args)),
        Command::OcrWorker(args) => Ok(parse_worker::recognise(args)),
    }
}

/// The page `docs/CLI.md`.
pub fn commands_page() -> String {
    reference::page(&Cli::command())
}

/// Loads the configuration the way every command does.
pub fn load(config: Option<PathBuf>) -> anyhow::Result<Loaded> {
    let options = load_options(config)?;
    let environment = up::complete(&options, environment()?)?;
    Ok(okt_config::load(&options, &environment)?)
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
