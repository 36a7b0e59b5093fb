//! `okt eval posture DIR`.
//!
//! Claims with the texts that somebody has judged them by. The folder is `SciFact` (`corpus.jsonl` and `claims_dev.jsonl`: the
//! sentences of each abstract that a claim cites), or has `fever_symmetric/v0.2_fever_symmetric_test.jsonl` (one sentence) and
//! `fm2_test.jsonl.gz` (the sentences named as evidence), with `dev` and `train` for other parts. Every sentence is held
//! against its claim as a fact against a sentence of a report: by the rule, or by a model as far as it is believed. What is
//! supported or contradicted by some sentence is so by the text; where both are said, the more confident one holds.

mod model;
pub(super) mod set;

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use okt_extract::posture::{self, Judgement};
use okt_model::Posture;

use self::model::Asking;
use self::set::Case;

#[derive(Args)]
pub struct PostureArgs {
    /// The folder of the data set.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Which part of a set; the part that figures are reported for if it is not given.
    #[arg(long, value_enum)]
    part: Option<Part>,
    /// Asks a model that is served by the OpenAI-compatible protocol at this address, up to and including `/v1`.
    #[arg(long, requires = "model")]
    url: Option<url::Url>,
    /// The name of the model at that address.
    #[arg(long, requires = "url", value_name = "NAME")]
    model: Option<String>,
    /// Asks the model with the prompt in this file instead of the built-in one.
    #[arg(long, requires = "model", value_name = "FILE")]
    prompt: Option<PathBuf>,
    /// Only the sentences of each text that share most words with the claim, so many.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    facts: Option<u32>,
    /// So many claims of each set, evenly spaced: the figures are those of a sample.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Prints each judgement that is wrong, the most confident first.
    #[arg(long)]
    list: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    Train,
    Dev,
    Test,
}

impl Part {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Dev => "dev",
            Self::Test => "test",
        }
    }
}

pub fn measure(
    args: &PostureArgs,
    loaded: impl FnOnce() -> anyhow::Result<okt_config::Loaded>,
) -> anyhow::Result<String> {
    let sets = set::read(&args.folder, args.part)?;
    let asking = match (&args.url, &args.model) {
        (Some(url), Some(name)) => Some(Asking::new(&loaded()?, url, name, args.prompt.as_deref())?),
        _ => None,
    };
    let runtime = tokio::runtime::Runtime::new().context("can't start the runtime")?;
    let mut out = String::new();
    for mut set in sets {
        set.sample(args.limit);
        let mut tally = Tally::default();
        for case in &mut set.cases {
            case.nearest(args.facts);
            let judged = match &asking {
                Some(asking) => runtime.block_on(asking.judge(case))?,
                None => {
                    case.facts.iter().map(|fact| posture::rule(&case.claim, fact, None, Some("en"))).collect()
                }
            };
            tally.take(case, &judged);
        }
        let judge = asking.as_ref().map_or(posture::MODEL, Asking::name);
        out += &tally.table(&set.name, judge)?;
        if args.list {
            out += &tally.list()?;
        }
        if let Some(asking) = &asking {
            out += &asking.told();
        }
        out.push('\n');
    }
    Ok(out)
}

/// What was said of the claims of a set.
#[derive(Default)]
struct Tally {
    claims: usize,
    facts: usize,
    /// By what it is, and by what is said: supports, contradicts, neither.
    counts: [[usize; 3]; 3],
    wrong: Vec<(f32, String)>,
}

fn place(posture: Option<Posture>) -> usize {
    match posture {
        Some(Posture::Supports) => 0,
        Some(Posture::Contradicts) => 1,
        Some(Posture::Related) | None => 2,
    }
}

const NAMES: [&str; 3] = ["supports", "contradicts", "neither"];

impl Tally {
    fn take(&mut self, case: &Case, judged: &[Judgement]) {
        let speaks = |judgement: &&Judgement| place(judgement.posture) < 2;
        let said = judged
            .iter()
            .enumerate()
            .filter(|(_, judgement)| speaks(judgement))
            .max_by(|(_, one), (_, other)| one.confidence.total_cmp(&other.confidence));
        let (gold, found) = (place(case.gold), said.map_or(2, |(_, judgement)| place(judgement.posture)));
        self.claims += 1;
        self.facts += case.facts.len();
        self.counts[gold][found] += 1;
        if let Some((at, judgement)) = said.filter(|_| gold != found) {
            let line = format!(
                "  {} as {}, {:.2}\n    {}\n    {}\n",
                NAMES[gold], NAMES[found], judgement.confidence, case.claim, case.facts[at]
            );
            self.wrong.push((judgement.confidence, line));
        }
    }

    fn table(&self, set: &str, judge: &str) -> anyhow::Result<String> {
        let mut out = String::new();
        writeln!(out, "{set}: {} claims, {} sentences, by {judge}", self.claims, self.facts)?;
        writeln!(
            out,
            "  {:<12} {:>6} {:>6} {:>6} {:>10} {:>7} {:>7}",
            "", "gold", "said", "right", "precision", "recall", "F1"
        )?;
        let mut all = (0, 0, 0);
        for (at, name) in NAMES.iter().enumerate().take(2) {
            let gold: usize = self.counts[at].iter().sum();
            let said: usize = self.counts.iter().map(|row| row[at]).sum();
            let right = self.counts[at][at];
            all = (all.0 + gold, all.1 + said, all.2 + right);
            line(&mut out, name, (gold, said, right))?;
        }
        line(&mut out, "both", all)?;
        let opposite = self.counts[0][1] + self.counts[1][0];
        let right: usize = (0..3).map(|at| self.counts[at][at]).sum();
        writeln!(
            out,
            "  accuracy {:.1} %, opposite posture {:.1} % of all claims",
            100.0 * ratio(right, self.claims),
            100.0 * ratio(opposite, self.claims)
        )?;
        Ok(out)
    }

    fn list(&mut self) -> anyhow::Result<String> {
        self.wrong.sort_by(|one, other| other.0.total_cmp(&one.0));
        let mut out = String::new();
        for (_, line) in &self.wrong {
            write!(out, "{line}")?;
        }
        Ok(out)
    }
}

fn line(out: &mut String, name: &str, (gold, said, right): (usize, usize, usize)) -> std::fmt::Result {
    let (precision, recall) = (ratio(right, said), ratio(right, gold));
    let f1 = if right == 0 { 0.0 } else { 2.0 * precision * recall / (precision + recall) };
    writeln!(out, "  {name:<12} {gold:>6} {said:>6} {right:>6} {precision:>10.3} {recall:>7.3} {f1:>7.3}")
}

fn ratio(part: usize, whole: usize) -> f64 {
    let number = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    if whole == 0 { 0.0 } else { number(part) / number(whole) }
}
