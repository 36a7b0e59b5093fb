//! All of it together: any text goes through, and what is asked meets what is indexed.

use crate::random::Random;
use crate::{Prefix, Query, WORDS_VERSION, fits, highlights, words};

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
        let indexed = words(&text, Some(languages[0]));
        for word in &indexed {
            assert!(!word.lexeme.is_empty() && word.lexeme.chars().count() <= 64, "{text:?} {word:?}");
            assert!(text.get(word.range.clone()).is_some(), "{text:?} {word:?}");
            assert!(!word.lexeme.contains(['\'', '\\', '*', '\0', ' ']), "{text:?} {word:?}");
        }
        let phrases = !asked.phrases.is_empty() || !asked.without.is_empty();
        assert!(fits(&asked, &indexed, true) || phrases, "{text:?}");
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
        let indexed = words(text, Some(language));
        let asked = Query::parse(asked, &["en", language], Prefix::Never);
        let terms = asked.ranking();
        let missing = terms
            .iter()
            .filter(|term| !term.optional && !indexed.iter().any(|word| term.matches(&word.lexeme)));
        assert_eq!(missing.count(), 0, "{language} {asked:?} {indexed:?}");
        assert!(!terms.is_empty(), "{language}");
    }
}

#[test]
fn a_phrase_stands_together_and_what_is_excluded_does_not_stand_at_all() {
    let text = words("The Bay of Fundy has the highest tides of the world.", Some("en"));
    for (asked, expected) in [
        ("\"bay of fundy\"", true),
        ("\"highest tide\"", true),
        ("\"fundy bay\"", false),
        ("\"bay fundy\"", false),
        ("tides -moon", true),
        ("tides -world", false),
        ("tides -\"highest tides\"", false),
        ("tides -\"tides highest\"", true),
    ] {
        assert_eq!(fits(&Query::parse(asked, &["en"], Prefix::Never), &text, true), expected, "{asked}");
    }
    let asked = Query::parse("\"no such phrase\"", &["en"], Prefix::Never);
    assert!(fits(&asked, &text, false), "a phrase that is not required");
}

/// If this fails, texts that were indexed before have other words than questions: raise `WORDS_VERSION`, and write the new
/// words here.
#[test]
fn the_words_of_this_version_are_these() {
    let texts = [
        ("en", "The bridges of Newton's 1,234.5 galaxies weren't COVID-19 measurements."),
        ("de", "Die Straßen und Brücken der Städte wurden größer."),
        ("es", "Las canciones españolas de los niños."),
        ("ru", "Под старыми мостами города всё ещё текут реки."),
        ("ar", "ذهب الأطفال والمعلمون إلى المدرسة."),
        ("zh", "北京大学的学生"),
        ("xx", "Ærøskøbing naïve ﬁrst"),
    ];
    let lexemes = |(language, text): (&str, &str)| {
        words(text, Some(language)).into_iter().map(|word| word.lexeme).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(WORDS_VERSION, 2);
    assert_eq!(
        texts.map(lexemes).join(" / "),
        "bridg newton 1,234.5 galaxi weren t covid 19 measur / strass bruck stadt wurd gross / cancion espanol nin / под стар \
         мост город все ещ текут рек / ذهب اطفال معلم مدرس / 北京 京大 大学 学的 的学 学生 / aeroskobing naive first"
    );
}
