//! Whatever somebody types is answered.

use futures_util::{StreamExt as _, stream};
use okt_model::CONCEPT_MODEL;
use okt_testkit::app::TestApp;
use okt_testkit::soak::Dice;

use super::{add, settled};

/// Operators, quotes, fields, letters of many kinds, and words that are there.
const PIECES: [&str; 57] = [
    "\0",
    "\"",
    "'",
    "\\",
    "-",
    ":",
    "*",
    " ",
    " ",
    " ",
    " ",
    "(",
    ")",
    "&",
    "|",
    "!",
    "%",
    "_",
    ";",
    "--",
    "<2>",
    "\u{7}",
    "\n",
    "\u{202E}",
    "\u{200D}",
    "\u{301}",
    "\u{10FFFF}",
    "“",
    "”",
    "year:",
    "year:2019..",
    "year:..2030",
    "concept:",
    "concept:Moon",
    "context:",
    "source:\"",
    "source:",
    "language:en",
    "kind:text",
    "’s",
    "3.5",
    "1,000",
    "tides",
    "Moon",
    "the",
    "of",
    "harbour",
    "Bergen",
    "Gezeiten",
    "мост",
    "图书馆",
    "مدرسة",
    "ß",
    "İ",
    "ﬁ",
    "e\u{301}",
    "x",
];
const MODES: [&str; 5] = ["auto", "lexical", "vector", "hybrid", "deep"];
const TYPES: [&str; 4] = ["facts", "facts,concepts,sources,passages", "concepts", "passages,sources"];
const RESTS: [&str; 7] = [
    "",
    "&prefix=true",
    "&facets=true",
    "&explain=true&grouped=false",
    "&year=2019..2021",
    "&concept=Moon",
    "&source=tides",
];

fn any_question(dice: &mut Dice) -> String {
    let mut question = String::new();
    let most = if dice.below(20) == 0 { 200 } else { 12 };
    for _ in 0..=dice.index(most) {
        let piece = dice.pick(&PIECES);
        if question.len() + piece.len() > 1_024 {
            break;
        }
        question.push_str(piece);
    }
    question
}

/// 1,000 questions, or as many as `OKT_FUZZED_QUERIES` says. A statement over its timeout would be a 5xx.
#[tokio::test]
async fn every_question_is_answered() {
    let count: u64 = std::env::var("OKT_FUZZED_QUERIES").map_or(1_000, |count| count.parse().unwrap());
    let mut app = TestApp::builder().concepts(CONCEPT_MODEL).vectors().start().await;
    app.work().await;
    let ids = [
        add(
            &app,
            "one",
            "Tides",
            "The Moon causes the tides of the sea. The tides are high in the Bay of Fundy.",
        )
        .await,
        add(
            &app,
            "two",
            "Bergen",
            "The harbour of Bergen in Norway knows no high tides. It was built in 1702.",
        )
        .await,
        add(&app, "three", "图书馆", "北京大学的学生在图书馆里学习物理。他们每天都读很多书。").await,
        add(&app, "four", "Мосты", "Под старыми мостами города текут широкие реки. Зимой они замерзают.")
            .await,
    ];
    settled(&app, &ids).await;
    let mut dice = Dice::new(23);
    let questions = (0..count).map(|_| {
        let question = any_question(&mut dice);
        let q: String = url::form_urlencoded::byte_serialize(question.as_bytes()).collect();
        let (mode, types, rest) = (dice.pick(&MODES), dice.pick(&TYPES), dice.pick(&RESTS));
        let path = match dice.below(10) {
            0 => format!("/facts?q={q}"),
            1 => format!("/sources?q={q}"),
            2 => format!("/concepts?q={q}"),
            _ => format!("/search?q={q}&mode={mode}&types={types}{rest}"),
        };
        (question, path)
    });
    let app = &app;
    let answered = stream::iter(questions).map(|(question, path)| async move {
        let answer = app.get(&path).await;
        assert!([200, 400, 422].contains(&answer.status.as_u16()), "{question:?} {path}: {answer:?}");
        u64::from(answer.status == 200)
    });
    let answered: u64 = answered.buffer_unordered(4).fold(0, async |sum, one| sum + one).await;
    // Refused is what is empty, too long, or has characters that no text has.
    assert!(answered * 10 > count * 8, "{answered} of {count} were answered");
}
