//! `okt source`: adding sources, and watching what becomes of them.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::remote::{Remote, bold, hint, print, print_json, rows, runtime, say, table, text};
use super::{Client, Upload};

/// Between two looks.
const LOOK: Duration = Duration::from_millis(700);
/// Looks without open jobs after which nothing more is expected: the next job is told of a moment after the one before.
const QUIET: u32 = 3;
/// What is done to a source, in this order; none of it has to be.
const STAGES: [(&str, &str); 6] = [
    ("retrieve_source", "fetching and reading"),
    ("source_decomposition", "finding facts"),
    ("embed_facts", "vectors"),
    ("deduplicate_facts", "comparing facts"),
    ("extract_concepts", "finding concepts"),
    ("embed_concepts", "vectors of concepts"),
];
const BAR: usize = 24;
const BAR_OF_A_STAGE: u64 = 4;

#[derive(Args)]
pub(crate) struct SourceArgs {
    #[command(subcommand)]
    command: SourceCommand,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Subcommand)]
enum SourceCommand {
    /// Add sources: files, web addresses, DOIs.
    ///
    /// Prints the id of each. With --watch it exits with 1 if one of them fails.
    Add(AddArgs),
    /// Add the entries of a list of references (BibTeX, RIS, CSL-JSON).
    Import {
        /// The list.
        file: PathBuf,
    },
    /// List sources, newest first.
    List {
        /// Only those with these words, this address or DOI.
        #[arg(short, long)]
        query: Option<String>,
        /// Only those in this state: pending, fetching, fetched, processing, processed, failed.
        #[arg(long)]
        status: Option<String>,
        #[arg(long, default_value_t = 50)]
        limit: u32,
    },
    /// Show a source.
    Show { id: String },
    /// Wait until sources are processed, and show how far they are.
    Watch {
        #[arg(required = true)]
        ids: Vec<String>,
    },
    /// Try a source again that failed.
    Retry { id: String },
}

#[derive(Args)]
struct AddArgs {
    /// A file, an address, or a DOI (10.…).
    #[arg(required = true, value_name = "FILE|URL|DOI")]
    what: Vec<String>,
    /// Wait until they are processed, and show how far they are.
    #[arg(long)]
    watch: bool,
    /// The most US dollars that may be spent on models for each.
    #[arg(long, value_name = "USD")]
    max_cost: Option<f64>,
    /// The id of the investigation that they are for.
    #[arg(long, value_name = "ID")]
    investigation: Option<String>,
}

pub(crate) fn main(args: &SourceArgs) -> anyhow::Result<bool> {
    let remote = &args.remote;
    runtime()?.block_on(async {
        let client = remote.client_inside().await?;
        match &args.command {
            SourceCommand::Add(add) => {
                let mut ids = Vec::new();
                for what in &add.what {
                    let added = self::add(&client, what, add).await.with_context(|| refused(what))?;
                    if remote.json {
                        print_json(&added)?;
                    }
                    let id = text(&added["source_id"]);
                    if added["existing"] == true {
                        say(&format!("{what}: is there already"));
                    }
                    if !remote.json && !add.watch {
                        print(&id)?;
                    }
                    ids.push(id);
                }
                if add.watch {
                    return watch(&client, &ids, remote.json).await;
                }
                hint(&format!("see what becomes of it: okt source watch {}", ids.join(" ")));
                Ok(true)
            }
            SourceCommand::Import { file } => {
                let bytes = fs::read(file).with_context(|| format!("can't read {}", file.display()))?;
                let body =
                    client.upload_file("/sources/import", &Upload::new(&name(file), bytes)).await?.body;
                if remote.json {
                    print_json(&body)?;
                } else {
                    let line = |row: &Value| {
                        vec![
                            text(&row["outcome"]),
                            text(&row["source_id"]),
                            text(&row["label"]),
                            text(&row["message"]),
                        ]
                    };
                    table(&rows(&body).iter().map(line).collect::<Vec<_>>())?;
                }
                Ok(body["invalid"] == 0)
            }
            SourceCommand::List { query, status, limit } => {
                let limit = limit.to_string();
                let mut asked = vec![("limit", limit.as_str())];
                asked.extend(query.iter().map(|query| ("q", query.as_str())));
                asked.extend(status.iter().map(|status| ("status", status.as_str())));
                let body = client.get("/sources", &asked).await?.body;
                if remote.json {
                    return print_json(&body).map(|()| true);
                }
                table(&rows(&body).iter().map(line).collect::<Vec<_>>())?;
                Ok(true)
            }
            SourceCommand::Show { id } => {
                let body = client.get(&format!("/sources/{id}"), &[("include", "")]).await?.body;
                if remote.json {
                    return print_json(&body).map(|()| true);
                }
                show(&body)?;
                Ok(true)
            }
            SourceCommand::Watch { ids } => watch(&client, ids, remote.json).await,
            SourceCommand::Retry { id } => {
                let body = client.post(&format!("/sources/{id}/retry"), &json!({})).await?.body;
                if remote.json {
                    print_json(&body)?;
                }
                hint(&format!("okt source watch {id}"));
                Ok(true)
            }
        }
    })
}

async fn add(client: &Client, what: &str, args: &AddArgs) -> anyhow::Result<Value> {
    let path = Path::new(what);
    if path.is_file() {
        let bytes = fs::read(path)?;
        let mut upload = Upload::new(&name(path), bytes);
        upload.fields.extend(args.max_cost.map(|usd| ("max_cost_usd", usd.to_string())));
        upload.fields.extend(args.investigation.iter().map(|id| ("investigation_id", id.clone())));
        return Ok(client.upload_file("/sources/upload", &upload).await?.body);
    }
    let doi = what.strip_prefix("doi:").unwrap_or(what);
    let mut body = if doi.starts_with("10.") { json!({ "doi": doi }) } else { json!({ "url": what }) };
    if let Some(usd) = args.max_cost {
        body["max_cost_usd"] = json!(usd);
    }
    if let Some(id) = &args.investigation {
        body["investigation_id"] = json!(id);
    }
    Ok(client.post("/sources", &body).await?.body)
}

fn refused(what: &str) -> String {
    let is_address = what.contains("://") || what.starts_with("10.") || what.starts_with("doi:");
    if is_address || Path::new(what).is_file() {
        format!("can't add {what}")
    } else {
        format!("can't add {what}: there is no such file")
    }
}

fn name(path: &Path) -> String {
    path.file_name().map_or_else(|| "file".to_owned(), |name| name.to_string_lossy().into_owned())
}

fn line(row: &Value) -> Vec<String> {
    let name = [&row["parsed_title"], &row["file_name"], &row["url"]];
    let name = name.into_iter().find(|name| !name.is_null()).map_or_else(String::new, text);
    vec![text(&row["id"]), text(&row["status"]), name]
}

fn show(source: &Value) -> anyhow::Result<()> {
    print(bold(&line(source).pop().unwrap_or_default()))?;
    let fields =
        ["id", "status", "waiting_for", "url", "doi", "author", "published_at", "language", "fact_count"];
    let known = fields.iter().filter(|name| !source[**name].is_null());
    table(&known.map(|name| vec![(*name).to_owned(), text(&source[*name])]).collect::<Vec<_>>())?;
    let usd = source["cost"]["usd"].as_f64().unwrap_or(0.0);
    if usd > 0.0 {
        print(format_args!("cost  ${usd:.4}"))?;
    }
    if !source["failure"].is_null() {
        let failure = &source["failure"];
        print(format_args!(
            "failed while {}: {} ({})",
            text(&failure["stage"]),
            text(&failure["message"]),
            text(&failure["code"])
        ))?;
        if failure["retryable"] == true {
            hint(&format!("okt source retry {}", text(&source["id"])));
        }
    }
    Ok(())
}

/// What is seen of a source.
#[derive(Default)]
struct Seen {
    source: Value,
    /// The place in [`STAGES`] of what runs now.
    stage: usize,
    progress: Option<(u64, u64)>,
    waiting_for: String,
    quiet: u32,
    /// The last line that was written of it, where lines can't be overwritten.
    said: String,
}

impl Seen {
    fn is_over(&self) -> bool {
        let status = self.source["status"].as_str().unwrap_or_default();
        matches!(status, "processed" | "failed") && self.quiet >= QUIET
    }

    fn line(&self, id: &str) -> String {
        let (done, total) = self.progress.filter(|(_, total)| *total > 0).unwrap_or((0, 1));
        let within = usize::try_from(done.min(total) * BAR_OF_A_STAGE / total).unwrap_or(0);
        let filled = if self.is_over() { BAR } else { self.stage * BAR / STAGES.len() + within };
        let name = line(&self.source).pop().filter(|name| !name.is_empty()).unwrap_or_else(|| id.to_owned());
        let name: String = name.chars().take(40).collect();
        let what = match self.source["status"].as_str() {
            Some("failed") => format!("failed: {}", text(&self.source["failure"]["message"])),
            Some("processed") if self.is_over() => format!("{} facts", text(&self.source["fact_count"])),
            _ if !self.waiting_for.is_empty() => {
                format!("{}, waits for {}", STAGES[self.stage].1, self.waiting_for)
            }
            _ => STAGES[self.stage].1.to_owned(),
        };
        let usd = self.source["cost"]["usd"].as_f64().unwrap_or(0.0);
        let cost = if usd > 0.0 { format!("  ${usd:.4}") } else { String::new() };
        format!("{}{}  {name}  {what}{cost}", "█".repeat(filled), "·".repeat(BAR - filled))
    }
}

/// Until all are processed or failed and nothing more is done to them; whether none failed.
async fn watch(client: &Client, ids: &[String], json: bool) -> anyhow::Result<bool> {
    let overwrites = io::stderr().is_terminal() && std::env::var("TERM").is_ok_and(|term| term != "dumb");
    let mut all: BTreeMap<&String, Seen> = ids.iter().map(|id| (id, Seen::default())).collect();
    let mut drawn = 0;
    loop {
        for (id, seen) in all.iter_mut().filter(|(_, seen)| !seen.is_over()) {
            look(client, id, seen).await?;
        }
        let mut err = io::stderr();
        if overwrites {
            if drawn > 0 {
                let _ = write!(err, "\x1b[{drawn}A");
            }
            for (id, seen) in &all {
                let _ = writeln!(err, "\x1b[2K{}", seen.line(id));
            }
            drawn = all.len();
        } else {
            for (id, seen) in &mut all {
                let line = seen.line(id);
                // Without the bar: only what happens is worth a line.
                let what = line.trim_start_matches(['█', '·']).trim().to_owned();
                if what != seen.said {
                    let _ = writeln!(err, "{what}");
                    seen.said = what;
                }
            }
        }
        if all.values().all(Seen::is_over) {
            break;
        }
        tokio::time::sleep(LOOK).await;
    }
    let mut good = true;
    for id in ids {
        let Some(seen) = all.get(id) else { continue };
        good &= seen.source["status"] == "processed";
        if json {
            print_json(&seen.source)?;
        } else {
            print(line(&seen.source).join("  "))?;
        }
    }
    hint("ask for it: okt search WORDS");
    Ok(good)
}

async fn look(client: &Client, id: &str, seen: &mut Seen) -> anyhow::Result<()> {
    let jobs = client.get("/jobs", &[("source_id", id), ("limit", "100")]).await?.body;
    seen.source = client.get(&format!("/sources/{id}"), &[("include", "")]).await?.body;
    let jobs = jobs["data"].as_array().map_or(&[][..], Vec::as_slice);
    let open: Vec<&Value> = jobs.iter().filter(|job| job["finished_at"].is_null()).collect();
    seen.quiet = if open.is_empty() { seen.quiet + 1 } else { 0 };
    let stage = |job: &&Value| STAGES.iter().position(|(kind, _)| job["kind"] == *kind);
    let now = open.iter().filter_map(|job| Some((stage(job)?, *job))).min_by_key(|(stage, _)| *stage);
    if let Some((stage, job)) = now {
        seen.stage = stage;
        seen.waiting_for = text(&job["waiting_for"]);
        let progress = &job["progress"];
        seen.progress = progress["done"].as_u64().zip(progress["total"].as_u64());
    } else {
        seen.waiting_for = text(&seen.source["waiting_for"]);
        seen.progress = None;
        seen.stage = jobs.iter().filter_map(|job| stage(&job)).max().unwrap_or(seen.stage);
    }
    Ok(())
}
