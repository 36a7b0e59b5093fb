//! One form for the many ways to write a letter.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// In small letters and composed, with its accents: what stemmers and lists of stop words expect.
pub fn lower(text: &str, longest: usize) -> String {
    let small = text.nfkc().flat_map(char::to_lowercase).filter(|c| is_kept(*c));
    small.nfc().take(longest).collect()
}

/// Without accents and with one letter for those that are written in several ways.
pub fn fold(text: &str, longest: usize) -> String {
    let mut folded = String::with_capacity(text.len());
    for c in text.nfkd().filter(|c| is_kept(*c) && !is_accent(*c)).flat_map(char::to_lowercase) {
        match c {
            'ß' => folded.push_str("ss"),
            'æ' => folded.push_str("ae"),
            'œ' => folded.push_str("oe"),
            'þ' => folded.push_str("th"),
            'ø' => folded.push('o'),
            'ł' => folded.push('l'),
            'đ' | 'ð' => folded.push('d'),
            'ħ' => folded.push('h'),
            'ı' => folded.push('i'),
            'ŋ' => folded.push('n'),
            'ŧ' => folded.push('t'),
            'ς' => folded.push('σ'),
            // Alef with the sign of a joint; those with hamza and madda are marks by now, and gone.
            '\u{671}' => folded.push('\u{627}'),
            // Ta marbuta, alef maqsura, and the Persian forms of ya and kaf.
            '\u{629}' => folded.push('\u{647}'),
            '\u{649}' | '\u{6CC}' => folded.push('\u{64A}'),
            '\u{6A9}' => folded.push('\u{643}'),
            c => folded.push(digit(c)),
        }
    }
    // Composed again: Hangul and the voiced kana came apart with the accents.
    folded.nfc().take(longest).collect()
}

/// What continues the letter before it and never stands alone.
pub fn is_extension(c: char) -> bool {
    is_combining_mark(c)
        || is_joiner(c)
        // Vowels and final consonants of decomposed Hangul; voiced marks of narrow katakana.
        || matches!(c, '\u{1160}'..='\u{11FF}' | '\u{D7B0}'..='\u{D7FB}' | '\u{FF9E}' | '\u{FF9F}')
}

/// Soft hyphen, joiners, and the Arabic tatweel, which only makes a word longer on paper.
fn is_joiner(c: char) -> bool {
    matches!(c, '\u{AD}' | '\u{200C}' | '\u{200D}' | '\u{2060}' | '\u{640}')
}

/// Normalisation makes spaces and signs of some letters. A lexeme has none, apart from those inside a number.
fn is_kept(c: char) -> bool {
    (c.is_alphanumeric() && c != '\u{640}')
        || (is_combining_mark(c) && !is_selector(c))
        || matches!(c, '.' | ',' | '\u{2044}')
}

fn is_selector(c: char) -> bool {
    matches!(c, '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}')
}

/// Marks that texts in the same language have or leave out. In the scripts of India and South-East Asia marks
/// are vowels.
fn is_accent(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{36F}'
        | '\u{483}'..='\u{487}'
        | '\u{591}'..='\u{5C7}'
        | '\u{610}'..='\u{61A}'
        | '\u{64B}'..='\u{65F}'
        | '\u{670}'
        | '\u{6D6}'..='\u{6ED}'
        | '\u{1AB0}'..='\u{1AFF}'
        | '\u{1DC0}'..='\u{1DFF}'
        | '\u{20D0}'..='\u{20FF}'
        | '\u{FE20}'..='\u{FE2F}')
}

/// The digits of Arabic, Persian, Hindi and Thai as those of everybody else.
fn digit(c: char) -> char {
    let found = [0x660, 0x6F0, 0x966, 0xE50].into_iter().find_map(|zero| {
        let value = u32::from(c).checked_sub(zero).filter(|value| *value < 10)?;
        char::from_digit(value, 10)
    });
    found.unwrap_or(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accents_and_forms_of_letters_fold() {
        for (text, folded) in [
            ("Été", "ete"),
            ("e\u{301}te\u{301}", "ete"),
            ("Straße", "strasse"),
            ("Ærø", "aero"),
            ("Łódź", "lodz"),
            ("ёлка", "елка"),
            ("İstanbul", "istanbul"),
            ("ＡＢＣ１", "abc1"),
            ("Οδυσσεύς", "οδυσσευσ"),
            // Harakat, tatweel, alef, ta marbuta, alef maqsura, digits.
            ("مُحَمَّد", "محمد"),
            ("كتـــاب", "كتاب"),
            ("أإآٱ", "اااا"),
            ("مدرسة", "مدرسه"),
            ("على", "علي"),
            ("١٩٤٥", "1945"),
            // Vowels of Hindi and Thai are marks, and stay.
            ("हिन्दी", "हिन्दी"),
            ("ที่", "ที่"),
            ("ｶﾞ", "ガ"),
            ("\u{1112}\u{1161}\u{11AB}", "한"),
        ] {
            assert_eq!(fold(text, 64), folded, "{text}");
        }
    }

    #[test]
    fn no_letter_folds_into_a_space_or_a_quote() {
        for c in (0..=0x0010_FFFF).filter_map(char::from_u32).filter(|c| c.is_alphanumeric()) {
            let folded = fold(&c.to_string(), 64);
            let clean = |c: char| !c.is_whitespace() && !c.is_control() && !matches!(c, '\'' | '\\' | '*');
            assert!(folded.chars().all(clean), "{c:?} {folded:?}");
        }
    }
}
