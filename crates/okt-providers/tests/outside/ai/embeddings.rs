//! Texts that become vectors.

use okt_config::Config;
use okt_model::Error;
use okt_providers::ai::Usage;
use serde_json::{Value, json};

use super::server::{Act, Scripted, answer};
use super::{always, free, kind, model, model_with, ok};

/// Each text becomes its length and its number in the batch, handed out backwards.
fn vectors(body: &Value) -> Value {
    let texts = body["input"].as_array().unwrap();
    let vector = |(index, text): (usize, &Value)| json!({ "index": index, "embedding": [text.as_str().unwrap().len(), 0.5] });
    let data: Vec<_> = texts.iter().enumerate().map(vector).rev().collect();
    json!({ "data": data, "usage": { "prompt_tokens": texts.len(), "total_tokens": texts.len() } })
}

fn texts(count: usize) -> Vec<String> {
    (1..=count).map(|length| "x".repeat(length)).collect()
}

#[tokio::test]
async fn texts_become_vectors_in_their_order_a_few_at_once() {
    let server = Scripted::start(|_, body| Act::Say(ok(&vectors(body)))).await;
    let model = model(&server);
    let embedded = model.embed(&texts(5), free).await.unwrap();
    assert_eq!(embedded.vectors, [[1.0, 0.5], [2.0, 0.5], [3.0, 0.5], [4.0, 0.5], [5.0, 0.5]]);
    assert_eq!(embedded.usage, Usage { tokens_in: 5, tokens_out: 0, estimated: false });
    let asked = server.asked();
    assert_eq!(asked[0].body, json!({ "model": "small", "input": ["x", "xx"] }));
    assert!(asked[0].head.starts_with("POST /v1/embeddings HTTP/1.1\r\n"), "{}", asked[0].head);
    assert_eq!(asked.len(), 3);
    assert!(model.embed(&[], free).await.unwrap().vectors.is_empty());
    assert_eq!(server.requests(), 0);
}

#[tokio::test]
async fn vectors_that_can_not_be_right_are_refused() {
    let vector = |index: usize, numbers: &str| format!(r#"{{"index":{index},"embedding":{numbers}}}"#);
    for data in [
        String::new(),
        vector(0, "[1,2]"),
        [vector(0, "[1,2]"), vector(1, "[1,2]"), vector(2, "[1,2]")].join(","),
        [vector(0, "[1,2]"), vector(1, "[1,2,3]")].join(","),
        [vector(0, "[]"), vector(1, "[]")].join(","),
        [vector(0, "[1,2]"), vector(0, "[1,2]")].join(","),
        [vector(0, "[1,2]"), vector(2, "[1,2]")].join(","),
        [vector(0, "[1,2]"), vector(1, "[1,NaN]")].join(","),
        [vector(0, "[1,2]"), vector(1, "[1,null]")].join(","),
        [vector(0, "[1,2]"), vector(1, "[1,1e39]")].join(","),
        [vector(0, "[1,2]"), vector(1, "[1,-1e999]")].join(","),
    ] {
        let server = always(answer(200, "", &format!(r#"{{"data":[{data}]}}"#))).await;
        let error = model(&server).embed(&texts(2), free).await.unwrap_err();
        assert_eq!((kind(&error), server.requests()), ("not a model", 3), "{data}: {error:?}");
    }
    // Batches have to agree with each other, too.
    let server = Scripted::start(|number, _| {
        let numbers = if number == 0 { json!([1]) } else { json!([1, 2]) };
        Act::Say(ok(&json!({ "data": [{ "embedding": numbers }] })))
    })
    .await;
    let single = model_with(&server, |config| config.providers.ai.embed_batch_size = 1);
    let error = single.embed(&texts(2), free).await.unwrap_err();
    assert_eq!((kind(&error), server.requests()), ("not a model", 4), "{error:?}");
}

#[tokio::test]
async fn vectors_of_another_length_than_configured_are_refused_with_both_numbers() {
    let server = Scripted::start(|_, body| Act::Say(ok(&vectors(body)))).await;
    let configured = |dimensions| {
        move |config: &mut Config| {
            config.providers.embedding.model = "small".into();
            config.providers.embedding.dimensions = dimensions;
        }
    };
    assert_eq!(model_with(&server, configured(2)).embed(&texts(3), free).await.unwrap().vectors.len(), 3);
    assert_eq!(server.asked().len(), 2);
    let error = model_with(&server, configured(768)).embed(&texts(3), free).await.unwrap_err();
    // Asking again gives the same.
    assert_eq!((kind(&error), error.is_retryable(), server.requests()), ("dimensions", false, 1));
    let words = error.to_string();
    assert!(words.contains("have 2 dimensions, but providers.embedding.dimensions is 768"), "{words}");
    let error = Error::from(error);
    assert!(matches!(&error, Error::Operator(told) if *told == words) && !error.retryable(), "{error:?}");
}
