//! `okt bundle`: a repository as one file. `verify`, `show` and `diff` work on files and ask nobody.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use okt_interchange::bundle::{Limits, Read, Row, read};
use serde_json::{Value, json};

use crate::client::Client;
use crate::client::remote::{connect, counted, inside, runtime};

/// Between two looks at a job.
const LOOK: Duration = Duration::from_secs(1);

/// A repository for the first look; `scripts/sample` makes it.
static SAMPLE: &[u8] = include_bytes!("../../../docs/sample/electric-ferries.okt.json.gz");

#[derive(Args)]
pub struct BundleArgs {
    #[command(subcommand)]
    command: BundleCommand,
}

#[derive(Subcommand)]
enum BundleCommand {
    /// Write a repository of a running service into a bundle.
    Export(ExportArgs),
    /// Take a bundle into a repository of a running service. Nothing is fetched and no chat model is asked.
    Import(ImportArgs),
    /// Check a bundle: its form, references, counts and hashes. Exit codes: 0 if it is right, 1 if not, 3 if it can't be read.
    Verify(FileArgs),
    /// Show what a bundle says of itself, and how many rows it has.
    Show(FileArgs),
    /// Compare the graphs of two bundles. Exit codes: 0 if they are the same, 1 if not, 3 if one can't be read.
    Diff(DiffArgs),
}

#[derive(Args)]
struct ServiceArgs {
    /// The slug or id of the repository [default: `OKT_REPOSITORY`, that of `okt repo use`, or the only one].
    #[arg(long, short, value_name = "SLUG")]
    repository: Option<String>,
    /// The address of the service [default: `OKT_URL`, that of `okt login`, or `http://localhost:8080`].
    #[arg(long)]
    url: Option<String>,
    /// An API key with `graph:export` or `graph:write`, and `job:read` [default: `OKT_API_KEY`, or who is signed in by `okt login`].
    #[arg(long)]
    key: Option<String>,
    /// Print what the service says as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct ExportArgs {
    /// The file to write.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    service: ServiceArgs,
    /// What the bundle is called; the name of the repository if it is not given.
    #[arg(long)]
    name: Option<String>,
    /// With the originals of sources, such as PDFs.
    #[arg(long)]
    bodies: bool,
    /// Without the images of sources.
    #[arg(long)]
    no_images: bool,
}

#[derive(Args)]
struct ImportArgs {
    /// The bundle.
    #[arg(value_name = "FILE", required_unless_present = "sample")]
    file: Option<PathBuf>,
    /// Take in the bundle that comes with this program: a small repository about electric ferries.
    #[arg(long, conflicts_with = "file")]
    sample: bool,
    #[command(flatten)]
    service: ServiceArgs,
    /// Only tell what would be added.
    #[arg(long)]
    dry_run: bool,
}

#[derive(Args)]
struct FileArgs {
    /// The bundle.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

#[derive(Args)]
struct DiffArgs {
    #[arg(value_name = "ONE")]
    one: PathBuf,
    #[arg(value_name = "OTHER")]
    other: PathBuf,
}

pub fn main(args: &BundleArgs) -> ExitCode {
    let done = match &args.command {
        BundleCommand::Export(args) => export(args).map(|()| true),
        BundleCommand::Import(args) => import(args).map(|()| true),
        BundleCommand::Verify(args) => verify(&args.file),
        BundleCommand::Show(args) => show(&args.file).map(|()| true),
        BundleCommand::Diff(args) => diff(args),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "okt: {error:#}");
            ExitCode::from(3)
        }
    }
}

async fn asked(args: &ServiceArgs) -> anyhow::Result<Client> {
    let client = connect(args.url.as_deref(), args.key.as_deref(), String::new())?;
    inside(client, args.repository.as_deref()).await
}

fn export(args: &ExportArgs) -> anyhow::Result<()> {
    runtime()?.block_on(async {
        let client = asked(&args.service).await?;
        let mut body = json!({
            "destination": "file", "include_bodies": args.bodies, "include_images": !args.no_images,
        });
        if let Some(name) = &args.name {
            body["name"] = json!(name);
        }
        let job = job_of(&client.post("/export-graph", &body).await?.body)?;
        let output = ended(&client, &job).await?;
        // Under another name until it is whole.
        let part = args.file.with_extension("part");
        let mut file = File::create(&part).with_context(|| format!("can't write {}", part.display()))?;
        client.download(&format!("/export-graph/{job}/file"), &mut file).await?;
        file.sync_all()?;
        std::fs::rename(&part, &args.file).with_context(|| format!("can't write {}", args.file.display()))?;
        if args.service.json {
            return say(&output);
        }
        let sha256 = output["sha256"].as_str().unwrap_or_default();
        Ok(writeln!(io::stdout(), "{}: {sha256}", args.file.display())?)
    })
}

fn import(args: &ImportArgs) -> anyhow::Result<()> {
    let open = opener(args.file.clone());
    // Before anything is sent.
    drop(open()?);
    runtime()?.block_on(async {
        let client = asked(&args.service).await?;
        let sent = client.upload_bundle(open).await?;
        let body = json!({ "upload_id": sent.body["upload_id"], "dry_run": args.dry_run });
        let job = job_of(&client.post("/import-graph", &body).await?.body)?;
        let output = ended(&client, &job).await?;
        if args.service.json {
            return say(&output);
        }
        let done = if args.dry_run { "would be added" } else { "added" };
        Ok(writeln!(io::stdout(), "{done}: {}", added(&output["rows"]))?)
    })
}

/// What is new, for people.
fn added(rows: &Value) -> String {
    let kinds = ["sources", "facts", "concepts", "reports", "investigations"];
    let counted = kinds.iter().filter_map(|kind| {
        let count = rows[kind]["added"].as_u64().filter(|count| *count > 0)?;
        Some(counted(count, kind.trim_end_matches('s')))
    });
    let counted: Vec<String> = counted.collect();
    if counted.is_empty() { "nothing, all of it is here".to_owned() } else { counted.join(", ") }
}

/// Opens the file, or the sample if there is none.
fn opener(file: Option<PathBuf>) -> impl Fn() -> io::Result<Box<dyn io::Read + Send>> + Clone + Send + Sync {
    move || match &file {
        None => Ok(Box::new(SAMPLE)),
        Some(file) => match File::open(file) {
            Ok(opened) => Ok(Box::new(opened)),
            Err(error) => {
                Err(io::Error::new(error.kind(), format!("can't read {}: {error}", file.display())))
            }
        },
    }
}

fn job_of(answer: &Value) -> anyhow::Result<String> {
    Ok(answer["job_id"].as_str().context("the service named no job")?.to_owned())
}

/// What a job has come to.
async fn ended(client: &Client, job: &str) -> anyhow::Result<Value> {
    loop {
        let mut seen = client.get(&format!("/jobs/{job}"), &[]).await?.body;
        match seen["state"].as_str() {
            Some("completed") => return Ok(seen["output"].take()),
            Some("cancelled") => bail!("the job was cancelled"),
            Some("discarded") => {
                let last = seen["errors"].as_array().and_then(|errors| errors.last());
                bail!("{}", last.and_then(|error| error["message"].as_str()).unwrap_or("the job failed"));
            }
            _ => tokio::time::sleep(LOOK).await,
        }
    }
}

fn say(output: &Value) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{output:#}")?;
    Ok(())
}

fn verify(path: &Path) -> anyhow::Result<bool> {
    let mut out = std::io::stdout();
    match opened(path, &mut |_| {})? {
        Ok(read) => {
            writeln!(out, "{}: right, {}", path.display(), read.sha256)?;
            Ok(true)
        }
        Err(refused) => {
            writeln!(out, "{}: {refused}", path.display())?;
            Ok(false)
        }
    }
}

fn show(path: &Path) -> anyhow::Result<()> {
    let read = opened(path, &mut |_| {})?.map_err(anyhow::Error::from)?;
    let metadata = serde_json::to_value(&read.metadata)?;
    say(&json!({
        "schema_version": read.schema_version, "sha256": read.sha256, "bytes": read.bytes, "metadata": metadata,
    }))
}

type Refused = okt_interchange::bundle::Refused;

fn opened(path: &Path, seen: &mut dyn FnMut(&Row<'_>)) -> anyhow::Result<Result<Read, Refused>> {
    let file = File::open(path).with_context(|| format!("can't read {}", path.display()))?;
    let limits = Limits { compressed_bytes: u64::MAX, ..Limits::default() };
    Ok(read(BufReader::new(file), &limits, &mut |row| {
        seen(&row);
        Ok(())
    }))
}

/// What a graph is made of, each thing by what it is called wherever it is.
#[derive(Default)]
struct Graph {
    things: BTreeMap<&'static str, BTreeSet<String>>,
}

impl Graph {
    fn of(path: &Path) -> anyhow::Result<(Read, Self)> {
        let mut graph = Self::default();
        let (mut facts, mut concepts) = (BTreeMap::new(), BTreeMap::new());
        let read = opened(path, &mut |row| {
            let (kind, name) = match row {
                Row::Source(row) => {
                    let name = [&row.url, &row.doi, &row.sha256].into_iter().find(|name| !name.is_empty());
                    ("sources", name.cloned().unwrap_or_default())
                }
                Row::Fact(row) => {
                    facts.insert(row.idx, row.text.clone());
                    ("facts", row.text.clone())
                }
                Row::Concept(row) => {
                    let name = format!("{} ({})", row.canonical_name, row.context);
                    concepts.insert(row.idx, name.clone());
                    ("concepts", name)
                }
                Row::FactConcept(row) => {
                    let named =
                        |names: &BTreeMap<u32, String>, idx| names.get(idx).cloned().unwrap_or_default();
                    (
                        "links",
                        format!("{} — {}", named(&facts, &row.fact_idx), named(&concepts, &row.concept_idx)),
                    )
                }
                Row::Summary(row) => {
                    let concept = concepts.get(&row.concept_idx).cloned().unwrap_or_default();
                    ("summaries", format!("{concept}, {}", row.sequence_num))
                }
                Row::Synthesis(row) => ("definitions", row.canonical_name.clone()),
                Row::Report(row) => ("reports", row.title.clone()),
                Row::Investigation(row) => ("investigations", row.title.clone()),
                _ => return,
            };
            graph.things.entry(kind).or_default().insert(name);
        })?;
        let read = read.map_err(|refused| anyhow::anyhow!("{}: {refused}", path.display()))?;
        Ok((read, graph))
    }
}

fn diff(args: &DiffArgs) -> anyhow::Result<bool> {
    let ((one, one_graph), (other, other_graph)) = (Graph::of(&args.one)?, Graph::of(&args.other)?);
    if one.sha256 == other.sha256 {
        return Ok(true);
    }
    let mut out = std::io::stdout();
    let kinds: BTreeSet<&str> = one_graph.things.keys().chain(other_graph.things.keys()).copied().collect();
    let none = BTreeSet::new();
    for kind in kinds {
        let ones = one_graph.things.get(kind).unwrap_or(&none);
        let others = other_graph.things.get(kind).unwrap_or(&none);
        for (sign, missing) in [("-", ones.difference(others)), ("+", others.difference(ones))] {
            for name in missing {
                writeln!(out, "{sign} {kind}: {}", name.replace(char::is_control, " "))?;
            }
        }
    }
    writeln!(out, "{} {}\n{} {}", one.sha256, args.one.display(), other.sha256, args.other.display())?;
    Ok(false)
}
