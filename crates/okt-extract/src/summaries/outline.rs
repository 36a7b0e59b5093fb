//! A summary without a model: the facts that say most, in groups.
//!
//! A fact says most if it is near the middle of all of them and many sources state it. What says nearly the same as a fact that
//! was picked is left out. Nearness is that of their vectors or, where not every fact has one, of their words. A fact that says
//! what the concept is comes first.

use std::collections::HashMap;

use okt_model::FactId;

use super::citations::cite;
use crate::ground::{Stem, each_word};
use crate::line::one_line;

/// More facts are not looked at; those of many sources come first.
const MOST_FACTS: usize = 2_000;
/// Words are counted in so many places.
const PLACES: usize = 1_024;
/// How much it counts that a fact says much, against that it says something new.
const SAYS_MUCH: f32 = 0.7;
/// Facts as near as this say nearly the same, by their vectors and by their words.
const SAME_VECTOR: f32 = 0.9;
const SAME_WORDS: f32 = 0.7;
const MOST_GROUPS: usize = 4;
/// So few facts are one group.
const ONE_GROUP: usize = 4;

/// A fact as it is weighed.
#[derive(Clone, Copy, Debug)]
pub struct Outlined<'f> {
    pub id: FactId,
    pub text: &'f str,
    /// How many sources state it.
    pub sources: u32,
    /// Of any length, the same for all.
    pub vector: Option<&'f [f32]>,
}

/// The places of the facts that say most about something of this name, at most so many, in groups of those that are alike: the
/// group of the fact that says what it is or of the weightiest one first, and inside of a group in the order given.
pub fn outline(name: &str, facts: &[Outlined], most: usize) -> Vec<Vec<usize>> {
    let mut looked_at: Vec<usize> = (0..facts.len()).collect();
    looked_at.sort_by_key(|at| std::cmp::Reverse(facts[*at].sources));
    looked_at.truncate(MOST_FACTS);
    looked_at.sort_unstable();
    let facts: Vec<Outlined> = looked_at.iter().map(|at| facts[*at]).collect();
    let space = Space::of(&facts);
    let says_what = facts.iter().position(|fact| defines(fact.text, name));
    let picked = space.pick(&facts, says_what, most);
    let mut groups = space.groups(&picked);
    for group in &mut groups {
        group.sort_unstable_by_key(|at| (says_what != Some(*at), *at));
        for at in group {
            *at = looked_at[*at];
        }
    }
    groups
}

/// An outline as Markdown: a paragraph for each group, every fact as it stands and cited.
pub fn outline_text(facts: &[Outlined], groups: &[Vec<usize>]) -> String {
    let sentence = |at: &usize| facts.get(*at).map(|fact| cite(&one_line(fact.text), &[fact.id]));
    let paragraph = |group: &Vec<usize>| group.iter().filter_map(sentence).collect::<Vec<_>>().join(" ");
    groups.iter().map(paragraph).collect::<Vec<_>>().join("\n\n")
}

/// Where facts lie to each other: vectors of length one, or zero.
struct Space {
    vectors: Vec<Vec<f32>>,
    /// What is as near says nearly the same.
    same: f32,
}

impl Space {
    fn of(facts: &[Outlined]) -> Self {
        let length = facts.first().and_then(|fact| fact.vector).map_or(0, <[f32]>::len);
        let usable = |vector: &&[f32]| vector.len() == length && vector.iter().all(|value| value.is_finite());
        let given: Option<Vec<&[f32]>> = facts.iter().map(|fact| fact.vector.filter(usable)).collect();
        match given.filter(|_| length > 0) {
            Some(given) => {
                let vectors = given.into_iter().map(|vector| unit(vector.to_vec())).collect();
                Self { vectors, same: SAME_VECTOR }
            }
            None => Self { vectors: by_words(facts), same: SAME_WORDS },
        }
    }

    fn near(&self, one: usize, other: usize) -> f32 {
        dot(&self.vectors[one], &self.vectors[other])
    }

    /// The facts that say most, the weightiest first: each time the one that says much and something new. `first` is before all.
    fn pick(&self, facts: &[Outlined], first: Option<usize>, most: usize) -> Vec<usize> {
        let weights: Vec<f32> = facts.iter().map(|fact| weight(fact.sources)).collect();
        let mut middle = vec![0.0; self.vectors.first().map_or(0, Vec::len)];
        for (vector, weight) in self.vectors.iter().zip(&weights) {
            middle.iter_mut().zip(vector).for_each(|(sum, value)| *sum += weight * value);
        }
        let middle = unit(middle);
        let mut says: Vec<f32> =
            self.vectors.iter().zip(&weights).map(|(vector, weight)| dot(vector, &middle) * weight).collect();
        let top = says.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
        for value in &mut says {
            *value /= top;
        }

        let mut known = vec![0.0_f32; facts.len()];
        let mut left: Vec<usize> = (0..facts.len()).collect();
        let mut picked = Vec::new();
        while picked.len() < most {
            let gain = |at: &usize| SAYS_MUCH.mul_add(says[*at], (SAYS_MUCH - 1.0) * known[*at]);
            // Of those that are as good, the first.
            let best =
                left.iter().copied().reduce(|best, at| if gain(&at) > gain(&best) { at } else { best });
            let Some(best) = first.filter(|_| picked.is_empty()).or(best) else { break };
            picked.push(best);
            left.retain(|at| {
                known[*at] = known[*at].max(self.near(*at, best));
                *at != best && known[*at] < self.same
            });
        }
        picked
    }

    /// Each fact joins the group that it is nearest to, or begins one if it is no nearer to any than facts are on average.
    fn groups(&self, picked: &[usize]) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        let usual = if picked.len() <= ONE_GROUP { f32::MIN } else { self.usual(picked) };
        for at in picked {
            let near = |group: &Vec<usize>| mean(group.iter().map(|other| self.near(*at, *other)));
            let full = groups.len() == MOST_GROUPS;
            let nearest = groups.iter_mut().map(|group| (near(group), group));
            let nearest = nearest.reduce(|best, one| if one.0 > best.0 { one } else { best });
            match nearest {
                Some((near, group)) if near > usual || full => group.push(*at),
                _ => groups.push(vec![*at]),
            }
        }
        groups
    }

    fn usual(&self, picked: &[usize]) -> f32 {
        let pairs = picked
            .iter()
            .enumerate()
            .flat_map(|(at, one)| picked[..at].iter().map(move |other| self.near(*one, *other)));
        mean(pairs)
    }
}

/// Whether an English sentence says what something is: `FTX was a cryptocurrency exchange`, `Ada Lovelace (1815–1852) was an …`.
fn defines(text: &str, name: &str) -> bool {
    let text = ["The ", "A ", "An "].iter().find_map(|article| text.strip_prefix(article)).unwrap_or(text);
    let Some((begin, rest)) = text.split_at_checked(name.len()) else { return false };
    let rest = rest.trim_start();
    let rest = match rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        Some((_, rest)) => rest.trim_start(),
        None => rest,
    };
    let mut words = rest.split(' ');
    !name.is_empty()
        && begin.eq_ignore_ascii_case(name)
        && matches!(words.next(), Some("is" | "was" | "are" | "were"))
        && matches!(words.next(), Some("a" | "an" | "the" | "one"))
}

/// One for a single source, and little more for each doubling: ten copies of a report are not ten reports.
fn weight(sources: u32) -> f32 {
    let doublings = 31_u32.saturating_sub(sources.max(1).leading_zeros());
    f32::from(u8::try_from(doublings).unwrap_or(u8::MAX)).mul_add(0.25, 1.0)
}

fn mean(values: impl Iterator<Item = f32>) -> f32 {
    let (sum, count) = values.fold((0.0, 0.0_f32), |(sum, count), value| (sum + value, count + 1.0));
    sum / count.max(1.0)
}

/// Facts by their words; those that stand in many facts count little.
fn by_words(facts: &[Outlined]) -> Vec<Vec<f32>> {
    let mut numbers: HashMap<Stem, usize> = HashMap::new();
    let mut times: Vec<f32> = Vec::new();
    let mut words_of: Vec<Vec<usize>> = Vec::new();
    for fact in facts {
        let mut words = Vec::new();
        each_word(fact.text, |word| {
            if word.has_content() {
                let next = numbers.len();
                words.push(*numbers.entry(word.stem()).or_insert(next));
            }
        });
        words.sort_unstable();
        words.dedup();
        times.resize(numbers.len(), 0.0);
        for word in &words {
            times[*word] += 1.0;
        }
        words_of.push(words);
    }
    let all = f32::from(u16::try_from(facts.len()).unwrap_or(u16::MAX));
    let vector = |words: Vec<usize>| {
        let mut vector = vec![0.0; PLACES];
        for word in words {
            vector[word % PLACES] += (1.0 + all / times[word]).ln();
        }
        unit(vector)
    };
    words_of.into_iter().map(vector).collect()
}

fn dot(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

fn unit(mut vector: Vec<f32>) -> Vec<f32> {
    let length = dot(&vector, &vector).sqrt();
    if length > 0.0 && length.is_finite() {
        for value in &mut vector {
            *value /= length;
        }
    } else {
        vector.fill(0.0);
    }
    vector
}

#[cfg(test)]
mod tests {
    use super::super::claims;
    use super::*;

    fn id(no: usize) -> FactId {
        format!("0197a3c0-0000-7000-8000-{no:012x}").parse().unwrap()
    }

    fn facts<'f>(texts: &[(&'f str, u32)]) -> Vec<Outlined<'f>> {
        let fact = |(no, (text, sources)): (usize, &(&'f str, u32))| Outlined {
            id: id(no),
            text,
            sources: *sources,
            vector: None,
        };
        texts.iter().enumerate().map(fact).collect()
    }

    const HERONS: [(&str, u32); 8] = [
        ("Herons of Lake Ulm nest on the islands of the lake.", 1),
        ("Fishermen took the eggs of the herons until 1951.", 1),
        ("On the islands of the lake the herons of Lake Ulm nest.", 1),
        ("Herons eat perch and frogs in most summers.", 1),
        ("Herons eat mainly voles in dry summers.", 1),
        ("Collecting eggs of herons ended in 1952.", 1),
        ("The café sells postcards.", 1),
        ("Nests on the islands of the lake are counted each spring.", 1),
    ];

    #[test]
    fn near_duplicates_are_left_out_and_the_rest_is_grouped() {
        let facts = facts(&HERONS);
        let groups = outline("heron", &facts, 6);
        let picked: Vec<usize> = groups.iter().flatten().copied().collect();
        assert_eq!(picked.len(), 6);
        assert!(picked.contains(&0) != picked.contains(&2), "one of the two that say the same: {groups:?}");
        let group = |at: usize| groups.iter().position(|group| group.contains(&at));
        assert!(group(3).is_some() && group(3) == group(4), "what they eat: {groups:?}");
        assert!(group(1).is_some() && group(1) == group(5), "their eggs: {groups:?}");
        assert_ne!(group(1), group(3), "{groups:?}");
        assert!(groups.len() <= MOST_GROUPS && groups.iter().all(|group| group.is_sorted()));
        assert_eq!(outline("heron", &facts, 6), groups, "the same each time");
    }

    #[test]
    fn what_many_sources_state_comes_first() {
        let mut texts = HERONS;
        assert_ne!(outline("heron", &facts(&texts), 1), [[6]]);
        texts[3].1 = 40;
        assert_eq!(outline("heron", &facts(&texts), 1), [[3]]);
    }

    #[test]
    fn what_it_is_comes_first() {
        let mut texts = HERONS;
        texts[7].0 = "Lake Ulm (Ulmer See) is a lake of glaciers, which few herons know.";
        assert_eq!(outline("Lake Ulm", &facts(&texts), 5)[0][0], 7);
        assert_eq!(outline("lake ulm", &facts(&texts), 1), [[7]]);
        assert_ne!(outline("heron", &facts(&texts), 5)[0][0], 7);
        for (text, name) in [
            ("The heron is a bird.", "heron"),
            ("Herons are one of the birds of the lake.", "herons"),
            ("Ada Lovelace (1815–1852) was an English mathematician.", "Ada Lovelace"),
        ] {
            assert!(defines(text, name), "{text}");
        }
        for (text, name) in [
            ("The heron is grey.", "heron"),
            ("The heron island is a park.", "heron"),
            ("Perch is a food of the heron.", "heron"),
            ("Über is a word.", "U"),
            ("He is a bird.", ""),
        ] {
            assert!(!defines(text, name), "{text}");
        }
    }

    #[test]
    fn vectors_decide_where_all_have_them() {
        let mut facts = facts(&HERONS);
        // All but the last two point the same way, nearly.
        let vectors: Vec<Vec<f32>> = (0..8_u8)
            .map(|no| {
                let turned = f32::from(no) * 0.2;
                if no < 6 { vec![turned.cos(), turned.sin(), 0.0] } else { vec![0.0, 0.0, 1.0] }
            })
            .collect();
        for (fact, vector) in facts.iter_mut().zip(&vectors) {
            fact.vector = Some(vector);
        }
        let groups = outline("heron", &facts, 4);
        let picked: Vec<usize> = groups.iter().flatten().copied().collect();
        assert!(!(picked.contains(&6) && picked.contains(&7)), "the same vector: {groups:?}");
        assert!((2..=3).contains(&outline("heron", &facts, 1)[0][0]), "the middle of the six");

        facts[5].vector = None;
        let words = outline("heron", &self::facts(&HERONS), 4);
        assert_eq!(outline("heron", &facts, 4), words, "one without a vector");
        let broken = [f32::NAN, 1.0, 0.0];
        facts[5].vector = Some(&broken);
        assert_eq!(outline("heron", &facts, 4), words, "no number");
        facts[5].vector = Some(&broken[1..]);
        assert_eq!(outline("heron", &facts, 4), words, "another length");
    }

    #[test]
    fn few_facts_and_odd_ones_are_no_trouble() {
        assert!(outline("heron", &[], 5).is_empty());
        assert!(outline("heron", &facts(&HERONS), 0).is_empty());
        assert_eq!(outline("heron", &facts(&HERONS[..1]), 5), [[0]]);
        assert_eq!(outline("heron", &facts(&[("42", 0), ("", 1), ("!", u32::MAX)]), 5), [[0, 1, 2]]);
        assert_eq!(outline("heron", &facts(&HERONS[..2]), 5).len(), 1, "so few are one group");
    }

    #[test]
    fn two_thousand_facts_are_outlined_at_once_and_more_are_cut() {
        let texts: Vec<String> = (0..2_500)
            .map(|no| format!("Heron {} was seen at place {} by observer {}.", no, no % 37, no % 11))
            .collect();
        let mut all: Vec<Outlined> = texts
            .iter()
            .enumerate()
            .map(|(no, text)| Outlined { id: id(no), text, sources: 1, vector: None })
            .collect();
        all[2_400].sources = 1_000;
        let groups = outline("heron", &all, 12);
        let picked: Vec<usize> = groups.iter().flatten().copied().collect();
        assert!(picked.len() <= 12 && picked.contains(&2_400), "{groups:?}");
    }

    #[test]
    fn every_sentence_of_the_text_is_a_fact_and_cites_it() {
        let facts = facts(&[("Herons [of Ulm] nest.\nThey *eat*.", 1), ("<b>Frogs</b> sing at night.", 2)]);
        let text = outline_text(&facts, &[vec![0], vec![1, 7]]);
        let said: Vec<(String, Vec<FactId>)> =
            claims(&text).into_iter().map(|claim| (claim.text, claim.facts)).collect();
        assert_eq!(
            said,
            [
                ("Herons [of Ulm] nest. They *eat*.".to_owned(), vec![id(0)]),
                ("<b>Frogs</b> sing at night.".to_owned(), vec![id(1)])
            ]
        );
        assert_eq!(text.split("\n\n").count(), 2);
    }
}
