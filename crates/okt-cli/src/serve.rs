//! `okt serve`.

use std::fs::File;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use okt_api::Api;
use okt_app::{App, Probe, State};
use okt_config::{Config, Loaded, Metrics, Mode, Parsing};
use okt_http::{Edge, Served};
use okt_jobs::{Ocr, Parser, ParserState, Tools, spaces};
use okt_queue::Worker;
use okt_store::{Blobs, Databases, Purpose};
use okt_vectors::Vectors;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::secret::signing_secret;
use crate::telemetry::Telemetry;
use crate::version::{COMMIT, VERSION};

const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Args, Default)]
pub struct ServeArgs {
    /// Role of this process.
    #[arg(long, value_enum, default_value_t)]
    role: Role,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Role {
    /// API and background jobs, for small installations.
    #[default]
    All,
    /// Serves the HTTP API.
    Api,
    /// Runs background jobs; serves only health and metrics.
    Worker,
}

impl Role {
    const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Api => "api",
            Self::Worker => "worker",
        }
    }

    const fn purposes(self) -> &'static [Purpose] {
        match self {
            Self::All => &[Purpose::Api, Purpose::Worker, Purpose::Queue],
            Self::Api => &[Purpose::Api],
            Self::Worker => &[Purpose::Worker, Purpose::Queue],
        }
    }
}

/// Serves until told to stop. `service` makes the routes; there is one for everybody, and tests have their own.
pub fn main(
    loaded: Loaded,
    args: &ServeArgs,
    service: impl FnOnce(&Api) -> anyhow::Result<Served>,
) -> anyhow::Result<ExitCode> {
    // One for everything: serving, relaying, looking after jobs. Only jobs themselves have another, in `Worker::start`.
    let runtime = tokio::runtime::Runtime::new().context("can't start the runtime")?;
    let telemetry = Telemetry::start(&loaded.config, None)?;
    let ended = runtime.block_on(async {
        let stop = stop_signal(|| {})?;
        run(loaded, args.role, service, &telemetry, stop, |_| {}).await
    });
    // Whatever still runs has been waited for, as long as anybody may.
    runtime.shutdown_background();
    telemetry.stop();
    ended.map(|()| ExitCode::SUCCESS)
}

/// A service that is ready for requests.
pub(crate) struct Started {
    pub(crate) address: SocketAddr,
    /// Nobody has an account yet.
    pub(crate) needs_admin: bool,
}

/// Serves as `okt serve` does, for somebody who watches: the log goes to a file, and they are told when it is ready.
pub(crate) fn watched(
    runtime: &tokio::runtime::Runtime,
    loaded: Loaded,
    log: File,
    stop: CancellationToken,
    started: impl FnOnce(Started),
) -> anyhow::Result<()> {
    let telemetry = Telemetry::start(&loaded.config, Some(log))?;
    let ended = runtime.block_on(run(loaded, Role::All, service, &telemetry, stop, started));
    if let Err(error) = &ended {
        tracing::error!("ended: {error:#}");
    }
    telemetry.stop();
    ended
}

/// The routes of the service.
pub fn service(api: &Api) -> anyhow::Result<Served> {
    let routes = okt_api::table(api);
    okt_api::finish(api, &routes)?;
    Ok(routes.into_service())
}

async fn run(
    loaded: Loaded,
    role: Role,
    service: impl FnOnce(&Api) -> anyhow::Result<Served>,
    telemetry: &Telemetry,
    stop: CancellationToken,
    started: impl FnOnce(Started),
) -> anyhow::Result<()> {
    tracing::info!(version = VERSION, commit = COMMIT, role = role.name(), "starting");
    for note in &loaded.notes {
        tracing::info!("{note}");
    }
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    warn_about(&loaded.config);
    let secret = signing_secret(&loaded)?;
    let secret = secret.expose().as_bytes();
    let config = loaded.config;
    let parser = if role == Role::Api { None } else { Some(checked_parser(&config).await?) };
    let databases = tokio::select! {
        () = stop.cancelled() => return Ok(()),
        opened = open_databases(&config, role) => opened?,
    };
    let [first, ..] = databases.as_slice() else {
        anyhow::bail!("role {} opened no database pools", role.name())
    };

    let edge = Edge::new(&config, secret);
    let blobs = Blobs::open(&config.providers.storage)?;
    let vectors = Vectors::open(&config, first).await?;
    let app = App::new(config.clone(), first.clone(), blobs.clone(), vectors, secret);
    app.bootstrap().await?;
    let needs_admin = app.setup().await?.needs_admin;
    if role != Role::Worker {
        app.announce_setup().await?;
    }
    if let Some(parser) = &parser {
        app.watch("parser", Duration::from_mins(1), parser_probe(parser.clone()));
    }
    let api = Api::new(app, Arc::clone(&edge), telemetry.metrics.clone(), &databases);
    let routes = if role == Role::Worker { okt_api::probes(&api).into_service() } else { service(&api)? };

    let address = SocketAddr::new(config.server.host, config.server.port);
    let listener = listen(address, "server.host, server.port").await?;
    let address = listener.local_addr()?;
    tracing::info!(%address, role = role.name(), "listening");
    let mut tasks = JoinSet::new();
    if let Metrics::At(address) = config.metrics() {
        let listener = listen(address, "server.metrics_addr").await?;
        tracing::info!(address = %listener.local_addr()?, "listening for metrics");
        let routes = okt_api::metrics_probes(&api).into_service();
        tasks.spawn(okt_http::serve(listener, routes, Arc::clone(&edge), stop.clone()));
    }
    let tidy = api.clone();
    tasks.spawn(async move { tidy.keep_tidy().await });
    let app = api.app.clone();
    tasks.spawn(async move { app.keep_up().await });
    if role != Role::Worker {
        let app = api.app.clone();
        tasks.spawn(async move { app.hear_of_jobs().await });
    }
    let metrics = telemetry.metrics.clone();
    tasks.spawn(async move { upkeep(&metrics).await });
    let worker = match parser {
        Some(parser) => start_worker(&config, &databases, blobs, parser, secret, &mut tasks).await?,
        None => None,
    };

    started(Started { address, needs_admin });

    // Running jobs get the same time as requests, beside them.
    let stopped = async {
        stop.cancelled().await;
        if let Some(worker) = worker {
            worker.stop().await;
        }
    };
    tokio::join!(okt_http::serve(listener, routes, edge, stop.clone()), stopped);
    tasks.shutdown().await;
    // Whatever still holds a connection after the drain will not give it back.
    let closing = async {
        for databases in databases {
            databases.close().await;
        }
    };
    if tokio::time::timeout(CLOSE_TIMEOUT, closing).await.is_err() {
        tracing::warn!("not every database connection was closed in time");
    }
    tracing::info!("stopped");
    Ok(())
}

/// Brings the databases up to date and opens the pools of this role. Those that hold nothing but repositories may come later.
async fn open_databases(config: &Config, role: Role) -> anyhow::Result<Vec<Databases>> {
    let (reports, databases) = Databases::migrate_and_open(config, role.purposes()).await?;
    for report in reports {
        let (database, schema) = (&report.database, report.schema);
        if report.migrations.is_empty() {
            tracing::info!(database, schema, "schema is up to date");
        } else {
            tracing::info!(database, schema, migrations = report.migrations.len(), "schema migrated");
        }
    }
    Ok(databases)
}

/// Where this role runs jobs.
async fn start_worker(
    config: &Config,
    databases: &[Databases],
    blobs: Blobs,
    parser: Parser,
    secret: &[u8],
    tasks: &mut JoinSet<()>,
) -> anyhow::Result<Option<Worker>> {
    let of = |purpose| databases.iter().find(|databases| databases.purpose() == purpose).cloned();
    let (Some(worker), Some(keeper)) = (of(Purpose::Worker), of(Purpose::Queue)) else { return Ok(None) };
    let vectors = Vectors::open(config, &worker).await?;
    let tools = Tools::new(config, &worker, blobs, vectors, parser, secret)?;
    let opened_late = worker.opened_late();
    spaces::start(&worker, &tools).await?;
    tasks.spawn(spaces::follow(opened_late, worker.clone(), tools.clone()));
    let kinds = okt_jobs::kinds(&tools);
    let settings = okt_queue::Settings::of(config, &kinds);
    Ok(Some(Worker::start(settings, keeper, worker, kinds, okt_jobs::periodic(config)?)?))
}

/// This program reads files itself, in a child.
pub(crate) fn parser(config: &Config) -> anyhow::Result<Parser> {
    let program = std::env::current_exe().context("cannot find the path of this program")?;
    Ok(Parser::new(program, pdfium(config)?, ocr(config)))
}

/// What recognises text in pictures: tesseract, the one of the configuration or the one in `PATH`.
fn ocr(config: &Config) -> Option<Ocr> {
    let Parsing { ocr, tesseract, ocr_languages, .. } = &config.providers.parsing;
    let installed = || {
        let folders = std::env::var_os("PATH")?;
        std::env::split_paths(&folders).map(|folder| folder.join("tesseract")).find(|path| path.is_file())
    };
    let program = ocr.then(|| tesseract.clone().or_else(installed)).flatten()?;
    Some(Ocr { program, languages: ocr_languages.clone() })
}

/// The library that reads PDFs: the one of the configuration, or the one beside this program.
pub(crate) fn pdfium(config: &Config) -> anyhow::Result<Option<PathBuf>> {
    let program = std::env::current_exe().context("cannot find the path of this program")?;
    let beside = program.with_file_name("libpdfium.so");
    Ok(config.providers.parsing.pdfium.clone().or_else(|| beside.exists().then_some(beside)))
}

/// What is wrong with the reading of files is said before anybody is served. A library that was named and can't be loaded
/// is a mistake; what else is missing is told by `/readyz`, too.
async fn checked_parser(config: &Config) -> anyhow::Result<Parser> {
    let parser = parser(config)?;
    match parser.check().await {
        ParserState::Ok => {}
        ParserState::NoPdf(why) if config.providers.parsing.pdfium.is_some() => {
            anyhow::bail!("providers.parsing.pdfium: {why}")
        }
        ParserState::NoPdf(why) => tracing::warn!("{why}"),
        ParserState::Broken(why) => tracing::error!("sources cannot be parsed: {why}"),
    }
    Ok(parser)
}

/// For people who are nobody in particular: no paths.
fn parser_probe(parser: Parser) -> Probe {
    Box::new(move || {
        let parser = parser.clone();
        Box::pin(async move {
            match parser.check().await {
                ParserState::Ok => State::Ok,
                ParserState::NoPdf(_) => {
                    State::Degraded("PDFs can't be read: the library in providers.parsing.pdfium is missing")
                }
                ParserState::Broken(_) => State::Down("no file can be read: the parser does not start"),
            }
        })
    })
}

pub(crate) async fn listen(address: SocketAddr, key: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("{key}: cannot listen on {address}"))
}

/// Cancelled by the first SIGTERM or interrupt. A second one ends the process without waiting for what runs, after `at_once`.
pub(crate) fn stop_signal(at_once: impl FnOnce() + Send + 'static) -> anyhow::Result<CancellationToken> {
    let stop = CancellationToken::new();
    let (terminate, interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::spawn(obey(stop.clone(), terminate, interrupt, at_once));
    Ok(stop)
}

async fn obey(
    stop: CancellationToken,
    mut terminate: Signal,
    mut interrupt: Signal,
    at_once: impl FnOnce() + Send,
) {
    told(&mut terminate, &mut interrupt).await;
    stop.cancel();
    told(&mut terminate, &mut interrupt).await;
    tracing::warn!("received a second signal; stopping without draining");
    at_once();
    std::process::exit(1);
}

async fn told(terminate: &mut Signal, interrupt: &mut Signal) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

fn warn_about(config: &Config) {
    if config.mode == Mode::Development && !config.server.host.is_loopback() {
        tracing::warn!("development mode on a non-loopback address; set mode = \"production\"");
    }
}

pub(crate) async fn upkeep(metrics: &metrics_exporter_prometheus::PrometheusHandle) {
    let mut timer = tokio::time::interval(Duration::from_secs(5));
    loop {
        timer.tick().await;
        metrics.run_upkeep();
    }
}
