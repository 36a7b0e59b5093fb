//! The title of a source as a concept: where it names something, its facts are about that.

use okt_model::FoundBy;

use super::names::{self, Seen};
use super::nouns::{self, Class};
use super::phrases;
use super::tokens::{Gap, Token, tokens};
use super::{Language, Mention};

/// Longer titles are headlines.
const LONGEST: usize = 6;

/// What a title names, if it is a name or a noun phrase and a fact of the source bears it out.
pub fn concept(title: &str, facts: &[Vec<Token<'_>>], language: Language) -> Option<Mention> {
    let title = bare(title);
    let words = tokens(title);
    let start =
        usize::from(words.first().is_some_and(|first| ["the", "a", "an"].contains(&first.lower.as_str())));
    let own = &words[start..];
    if own.is_empty()
        || own.len() > LONGEST
        || own.iter().any(|token| token.gap != Gap::None && token.start > own[0].start)
    {
        return None;
    }
    let significant: Vec<&str> =
        own.iter().filter(|token| !token.is_stop()).map(|token| token.lower.as_str()).collect();
    let borne_out = facts
        .iter()
        .any(|fact| significant.iter().all(|word| fact.iter().any(|token| same_word(&token.lower, word))));
    if significant.is_empty() || !borne_out {
        return None;
    }
    let mut mention = named(&words, start, language)?;
    mention.found_by = FoundBy::Title;
    Some(mention)
}

/// Without what stands behind the name of the thing: a subtitle, the name of the site, an explanation in brackets.
fn bare(title: &str) -> &str {
    let ends = [": ", " | ", " - ", " – ", " — ", " ("].iter().filter_map(|mark| title.find(mark));
    title[..ends.min().unwrap_or(title.len())].trim()
}

fn same_word(one: &str, other: &str) -> bool {
    one == other
        || matches!((nouns::singular(one), nouns::singular(other)), (Some((one, _)), Some((other, _))) if one == other)
}

fn named(words: &[Token<'_>], start: usize, language: Language) -> Option<Mention> {
    let names = names::names(words, &Seen::default(), language);
    if let Some(name) = names.iter().find(|name| name.tokens == (start..words.len())) {
        return Some(name.clone());
    }
    if language != Language::English {
        return None;
    }
    let all = phrases::phrases(words, &names);
    if let Some(phrase) = all.iter().find(|phrase| phrase.tokens == (start..words.len())) {
        return Some(phrase.clone());
    }
    // `The lighthouse of Cape Arden`: a noun, `of`, and a name.
    let (head, name) = (all.first()?, names.first()?);
    let between = head.tokens.end..name.tokens.start;
    let joins = words.get(between).is_some_and(|between| {
        matches!(
            between.iter().map(|token| token.lower.as_str()).collect::<Vec<_>>()[..],
            ["of"] | ["of", "the"]
        )
    });
    if !joins || head.tokens.start != start || name.tokens.end != words.len() {
        return None;
    }
    let text = names::written(words, &(start..words.len()));
    let mut letters = text.chars();
    let lowered: String = letters.next().into_iter().flat_map(char::to_lowercase).chain(letters).collect();
    let class = head.class.filter(|class| matches!(class, Class::Label(_)));
    Some(Mention {
        name: lowered,
        form: text,
        class,
        sure: true,
        found_by: FoundBy::Title,
        tokens: start..words.len(),
    })
}
