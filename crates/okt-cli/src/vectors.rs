//! `okt doctor vectors` and `okt reembed`: whether facts and vectors fit together, and changing the model that makes them.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context;
use okt_config::{Config, Loaded};
use okt_jobs::{Tools, spaces};
use okt_model::Repository;
use okt_queue::JobError;
use okt_store::{Blobs, Databases, Purpose};

/// `okt doctor vectors`. Exits with 1 if they are inconsistent.
pub(crate) fn doctor(loaded: &Loaded, repair: bool) -> anyhow::Result<ExitCode> {
    with_tools(loaded, async |databases, tools| {
        let mut out = std::io::stdout();
        let (mut unfit, mut repositories, mut failed) = (0, 0, None);
        let checked = spaces::doctor(databases, tools, repair, |checked| {
            let found = checked.found;
            repositories += 1;
            unfit += found.orphaned + found.missing;
            let line = writeln!(
                out,
                "{:<32} {:>10} vectors {:>8} orphaned {:>8} missing {:>8} queued",
                checked.repository.slug, found.vectors, found.orphaned, found.missing, found.queued
            );
            failed = failed.take().or(line.err());
        });
        let away = checked.await.map_err(in_words)?;
        failed.map_or(Ok(()), Err)?;
        let said = match (unfit, repair) {
            (0, _) => "facts and vectors are consistent",
            (_, true) => "repaired the inconsistencies",
            (_, false) => "facts and vectors are inconsistent; to repair, run: okt doctor vectors --repair",
        };
        writeln!(std::io::stdout(), "{repositories} repositories: {said}")?;
        if !away.is_empty() {
            let why = "skipped because their database does not answer, or they are being moved";
            writeln!(std::io::stdout(), "{} {why}: {}", away.len(), slugs(&away))?;
        }
        let fit = (unfit == 0 || repair) && away.is_empty();
        Ok(if fit { ExitCode::SUCCESS } else { ExitCode::FAILURE })
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
        let done = changed.await.map_err(in_words)?;
        failed.map_or(Ok(()), Err)?;
        let said =
            if done.changed { "facts are searched by" } else { "nothing to do: facts are searched by" };
        writeln!(std::io::stdout(), "{said} the vectors of {model}")?;
        if !done.skipped.is_empty() {
            writeln!(
                std::io::stdout(),
                "{} skipped because their budget is spent: {}. A job embeds their facts once the budget allows \
                 (waiting_for: budget); raise it, or wait for the next month",
                done.skipped.len(),
                slugs(&done.skipped),
            )?;
        }
        if !done.away.is_empty() {
            writeln!(
                std::io::stdout(),
                "{} skipped because their database does not answer, or they are being moved: {}. A job embeds \
                 their facts later",
                done.away.len(),
                slugs(&done.away),
            )?;
        }
        if done.old_left {
            let what = "old vectors remain in a database that does not answer; run this again when it does";
            writeln!(std::io::stdout(), "{what}")?;
        }
        let whole = done.skipped.is_empty() && done.away.is_empty() && !done.old_left;
        Ok(if whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

pub(crate) fn slugs(repositories: &[Repository]) -> String {
    let slugs: Vec<&str> = repositories.iter().map(|repository| repository.slug.as_str()).collect();
    slugs.join(", ")
}

pub(crate) fn with_tools(
    loaded: &Loaded,
    work: impl AsyncFnOnce(&Databases, &Tools) -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new().context("can't start the runtime")?;
    runtime.block_on(async {
        Databases::reach(&loaded.config).await?;
        let (databases, tools) = open(&loaded.config).await?;
        let done = work(&databases, &tools).await;
        databases.close().await;
        done
    })
}

/// What jobs work with.
pub(crate) async fn open(config: &Config) -> anyhow::Result<(Databases, Tools)> {
    let databases = Databases::open(config, &[Purpose::Worker]).await?;
    let databases = databases.into_iter().next().context("no database was opened")?;
    let vectors = okt_vectors::Vectors::open(config, &databases).await?;
    let blobs = Blobs::open(&config.providers.storage)?;
    let parser = crate::serve::parser(config)?;
    // Nothing that is done with them here needs it, so none is made for it in development.
    let secret = config.auth.jwt_secret.expose().as_bytes();
    let tools = Tools::new(config, &databases, blobs, vectors, parser, secret)?;
    Ok((databases, tools))
}

pub(crate) fn in_words(error: JobError) -> anyhow::Error {
    match error {
        JobError::Failed(error) | JobError::RetryAfter { error, .. } => error.into(),
        JobError::Waits { why, .. } => {
            anyhow::anyhow!(
                "a repository is not available (waiting_for: {}); run this again later",
                why.as_str()
            )
        }
        JobError::Discarded { message, .. } => anyhow::anyhow!(message),
        JobError::AlreadyCommitted => anyhow::anyhow!("another process has already done this"),
    }
}
