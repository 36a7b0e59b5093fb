//! All of it together: any text goes through, and what is asked meets what is indexed.

use std::collections::HashMap;
use std::iter::Peekable;
use std::str::Chars;

use crate::random::Random;
use crate::{Prefix, Query, entries, frequencies, highlights, plan, query, vector, words};

const LANGUAGES: [&str; 22] = [
    "en", "de", "es", "fr", "it", "pt", "nl", "ru", "ar", "sv", "da", "no", "fi", "hu", "ro", "tr", "el",
    "ta", "pl", "cs", "uk", "zh",
];

/// Operators, quotes, and letters of every kind that is treated in its own way.
const PIECES: [&str; 48] = [
    "\"",
    "'",
    "\\",
    "-",
    ":",
    "*",
    " ",
    " ",
    " ",
    "(",
    ")",
    "&",
    "|",
    "!",
    "<2>",
    "\0",
    "\u{7}",
    "\n",
    "\u{202E}",
    "\u{200D}",
    "\u{301}",
    "“",
    "”",
    "year:",
    "concept:",
    "source:\"",
    "’s",
    "3.5",
    "1,200",
    "the",
    "und",
    "running",
    "Häuser",
    "ß",
    "Ærø",
    "educación",
    "книги",
    "ёлка",
    "والكتاب",
    "المدرسة",
    "東京大学",
    "ガス",
    "한국어",
    "ที่นี่",
    "हिन्दी",
    "ﷺ",
    "½",
    "😀",
];

fn any_text(random: &mut Random) -> String {
    let mut text = String::new();
    for _ in 0..random.below(14) {
        match random.below(4) {
            0 => {
                let code = u32::try_from(random.below(0x0003_0000)).unwrap();
                text.extend(char::from_u32(code));
            }
            1 => text.extend(('a'..='z').nth(random.below(26))),
            _ => text.push_str(PIECES[random.below(PIECES.len())]),
        }
    }
    text
}

#[test]
fn any_text_is_a_query_and_a_document() {
    let mut random = Random::new(7);
    for _ in 0..20_000 {
        let text = any_text(&mut random);
        let languages = [LANGUAGES[random.below(22)], LANGUAGES[random.below(22)]];
        let prefix = if random.below(2) == 0 { Prefix::Never } else { Prefix::LastWord };
        let asked = Query::parse(&text, &languages, prefix);
        let mut counts = HashMap::new();
        for key in asked.ranking().iter().flat_map(|term| term.keys()) {
            counts.insert(key, [0, 1, 300, 15_000, 900_000][random.below(5)]);
        }
        for step in plan(&asked, &counts, 1_000_000, 1000) {
            let written = query(&step, "o'\\r");
            Tsquery::check(&written).unwrap_or_else(|| panic!("{text:?} {written}"));
        }
        let indexed = words(&text, Some(languages[0]));
        for word in &indexed {
            assert!(!word.lexeme.is_empty() && word.lexeme.chars().count() <= 64, "{text:?} {word:?}");
            assert!(text.get(word.range.clone()).is_some(), "{text:?} {word:?}");
            assert!(!word.lexeme.contains(['\'', '\\', '*', '\0', ' ']), "{text:?} {word:?}");
        }
        let printed = vector(&indexed, "o'\\r");
        let lexemes: std::collections::HashSet<&str> =
            indexed.iter().map(|word| word.lexeme.as_str()).collect();
        let read: Vec<(String, u32)> = entries(&printed).collect();
        assert_eq!(read.len(), lexemes.len(), "{text:?} {printed}");
        assert_eq!(read.iter().map(|(_, count)| *count as usize).sum::<usize>(), indexed.len(), "{text:?}");
        let marked = highlights(&text, Some(languages[0]), &asked);
        assert!(marked.iter().all(|range| text.get(range.clone()).is_some()), "{text:?}");
        assert!(marked.is_sorted_by(|one, next| one.end < next.start), "{text:?} {marked:?}");
        assert!(!asked.text.contains('\0') && asked.filters.iter().all(|filter| !filter.value.is_empty()));
    }
}

/// Random letters of the script of each language: stemmers see words that no dictionary has.
#[test]
fn no_stemmer_fails_on_a_word_that_does_not_exist() {
    let mut random = Random::new(11);
    for language in LANGUAGES {
        let (first, count) = match language {
            "ru" | "uk" => (0x430, 34),
            "ar" => (0x621, 50),
            "el" => (0x3AC, 35),
            "ta" => (0xB82, 80),
            _ => (0x61, 26),
        };
        for _ in 0..4000 {
            let length = random.below(70);
            let word: String = (0..length)
                .filter_map(|_| match random.below(12) {
                    0 => "äöüßéèêñçåøőşığœàìòù".chars().nth(random.below(20)),
                    _ => char::from_u32(first + u32::try_from(random.below(count)).unwrap()),
                })
                .collect();
            assert!(
                words(&word, Some(language)).iter().all(|word| !word.lexeme.is_empty()),
                "{language} {word}"
            );
        }
    }
}

#[test]
fn a_kibibyte_of_junk_is_a_query() {
    for junk in ["\"", "-", "\"-", "a\"", "year:", "'", "\\", "(", "\u{301}", "\0", "東", "a ", "\"a ", "-a "]
    {
        let text: String = junk.chars().cycle().take(1024).collect();
        let asked = Query::parse(&text, &LANGUAGES, Prefix::LastWord);
        assert!(asked.terms.len() <= 32, "{junk}");
        for step in plan(&asked, &HashMap::new(), 10, 10) {
            assert!(Tsquery::check(&query(&step, "r")).is_some(), "{junk}");
        }
    }
}

#[test]
fn a_question_meets_a_text_in_another_form() {
    for (language, text, asked) in [
        ("en", "Galaxies were measured.", "measuring a galaxy"),
        ("de", "Die Brücken der Stadt", "Brücke"),
        ("es", "Las canciones españolas", "canción española"),
        ("ru", "Под мостами города", "мост"),
        ("ar", "ذهب إلى المدرسة", "مدرسة"),
        ("ja", "彼は東京大学で学んだ", "東京大学"),
        ("zh", "北京大学的学生", "北京大学"),
        ("ko", "한국어를 배우다", "한국어"),
        ("xx", "Ærøskøbing", "aeroskobing"),
    ] {
        let printed = vector(&words(text, Some(language)), "r");
        let asked = Query::parse(asked, &["en", language], Prefix::Never);
        let found = frequencies(&printed, "r", &asked.ranking());
        let missing =
            asked.ranking().iter().zip(&found).filter(|(term, count)| !term.optional && **count == 0).count();
        assert!(!found.is_empty() && missing == 0, "{language} {found:?} {asked:?} {printed}");
    }
}

/// The grammar of a tsquery in parentheses, as far as it is written here.
struct Tsquery<'a>(Peekable<Chars<'a>>);

impl<'a> Tsquery<'a> {
    fn check(text: &'a str) -> Option<()> {
        let mut query = Self(text.chars().peekable());
        query.operand()?;
        query.0.next().is_none().then_some(())
    }

    fn operand(&mut self) -> Option<()> {
        match self.0.next()? {
            '!' => self.operand(),
            '\'' => self.lexeme(),
            '(' => {
                self.operand()?;
                let mut operator = None;
                while self.0.next_if_eq(&')').is_none() {
                    let found = self.operator()?;
                    // Operators are never mixed without parentheses.
                    (*operator.get_or_insert(found) == found).then_some(())?;
                    self.operand()?;
                }
                operator.map(|_| ())
            }
            _ => None,
        }
    }

    fn operator(&mut self) -> Option<char> {
        self.0.next_if_eq(&' ')?;
        let operator = self.0.next_if(|c| "&|<".contains(*c))?;
        if operator == '<' {
            let mut distance = String::new();
            while let Some(c) = self.0.next_if(char::is_ascii_digit) {
                distance.push(c);
            }
            distance.parse::<u32>().ok().filter(|distance| (1..=16_384).contains(distance))?;
            self.0.next_if_eq(&'>')?;
        }
        self.0.next_if_eq(&' ').map(|_| operator)
    }

    fn lexeme(&mut self) -> Option<()> {
        loop {
            match self.0.next()? {
                '\\' => drop(self.0.next()?),
                '\'' if self.0.next_if_eq(&'\'').is_none() => break,
                _ => {}
            }
        }
        if self.0.next_if_eq(&':').is_some() {
            self.0.next_if_eq(&'*')?;
        }
        Some(())
    }
}
