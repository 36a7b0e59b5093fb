//! What is taken from real prose, and one sentence for each rule.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::*;

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
    !extract(&Text::new(&text, &offsets), language).is_empty()
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
    let facts = extract(&Text::new(&text, &offsets), Some(&language));
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
    for sentence in [
        "The grey heron of Lake Ulm nests on three islands.",
        "Marie Curie won the Nobel Prize twice, and she was born in Warsaw.",
        "“Macbeth” is a play by William Shakespeare.",
        "In 1998 the city of Halden closed its harbour.",
        "There are four chambers in the human heart.",
        "The effect of caffeine on sleep depends on the dose.",
        "While lions live in prides, tigers are solitary animals.",
        "Dr. H. Aalto of the U.S. Navy measured oxygen in 1987.",
        "The heart pumps blood through the vessels of the body.",
        "The Lower Mill Railway was opened in 1887.",
        "United States exports rose by 4 percent in 2019.",
        "Water is a molecule (H2O) that has two hydrogen atoms.",
        "48 plots in six drained bogs were measured between 2011 and 2019.",
        "Metals such as copper conduct electricity well.",
        "The Declaration of Independence was adopted on Thursday, 4 July 1776.",
    ] {
        assert!(taken(sentence, Some("en-US")), "{sentence}");
        assert!(taken(sentence, None), "{sentence}");
    }
}

#[test]
fn english_sentences_that_lean_on_something_are_left() {
    for sentence in [
        // Too short, too long, no end.
        "Birds can fly.",
        &format!("Birds {}fly.", "can and do ".repeat(30)),
        "Mitochondria are the powerhouse of the cell",
        "The cell has several kinds of organelles:",
        "The cell has mitochondria, ribosomes and…",
        "The cell has mitochondria, ribosomes and...",
        // Not a statement.
        "Does the heart have four chambers in it?",
        "What a wonderful thing the heart is!",
        "Pull the fabric over the orange carefully.",
        "Fry the onion in olive oil over low heat.",
        "Built in 1911, with a roof that opens.",
        "A darning needle, size 14 or so.",
        "One of the boats at the east pier.",
        // Leans on what was before.
        "This process requires oxygen and releases energy.",
        "These birds nest on three islands in the lake.",
        "They nest on three islands of Lake Ulm.",
        "He moved to Paris after the war ended.",
        "However, herons do not migrate in the winter.",
        "In contrast, tigers are solitary for most of life.",
        "For example, copper conducts electricity quite well.",
        "Therefore, copper is used in most cables.",
        "Such metals conduct electricity better than glass does.",
        "The latter is used in most cables of houses.",
        "The effect was lost at about 31 degrees.",
        "The authors found that herons do not migrate.",
        "Each carries 60 passengers and four crew members.",
        "Both are found in the rivers of Europe.",
        "Within three, eelgrass had been seen at five stations.",
        // An open subject.
        "The line closed on the last day of 1936.",
        "About a third of their customers come by car.",
        "After the war he moved to Paris with Anna.",
        "In 1998 it was closed by the city council.",
        "The director said it would fail within weeks.",
        // Points outside.
        "We measured the height of the surface in 2011.",
        "Copper can be found in your own kitchen.",
        "The council voted on Tuesday night to close the bridge.",
        "The rate of unemployment rose again last year.",
        "About 340 herons live and nest there.",
        "A single cause is what the harbour does not offer one.",
        // Captions, notices, calls.
        "Figure 3 shows the number of passages per evening.",
        "As shown above, copper conducts electricity very well.",
        "See Figure 3 for the number of passages.",
        "Photo: the bridge at low tide in March.",
        "Copyright 2024 The Example Press of Halden Limited.",
        "The Example Press has all rights reserved in Europe.",
        "Click here to find more articles about herons.",
        "The site uses cookies to make visits better.",
        "Members may sign up for the weekly newsletter.",
        // Broken or no prose.
        "The heron (Ardea cinerea is a bird of lakes.",
        "The heron is a \"bird of lakes and rivers.",
        "THE HERON IS A BIRD OF LAKES AND RIVERS.",
        "12.5 13.7 14.9 22.1 7 and 33.4 are 44.",
        "Data are at https://data.example/a/very/long/path/to/a/file.csv.",
        "Ito, K. and Brown, J. wrote Slime and Time.",
        "Trials were held in arenas of 1.5 m. Arena four was left empty.",
        "- The heron is a bird of lakes and rivers.",
        "3. The heron is a bird of lakes and rivers.",
        "2 The heron is a bird of lakes and rivers.",
        "(The heron is a bird of lakes and rivers.)",
        "is a bird that lives in lakes and rivers.",
        "Conclusion: the heron is a bird of lakes and rivers.",
        "“The bridge was built for the traffic of 1931.”",
    ] {
        assert!(!taken(sentence, Some("en")), "{sentence}");
    }
}

#[test]
fn other_languages_have_their_own_words() {
    for (language, alone, leaning) in [
        (
            "de",
            [
                "Berlin ist die Hauptstadt der Bundesrepublik Deutschland.",
                "Am 3. Mai 1998 wurde die Brücke in Köln gesperrt.",
            ],
            [
                "Das ist die Hauptstadt der Bundesrepublik Deutschland.",
                "Dabei wurde die alte Brücke in Köln gesperrt.",
            ],
        ),
        (
            "fr",
            ["En 1998, la ville de Lyon a fermé le port.", "Le premier roi de France fut couronné à Reims."],
            ["Cette ville a fermé le port en 1998.", "En 1998, elle a fermé le port de Lyon."],
        ),
        (
            "es",
            [
                "La ciudad de Sevilla tiene cuatro puentes sobre el río.",
                "Madrid es la capital de España desde 1561.",
            ],
            [
                "Es la capital de España desde el año 1561.",
                "Sin embargo, Madrid tiene más de tres millones de habitantes.",
            ],
        ),
        (
            "it",
            [
                "Gli aironi del lago di Garda nidificano su tre isole.",
                "Roma è la capitale della Repubblica Italiana.",
            ],
            [
                "Fu la capitale della Repubblica Italiana nel 1946.",
                "Questo lago ha tre isole e molti aironi.",
            ],
        ),
        (
            "pt",
            [
                "A cidade do Porto tem seis pontes sobre o rio Douro.",
                "Nos Estados Unidos vivem mais de 300 milhões de pessoas.",
            ],
            [
                "Foi a capital de Portugal durante muitos anos.",
                "Além disso, o Porto tem seis pontes sobre o rio.",
            ],
        ),
        (
            "nl",
            [
                "Het Rijksmuseum in Amsterdam werd in 1885 geopend.",
                "Amsterdam is de stad die in 1275 tolrecht kreeg.",
            ],
            ["Het is de hoofdstad van Nederland sinds 1814.", "Daarom werd het Rijksmuseum in 1885 geopend."],
        ),
        (
            "ru",
            [
                "Москва является столицей Российской Федерации с 1918 года.",
                "Пушкин родился в Москве в 1799 году.",
            ],
            ["Он родился в Москве в 1799 году.", "Поэтому Москва является столицей Российской Федерации."],
        ),
        (
            "zh",
            ["北京是中华人民共和国的首都。", "图书馆将在各馆安装自助借还机。"],
            ["这是中华人民共和国的首都。", "他出生在北京的一个小村庄里。"],
        ),
        (
            "ja",
            ["東京は日本の首都である。", "富士山は日本で最も高い山です。"],
            ["それは日本の首都である。", "しかし東京は日本の首都である。"],
        ),
    ] {
        for sentence in alone {
            assert!(taken(sentence, Some(language)), "{sentence}");
        }
        for sentence in leaning {
            assert!(!taken(sentence, Some(language)), "{sentence}");
        }
    }
    assert!(taken("Warszawa jest stolicą Polski od końca XVI wieku.", Some("pl")));
    assert!(!taken("Czy Warszawa jest stolicą Polski od dawna?", Some("pl")));
}

#[test]
fn a_fact_is_word_for_word_and_cites_every_place_where_it_stands() {
    let sentences =
        ["Copper conducts electricity\n very  well.", "Yes.", "Copper conducts electricity very well."];
    let (text, offsets) = kept(&sentences.map(str::to_owned));
    let facts = extract(&Text::new(&text, &offsets), None);
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
    let facts = extract(&Text::new(&text, &offsets), None);
    let cited: Vec<_> = facts.iter().flat_map(|fact| fact.sentences.clone()).collect();
    assert_eq!(cited, [1, 2], "the first is an entry of the contents");
}

#[test]
fn the_name_of_the_rules_is_pinned() {
    assert_eq!(promptset_hash(), ContentHash(Sha256::digest("builtin-extractive-1").into()));
}

#[test]
fn hostile_sentences_are_weighed_in_no_time() {
    let sentences =
        ["(".repeat(4_000), "a. ".repeat(1_300), "it ".repeat(1_300), "\u{301}".repeat(4_000), String::new()];
    let many: Vec<String> = (0..500).map(|no| sentences[no % sentences.len()].clone()).collect();
    let (text, offsets) = kept(&many);
    assert!(extract(&Text::new(&text, &offsets), Some("en")).is_empty());
}
