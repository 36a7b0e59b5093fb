//! Texts that a model ranks.

use okt_model::Money;
use okt_providers::ai::{AiError, Usage};
use serde_json::{Value, json};

use super::server::{Act, Scripted, answer};
use super::{KEY, always, free, kind, model, model_with, ok};

fn texts() -> Vec<String> {
    ["bees", "tides", "moons"].map(str::to_owned).to_vec()
}

#[tokio::test]
async fn texts_are_ranked_as_jina_and_cohere_speak() {
    let jina = json!({
        "model": "m", "usage": { "total_tokens": 40 },
        "results": [
            { "index": 2, "document": { "text": "moons" }, "relevance_score": 0.9 },
            { "index": 0, "document": "bees", "relevance_score": -1.5 },
            { "index": 1, "relevance_score": 0 },
        ],
    });
    let cohere = json!({
        "id": "x", "meta": { "api_version": { "version": "2" }, "billed_units": { "search_units": 2 } },
        "results": [{ "index": 1, "relevance_score": 0.5 }],
    });
    let others = json!({ "object": "list", "data": [{ "index": 1, "score": 0.25 }] });
    let own = Usage { tokens_in: 8, tokens_out: 0, estimated: true };
    for (said, scores, usage, searches) in [
        (jina, [Some(-1.5), Some(0.0), Some(0.9)], Usage { tokens_in: 40, ..Usage::default() }, 1),
        (cohere, [None, Some(0.5), None], own, 2),
        (others, [None, Some(0.25), None], own, 1),
    ] {
        let server = always(ok(&said)).await;
        let reranked = model(&server).rerank("tide", &texts(), free).await.unwrap();
        assert_eq!(
            (reranked.scores.as_slice(), reranked.usage, reranked.searches),
            (&scores[..], usage, searches)
        );
        let asked = server.asked().remove(0);
        let wanted =
            json!({ "model": "small", "query": "tide", "documents": ["bees", "tides", "moons"], "top_n": 3 });
        assert_eq!(asked.body, wanted);
        assert!(asked.head.starts_with("POST /v1/rerank HTTP/1.1\r\n"), "{}", asked.head);
    }
}

/// What it says is data: what can't be used of it is left out, and if nothing is left, it has said nothing.
#[tokio::test]
async fn answers_that_can_not_be_right_break_nothing() {
    let results = [
        r#"{"index":3,"relevance_score":9}"#,
        r#"{"index":-1,"relevance_score":9}"#,
        r#"{"index":"0","relevance_score":9}"#,
        r#"{"index":1.5,"relevance_score":9}"#,
        r#"{"index":18446744073709551616,"relevance_score":9}"#,
        r#"{"index":0,"relevance_score":null}"#,
        r#"{"index":0,"relevance_score":"9"}"#,
        r#"{"relevance_score":9}"#,
        r#"{"index":0}"#,
        "null",
        "[]",
        "7",
    ];
    let good = r#"{"index":2,"relevance_score":0.5},{"index":2,"relevance_score":0.1}"#;
    let said = |results: &str| answer(200, "", &format!(r#"{{"results":[{results}]}}"#));
    for wrong in results {
        let server = always(said(&format!("{wrong},{good}"))).await;
        let reranked = model(&server).rerank("tide", &texts(), free).await.unwrap();
        assert_eq!(reranked.scores, [None, None, Some(0.5)], "{wrong}: the first of two counts");
        let server = always(said(wrong)).await;
        let error = model(&server).rerank("tide", &texts(), free).await.unwrap_err();
        assert_eq!((kind(&error), server.requests()), ("not a model", 1), "{wrong}");
    }
    for body in [
        r#"{"results":[]}"#,
        r#"{"results":{}}"#,
        r#"{"results":[{"index":0,"relevance_score":NaN}]}"#,
        r#"{"results":[{"index":0,"relevance_score":1e999}]}"#,
        "[]",
        "",
        "<html>",
    ] {
        let server = always(answer(200, "", body)).await;
        let error = model(&server).rerank("tide", &texts(), free).await.unwrap_err();
        assert_eq!((kind(&error), server.requests()), ("not a model", 1), "{body}");
    }
}

/// Whoever searches waits for no second try.
#[tokio::test]
async fn it_is_asked_once() {
    for (status, wanted) in [(500, "unavailable"), (429, "rate limited"), (401, "refused")] {
        let server = always(answer(status, "", "{}")).await;
        let error = model(&server).rerank("tide", &texts(), free).await.unwrap_err();
        assert_eq!((kind(&error), server.requests()), (wanted, 1), "{status}");
    }
}

#[tokio::test]
async fn one_with_an_address_of_its_own_gets_its_own_key_and_no_other() {
    let server = always(ok(&json!({ "results": [{ "index": 0, "relevance_score": 1 }] }))).await;
    let elsewhere =
        Scripted::start(|_, _: &Value| Act::Say(answer(403, "", r#"{"detail":"no rank-key here"}"#))).await;
    let url = format!("http://{}/v2", elsewhere.address);
    for (own, wanted) in [("rank-key", Some("authorization: bearer rank-key")), ("", None)] {
        let model = model_with(&server, |config| {
            config.search.rerank.model = "small".into();
            config.search.rerank.url = Some(url.parse().unwrap());
            config.search.rerank.api_key = own.to_owned().into();
        });
        let error = model.rerank("tide", &texts(), free).await.unwrap_err();
        assert_eq!(server.requests(), 0);
        let head = elsewhere.asked().remove(0).head.to_ascii_lowercase();
        assert!(head.starts_with("post /v2/rerank http/1.1\r\n") && !head.contains(KEY), "{head}");
        assert_eq!(head.lines().find(|line| line.starts_with("authorization")), wanted);
        let words = error.to_string();
        assert!(words.contains("the reranker") && words.contains("search.rerank.api_key"), "{words}");
        assert!(matches!(error, AiError::Refused { status: 403, .. }));
        assert!(own.is_empty() || !words.contains(own), "{words}");
    }
}

#[tokio::test]
async fn it_is_paid_by_the_token_or_by_the_search() {
    let server = always(answer(200, "", "{}")).await;
    let usd = |usd: f64| Money::from_usd(usd).unwrap();
    assert_eq!(model(&server).rerank_price(1_000_000, 1), usd(3.0));
    let by_search = model_with(&server, |config| {
        config.providers.ai.models[0].input_cost_per_1m = 0.0;
        config.providers.ai.models[0].search_cost_per_1k = 2.0;
    });
    assert_eq!(by_search.rerank_price(1_000_000, 3), usd(0.006));
}
