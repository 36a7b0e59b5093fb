//! The figures of a set, by mode.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::time::Duration;

use okt_search::{hits_at, mean, ndcg_at, paired_interval, recall_at, reciprocal_rank};

use super::ask::{Found, Known, Source};
use super::set::{Measure, Question, Set, without_blanks};

const WORST: usize = 10;
const DRAWS: usize = 2000;
const SEED: u64 = 1;

/// What a mode found, question by question.
pub struct Run {
    pub mode: &'static str,
    pub found: Vec<Found>,
}

impl Run {
    pub const fn new(mode: &'static str) -> Self {
        Self { mode, found: Vec::new() }
    }

    /// Each figure of each question.
    fn figures(&self, set: &Set) -> Vec<Vec<f64>> {
        let each = set.questions.iter().zip(&self.found);
        each.map(|(question, found)| figures(set.measure, question, found)).collect()
    }

    /// Answers in another mode than the one that was asked for, and why.
    fn others(&self) -> BTreeMap<(&str, &str), usize> {
        let mut others = BTreeMap::new();
        for found in self.found.iter().filter(|found| found.mode != self.mode) {
            let why = found.reason.as_deref().unwrap_or("no reason given");
            *others.entry((&*found.mode, why)).or_default() += 1;
        }
        others
    }
}

const fn names(measure: Measure) -> &'static [&'static str] {
    match measure {
        Measure::Ranking => &["nDCG@10", "R@100"],
        Measure::Recall => &["recall@2", "recall@5", "recall@10", "recall@20"],
        Measure::Evidence => &["Hits@4", "Hits@10", "MAP@10", "MRR@10", "articles R@10"],
    }
}

/// The figure that modes are compared and questions are sorted by.
const fn main_figure(measure: Measure) -> usize {
    match measure {
        Measure::Ranking => 0,
        Measure::Recall | Measure::Evidence => 1,
    }
}

fn figures(measure: Measure, question: &Question, found: &Found) -> Vec<f64> {
    // A sum of nothing is -0.
    signed_figures(measure, question, found).into_iter().map(|figure| figure + 0.0).collect()
}

fn signed_figures(measure: Measure, question: &Question, found: &Found) -> Vec<f64> {
    // Sources that are no documents have numbers that no document has.
    let number = |(rank, source): (usize, &Source)| match source {
        Source::Document(at) => *at,
        Source::Other(..) => usize::MAX - rank,
    };
    let ranked: Vec<usize> = found.sources.iter().enumerate().map(number).collect();
    let gold: HashSet<usize> = question.gold.iter().copied().collect();
    match measure {
        Measure::Ranking => vec![ndcg_at(&ranked, &gold, 10), recall_at(&ranked, &gold, 100)],
        Measure::Recall => [2, 5, 10, 20].map(|k| recall_at(&ranked, &gold, k)).to_vec(),
        Measure::Evidence => {
            let (rows, relevant, precision) = evidence(&question.evidence, &found.texts);
            vec![
                hits_at(&rows, &relevant, 4),
                hits_at(&rows, &relevant, 10),
                precision,
                reciprocal_rank(&rows, &relevant),
                recall_at(&ranked, &gold, 10),
            ]
        }
    }
}

/// The first ten rows by number, those that have a wanted sentence or lie within one, and the mean average precision as the
/// authors of MultiHop-RAG compute it: of each sentence 1 / the rank at which it is found first.
fn evidence(wanted: &[String], texts: &[String]) -> (Vec<usize>, HashSet<usize>, f64) {
    let rows: Vec<usize> = (0..texts.len().min(10)).collect();
    let (mut relevant, mut have, mut sum) = (HashSet::new(), HashSet::new(), 0.0);
    for (rank, text) in texts.iter().take(10).enumerate() {
        let text = without_blanks(text);
        let within =
            |fact: &String| !text.is_empty() && (text.contains(fact.as_str()) || fact.contains(&text));
        for fact in wanted.iter().filter(|fact| within(fact)) {
            relevant.insert(rank);
            if have.insert(fact) {
                sum += 1.0 / float(rank + 1);
            }
        }
    }
    let distinct = wanted.iter().collect::<HashSet<_>>().len();
    (rows, relevant, sum / float(distinct.clamp(1, 10)))
}

/// All modes are compared with `base`. The worst questions are those of one mode, or else of the best.
pub fn table(
    set: &Set,
    known: &Known,
    types: &str,
    runs: &[Run],
    (base, worst_of): (&str, Option<&str>),
) -> String {
    let main = main_figure(set.measure);
    let all: Vec<Vec<Vec<f64>>> = runs.iter().map(|run| run.figures(set)).collect();
    let column = |of: &[Vec<f64>], at: usize| -> Vec<f64> {
        of.iter().filter_map(|row| row.get(at).copied()).collect()
    };
    let of_base = runs.iter().position(|run| run.mode == base).and_then(|at| all.get(at));
    let of_base = of_base.map(|figures| column(figures, main));

    let mut lines = vec![heading(set.measure, base)];
    for (run, figures) in runs.iter().zip(&all) {
        let mark = if run.others().is_empty() { "" } else { "*" };
        let mut line = vec![format!("{}{mark}", run.mode), run.found.len().to_string()];
        line.extend((0..names(set.measure).len()).map(|at| format!("{:.4}", mean(&column(figures, at)))));
        let times: Vec<Duration> = run.found.iter().map(|found| found.took).collect();
        line.extend(
            [50, 95].map(|percent| format!("{:.1}", 1000.0 * percentile(&times, percent).as_secs_f64())),
        );
        let interval = of_base.as_ref().filter(|_| run.mode != base);
        let interval = interval.and_then(|base| paired_interval(base, &column(figures, main), DRAWS, SEED));
        line.push(interval.map_or("-".to_owned(), |it| {
            format!("{:+.4} ({:+.4} to {:+.4})", it.difference, it.low, it.high)
        }));
        lines.push(line);
    }

    let mut out = head(set, known, types);
    out += &aligned(&lines);
    for run in runs {
        for ((mode, why), count) in run.others() {
            let _ =
                writeln!(out, "* {count} questions for {} were answered by {mode} search: {why}", run.mode);
        }
    }
    let shown = all.iter().zip(runs).filter(|(_, run)| worst_of.is_none_or(|mode| mode == run.mode));
    let best = shown.max_by(|(one, _), (other, _)| {
        // Of equal ones the first.
        mean(&column(one, main)).total_cmp(&mean(&column(other, main))).then(Ordering::Greater)
    });
    if let Some((figures, run)) = best {
        out += &worst(set, run, figures);
    }
    out
}

fn head(set: &Set, known: &Known, types: &str) -> String {
    let mut out = format!(
        "{}: {} documents ({} texts), {} questions, {types}\n",
        set.title,
        set.documents.len(),
        set.distinct().count(),
        set.questions.len()
    );
    let mut note = |count: usize, text: &str| {
        if count > 0 {
            let _ = writeln!(out, "{count} {text}");
        }
    };
    note(set.left_out, "questions have no known documents and are left out");
    note(known.missing, "texts are not processed in the repository and can't be found");
    note(known.others, "sources of the repository are not of the set and count as wrong");
    out.push('\n');
    out
}

fn heading(measure: Measure, base: &str) -> Vec<String> {
    let names = names(measure);
    let compared = names.get(main_figure(measure)).copied().unwrap_or_default();
    let words = ["mode", "questions"].into_iter().chain(names.iter().copied()).chain(["p50 ms", "p95 ms"]);
    words.map(str::to_owned).chain([format!("{compared} against {base} (95 %)")]).collect()
}

/// Questions of which the mode misses something, the worst first.
fn worst(set: &Set, run: &Run, figures: &[Vec<f64>]) -> String {
    let main = main_figure(set.measure);
    let figure = |row: &[f64]| row.get(main).copied().unwrap_or_default();
    let mut missed: Vec<_> = set.questions.iter().zip(&run.found).zip(figures).collect();
    missed.retain(|(_, row)| figure(row) < 1.0);
    missed.sort_by(|(_, one), (_, other)| {
        let sums = one.iter().sum::<f64>().total_cmp(&other.iter().sum());
        figure(one).total_cmp(&figure(other)).then(sums)
    });
    let name = names(set.measure).get(main).copied().unwrap_or_default();
    let mut out = format!("\nWorst questions of {}, by {name}\n", run.mode);
    for ((question, found), row) in missed.into_iter().take(WORST) {
        let gold: Vec<&str> =
            question.gold.iter().filter_map(|at| set.documents.get(*at)).map(|gold| &*gold.title).collect();
        let first: Vec<&str> = found.sources.iter().take(5).map(|source| source.title(set)).collect();
        let _ = writeln!(
            out,
            "{:.4}  {}\n        gold:  {}\n        first: {}",
            figure(row),
            question.text,
            gold.join(" | "),
            first.join(" | ")
        );
    }
    out
}

/// The least time that so many percent of the answers did not exceed.
fn percentile(times: &[Duration], percent: usize) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    let at = (times.len() * percent).div_ceil(100).saturating_sub(1);
    times.get(at).copied().unwrap_or_default()
}

/// Columns as wide as their widest cell; all but the first and the last to the right.
fn aligned(lines: &[Vec<String>]) -> String {
    let columns = lines.first().map_or(0, Vec::len);
    let width = |at: usize| lines.iter().filter_map(|line| line.get(at)).map(String::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for line in lines {
        let cells = line.iter().zip(&widths).enumerate().map(|(at, (cell, width))| {
            if at == 0 || at + 1 == columns { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        let _ = writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    out
}

fn float(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::super::ask::tests::{known, set};
    use super::*;

    fn found(mode: &str, sources: &[usize], milliseconds: u64) -> Found {
        Found {
            sources: sources.iter().map(|at| Source::Document(*at)).collect(),
            took: Duration::from_millis(milliseconds),
            mode: mode.to_owned(),
            ..Found::default()
        }
    }

    #[test]
    fn modes_are_compared_with_lexical_and_the_worst_questions_of_the_best_are_shown() {
        let set = set(Measure::Recall);
        let lexical = vec![found("lexical", &[5, 0, 1], 10), found("lexical", &[5], 30)];
        let mut deep = vec![found("deep", &[0, 1], 20), found("hybrid", &[2, 0, 1, 5, 4], 40)];
        deep[1].reason = Some("no concepts".to_owned());
        let runs = [Run { mode: "lexical", found: lexical }, Run { mode: "deep", found: deep }];
        let table = table(&set, &known(&set), "facts", &runs, ("lexical", None));
        let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        let line = |first: &str| lines.iter().find(|line| line.first() == Some(&first)).unwrap();
        assert!(
            table.starts_with("Trial: 6 documents (5 texts), 2 questions, facts\n1 questions have no"),
            "{table}"
        );
        assert_eq!(
            line("mode")[..8],
            ["mode", "questions", "recall@2", "recall@5", "recall@10", "recall@20", "p50", "ms"]
        );
        let (lexical, deep) = (line("lexical"), line("deep*"));
        assert_eq!(
            lexical[..],
            ["lexical", "2", "0.2500", "0.5000", "0.5000", "0.5000", "10.0", "30.0", "-"]
        );
        assert_eq!(
            deep[..8],
            ["deep*", "2", "0.7500", "0.7500", "0.7500", "0.7500", "20.0", "40.0"],
            "{table}"
        );
        assert_eq!(deep[8..], ["+0.2500", "(+0.0000", "to", "+0.5000)"], "{table}");
        assert!(
            table.contains("* 1 questions for deep were answered by hybrid search: no concepts"),
            "{table}"
        );
        let worst = table.split_once("\nWorst questions of deep, by recall@5\n").unwrap().1;
        assert_eq!(
            worst, "0.5000  Who sang?\n        gold:  C | D\n        first: C | A | B | F | E\n",
            "{table}"
        );
    }

    #[test]
    fn a_source_that_is_no_document_takes_a_place() {
        let set = set(Measure::Ranking);
        let other = |id: &str| Source::Other(id.to_owned(), String::new());
        let sources = vec![other("X"), Source::Document(0), other("Y"), Source::Document(1)];
        let found = Found { sources, ..Found::default() };
        let figures = figures(Measure::Ranking, &set.questions[0], &found);
        // Ranks 2 and 4 of an ideal 1 and 2.
        let gain = (1.0 / 3f64.log2() + 1.0 / 5f64.log2()) / (1.0 + 1.0 / 3f64.log2());
        assert!((figures[0] - gain).abs() < 1e-9 && (figures[1] - 1.0).abs() < 1e-9, "{figures:?}");
    }

    #[test]
    fn evidence_is_a_row_that_has_the_sentence_or_lies_in_it() {
        let set = set(Measure::Evidence);
        let mut found = found("lexical", &[0], 1);
        let texts = ["Wasps sting.", "It is said: Bees dance. They do.", "Bees\ndance.", "Ants do"];
        found.texts = texts.map(str::to_owned).to_vec();
        let figures = figures(Measure::Evidence, &set.questions[0], &found);
        // The two sentences are found first at 2 and 4.
        assert_eq!(figures, [1.0, 1.0, f64::midpoint(0.5, 0.25), 0.5, 0.5]);
        found.texts.truncate(1);
        let nothing = Found::default();
        let none = super::figures(Measure::Ranking, &set.questions[0], &nothing);
        assert!(none.iter().all(|figure| figure.is_sign_positive()), "{none:?}");
        assert_eq!(super::figures(Measure::Evidence, &set.questions[0], &found)[..4], [0.0; 4]);
    }

    #[test]
    fn percentiles_are_times_that_were_measured() {
        let times: Vec<Duration> = (1..=20).rev().map(Duration::from_millis).collect();
        assert_eq!(percentile(&times, 50), Duration::from_millis(10));
        assert_eq!(percentile(&times, 95), Duration::from_millis(19));
        assert_eq!(percentile(&[], 95), Duration::ZERO);
    }
}
