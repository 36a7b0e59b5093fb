//! `okt job`, `okt usage`, `okt api`: what runs, what it cost, and everything else.

use std::collections::VecDeque;
use std::io::Read as _;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Value, json};

use super::remote::{Remote, Usage, hint, print, print_json, rows, runtime, say, table, text};

const LOOK: Duration = Duration::from_millis(700);

#[derive(Args)]
pub(crate) struct JobArgs {
    #[command(subcommand)]
    command: JobCommand,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Subcommand)]
enum JobCommand {
    /// List the jobs of a repository, newest first.
    List {
        /// Only those in this state, such as running or discarded.
        #[arg(long)]
        state: Option<String>,
        #[arg(long, default_value_t = 50)]
        limit: u32,
    },
    /// Wait until a job and those that it enqueued have ended. Exits with 1 if one of them was given up or cancelled.
    Watch { id: String },
    /// Cancel a job.
    Cancel { id: String },
    /// Try a job again.
    Retry { id: String },
}

#[derive(Args)]
pub(crate) struct UsageArgs {
    /// By model, operation, day or source.
    #[arg(long, value_name = "BY")]
    group_by: Option<String>,
    /// From this day (2026-01-31).
    #[arg(long, value_name = "DATE")]
    from: Option<String>,
    /// To this day.
    #[arg(long, value_name = "DATE")]
    to: Option<String>,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Args)]
pub(crate) struct ApiArgs {
    /// GET, POST, PUT, PATCH or DELETE.
    method: String,
    /// The path below /api/v1, with its query: `/repositories?limit=5`. `{repo}` is the repository of other commands.
    path: String,
    /// The body, as JSON; `-` reads it from standard input, `@FILE` from a file.
    #[arg(short, long)]
    data: Option<String>,
    #[command(flatten)]
    remote: Remote,
}

pub(crate) fn main(args: &JobArgs) -> anyhow::Result<bool> {
    runtime()?.block_on(async {
        let client = args.remote.client_inside().await?;
        match &args.command {
            JobCommand::List { state, limit } => {
                let limit = limit.to_string();
                let mut asked = vec![("limit", limit.as_str())];
                asked.extend(state.iter().map(|state| ("state", state.as_str())));
                let body = client.get("/jobs", &asked).await?.body;
                if args.remote.json {
                    return print_json(&body).map(|()| true);
                }
                table(&rows(&body).iter().map(line).collect::<Vec<_>>())?;
                Ok(true)
            }
            JobCommand::Watch { id } => {
                let (mut waiting, mut good) = (VecDeque::from([id.clone()]), true);
                while let Some(id) = waiting.pop_front() {
                    let mut said = String::new();
                    let job = loop {
                        let job = client.get(&format!("/jobs/{id}"), &[]).await?.body;
                        if !job["finished_at"].is_null() {
                            break job;
                        }
                        let now = line(&job).join("  ");
                        if now != said {
                            say(&now);
                            said = now;
                        }
                        tokio::time::sleep(LOOK).await;
                    };
                    good &= job["state"] == "completed";
                    waiting.extend(job["successors"].as_array().into_iter().flatten().map(text));
                    if args.remote.json {
                        print_json(&job)?;
                    } else {
                        print(line(&job).join("  "))?;
                    }
                }
                Ok(good)
            }
            JobCommand::Cancel { id } => {
                client.post(&format!("/jobs/{id}/cancel"), &json!({})).await?;
                Ok(true)
            }
            JobCommand::Retry { id } => {
                client.post(&format!("/jobs/{id}/retry"), &json!({})).await?;
                hint(&format!("okt job watch {id}"));
                Ok(true)
            }
        }
    })
}

fn line(job: &Value) -> Vec<String> {
    let why = if job["waiting_for"].is_null() {
        let last = job["errors"].as_array().and_then(|errors| errors.last());
        last.map_or_else(String::new, |last| text(&last["message"]))
    } else {
        format!("waits for {}", text(&job["waiting_for"]))
    };
    vec![text(&job["id"]), text(&job["kind"]), text(&job["state"]), why]
}

pub(crate) fn usage(args: &UsageArgs) -> anyhow::Result<bool> {
    runtime()?.block_on(async {
        let client = args.remote.client_inside().await?;
        let mut asked = Vec::new();
        for (name, value) in [("group_by", &args.group_by), ("from", &args.from), ("to", &args.to)] {
            asked.extend(value.iter().map(|value| (name, value.as_str())));
        }
        let body = client.get("/ai/usage", &asked).await?.body;
        if args.remote.json {
            return print_json(&body);
        }
        let line = |name: String, row: &Value| {
            let usd = row["usd"].as_f64().unwrap_or(0.0);
            vec![
                name,
                format!("${usd:.4}"),
                format!("{} calls", text(&row["calls"])),
                format!("{} tokens in", text(&row["tokens_in"])),
                format!("{} out", text(&row["tokens_out"])),
            ]
        };
        let mut lines: Vec<_> = rows(&body).iter().map(|row| line(text(&row["key"]), row)).collect();
        lines.push(line("total".to_owned(), &body["total"]));
        table(&lines)
    })?;
    Ok(true)
}

/// Prints what the service answers, whatever it is.
pub(crate) fn api(args: &ApiArgs) -> anyhow::Result<bool> {
    let method = args.method.to_ascii_uppercase();
    let method =
        Method::from_bytes(method.as_bytes()).map_err(|_| Usage(format!("{method} is no method")))?;
    let data = match args.data.as_deref() {
        None => None,
        Some("-") => {
            let mut text = Vec::new();
            std::io::stdin().read_to_end(&mut text).context("can't read standard input")?;
            Some(text)
        }
        Some(data) => match data.strip_prefix('@') {
            Some(file) => Some(std::fs::read(file).with_context(|| format!("can't read {file}"))?),
            None => Some(data.as_bytes().to_vec()),
        },
    };
    if let Some(data) = &data {
        serde_json::from_slice::<serde::de::IgnoredAny>(data)
            .map_err(|error| Usage(format!("--data is no JSON: {error}")))?;
    }
    runtime()?.block_on(async {
        let path = args.path.trim_start_matches("/api/v1");
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        let (client, path) = if path.contains("{repo}") {
            let client = args.remote.client_inside().await?;
            let path = path.replace("{repo}", &client.repository);
            (client, path)
        } else {
            (args.remote.client()?, path)
        };
        let answer = client.ask(method, &path, data).await?;
        if !answer.body.is_null() {
            print_json(&answer.body)?;
        }
        if !answer.status.is_success() {
            anyhow::bail!("{path} answered {}", answer.status.as_u16());
        }
        Ok(true)
    })
}
