//! `okt report check FILE`: for people at a terminal, and for a build that must not publish what facts contradict.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args, Subcommand, ValueEnum};
use okt_model::is_hidden;
use serde_json::{Value, json};

use crate::client::Client;
use crate::client::remote::{Usage, connect, inside, runtime};

/// A text is cut at the next empty line after so many claims, or so many sentences that are none; and anywhere after so many claims.
/// The service takes 200 claims and 2,000 others.
const CLAIMS_AT_ONCE: usize = 150;
const CLAIMS_AT_MOST: usize = 190;
const OTHERS_AT_ONCE: usize = 1_000;

#[derive(Args)]
pub struct ReportArgs {
    #[command(subcommand)]
    command: ReportCommand,
}

#[derive(Subcommand)]
enum ReportCommand {
    /// Check each sentence of a Markdown file against the facts of a repository. Nothing is kept.
    ///
    /// Exit codes: 0 if the check passed, 1 if --fail-on was met, 2 for a wrong command line, 3 if the service could not be asked, or
    /// could not compare or judge everything.
    Check(CheckArgs),
}

#[derive(Args)]
struct CheckArgs {
    /// The file; `-` for standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The slug or id of the repository [default: `OKT_REPOSITORY`, that of `okt repo use`, or the only one].
    #[arg(long, short, value_name = "SLUG")]
    repository: Option<String>,
    /// The address of the service [default: `OKT_URL`, that of `okt login`, or `http://localhost:8080`].
    #[arg(long)]
    url: Option<String>,
    /// An API key with `fact:read` [default: `OKT_API_KEY`, or who is signed in by `okt login`].
    #[arg(long)]
    key: Option<String>,
    /// What makes the check fail: a contradicted sentence, or also one that no fact supports.
    #[arg(long, value_enum, default_value = "contradicts")]
    fail_on: FailOn,
    /// Print the answer of the service as JSON, a line for each sentence.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FailOn {
    Contradicts,
    Unsupported,
    Never,
}

pub fn main(args: &ReportArgs) -> ExitCode {
    let ReportCommand::Check(args) = &args.command;
    let said = |error: anyhow::Error, code: u8| {
        let _ = writeln!(std::io::stderr(), "okt: {error:#}");
        ExitCode::from(code)
    };
    let (text, client) = match asked(args) {
        Ok(asked) => asked,
        Err(error) => return said(error, 2),
    };
    match check(args, &text, client) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) if error.is::<Usage>() => said(error, 2),
        Err(error) => said(error, 3),
    }
}

/// What the command line names: the text, and who is asked.
fn asked(args: &CheckArgs) -> anyhow::Result<(String, Client)> {
    let client = connect(args.url.as_deref(), args.key.as_deref(), String::new())?;
    Ok((read(&args.file)?, client))
}

fn check(args: &CheckArgs, text: &str, client: Client) -> anyhow::Result<bool> {
    let runtime = runtime()?;
    let client = runtime.block_on(inside(client, args.repository.as_deref()))?;
    let mut sentences = Vec::new();
    for piece in pieces(text) {
        let mut answer = runtime.block_on(client.post("/check", &json!({ "text": piece.text })))?;
        if let Some(why) = answer.body["degraded_reason"].as_str() {
            let what = match why {
                "words_slow" => "not all words were compared",
                "model_away" => {
                    "rules judged in place of the model, which did not answer or has no budget left"
                }
                _ => "only words were compared",
            };
            // What passes today must not be what would have failed with everything at hand.
            let may_differ = matches!(why, "vectors_away" | "budget" | "words_slow" | "model_away");
            if args.fail_on != FailOn::Never && may_differ {
                bail!("{what} ({why}); try again, or take --fail-on never to see what was found");
            }
            let _ = writeln!(std::io::stderr(), "okt: {what} ({why})");
        }
        if let Value::Array(mut more) = answer.body["sentences"].take() {
            for sentence in &mut more {
                piece.place(sentence);
            }
            sentences.extend(more);
        }
    }
    show(&sentences, args.json)?;
    if by_rules(&sentences) {
        let _ = writeln!(std::io::stderr(), "okt: judged by rules, not by a model");
    }
    let any = |state: &str| sentences.iter().any(|sentence| sentence["state"] == state);
    Ok(match args.fail_on {
        FailOn::Contradicts => !any("contradicted"),
        FailOn::Unsupported => !any("contradicted") && !any("unsupported"),
        FailOn::Never => true,
    })
}

/// Whether no model was asked how any fact stands to any sentence.
fn by_rules(sentences: &[Value]) -> bool {
    let mut facts = sentences.iter().filter_map(|sentence| sentence["facts"].as_array()).flatten().peekable();
    facts.peek().is_some() && facts.all(|fact| fact["judged_by"] == okt_model::POSTURE_MODEL)
}

fn read(file: &Path) -> anyhow::Result<String> {
    if file == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("can't read standard input")?;
        return Ok(text);
    }
    std::fs::read_to_string(file).with_context(|| format!("can't read {}", file.display()))
}

/// A part of a text, and where it begins: code points and sentences.
struct Piece {
    text: String,
    from: u64,
    sentences: u64,
}

/// A text in pieces of not too many claims, cut at empty lines between two sentences: never within code or a table. Where there is no
/// empty line for long, as in a long list, it is cut before an item or a sentence.
fn pieces(text: &str) -> Vec<Piece> {
    let chars: Vec<char> = text.chars().collect();
    let sentences = okt_parse::report_sentences(text, None);
    let (mut cuts, mut claims, mut others) = (vec![(0, 0)], 0, 0);
    for (at, two) in sentences.windows(2).enumerate() {
        let (one, next) = (&two[0], &two[1]);
        claims += usize::from(one.is_claim);
        others += usize::from(!one.is_claim);
        if claims < CLAIMS_AT_ONCE && others < OTHERS_AT_ONCE {
            continue;
        }
        let from = one.end.min(next.start);
        let gap = &chars[from..next.start];
        let cut = after_empty_line(gap).map(|cut| from + cut).or_else(|| {
            let may = claims >= CLAIMS_AT_MOST && one.is_claim && next.is_claim;
            may.then(|| within_block(gap)).flatten().map(|cut| from + cut)
        });
        if let Some(cut) = cut {
            cuts.push((cut, at + 1));
            (claims, others) = (0, 0);
        }
    }
    let ends = cuts.iter().skip(1).map(|(at, _)| *at).chain([chars.len()]);
    let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let piece = |((from, sentences), end): (&(usize, usize), usize)| Piece {
        text: chars[*from..end].iter().collect(),
        from: count(*from),
        sentences: count(*sentences),
    };
    cuts.iter().zip(ends).map(piece).collect()
}

/// Behind the last empty line of what stands between two sentences.
fn after_empty_line(gap: &[char]) -> Option<usize> {
    let breaks: Vec<usize> = (0..gap.len()).filter(|at| gap[*at] == '\n').collect();
    let is_empty = |two: &[usize]| gap[two[0]..two[1]].iter().all(|c| c.is_whitespace());
    breaks.windows(2).rev().find(|two| is_empty(two)).map(|two| two[1] + 1)
}

/// Where a block can be cut so that both parts are read as before: between two sentences of one line, or before an item that is not
/// indented.
fn within_block(gap: &[char]) -> Option<usize> {
    match gap.iter().rposition(|c| *c == '\n') {
        None => Some(gap.len()),
        Some(end) => gap.get(end + 1).is_none_or(|first| !first.is_whitespace()).then_some(end + 1),
    }
}

impl Piece {
    /// The places of a sentence of a piece, as places of the whole text.
    fn place(&self, sentence: &mut Value) {
        for (name, more) in [("start", self.from), ("end", self.from), ("sentence_index", self.sentences)] {
            if let Some(at) = sentence[name].as_u64() {
                sentence[name] = json!(at + more);
            }
        }
    }
}

/// What facts say against a sentence stands below it, and what they say for it.
fn show(sentences: &[Value], json: bool) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    for sentence in sentences {
        if json {
            writeln!(out, "{}", escaped(&sentence.to_string()))?;
            continue;
        }
        let state = sentence["state"].as_str().unwrap_or_default();
        if state == "not_a_claim" {
            continue;
        }
        let text = sentence["text"].as_str().unwrap_or_default();
        writeln!(out, "{}", clean(&format!("{state:<13} {text}")))?;
        for fact in sentence["facts"].as_array().into_iter().flatten() {
            let posture = fact["posture"].as_str().unwrap_or_default();
            if posture != "related" {
                let source = &fact["sources"][0];
                let from = source["title"].as_str().or(source["url"].as_str()).unwrap_or("unknown source");
                let retracted = if fact["retracted"] == true { ", retracted" } else { "" };
                let text = fact["fact_text"].as_str().unwrap_or_default();
                writeln!(out, "{}", clean(&format!("  {posture}: {text} ({from}{retracted})")))?;
            }
        }
    }
    Ok(())
}

/// What GitHub Actions takes for a command anywhere in a line; `::` is one at the beginning.
const OLD_COMMAND: &str = "##[";

/// A line whose words, which strangers wrote, steer neither a terminal nor a build that reads what is printed.
fn clean(line: &str) -> String {
    let line = line.replace(is_hidden, " ").replace(OLD_COMMAND, "## [");
    if line.trim_start().starts_with("::") { line.replacen("::", ": :", 1) } else { line }
}

/// JSON that says the same, in which nothing steers or hides.
fn escaped(json: &str) -> String {
    let mut line = String::with_capacity(json.len());
    for c in json.replace(OLD_COMMAND, "##\\u005b").chars() {
        if is_hidden(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(line, "\\u{unit:04x}");
            }
        } else {
            line.push(c);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces are read as the whole is, and each has not too many claims.
    fn cut(text: &str) -> usize {
        let whole = okt_parse::report_sentences(text, None);
        let pieces = pieces(text);
        assert_eq!(pieces.iter().map(|piece| piece.text.as_str()).collect::<String>(), text);
        let mut all = Vec::new();
        for piece in &pieces {
            let sentences = okt_parse::report_sentences(&piece.text, None);
            let claims = sentences.iter().filter(|sentence| sentence.is_claim).count();
            assert!(claims <= 200, "{claims}");
            for (at, sentence) in sentences.into_iter().enumerate() {
                let mut row = json!({"start": sentence.start, "end": sentence.end, "sentence_index": at});
                piece.place(&mut row);
                all.push((row["start"].as_u64(), row["sentence_index"].as_u64(), sentence.is_claim));
            }
        }
        let number = |at: usize| u64::try_from(at).ok();
        let wanted: Vec<_> = whole
            .iter()
            .enumerate()
            .map(|(at, sentence)| (number(sentence.start), number(at), sentence.is_claim))
            .collect();
        assert_eq!(all, wanted);
        pieces.len()
    }

    #[test]
    fn what_strangers_wrote_steers_nothing() {
        assert_eq!(
            clean("supported     Bees.\u{1b}[2J\r\n::error::x"),
            "supported     Bees. [2J  ::error::x"
        );
        assert_eq!(clean("  ::set-output name=a::b"), "  : :set-output name=a::b");
        assert_eq!(clean("  supports: a ##[add-mask]b"), "  supports: a ## [add-mask]b");
        assert_eq!(clean("a\u{9b}2J\u{2028}b\u{202e}c"), "a 2J b c");
        let text = json!({"text": "a\u{9b}2J\u{2028}b\u{202e}c \u{e0041} ##[x] Bl\u{fc}te\n"});
        let line = escaped(&text.to_string());
        assert!(!line.contains(is_hidden) && !line.contains(OLD_COMMAND), "{line}");
        assert!(
            line.contains("a\\u009b2J\\u2028b\\u202ec \\udb40\\udc41 ##\\u005bx] Bl\u{fc}te\\n"),
            "{line}"
        );
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), text);
    }

    #[test]
    fn a_long_text_is_cut_and_nothing_is_lost() {
        let paragraph = "Honey bees fly to the flowers in the valley. They come back in the evening.\n\n";
        let code = format!("```\n{}```\n\n", "let bees = 1;\n\n".repeat(300));
        let text = paragraph.repeat(200) + &code + &paragraph.repeat(100);
        assert!(cut(&text) >= 4);
        assert!(cut(&text.replace('\n', "\r\n")) >= 4, "as some editors end lines");
        assert!(cut(&"Honey bees fly to the flowers. ".repeat(500)) >= 2, "one paragraph");
        let item = "- Honey bees fly to the flowers in the valley.\n  - They come back in the evening.\n";
        assert!(cut(&item.repeat(200)) >= 2, "one list");
        let row = "| bees | flowers |\n";
        let table = format!("{row}|---|---|\n{}\n{paragraph}", row.repeat(900));
        assert_eq!(cut(&table), 1, "rows claim nothing");
    }
}
