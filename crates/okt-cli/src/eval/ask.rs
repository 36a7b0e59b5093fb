//! `okt eval ask DIR`: what answers are made from, and what their check lets through.
//!
//! Without `--check` the folder is one that `okt eval retrieval` reads, whose documents are in the repository already
//! (`okt eval retrieval DIR --load-only`): each question is asked, and the evidence that the answer was given is compared with the
//! documents that answer it, and with what `deep` search finds. No model writes anything but with `--model`: then what became of its
//! sentences is counted, and what they cost.
//!
//! With `--check` the folder is one that `okt eval posture` reads: claims are held against their texts as sentences of an answer are
//! against what they cite, by the rules alone; and sentences in which a number, a name or a "not" was swapped against the sentences
//! that they were made from. What passes of these is a false support.

mod check;
mod swaps;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Args;
use okt_search::mean;
use serde_json::{Value, json};

use super::retrieval::ask::{self as search, Found, Known, Source};
use super::retrieval::load;
use super::retrieval::report::{self, Run};
use super::retrieval::set::{self, Question, Set};
use crate::client::{Client, given};

/// As long as a question may be.
const LONGEST: usize = 2_000;
const PATIENCE: Duration = Duration::from_mins(10);
/// What evidence is made of.
const TYPES: &str = "facts,passages";

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
    /// Has a model write the answers, which is paid for, and says what became of its sentences.
    #[arg(long, conflicts_with = "check")]
    model: bool,
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
    Ok((runtime.block_on(evidence(&client, &set, args.model))?, ExitCode::SUCCESS))
}

/// What one question was given.
struct Given {
    answer: Value,
    tokens: u64,
}

async fn evidence(client: &Client, set: &Set, by_model: bool) -> anyhow::Result<String> {
    let known = Known::of(set, &load::sources(client).await?)?;
    let (mut runs, mut all) = ([Run::new("ask"), Run::new("deep")], Vec::new());
    for question in &set.questions {
        let asked = ask(client, set, &known, question, by_model).await;
        let (found, given) = asked.with_context(|| question.text.clone())?;
        let deep = search::ask(client, set, &known, question, "deep", TYPES).await;
        runs[0].found.push(found);
        runs[1].found.push(deep.with_context(|| question.text.clone())?);
        all.push(given);
    }
    let mut out = report::table(set, &known, TYPES, &runs, ("deep", Some("ask")));
    out += &of_evidence(set, &runs[0], &all);
    if by_model {
        out += &of_models(&all);
    }
    Ok(out)
}

async fn ask(
    client: &Client,
    set: &Set,
    known: &Known,
    question: &Question,
    by_model: bool,
) -> anyhow::Result<(Found, Given)> {
    let text: String = question.text.chars().take(LONGEST).collect();
    let mode = if by_model { "model" } else { "extractive" };
    let begun = Instant::now();
    let mut answer = client.post("/ask", &json!({ "question": text, "mode": mode })).await?.body;
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
    let mut found = Found { took: begun.elapsed(), mode: "ask".to_owned(), ..Found::default() };
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
    found.take(set, known, &json!({ "data": rows }))?;
    let tokens = facts.iter().map(tokens).sum();
    Ok((found, Given { answer, tokens }))
}

/// As a model would be shown it.
fn tokens(fact: &Value) -> u64 {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (own, quote) = (text(&fact["text"]), text(&fact["quote"]));
    let quote = if quote == own { String::new() } else { quote };
    okt_extract::estimate(&format!("[kqzb] {own} — {quote} ({}, 2000)", text(&fact["source"]["title"])))
}

/// What a model has to work with.
fn of_evidence(set: &Set, run: &Run, all: &[Given]) -> String {
    let complete: Vec<f64> = set
        .questions
        .iter()
        .zip(&run.found)
        .map(|(question, found)| {
            let has = |gold: &usize| found.sources.iter().take(20).any(|one| *one == Source::Document(*gold));
            f64::from(u8::from(question.gold.iter().all(has)))
        })
        .collect();
    let mut tokens: Vec<u64> = all.iter().map(|given| given.tokens).collect();
    tokens.sort_unstable();
    let token = |percent: usize| {
        let at = (tokens.len() * percent).div_ceil(100).saturating_sub(1);
        tokens.get(at).copied().unwrap_or_default()
    };
    let mut out = String::new();
    let _ = writeln!(out, "\nall documents in 20: {:.4}", mean(&complete));
    let _ = writeln!(out, "tokens of the evidence: p50 {}, p95 {}", token(50), token(95));
    out
}

/// What became of what models wrote.
fn of_models(all: &[Given]) -> String {
    let (mut said, mut usd) = (Vec::new(), 0.0);
    for Given { answer, .. } in all {
        said.push(("answers", &answer["status"]));
        said.extend(list(answer, "sentences").iter().map(|sentence| ("sentences", &sentence["verdict"])));
        said.extend(list(answer, "dropped").iter().map(|dropped| ("dropped", &dropped["code"])));
        usd += answer["cost"]["usd"].as_f64().unwrap_or_default();
    }
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (of, word) in said {
        *counts.entry((of, word.as_str().unwrap_or("none"))).or_default() += 1;
    }
    let mut out = String::new();
    for ((of, word), count) in counts {
        let _ = writeln!(out, "{of:<10} {word:<14} {count:>6}");
    }
    let _ = writeln!(out, "US dollars {usd:.4}");
    out
}

fn list<'v>(answer: &'v Value, name: &str) -> &'v [Value] {
    answer[name].as_array().map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_became_of_answers_is_counted() {
        let answer = |status: &str, verdicts: &[&str], dropped: &[&str], usd: f64| Given {
            answer: json!({
                "status": status, "cost": { "usd": usd },
                "sentences": verdicts.iter().map(|verdict| json!({ "verdict": verdict })).collect::<Vec<_>>(),
                "dropped": dropped.iter().map(|code| json!({ "code": code })).collect::<Vec<_>>(),
            }),
            tokens: 0,
        };
        let all = [
            answer("answered", &["supported", "supported"], &[], 0.001),
            answer("partly", &["unverified"], &["number", "number"], 0.0005),
        ];
        let lines: Vec<String> = of_models(&all)
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(
            lines,
            [
                "answers answered 1",
                "answers partly 1",
                "dropped number 2",
                "sentences supported 2",
                "sentences unverified 1",
                "US dollars 0.0015",
            ]
        );
    }
}
