//! `okt config`: what is in force, where it came from, and whether the service would start with it.

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand};
use okt_config::{ConfigError, Entry, Loaded};
use serde_json::{Map, Value, json};

use crate::check;

#[derive(Args)]
pub struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Subcommand)]
enum ConfigCommand {
    /// Print every effective setting; secrets are masked.
    Show(ShowArgs),
    /// Check the configuration and list all errors. Exits with 1 if there are any.
    Check(CheckArgs),
    /// Print the JSON schema of okt.toml.
    Schema,
    /// Print the reference of all settings, in Markdown.
    Reference,
}

#[derive(Args)]
struct ShowArgs {
    /// Show where each value was set.
    #[arg(long)]
    origin: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct CheckArgs {
    /// Also connect to the databases and to the servers of the models in use. Changes nothing and costs nothing.
    #[arg(long)]
    online: bool,
}

/// Runs a subcommand. `loaded` is asked only by those that look at this machine's configuration.
pub fn run(
    args: &ConfigArgs,
    loaded: impl FnOnce() -> Result<Loaded, ConfigError>,
) -> anyhow::Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    let text = match &args.command {
        ConfigCommand::Show(args) if args.json => pretty(&as_json(&loaded()?, args.origin)?)?,
        ConfigCommand::Show(args) => as_lines(&loaded()?, args.origin),
        ConfigCommand::Check(args) => {
            let found = check::run(&loaded()?, args.online)?;
            if !found.is_sound() {
                code = ExitCode::FAILURE;
            }
            found.to_string()
        }
        ConfigCommand::Schema => pretty(&okt_config::json_schema())?,
        ConfigCommand::Reference => okt_config::reference_page(),
    };
    write_out(&text).context("cannot write to standard output")?;
    Ok(code)
}

fn as_lines(loaded: &Loaded, with_origin: bool) -> String {
    let line = |Entry { key, value, origin }| {
        if with_origin { format!("{key} = {value}  # {origin}") } else { format!("{key} = {value}") }
    };
    let lines: Vec<String> = loaded.entries().into_iter().map(line).collect();
    lines.join("\n") + "\n"
}

fn as_json(loaded: &Loaded, with_origin: bool) -> anyhow::Result<Value> {
    if !with_origin {
        return Ok(serde_json::to_value(&loaded.config)?);
    }
    let entries = loaded.entries().into_iter();
    let entries: Map<String, Value> = entries
        .map(|entry| (entry.key, json!({ "value": entry.value, "origin": entry.origin.to_string() })))
        .collect();
    Ok(Value::Object(entries))
}

fn pretty(value: &Value) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}

/// A reader that has seen enough, such as `head`, is no failure.
fn write_out(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}
