//! The embedding model in our own process.

use std::future::ready;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use okt_config::Config;
use okt_model::{EMBEDDING_DIMENSIONS, EMBEDDING_MODEL, Error};
use okt_providers::ai::{AiError, Model, Models, Usage};

use super::{free, kind, question};
use crate::server::client;

fn builtin() -> Model {
    Models::new(&Config::default(), &client(&[])).find(EMBEDDING_MODEL).unwrap()
}

async fn embed(texts: &[&str]) -> Vec<Vec<f32>> {
    let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    builtin().embed(&texts, free).await.unwrap().vectors
}

fn cosine(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

fn are_good(vectors: &[Vec<f32>]) {
    for (at, vector) in vectors.iter().enumerate() {
        assert_eq!(vector.len(), usize::try_from(EMBEDDING_DIMENSIONS).unwrap(), "{at}");
        assert!(vector.iter().all(|number| number.is_finite()), "{at}");
        assert!((cosine(vector, vector) - 1.0).abs() < 1e-5, "{at}: {}", cosine(vector, vector));
    }
}

#[tokio::test]
async fn it_needs_nobody_costs_nothing_and_does_not_chat() {
    let model = builtin();
    assert_eq!((model.id(), model.rate_limit_rpm()), ("builtin-minilm-1", 0));
    let much = Usage { tokens_in: 1_000_000_000, tokens_out: 1, estimated: false };
    assert!(model.price(much).is_zero());
    let error = model.chat(&question("Who?"), free).await.unwrap_err();
    assert!(
        matches!(&error, AiError::NotConfigured(words) if words.starts_with("an embedding model")),
        "{error:?}"
    );
    assert!(!error.is_retryable());

    let embedded = model.embed(&["Bees make honey.".to_owned()], free).await.unwrap();
    assert_eq!((embedded.vectors.len(), embedded.retries), (1, 0));
    assert_eq!(embedded.usage, Usage { tokens_in: 4, tokens_out: 0, estimated: true });
    assert!(model.embed(&[], free).await.unwrap().vectors.is_empty());
}

/// Vectors bear this name, so it may not come to stand for others.
#[test]
fn its_name_stands_for_these_weights() {
    let info = pocket_encoder::model_info();
    assert_eq!(
        (info.id.as_str(), info.revision.as_str(), info.tokenizer_sha256.as_str()),
        (
            "pocket-encoder/minilm-l3-q4-g32-v1",
            "sha256:dabb40d5d98a22372c8921acf048cb54bb8bf6d781b1233b2a360d5125789c7e",
            "a9576e4dadfe7f78f071a1c00ba6902cc83ec6ed7e9b590ee974950bd4d54393"
        ),
        "other weights need another EMBEDDING_MODEL"
    );
}

#[tokio::test]
async fn what_means_the_same_lies_closer_than_what_does_not() {
    let vectors = embed(&[
        "The lighthouse was built in 1840 from local granite.",
        "The lighthouse was made of granite from the area in 1840.",
        "Honey bees visit about two million flowers for a pound of honey.",
    ])
    .await;
    let (same, other) = (cosine(&vectors[0], &vectors[1]), cosine(&vectors[0], &vectors[2]));
    assert!(same > 0.85 && other < 0.3, "{same} {other}");
}

#[tokio::test]
async fn any_text_has_a_vector() {
    let long = "The tide comes in twice a day. ".repeat(3_300);
    assert!(long.len() > 100_000);
    let one_word = "a".repeat(100_000);
    let wide = "潮".repeat(40_000);
    let spaces = format!("{}The tide comes in.", " ".repeat(100_000));
    let marks = "e\u{301}".repeat(50_000);
    let odd = [
        "",
        " ",
        "\n\t\u{3000}",
        "\0",
        "\u{fffd}",
        "\u{200b}\u{feff}",
        "\u{202e}abc",
        "👩‍👩‍👧‍👦",
        "[CLS] [SEP] [MASK] [PAD] [UNK]",
        "##ing",
        "ﷺ",
        "\u{10ffff}",
        "Ǆǅǆ İ ß",
        "مرحبا بالعالم",
        "नमस्ते",
        &long,
        &one_word,
        &wide,
        &spaces,
        &marks,
    ];
    let vectors = embed(&odd).await;
    assert_eq!(vectors.len(), odd.len());
    are_good(&vectors);
    // All that has nothing to read is the same, and what comes after its window is not read.
    assert!(vectors[1] == vectors[0] && vectors[2] == vectors[0] && vectors[3] == vectors[0]);
    let cut = embed(&[&long[..31 * 100], "The tide comes in."]).await;
    assert!(vectors[15] == cut[0] && vectors[18] == cut[1]);
}

#[tokio::test]
async fn a_thousand_texts_at_once_keep_their_order_and_are_the_same_again() {
    let texts: Vec<String> =
        (0..1_000).map(|n| if n % 10 == 0 { String::new() } else { format!("{n} bees") }).collect();
    let model = builtin();
    let (one, other) = tokio::join!(model.embed(&texts, free), model.embed(&texts[..24], free));
    let (one, other) = (one.unwrap().vectors, other.unwrap().vectors);
    assert!(one.len() == 1_000 && one[..24] == other);
    are_good(&one);
    let alone = embed(&["7 bees", "993 bees", ""]).await;
    assert!(one[7] == alone[0] && one[993] == alone[1] && one[990] == alone[2]);
}

#[tokio::test]
async fn turns_are_taken_between_batches_and_end_it() {
    let (model, turns) = (builtin(), AtomicUsize::new(0));
    let texts: Vec<String> = (0..40).map(|n| format!("{n} bees")).collect();
    let turn = || {
        ready(if turns.fetch_add(1, Ordering::SeqCst) < 2 { Ok(()) } else { Err(Error::Overloaded("no")) })
    };
    let error = model.embed(&texts, turn).await.unwrap_err();
    assert_eq!((kind(&error), turns.load(Ordering::SeqCst)), ("turn", 3));
}

/// On the one thread of this test, which would be held up if texts were worked on there.
#[tokio::test]
async fn others_go_on_while_it_works() {
    let model = builtin();
    let texts: Vec<String> = (0..48).map(|n| format!("{n} bees {}", "and flowers ".repeat(60))).collect();
    let work = tokio::spawn(async move { model.embed(&texts, free).await.map(|embedded| embedded.latency) });
    let mut longest = Duration::ZERO;
    let mut ticks = 0;
    while !work.is_finished() {
        let begun = Instant::now();
        tokio::time::sleep(Duration::from_millis(1)).await;
        longest = longest.max(begun.elapsed());
        ticks += 1;
    }
    let latency = work.await.unwrap().unwrap();
    assert!(ticks > 20 && longest < latency / 4, "{ticks} ticks, the longest of {longest:?} in {latency:?}");
}
