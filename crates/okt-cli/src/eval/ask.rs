//! `okt eval ask DIR`: what answers are made from, and what their check lets through.
//!
//! Without `--check` the folder is one that `okt eval retrieval` reads, whose documents are in the repository already
//! (`okt eval retrieval DIR --load-only`): each question is asked, and the evidence that the answer was given is compared with the
//! documents that answer it. No model writes anything.
//!
//! With `--check` the folder is one that `okt eval posture` reads: claims are held against their texts as sentences of an answer are
//! against what they cite, by the rules alone; and sentences in which a number, a name or a "not" was swapped against the sentences
//! that they were made from. What passes of these is a false support.

mod check;
mod swaps;

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Args;
use okt_search::{mean, recall_at};
use serde_json::{Value, json};

use super::retrieval::ask::{Found, Known, Source};
use super::retrieval::load;
use super::retrieval::set::{self, Question, Set};
use crate::client::{Client, given};

/// As long as a question may be.
const LONGEST: usize = 2_000;
const PATIENCE: Duration = Duration::from_mins(2);

#[derive(Args)]
pub struct AskArgs {
    /// The folder of the data set.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Measures the check instead, on claims that somebody has judged. Needs no service.
    #[arg(long)]
    check: bool,
    /// With `--check`: prints what passed and should not have.
    #[arg(long, requires = "check")]
    list: bool,
    /// The address of the service, such as `http://localhost:8080`; `OKT_URL` if it is not given.
    #[arg(long)]
    url: Option<String>,
    /// An API key that may read facts and sources; `OKT_API_KEY` if it is not given.
    #[arg(long)]
    key: Option<String>,
    /// The repository of the documents; `eval-` and the name of the set if it is not given.
    #[arg(long, value_name = "SLUG")]
    repository: Option<String>,
    /// At most so many questions or claims, for a trial: the figures mean nothing then.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
}

/// The table, and whether the check let through no more than it may.
pub fn measure(args: &AskArgs) -> anyhow::Result<(String, ExitCode)> {
    if args.check {
        return check::measure(&args.folder, args.limit, args.list);
    }
    let mut set = set::read(&args.folder)?;
    if let Some(most) = args.limit {
        set.questions.truncate(usize::try_from(most)?);
    }
    let url = given(args.url.as_deref(), "OKT_URL").context("name the service by --url or OKT_URL")?;
    let key = given(args.key.as_deref(), "OKT_API_KEY").context("give an API key by --key or OKT_API_KEY")?;
    let repository = args.repository.clone().unwrap_or_else(|| format!("eval-{}", set.name));
    let client = Client::new(&url, &key, repository)?;
    let runtime = tokio::runtime::Runtime::new().context("can't start the runtime")?;
    Ok((runtime.block_on(evidence(&client, &set))?, ExitCode::SUCCESS))
}

/// What one question was given.
struct Given {
    found: Found,
    tokens: u64,
    took: Duration,
}

async fn evidence(client: &Client, set: &Set) -> anyhow::Result<String> {
    let known = Known::of(set, &load::sources(client).await?)?;
    let mut all = Vec::new();
    for question in &set.questions {
        all.push(ask(client, set, &known, question).await.with_context(|| question.text.clone())?);
    }
    Ok(table(set, &known, &all))
}

async fn ask(client: &Client, set: &Set, known: &Known, question: &Question) -> anyhow::Result<Given> {
    let text: String = question.text.chars().take(LONGEST).collect();
    let begun = Instant::now();
    let mut answer = client.post("/ask", &json!({ "question": text, "mode": "extractive" })).await?.body;
    if let Some(id) = answer["answer_id"].as_str().map(str::to_owned) {
        let path = format!("/answers/{id}");
        loop {
            answer = client.get(&path, &[]).await?.body;
            if answer["status"] != "running" {
                break;
            }
            if begun.elapsed() > PATIENCE {
                bail!("the answer was not written within {} s", PATIENCE.as_secs());
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
    let took = begun.elapsed();
    let facts = answer["facts"].as_array().context("the answer has no facts")?;
    let rows: Vec<Value> = facts
        .iter()
        .map(|fact| {
            json!({
                "type": "facts", "text": fact["text"], "title": fact["source"]["title"],
                "source_ids": [fact["source"]["id"]],
            })
        })
        .collect();
    let mut found = Found::default();
    found.take(set, known, &json!({ "data": rows }))?;
    Ok(Given { found, tokens: facts.iter().map(tokens).sum(), took })
}

/// As a model would be shown it.
fn tokens(fact: &Value) -> u64 {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (own, quote) = (text(&fact["text"]), text(&fact["quote"]));
    let quote = if quote == own { String::new() } else { quote };
    okt_extract::estimate(&format!("[kqzb] {own} — {quote} ({}, 2000)", text(&fact["source"]["title"])))
}

fn table(set: &Set, known: &Known, all: &[Given]) -> String {
    let number = |(rank, source): (usize, &Source)| match source {
        Source::Document(at) => *at,
        Source::Other(..) => usize::MAX - rank,
    };
    let recalls = |k: usize| -> Vec<f64> {
        let pairs = set.questions.iter().zip(all);
        pairs
            .map(|(question, given)| {
                let ranked: Vec<usize> = given.found.sources.iter().enumerate().map(number).collect();
                let gold: HashSet<usize> = question.gold.iter().copied().collect();
                recall_at(&ranked, &gold, k)
            })
            .collect()
    };
    let in_twenty = recalls(20);
    let complete: Vec<f64> = in_twenty.iter().map(|recall| f64::from(u8::from(*recall >= 1.0))).collect();
    let mut tokens: Vec<u64> = all.iter().map(|given| given.tokens).collect();
    let mut times: Vec<Duration> = all.iter().map(|given| given.took).collect();
    tokens.sort_unstable();
    times.sort_unstable();
    let at = |length: usize, percent: usize| (length * percent).div_ceil(100).saturating_sub(1);
    let token = |percent| tokens.get(at(tokens.len(), percent)).copied().unwrap_or_default();
    let time =
        |percent| times.get(at(times.len(), percent)).copied().unwrap_or_default().as_secs_f64() * 1000.0;
    let mut out = String::new();
    let _ = writeln!(out, "{}: {} questions, the evidence of extractive answers", set.title, all.len());
    if known.missing > 0 {
        let _ =
            writeln!(out, "{} texts are not processed in the repository and can't be found", known.missing);
    }
    for k in [2, 5, 10, 20] {
        let _ = writeln!(out, "  recall@{k:<24} {:.4}", mean(&recalls(k)));
    }
    let _ = writeln!(out, "  all documents in 20             {:.4}", mean(&complete));
    let _ = writeln!(out, "  tokens of the evidence, p50     {}", token(50));
    let _ = writeln!(out, "  tokens of the evidence, p95     {}", token(95));
    let _ = writeln!(out, "  time of the answer, p50 (ms)    {:.0}", time(50));
    let _ = writeln!(out, "  time of the answer, p95 (ms)    {:.0}", time(95));
    out
}
