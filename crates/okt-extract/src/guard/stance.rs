//! How one statement stands to another about the same: what they share, whether both can be true, and what one says that the
//! other does not bear out.
//!
//! [`compare`](super::compare) names a difference wherever it finds one, so that two facts stay two. Here a difference counts
//! only where it is all that keeps two statements apart, and where it stands in what is said and not in what it is said of:
//! "the northern bridge was closed" and "the southern bridge was closed" may both be true.

use std::collections::HashSet;
use std::ops::Range;

use okt_model::Difference;

use super::amounts::{self, Amount, Bound};
use super::direction::{Conflict, conflicts};
use super::once::{is_of_any, is_of_one, is_once};
use super::polarity::{self, Negations};
use super::reading::Reading;
use super::tables::{self, Language, common, list};
use super::words::{Kind, Token};
use super::{MOST_BYTES, MOST_TOKENS, names, quantifiers, roles, whole_dates};

/// Two statements, read in the language that they have in common.
pub(crate) struct Statements {
    language: &'static Language,
    sentence: Reading,
    fact: Reading,
    /// Marks of negation in scripts without tables.
    marks: (usize, usize),
}

/// What two statements share, in words with content.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Shared {
    pub words: usize,
    /// Of the words of the one that has fewer.
    pub share: f32,
    /// Of the words of the sentence.
    pub of_sentence: f32,
}

impl Statements {
    /// `None` for texts that are too long to be statements.
    pub(crate) fn of(sentence: &str, fact: &str) -> Option<Self> {
        if sentence.len().max(fact.len()) > MOST_BYTES {
            return None;
        }
        let language = tables::language(sentence, fact);
        let marks = (polarity::markers(sentence), polarity::markers(fact));
        let (sentence, fact) = (Reading::of(sentence, language), Reading::of(fact, language));
        let short = sentence.tokens.len().max(fact.tokens.len()) <= MOST_TOKENS;
        short.then_some(Self { language, sentence, fact, marks })
    }

    pub(crate) fn shared(&self) -> Shared {
        let (sentence, fact): (HashSet<&str>, HashSet<&str>) =
            (self.sentence.content().collect(), self.fact.content().collect());
        let words = sentence.intersection(&fact).count();
        let ratio = |of: usize| if of == 0 { 0.0 } else { float(words) / float(of) };
        Shared { words, share: ratio(sentence.len().min(fact.len())), of_sentence: ratio(sentence.len()) }
    }

    /// Whether the same words stand in the same order, written alike but for signs and the case of the first of a sentence.
    pub(crate) fn are_one_wording(&self) -> bool {
        let words = |text: &Reading| -> Vec<(String, Kind)> {
            let plain = text.tokens.iter().filter(|token| token.kind != Kind::Mark);
            plain
                .map(|token| {
                    (if token.opens { token.text.clone() } else { token.raw.clone() }, token.kind.clone())
                })
                .collect()
        };
        self.marks.0 == self.marks.1 && words(&self.sentence) == words(&self.fact)
    }

    /// The one difference that lets only one of both be true.
    pub(crate) fn contradiction(&self) -> Option<Difference> {
        let Self { language, sentence: a, fact: b, .. } = self;
        let of_any = language.english && (is_of_any(a) || is_of_any(b));
        if self.is_loose() || of_any || a.tokens.len() < 2 {
            return None;
        }
        let denied = (Negations::of(a, b, language), Negations::of(b, a, language));
        let (of_a, of_b) = (items(a, b, language), items(b, a, language));
        let fits = denied.0.fits(&denied.1) && self.marks.0 == self.marks.1;
        let middle = middle((a, &of_a), (b, &of_b));
        let single = |range: &Range<usize>, of: &[usize]| (range.len() == 1).then(|| of[range.start]);
        if middle.0.is_empty() && middle.1.is_empty() {
            // Said of everything, or of something that both mean.
            let count = denied.0.count.abs_diff(denied.1.count) == 1 || self.marks.0.min(self.marks.1) == 0;
            let plain = [(a, b), (b, a)].into_iter().all(|(text, other)| denies_all(text, other, language));
            return (!fits && count && plain && of_a.len() > 1).then_some(Difference::Negation);
        }
        let turned =
            fits && a.has("than") && b.has("than") && have_same(a, b) && roles::are_swapped(a, b, language);
        if turned {
            return Some(Difference::Roles);
        }
        let pair = single(&middle.0, &of_a).zip(single(&middle.1, &of_b));
        let Some((one, other)) = pair else { return self.dates_differ() };
        let (in_a, in_b) = (&a.tokens[one], &b.tokens[other]);
        match (&in_a.kind, &in_b.kind) {
            (Kind::Amount(x), Kind::Amount(y)) if fits => {
                let both = counts(a, one, language) && counts(b, other, language);
                let rough = [(a, one), (b, other)].into_iter().any(|(text, at)| is_about(text, at, language));
                let found = if x.unit == y.unit { Difference::Number } else { Difference::Unit };
                // A year may stand without a word for it.
                let year =
                    |amount: &Amount| amount.unit.is_empty() && (1000.0..2100.0).contains(&amount.value);
                let of_one = language.english
                    || !(year(x) && year(y))
                    || (is_of_one(a, one, language) && is_of_one(b, other, language));
                (both && of_one && excludes(x, y, rough)).then_some(found)
            }
            (Kind::Date(_), Kind::Date(_)) if fits => self.dates_differ(),
            (Kind::Word, Kind::Word) => {
                let said = is_said(a, one, language) && is_said(b, other, language);
                let opposite = fits && is_opposite(a, b, (one, other), language);
                // Effective, ineffective.
                let denied = !fits
                    && denied.0.count.abs_diff(denied.1.count) == 1
                    && (polarity::is_made_negative(in_a, a, b, language)
                        || polarity::is_made_negative(in_b, b, a, language));
                match (said && opposite, said && denied) {
                    (true, _) => Some(Difference::Direction),
                    (_, true) => Some(Difference::Negation),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// What happens once has one date.
    fn dates_differ(&self) -> Option<Difference> {
        let Self { language, sentence: a, fact: b, .. } = self;
        let (of_a, of_b) = (items(a, b, language), items(b, a, language));
        let date = |text: &Reading, of: &[usize]| -> Option<usize> {
            let mut dates =
                of.iter().enumerate().filter(|(_, at)| matches!(text.tokens[**at].kind, Kind::Date(_)));
            let (place, _) = dates.next()?;
            dates.next().is_none().then_some(place)
        };
        let (place_a, place_b) = (date(a, &of_a)?, date(b, &of_b)?);
        let (Kind::Date(one), Kind::Date(other)) =
            (&a.tokens[of_a[place_a]].kind, &b.tokens[of_b[place_b]].kind)
        else {
            return None;
        };
        let same = |x: &[usize], y: &[usize]| {
            x.len() == y.len() && x.iter().zip(y).all(|(x, y)| is_same(&a.tokens[*x], &b.tokens[*y]))
        };
        // The same was done before the date, of the same; what follows may be more in one of them.
        let done = |text: &Reading, of: &[usize]| -> usize {
            let places =
                of.iter().rev().take_while(|at| language.has(list::PREPOSITIONS, &text.tokens[**at].text));
            of.len() - places.take(1).count()
        };
        let (done_a, done_b) = (done(a, &of_a[..place_a]), done(b, &of_b[..place_b]));
        let before = same(&of_a[..done_a], &of_b[..done_b]);
        let (rest_a, rest_b) = (&of_a[place_a + 1..], &of_b[place_b + 1..]);
        let behind = rest_a.is_empty() || rest_b.is_empty() || same(rest_a, rest_b);
        // In English the verb is looked for with what is done to what: see `is_of_one`.
        let far = if language.english { done_a } else { 2 };
        let near = of_a[..done_a].iter().rev().take(far).chain(rest_a.iter().take(1));
        let single = near.into_iter().any(|at| is_once(&a.tokens[*at]));
        let denied = Negations::of(a, b, language).count + Negations::of(b, a, language).count > 0;
        let of_one = is_of_one(a, of_a[place_a], language) && is_of_one(b, of_b[place_b], language);
        (before && behind && single && !denied && of_one && one.excludes(other)).then_some(Difference::Date)
    }

    /// Some of them, or maybe: the rest of them may be otherwise.
    fn is_loose(&self) -> bool {
        const SOMETIMES: [&str; 8] =
            ["sometimes", "often", "occasionally", "frequently", "partly", "partially", "usually", "mainly"];
        let language = self.language;
        let loose = |token: &Token| {
            let class = language.quantifiers.get(&token.text).copied().unwrap_or_default();
            token.is_word()
                && (matches!(class, "some" | "several" | "many" | "few" | "most" | "only")
                    || language.has(list::MAYBE, &token.text)
                    || SOMETIMES.contains(&token.text.as_str()))
        };
        self.sentence.tokens.iter().chain(&self.fact.tokens).any(loose)
    }

    /// What the sentence says and the fact does not bear out, whatever else both have in common.
    pub(crate) fn unborne(&self) -> Option<Difference> {
        let Self { language, sentence, fact, marks } = self;
        let denied = (Negations::of(sentence, fact, language), Negations::of(fact, sentence, language));
        let fits = denied.0.fits(&denied.1) && marks.0 == marks.1;
        // Where few words are shared, what one of them denies may be what the other says in words of its own.
        let near = self.shared().of_sentence >= 0.75;
        let is_new_name = |at: usize| {
            let lone = names::is_lone(sentence, at, fact, language);
            language.english && !sentence.is_titled() && lone
        };
        if self.has_new_amount() {
            Some(Difference::Number)
        } else if whole_dates(sentence).iter().any(|said| {
            let known = fact.dates().iter().any(|date| date.fits(said) || date.tells(said));
            let counted = fact.amounts().iter().any(|amount| said.count() == Some(amount.value));
            !known && !counted
        }) {
            Some(Difference::Date)
        } else if (0..sentence.tokens.len()).any(is_new_name) || names::has_new_code(sentence, fact) {
            Some(Difference::Name)
        } else if near && !fits {
            Some(Difference::Negation)
        } else if near && fits && self.turns_around() {
            Some(Difference::Direction)
        } else if quantifiers::is_less_sure(fact, sentence, language) {
            Some(Difference::Certainty)
        } else if language.english
            && self.shared().of_sentence >= 0.8
            && roles::are_swapped(sentence, fact, language)
        {
            Some(Difference::Roles)
        } else {
            None
        }
    }

    /// Whether the sentence denies something.
    pub(crate) fn sentence_denies(&self) -> bool {
        self.marks.0 > 0 || Negations::of(&self.sentence, &self.fact, self.language).count > 0
    }

    /// Whether the fact denies something.
    pub(crate) fn fact_denies(&self) -> bool {
        self.marks.1 > 0 || Negations::of(&self.fact, &self.sentence, self.language).count > 0
    }

    /// Who buys it is sold it; but what rises does not fall.
    fn turns_around(&self) -> bool {
        let found = conflicts(&self.sentence, &self.fact);
        !found.is_empty() && found.iter().all(|conflict| !common().axes[conflict.axis].converse)
    }

    fn has_new_amount(&self) -> bool {
        let Self { language, sentence, fact, .. } = self;
        let (known, dates, all) = (fact.amounts(), fact.dates(), sentence.amounts());
        // What is another of the sentence's numbers says nothing of this one.
        let free: Vec<&Amount> =
            known.iter().filter(|known| !all.iter().any(|said| known.fits(said))).collect();
        sentence.tokens.iter().enumerate().any(|(at, token)| {
            let Kind::Amount(said) = &token.kind else { return false };
            let rough = is_about(sentence, at, language);
            let is_date = dates.iter().any(|date| date.count() == Some(said.value));
            let borne = known.iter().any(|known| known.fits(said))
                || free.iter().any(|known| bears_out(known, said, rough));
            !said.soft && !is_date && !borne
        })
    }

    /// Whether they speak of two times, or of two things by name, so that what is opposite of them is no contradiction.
    pub(crate) fn speak_of_others(&self) -> bool {
        let Self { language, sentence, fact, .. } = self;
        let denied = (Negations::of(sentence, fact, language), Negations::of(fact, sentence, language));
        let (said, known) = (sentence.amounts(), fact.amounts());
        let other_amount = !said.is_empty()
            && !known.is_empty()
            && !said.iter().any(|one| known.iter().any(|other| other.fits(one)));
        let opposite = !denied.0.fits(&denied.1)
            || self.marks.0 != self.marks.1
            || other_amount
            || !conflicts(sentence, fact).is_empty();
        let (dates_a, dates_b) = (whole_dates(sentence), whole_dates(fact));
        let apart =
            |one: &super::Date, other: &super::Date| one.fits(other) || one.tells(other) || other.tells(one);
        let other_time = !dates_a.is_empty()
            && !dates_b.is_empty()
            && !dates_a.iter().any(|one| dates_b.iter().any(|other| apart(one, other)));
        let lone = |text: &Reading, other: &Reading| {
            !text.is_titled() && (0..text.tokens.len()).any(|at| names::is_lone(text, at, other, language))
        };
        let other_name = language.english && lone(sentence, fact) && lone(fact, sentence);
        let others = match (lone_subject(sentence, language), lone_subject(fact, language)) {
            (Some(one), Some(other)) => one.stem != other.stem,
            _ => false,
        };
        opposite && (other_time || other_name || others)
    }

    /// Whether both are in one language, as far as their words tell.
    pub(crate) fn are_of_one_language(sentence: &str, fact: &str) -> bool {
        std::ptr::eq(tables::language(sentence, ""), tables::language(fact, ""))
    }
}

/// `Halden` of `Halden has 24 turbines`: an English text begins with one bare word, and says of it what it is or has. As the first word it
/// has a capital in any case, so nothing else shows that it is a name.
fn lone_subject<'t>(text: &'t Reading, language: &Language) -> Option<&'t Token> {
    let [first, verb, ..] = text.tokens.as_slice() else { return None };
    let is_said = language.has(list::BE, &verb.text) || matches!(verb.text.as_str(), "has" | "have" | "had");
    let is_bare = first.is_word() && first.capital && !language.has(list::SMALL, &first.text);
    (language.english && is_said && is_bare).then_some(first)
}

fn float(count: usize) -> f32 {
    f32::from(u16::try_from(count).unwrap_or(u16::MAX))
}

/// The words, numbers and dates of a text by their place, without what denies, articles and fillers.
fn items(text: &Reading, other: &Reading, language: &Language) -> Vec<usize> {
    const FILLERS: [&str; 11] = [
        "a",
        "an",
        "the",
        "also",
        "however",
        "thus",
        "therefore",
        "moreover",
        "furthermore",
        "indeed",
        "hence",
    ];
    let explicit = |at: usize| {
        let token = &text.tokens[at];
        language.has(list::NEGATIONS | list::HALF_NOT | list::BEFORE_NOT, &token.text)
            && (polarity::is_negation(text, at, other, language)
                || language.has(list::BEFORE_NOT, &token.text))
    };
    let filler = |token: &Token| {
        language.english && FILLERS.contains(&token.text.as_str()) && (!token.capital || token.opens)
    };
    let helps = |token: &Token| language.english && matches!(token.text.as_str(), "do" | "does" | "did");
    let marks = |token: &Token| polarity::markers(&token.raw) > 0;
    let says = |at: &usize| {
        let token = &text.tokens[*at];
        let kept = !(token.is_word() && (filler(token) || helps(token) || marks(token)));
        token.kind != Kind::Mark && !explicit(*at) && kept
    };
    (0..text.tokens.len()).filter(says).collect()
}

/// What is left of both when what they begin and end with alike is taken away.
fn middle((a, of_a): (&Reading, &[usize]), (b, of_b): (&Reading, &[usize])) -> (Range<usize>, Range<usize>) {
    let same = |x: usize, y: usize| is_same(&a.tokens[x], &b.tokens[y]);
    let least = of_a.len().min(of_b.len());
    let begin = (0..least).take_while(|at| same(of_a[*at], of_b[*at])).count();
    let end =
        (1..=least - begin).take_while(|back| same(of_a[of_a.len() - back], of_b[of_b.len() - back])).count();
    (begin..of_a.len() - end, begin..of_b.len() - end)
}

fn is_same(one: &Token, other: &Token) -> bool {
    match (&one.kind, &other.kind) {
        (Kind::Amount(x), Kind::Amount(y)) => x.fits(y),
        (Kind::Date(x), Kind::Date(y)) => x.fits(y),
        (Kind::Word, Kind::Word) => {
            let group = |token: &Token| common().synonyms.get(&token.stem);
            let synonyms = || {
                let groups = group(one).zip(group(other));
                groups.is_some_and(|(x, y)| x.iter().any(|group| y.contains(group)))
            };
            one.owner == other.owner
                && (one.stem == other.stem || (!one.capital && !other.capital && synonyms()))
        }
        (x, y) => x == y && one.text == other.text,
    }
}

/// The same words, in whatever order.
fn have_same(a: &Reading, b: &Reading) -> bool {
    a.content_only(b) == 0 && b.content_only(a) == 0
}

/// Whether what denies in a text denies all of it. `Non-smokers` are others than smokers, and one man who did not come is not
/// another who did.
fn denies_all(text: &Reading, other: &Reading, language: &Language) -> bool {
    const PART: [&str; 11] =
        ["non", "without", "lack", "lacks", "lacked", "lacking", "neither", "nor", "sans", "ohne", "free"];
    let part = |at: usize| {
        let token = &text.tokens[at];
        let glued = text.tokens.get(at + 1).is_some_and(|next| next.glued);
        let other_way = PART.contains(&token.text.as_str()) && (language.english || token.text != "non");
        polarity::is_negation(text, at, other, language) && (glued || other_way)
    };
    let be = text.tokens.iter().any(|token| token.is_word() && language.has(list::BE, &token.text));
    let someone = text.tokens.first().is_some_and(|first| matches!(first.text.as_str(), "a" | "an"));
    !(0..text.tokens.len()).any(part) && (be || !someone || !language.english)
}

/// Whether a word is what is said, and not what it is said of: `is higher`, `reduces the risk`, but not `at high doses`.
fn is_said(text: &Reading, at: usize, language: &Language) -> bool {
    const ADVERBS: [&str; 5] = ["very", "more", "much", "also", "always"];
    let token = &text.tokens[at];
    let mut before = text.tokens[..at].iter().rev().filter(|token| {
        let adverb = token.text.ends_with("ly") || ADVERBS.contains(&token.text.as_str());
        token.kind != Kind::Mark && !adverb && !language.has(list::NEGATIONS, &token.text)
    });
    let Some(before) = before.next() else { return false };
    let helps =
        matches!(before.text.as_str(), "has" | "have" | "had" | "will" | "would" | "does" | "did" | "do");
    if before.is_word() && (language.has(list::BE, &before.text) || helps) {
        // The last, or before the preposition that goes on: `is illegal in Ulm`, but not `is a high tower`.
        return text.tokens.get(at + 1).is_none_or(|next| {
            next.kind == Kind::Mark
                || !next.is_word()
                || language.has(list::SMALL | list::PREPOSITIONS, &next.text)
        });
    }
    if !before.is_word() || language.has(list::SMALL | list::PREPOSITIONS, &before.text) {
        return false;
    }
    let next = text.tokens.get(at + 1);
    if !language.english {
        return next.is_none_or(|next| !language.has(list::BE, &next.text));
    }
    let inflected = (token.text.ends_with('s') && !token.text.ends_with("ss"))
        || token.text.ends_with("ed")
        || language.irregular.contains_key(&token.text);
    let plural = before.text.ends_with('s') && !before.text.ends_with("ss");
    // Tax increases helped: what rose there is no verb.
    let goes_on = next.is_none_or(|next| {
        let verb = next.text.ends_with("ed") || language.irregular.contains_key(&next.text);
        !(next.is_word() && (verb || language.has(list::BE, &next.text)))
    });
    (inflected || plural) && goes_on
}

/// Two ends of one axis between which nothing else lies.
fn is_opposite(a: &Reading, b: &Reading, (one, other): (usize, usize), language: &Language) -> bool {
    let can = |text: &Reading| ["can", "could", "help", "helps"].iter().any(|word| text.has(word));
    let found = conflicts(a, b);
    let same_degree = is_compared(a, one, language) == is_compared(b, other, language);
    let here = |conflict: &Conflict| conflict.at == (one, other) && !common().axes[conflict.axis].converse;
    !found.is_empty() && found.iter().all(here) && !(language.english && (can(a) || can(b))) && same_degree
}

/// `less likely` is not `likely`.
fn is_compared(text: &Reading, at: usize, language: &Language) -> bool {
    at.checked_sub(1).is_some_and(|before| language.has(list::DEGREES, &text.tokens[before].text))
}

/// What has a capital has a number for a name, and so have these.
const NUMBERED: [&str; 24] = [
    "group", "phase", "type", "stage", "grade", "class", "chapter", "part", "section", "figure", "table",
    "number", "no", "day", "week", "month", "year", "level", "version", "step", "line", "room", "model",
    "page",
];

/// Whether a number says how many there are, and not which of them, nor under which condition: not `Group 2`, not `at 5 mg`.
fn counts(text: &Reading, at: usize, language: &Language) -> bool {
    let Kind::Amount(amount) = &text.tokens[at].kind else { return false };
    // The 18th is one of many.
    if amount.ordinal {
        return false;
    }
    let earlier = |words: &[&str]| text.tokens[..at].iter().any(|token| words.contains(&token.text.as_str()));
    let has = [
        "is",
        "are",
        "was",
        "were",
        "has",
        "have",
        "had",
        "consists",
        "comprises",
        "includes",
        "contains",
        "totals",
    ];
    let be = text.tokens[..at].iter().any(|token| token.is_word() && language.has(list::BE, &token.text));
    let Some(before) = text.tokens[..at].iter().rev().find(|token| !language.has(list::ABOUT, &token.text))
    else {
        // Five ferries sank; but 5 mg of it do more than 1 mg.
        return amount.unit.is_empty() && text.tokens.get(at + 1).is_some_and(Token::is_word);
    };
    let word = before.text.as_str();
    if before.is_word() && language.has(list::PREPOSITIONS, word) {
        return match word {
            "of" | "de" | "von" | "van" | "di" => be || earlier(&has),
            "to" | "by" | "auf" | "um" => true,
            _ => false,
        };
    }
    let said = |token: &Token| {
        token.is_word() && (language.has(list::BE, &token.text) || has.contains(&token.text.as_str()))
    };
    if matches!(word, "a" | "an" | "the") {
        // It is a 300 m tower; but the 100 m and the 200 m are two races.
        let place = text.tokens[..at].iter().rposition(|token| std::ptr::eq(token, before));
        let mut earlier = text.tokens[..place.unwrap_or(0)].iter().rev();
        return earlier.find(|token| !language.has(list::ABOUT, &token.text)).is_some_and(said);
    }
    if said(before) {
        return true;
    }
    let plural = text.tokens.get(at + 1).is_some_and(|next| {
        next.is_word()
            && (next.text.ends_with('s')
                || matches!(next.text.as_str(), "people" | "men" | "women" | "children")
                || !language.english)
    });
    let named = before.capital || NUMBERED.contains(&word) || before.kind == Kind::Code;
    !named && (plural || !amount.unit.is_empty())
}

/// About so many.
fn is_about(text: &Reading, at: usize, language: &Language) -> bool {
    const ROUGH: [&str; 6] = ["almost", "nearly", "roughly", "some", "circa", "estimated"];
    let near = text.tokens[at.saturating_sub(2)..at].iter();
    near.rev().any(|token| language.has(list::ABOUT, &token.text) || ROUGH.contains(&token.text.as_str()))
}

/// Whether only one of two amounts can be right: not where one is the other, rounded.
fn excludes(one: &Amount, other: &Amount, rough: bool) -> bool {
    let (x, y) = (one.value, other.value);
    let near = rough && (x - y).abs() <= 0.2 * x.abs().max(y.abs());
    if near || amounts::are_rounded(one, other) {
        return false;
    }
    let above = |bound| matches!(bound, Bound::More | Bound::AtLeast);
    let below = |bound| matches!(bound, Bound::Less | Bound::AtMost);
    match (one.bound, other.bound) {
        (Bound::None, Bound::None) => true,
        (bound, Bound::None) if above(bound) => y < x,
        (bound, Bound::None) if below(bound) => y > x,
        (Bound::None, bound) if above(bound) => x < y,
        (Bound::None, bound) if below(bound) => x > y,
        (first, second) if above(first) && below(second) => y <= x,
        (first, second) if below(first) && above(second) => x <= y,
        _ => false,
    }
}

/// Whether so many are as many as somebody says. Two bounds have to be one: who is older than 65 may not be older than 80.
fn bears_out(known: &Amount, said: &Amount, rough: bool) -> bool {
    let (x, y) = (known.value, said.value);
    let within = match (known.bound, said.bound) {
        (Bound::None, Bound::None) => !excludes(known, said, rough),
        (Bound::None, Bound::More) => x > y,
        (Bound::None, Bound::AtLeast | Bound::Floor) => x >= y,
        (Bound::None, Bound::Less) => x < y,
        (Bound::None, Bound::AtMost | Bound::Ceiling) => x <= y,
        _ => false,
    };
    within && known.has_unit_of(said)
}
