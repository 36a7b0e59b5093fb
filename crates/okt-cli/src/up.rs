//! `okt up`: everything that one person needs, started by one command and ended with it.
//!
//! All of it is in one folder: PostgreSQL with its data, the files of sources, settings, secrets, the log. Whoever starts it a
//! second time goes on where it was; whoever starts it twice at once is shown the one that runs.

mod install;
mod owner;
mod place;
mod postgres;
mod programs;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, ErrorKind, IsTerminal as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context, bail};
use clap::Args;
use okt_config::{LoadOptions, Loaded, Origin};
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::serve;
use install::Parts;
use owner::Owner;
use postgres::{Ready, Server};

pub(crate) use place::{address, remedy};

const LOG: &str = "okt.log";

const URL: &str = "SVC__DATABASES__DEFAULT__URL";
const FILES: &str = "SVC__PROVIDERS__STORAGE__ROOT";
const PDFIUM: &str = "SVC__PROVIDERS__PARSING__PDFIUM";
const PORT: &str = "SVC__SERVER__PORT";
const OFFLINE: &str = "SVC__PROVIDERS__OFFLINE";

/// Ports that are tried after the usual one.
const NEXT_PORTS: u16 = 20;

#[derive(Args)]
pub(crate) struct UpArgs {
    /// Folder of the database, files, settings (okt.toml), secrets and log [default: `OKT_DATA`, or `~/.local/share/okt`; for
    /// root `/var/lib/okt-up`].
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Port of the web UI and the API [default: 8080, or the next that is free].
    #[arg(long)]
    port: Option<u16>,
    /// Do not open the web UI in a browser.
    #[arg(long)]
    no_open: bool,
    /// Refuse every request to other machines: no page is fetched, and no model, search service or registry is asked.
    #[arg(long)]
    offline: bool,
    /// Install what is missing without asking.
    #[arg(short, long)]
    yes: bool,
    /// Put a backup (`okt backup`) into a folder that has no data yet, then start.
    #[arg(long, value_name = "BACKUP")]
    restore: Option<PathBuf>,
}

pub(crate) fn main(config: Option<PathBuf>, args: &UpArgs) -> anyhow::Result<ExitCode> {
    let begun = Instant::now();
    let owner = owner::of_postgres()?;
    let folder = place::folder(args.data.clone().or_else(|| place::named("OKT_DATA")), owner.as_ref())?;
    let lock = place::lock(&folder)?;
    if let Some(running) = place::taken(&lock, &folder)? {
        say(&format!("okt is already running at {} (process {})", running.url, running.process));
        return show(&running.url, args).map(|()| ExitCode::SUCCESS);
    }
    let runtime = Runtime::new().context("can't start the runtime")?;
    let ended = Start { config, args, folder, owner, begun }.run(&runtime);
    runtime.shutdown_background();
    ended.map(|()| ExitCode::SUCCESS)
}

struct Start<'a> {
    config: Option<PathBuf>,
    args: &'a UpArgs,
    folder: PathBuf,
    owner: Option<Owner>,
    begun: Instant,
}

impl Start<'_> {
    fn run(self, runtime: &Runtime) -> anyhow::Result<()> {
        let Self { args, ref folder, .. } = self;
        say(&format!("everything is kept in {}", folder.display()));
        let mut environment = crate::environment()?;
        environment.extend(args.offline.then(|| (OFFLINE.to_owned(), "true".to_owned())));
        environment.extend(args.port.map(|port| (PORT.to_owned(), port.to_string())));
        let configured = self.load(&environment)?;
        let is_default = |key: &str| {
            configured.entries().iter().any(|entry| entry.key == key && entry.origin == Origin::Default)
        };
        if is_default("providers.storage.root") {
            environment.insert(FILES.to_owned(), text(&folder.join("files"))?);
        }
        if is_default("server.port") {
            environment.insert(PORT.to_owned(), free_port(configured.config.server.port)?.to_string());
        } else {
            let server = &configured.config.server;
            refuse_taken(server.port, args.port.is_some())?;
        }
        let has_database = configured.config.databases["default"].url_origin != Origin::Default;
        let reads_pdf = serve::pdfium(&configured.config)?.is_some();
        let home = folder.join(place::HOME);
        let server = if has_database {
            say(&format!(
                "PostgreSQL: the one of the settings ({})",
                configured.config.databases["default"].url_origin.place()
            ));
            None
        } else {
            Some(Server::new(home, self.owner.clone())?)
        };
        let offline = configured.config.providers.offline;
        let programs = self.install(server.as_ref(), reads_pdf, offline)?;
        if let Some(library) = install::pdfium(folder).filter(|_| !reads_pdf) {
            environment.insert(PDFIUM.to_owned(), text(&library)?);
        }
        let server = server.zip(programs).map(|(server, programs)| server.with(programs));
        let stop = told_to_stop(runtime, server.clone())?;
        match server {
            None => self.serve(runtime, &environment, &stop)?,
            Some(server) => {
                let ended = server.start().and_then(|url| {
                    environment.insert(URL.to_owned(), url);
                    self.serve(runtime, &environment, &stop)
                });
                ended.and(server.stop())?;
            }
        }
        say("stopped; `okt up` goes on where this was");
        Ok(())
    }

    /// The folder's settings, or those that were named, with the environment on top.
    fn load(&self, environment: &BTreeMap<String, String>) -> anyhow::Result<Loaded> {
        let LoadOptions { binary_dir, working_dir, .. } = crate::load_options(None)?;
        let config = Some(self.config.clone().unwrap_or_else(|| self.folder.clone()));
        Ok(okt_config::load(&LoadOptions { config, binary_dir, working_dir }, environment)?)
    }

    /// What is missing is installed, if somebody says so; returns where PostgreSQL's programs are, where one of our own is needed.
    fn install(
        &self,
        server: Option<&Server>,
        reads_pdf: bool,
        offline: bool,
    ) -> anyhow::Result<Option<PathBuf>> {
        let folder = &self.folder;
        let programs = match server {
            Some(server) => programs::find(&install::programs(folder), server.major()?),
            None => None,
        };
        let missing = Parts {
            postgres: server.is_some() && programs.is_none(),
            pdfium: !reads_pdf && install::pdfium(folder).is_none() && install::machine().is_some(),
        };
        if !missing.postgres && !missing.pdfium {
            return Ok(programs);
        }
        if let Some(server) = server.filter(|_| missing.postgres)
            && let Some(major) = server.major()?.filter(|major| *major != install::MAJOR)
        {
            bail!(
                "the data in {} is of PostgreSQL {major}, which is no longer on this machine; install PostgreSQL {major} with \
                 pgvector again, or begin anew in another folder: okt up --data DIR",
                folder.display()
            );
        }
        if self.may_install(missing, offline)? {
            match install::install(folder, missing) {
                // There is much to do without PDFs.
                Err(error) if !missing.postgres => say(&format!("PDFs will not be read: {error:#}")),
                installed => installed?,
            }
        } else if missing.postgres {
            bail!("without PostgreSQL okt can't run\n{}", install::OTHER_WAYS);
        } else {
            say("PDFs will not be read; `okt up --yes` installs what reads them");
        }
        Ok(if missing.postgres { Some(install::programs(folder)) } else { programs })
    }

    fn may_install(&self, missing: Parts, offline: bool) -> anyhow::Result<bool> {
        if offline {
            if missing.postgres {
                bail!(
                    "PostgreSQL has to be installed once, and --offline forbids to fetch it: run `okt up` without it the \
                     first time\n{}",
                    install::OTHER_WAYS
                );
            }
            return Ok(false);
        }
        if self.args.yes {
            return Ok(true);
        }
        if !std::io::stdin().is_terminal() {
            if missing.postgres {
                bail!(
                    "{missing} would have to be installed into {}, and there is nobody to ask: say yes beforehand, with `okt up \
                     --yes`\n{}",
                    self.folder.display(),
                    install::OTHER_WAYS
                );
            }
            return Ok(false);
        }
        let _ = write!(std::io::stderr(), "okt: install {missing} into {}? [Y/n] ", self.folder.display());
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer).context("can't read the answer")?;
        Ok(!answer.is_empty() && matches!(answer.trim().to_ascii_lowercase().as_str(), "" | "y" | "yes"))
    }

    /// Serves until it is told to stop.
    fn serve(
        &self,
        runtime: &Runtime,
        environment: &BTreeMap<String, String>,
        stop: &CancellationToken,
    ) -> anyhow::Result<()> {
        if stop.is_cancelled() {
            return Ok(());
        }
        let loaded = self.load(environment)?;
        if let Some(backup) = &self.args.restore {
            crate::backup::put_back(&loaded, backup).with_context(|| {
                format!(
                    "can't put the backup into {}; name a folder that has no data yet: okt up --data NEW --restore {}",
                    self.folder.display(),
                    backup.display()
                )
            })?;
        }
        let log = self.folder.join(LOG);
        let file = new_log(&log).with_context(|| format!("can't write {}", log.display()))?;
        let mut trouble = None;
        let served = serve::watched(runtime, loaded, file, stop.clone(), |started| {
            trouble = self.started(&started, &log).err();
        });
        if let Some(error) = trouble {
            say(&format!("{error:#}"));
        }
        place::forget(&self.folder)?;
        served.with_context(|| format!("okt could not start; its log is {}", log.display()))
    }

    fn started(&self, started: &serve::Started, log: &Path) -> anyhow::Result<()> {
        let url = format!("http://localhost:{}", started.address.port());
        place::tell(&self.folder, &url)?;
        say(&format!("ready after {} at {url}", seconds(self.begun)));
        if started.needs_admin {
            say(
                "make your account there: the first one becomes the administrator. A sample repository is offered next",
            );
        }
        say(&format!("log: {}. Press Ctrl-C to stop", log.display()));
        show(&url, self.args)
    }
}

/// Until here Ctrl-C ends this and what it has started; from here on it is told to stop. Whoever is told twice does not wait for
/// what runs, but leaves no PostgreSQL behind either.
fn told_to_stop(runtime: &Runtime, server: Option<Ready>) -> anyhow::Result<CancellationToken> {
    let at_once = move || {
        if let Some(error) = server.and_then(|server| server.stop().err()) {
            say(&format!("{error:#}"));
        }
    };
    let stop = runtime.block_on(async { serve::stop_signal(at_once) })?;
    if !outlives_terminal() {
        let (mut closed, stop) = (runtime.block_on(async { signal(SignalKind::hangup()) })?, stop.clone());
        runtime.spawn(async move {
            closed.recv().await;
            stop.cancel();
        });
    }
    let told = stop.clone();
    runtime.spawn(async move {
        told.cancelled().await;
        say("stopping; what runs may finish first (Ctrl-C once more: at once)");
    });
    Ok(stop)
}

/// As `nohup` has it. Otherwise a terminal that is closed ends okt, and must not leave PostgreSQL behind.
fn outlives_terminal() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // SIGHUP is the first signal.
    mask.is_some_and(|mask| mask & 1 == 1)
}

/// What other commands have to know of the installation whose folder `--config` names: where its database, its files and its
/// address are. What the settings say themselves stays as it is.
pub(crate) fn complete(
    options: &LoadOptions,
    mut environment: BTreeMap<String, String>,
) -> anyhow::Result<BTreeMap<String, String>> {
    let Some(given) = options.config.as_ref().map(|config| options.working_dir.join(config)) else {
        return Ok(environment);
    };
    // The folder, or the file in it.
    let folder = if given.is_file() { given.parent().unwrap_or(&given).to_owned() } else { given };
    let home = folder.join(place::HOME);
    if !home.join("data").is_dir() {
        return Ok(environment);
    }
    let configured = okt_config::load(options, &environment)?;
    if configured.config.databases["default"].url_origin == Origin::Default {
        environment.insert(URL.to_owned(), postgres::url(&home)?);
    }
    let is_default = |key: &str| {
        configured.entries().iter().any(|entry| entry.key == key && entry.origin == Origin::Default)
    };
    if is_default("providers.storage.root") {
        environment.insert(FILES.to_owned(), text(&folder.join("files"))?);
    }
    if let Some(library) = install::pdfium(&folder).filter(|_| is_default("providers.parsing.pdfium")) {
        environment.insert(PDFIUM.to_owned(), text(&library)?);
    }
    let port = place::running(&folder).and_then(|running| Some(running.url.rsplit_once(':')?.1.to_owned()));
    if let Some(port) = port.filter(|_| is_default("server.port")) {
        environment.insert(PORT.to_owned(), port);
    }
    Ok(environment)
}

/// The address goes to standard output, for programs, and into a browser, for people.
fn show(url: &str, args: &UpArgs) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    match writeln!(out, "{url}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => return Err(error.into()),
        _ => {}
    }
    if !args.no_open && !open(url) {
        say(&format!("open {url} in a browser"));
    }
    Ok(())
}

/// In the browser of whoever sits here; `false` where there is none.
pub(crate) fn open(url: &str) -> bool {
    let there = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let program = if cfg!(target_os = "macos") {
        "open"
    } else if there("DISPLAY") || there("WAYLAND_DISPLAY") {
        "xdg-open"
    } else {
        return false;
    };
    let mut command = Command::new(program);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Ctrl-C is for us, not for a browser.
    let Ok(mut opened) = command.process_group(0).spawn() else { return false };
    std::thread::spawn(move || opened.wait());
    true
}

/// The usual port, or one of the next.
fn free_port(usual: u16) -> anyhow::Result<u16> {
    let port = (usual..=usual.saturating_add(NEXT_PORTS)).find(|port| is_free(*port));
    let port = port.with_context(|| {
        format!("ports {usual} to {} are taken; name a free one: okt up --port PORT", usual + NEXT_PORTS)
    })?;
    if port != usual {
        say(&format!("port {usual} is taken by another program, so this uses {port}"));
    }
    Ok(port)
}

fn refuse_taken(port: u16, by_option: bool) -> anyhow::Result<()> {
    if port == 0 || is_free(port) {
        return Ok(());
    }
    let remedy =
        if by_option { "name a free one, or none" } else { "change server.port, or name a free one" };
    bail!("port {port} is taken by another program; {remedy}: okt up --port PORT")
}

/// In both addresses of `localhost`: a browser asks the other one first. A machine may have only one of them.
fn is_free(port: u16) -> bool {
    let is_taken = |address: IpAddr| {
        TcpListener::bind((address, port)).is_err_and(|error| error.kind() == ErrorKind::AddrInUse)
    };
    !is_taken(Ipv4Addr::LOCALHOST.into()) && !is_taken(Ipv6Addr::LOCALHOST.into())
}

/// The log of the start before stays beside it.
fn new_log(path: &Path) -> std::io::Result<File> {
    match fs::rename(path, path.with_extension("log.1")) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // It may hold the setup code.
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

fn remove(file: &Path) -> anyhow::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("can't remove {}", file.display()))
        }
        _ => Ok(()),
    }
}

/// For people; standard output is for programs.
fn say(what: &str) {
    let _ = writeln!(std::io::stderr(), "okt: {what}");
}

fn seconds(begun: Instant) -> String {
    format!("{:.1} s", begun.elapsed().as_secs_f64())
}

fn text(path: &Path) -> anyhow::Result<String> {
    let text = path.to_str().with_context(|| format!("{} is not valid UTF-8", path.display()))?;
    Ok(text.to_owned())
}
