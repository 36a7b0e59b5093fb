//! What the check of answers lets through, by its rules alone.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use okt_extract::answers::{Checked, Given, check};
use okt_model::Posture;

use super::super::posture::set::{self, Case};
use super::swaps::{Swap, swapped};

/// So much of the swapped sentences may pass, in percent.
const MOST: f64 = 1.0;
/// Longer sentences are several.
const WORDS: std::ops::RangeInclusive<usize> = 5..=40;

pub fn measure(folder: &Path, limit: Option<u32>, list: bool) -> anyhow::Result<(String, ExitCode)> {
    let (mut out, mut passed) = (String::new(), true);
    for mut set in set::read(folder, None)? {
        set.sample(limit);
        let mut tally = Tally::default();
        let mut before: &[String] = &[];
        for case in &set.cases {
            tally.claim(case);
            for fact in &case.facts {
                let others = case.facts.iter().chain(before).filter(|other| *other != fact);
                tally.swaps(fact, &others.map(String::as_str).collect::<Vec<_>>());
            }
            before = &case.facts;
        }
        out += &tally.table(&set.name, list)?;
        passed &= tally.is_within();
    }
    Ok((out, if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }))
}

#[derive(Default)]
struct Tally {
    /// By what a claim is: how many there are, how many pass, and how many are refused.
    claims: BTreeMap<&'static str, [usize; 3]>,
    /// By what was swapped: how many there are, and how many pass.
    swapped: BTreeMap<Swap, [usize; 2]>,
    wrong: Vec<String>,
}

fn held(sentence: &str, facts: &[&str]) -> Checked {
    let given: Vec<Given<'_>> = facts
        .iter()
        .map(|text| Given { key: "kqzb", text, quote: None, around: None, title: None, year: None })
        .collect();
    check(sentence, &given, Some("en"))
}

impl Tally {
    /// Against all of its sentences together, as far as a sentence of an answer may cite so many.
    fn claim(&mut self, case: &Case) {
        let gold = match case.gold {
            Some(Posture::Supports) => "supports",
            Some(Posture::Contradicts) => "contradicts",
            Some(Posture::Related) | None => "neither",
        };
        let facts: Vec<&str> = case.facts.iter().map(String::as_str).take(8).collect();
        let counts = self.claims.entry(gold).or_default();
        counts[0] += 1;
        match held(&case.claim, &facts) {
            Checked::Supported => {
                counts[1] += 1;
                if gold != "supports" {
                    self.wrong.push(format!("  {gold}\n    {}\n    {}\n", case.claim, facts.join(" ")));
                }
            }
            Checked::Refused(..) => counts[2] += 1,
            Checked::Contradicted | Checked::Open => {}
        }
    }

    /// Against the sentence that it was made from, and the one that the other thing is from.
    fn swaps(&mut self, fact: &str, others: &[&str]) {
        if !WORDS.contains(&fact.split_whitespace().count()) {
            return;
        }
        for swap in Swap::ALL {
            let Some((other, from)) = swapped(fact, swap, others) else { continue };
            let cited: Vec<&str> = std::iter::once(fact).chain(from).collect();
            // Swapped into what the other sentence says, it is true.
            if cited.iter().any(|one| one.trim_end_matches('.') == other.trim_end_matches('.')) {
                continue;
            }
            let counts = self.swapped.entry(swap).or_default();
            counts[0] += 1;
            if held(&other, &cited) == Checked::Supported {
                counts[1] += 1;
                self.wrong.push(format!("  {}\n    {other}\n    {}\n", swap.as_str(), cited.join("\n    ")));
            }
        }
    }

    /// What was not measured is not within.
    fn is_within(&self) -> bool {
        let within = |swap: &Swap| {
            let counts = self.swapped.get(swap);
            counts.is_some_and(|[all, passed]| *all > 0 && percent(*passed, *all) <= MOST)
        };
        !self.claims.is_empty() && Swap::ALL.iter().all(within)
    }

    fn table(&self, set: &str, list: bool) -> anyhow::Result<String> {
        let mut out = String::new();
        writeln!(out, "{set}: what the rules of the check let through")?;
        writeln!(
            out,
            "  {:<22} {:>6} {:>9} {:>6} {:>8}",
            "claims that the text", "all", "supported", "open", "refused"
        )?;
        for (gold, [all, passed, refused]) in &self.claims {
            writeln!(out, "  {gold:<22} {all:>6} {passed:>9} {:>6} {refused:>8}", all - passed - refused)?;
        }
        writeln!(out, "  {:<22} {:>6} {:>9} {:>8}", "sentences with another", "all", "supported", "percent")?;
        for swap in Swap::ALL {
            let [all, passed] = self.swapped.get(&swap).copied().unwrap_or_default();
            writeln!(out, "  {:<22} {all:>6} {passed:>9} {:>8.2}", swap.as_str(), percent(passed, all))?;
        }
        if list {
            self.wrong.iter().for_each(|line| out.push_str(line));
        }
        Ok(out)
    }
}

fn percent(part: usize, whole: usize) -> f64 {
    let number = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    if whole == 0 { 0.0 } else { 100.0 * number(part) / number(whole) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_is_counted() {
        let mut tally = Tally::default();
        let case = |claim: &str, gold| Case {
            claim: claim.to_owned(),
            facts: vec!["Mia Berg founded the Aldra Line of ferries in 1962.".to_owned()],
            gold,
        };
        tally.claim(&case("Mia Berg founded the Aldra Line in 1962.", Some(Posture::Supports)));
        tally.claim(&case("Mia Berg founded the Aldra Line in 1963.", Some(Posture::Contradicts)));
        assert!(!tally.is_within(), "nothing was swapped yet");
        let others = ["Skomer was left by all of its people in 1980."];
        tally.swaps("Mia Berg founded the Aldra Line of ferries in 1962.", &others);
        assert_eq!(tally.swapped[&Swap::Join], [1, 0]);
        assert!(!tally.is_within(), "none was denied");
        tally.swaps("The Aldra Line was founded in 1962.", &others);
        assert_eq!(tally.claims["contradicts"], [1, 0, 1]);
        assert_eq!(tally.claims["supports"][0], 1);
        assert_eq!(tally.swapped[&Swap::Number], [2, 0]);
        assert_eq!(tally.swapped[&Swap::Name], [2, 0]);
        assert_eq!(tally.swapped[&Swap::Negation], [1, 0]);
        assert!(tally.is_within() && tally.table("Trial", true).unwrap().contains("number"));
        // Two that differ in one number: what is swapped is what the other one says.
        tally.swaps("The Aldra Line was founded in 1962.", &["The Aldra Line was founded in 1980."]);
        assert_eq!(tally.swapped[&Swap::Number], [2, 0]);
        tally.swapped.insert(Swap::Name, [10, 1]);
        assert!(!tally.is_within());
    }
}
