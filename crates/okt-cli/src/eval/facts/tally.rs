//! What is counted of the facts of a text, and of all texts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use okt_extract::extractive::Alone;
use okt_extract::{Dropped, Extracted, Reason, Text};
use okt_model::{ContentHash, Money};
use okt_providers::ai::Usage;

#[derive(Default)]
pub struct Tally {
    texts: usize,
    /// Those that say something.
    sentences: usize,
    pub chunks: usize,
    /// Parts of chunks that gave no usable answer.
    pub failed: usize,
    calls: usize,
    usage: Usage,
    usd: Money,
    /// Answers, by why.
    refused: BTreeMap<&'static str, usize>,
    /// In all answers, also in those that were refused.
    stated: usize,
    /// Of these, several claims in one.
    coarse: usize,
    /// Of these, not coarse, what the text does not bear out.
    unfounded: usize,
    dropped: BTreeMap<Reason, usize>,
    facts: BTreeMap<ContentHash, Fact>,
    /// Of texts that were added.
    kept: Kept,
}

struct Fact {
    text: String,
    sentences: BTreeSet<i32>,
    /// Why it does not stand alone.
    leans: Option<Reason>,
}

#[derive(Default)]
struct Kept {
    facts: usize,
    covered: usize,
    leaning: BTreeMap<Reason, usize>,
}

impl Tally {
    pub fn of(text: &Text) -> Self {
        let sentences = (0..text.len()).filter(|no| text.says_something(*no)).count();
        Self { texts: 1, sentences, ..Self::default() }
    }

    pub fn call(&mut self, usage: Usage, usd: Money) {
        self.calls += 1;
        self.usage.tokens_in += usage.tokens_in;
        self.usage.tokens_out += usage.tokens_out;
        self.usd += usd;
    }

    pub fn refuse(&mut self, code: &'static str) {
        *self.refused.entry(code).or_default() += 1;
    }

    pub fn state(&mut self, stated: usize, dropped: &[Dropped]) {
        self.stated += stated;
        for left in dropped {
            match left.reason {
                Reason::TooLong | Reason::NotAtomic => self.coarse += left.count,
                // Not a sentence: the title as a fact.
                Reason::NoSentence
                | Reason::NotInText
                | Reason::NumberNotInText
                | Reason::Empty
                | Reason::NotASentence => self.unfounded += left.count,
                _ => {}
            }
        }
        self.pass_over(dropped);
    }

    /// Sentences that nobody stated as facts, because no model was asked.
    pub fn pass_over(&mut self, dropped: &[Dropped]) {
        for left in dropped {
            *self.dropped.entry(left.reason).or_default() += left.count;
        }
    }

    pub fn take(&mut self, extracted: Extracted, alone: &Alone) {
        for fact in extracted.facts {
            let leans = alone.check(&fact.text).err();
            let kept = self.facts.entry(fact.hash);
            let kept = kept.or_insert_with(|| Fact { text: fact.text, sentences: BTreeSet::new(), leans });
            kept.sentences.extend(fact.sentences);
        }
    }

    /// Each fact on a line, with why it does not stand alone.
    pub fn list(&self, name: &str) -> String {
        let mut facts: Vec<&Fact> = self.facts.values().collect();
        facts.sort_by_key(|fact| fact.sentences.first());
        facts.iter().fold(String::new(), |mut out, fact| {
            let leans = fact.leans.map_or("+", Reason::as_str);
            let _ = writeln!(out, "{name} {:?} {leans}: {}", fact.sentences, fact.text);
            out
        })
    }

    /// Of another text.
    pub fn add(&mut self, other: Self) {
        self.texts += other.texts;
        self.sentences += other.sentences;
        self.chunks += other.chunks;
        self.failed += other.failed;
        self.calls += other.calls;
        self.usage.tokens_in += other.usage.tokens_in;
        self.usage.tokens_out += other.usage.tokens_out;
        self.usd += other.usd;
        self.stated += other.stated;
        self.coarse += other.coarse;
        self.unfounded += other.unfounded;
        for (code, count) in other.refused {
            *self.refused.entry(code).or_default() += count;
        }
        for (reason, count) in other.dropped {
            *self.dropped.entry(reason).or_default() += count;
        }
        self.kept.facts += other.facts.len();
        let covered: BTreeSet<i32> =
            other.facts.values().flat_map(|fact| fact.sentences.iter().copied()).collect();
        self.kept.covered += covered.len();
        for reason in other.facts.values().filter_map(|fact| fact.leans) {
            *self.kept.leaning.entry(reason).or_default() += 1;
        }
    }

    pub fn table(&self, model: &str, prompt: &str) -> String {
        let Kept { facts, covered, leaning } = &self.kept;
        let atomic = self.stated.saturating_sub(self.coarse);
        let grounded = atomic.saturating_sub(self.unfounded);
        let leaning_facts: usize = leaning.values().sum();
        let alone = facts.saturating_sub(leaning_facts);
        let mut out = String::new();
        let mut line = |name: &str, value: String| {
            let _ = writeln!(out, "{name:<22} {value}");
        };
        line("model", model.to_owned());
        line("prompt", prompt.to_owned());
        line("read", format!("{} texts, {} sentences, {} chunks", self.texts, self.sentences, self.chunks));
        line("facts", format!("{facts}, {:.2} per sentence", ratio(*facts, self.sentences)));
        line("atomic", share(atomic, self.stated, "stated"));
        line("grounded", share(grounded, atomic, "atomic"));
        line("stand alone by rule", share(alone, *facts, "facts"));
        line("sentences covered", share(*covered, self.sentences, "sentences"));
        let Usage { tokens_in, tokens_out, .. } = self.usage;
        line("calls", format!("{}, {tokens_in} tokens in, {tokens_out} out, {} USD", self.calls, self.usd));
        line("parts without answer", self.failed.to_string());
        line("answers refused", told(self.refused.iter().map(|(name, count)| (*name, *count))));
        line("facts refused", told(self.dropped.iter().map(|(reason, count)| (reason.as_str(), *count))));
        line("do not stand alone", told(leaning.iter().map(|(reason, count)| (reason.as_str(), *count))));
        out
    }
}

fn told<'a>(counts: impl Iterator<Item = (&'a str, usize)>) -> String {
    let counts: Vec<String> = counts.map(|(name, count)| format!("{name} {count}")).collect();
    if counts.is_empty() { "none".to_owned() } else { counts.join(", ") }
}

fn share(part: usize, whole: usize, of: &str) -> String {
    format!("{:.1} % of {whole} {of}", 100.0 * ratio(part, whole))
}

fn ratio(part: usize, whole: usize) -> f64 {
    let number = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    if whole == 0 { 0.0 } else { number(part) / number(whole) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_text_bears_out_is_grounded() {
        let mut tally = Tally::default();
        let dropped = [Reason::NotAtomic, Reason::NoSentence, Reason::NotASentence, Reason::Truncated];
        tally.state(10, &dropped.map(|reason| Dropped { reason, count: 1 }));
        tally.pass_over(&[Dropped { reason: Reason::Pronoun, count: 3 }]);
        let mut all = Tally::default();
        all.add(tally);
        let table = all.table("a model", "a prompt");
        let line = |name: &str| table.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        assert!(line("atomic").ends_with("90.0 % of 10 stated"), "{table}");
        assert!(line("grounded").ends_with("77.8 % of 9 atomic"), "{table}");
        assert!(
            line("facts refused")
                .ends_with("no_sentence 1, not_atomic 1, truncated 1, not_a_sentence 1, pronoun 3"),
            "{table}"
        );
    }
}
