//! What is taken from real prose, and one sentence for each rule.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::*;
use sentences::{LEFT_OUT, OTHER_LANGUAGES};

mod sentences;

/// Sentences, one space apart, with their offsets.
fn kept(sentences: &[String]) -> (String, Vec<(i32, i32)>) {
    let (mut text, mut offsets) = (String::new(), Vec::new());
    let points = |text: &str| i32::try_from(text.chars().count()).unwrap();
    for sentence in sentences {
        let start = points(&text);
        text.push_str(sentence);
        offsets.push((start, points(&text)));
        text.push(' ');
    }
    (text, offsets)
}

fn taken(sentence: &str, language: Option<&str>) -> bool {
    let (text, offsets) = kept(&[sentence.to_owned()]);
    !extract(&Text::new(&text, &offsets), language).facts.is_empty()
}

fn reason(sentence: &str, language: &str) -> Option<Reason> {
    let (text, offsets) = kept(&[sentence.to_owned()]);
    statements(&Text::new(&text, &offsets), Some(language)).remove(0).err()
}

/// What the parser made of a document: its language and its sentences.
fn document(name: &str) -> (String, Vec<String>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../okt-parse/fixtures").join(name);
    let document: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let sentence =
        |parts: &Value| parts.as_array().unwrap().iter().find_map(Value::as_str).unwrap().to_owned();
    let sentences = document["sentences"].as_array().unwrap().iter().map(sentence).collect();
    (document["language"].as_str().unwrap().to_owned(), sentences)
}

/// Every sentence of a document, with a `+` before those that are facts.
fn marked(name: &str) -> String {
    let (language, sentences) = document(name);
    let (text, offsets) = kept(&sentences);
    let facts = extract(&Text::new(&text, &offsets), Some(&language)).facts;
    let cited: Vec<i32> = facts.iter().flat_map(|fact| fact.sentences.clone()).collect();
    let mark = |no: usize| if cited.contains(&i32::try_from(no).unwrap()) { '+' } else { '-' };
    let lines = sentences.iter().enumerate().map(|(no, sentence)| format!("{} {sentence}", mark(no)));
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

#[test]
fn what_is_taken_from_articles_stands_on_its_own() {
    // `OKT_BLESS=1` writes the files anew. Read each line with a plus as if you saw nothing else.
    for name in ["pdf/article.json", "pdf/paper.json", "article-news.html.json", "article-science.html.json"]
    {
        let kept = format!("{}/golden/{}.txt", env!("CARGO_MANIFEST_DIR"), name.replace('/', "-"));
        let marked = marked(name);
        if std::env::var_os("OKT_BLESS").is_some() {
            fs::write(&kept, marked).unwrap();
        } else {
            assert_eq!(
                fs::read_to_string(&kept).unwrap_or_default(),
                marked,
                "{kept}; run `just bless` and read it"
            );
        }
    }
}

#[test]
fn english_sentences_that_stand_on_their_own_are_taken() {
    let wrong: Vec<_> = [
        "The grey heron of Lake Ulm nests on three islands.",
        "Marie Curie won the Nobel Prize twice, and she was born in Warsaw.",
        "“Macbeth” is a play by William Shakespeare.",
        "In 1998 the city of Halden closed its harbour.",
        "There are four chambers in the human heart.",
        "The effect of caffeine on sleep depends on age.",
        "While lions live in prides, tigers are solitary animals.",
        "Dr. H. Aalto of the U.S. Navy measured oxygen in 1987.",
        "The heart pumps blood through the vessels of the body.",
        "The Lower Mill Railway was opened in 1887.",
        "United States exports rose by 4 percent in 2019.",
        "The US exported more steel than Norway in 2019.",
        "Charles I was king of England until 1649.",
        "Water is a molecule (H2O) that has two hydrogen atoms.",
        "48 plots in six drained bogs were measured between 2011 and 2019.",
        "Metals such as copper conduct electricity well.",
        "The Declaration of Independence was adopted on Thursday, 4 July 1776.",
        "A black hole bends the light that passes in its way.",
        "Founded by Jo Lund, Halden Ferries has two ships.",
        "While Halden Ferries has two ships, it carries no cars.",
        "During her first year in Paris, Marie Curie lived in an attic.",
        "According to the SEC, Halden Ferries was a fraud from the start.",
        "Former Halden mayor Ana Ruiz wrote three books about herons.",
        "Ulm Lines, which put millions into Halden Ferries, says that the start-up will grow.",
        "Isaac Newton explained the tides by gravitation in 1687.",
        "Norway has fewer people than Sweden does.",
        "Jo Lund used two ships of Halden Ferries in 1998.",
        "Salt lengthens the life of copper cables.",
        "Ana Ruiz co-founded Halden Ferries with Jo Lund.",
        "The Halden Slim squeezes a large motor into a small hull.",
        "Jo Lund of Halden and Ana Ruiz of Ulm both pleaded guilty in 2021.",
        "Boats that fall under the rules of Halden pay no tax.",
        "Mar-a-Lago is a club of Donald Trump in Florida.",
        "Jo Lund, who builds ships in Ulm, said he was surprised by Halden Ferries.",
        "The case, filed by Halden Ferries, argues that Ulm Lines copied two ships.",
        "The EU’s objections concern ferries of Norway.",
        "Ana Ruiz took the stand in Halden.",
        "WIRED is the only magazine of Halden.",
        "The lead-up to the Halden vote lasted three years.",
        "The first four ferries of Halden Lines were built in Ulm.",
        "The Halden power station in Brittany has 24 turbines.",
    ]
    .into_iter()
    .filter_map(|sentence| Some((sentence, reason(sentence, "en-US")?)))
    .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn english_sentences_that_lean_on_something_are_left_for_a_reason() {
    let too_long = format!("Birds {}fly.", "can and do ".repeat(30));
    assert_eq!(reason(&too_long, "en"), Some(Reason::NotASentence));
    let wrong: Vec<_> = LEFT_OUT
        .iter()
        .flat_map(|(wanted, sentences)| sentences.iter().map(move |sentence| (*wanted, *sentence)))
        .filter_map(|(wanted, sentence)| {
            let given = reason(sentence, "en");
            (given != Some(wanted)).then(|| format!("{wanted:?}, not {given:?}: {sentence}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn other_languages_have_their_own_words() {
    for (language, alone, leaning) in OTHER_LANGUAGES {
        for sentence in alone {
            assert!(taken(sentence, Some(language)), "{sentence}");
        }
        for sentence in leaning {
            assert!(!taken(sentence, Some(language)), "{sentence}");
        }
    }
    for (language, alone, leaning) in [
        (
            "pl",
            "Warszawa jest stolicą Polski od końca XVI wieku.",
            "Ona jest stolicą Polski od końca XVI wieku.",
        ),
        ("ar", "يبلغ طول نهر النيل نحو 6650 كيلومترا.", "وهو أكبر سد في البلاد منذ 1970 عاما."),
        ("hi", "गंगा भारत की सबसे लंबी नदी है।", "यह भारत की सबसे लंबी नदी है।"),
        ("ko", "부산은 대한민국에서 두 번째로 큰 도시이다.", "이곳은 대한민국에서 두 번째로 큰 도시이다."),
        ("sv", "Stockholm är huvudstad i Sverige sedan 1634.", "Den är huvudstad i Sverige sedan 1634."),
        (
            "tr",
            "Ankara 1923 yılında Türkiye'nin başkenti oldu.",
            "Burası 1923 yılında Türkiye'nin başkenti oldu.",
        ),
        ("he", "ירושלים היא העיר הגדולה ביותר בישראל.", "היא העיר הגדולה ביותר בישראל כיום."),
        ("fa", "تهران پایتخت کشور ایران از سال 1786 است.", "این شهر پایتخت کشور ایران از سال 1786 است."),
        // Without lists, a name or a number speaks for a subject.
        ("am", "አዲስ አበባ በ1886 ዓ.ም. ተቆረቆረች።", "ከተማዋ የአገሪቱ ዋና ከተማ ናት።"),
        ("cs", "Praha je hlavním městem státu Česko.", "Město leží na obou březích velké řeky."),
    ] {
        assert_eq!(reason(alone, language), None, "{alone}");
        assert!(reason(leaning, language).is_some(), "{leaning}");
    }
    assert_eq!(reason("Město leží na obou březích velké řeky.", "cs"), Some(Reason::NoLanguageRules));
    assert!(!taken("Czy Warszawa jest stolicą Polski od dawna?", Some("pl")));
}

#[test]
fn what_leans_in_other_languages_is_left_for_a_reason() {
    for (language, wanted, sentence) in [
        ("de", Reason::Pronoun, "An seinen Ufern liegen drei alte Dörfer und ein Hafen."),
        ("de", Reason::UnnamedSubject, "Die Brücke wurde im Jahr 1932 aus Stahl gebaut."),
        ("de", Reason::RelativeTime, "Kürzlich wurde in Köln eine Brücke über den Rhein gesperrt."),
        ("fr", Reason::Pronoun, "Un incendie y a tué douze personnes en 1998."),
        ("fr", Reason::Pronoun, "La neige couvre son sommet pendant toute une année."),
        ("fr", Reason::UnnamedSubject, "La ville a fermé le port en 1998."),
        ("es", Reason::Connective, "Nació en Sevilla en el año 1561."),
        ("es", Reason::Connective, "En 1998 ganó un premio muy importante en Madrid."),
        ("es", Reason::UnnamedSubject, "La empresa cerró tres fábricas en Sevilla en 1998."),
        ("it", Reason::Connective, "Pubblicò tre romanzi a Roma tra il 1920 e il 1930."),
        ("pt", Reason::UnnamedSubject, "A cidade tem seis pontes sobre o rio Douro."),
        ("pt", Reason::Connective, "Fundou três escolas no Porto em 1931."),
        ("ja", Reason::UnnamedSubject, "日本で最も高い山として知られている。"),
    ] {
        assert_eq!(reason(sentence, language), Some(wanted), "{sentence}");
    }
    for (language, sentence) in [
        ("de", "Am Rhein und an seinen Ufern liegen viele Burgen."),
        ("fr", "Le mont Blanc attire à son sommet des milliers de grimpeurs."),
        ("es", "En 1936 murió Federico García Lorca en Granada."),
    ] {
        assert_eq!(reason(sentence, language), None, "{sentence}");
    }
}

#[test]
fn a_fact_is_word_for_word_and_cites_every_place_where_it_stands() {
    let sentences =
        ["Copper conducts electricity\n very  well.", "Yes.", "Copper conducts electricity very well."];
    let (text, offsets) = kept(&sentences.map(str::to_owned));
    let facts = extract(&Text::new(&text, &offsets), None).facts;
    assert_eq!(facts.len(), 1);
    assert_eq!(facts[0].text, "Copper conducts electricity very well.");
    assert_eq!(facts[0].sentences, [0, 2]);
    assert_eq!(facts[0].hash, content_hash(sentences[0]));
}

#[test]
fn nothing_is_taken_from_below_the_references() {
    let fact = |no: usize| format!("Element number {no} conducts electricity very well.");
    let sentences = ["References".to_owned(), fact(1), fact(2), "7. References".to_owned(), fact(3)];
    let (text, offsets) = kept(&sentences);
    let facts = extract(&Text::new(&text, &offsets), None).facts;
    let cited: Vec<_> = facts.iter().flat_map(|fact| fact.sentences.clone()).collect();
    assert_eq!(cited, [1, 2], "the first is an entry of the contents");
}

#[test]
fn the_name_of_the_rules_is_pinned() {
    assert_eq!(promptset_hash(), ContentHash(Sha256::digest("builtin-extractive-1, rules 5").into()));
}

#[test]
fn hostile_sentences_are_weighed_in_no_time() {
    let sentences =
        ["(".repeat(4_000), "a. ".repeat(1_300), "it ".repeat(1_300), "\u{301}".repeat(4_000), String::new()];
    let many: Vec<String> = (0..500).map(|no| sentences[no % sentences.len()].clone()).collect();
    let (text, offsets) = kept(&many);
    assert!(extract(&Text::new(&text, &offsets), Some("en")).facts.is_empty());
}

/// Whatever words come in whatever order, they are weighed without a panic.
#[test]
fn sentences_without_sense_are_weighed_too() {
    const PARTS: &str = "the The a it It he said that That there There is was US I Halden HALDEN OLED 2019 7 s ’s , — : “ ” ( ) \
                         one both same such as which who built by to in According Will May 9:04 Photo company roles first";
    let parts: Vec<&str> = PARTS.split_whitespace().collect();
    let mut state = 7_u64;
    let mut next = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % bound
    };
    for language in ["en", "de", "fr", "es", "ja", "ka"] {
        let sentences: Vec<String> = (0..3_000)
            .map(|_| {
                let words: Vec<&str> = (0..=next(12)).map(|_| parts[next(parts.len())]).collect();
                words.join(if next(4) == 0 { "" } else { " " }) + "."
            })
            .collect();
        let (text, offsets) = kept(&sentences);
        assert_eq!(statements(&Text::new(&text, &offsets), Some(language)).len(), sentences.len());
    }
}
