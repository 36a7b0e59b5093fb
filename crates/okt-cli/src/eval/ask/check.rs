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
        for case in &set.cases {
            tally.claim(case);
            for fact in &case.facts {
                tally.swaps(fact);
            }
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
    let given: Vec<Given<'_>> =
        facts.iter().map(|text| Given { key: "kqzb", text, quote: None, title: None, year: None }).collect();
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
            Checked::Open => {}
        }
    }

    fn swaps(&mut self, fact: &str) {
        if !WORDS.contains(&fact.split_whitespace().count()) {
            return;
        }
        for swap in Swap::ALL {
            let Some(other) = swapped(fact, swap) else { continue };
            let counts = self.swapped.entry(swap).or_default();
            counts[0] += 1;
            if held(&other, &[fact]) == Checked::Supported {
                counts[1] += 1;
                self.wrong.push(format!("  {}\n    {other}\n    {fact}\n", swap.as_str()));
            }
        }
    }

    fn is_within(&self) -> bool {
        self.swapped.values().all(|[all, passed]| percent(*passed, *all) <= MOST)
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
        for (swap, [all, passed]) in &self.swapped {
            writeln!(out, "  {:<22} {all:>6} {passed:>9} {:>8.2}", swap.as_str(), percent(*passed, *all))?;
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
        tally.swaps("Mia Berg founded the Aldra Line of ferries in 1962.");
        assert_eq!(tally.claims["contradicts"], [1, 0, 1]);
        assert_eq!(tally.claims["supports"][0], 1);
        assert_eq!(tally.swapped[&Swap::Number], [1, 0]);
        assert_eq!(tally.swapped[&Swap::Name], [1, 0]);
        assert!(tally.is_within() && tally.table("Trial", true).unwrap().contains("number"));
        tally.swapped.insert(Swap::Name, [10, 1]);
        assert!(!tally.is_within());
    }
}
