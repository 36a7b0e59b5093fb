//! `okt eval retrieval DIR`.
//!
//! Talks to a running service as any client does: uploads the documents of a data set as text files with their titles, waits
//! until facts, vectors and concepts of all are there, and asks each question in each mode of search. What is found counts for
//! the source that it is from, once, in the order of the answer; so facts, passages and sources are measured alike. Questions
//! are asked one after the other, the modes in turns, and the time of an answer is that of its first page.

pub(super) mod ask;
pub(super) mod load;
pub(super) mod report;
pub(super) mod set;

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, ValueEnum};

use self::ask::Known;
use self::report::Run;
use self::set::{Measure, Set};
use crate::client::{Client, given};

#[derive(Args)]
pub struct RetrievalArgs {
    /// The folder of the data set.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// The address of the service, such as `http://localhost:8080`; `OKT_URL` if it is not given.
    #[arg(long)]
    url: Option<String>,
    /// An API key that may create repositories and write to them; `OKT_API_KEY` if it is not given.
    #[arg(long)]
    key: Option<String>,
    /// The repository of the documents; `eval-` and the name of the set if it is not given.
    #[arg(long, value_name = "SLUG")]
    repository: Option<String>,
    /// At most so many documents and so many questions, for a trial: the figures mean nothing then.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Uploads the documents and asks nothing.
    #[arg(long, conflicts_with = "ask_only")]
    load_only: bool,
    /// Asks about what an earlier run uploaded.
    #[arg(long)]
    ask_only: bool,
    /// Modes of search, separated by commas. The others are compared with lexical.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "lexical,vector,hybrid,deep")]
    modes: Vec<Mode>,
    /// Asks for passages beside facts. Sets of which one document answers a question are asked for sources, too, with and
    /// without it.
    #[arg(long)]
    passages: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    Lexical,
    Vector,
    Hybrid,
    Deep,
}

impl Mode {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Lexical => "lexical",
            Self::Vector => "vector",
            Self::Hybrid => "hybrid",
            Self::Deep => "deep",
        }
    }
}

pub fn measure(args: &RetrievalArgs) -> anyhow::Result<String> {
    let mut set = set::read(&args.folder)?;
    if let Some(most) = args.limit {
        set.limit(usize::try_from(most)?);
    }
    let url = given(args.url.as_deref(), "OKT_URL").context("name the service by --url or OKT_URL")?;
    let key = given(args.key.as_deref(), "OKT_API_KEY").context("give an API key by --key or OKT_API_KEY")?;
    let repository = args.repository.clone().unwrap_or_else(|| format!("eval-{}", set.name));
    let client = Client::new(&url, &key, repository)?;
    let runtime = tokio::runtime::Runtime::new().context("can't start the runtime")?;
    runtime.block_on(async {
        if !args.ask_only {
            load::load(&client, &set).await?;
        }
        if args.load_only {
            return Ok(String::new());
        }
        asked(&client, &set, args).await
    })
}

async fn asked(client: &Client, set: &Set, args: &RetrievalArgs) -> anyhow::Result<String> {
    let types = match (set.measure, args.passages) {
        (Measure::Ranking, _) => "facts,passages,sources",
        (_, true) => "facts,passages",
        (_, false) => "facts",
    };
    let known = Known::of(set, &load::sources(client).await?)?;
    let mut modes = args.modes.clone();
    let mut seen = Vec::new();
    modes.retain(|mode| {
        !seen.contains(mode) && {
            seen.push(*mode);
            true
        }
    });
    let mut runs: Vec<Run> = modes.iter().map(|mode| Run::new(mode.as_str())).collect();
    for (number, question) in set.questions.iter().enumerate() {
        // Whoever is first warms what the others find warm.
        for turn in 0..runs.len() {
            let at = (number + turn) % runs.len();
            let Some(run) = runs.get_mut(at) else { continue };
            let found = ask::ask(client, set, &known, question, run.mode, types).await;
            run.found.push(found.with_context(|| format!("{} search: {}", run.mode, question.text))?);
        }
        if (number + 1) % 50 == 0 {
            say(&format!("{} of {} questions asked", number + 1, set.questions.len()));
        }
    }
    Ok(report::table(set, &known, types, &runs, ("lexical", None)))
}

/// Progress, for who waits.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
