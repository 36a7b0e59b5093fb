//! In which steps a query is answered, so that no step reads more of the index than it has to.
//!
//! First every term is required. If that finds too little, any of the rare terms is enough. Frequent terms
//! never lead: a list of half of all texts costs a second and says nothing about which of them is meant.

use std::collections::HashMap;
use std::hash::BuildHasher;

use crate::query::{Phrase, Query, Term};
use crate::tsquery::Expression;

/// How many rows the lists of a step may have together, unless more candidates are wanted.
pub const BUDGET: u64 = 20_000;

/// What to ask for, step by step, until `wanted` candidates are found. Phrases and exceptions hold in every
/// step. Empty if there is nothing to look for.
///
/// `frequencies` has the number of texts for each of [`Term::keys`]. What it lacks is in no text, except a
/// prefix: that is then of unknown frequency, is required, and never leads.
pub fn plan(
    query: &Query,
    frequencies: &HashMap<String, u64, impl BuildHasher>,
    documents: u64,
    wanted: u64,
) -> Vec<Expression> {
    let budget = BUDGET.max(wanted);
    let leading = leading(query, frequencies);
    let mut steps = Vec::new();
    let required = required(query, &leading);
    if required.is_empty() && query.phrases.is_empty() {
        return steps;
    }
    steps.push(step(query, required.iter().map(|term| Expression::Term((*term).clone())).collect()));
    let rarest_phrase = query.phrases.iter().filter_map(|phrase| rows(phrase, frequencies)).min();
    let wider = if rarest_phrase.is_some_and(|rows| rows <= budget) {
        // A rare phrase is enough; the terms rank what has it.
        Some(step(query, Vec::new()))
    } else {
        any(&leading, documents, budget).map(|any| step(query, vec![any]))
    };
    steps.extend(wider.filter(|wider| !steps.contains(wider)));
    steps
}

/// A term and the number of texts that have it, if known.
type Counted<'a> = (&'a Term, Option<u64>);

/// The terms that have something to say. Those that some language leaves out count only where there are no
/// others.
fn leading<'a>(query: &'a Query, frequencies: &HashMap<String, u64, impl BuildHasher>) -> Vec<Counted<'a>> {
    let all_optional = query.phrases.is_empty() && query.terms.iter().all(|term| term.optional);
    let terms = query.terms.iter().filter(|term| all_optional || !term.optional);
    terms.map(|term| (term, frequency(term, frequencies))).collect()
}

/// What is in no text is not required, as long as anything else is.
fn required<'a>(query: &Query, leading: &[Counted<'a>]) -> Vec<&'a Term> {
    let found: Vec<&Term> =
        leading.iter().filter(|(_, rows)| *rows != Some(0)).map(|(term, _)| *term).collect();
    if !found.is_empty() || !query.phrases.is_empty() {
        return found;
    }
    // The counts may be older than the texts: nothing at all is worth one look at empty lists.
    leading.iter().map(|(term, _)| *term).collect()
}

/// Any of the rare terms, rarest first, as long as their lists fit into the budget together.
fn any(leading: &[Counted<'_>], documents: u64, budget: u64) -> Option<Expression> {
    let mut counted: Vec<(u64, &Term)> =
        leading.iter().filter_map(|(term, rows)| Some(((*rows)?, *term))).collect();
    counted.sort_by_key(|(rows, _)| *rows);
    let mut sum: u64 = 0;
    let mut rare: Vec<Expression> = Vec::new();
    for (rows, term) in &counted {
        sum = sum.saturating_add(*rows);
        // No step finds a text twice, so a small repository can be read as a whole.
        if sum.min(documents.max(*rows)) > budget {
            break;
        }
        rare.push(Expression::Term((*term).clone()));
    }
    let fits = counted.iter().any(|(rows, _)| (1..=budget).contains(rows));
    let frequent: Vec<&Term> = counted.iter().filter(|(rows, _)| *rows > 0).map(|(_, term)| *term).collect();
    if let ([first, second, ..], false) = (frequent.as_slice(), fits) {
        // Even the rarest is too frequent alone.
        let pair = [first, second].map(|term| Expression::Term((*term).clone()));
        rare.push(Expression::All(pair.into()));
    }
    match rare.len() {
        0 => None,
        1 => rare.pop(),
        _ => Some(Expression::Any(rare)),
    }
}

/// A step: the phrases, something else, and nothing of what must not occur.
fn step(query: &Query, others: Vec<Expression>) -> Expression {
    let mut parts: Vec<Expression> = query.phrases.iter().map(phrase).collect();
    for other in others {
        match other {
            Expression::All(inner) => parts.extend(inner),
            other => parts.push(other),
        }
    }
    parts.extend(query.without.iter().map(|without| Expression::Not(Box::new(phrase(without)))));
    Expression::All(parts)
}

fn phrase(terms: &Phrase) -> Expression {
    match terms.as_slice() {
        [(_, term)] => Expression::Term(term.clone()),
        _ => Expression::Phrase(terms.clone()),
    }
}

/// At most so many texts have a phrase; None if that is not known.
fn rows(phrase: &Phrase, frequencies: &HashMap<String, u64, impl BuildHasher>) -> Option<u64> {
    phrase.iter().filter_map(|(_, term)| frequency(term, frequencies)).min()
}

fn frequency(term: &Term, frequencies: &HashMap<String, u64, impl BuildHasher>) -> Option<u64> {
    let mut sum: u64 = 0;
    for key in term.keys() {
        match frequencies.get(&key) {
            Some(rows) => sum = sum.saturating_add(*rows),
            None if term.prefix => return None,
            None => {}
        }
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::Prefix;
    use crate::tsquery;

    fn steps(text: &str, frequencies: &[(&str, u64)], documents: u64) -> Vec<String> {
        let query = Query::parse(text, &[], Prefix::Never);
        let frequencies: HashMap<String, u64> =
            frequencies.iter().map(|(lexeme, rows)| ((*lexeme).to_owned(), *rows)).collect();
        plan(&query, &frequencies, documents, 1000).iter().map(|step| tsquery::query(step, "r")).collect()
    }

    const MILLION: u64 = 1_000_000;

    #[test]
    fn all_terms_come_first_and_then_any_rare_one() {
        assert_eq!(
            steps("quark big star", &[("quark", 50), ("big", 300_000), ("star", 9_000)], MILLION),
            ["('r+quark' & 'r+big' & 'r+star')", "('r+quark' | 'r+star')"]
        );
        assert_eq!(steps("quark", &[("quark", 50)], MILLION), ["'r+quark'"]);
    }

    #[test]
    fn the_lists_of_a_step_fit_into_the_budget() {
        let counts = [("aa", 11_000), ("bb", 8_999), ("cc", 2), ("dd", 1)];
        let found = steps("aa bb cc dd", &counts, MILLION);
        assert_eq!(found[1], "('r+dd' | 'r+cc' | 'r+bb')");
        let found = steps("aa bb cc", &[("aa", 11_000), ("bb", 8_998), ("cc", 2)], MILLION);
        assert_eq!(found[1], "('r+cc' | 'r+bb' | 'r+aa')");
        // A repository of fewer texts than the budget is read as a whole.
        let found = steps("aa bb cc", &[("aa", 8_000), ("bb", 8_000), ("cc", 8_000)], 9_000);
        assert_eq!(found[1], "('r+aa' | 'r+bb' | 'r+cc')");
    }

    #[test]
    fn frequent_terms_lead_only_in_pairs() {
        let counts = [("aa", 500_000), ("bb", 30_000), ("cc", 40_000)];
        assert_eq!(steps("aa bb cc", &counts, MILLION), ["('r+aa' & 'r+bb' & 'r+cc')", "('r+bb' & 'r+cc')"]);
        assert_eq!(steps("bb cc", &counts, MILLION), ["('r+bb' & 'r+cc')"]);
        assert_eq!(steps("aa", &counts, MILLION), ["'r+aa'"]);
        assert_eq!(steps("aa bb xx", &counts, MILLION)[1], "('r+xx' | ('r+bb' & 'r+aa'))");
    }

    #[test]
    fn what_no_text_has_is_not_required() {
        assert_eq!(steps("quark frobo", &[("quark", 5)], MILLION), ["'r+quark'", "('r+frobo' | 'r+quark')"]);
        assert_eq!(steps("frobo plugh", &[], MILLION)[0], "('r+frobo' & 'r+plugh')");
    }

    #[test]
    fn phrases_and_exceptions_hold_in_every_step() {
        let counts = [("quark", 5), ("big", 30_000), ("bang", 40_000), ("star", 7)];
        let found = steps("quark star \"big bang\" -string -\"big rip\"", &counts, MILLION);
        assert_eq!(found.len(), 2);
        for step in &found {
            assert!(step.starts_with("(('r+big' <1> 'r+bang') & "), "{step}");
            // `string` is its own stem.
            assert!(step.ends_with(" & !'r+string' & !('r+big' <1> 'r+rip'))"), "{step}");
        }
        assert!(found[1].contains("('r+quark' | 'r+star')"));
        assert_eq!(
            steps("big \"quark star\"", &counts, MILLION),
            ["(('r+quark' <1> 'r+star') & 'r+big')", "('r+quark' <1> 'r+star')"]
        );
        assert_eq!(steps("frobo \"quark star\"", &counts, MILLION), ["('r+quark' <1> 'r+star')"]);
        assert_eq!(steps("\"dark matter\"", &counts, MILLION).len(), 1);
        assert!(steps("-quark", &counts, MILLION).is_empty());
        assert!(steps("", &counts, MILLION).is_empty());
    }

    #[test]
    fn a_prefix_is_required_and_leads_only_if_counted() {
        let query = Query::parse("quark gravit", &[], Prefix::LastWord);
        let text = |counts: &[(&str, u64)]| -> Vec<String> {
            let counts: HashMap<String, u64> =
                counts.iter().map(|(key, rows)| ((*key).to_owned(), *rows)).collect();
            plan(&query, &counts, MILLION, 10).iter().map(|step| tsquery::query(step, "r")).collect()
        };
        assert_eq!(text(&[("quark", 5)]), ["('r+quark' & 'r+gravit':*)", "'r+quark'"]);
        assert_eq!(text(&[("quark", 5), ("gravit*", 6)])[1], "('r+quark' | 'r+gravit':*)");
    }

    #[test]
    fn a_word_that_some_texts_leave_out_is_not_required() {
        let query = Query::parse("war in Europe", &["en", "de"], Prefix::Never);
        let counts = HashMap::from([("war".to_owned(), 10), ("europ".to_owned(), 20)]);
        let found = plan(&query, &counts, MILLION, 10);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(!tsquery::query(&found[0], "r").contains("war"));
    }
}
