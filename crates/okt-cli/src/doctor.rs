//! `okt doctor`: everything that the service needs is looked at, and what is wrong comes with the command that mends it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::Context;
use clap::{Args, Subcommand};
use okt_config::{Config, JOB_KINDS, Loaded, Mode, Origin, StorageBackend};
use okt_jobs::spaces;
use okt_model::JobState;
use okt_providers::{GuardedClient, Request, Timeouts};
use okt_queue::jobs::{self, TenantFilter};
use okt_store::{Blobs, Databases};
use serde_json::{Value, json};
use url::Url;

use crate::check::{self, Findings};
use crate::{mcp, secret, vectors};

/// How secrets are shown.
const MASKED: &str = "***";
/// Below the first, files can't be kept soon; below the second, not now. In MiB.
const LITTLE_ROOM: u64 = 5 * 1024;
const NO_ROOM: u64 = 512;
/// Files that a process has open beside its connections.
const OTHER_FILES: u64 = 256;
/// How long a job that could run may wait before it is worth a word.
const LONG_WAIT: Duration = Duration::from_mins(10);

const TIMEOUTS: Timeouts =
    Timeouts { connect: Duration::from_secs(2), idle: Duration::from_secs(5), total: Duration::from_secs(5) };

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct DoctorArgs {
    #[command(subcommand)]
    command: Option<DoctorCommand>,
    /// Mend what can be mended without anybody's decision: permissions of files, migrations, vectors.
    #[arg(long)]
    repair: bool,
    /// Do not go the way of a client to the public address (`oauth.issuer`).
    #[arg(long)]
    no_public: bool,
    /// Print the findings as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum DoctorCommand {
    /// Go the way of an agent that was given nothing but the address of the service, and name the step that fails.
    ///
    /// With an API key in `OKT_API_KEY` a tool is called as well.
    Mcp(mcp::doctor::DoctorMcpArgs),
    /// Compare the facts and vectors of every repository. Exits with 1 if they are inconsistent.
    Vectors {
        /// Delete orphaned vectors and create missing ones.
        #[arg(long)]
        repair: bool,
    },
}

pub(crate) fn main(
    args: &DoctorArgs,
    load: impl FnOnce() -> anyhow::Result<Loaded>,
) -> anyhow::Result<ExitCode> {
    match &args.command {
        Some(DoctorCommand::Mcp(args)) => return mcp::doctor::main(args),
        Some(DoctorCommand::Vectors { repair }) => return vectors::doctor(&load()?, *repair),
        None => {}
    }
    let loaded = load()?;
    let runtime = tokio::runtime::Runtime::new().context("can't start the runtime")?;
    let found = runtime.block_on(examine(args, &loaded))?;
    let mut out = std::io::stdout();
    if args.json {
        writeln!(out, "{:#}", json!({"findings": found.all(), "sound": found.is_sound()}))?;
    } else {
        for finding in found.all() {
            writeln!(out, "{finding}")?;
        }
        let (failed, warned) = (found.failed(), found.warned());
        let mut err = std::io::stderr();
        match (failed, warned) {
            (0, 0) => writeln!(err, "okt: everything is well")?,
            (0, _) => writeln!(err, "okt: it works, but look at the warnings ({warned})")?,
            _ => writeln!(err, "okt: something is broken (errors {failed}, warnings {warned})")?,
        }
    }
    Ok(if found.is_sound() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn examine(args: &DoctorArgs, loaded: &Loaded) -> anyhow::Result<Findings> {
    let (config, repair) = (&loaded.config, args.repair);
    let mut found = Findings::default();
    for note in &loaded.notes {
        found.note(note);
    }
    for warning in &loaded.warnings {
        found.warn(warning);
    }
    secrets(loaded, repair, &mut found);
    files(config, &mut found).await;
    open_files(config, &mut found);
    check::parser(config, &mut found).await?;
    running(config, &mut found).await;
    if repair {
        match Databases::migrate(config).await {
            Ok(reports) => {
                let applied: usize = reports.iter().map(|report| report.migrations.len()).sum();
                if applied > 0 {
                    found.good(format!("repaired: applied {applied} migrations"));
                }
            }
            Err(error) => found.fail(format!("migrations: {error}")),
        }
    }
    check::databases(loaded, &mut found).await?;
    match Databases::pending(config).await {
        Ok(reports) if reports.iter().all(|report| report.migrations.is_empty()) => {
            stored(config, repair, &mut found).await?;
        }
        Ok(_) => found.warn_and(
            "migrations are missing, so queue and vectors were not looked at; the next start applies them",
            "okt migrate",
        ),
        // Whoever is away was named before.
        Err(_) => {}
    }
    check::models(config, &mut found).await;
    match &config.oauth.issuer {
        _ if args.no_public => {}
        None if config.mode == Mode::Development => found.note(
            "oauth.issuer is not set: programs on this machine can sign in, those of other machines need an API key",
        ),
        None => found.note(
            "oauth.issuer is not set: there is no public address, and agents need an API key (docs/api/oauth.md)",
        ),
        Some(issuer) => public(issuer, &mut found).await,
    }
    Ok(found)
}

/// Files with secrets in them, and who can read those.
fn secrets(loaded: &Loaded, repair: bool, found: &mut Findings) {
    let own = loaded.config_dir.join(secret::FILE);
    let mut files: BTreeSet<PathBuf> = loaded
        .entries()
        .into_iter()
        .filter(|entry| entry.value.as_str().is_some_and(|value| value.contains(MASKED)))
        .filter_map(|entry| if let Origin::File { path, .. } = entry.origin { Some(path) } else { None })
        .collect();
    if loaded.config.auth.jwt_secret.is_empty() {
        if own.exists() {
            files.insert(own);
        } else {
            found.note(format!("{} is made at the first start: it signs sessions", own.display()));
        }
    }
    for file in files {
        let Ok(mode) = fs::metadata(&file).map(|meta| meta.permissions().mode() & 0o777) else { continue };
        let shown = file.display();
        if mode % 0o10 == 0 {
            found.good(format!("{shown}: has secrets, and only its owner or group can read it"));
        } else if repair && fs::set_permissions(&file, Permissions::from_mode(mode & 0o770)).is_ok() {
            found.good(format!("repaired: {shown} can't be read by every account any more"));
        } else {
            found.warn_and(
                format!("{shown}: has secrets, and every account of this machine can read it"),
                format!("chmod o= {shown}"),
            );
        }
    }
}

/// Whether files of sources can be kept, and for how long.
async fn files(config: &Config, found: &mut Findings) {
    let storage = &config.providers.storage;
    let place = match storage.backend {
        StorageBackend::Filesystem => storage.root.display().to_string(),
        StorageBackend::S3 => format!("the bucket {}", storage.s3.bucket),
    };
    if storage.backend == StorageBackend::Filesystem && !storage.root.exists() {
        // Looking must not make it.
        check::storage(config, found);
        return found.note(format!("files: {place} is made at the first start"));
    }
    let kept = match Blobs::open(storage) {
        Ok(blobs) => blobs.check().await,
        Err(error) => Err(error),
    };
    match kept {
        Ok(()) => found.good(format!("files: {place} can be written")),
        Err(error) if storage.backend == StorageBackend::Filesystem => found.fail_and(
            format!("files: {place} can't be written: {error}"),
            format!("chown -R okt {place}   # or whoever runs okt"),
        ),
        Err(error) => found.fail(format!("files: {place} can't be written: {error}")),
    }
    if storage.backend == StorageBackend::Filesystem {
        match free_mebibytes(&storage.root) {
            Some(free) if free < NO_ROOM => found.fail_and(
                format!("disk: {free} MiB are free where files are kept; uploads are refused soon (507)"),
                format!("df -h {place}"),
            ),
            Some(free) if free < LITTLE_ROOM => found.warn_and(
                format!("disk: {free} MiB are free where files are kept"),
                format!("df -h {place}"),
            ),
            Some(free) => found.good(format!("disk: {} GiB are free where files are kept", free / 1024)),
            None => {}
        }
    }
}

/// As `df` has it, which every system has.
fn free_mebibytes(folder: &Path) -> Option<u64> {
    let output = Command::new("df").arg("-Pk").arg(folder).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let kibibytes: u64 = text.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok()?;
    Some(kibibytes / 1024)
}

/// Each connection is an open file.
fn open_files(config: &Config, found: &mut Findings) {
    let Ok(limits) = fs::read_to_string("/proc/self/limits") else { return };
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let Some(limit) = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()) else {
        return;
    };
    let wanted = u64::try_from(config.server.max_connections).unwrap_or(u64::MAX).saturating_add(OTHER_FILES);
    if limit < wanted {
        found.warn_and(
            format!(
                "limits: a process may open {limit} files here, and server.max_connections is {}; beyond that connections \
                 are refused without a word",
                config.server.max_connections
            ),
            format!("ulimit -n {wanted}   # or LimitNOFILE={wanted} in the unit"),
        );
    } else {
        found.good(format!("limits: a process may open {limit} files"));
    }
}

/// Whether a service of these settings answers on this machine, and what it says of itself.
async fn running(config: &Config, found: &mut Findings) {
    let (host, port) = (config.server.host, config.server.port);
    let host = if host.is_unspecified() { "127.0.0.1".to_owned() } else { host.to_string() };
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let Ok(url) = Url::parse(&format!("http://{host}:{port}/readyz")) else { return };
    let Ok(client) = GuardedClient::new(&[]) else { return };
    let asked = client.service(&url).send(Request::get(url.to_string()).timeouts(TIMEOUTS)).await;
    let Ok(answer) = asked else {
        return found.note(format!("no service answers at {host}:{port} (okt serve, okt up)"));
    };
    let status = answer.status;
    let body: Value = match answer.bytes().await.map(|bytes| serde_json::from_slice(&bytes)) {
        Ok(Ok(body)) => body,
        _ => {
            return found.warn_and(
                format!("{host}:{port} answers, but not as okt does; another program has the port"),
                format!(
                    "ss -ltnp 'sport = :{port}'   # who it is; okt takes another one with SVC__SERVER__PORT"
                ),
            );
        }
    };
    if status.is_success() {
        found.good(format!("the service at {host}:{port} is ready"));
    } else {
        found.fail(format!("the service at {host}:{port} is not ready: {body}"));
    }
}

/// What the databases hold: jobs, and vectors beside facts.
async fn stored(config: &Config, repair: bool, found: &mut Findings) -> anyhow::Result<()> {
    let (databases, tools) = match vectors::open(config).await {
        Ok(opened) => opened,
        Err(error) => {
            found.fail(format!("{error:#}"));
            return Ok(());
        }
    };
    queue(&databases, found).await?;
    if config.providers.embedding.model.is_empty() {
        found.note("providers.embedding.model is empty: facts have no vectors, and are searched by words");
    } else {
        let (mut repositories, mut unfit) = (0, 0);
        let compared = spaces::doctor(&databases, &tools, repair, |checked| {
            repositories += 1;
            unfit += checked.found.orphaned + checked.found.missing;
        });
        match compared.await.map_err(vectors::in_words) {
            Ok(away) if !away.is_empty() => found.warn(format!(
                "vectors of {} could not be looked at: their database does not answer, or they are being moved",
                vectors::slugs(&away)
            )),
            Ok(_) if unfit == 0 => {
                found.good(format!("vectors: fit the facts of all repositories ({repositories})"));
            }
            Ok(_) if repair => found.good(format!("repaired: {unfit} vectors that did not fit their facts")),
            Ok(_) => found.fail_and(
                format!("vectors: {unfit} do not fit their facts, so search misses what is there"),
                "okt doctor vectors --repair",
            ),
            Err(error) => found.warn(format!("vectors: {error:#}")),
        }
    }
    databases.close().await;
    Ok(())
}

async fn queue(databases: &Databases, found: &mut Findings) -> anyhow::Result<()> {
    let workers: BTreeMap<String, i64> = jobs::workers(databases).await?.into_iter().collect();
    let (counts, _) = jobs::count(databases, TenantFilter::All).await?;
    let discarded: i64 =
        counts.iter().filter(|count| count.state == JobState::Discarded).map(|count| count.count).sum();
    if discarded > 0 {
        found.warn_and(
            format!("queue: {discarded} jobs were given up; each says why, and can be tried again"),
            "okt api GET '/jobs?state=discarded'",
        );
    }
    let waiting = okt_queue::backlog(databases, &JOB_KINDS).await?;
    let nobody: Vec<&str> = waiting
        .iter()
        .filter(|backlog| backlog.waiting > 0 && !workers.contains_key(&backlog.kind))
        .map(|backlog| backlog.kind.as_str())
        .collect();
    if !nobody.is_empty() {
        found.fail_and(
            format!("queue: no living process runs what waits there: {}", nobody.join(", ")),
            "okt serve --role worker",
        );
    }
    let oldest = waiting.iter().max_by(|one, other| one.oldest_seconds.total_cmp(&other.oldest_seconds));
    if let Some(oldest) = oldest.filter(|oldest| oldest.oldest_seconds > LONG_WAIT.as_secs_f64())
        && nobody.is_empty()
    {
        found.warn_and(
            format!(
                "queue: {} jobs of {} wait, the oldest for {:.0} minutes: more comes in than is worked off",
                oldest.waiting,
                oldest.kind,
                oldest.oldest_seconds / 60.0
            ),
            format!("okt serve --role worker   # another one, or raise task.queues.{}", oldest.kind),
        );
    } else if nobody.is_empty() && discarded == 0 {
        found.good("queue: nothing waits for long, and nothing was given up");
    }
    Ok(())
}

/// The way of a client that was given nothing but the address.
async fn public(issuer: &Url, found: &mut Findings) {
    let mut notes = Vec::new();
    let mut tell = |line: &str| {
        if let Some(note) = line.strip_prefix("note") {
            notes.push(note.trim().to_owned());
        }
        Ok(())
    };
    match mcp::doctor::walk(issuer, &mut tell).await {
        Ok(()) => found.good(format!("{issuer}: clients can connect")),
        Err(error) => found.fail_and(
            format!("{issuer}: clients can't connect: {error:#}"),
            format!("okt doctor mcp --public-url {issuer}   # tells of every step"),
        ),
    }
    for note in notes {
        found.note(format!("{issuer}: {note}"));
    }
}
