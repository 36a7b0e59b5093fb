//! The texts of sources: whole, by parts, and alone.

use std::fmt::Write as _;

use http::Method;
use okt_testkit::app::TestApp;
use okt_testkit::client::Answer;
use serde_json::{Value, json};

use crate::sources::test_app;

const LARGE: [&str; 4] = ["parsed_text", "parsed_markdown", "sentence_offsets", "sentence_boxes"];

/// A library with one source of many sentences, in more than one script.
async fn with_text() -> (TestApp, String, Value) {
    let mut app = test_app(&[]).await;
    let mut text = String::new();
    for n in 0..9_000 {
        let _ = write!(text, "Biene {n} tanzt über 蜂 und 🐝 im Stock. ");
    }
    let added = app.upload("bees.txt", "text/plain", text.as_bytes()).await;
    let source = added.json()["source_id"].as_str().unwrap().to_owned();
    app.work().await;
    let seen = app.settled(&source).await;
    assert_eq!(seen["status"], "processed", "{}", seen["failure"]);
    (app, source, seen)
}

#[tokio::test]
async fn the_large_parts_come_when_they_are_asked_for() {
    let (app, source, whole) = with_text().await;
    for (include, expected) in [
        ("include=", vec![]),
        ("include=text", vec!["parsed_text"]),
        ("include=markdown,sentences", vec!["parsed_markdown", "sentence_offsets"]),
        ("include=text,markdown,sentences,boxes", LARGE.to_vec()),
    ] {
        let seen = app.get(&format!("/{source}?{include}")).await.json();
        for part in LARGE {
            assert_eq!(
                seen.get(part),
                whole.get(part).filter(|_| expected.contains(&part)),
                "{include} {part}"
            );
        }
        assert_eq!(
            (&seen["sha256"], &seen["segmenter"]),
            (&whole["sha256"], &whole["segmenter"]),
            "{include}"
        );
    }
    let refused = app.get(&format!("/{source}?include=txt")).await;
    assert_eq!(refused.json()["errors"][0]["field"], "include", "{refused:?}");
}

#[tokio::test]
async fn a_text_can_be_had_alone_and_by_range() {
    let (app, source, whole) = with_text().await;
    for (rest, part, kind) in [
        ("text", "parsed_text", "text/plain; charset=utf-8"),
        ("markdown", "parsed_markdown", "text/markdown; charset=utf-8"),
    ] {
        let path = app.path(&format!("/{source}/{rest}"));
        let ask = async |name: &'static str, value: &str| {
            let request = app.service.request(Method::GET, &path).bearer_auth(&app.owner.token);
            Answer::of(request.header(name, value)).await
        };
        let text = whole[part].as_str().unwrap();
        assert!(text.len() > 300_000, "more than one piece: {}", text.len());
        let answer = ask("x-nothing", "").await;
        assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, kind));
        assert!(answer.text == text, "{rest} is the same");
        assert_eq!(answer.header("content-length"), text.len().to_string());
        let etag = answer.header("etag").to_owned();
        assert_eq!(ask("if-none-match", &etag).await.status, 304);
        if rest == "text" {
            assert_eq!(etag.trim_matches('"'), whole["sha256"].as_str().unwrap());
        }
        let part = ask("range", "bytes=0-4").await;
        assert_eq!((part.status.as_u16(), part.text.as_str()), (206, "Biene"));
        let last = ask("range", "bytes=-200000").await;
        assert!(last.text.len() >= 200_000 && text.ends_with(last.text.trim_start_matches('\u{fffd}')));
        assert_eq!(ask("range", "bytes=99999999-").await.status, 416);
    }
    let nothing = app.get("/01a1e018-8541-71d7-8946-53b9e4e60cee/text").await;
    assert_eq!(nothing.status, 404);
}

/// A page of sentences far into the text is cut out of it, and says the same as the whole.
#[tokio::test]
async fn a_page_of_sentences_far_into_a_text_is_right() {
    let (app, source, whole) = with_text().await;
    let text: Vec<char> = whole["parsed_text"].as_str().unwrap().chars().collect();
    let offsets = whole["sentence_offsets"].as_array().unwrap();
    let mut path = format!("/{source}/references?limit=200");
    let (mut pages, mut seen) = (0, 0);
    while pages < 12 {
        let page = app.get(&path).await.json();
        for row in page["data"].as_array().unwrap() {
            let at = |n: usize| usize::try_from(offsets[seen][n].as_u64().unwrap()).unwrap();
            assert_eq!((&row["sentence_index"], &row["start"]), (&json!(seen), &offsets[seen][0]));
            assert_eq!(row["text"], text[at(0)..at(1)].iter().collect::<String>());
            seen += 1;
        }
        pages += 1;
        path = format!("/{source}/references?limit=200&cursor={}", page["next_cursor"].as_str().unwrap());
    }
    assert_eq!(seen, 2_400);
    let cited = app.get(&format!("/{source}/references?cited=true&limit=3")).await.json();
    for row in cited["data"].as_array().unwrap() {
        let index = usize::try_from(row["sentence_index"].as_u64().unwrap()).unwrap();
        let at = |n: usize| usize::try_from(offsets[index][n].as_u64().unwrap()).unwrap();
        assert_eq!(row["text"], text[at(0)..at(1)].iter().collect::<String>());
    }
}
