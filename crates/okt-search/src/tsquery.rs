//! Text forms that PostgreSQL casts with `::tsvector` and `::tsquery`, without a dictionary of its own.
//!
//! Every lexeme begins with a scope, a short name of the repository, so that each list of the index is about
//! one repository only and a search never reads those of others.

use std::collections::{BTreeMap, HashMap};

use crate::query::{Phrase, Term};
use crate::words::Word;

/// A tsvector counts no further.
const LAST_POSITION: u32 = 16_383;
/// A tsvector holds at most this many positions of a lexeme.
const MOST_POSITIONS: usize = 255;
/// A tsvector has less than 1 MiB. Its text form is never shorter than what is stored.
const MOST_BYTES: usize = 800_000;

/// What a text has to contain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expression {
    Term(Term),
    Phrase(Phrase),
    All(Vec<Expression>),
    Any(Vec<Expression>),
    Not(Box<Expression>),
}

/// A lexeme as it is stored.
pub fn scoped(scope: &str, lexeme: &str) -> String {
    format!("{scope}+{lexeme}")
}

/// The tsvector of a text. Where it would become too large, the lexemes that come first in the text are kept.
pub fn vector(words: &[Word], scope: &str) -> String {
    let mut bytes: usize = 0;
    let mut positions: HashMap<&str, Vec<u32>> = HashMap::new();
    for word in words {
        let position = word.position.clamp(1, LAST_POSITION);
        // A comma and at most five digits.
        let cost = 6;
        if let Some(known) = positions.get_mut(word.lexeme.as_str()) {
            let is_new = known.last() != Some(&position);
            if is_new && known.len() < MOST_POSITIONS && bytes + cost <= MOST_BYTES {
                bytes += cost;
                known.push(position);
            }
        } else {
            let cost = cost + quote(&scoped(scope, &word.lexeme)).len() + 2;
            if bytes + cost <= MOST_BYTES && !word.lexeme.is_empty() {
                bytes += cost;
                positions.insert(&word.lexeme, vec![position]);
            }
        }
    }
    let sorted: BTreeMap<&str, Vec<u32>> = positions.into_iter().collect();
    let entries = sorted.into_iter().map(|(lexeme, positions)| {
        let positions: Vec<String> = positions.iter().map(u32::to_string).collect();
        format!("{}:{}", quote(&scoped(scope, lexeme)), positions.join(","))
    });
    entries.collect::<Vec<_>>().join(" ")
}

/// The tsquery of an expression; empty, which finds nothing, if it says nothing.
pub fn query(expression: &Expression, scope: &str) -> String {
    written(expression, scope).unwrap_or_default()
}

fn written(expression: &Expression, scope: &str) -> Option<String> {
    match expression {
        Expression::Term(term) => alternatives(term, scope),
        Expression::Phrase(terms) => phrase(terms, scope),
        Expression::All(parts) => joined(parts.iter().filter_map(|part| written(part, scope)), " & "),
        Expression::Any(parts) => joined(parts.iter().filter_map(|part| written(part, scope)), " | "),
        Expression::Not(part) => written(part, scope).map(|part| format!("!{part}")),
    }
}

fn alternatives(term: &Term, scope: &str) -> Option<String> {
    let end = if term.prefix { ":*" } else { "" };
    let lexemes = term.alternatives.iter().filter(|lexeme| !lexeme.is_empty());
    joined(lexemes.map(|lexeme| format!("{}{end}", quote(&scoped(scope, lexeme)))), " | ")
}

/// `'a' <2> 'b'`: each distance is from the term before.
fn phrase(terms: &Phrase, scope: &str) -> Option<String> {
    let mut written: Vec<String> = Vec::new();
    let mut before = 0;
    for (at, term) in terms.iter().filter_map(|(at, term)| Some((*at, alternatives(term, scope)?))) {
        let distance = at.saturating_sub(before).clamp(1, LAST_POSITION);
        written.extend((!written.is_empty()).then(|| format!("<{distance}>")));
        written.push(term);
        before = at;
    }
    joined(written.into_iter(), " ")
}

/// In parentheses if there are several: nobody has to know which operator binds more.
fn joined(parts: impl Iterator<Item = String>, operator: &str) -> Option<String> {
    let parts: Vec<String> = parts.collect();
    match parts.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        _ => Some(format!("({})", parts.join(operator))),
    }
}

fn quote(lexeme: &str) -> String {
    format!("'{}'", lexeme.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words;

    fn word(lexeme: &str, position: u32) -> Word {
        Word { lexeme: lexeme.to_owned(), position, range: 0..0 }
    }

    fn term(lexemes: &[&str], prefix: bool) -> Term {
        let alternatives = lexemes.iter().map(|lexeme| (*lexeme).to_owned()).collect();
        Term { alternatives, prefix, optional: false }
    }

    #[test]
    fn a_vector_has_each_lexeme_once() {
        let text = "Dark matter, and dark energy.";
        assert_eq!(vector(&words(text, Some("en")), "r1"), "'r1+dark':1,4 'r1+energi':5 'r1+matter':2");
        assert_eq!(vector(&[], "r1"), "");
        assert_eq!(vector(&[word("o'b\\c", 1)], "r1"), "'r1+o''b\\\\c':1");
    }

    #[test]
    fn a_vector_stays_within_the_limits_of_postgresql() {
        let many: Vec<Word> = (1..=40_000).map(|at| word("a", at)).collect();
        assert_eq!(vector(&many, "r").split(',').count(), MOST_POSITIONS);
        assert_eq!(
            vector(&[word("a", 16_382), word("a", 20_000), word("a", 30_000)], "r"),
            "'r+a':16382,16383"
        );
        let wide: Vec<Word> = (0..100_000).map(|at| word(&format!("{:0>60}", 999_999 - at), at)).collect();
        let text = vector(&wide, "r");
        assert!((700_000..=MOST_BYTES).contains(&text.len()), "{}", text.len());
        assert!(text.contains("999999'"), "the words at the beginning are kept");
        let sorted: Vec<&str> = text.split(' ').collect();
        assert!(sorted.is_sorted());
    }

    #[test]
    fn an_expression_has_a_text() {
        let (plain, many) =
            (Expression::Term(term(&["a"], false)), Expression::Term(term(&["b", "c"], true)));
        let phrase = Expression::Phrase(vec![(0, term(&["x"], false)), (2, term(&["y", "z"], false))]);
        assert_eq!(query(&plain, "r"), "'r+a'");
        assert_eq!(query(&many, "r"), "('r+b':* | 'r+c':*)");
        assert_eq!(query(&phrase, "r"), "('r+x' <2> ('r+y' | 'r+z'))");
        let all = Expression::All(vec![
            phrase,
            Expression::Any(vec![plain.clone(), many]),
            Expression::Not(Box::new(plain.clone())),
        ]);
        assert_eq!(
            query(&all, "r"),
            "(('r+x' <2> ('r+y' | 'r+z')) & ('r+a' | ('r+b':* | 'r+c':*)) & !'r+a')"
        );
        assert_eq!(query(&Expression::Term(term(&["it's"], false)), "o'\\"), "'o''\\\\+it''s'");
    }

    #[test]
    fn what_says_nothing_is_left_out() {
        let nothing =
            || Expression::Any(vec![Expression::All(Vec::new()), Expression::Term(term(&[], false))]);
        assert_eq!(query(&nothing(), "r"), "");
        let all = Expression::All(vec![
            Expression::Not(Box::new(nothing())),
            nothing(),
            Expression::Term(term(&["a"], false)),
        ]);
        assert_eq!(query(&all, "r"), "'r+a'");
    }
}
