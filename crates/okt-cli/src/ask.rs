//! `okt ask QUESTION`: an answer from the facts of a repository, for people at a terminal and for scripts.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::client::Client;
use crate::client::remote::{Usage, connect, inside, runtime};

const POLL: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_mins(10);

#[derive(Args)]
pub struct AskArgs {
    /// What you want to know.
    #[arg(value_name = "QUESTION")]
    question: String,
    /// The slug or id of the repository [default: `OKT_REPOSITORY`, that of `okt repo use`, or the only one].
    #[arg(long, short, value_name = "SLUG")]
    repository: Option<String>,
    /// The address of the service [default: `OKT_URL`, that of `okt login`, or `http://localhost:8080`].
    #[arg(long)]
    url: Option<String>,
    /// An API key with `fact:read` [default: `OKT_API_KEY`, or who is signed in by `okt login`].
    #[arg(long)]
    key: Option<String>,
    /// Whether a model writes the answer.
    #[arg(long, value_enum, default_value = "auto")]
    mode: Mode,
    /// The most that the answer may cost, in US dollars.
    #[arg(long, value_name = "USD")]
    max_cost: Option<f64>,
    /// Print the answer of the service as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    Auto,
    Extractive,
    Model,
}

impl Mode {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Extractive => "extractive",
            Self::Model => "model",
        }
    }
}

/// Exit codes: 0 with an answer, 1 where nothing is known, 2 for a wrong command line, 3 if the service could not be asked.
pub fn main(args: &AskArgs) -> ExitCode {
    let said = |error: anyhow::Error, code: u8| {
        let _ = writeln!(std::io::stderr(), "okt: {error:#}");
        ExitCode::from(code)
    };
    let client = match connect(args.url.as_deref(), args.key.as_deref(), String::new()) {
        Ok(client) => client,
        Err(error) => return said(error, 2),
    };
    match ask(args, client) {
        Ok(answer) => {
            let text = if args.json { format!("{answer}\n") } else { shown(&answer) };
            if let Err(error) = std::io::stdout().write_all(text.as_bytes()) {
                return said(error.into(), 3);
            }
            let known = answer["sentences"].as_array().is_some_and(|all| !all.is_empty());
            if known { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) if error.is::<Usage>() => said(error, 2),
        Err(error) => said(error, 3),
    }
}

fn ask(args: &AskArgs, client: Client) -> anyhow::Result<Value> {
    runtime()?.block_on(async {
        let client = inside(client, args.repository.as_deref()).await?;
        let mut question = json!({ "question": args.question, "mode": args.mode.as_str() });
        if let Some(usd) = args.max_cost {
            question["max_cost_usd"] = json!(usd);
        }
        let begun = Instant::now();
        let mut answer = client.post("/ask", &question).await?.body;
        // It takes longer than a request may.
        if let Some(id) = answer["answer_id"].as_str().map(str::to_owned) {
            loop {
                tokio::time::sleep(POLL).await;
                answer = client.get(&format!("/answers/{id}"), &[]).await?.body;
                if answer["status"] != "running" {
                    break;
                }
                if begun.elapsed() > PATIENCE {
                    bail!("the answer {id} is still being written; look at it later");
                }
            }
        }
        if answer["status"] == "failed" {
            bail!("{}", answer["problem"]["detail"].as_str().unwrap_or("the answer failed"));
        }
        Ok(answer)
    })
}

/// Sentences with numbers, and what the numbers stand for.
fn shown(answer: &Value) -> String {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| clean(value.as_str().unwrap_or_default());
    let (facts, mut out) = (list(&answer["facts"]), String::new());
    if answer["mode"] == "extractive" && answer["extractive_reason"] != "asked" {
        let _ = writeln!(
            out,
            "No model has written this ({}): the facts nearest to your question.\n",
            text(&answer["extractive_reason"])
        );
    }
    let mut cited: Vec<String> = Vec::new();
    for sentence in list(&answer["sentences"]) {
        let keys = list(&sentence["keys"]);
        let numbers = keys.iter().map(|key| {
            let key = text(key);
            let at = cited.iter().position(|known| *known == key).unwrap_or_else(|| {
                cited.push(key);
                cited.len() - 1
            });
            format!("[{}]", at + 1)
        });
        let numbers: String = numbers.collect();
        let verdict = match sentence["verdict"].as_str() {
            Some("supported") | None => String::new(),
            Some(other) => format!(" ({other})"),
        };
        let _ = writeln!(out, "{} {numbers}{verdict}", text(&sentence["text"]));
    }
    if cited.is_empty() {
        out.push_str("Nothing is known here that answers the question.\n");
    }
    if let Some(missing) = answer["missing"].as_str().filter(|missing| !missing.is_empty()) {
        let _ = writeln!(out, "\nMissing: {}", clean(missing));
    }
    for one in list(&answer["disagreeing"]) {
        for fact in list(&one["facts"]) {
            let _ = writeln!(out, "\nDisagrees: {}", text(&fact["text"]));
        }
    }
    if !cited.is_empty() {
        out.push('\n');
    }
    for (at, key) in cited.iter().enumerate() {
        let Some(fact) = facts.iter().find(|fact| fact["key"] == key.as_str()) else { continue };
        let title = text(&fact["source"]["title"]);
        let page = fact["source"]["page"].as_i64().map(|page| format!(", page {page}")).unwrap_or_default();
        let quote = fact["quote"].as_str().map_or_else(|| text(&fact["text"]), clean);
        let _ = writeln!(out, "[{}] \"{quote}\" — {title}{page}", at + 1);
    }
    let dropped = list(&answer["dropped"]).len();
    if dropped > 0 {
        let _ = writeln!(out, "\n{dropped} sentences had no evidence and were left out.");
    }
    out
}

/// What a document says must not steer a terminal.
fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_shown_with_what_it_rests_on() {
        let answer = json!({
            "mode": "model", "extractive_reason": null, "missing": "when",
            "sentences": [
                { "text": "Bees dance.\u{1b}[2J", "keys": ["kqzb"], "verdict": "supported" },
                { "text": "They tell where food is.", "keys": ["wxyz", "kqzb"], "verdict": "unverified" },
            ],
            "facts": [
                { "key": "wxyz", "text": "Bees tell where food is.", "quote": null, "source": { "title": "Food", "page": null } },
                { "key": "kqzb", "text": "Bees dance.", "quote": "The bees dance.", "source": { "title": "Bees", "page": 3 } },
            ],
            "disagreeing": [{ "index": 0, "facts": [{ "text": "Bees do not dance." }] }],
            "dropped": [{ "text": "x", "code": "number", "reason": "y" }],
        });
        assert_eq!(
            shown(&answer),
            "Bees dance. [2J [1]\nThey tell where food is. [2][1] (unverified)\n\nMissing: when\n\nDisagrees: Bees do not dance.\n\n\
             [1] \"The bees dance.\" — Bees, page 3\n[2] \"Bees tell where food is.\" — Food\n\n1 sentences had no evidence and \
             were left out.\n"
        );
        let nothing =
            shown(&json!({ "mode": "extractive", "extractive_reason": "no_model", "sentences": [] }));
        assert!(nothing.starts_with("No model") && nothing.contains("Nothing is known"), "{nothing}");
    }
}
