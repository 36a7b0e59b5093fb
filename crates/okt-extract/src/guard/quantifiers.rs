//! How many of them, and how sure: all, some, most, only; may and must.

use super::Reading;
use super::tables::{Language, list};
use super::words::Token;

/// Whether both speak of as many.
pub fn fit(a: &Reading, b: &Reading, language: &Language, denied: bool) -> bool {
    let (of_a, of_b) = (Amounts::of(a, language), Amounts::of(b, language));
    let count = |of: &Amounts, class| of.classes.iter().filter(|other| **other == class).count();
    let alone = |one: &Amounts, other: &Amounts| {
        one.classes.iter().any(|class| count(one, *class) > count(other, *class))
    };
    let both = alone(&of_a, &of_b) && alone(&of_b, &of_a);
    let firm = |one: &Amounts, other: &Amounts| one.firm.iter().any(|class| !other.classes.contains(class));
    // "Not all" is neither "all" nor "none".
    let all = |one: &Amounts, other: &Amounts| {
        denied && one.classes.contains(&"all") && !other.classes.contains(&"all")
    };
    !(both || firm(&of_a, &of_b) || firm(&of_b, &of_a) || all(&of_a, &of_b) || all(&of_b, &of_a))
}

/// Whether both are as sure of it, and ask as much.
pub fn are_as_sure(a: &Reading, b: &Reading, language: &Language) -> bool {
    let has = |text: &Reading, kind: u32| has_one(text, kind, language);
    let hedges = |one: &Reading, other: &Reading| is_less_sure(one, other, language);
    let obliges = |one: &Reading, other: &Reading| {
        has(one, list::MUST) && has(other, list::SHOULD) && !has(one, list::SHOULD) && !has(other, list::MUST)
    };
    !(hedges(a, b) || hedges(b, a) || obliges(a, b) || obliges(b, a))
}

/// Whether one says that it may be so, and the other says that it is.
pub fn is_less_sure(one: &Reading, other: &Reading, language: &Language) -> bool {
    let has = |text: &Reading, kind: u32| has_one(text, kind, language);
    has(one, list::MAYBE) && !has(other, list::MAYBE) && !has(other, list::HEDGED)
}

fn has_one(text: &Reading, kind: u32, language: &Language) -> bool {
    let denied = |at: usize| text.tokens.get(at + 1).is_some_and(|next| next.is("not"));
    let is = |at: usize, token: &Token| {
        token.is_word() && language.has(kind, &token.text) && !(kind == list::MAYBE && denied(at))
    };
    text.tokens.iter().enumerate().any(|(at, token)| is(at, token))
}

/// `n'ouvre que le dimanche`: not but on Sunday.
fn is_only(text: &Reading, language: &Language) -> bool {
    let is = |token: &Token, list: u32| token.is_word() && language.has(list, &token.text);
    text.tokens.iter().enumerate().filter(|(_, token)| is(token, list::BEFORE_NOT)).any(|(at, _)| {
        let behind = text.tokens[at + 1..].iter().take(6);
        let mut behind = behind.skip_while(|token| {
            !matches!(token.text.as_str(), "que" | "qu" | ",") && !is(token, list::NEGATIONS | list::HALF_NOT)
        });
        behind.next().is_some_and(|token| matches!(token.text.as_str(), "que" | "qu"))
    })
}

#[derive(Default)]
struct Amounts {
    classes: Vec<&'static str>,
    /// Those that change what is said by being left out.
    firm: Vec<&'static str>,
}

impl Amounts {
    fn of(text: &Reading, language: &Language) -> Self {
        let mut amounts = Self::default();
        if is_only(text, language) {
            amounts.classes.push("only");
            amounts.firm.push("only");
        }
        for (at, token) in text.tokens.iter().enumerate().filter(|(_, token)| token.is_word()) {
            let Some(&class) = language.quantifiers.get(&token.text) else { continue };
            let next = text.tokens.get(at + 1).map_or("", |token| token.text.as_str());
            // The most common: a superlative.
            let superlative = token.is("most") && language.english && !next.ends_with('s');
            if superlative || matches!(class, "must" | "should") {
                continue;
            }
            // Several are some.
            let class = if class == "several" { "some" } else { class };
            amounts.classes.push(class);
            let loose = [
                "usually",
                "generally",
                "typically",
                "normally",
                "mostly",
                "certain",
                "several",
                "multiple",
                "various",
                "occasionally",
            ];
            if matches!(class, "only" | "few" | "some" | "most") && !loose.contains(&token.text.as_str()) {
                amounts.firm.push(class);
            }
        }
        amounts
    }
}
