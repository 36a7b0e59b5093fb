//! `okt eval dedup DIR`.
//!
//! Pairs of sentences that somebody has judged: `*.jsonl` with `a`, `b`, `merge` (1 where they say the same), `kind` and, where
//! it is not English, `language`; and `pawsx_LANGUAGE_*.tsv` (sentence, sentence, 1 or 0) as PAWS-X has them. Files of another
//! shape are passed over. The rule is asked about every pair, as if all of them came near enough to be compared; what it does
//! not merge is told apart by whether the difference has a name (such pairs are candidate contradictions) or not (such pairs
//! are grouped, where their vectors are near).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use okt_extract::{Sameness, compare, same_fact};
use serde_json::Value;

struct Pair {
    a: String,
    b: String,
    /// Whether they say the same.
    same: bool,
    kind: String,
    language: String,
}

/// What became of the pairs of one kind.
#[derive(Default)]
struct Row {
    pairs: usize,
    merged: usize,
    named: usize,
}

/// By whether they say the same, language and kind.
type Rows = BTreeMap<(bool, String, String), Row>;

pub fn measure(folder: &Path) -> anyhow::Result<String> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .with_context(|| format!("can't read {}", folder.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    let mut out = String::new();
    let mut sets = 0;
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let read = || fs::read_to_string(&file).with_context(|| format!("can't read {}", file.display()));
        let pairs = match (name.strip_prefix("pawsx_"), name.rsplit_once('.')) {
            (Some(rest), Some((_, "tsv"))) => paws(&read()?, rest.split('_').next().unwrap_or_default()),
            (None, Some((_, "jsonl"))) => judged(&read()?),
            _ => continue,
        };
        let Some(pairs) = pairs else { continue };
        sets += 1;
        write!(out, "{}", table(&name, &pairs)?)?;
    }
    if sets == 0 {
        bail!(
            "{} has no pairs: name a folder with *.jsonl (a, b, merge, kind) or pawsx_LANGUAGE_*.tsv",
            folder.display()
        );
    }
    Ok(out)
}

/// None where the lines are something else.
fn judged(lines: &str) -> Option<Vec<Pair>> {
    let pair = |line: &str| {
        let pair: Value = serde_json::from_str(line).ok()?;
        let text = |name: &str| pair[name].as_str().map(str::to_owned);
        Some(Pair {
            a: text("a")?,
            b: text("b")?,
            same: pair["merge"].as_u64()? == 1,
            kind: text("kind")?,
            language: text("language").unwrap_or_else(|| "en".to_owned()),
        })
    };
    let pairs: Option<Vec<Pair>> = lines.lines().filter(|line| !line.trim().is_empty()).map(pair).collect();
    pairs.filter(|pairs| !pairs.is_empty())
}

fn paws(lines: &str, language: &str) -> Option<Vec<Pair>> {
    let pairs = lines.lines().filter_map(|line| {
        let mut columns = line.rsplit('\t');
        // A header has no label.
        let same = columns.next()?.trim().parse::<u8>().ok()? == 1;
        let (b, a) = (columns.next()?.to_owned(), columns.next()?.to_owned());
        let kind = if same { "paws_paraphrase" } else { "paws_word_swap" };
        Some(Pair { a, b, same, kind: kind.to_owned(), language: language.to_owned() })
    });
    let pairs: Vec<Pair> = pairs.collect();
    (!pairs.is_empty()).then_some(pairs)
}

fn table(name: &str, pairs: &[Pair]) -> anyhow::Result<String> {
    let (mut rows, mut wrong) = (Rows::new(), Vec::new());
    for pair in pairs {
        let row = rows.entry((pair.same, pair.language.clone(), pair.kind.clone())).or_default();
        row.pairs += 1;
        if same_fact(&pair.a, &pair.b).is_some() {
            row.merged += 1;
            if !pair.same {
                wrong.push(pair);
            }
        } else if compare(&pair.a, &pair.b) != Sameness::Same {
            row.named += 1;
        }
    }
    let mut out = String::new();
    writeln!(out, "{name}: {} pairs", pairs.len())?;
    for same in [false, true] {
        let mut all = Row::default();
        let said = if same { "say the same" } else { "differ" };
        writeln!(out, "\n  {said:<44} {:>7} {:>7} {:>8} {:>7}", "pairs", "merged", "named", "neither")?;
        for ((_, language, kind), row) in rows.iter().filter(|((is_same, ..), _)| *is_same == same) {
            line(&mut out, &format!("{language} {kind}"), row)?;
            all.pairs += row.pairs;
            all.merged += row.merged;
            all.named += row.named;
        }
        line(&mut out, "all", &all)?;
    }
    for pair in wrong {
        writeln!(out, "\n  merged and differ ({}):\n    {}\n    {}", pair.kind, pair.a, pair.b)?;
    }
    writeln!(out)?;
    Ok(out)
}

fn line(out: &mut String, name: &str, row: &Row) -> std::fmt::Result {
    let Row { pairs, merged, named } = row;
    writeln!(out, "  {name:<44} {pairs:>7} {merged:>7} {named:>8} {:>7}", pairs - merged - named)
}
