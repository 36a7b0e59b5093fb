//! What a fact itself says about what a name is the name of: `Ganymede is a moon`, `the island of Java`. It goes before what
//! the table knows, because many things share a name.

use okt_model::FoundBy;

use super::Mention;
use super::kinds::{self, PERSON};
use super::nouns::{self, Class};
use super::tokens::{Gap, Token};

/// How much a statement weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// It says what the thing is.
    Said,
    /// It fits where nothing else is known.
    Hint,
}

/// What a fact says of its names: the place of the mention, the class, and how much that weighs.
pub fn evidence(tokens: &[Token<'_>], mentions: &[Mention]) -> Vec<(usize, Class, Weight)> {
    let mut found = Vec::new();
    for (at, mention) in mentions.iter().enumerate().filter(|(_, mention)| mention.found_by == FoundBy::Name)
    {
        let (said, bracket) = defined(tokens, mention.tokens.end);
        let said = said.filter(|_| is_subject(tokens, mention.tokens.start));
        // `Amazon is a seller`: not all that is called like people is one.
        let one_word = mention.tokens.len() == 1 && !bracket;
        let said = said.or_else(|| kinds::after(tokens, &mention.tokens));
        found.extend(
            said.filter(|class| *class != PERSON || !one_word).map(|class| (at, class, Weight::Said)),
        );
        if let Some((class, many)) =
            before(tokens, mention.tokens.start).filter(|(class, _)| *class != PERSON)
        {
            let last = if many { end_of_list(tokens, mentions, at) } else { at };
            found.extend((at..=last).map(|at| (at, class, Weight::Said)));
        }
        if bracket && is_life(tokens, mention.tokens.end) {
            found.push((at, PERSON, Weight::Hint));
        }
        if made_by(tokens, mention.tokens.start) {
            let last = end_of_list(tokens, mentions, at);
            found.extend((at..=last).map(|at| (at, PERSON, Weight::Hint)));
        }
        if mention.class.is_none() && lies_in(tokens, mentions, at) {
            found.push((at, Class::Label("Settlement"), Weight::Hint));
        }
    }
    found
}

/// `X is a planet`, `X (1713–1794) was an Italian painter`; and whether a bracket follows the name.
fn defined(tokens: &[Token<'_>], end: usize) -> (Option<Class>, bool) {
    let is_verb = |at: usize| {
        tokens.get(at).is_some_and(|token| matches!(token.lower.as_str(), "is" | "was" | "are" | "were"))
    };
    let mut at = end;
    let bracket = tokens.get(at).is_some_and(|token| token.gap == Gap::Open) && !is_verb(at);
    if bracket {
        let close = tokens[at + 1..].iter().position(|token| token.gap == Gap::Close);
        at = close.map_or(tokens.len(), |close| at + 1 + close);
    }
    // The last word of a bracket is not what the sentence is about.
    let closes = tokens.get(at).is_some_and(|token| token.gap == Gap::Close) && !bracket;
    if !is_verb(at) || closes || tokens[at].gap == Gap::Comma {
        return (None, bracket);
    }
    let word = |at: usize| tokens.get(at).map_or("", |token| token.lower.as_str());
    let from = match (word(at + 1), word(at + 2), word(at + 3)) {
        ("one", "of", "the") => at + 4,
        ("a" | "an" | "the", _, _) => at + 2,
        _ => return (None, bracket),
    };
    (head(tokens, from), bracket)
}

/// Whether the first word of a sentence is said to be something that has a name: `Mercury is a planet`.
pub fn is_named_thing(tokens: &[Token<'_>], end: usize) -> bool {
    defined(tokens, end).0.is_some_and(kinds::is_named)
}

/// Whether a name begins the sentence, so that the sentence is about it and not about something that ends with it.
fn is_subject(tokens: &[Token<'_>], start: usize) -> bool {
    let article = start == 1 && matches!(tokens[0].lower.as_str(), "the" | "a" | "an");
    let place = start > 0 && tokens[start].gap == Gap::Comma && tokens[0].lower == "in" && start < 5;
    start == 0 || article || place
}

/// The class of the noun that a run of words ends with. Of two with `and` between them, people are what both are.
pub fn head(tokens: &[Token<'_>], from: usize) -> Option<Class> {
    let (first, end) = run(tokens, from);
    let more = tokens.get(end).is_some_and(|token| token.gap == Gap::None && token.lower == "and");
    let second = if more { run(tokens, end + 1).0 } else { None };
    second.filter(|class| *class == PERSON).or(first)
}

/// The class of the last noun of a run of words, and where the run ends.
fn run(tokens: &[Token<'_>], from: usize) -> (Option<Class>, usize) {
    let (mut last, mut at) = (None, from);
    while at < tokens.len().min(from + 9) {
        let token = &tokens[at];
        let kept = super::stop::is_quality(&token.lower)
            || matches!(token.lower.as_str(), "former" | "first" | "last");
        let parted = at > from && token.gap != Gap::None && (token.gap != Gap::Comma || last.is_some());
        if (token.is_stop() && !kept) || parted {
            break;
        }
        if !token.is_capital() && is_head(&token.lower) {
            last = Some(at);
        }
        if token.possessive {
            last = None;
        }
        at += 1;
    }
    let class = last.and_then(|last| {
        let whole = (last > from).then(|| format!("{} {}", tokens[last - 1].lower, tokens[last].lower));
        let listed = whole.and_then(|whole| nouns::find(&whole)).and_then(|noun| noun.common);
        match listed.filter(|class| class.label().is_some()) {
            Some(class) if kinds::is_person(class) => Some(PERSON),
            Some(class) => Some(class).filter(|class| kinds::has_names(*class)),
            None => kinds::called(&tokens[last].lower),
        }
    });
    (class, at)
}

/// A noun and nothing else; participles end what an article begins.
fn is_head(word: &str) -> bool {
    nouns::singular(word).is_some_and(|(_, noun)| !noun.verb)
}

/// `the island of Java`, `Jupiter's moon Ganymede`, `the moons Io and Europa`; and whether the noun is a plural.
fn before(tokens: &[Token<'_>], start: usize) -> Option<(Class, bool)> {
    let at = start.checked_sub(1)?;
    let of = tokens[at].lower == "of";
    let at = if of { at.checked_sub(1)? } else { at };
    if tokens[at + 1..=start].iter().any(|token| token.gap != Gap::None) {
        return None;
    }
    let noun = &tokens[at];
    let opened = at.checked_sub(1).is_some_and(|before| {
        let before = &tokens[before];
        before.possessive
            || matches!(before.lower.as_str(), "the" | "a" | "an")
            || before.is_capital()
            || before.has_digit()
    });
    let (one, _) = nouns::singular(&noun.lower)?;
    if noun.possessive || noun.is_capital() || noun.is_stop() || !(opened || of) {
        return None;
    }
    let vessel = Class::Label("Means of transportation");
    let class = kinds::called(&noun.lower).filter(|class| {
        kinds::is_named(*class) || *class == vessel || *class == Class::Label("Programming language")
    })?;
    let place =
        matches!(class, Class::Label("Settlement" | "Region" | "Country" | "Natural place" | "Planet"));
    // What is part of something else stands before `of` as well: `a moon of Jupiter`, `the coast of Java`.
    let same = matches!(
        one.as_str(),
        "city"
            | "town"
            | "village"
            | "island"
            | "isle"
            | "state"
            | "province"
            | "county"
            | "municipality"
            | "planet"
            | "republic"
            | "kingdom"
    );
    (!of || (place && same)).then_some((class, one != noun.lower))
}

/// The last of the names that are listed with the one at a place.
fn end_of_list(tokens: &[Token<'_>], mentions: &[Mention], at: usize) -> usize {
    let mut last = at;
    while let Some(next) = mentions.get(last + 1).filter(|next| next.found_by == FoundBy::Name) {
        let between = &tokens[mentions[last].tokens.end.min(next.tokens.start)..next.tokens.start];
        let comma = tokens[next.tokens.start].gap == Gap::Comma;
        let joined = match between {
            [] => comma,
            [and] => and.lower == "and" && matches!(and.gap, Gap::None | Gap::Comma),
            _ => false,
        };
        if !joined {
            break;
        }
        last += 1;
    }
    last
}

/// A bracket that says when somebody lived: `(born 1942)`.
fn is_life(tokens: &[Token<'_>], open: usize) -> bool {
    tokens.get(open).is_some_and(|token| matches!(token.lower.as_str(), "born" | "b"))
}

/// Works are directed and written by people.
fn made_by(tokens: &[Token<'_>], start: usize) -> bool {
    let word = |back: usize| start.checked_sub(back).map_or("", |at| tokens[at].lower.as_str());
    let verb = matches!(word(2), "directed" | "written" | "composed" | "sung" | "painted" | "portrayed");
    tokens[start].gap == Gap::None && (word(1) == "starring" || (word(1) == "by" && verb))
}

/// `in Galax, Virginia`.
fn lies_in(tokens: &[Token<'_>], mentions: &[Mention], at: usize) -> bool {
    let (own, Some(next)) = (&mentions[at], mentions.get(at + 1)) else { return false };
    let before = own.tokens.start.checked_sub(1).map_or("", |before| tokens[before].lower.as_str());
    let place = matches!(next.class, Some(Class::Label("Region" | "Country")));
    matches!(before, "in" | "at" | "near" | "from" | "to" | "of")
        && place
        && next.tokens.start == own.tokens.end
        && tokens[next.tokens.start].gap == Gap::Comma
}
