//! `okt eval`: how well documents are read, facts made, compared and found, measured on a folder of texts, of documents with
//! their known text, of pairs and claims that somebody has judged, or of questions with the documents that answer them.
//!
//! The folders are public data sets that are not part of this repository; each module says which layout it reads.

mod ask;
mod dedup;
mod facts;
mod html;
mod pdf;
mod posture;
mod retrieval;
mod shingles;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use okt_config::Loaded;

#[derive(Args)]
pub struct EvalArgs {
    #[command(subcommand)]
    command: EvalCommand,
}

#[derive(Subcommand)]
enum EvalCommand {
    /// Answers: whether their evidence has the documents that answer a question, and what their check lets through.
    ///
    /// Asks a running service that has the documents (`okt eval retrieval DIR --load-only`); with `--check` it needs none. Exit
    /// code 1 if more than 1 % of the swapped sentences pass.
    Ask(ask::AskArgs),
    /// Pairs of sentences: how many that differ the rule of duplicates merges, and how many that say the same.
    Dedup(FolderArgs),
    /// Facts of texts (*.md, *.txt), by the model that is configured: how many, and how good by the checks of the job.
    ///
    /// Asks the model of `providers.decomposition.fact_extraction`, or the built-in extraction. No database is needed, and
    /// nothing is kept. A model with a price is paid for each call; no budget is asked.
    Facts(FactsArgs),
    /// Main content of web pages: precision, recall, F1 and the ten worst pages.
    Html(FolderArgs),
    /// Text, reading order, authors and dates of papers in PDF.
    Pdf(FolderArgs),
    /// Claims with the texts that somebody has judged them by: precision and recall of what supports and contradicts them.
    ///
    /// Without `--url` and `--model` the built-in rule judges. The folder is `SciFact`, FEVER-Symmetric or FM2, told by its files.
    Posture(posture::PostureArgs),
    /// Questions with known documents: how well a running service finds these, by mode of search.
    ///
    /// Uploads the documents into a repository of their own, which is created if it does not exist, waits for their jobs,
    /// and asks. The folder is `scifact`, `2wiki`, `hotpotqa`, `musique` or `multihop-rag`, told by its files.
    Retrieval(retrieval::RetrievalArgs),
}

#[derive(Args)]
struct FolderArgs {
    /// The folder of the data set.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

#[derive(Args)]
pub struct FactsArgs {
    /// The folder of the texts.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Asks with the prompt in this file instead of the built-in one.
    #[arg(long, value_name = "FILE")]
    prompt: Option<PathBuf>,
    /// Prints each fact, with why it does not stand alone.
    #[arg(long)]
    list: bool,
}

/// Runs a subcommand. `loaded` is asked only by those that need the configuration.
pub fn run(args: &EvalArgs, loaded: impl FnOnce() -> anyhow::Result<Loaded>) -> anyhow::Result<ExitCode> {
    let table = match &args.command {
        EvalCommand::Ask(args) => {
            let (table, code) = ask::measure(args)?;
            std::io::stdout().write_all(table.as_bytes())?;
            return Ok(code);
        }
        EvalCommand::Dedup(args) => dedup::measure(&args.folder)?,
        EvalCommand::Facts(args) => facts::measure(args, &loaded()?)?,
        EvalCommand::Html(args) => html::measure(&args.folder)?,
        EvalCommand::Pdf(args) => pdf::measure(&args.folder, &loaded()?)?,
        EvalCommand::Posture(args) => posture::measure(args, loaded)?,
        EvalCommand::Retrieval(args) => retrieval::measure(args)?,
    };
    std::io::stdout().write_all(table.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
