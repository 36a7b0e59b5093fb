//! The words of a text as they are indexed. What is asked goes the same way, so the two meet.
//!
//! A word is a run of letters and digits; a number keeps the point or comma inside it. Scripts that are
//! written without spaces are cut into overlapping pairs of characters. Stop words are not indexed but
//! counted, so that distances between words stay what they are in the text.

use std::ops::Range;

use crate::fold::{fold, is_extension, lower};
use crate::language::Language;

/// Raised whenever the words of some text become others: then all texts are read again.
pub const WORDS_VERSION: i16 = 2;
/// Longer lexemes are cut, in characters.
const LONGEST: usize = 64;

/// A word of a text that is indexed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Folded and, where the language is known, stemmed.
    pub lexeme: String,
    /// From 1; stop words count.
    pub position: u32,
    /// Bytes in the text.
    pub range: Range<usize>,
}

/// The words of a text in a language, given as ISO 639 with two or three letters. Without a language, or in
/// one that has no stemmer, words are only folded.
pub fn words(text: &str, language: Option<&str>) -> Vec<Word> {
    let language = language.and_then(Language::find);
    let indexed = tokens(text).into_iter().filter(|token| !token.is_stop(language));
    indexed
        .map(|token| Word { lexeme: token.lexeme(language), position: token.position, range: token.range })
        .filter(|word| !word.lexeme.is_empty())
        .collect()
}

/// A word before its language is known.
#[derive(Debug, Clone)]
pub struct Token {
    /// In small letters, with accents.
    pub lower: String,
    pub position: u32,
    pub range: Range<usize>,
    pub script: Script,
}

/// How the words of a script are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Script {
    /// By what stands between them.
    Spaced,
    /// Not at all: by pairs of characters.
    Pairs,
}

impl Token {
    /// Empty where nothing of the word is left.
    pub fn lexeme(&self, language: Option<&Language>) -> String {
        let word = &self.lower;
        let language = language.filter(|_| self.script == Script::Spaced && !word.contains(char::is_numeric));
        language.map_or_else(|| fold(word, LONGEST), |language| fold(&language.stem(word), LONGEST))
    }

    pub fn is_stop(&self, language: Option<&Language>) -> bool {
        language.is_some_and(|language| language.is_stop(&self.lower))
    }

    /// A pair that lacks its second character.
    pub fn is_single(&self) -> bool {
        self.script == Script::Pairs && units(&self.lower).len() == 1
    }
}

/// All words, also those that no language would index.
pub fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut position = 0;
    for (run, script) in runs(text) {
        let mut add = |range: Range<usize>| {
            position += 1;
            let lower = without_thousands(lower(&text[range.clone()], LONGEST));
            tokens.push(Token { lower, position, range, script });
        };
        match script {
            Script::Spaced => add(run),
            Script::Pairs => {
                for pair in pairs(&text[run.clone()]) {
                    add(run.start + pair.start..run.start + pair.end);
                }
            }
        }
    }
    tokens
}

/// Where letters and digits follow each other in one kind of script.
fn runs(text: &str) -> Vec<(Range<usize>, Script)> {
    let mut runs: Vec<(Range<usize>, Script)> = Vec::new();
    let mut open = false;
    let mut skip_to = 0;
    for (at, c) in text.char_indices().filter(|(_, c)| !matches!(c, '\u{FEFF}')) {
        if at < skip_to {
            continue;
        }
        let end = at + c.len_utf8();
        let last = runs.last_mut().filter(|_| open);
        if let Some((range, _)) = last
            && (is_extension(c) || is_inside_number(text, at, c))
        {
            range.end = end;
        } else if let Some(script) = script(c) {
            match runs.last_mut() {
                Some((range, before)) if open && *before == script => range.end = end,
                _ => runs.push((at..end, script)),
            }
            open = true;
        } else {
            // `Newton's` is about Newton; the `s` is no word.
            if open && is_apostrophe(c) && is_possessive(&text[end..]) {
                skip_to = end + 1;
            }
            open = false;
        }
    }
    runs
}

/// None for what stands between words.
fn script(c: char) -> Option<Script> {
    // A modifier letter by its class, an apostrophe by its use.
    if is_apostrophe(c) || !c.is_alphanumeric() || is_extension(c) {
        return None;
    }
    let pairs = (is_unspaced(c) && !c.is_numeric()) || is_ideographic_number(c);
    Some(if pairs { Script::Pairs } else { Script::Spaced })
}

fn is_unspaced(c: char) -> bool {
    matches!(c,
        // Thai, Lao, Myanmar, Khmer.
        '\u{E01}'..='\u{E4F}' | '\u{E80}'..='\u{EFF}'
        | '\u{1000}'..='\u{109F}' | '\u{A9E0}'..='\u{A9FF}' | '\u{AA60}'..='\u{AA7F}'
        | '\u{1780}'..='\u{17FF}'
        // Hangul, first consonants and syllables.
        | '\u{1100}'..='\u{115F}' | '\u{A960}'..='\u{A97F}' | '\u{AC00}'..='\u{D7AF}'
        // Radicals, signs of repetition, kana, Bopomofo, Hangul letters.
        | '\u{2E80}'..='\u{2FDF}' | '\u{3005}'..='\u{3006}' | '\u{3031}'..='\u{318F}'
        | '\u{31A0}'..='\u{31BF}' | '\u{31F0}'..='\u{31FF}' | '\u{FF66}'..='\u{FFDC}'
        // Han.
        | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{3FFFD}')
}

/// Han signs that are numbers by their class, and written as part of words.
fn is_ideographic_number(c: char) -> bool {
    matches!(c, '\u{3007}' | '\u{3021}'..='\u{3029}' | '\u{3038}'..='\u{303A}')
}

/// `3.5` and `1,200`, but not the end of a sentence.
fn is_inside_number(text: &str, at: usize, c: char) -> bool {
    matches!(c, '.' | ',')
        && text[..at].chars().next_back().is_some_and(is_digit)
        && text[at + 1..].chars().next().is_some_and(is_digit)
}

fn is_digit(c: char) -> bool {
    c.is_numeric() && !c.is_alphabetic()
}

fn is_apostrophe(c: char) -> bool {
    matches!(c, '\'' | '’' | '‘' | 'ʼ' | '＇')
}

/// An `s` and then no letter.
fn is_possessive(rest: &str) -> bool {
    let mut rest = rest.chars();
    matches!(rest.next(), Some('s' | 'S'))
        && rest.next().is_none_or(|c| script(c).is_none() && !is_extension(c))
}

/// `1200` of `1,200`. A point is left: it is a decimal one in most texts.
fn without_thousands(word: String) -> String {
    let mut groups = word.split(',');
    let is_number = |group: &str| group.bytes().all(|b| b.is_ascii_digit());
    let first = groups.next().is_some_and(|group| (1..=3).contains(&group.len()) && is_number(group));
    if first && groups.all(|group| group.len() == 3 && is_number(group)) {
        word.replace(',', "")
    } else {
        word
    }
}

/// The characters of a text, each with the marks that belong to it.
fn units(text: &str) -> Vec<Range<usize>> {
    let mut units: Vec<Range<usize>> = Vec::new();
    for (at, c) in text.char_indices() {
        let end = at + c.len_utf8();
        match units.last_mut() {
            Some(unit) if is_extension(c) => unit.end = end,
            _ => units.push(at..end),
        }
    }
    units
}

/// Where the first character of a text ends, with its marks.
pub fn first_unit(text: &str) -> usize {
    units(text).first().map_or(0, |unit| unit.end)
}

/// Whether a word is one of a script that is cut into pairs.
pub fn is_pair(word: &str) -> bool {
    word.chars().next().and_then(script) == Some(Script::Pairs)
}

/// Every two characters that follow each other; a single one as it is.
fn pairs(text: &str) -> Vec<Range<usize>> {
    let units = units(text);
    if units.len() < 2 {
        return units;
    }
    units.windows(2).filter_map(|pair| Some(pair.first()?.start..pair.last()?.end)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lexemes(text: &str, language: Option<&str>) -> Vec<String> {
        words(text, language).into_iter().map(|word| word.lexeme).collect()
    }

    #[test]
    fn words_are_cut_at_what_is_no_letter() {
        assert_eq!(
            lexemes("Newton’s well-known (third) law: 3.5 m, 1,200 kg. Don't!", None),
            ["newton", "well", "known", "third", "law", "3.5", "m", "1200", "kg", "don", "t"]
        );
        assert_eq!(
            lexemes("1,20 and 12,3456 v2.0.1 2024.", None),
            ["1,20", "and", "12,3456", "v2.0.1", "2024"]
        );
        assert_eq!(lexemes("l’homme 's-Hertogenbosch the James' boat's", None)[..3], ["l", "homme", "s"]);
        assert_eq!(lexemes("James' boat's sail", None), ["james", "boat", "sail"]);
        assert!(lexemes(" \0…—''\u{301}", None).is_empty());
    }

    #[test]
    fn inflected_words_meet() {
        for (language, one, other) in [
            ("en", "galaxies", "galaxy"),
            ("eng", "measured", "measuring"),
            ("de", "Häuser", "Haus"),
            ("deu", "Brücken", "Brücke"),
            ("es", "canciones", "canción"),
            ("spa", "educaciones", "educación"),
            ("fr", "continuellement", "continuelle"),
            ("ru", "мостами", "моста"),
            ("rus", "книги", "книгу"),
            ("ar", "المدرسة", "مدرسة"),
            ("ara", "والكتاب", "كتاب"),
            ("sv", "bilarna", "bilar"),
            ("nl", "boeken", "boek"),
            ("it", "ponti", "ponte"),
            ("pt", "pontes", "ponte"),
            ("fi", "taloissa", "talossa"),
        ] {
            let (one, other) = (lexemes(one, Some(language)), lexemes(other, Some(language)));
            assert_eq!(one, other, "{language}");
            assert_eq!(one.len(), 1, "{language}");
        }
        assert_ne!(lexemes("galaxies", None), lexemes("galaxy", None));
    }

    #[test]
    fn accents_do_not_matter_where_the_stem_is_the_same() {
        for (language, with, without) in [
            (None, "Gödel", "Godel"),
            (Some("de"), "Häuser", "Hauser"),
            (Some("es"), "canción", "cancion"),
            (Some("fr"), "théorèmes", "theoremes"),
            (Some("ru"), "ёлки", "елки"),
            (Some("ar"), "مُحَمَّد", "محمد"),
            (Some("en"), "naïve", "naive"),
        ] {
            assert_eq!(lexemes(with, language), lexemes(without, language), "{with}");
        }
        // Composed or not is the same letter, before the stemmer too.
        assert_eq!(lexemes("educacio\u{301}n", Some("es")), lexemes("educación", Some("es")));
    }

    #[test]
    fn stop_words_are_counted_and_not_indexed() {
        let found: Vec<_> =
            words("The speed of light", Some("en")).into_iter().map(|w| (w.lexeme, w.position)).collect();
        assert_eq!(found, [("speed".to_owned(), 2), ("light".to_owned(), 4)]);
        assert_eq!(lexemes("the speed", None), ["the", "speed"]);
        assert_eq!(lexemes("die Brücke für Fußgänger", Some("de")), ["bruck", "fussgang"]);
    }

    #[test]
    fn unspaced_scripts_become_pairs() {
        assert_eq!(lexemes("東京大学", None), ["東京", "京大", "大学"]);
        assert_eq!(lexemes("猫", None), ["猫"]);
        assert_eq!(lexemes("東京タワー 2024年", None), ["東京", "京タ", "タワ", "ワー", "2024", "年"]);
        assert_eq!(lexemes("三体", None), ["三体"]);
        assert_eq!(lexemes("한국어", None), ["한국", "국어"]);
        assert_eq!(lexemes("ｶﾞｽ", None), lexemes("ガス", None));
        assert_eq!(lexemes("\u{1112}\u{1161}\u{11AB}국", None), ["한국"]);
        // A vowel belongs to its consonant.
        assert_eq!(lexemes("ที่นี่", None), ["ที่นี่"]);
        let text = "x東京大";
        let last = words(text, None).pop().unwrap();
        assert_eq!((&text[last.range], last.position), ("京大", 3));
    }

    #[test]
    fn ranges_are_those_of_the_text() {
        let text = "Die Häuser, E\u{301}TE\u{301}; straße.";
        let written: Vec<_> = words(text, Some("de")).into_iter().map(|word| &text[word.range]).collect();
        assert_eq!(written, ["Häuser", "E\u{301}TE\u{301}", "straße"]);
    }

    #[test]
    fn long_words_are_cut() {
        let found = lexemes(&"ß".repeat(5000), Some("de"));
        assert_eq!(found.iter().map(|lexeme| lexeme.chars().count()).collect::<Vec<_>>(), [LONGEST]);
    }
}
