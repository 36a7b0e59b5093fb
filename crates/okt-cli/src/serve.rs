//! `okt serve`.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use okt_api::Api;
use okt_app::App;
use okt_config::{Config, Loaded, Mode};
use okt_http::{Edge, Served, Threads};
use okt_jobs::{Parser, Tools, spaces};
use okt_queue::Worker;
use okt_store::{Blobs, Databases, Purpose};
use okt_vectors::Vectors;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::secret::signing_secret;
use crate::telemetry::Telemetry;

const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Args, Default)]
pub struct ServeArgs {
    /// What this process does.
    #[arg(long, value_enum, default_value_t)]
    role: Role,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Role {
    /// Everything, for small installations.
    #[default]
    All,
    /// Answers requests.
    Api,
    /// Runs background work; answers only health and metrics.
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
            Self::All => &[Purpose::Api, Purpose::Worker, Purpose::Keeper],
            Self::Api => &[Purpose::Api],
            Self::Worker => &[Purpose::Worker, Purpose::Keeper],
        }
    }
}

/// Serves until told to stop. `service` makes the routes; there is one for everybody, and tests have their own.
pub fn main(
    loaded: Loaded,
    args: &ServeArgs,
    service: impl FnOnce(&Api) -> anyhow::Result<Served>,
) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new().context("can't start the runtime")?;
    let telemetry = Telemetry::start(&loaded.config)?;
    let ended = runtime.block_on(run(loaded, args.role, service, &telemetry));
    telemetry.stop();
    ended.map(|()| ExitCode::SUCCESS)
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
) -> anyhow::Result<()> {
    for note in &loaded.notes {
        tracing::info!("{note}");
    }
    warn_about(&loaded.config);
    let stop = stop_signal()?;
    let secret = signing_secret(&loaded)?;
    let secret = secret.expose().as_bytes();
    let config = loaded.config;
    let databases = tokio::select! {
        () = stop.cancelled() => return Ok(()),
        opened = open_databases(&config, role) => opened?,
    };
    let [first, ..] = databases.as_slice() else { anyhow::bail!("a role without a purpose") };

    let edge = Edge::new(&config, secret);
    let blobs = Blobs::open(&config.providers.storage)?;
    let vectors = Vectors::open(&config, first).await?;
    let app = App::new(config.clone(), first.clone(), blobs.clone(), vectors, secret);
    app.bootstrap().await?;
    let api = Api::new(app, Arc::clone(&edge), telemetry.metrics.clone(), &databases);
    let routes = if role == Role::Worker { okt_api::probes(&api).into_service() } else { service(&api)? };

    let threads = threads(&config, role, first).context("can't start the threads that serve")?;
    let threads = Arc::new(threads);
    let address = SocketAddr::new(config.server.host, config.server.port);
    let listener = listen(address, "server.host, server.port").await?;
    tracing::info!(address = %listener.local_addr()?, role = role.name(), "listening");
    let mut tasks = JoinSet::new();
    if let Some(address) = config.server.metrics_addr {
        let listener = listen(address, "server.metrics_addr").await?;
        tracing::info!(address = %listener.local_addr()?, "listening for metrics");
        let routes = okt_api::metrics_probes(&api).into_service();
        let here = Arc::new(Threads::here());
        tasks.spawn(okt_http::serve(listener, routes, Arc::clone(&edge), stop.clone(), here));
    }
    let tidy = api.clone();
    tasks.spawn(async move { tidy.keep_tidy().await });
    if role != Role::Worker {
        let app = api.app.clone();
        tasks.spawn(async move { app.hear_of_jobs().await });
    }
    let metrics = telemetry.metrics.clone();
    tasks.spawn(async move { upkeep(&metrics).await });
    let worker = start_worker(&config, &databases, blobs).await?;

    // Running jobs get the same time as requests, beside them.
    let stopped = async {
        stop.cancelled().await;
        if let Some(worker) = worker {
            worker.stop().await;
        }
    };
    tokio::join!(okt_http::serve(listener, routes, edge, stop.clone(), Arc::clone(&threads)), stopped);
    tasks.shutdown().await;
    // Whatever still holds a connection after the drain will not give it back.
    let closing = async {
        for databases in databases {
            databases.close().await;
        }
    };
    if tokio::time::timeout(CLOSE_TIMEOUT, closing).await.is_err() {
        tracing::warn!("not every database connection could be closed");
    }
    drop(threads);
    tracing::info!("stopped");
    Ok(())
}

/// The threads that serve: half as many as there are cores. What a request takes of PostgreSQL is more than it takes of us,
/// so they keep one on a machine of the same size busy, and leave room for it on this one. And no more than have a few
/// connections to it each. A worker answers probes and nothing else.
fn threads(config: &Config, role: Role, databases: &Databases) -> std::io::Result<Threads> {
    /// For each of them.
    const CONNECTIONS: u32 = 4;
    if role == Role::Worker {
        return Ok(Threads::here());
    }
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let system = databases.usage().find(|(name, _)| name == config.system_database());
    let connections = system.map_or(0, |(_, usage)| usage.limit);
    Threads::start((cores / 2).min(usize::try_from(connections / CONNECTIONS).unwrap_or(1)))
}

/// Brings the databases up to date and opens the pools of this role.
async fn open_databases(config: &Config, role: Role) -> anyhow::Result<Vec<Databases>> {
    for report in Databases::migrate(config).await? {
        let (database, schema) = (&report.database, report.schema);
        if report.migrations.is_empty() {
            tracing::info!(database, schema, "schema is up to date");
        } else {
            tracing::info!(database, schema, migrations = report.migrations.len(), "schema migrated");
        }
    }
    Ok(Databases::open(config, role.purposes()).await?)
}

/// Where this role runs jobs.
async fn start_worker(
    config: &Config,
    databases: &[Databases],
    blobs: Blobs,
) -> anyhow::Result<Option<Worker>> {
    let of = |purpose| databases.iter().find(|databases| databases.purpose() == purpose).cloned();
    let (Some(worker), Some(keeper)) = (of(Purpose::Worker), of(Purpose::Keeper)) else { return Ok(None) };
    let vectors = Vectors::open(config, &worker).await?;
    let tools = Tools::new(config, blobs, vectors, parser(config)?)?;
    spaces::start(&worker, &tools).await?;
    let kinds = okt_jobs::kinds(config, &tools);
    let settings = okt_queue::Settings::of(config, &kinds);
    Ok(Some(Worker::start(settings, keeper, worker, kinds, okt_jobs::periodic()?)?))
}

/// This program reads files itself, in a child.
pub(crate) fn parser(config: &Config) -> anyhow::Result<Parser> {
    let program = std::env::current_exe().context("can't tell where this program lies")?;
    let beside = program.with_file_name("libpdfium.so");
    let pdfium = config.providers.parsing.pdfium.clone().or_else(|| beside.exists().then_some(beside));
    match &pdfium {
        Some(library) if !library.exists() => {
            anyhow::bail!("providers.parsing.pdfium: there is no {}", library.display())
        }
        Some(_) => {}
        None => tracing::warn!("PDFs can't be read: name a libpdfium.so in providers.parsing.pdfium"),
    }
    Ok(Parser::new(program, pdfium))
}

async fn listen(address: SocketAddr, key: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("{key}: can't listen on {address}"))
}

/// Cancelled by the first SIGTERM or interrupt; a second one ends the process as it always would.
fn stop_signal() -> anyhow::Result<CancellationToken> {
    let stop = CancellationToken::new();
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let stopping = stop.clone();
    tokio::spawn(async move {
        for _ in 0..2 {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if stopping.is_cancelled() {
                tracing::warn!("stopped at once by a second signal");
                std::process::exit(1);
            }
            stopping.cancel();
        }
    });
    Ok(stop)
}

fn warn_about(config: &Config) {
    if config.mode == Mode::Development && !config.server.host.is_loopback() {
        tracing::warn!("development mode on an address that others can reach; set mode = \"production\"");
    }
    let bootstrap = &config.bootstrap;
    let public = config.oauth.issuer.as_ref().is_some_and(|issuer| issuer.scheme() == "https");
    if public && bootstrap.auto_promote_first_user && !bootstrap.seeds_admin() {
        tracing::warn!(
            "whoever registers first on an empty installation becomes sysadmin; set \
             bootstrap.auto_promote_first_user = false and use bootstrap.default_admin"
        );
    }
}

async fn upkeep(metrics: &metrics_exporter_prometheus::PrometheusHandle) {
    let mut timer = tokio::time::interval(Duration::from_secs(5));
    loop {
        timer.tick().await;
        metrics.run_upkeep();
    }
}
