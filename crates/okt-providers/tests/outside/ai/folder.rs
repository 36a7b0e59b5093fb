//! An embedding model from a folder, with the real weights that `scripts/minilm` installs.

use std::fs;
use std::path::{Path, PathBuf};

use okt_config::{Config, Pooling};
use okt_providers::ai::{AiError, Model, Models, Usage};

use super::free;
use crate::server::client;

const TEXTS: [&str; 3] = [
    "The lighthouse was built in 1840 from local granite.",
    "The lighthouse was made of granite from the area in 1840.",
    "Honey bees visit about two million flowers for a pound of honey, and a hive of them needs many pounds for a winter.",
];

fn weights() -> PathBuf {
    let variable = "OKT_TEST_MINILM";
    std::env::var_os(variable).map(PathBuf::from).expect(r#"eval "$(scripts/services env)""#)
}

fn model(path: &Path, change: impl FnOnce(&mut okt_config::Embedding)) -> Model {
    let mut config = Config::default();
    config.providers.embedding.model = "all-minilm-l6-v2".into();
    config.providers.embedding.path = Some(path.to_owned());
    change(&mut config.providers.embedding);
    Models::new(&config, &client(&[])).find("all-minilm-l6-v2").unwrap()
}

async fn embed(model: &Model, texts: &[&str]) -> Vec<Vec<f32>> {
    let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    model.embed(&texts, free).await.unwrap().vectors
}

fn cosine(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

fn close(numbers: &[f32], wanted: [f32; 4]) -> bool {
    numbers.iter().zip(wanted).all(|(number, wanted)| (number - wanted).abs() < 2e-4)
}

/// The wanted numbers are from another implementation of the same model, in numpy.
#[tokio::test]
async fn vectors_are_those_of_the_published_model() {
    let model = model(&weights(), |_| {});
    assert!(model.is_local() && model.price(Usage { tokens_in: 1_000_000, ..Usage::default() }).is_zero());
    let vectors = embed(&model, &TEXTS).await;
    assert!(close(&vectors[0], [0.018_357, 0.013_614, 0.042_883, 0.028_528]), "{:?}", &vectors[0][..4]);
    let same = cosine(&vectors[0], &vectors[1]);
    assert!((same - 0.940_2).abs() < 1e-3, "{same}");
    assert!(vectors.iter().all(|vector| vector.len() == 384 && (cosine(vector, vector) - 1.0).abs() < 1e-5));
    // Texts of other lengths in the same call change nothing.
    for (text, vector) in TEXTS.iter().zip(&vectors) {
        let alone = embed(&model, &[text]).await;
        assert!(cosine(&alone[0], vector) > 0.999_9, "{text}");
    }
}

#[tokio::test]
async fn pooling_and_length_are_as_set() {
    let cls = embed(&model(&weights(), |settings| settings.pooling = Pooling::Cls), &TEXTS[..1]).await;
    assert!(close(&cls[0], [0.002_874, -0.009_065, 0.053_206, 0.026_427]), "{:?}", &cls[0][..4]);
    let plain = model(&weights(), |settings| settings.query_prefix = "query: ".into());
    assert_eq!(plain.query_prefix(), "query: ", "whoever asks puts it before a question");
    let short = model(&weights(), |settings| settings.max_tokens = 8);
    let endings =
        embed(&short, &["One two three four five six seven eight.", "One two three four five six NINE."])
            .await;
    assert!(cosine(&endings[0], &endings[1]) > 0.999_9, "six words and two marks are read");
    let long = "The tide comes in twice a day. ".repeat(3_300);
    assert!(embed(&plain, &["", &long]).await.iter().flatten().all(|number| number.is_finite()));
}

#[tokio::test]
async fn a_folder_that_can_not_be_used_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let why = async || match model(folder.path(), |_| {}).embed(&["text".to_owned()], free).await {
        Err(AiError::Unavailable { cause, .. }) => cause.to_string(),
        other => panic!("{other:?}"),
    };
    assert!(why().await.contains("config.json"), "{}", why().await);
    for (file, content, wanted) in [
        ("config.json", r#"{"model_type":"llama"}"#.as_bytes(), "only \"bert\" can be run"),
        ("config.json", &fs::read(weights().join("config.json")).unwrap(), "tokenizer.json"),
        ("tokenizer.json", b"{}", "tokenizer.json"),
        ("tokenizer.json", &fs::read(weights().join("tokenizer.json")).unwrap(), "model.safetensors"),
        ("model.safetensors", b"not weights", "model.safetensors"),
    ] {
        fs::write(folder.path().join(file), content).unwrap();
        let said = why().await;
        assert!(said.contains(wanted), "{file}: {said}");
    }
}
