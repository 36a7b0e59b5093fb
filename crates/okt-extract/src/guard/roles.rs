//! Who did it, and to whom; which of two goes with which.
//!
//! Nothing here knows grammar. Only words are looked at that stand once in each of both texts, and only whether two of them
//! have changed places: what moves alone is another order of words, what moves crosswise is another fact.

use super::Reading;
use super::pairs;
use super::tables::{Language, list};
use super::words::{Kind, Token};

/// Whether two of the things that both speak of have changed places.
pub fn are_swapped(a: &Reading, b: &Reading, language: &Language) -> bool {
    let shared = a.shared(b);
    if shared.len() < 2 {
        return false;
    }
    let turned = pairs::turned(a, b, language);
    let single: Vec<(usize, usize)> = shared.iter().filter(|(at, _)| !turned.contains(at)).copied().collect();
    change_segments(a, b, &single)
        || change_prepositions(a, b, &shared, language)
        || change_order(a, b, &shared)
        || pairs::change_order(a, b, &shared, language)
        // Elsewhere the order of words says less of who does what.
        || (language.english && change_sides(a, b, &shared, language))
        || (!language.english && change_names(a, b, &shared, language))
}

/// Whether what stands left of a word in one text and what stands right of it have changed places in the other.
pub fn change_around(a: &Reading, b: &Reading, at: (usize, usize)) -> bool {
    let (mut over, mut back) = (false, false);
    for (one, other) in a.shared(b) {
        over |= one < at.0 && other > at.1;
        back |= one > at.0 && other < at.1;
    }
    over && back
}

/// `A had 5 and B had 10`, `A had 10 and B had 5`: four things, of which two and two are together, crosswise.
fn change_segments(a: &Reading, b: &Reading, shared: &[(usize, usize)]) -> bool {
    let places: Vec<(usize, usize)> =
        shared.iter().map(|(one, other)| (a.segments[*one], b.segments[*other])).collect();
    let has = |row, column| places.contains(&(row, column));
    places.iter().any(|&(row, column)| {
        places.iter().any(|&(other_row, other_column)| {
            row < other_row && column != other_column && has(row, other_column) && has(other_row, column)
        })
    })
}

/// `from A to B`, `from B to A`; `A than B`, `B than A`.
fn change_prepositions(a: &Reading, b: &Reading, shared: &[(usize, usize)], language: &Language) -> bool {
    let (slots_a, slots_b) = (slots(a, language), slots(b, language));
    let moved: Vec<(&str, &str)> = shared
        .iter()
        .map(|(one, other)| (slots_a[*one], slots_b[*other]))
        .filter(|(one, other)| one != other)
        .collect();
    // The value of it is its value, unless all else is the same.
    let same_words = || a.content_only(b) + b.content_only(a) == 0;
    let mutual = || shared.iter().any(|(at, _)| is_mutual(&a.tokens[*at], language));
    moved.iter().any(|&(one, other)| {
        let of = |slot: &&str| matches!(*slot, "of" | "de" | "di" | "van" | "von");
        let whose = [one, other].contains(&"") && [one, other].iter().any(of);
        let owns = owns(a) != owns(b);
        let free = [one, other].contains(&"")
            && [one, other]
                .iter()
                .any(|slot| matches!(*slot, "with" | "to" | "from" | "con" | "mit" | "avec" | "com" | "met"));
        moved.contains(&(other, one)) && (!whose || (same_words() && !owns)) && !(free && mutual())
    })
}

/// `3 to 2`, `2 to 3`.
fn change_order(a: &Reading, b: &Reading, shared: &[(usize, usize)]) -> bool {
    let ranges = |text: &Reading, at: usize| {
        let joined =
            text.tokens.get(at + 1).is_some_and(|token| matches!(token.text.as_str(), "to" | "-" | ":"));
        joined && matches!(text.tokens.get(at + 2).map(|token| &token.kind), Some(Kind::Amount(_)))
    };
    shared.iter().any(|&(first, now_last)| {
        let swapped = (first + 2, now_last.wrapping_sub(2));
        ranges(a, first) && shared.contains(&swapped) && ranges(b, swapped.1)
    })
}

/// `X verb Y` and `Y verb X`, where both are names and nothing else says who does it.
fn change_names(a: &Reading, b: &Reading, shared: &[(usize, usize)], language: &Language) -> bool {
    let (slots_a, slots_b) = (slots(a, language), slots(b, language));
    let names: Vec<(usize, usize)> = shared
        .iter()
        .filter(|(one, other)| {
            let (in_a, in_b) = (&a.tokens[*one], &b.tokens[*other]);
            let capital = in_a.capital && in_b.capital && !(in_a.opens && in_b.opens);
            let free = slots_a[*one].is_empty() && slots_b[*other].is_empty();
            in_a.is_word() && capital && free && !(is_object(a, *one) && is_object(b, *other))
        })
        .copied()
        .collect();
    let verbs = shared.iter().filter(|(one, other)| {
        let small = |token: &Token| token.kind == Kind::Word && !token.capital;
        let mutual = is_mutual(&a.tokens[*one], language) || is_mutual(&b.tokens[*other], language);
        small(&a.tokens[*one]) && small(&b.tokens[*other]) && !mutual
    });
    verbs.into_iter().any(|verb| {
        let over = names.iter().any(|name| name.0 < verb.0 && name.1 > verb.1);
        over && names.iter().any(|name| name.0 > verb.0 && name.1 < verb.1)
    })
}

/// `den`: whom it is done to, wherever it stands.
fn is_object(text: &Reading, at: usize) -> bool {
    text.tokens[at.saturating_sub(2)..at].iter().any(|token| matches!(token.text.as_str(), "den" | "dem"))
}

/// `has its seat in`.
fn owns(text: &Reading) -> bool {
    text.tokens.windows(2).any(|pair| {
        let has = matches!(pair[0].text.as_str(), "has" | "have" | "had");
        has && matches!(pair[1].text.as_str(), "its" | "their" | "his" | "her" | "a" | "an")
    })
}

/// The preposition that each word hangs on; a date ends it, and `than` holds to the end of its clause.
fn slots<'a>(text: &'a Reading, language: &'a Language) -> Vec<&'a str> {
    let mut slot = "";
    let mut dated = false;
    let is_verb = |at: usize| {
        let next = text.tokens.get(at + 1).filter(|next| next.is_word() && !next.capital);
        next.is_some_and(|next| next.text.ends_with("ed") || language.irregular.contains_key(&next.text))
    };
    text.tokens
        .iter()
        .enumerate()
        .map(|(at, token)| {
            if std::mem::replace(&mut dated, matches!(token.kind, Kind::Date(_))) && slot != "than" {
                slot = "";
            }
            let preposition = language.contractions.get(&token.text).unwrap_or(&token.text);
            let ends = token.kind == Kind::Mark && matches!(token.text.as_str(), "," | ";" | "." | "(" | ")");
            if ends
                || (language.has(list::LINKS, &token.text)
                    && (!matches!(token.text.as_str(), "and" | "or") || is_verb(at)))
            {
                slot = "";
            } else if slot != "than" && token.is_word() && language.has(list::PREPOSITIONS, preposition) {
                slot = preposition;
            }
            slot
        })
        .collect()
}

/// `A acquired B`, `B acquired A`; but `B was acquired by A` is the first of them.
fn change_sides(a: &Reading, b: &Reading, shared: &[(usize, usize)], language: &Language) -> bool {
    let pivots = shared.iter().filter(|(one, other)| {
        // Lung cancer is cancer of the lung.
        let of = |text: &Reading, at: usize| text.tokens.get(at + 1).is_some_and(|next| next.is("of"));
        let by = agent(&a.tokens, *one, language).is_some() || agent(&b.tokens, *other, language).is_some();
        let alike = by || of(a, *one) == of(b, *other);
        is_pivot(a, *one, language) && is_pivot(b, *other, language) && alike
    });
    let copula = copula(a, language).zip(copula(b, language));
    pivots.copied().chain(copula).any(|(one, other)| {
        let (sides_a, sides_b) = (Sides::of(a, one, language), Sides::of(b, other, language));
        let (mut over, mut back) = (false, false);
        for (in_a, in_b) in shared {
            let sides = (sides_a.of_word(*in_a), sides_b.of_word(*in_b));
            over |= sides == (Some(Side::Doer), Some(Side::Done));
            back |= sides == (Some(Side::Done), Some(Side::Doer));
        }
        over && back
    })
}

/// `marry`, `share`, `differ`.
fn is_mutual(token: &Token, language: &Language) -> bool {
    let base = |form: &str| super::words::stem(form, language) == token.stem;
    language.has(list::MUTUAL, &token.text)
        || language.has(list::MUTUAL, &token.stem)
        || (token.is_word()
            && ["correlate", "associate", "relate", "collide", "combine", "share", "merge"]
                .into_iter()
                .any(base))
}

/// A word that two things may stand around: not one of a list, and none that holds both ways.
fn is_pivot(text: &Reading, at: usize, language: &Language) -> bool {
    let token = &text.tokens[at];
    let in_list = |place: Option<usize>| {
        place
            .and_then(|place| text.tokens.get(place))
            .is_some_and(|near| near.is(",") || (language.has(list::LINKS, &near.text)))
    };
    // Nouns: what is, and what an article stands before.
    let next = text.tokens.get(at + 1);
    let is = next.is_some_and(|next| language.has(list::BE, &next.text));
    let article = at.checked_sub(1).is_some_and(|before| {
        matches!(
            text.tokens[before].text.as_str(),
            "the" | "a" | "an" | "its" | "their" | "his" | "her" | "only"
        )
    });
    let noun = is || (article && !next.is_some_and(|next| next.is("of") || next.is("by")));
    let hangs =
        at.checked_sub(1).is_some_and(|before| language.has(list::PREPOSITIONS, &text.tokens[before].text));
    token.kind == Kind::Word
        && (!token.capital || token.opens)
        && !is_adverb(token)
        && !in_list(at.checked_sub(1))
        && !in_list(Some(at + 1))
        && !is_mutual(token, language)
        && !noun
        && !hangs
}

/// `is` of a sentence that says what all of a kind are.
fn copula(text: &Reading, language: &Language) -> Option<usize> {
    let mut found = text
        .tokens
        .iter()
        .enumerate()
        .filter(|(_, token)| token.is_word() && language.has(list::BE, &token.text));
    let (at, _) = found.next()?;
    let only = found.next().is_none();
    let article = text.tokens.get(at + 1).is_some_and(|next| matches!(next.text.as_str(), "a" | "an"));
    let all = text.tokens.iter().any(|token| language.quantifiers.get(&token.text) == Some(&"all"));
    (only && (article || all)).then_some(at)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Doer,
    Done,
}

/// On which side of a word the others stand.
struct Sides {
    sides: Vec<Option<Side>>,
}

impl Sides {
    fn of_word(&self, at: usize) -> Option<Side> {
        self.sides.get(at).copied().flatten()
    }

    fn of(text: &Reading, pivot: usize, language: &Language) -> Self {
        let tokens = &text.tokens;
        let agent = agent(tokens, pivot, language);
        // `France's capital is`: whose it is stands on the far side, as after `of`.
        let owner = pivot
            .checked_sub(1)
            .and_then(|last| (pivot.saturating_sub(3)..=last).find(|at| tokens[*at].owner))
            .filter(|_| !tokens.get(pivot + 1).is_some_and(|next| next.is("of")));
        // What was done to it is left of it, and who did it is not said.
        let unsaid = agent.is_none() && is_passive(tokens, pivot, language);
        let mut sides = vec![None; tokens.len()];
        let mut aside = false;
        for (at, token) in tokens.iter().enumerate() {
            if at == pivot {
                aside = false;
                continue;
            }
            // Time and place stand anywhere and say nothing.
            if token.is_word() && language.has(list::PREPOSITIONS, &token.text) {
                aside = language.has(list::CIRCUMSTANCE, &token.text);
            }
            if token.kind == Kind::Mark && token.is(",") {
                aside = false;
            }
            let left = at < pivot;
            if aside || is_adverb(token) || matches!(token.kind, Kind::Date(_)) || (unsaid && !left) {
                continue;
            }
            let doer = match agent {
                Some((from, to)) => (from..to).contains(&at),
                None => left && !unsaid && owner.is_none_or(|owner| at > owner),
            };
            sides[at] = Some(if doer { Side::Doer } else { Side::Done });
        }
        Self { sides }
    }
}

/// `severely`: says how, and stands anywhere.
fn is_adverb(token: &Token) -> bool {
    let noun = matches!(token.text.as_str(), "assembly" | "anomaly" | "monopoly" | "butterfly");
    token.is_word() && token.text.ends_with("ly") && token.text.len() > 6 && !noun
}

/// `was made`, `had been widely used`.
fn is_passive(tokens: &[Token], pivot: usize, language: &Language) -> bool {
    let word = &tokens[pivot].text;
    let participle = word.ends_with("ed") || word.ends_with("en") || language.irregular.contains_key(word);
    participle && (pivot.saturating_sub(4)..pivot).any(|at| language.has(list::BE, &tokens[at].text))
}

/// Who did it, where the sentence says so behind `by`: from where to where.
fn agent(tokens: &[Token], pivot: usize, language: &Language) -> Option<(usize, usize)> {
    let clause = |token: &Token| token.kind == Kind::Mark && matches!(token.text.as_str(), ";" | ".");
    let end = tokens.iter().skip(pivot).position(clause).map_or(tokens.len(), |length| pivot + length);
    let passive = is_passive(tokens, pivot, language);
    let nominal = tokens.get(pivot + 1).is_some_and(|next| next.is("of"));
    let is_agent = |at: usize| {
        let by = ["by", "von", "durch", "par", "por", "da", "dal", "dalla", "door"]
            .contains(&tokens[at].text.as_str());
        // By five percent, by raising taxes.
        let deed = |after: &Token| after.text.ends_with("ing") && after.stem != after.text && !after.capital;
        // Two players do it, five percent do not.
        let counted = tokens.get(at + 2).is_some_and(Token::is_word);
        let means = |after: &Token| match &after.kind {
            Kind::Amount(amount) => !amount.unit.is_empty() || !counted,
            _ => deed(after),
        };
        let how_much = ["average", "total", "mean", "factor", "margin", "median"];
        let by = by
            && tokens.get(at + 1).is_some_and(|after| !means(after))
            && !tokens.iter().skip(at + 1).take(2).any(|after| how_much.contains(&after.text.as_str()));
        by && (at == pivot + 1 || passive || nominal)
    };
    let by = (pivot + 1..end).find(|at| is_agent(*at))?;
    Some((by + 1, end))
}
