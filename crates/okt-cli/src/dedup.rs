//! `okt dedup`: looking after merges of facts.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand};
use okt_config::{DedupPolicy, Loaded};
use okt_jobs::recheck::{Rechecked, RefusedBecause, recheck};
use okt_model::RepositoryId;
use okt_store::{Databases, repositories};

use crate::vectors::{in_words, slugs, with_tools};

#[derive(Args)]
pub(crate) struct DedupArgs {
    #[command(subcommand)]
    command: DedupCommand,
}

#[derive(Subcommand)]
enum DedupCommand {
    /// Find merges of facts that the policy in force would not make. Exits with 1 if there are any and they are left.
    Recheck(RecheckArgs),
}

#[derive(Args)]
struct RecheckArgs {
    /// Undo them. The facts are compared again by a background job.
    #[arg(long)]
    apply: bool,
    /// Only this repository, by its slug or id.
    #[arg(long, value_name = "REPOSITORY")]
    repository: Option<String>,
}

pub(crate) fn main(loaded: &Loaded, args: &DedupArgs) -> anyhow::Result<ExitCode> {
    let DedupCommand::Recheck(args) = &args.command;
    with_tools(loaded, async |databases, tools| {
        let only = match &args.repository {
            Some(name) => Some(find(databases, name).await?),
            None => None,
        };
        let (mut out, mut failed) = (std::io::stdout(), None);
        let (mut refused, mut undone, mut merges, mut incomplete) = (0, 0, 0, 0);
        let policy = loaded.config.providers.dedup.policy;
        let (mut current, mut last) = (None, Rechecked::default());
        let checked = recheck(databases, tools, only, args.apply, |repository, done, found| {
            if current.replace(repository.id) != Some(repository.id) {
                last = Rechecked::default();
            }
            merges += done.merges - last.merges;
            refused += done.refused - last.refused;
            undone += done.undone - last.undone;
            incomplete += done.incomplete - last.incomplete;
            last = done;
            for merge in found {
                let reason = match merge.reason {
                    RefusedBecause::Differ(difference) => format!("they differ: {}", difference.as_str()),
                    RefusedBecause::NotPermitted if policy == DedupPolicy::Judge => {
                        "no rule permits it, and no model has confirmed it".to_owned()
                    }
                    RefusedBecause::NotPermitted => "no rule permits it".to_owned(),
                    RefusedBecause::Language => "the embedding model does not know the language".to_owned(),
                };
                let line = writeln!(
                    out,
                    "{} {}: {reason}\n    {}\n    {}",
                    repository.slug, merge.fact, merge.text, merge.other
                );
                failed = failed.take().or(line.err());
            }
            let line = writeln!(
                std::io::stderr(),
                "{}: {} merges checked, {} would not be made",
                repository.slug,
                done.merges,
                done.refused
            );
            failed = failed.take().or(line.err());
        });
        let away = checked.await.map_err(in_words)?;
        failed.map_or(Ok(()), Err)?;
        let mut out = std::io::stdout();
        let policy = format!("{policy:?}").to_lowercase();
        let said = match (refused, args.apply) {
            (0, _) => format!("the policy in force ({policy}) would make all of them"),
            (_, true) => format!(
                "undid {undone} that the policy in force ({policy}) would not make; background jobs compare the facts again"
            ),
            (_, false) => format!(
                "the policy in force ({policy}) would not make {refused}; to undo them, run: okt dedup recheck --apply"
            ),
        };
        writeln!(out, "{merges} merges: {said}")?;
        if incomplete > 0 {
            writeln!(
                out,
                "{incomplete} more could not be checked: a fact that the journal names is not there"
            )?;
        }
        if !away.is_empty() {
            let why = "skipped because their database does not answer, or they are being moved";
            writeln!(out, "{} {why}: {}", away.len(), slugs(&away))?;
        }
        let settled = (refused == 0 || args.apply) && away.is_empty();
        Ok(if settled { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

async fn find(databases: &Databases, name: &str) -> anyhow::Result<RepositoryId> {
    let mut conn = databases.acquire_system().await?;
    let found = repositories::locate(&mut conn, name).await?;
    let repository =
        found.with_context(|| format!("there is no repository {name:?}; name its slug or its id"))?;
    Ok(repository.id)
}
