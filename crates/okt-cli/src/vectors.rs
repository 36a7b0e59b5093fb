//! `okt doctor vectors` and `okt reembed`: whether facts and vectors fit together, and changing the model that makes them.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand};
use okt_config::Loaded;
use okt_jobs::{Tools, spaces};
use okt_queue::JobError;
use okt_store::{Blobs, Databases, Purpose};

#[derive(Args)]
pub(crate) struct DoctorArgs {
    #[command(subcommand)]
    command: DoctorCommand,
}

#[derive(Subcommand)]
enum DoctorCommand {
    /// Compare facts and vectors of every repository. Exit code 1 when they do not fit together.
    Vectors {
        /// Remove vectors without a fact, and make those that are missing.
        #[arg(long)]
        repair: bool,
    },
}

pub(crate) fn doctor(loaded: &Loaded, args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let DoctorCommand::Vectors { repair } = args.command;
    with_tools(loaded, async |databases, tools| {
        let mut out = std::io::stdout();
        let (mut unfit, mut repositories, mut failed) = (0, 0, None);
        let checked = spaces::doctor(databases, tools, repair, |checked| {
            let found = checked.found;
            repositories += 1;
            unfit += found.orphaned + found.missing;
            let line = writeln!(
                out,
                "{:<32} {:>10} vectors {:>8} orphaned {:>8} missing",
                checked.repository.slug, found.vectors, found.orphaned, found.missing
            );
            failed = failed.take().or(line.err());
        });
        checked.await.map_err(in_words)?;
        failed.map_or(Ok(()), Err)?;
        let said = match (unfit, repair) {
            (0, _) => "facts and vectors fit together",
            (_, true) => "mended what did not fit together",
            (_, false) => "facts and vectors do not fit together; mend it with: okt doctor vectors --repair",
        };
        writeln!(std::io::stdout(), "{repositories} repositories: {said}")?;
        Ok(if unfit == 0 || repair { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

pub(crate) fn reembed(loaded: &Loaded) -> anyhow::Result<ExitCode> {
    with_tools(loaded, async |databases, tools| {
        let model = &loaded.config.providers.embedding.model;
        let mut failed = None;
        let changed = spaces::reembed(databases, tools, |repository, made| {
            let line = writeln!(std::io::stdout(), "{:<32} {made:>10} vectors", repository.slug);
            failed = failed.take().or(line.err());
        });
        let changed = changed.await.map_err(in_words)?;
        failed.map_or(Ok(()), Err)?;
        let said = if changed { "facts are searched by" } else { "nothing to do: facts are searched by" };
        writeln!(std::io::stdout(), "{said} the vectors of {model}")?;
        Ok(ExitCode::SUCCESS)
    })
}

fn with_tools(
    loaded: &Loaded,
    work: impl AsyncFnOnce(&Databases, &Tools) -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new().context("can't start the runtime")?;
    runtime.block_on(async {
        let databases = Databases::open(&loaded.config, &[Purpose::Worker]).await?;
        let databases = databases.into_iter().next().context("no database was opened")?;
        let vectors = okt_vectors::Vectors::open(&loaded.config, &databases).await?;
        let blobs = Blobs::open(&loaded.config.providers.storage)?;
        let parser = crate::serve::parser(&loaded.config)?;
        let tools = Tools::new(&loaded.config, blobs, vectors, parser)?;
        let done = work(&databases, &tools).await;
        databases.close().await;
        done
    })
}

fn in_words(error: JobError) -> anyhow::Error {
    match error {
        JobError::Failed(error) | JobError::Later { error, .. } => error.into(),
        JobError::Waits { why, .. } => {
            anyhow::anyhow!("a repository has to wait ({}); run this again later", why.as_str())
        }
        JobError::HasHappened => anyhow::anyhow!("somebody else has done it"),
    }
}
