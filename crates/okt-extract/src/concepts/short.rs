//! Abbreviations and other names that a fact introduces.

use std::ops::Range;

use super::names::written;
use super::tokens::{Gap, Token};

/// `deoxyribonucleic acid (DNA)`, or the other way round.
#[derive(Debug, PartialEq, Eq)]
pub struct Definition {
    pub short: String,
    /// The words of the long form.
    pub long: Range<usize>,
    pub text: String,
}

/// The abbreviations that a fact introduces.
pub fn definitions(tokens: &[Token<'_>]) -> Vec<Definition> {
    let closes = |at: usize| tokens.get(at).is_none_or(|next| next.gap != Gap::None);
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate().skip(1) {
        if token.gap != Gap::Open {
            continue;
        }
        if is_short(token) && closes(at + 1) {
            let most = token.text.chars().count() + 5;
            let run = tokens[..at].iter().rev().take(most);
            // The long form does not reach over a comma or another bracket.
            let reach = tokens[..at].iter().rposition(|before| before.gap != Gap::None).unwrap_or(0);
            let first = at - run.count();
            found.extend(long_form(tokens, first.max(reach)..at, token.text));
        } else if is_short(&tokens[at - 1]) && !token.is_number() {
            let end =
                (at + 1..tokens.len()).find(|next| tokens[*next].gap != Gap::None).unwrap_or(tokens.len());
            let whole = long_form(tokens, at..end, tokens[at - 1].text);
            found.extend(whole.filter(|definition| definition.long.start == at));
        }
    }
    found
}

fn is_short(token: &Token<'_>) -> bool {
    let length = token.text.chars().count();
    let capitals = token.text.chars().filter(|c| c.is_uppercase()).count();
    (2..=8).contains(&length) && capitals * 2 > length && capitals > 1
}

/// The shortest run of words before a place that has the letters of an abbreviation in their order, the first of them at
/// the beginning of its first word (after Schwartz and Hearst).
fn long_form(tokens: &[Token<'_>], within: Range<usize>, short: &str) -> Option<Definition> {
    let letters: Vec<char> =
        short.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    let start = within.clone().rev().find(|start| {
        let starts = tokens[*start].lower.chars().next() == letters.first().copied();
        let text: String = tokens[*start..within.end].iter().map(|token| token.lower.as_str()).collect();
        starts && has_in_order(&text, &letters) && text.chars().count() > letters.len() * 2
    })?;
    let long = start..within.end;
    let text = written(tokens, &long);
    // A first word that has its capital from the sentence.
    let text = if tokens[start].first && !tokens[start + 1..within.end].iter().any(Token::is_capital) {
        text.to_lowercase()
    } else {
        text
    };
    Some(Definition { short: short.to_owned(), long, text })
}

fn has_in_order(text: &str, letters: &[char]) -> bool {
    let mut rest = letters.iter().peekable();
    for c in text.chars() {
        if rest.peek().is_some_and(|letter| **letter == c) {
            rest.next();
        }
    }
    rest.peek().is_none()
}

/// Whether an abbreviation may stand for a name.
pub fn abbreviates(short: &str, long: &str) -> bool {
    let tokens = super::tokens::tokens(short);
    let [token] = &tokens[..] else { return false };
    let words = super::tokens::tokens(long);
    is_short(token)
        && long_form(&words, 0..words.len(), token.text).is_some_and(|definition| definition.long.start == 0)
}

/// Whether the words between two names say that both are names of one thing.
pub fn says_alias(between: &[Token<'_>]) -> bool {
    let words: Vec<&str> = between.iter().map(|token| token.lower.as_str()).collect();
    let said = [
        "also known as",
        "also called",
        "known as",
        "better known as",
        "formerly known as",
        "then known as",
        "later known as",
        "later",
        "now",
        "formerly",
        "née",
        "alias",
    ];
    said.contains(&words.join(" ").as_str())
}

#[cfg(test)]
mod tests {
    use super::super::tokens::tokens;
    use super::*;

    fn defined(fact: &str) -> Vec<(String, String)> {
        definitions(&tokens(fact)).into_iter().map(|found| (found.short, found.text)).collect()
    }

    #[test]
    fn abbreviations_are_found_with_what_they_stand_for() {
        for (fact, short, long) in [
            ("Deoxyribonucleic acid (DNA) carries genes.", "DNA", "deoxyribonucleic acid"),
            ("Growth is slowed by transforming growth factor (TGF).", "TGF", "transforming growth factor"),
            ("The European Space Agency (ESA) built it.", "ESA", "European Space Agency"),
            ("The ESA (European Space Agency) built it.", "ESA", "European Space Agency"),
            ("In 1998, the water framework directive (WFD) was passed.", "WFD", "water framework directive"),
        ] {
            assert_eq!(defined(fact), [(short.to_owned(), long.to_owned())], "{fact}");
        }
    }

    #[test]
    fn other_brackets_introduce_nothing() {
        for fact in [
            "The fleet (USA) was lost.",
            "Garden snails (Cornu aspersum) crawl.",
            "It fell (see Fig. 2).",
            "(DNA)",
            "",
        ] {
            assert_eq!(defined(fact), [], "{fact}");
        }
        assert!(
            abbreviates("DNA", "deoxyribonucleic acid")
                && !abbreviates("DNA", "honey")
                && !abbreviates("honey", "hot one y")
        );
    }
}
