//! `okt registry`: the service, and what those who run it do with keys and packages.

use std::io::Write as _;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use okt_config::{Loaded, Metrics, RegistryAccess};
use okt_http::Edge;
use okt_registry::{NewKey, Registry};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::secret::signing_secret;
use crate::serve::{listen, stop_signal, upkeep};
use crate::telemetry::Telemetry;
use crate::version::{COMMIT, VERSION};

const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Args)]
pub(crate) struct RegistryArgs {
    #[command(subcommand)]
    command: Option<RegistryCommand>,
}

#[derive(Subcommand)]
enum RegistryCommand {
    /// Serve it; the same as without a command.
    Serve,
    /// Keys of the installations that use the registry.
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Stop handing out a bundle. Consumers are told.
    WithdrawGraph {
        /// Id of the bundle in the registry.
        graph: Uuid,
        /// Reason, which consumers are told.
        #[arg(long)]
        reason: String,
    },
    /// Stop handing out the packages of a source and a model. Consumers are told.
    #[command(disable_version_flag = true)]
    Withdraw {
        /// Id of the source in the registry.
        source: Uuid,
        /// Model of the packages.
        model: String,
        /// Only this version, and others of the same bytes; all without.
        #[arg(long, value_name = "N")]
        version: Option<i32>,
        /// Reason, which consumers are told.
        #[arg(long)]
        reason: String,
    },
}

#[derive(Subcommand)]
enum KeysCommand {
    /// Create a key. It is shown once.
    Create {
        /// Who it is for.
        name: String,
        /// Let it push, too.
        #[arg(long)]
        write: bool,
        /// Pushes that it may make in a day; any number without.
        #[arg(long, value_name = "N")]
        daily_pushes: Option<u32>,
        /// Days until it expires; never without.
        #[arg(long, value_name = "N")]
        days: Option<u32>,
    },
    /// List all keys.
    List,
    /// Let a key in no more.
    Revoke {
        id: String,
        /// Also withdraw everything that it pushed, for this reason.
        #[arg(long, value_name = "REASON")]
        withdraw: Option<String>,
    },
}

pub(crate) fn main(loaded: Loaded, args: &RegistryArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new().context("can't start the runtime")?;
    match &args.command {
        None | Some(RegistryCommand::Serve) => {
            let telemetry = Telemetry::start(&loaded.config, None)?;
            let ended = runtime.block_on(serve(loaded, &telemetry));
            runtime.shutdown_background();
            telemetry.stop();
            ended.map(|()| ExitCode::SUCCESS)
        }
        Some(command) => runtime.block_on(manage(&loaded, command)),
    }
}

async fn serve(loaded: Loaded, telemetry: &Telemetry) -> anyhow::Result<()> {
    tracing::info!(version = VERSION, commit = COMMIT, role = "registry", "starting");
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    let stop = stop_signal(|| {})?;
    let secret = signing_secret(&loaded)?;
    let secret = secret.expose().as_bytes();
    let config = &loaded.config;
    let rendered = telemetry.metrics.clone();
    let render = Box::new(move || rendered.render());
    let registry = tokio::select! {
        () = stop.cancelled() => return Ok(()),
        opened = Registry::open(config, secret, render) => opened?,
    };
    if config.registry.access == RegistryAccess::Open && !config.registry.host.is_loopback() {
        tracing::warn!("anybody may push: registry.access is open on an address that is not loopback");
    }
    let edge = Edge::new(config, secret);
    let routes = registry.table(&edge)?.into_service();
    let address = SocketAddr::new(config.registry.host, config.registry.port);
    let listener = listen(address, "registry.host, registry.port").await?;
    tracing::info!(address = %listener.local_addr()?, role = "registry", "listening");
    let mut tasks = JoinSet::new();
    if let Metrics::At(address) = config.metrics() {
        let listener = listen(address, "server.metrics_addr").await?;
        tracing::info!(address = %listener.local_addr()?, "listening for metrics");
        let routes = registry.probes(&edge).into_service();
        tasks.spawn(okt_http::serve(listener, routes, Arc::clone(&edge), stop.clone()));
    }
    let tidy = registry.clone();
    tasks.spawn(async move { tidy.keep_tidy().await });
    let idle = Arc::clone(&edge);
    tasks.spawn(async move {
        let mut minute = tokio::time::interval(Duration::from_mins(1));
        loop {
            minute.tick().await;
            idle.forget_idle();
        }
    });
    let metrics = telemetry.metrics.clone();
    tasks.spawn(async move { upkeep(&metrics).await });
    okt_http::serve(listener, routes, edge, stop).await;
    tasks.shutdown().await;
    if tokio::time::timeout(CLOSE_TIMEOUT, registry.close()).await.is_err() {
        tracing::warn!("not every database connection was closed in time");
    }
    tracing::info!("stopped");
    Ok(())
}

async fn manage(loaded: &Loaded, command: &RegistryCommand) -> anyhow::Result<ExitCode> {
    let secret = signing_secret(loaded)?;
    let registry = Registry::open(&loaded.config, secret.expose().as_bytes(), Box::new(String::new)).await?;
    let mut out = std::io::stdout().lock();
    match command {
        RegistryCommand::Serve => {}
        RegistryCommand::Keys(KeysCommand::Create { name, write, daily_pushes, days }) => {
            let new =
                NewKey { name: name.clone(), may_write: *write, daily_pushes: *daily_pushes, days: *days };
            writeln!(out, "{}", registry.create_key(&new).await?.expose())?;
        }
        RegistryCommand::Keys(KeysCommand::List) => {
            for key in registry.list_keys().await? {
                let may = if key.may_write { "read and write" } else { "read" };
                let quota =
                    key.daily_pushes.map(|count| format!(", {count} pushes a day")).unwrap_or_default();
                let ends = match (key.revoked_at, key.expires_at) {
                    (Some(at), _) => format!(", revoked {at}"),
                    (None, Some(at)) => format!(", expires {at}"),
                    (None, None) => String::new(),
                };
                writeln!(out, "{}  {}  {may}{quota}, created {}{ends}", key.id, key.name, key.created_at)?;
            }
        }
        RegistryCommand::Keys(KeysCommand::Revoke { id, withdraw }) => {
            if !registry.revoke_key(id).await? {
                bail!("there is no key {id}");
            }
            writeln!(out, "{id} is revoked")?;
            if let Some(reason) = withdraw {
                let (packages, bundles) = registry.withdraw_all_of(id, reason).await?;
                writeln!(out, "{packages} packages and {bundles} bundles withdrawn")?;
            }
        }
        RegistryCommand::WithdrawGraph { graph, reason } => {
            if !registry.withdraw_graph(*graph, reason).await? {
                bail!("there is no bundle {graph}");
            }
            writeln!(out, "withdrawn")?;
        }
        RegistryCommand::Withdraw { source, model, version, reason } => {
            let count = registry.withdraw(*source, model, *version, reason).await?;
            if count == 0 {
                bail!("there is no such package of source {source} and model {model}");
            }
            writeln!(out, "{count} packages withdrawn")?;
        }
    }
    registry.close().await;
    Ok(ExitCode::SUCCESS)
}
