//! How many tokens a text is, roughly, before anybody has counted them.

/// An estimate of the tokens that a common model makes of a text.
///
/// Tokenizers of today (byte pairs over 100,000 entries or more) take most words with the space before them as one token.
/// So: a word of up to nine letters is one, and every four letters more are one more; digits go in groups of three, with the
/// space before them on its own; marks go in pairs, a row of the same mark by eights; a line break is one. Chinese, Japanese
/// and Korean count one per character, other scripts two per five. English prose comes out within 10 %; other scripts differ
/// between tokenizers by more than a factor of two, and this lies between them.
pub fn estimate(text: &str) -> u64 {
    let mut tokens = 0;
    let mut after_space = false;
    let mut rest = text;
    while let Some(kind) = rest.chars().next().map(kind) {
        let end = rest.find(|c| self::kind(c) != kind).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        tokens += match kind {
            Kind::Space => u64::from(run.contains('\n')),
            Kind::Digit => length(run).div_ceil(3) + u64::from(after_space),
            Kind::Letter => 1 + length(run).saturating_sub(9).div_ceil(4),
            Kind::Ideograph => length(run),
            Kind::OtherLetter => (length(run) * 2).div_ceil(5),
            Kind::Mark => marks(run),
        };
        after_space = run.ends_with(' ');
        rest = after;
    }
    tokens
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Space,
    Digit,
    Letter,
    Ideograph,
    OtherLetter,
    Mark,
}

fn kind(c: char) -> Kind {
    match c {
        c if c.is_whitespace() => Kind::Space,
        c if c.is_numeric() => Kind::Digit,
        c if !c.is_alphabetic() => Kind::Mark,
        '\0'..'\u{250}' => Kind::Letter,
        '\u{2e80}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{20000}'.. => Kind::Ideograph,
        _ => Kind::OtherLetter,
    }
}

fn marks(run: &str) -> u64 {
    let length = length(run);
    let mut marks = run.chars();
    let first = marks.next();
    let row = length > 1 && marks.all(|mark| Some(mark) == first);
    length.div_ceil(if row { 8 } else { 2 })
}

fn length(run: &str) -> u64 {
    run.chars().count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Phase, Promptset};

    /// As counted by `cl100k_base` and `o200k_base`.
    const COUNTED: [(&str, u64, u64); 9] = [
        (include_str!("../../okt-parse/gold/wiki.txt"), 219, 219),
        (include_str!("../../okt-parse/gold/news.txt"), 294, 291),
        (include_str!("../../okt-parse/gold/paper.txt"), 208, 208),
        (include_str!("../../okt-parse/gold/blog.txt"), 227, 223),
        (include_str!("../../okt-parse/gold/docs.txt"), 178, 180),
        (include_str!("../../okt-parse/gold/recipe.txt"), 199, 197),
        (include_str!("../../okt-parse/gold/government.txt"), 96, 95),
        (include_str!("../../okt-parse/gold/product.txt"), 148, 148),
        (include_str!("../../okt-parse/gold/forum.txt"), 203, 202),
    ];

    #[test]
    fn english_prose_comes_out_within_a_tenth() {
        for (text, older, newer) in COUNTED {
            let guess = estimate(text.trim());
            let near = |counted: u64| guess.abs_diff(counted) * 10 <= counted;
            assert!(near(older) && near(newer), "{guess} is not {older} or {newer}: {text:.40}");
        }
    }

    #[test]
    fn known_texts_have_known_estimates() {
        for (text, expected) in [
            ("", 0),
            ("   ", 0),
            ("word", 1),
            ("two words", 2),
            ("electroencephalography", 5),
            ("in 1788, about 1,200", 10),
            ("--------", 1),
            ("漢字です。", 5),
            ("\n\n", 1),
        ] {
            assert_eq!(estimate(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_long_text_is_estimated_in_one_go() {
        assert_eq!(estimate(&"a 1 ".repeat(1_000_000)), 3_000_000);
        assert!(estimate(Promptset::builtin().text(Phase::FactExtraction)) < 600);
    }
}
