//! Chat and embedding models, stood in for by a server that keeps to a script.

mod builtin;
mod embeddings;
mod folder;
mod rerank;
mod server;

use std::future::{Ready, ready};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use okt_config::{AiProvider, Config};
use okt_model::Error;
use okt_providers::ai::{Again, AiError, Chat, End, Model, Models, Part, Schema, Usage};
use serde_json::{Value, json};

use crate::server::client;
use server::{Act, Scripted, answer};

const KEY: &str = "sk-very-secret";

/// The model of a server, after the settings were changed.
fn model_with(server: &Scripted, change: impl FnOnce(&mut Config)) -> Model {
    let mut config = Config::default();
    config.providers.ai.cloud.base_url = Some(format!("http://{}/v1", server.address).parse().unwrap());
    config.providers.ai.cloud.api_key = KEY.to_owned().into();
    config.providers.ai.embed_batch_size = 2;
    config.providers.ai.models = vec![okt_config::Model {
        id: "small".into(),
        provider: AiProvider::Cloud,
        input_cost_per_1m: 3.0,
        output_cost_per_1m: 15.0,
        search_cost_per_1k: 0.0,
        query_prefix: String::new(),
        passage_prefix: String::new(),
        lexical_weight: None,
        rate_limit_rpm: 60,
        max_in_flight: 0,
        thinks: false,
    }];
    let retry = &mut config.providers.llm_retry;
    (retry.max_attempts, retry.base_delay) = (3, Duration::from_millis(1).into());
    (retry.max_delay, retry.per_call_timeout) =
        (Duration::from_secs(2).into(), Duration::from_secs(10).into());
    change(&mut config);
    Models::new(&config, &client(&[])).find("small").unwrap()
}

fn model(server: &Scripted) -> Model {
    model_with(server, |_| ())
}

fn free() -> Ready<okt_model::Result<()>> {
    ready(Ok(()))
}

fn question(user: &str) -> Chat {
    let user = vec![Part::Text(user.to_owned())];
    Chat { system: "Be short.".into(), user, again: None, schema: None, max_tokens: 100, thinking: None }
}

fn said(text: &str, finish: &str) -> Value {
    json!({
        "id": "x", "object": "chat.completion", "created": 1, "model": "small",
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": text }, "finish_reason": finish }],
        "usage": { "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 },
    })
}

fn ok(body: &Value) -> Vec<u8> {
    answer(200, "content-type: application/json\r\n", &body.to_string())
}

fn hello() -> Vec<u8> {
    ok(&said("Hello.", "stop"))
}

/// A server that always does the same.
async fn always(bytes: impl Into<Vec<u8>>) -> Scripted {
    let bytes = bytes.into();
    Scripted::start(move |_, _| Act::Say(bytes.clone())).await
}

#[tokio::test]
async fn a_question_is_asked_as_the_protocol_wants_it() {
    let server = always(hello()).await;
    let model = model(&server);
    let written = r#"{"type":"object","properties":{},"required":[],"additionalProperties":false}"#;
    let schema: Value = serde_json::from_str(written).unwrap();
    let image = Part::Image { content_type: "image/png".into(), bytes: Bytes::from_static(b"\x89PNG") };
    let chat = Chat {
        user: vec![Part::Text("What is it?".into()), image],
        again: Some(Again { answer: "A cat".into(), complaint: "That is no JSON.".into() }),
        schema: Some(Schema { name: "facts", schema: written }),
        ..question("")
    };
    let reply = model.chat(&chat, free).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.end, reply.retries), ("Hello.", End::Stop, 0));
    assert_eq!(reply.usage, Usage { tokens_in: 10, tokens_out: 5, estimated: false });
    assert!(reply.latency > Duration::ZERO && reply.latency < Duration::from_secs(10));

    let asked = server.asked().remove(0);
    assert_eq!(
        asked.body,
        json!({
            "model": "small",
            "messages": [
                { "role": "system", "content": "Be short." },
                { "role": "user", "content": [
                    { "type": "text", "text": "What is it?" },
                    { "type": "image_url", "image_url": { "url": "data:image/png;base64,iVBORw==" } },
                ] },
                { "role": "assistant", "content": "A cat" },
                { "role": "user", "content": "That is no JSON." },
            ],
            "temperature": 0,
            "max_tokens": 100,
            "response_format": {
                "type": "json_schema",
                "json_schema": { "name": "facts", "strict": true, "schema": schema },
            },
        })
    );
    let head = asked.head.to_ascii_lowercase();
    assert!(head.starts_with("post /v1/chat/completions http/1.1\r\n"), "{head}");
    assert!(head.contains("content-type: application/json\r\n"), "{head}");
    assert!(asked.head.contains("authorization: Bearer sk-very-secret\r\n"), "{head}");
}

#[tokio::test]
async fn a_plain_question_is_plain_and_no_key_is_sent_where_there_is_none() {
    let server = always(hello()).await;
    let model = model_with(&server, |config| config.providers.ai.cloud.api_key = String::new().into());
    model.chat(&Chat { system: String::new(), ..question("Who?") }, free).await.unwrap();
    let asked = server.asked().remove(0);
    assert_eq!(
        asked.body,
        json!({
            "model": "small",
            "messages": [{ "role": "user", "content": "Who?" }],
            "temperature": 0,
            "max_tokens": 100,
        })
    );
    assert!(!asked.head.to_ascii_lowercase().contains("authorization"), "{}", asked.head);
}

#[tokio::test]
async fn the_catalogue_knows_its_models_and_what_they_cost() {
    let server = always(hello()).await;
    let small = model(&server);
    assert_eq!((small.id(), small.rate_limit_rpm()), ("small", 60));
    let price = small.price(Usage { tokens_in: 2_000_000, tokens_out: 100_000, estimated: false });
    assert_eq!(price.micros(), 7_500_000);
    assert!(Models::new(&Config::default(), &client(&[])).find("small").is_none());
    assert!(!format!("{small:?}").contains(KEY));

    let off = model_with(&server, |config| config.providers.ai.cloud.base_url = None);
    let wrong_key =
        model_with(&server, |config| config.providers.ai.cloud.api_key = "a\nb".to_owned().into());
    let address = format!("http://user:pw@{}/v1", server.address);
    let address =
        model_with(&server, |config| config.providers.ai.cloud.base_url = Some(address.parse().unwrap()));
    for (model, setting) in
        [(off, "cloud.base_url"), (wrong_key, "cloud.api_key"), (address, "cloud.base_url")]
    {
        let error = model.chat(&question("Who?"), free).await.unwrap_err();
        assert!(matches!(error, AiError::NotConfigured(words) if words.contains(setting)), "{error:?}");
        assert!(!error.is_retryable());
    }
    assert_eq!(server.requests(), 0);
}

#[tokio::test]
async fn ends_and_counts_are_read_and_what_is_missing_is_estimated() {
    let counted = Usage { tokens_in: 10, tokens_out: 5, estimated: false };
    // "Be short." and 40 characters more; "Hello." is two.
    let estimated = Usage { tokens_in: 3 + 10, tokens_out: 2, estimated: true };
    let without = |usage: Value| {
        let mut body = said("Hello.", "stop");
        body["usage"] = usage;
        body
    };
    let mut refusal = said("", "stop");
    refusal["choices"][0]["message"] = json!({ "content": null, "refusal": "I would rather not." });
    let mut nothing = said("", "length");
    nothing["choices"][0]["message"] = json!({ "content": null });
    let mut endless = said("Hello.", "");
    endless["choices"][0]["finish_reason"] = Value::Null;
    for (body, end, text, usage) in [
        (said("Hello.", "stop"), End::Stop, "Hello.", counted),
        (said("Hel", "length"), End::Length, "Hel", counted),
        (said("", "content_filter"), End::Filtered, "", counted),
        (said("Hello.", "something_new"), End::Stop, "Hello.", counted),
        (endless, End::Stop, "Hello.", counted),
        (refusal, End::Filtered, "", counted),
        (nothing, End::Length, "", counted),
        (without(Value::Null), End::Stop, "Hello.", estimated),
        (without(json!({})), End::Stop, "Hello.", estimated),
        (without(json!("many")), End::Stop, "Hello.", estimated),
        (without(json!({ "prompt_tokens": 7 })), End::Stop, "Hello.", Usage { tokens_in: 7, ..estimated }),
    ] {
        let server = always(ok(&body)).await;
        let reply = model(&server).chat(&question(&"x".repeat(40)), free).await.unwrap();
        assert_eq!((reply.end, reply.text.as_str(), reply.usage), (end, text, usage), "{body}");
    }
}

/// What an error is, in short.
fn kind(error: &AiError) -> &'static str {
    match error {
        AiError::NotConfigured(_) => "not configured",
        AiError::RateLimited { .. } => "rate limited",
        AiError::Refused { .. } => "refused",
        AiError::TimedOut { .. } => "timed out",
        AiError::Unavailable { .. } => "unavailable",
        AiError::NotAModel { .. } => "not a model",
        AiError::Dimensions { .. } => "dimensions",
        AiError::Turn(_) => "turn",
    }
}

#[tokio::test]
async fn what_may_pass_is_asked_again_and_what_stays_is_not() {
    let page = answer(200, "content-type: text/html\r\n", "<html>Sign in</html>");
    let cut_short = "HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n{\"choices\":".to_owned();
    let late = json!({ "error": { "message": "upstream is ill", "code": 502 } });
    let large = "HTTP/1.1 200 OK\r\ncontent-length: 16777217\r\n\r\n{}".to_owned();
    let status = |status| answer(status, "", r#"{"error":{"message":"no"}}"#);
    let passing = ["rate limited", "unavailable", "not a model"];
    let table = [
        (status(429), passing[0]),
        (status(408), passing[1]),
        (status(409), passing[1]),
        (status(500), passing[1]),
        (status(502), passing[1]),
        (status(503), passing[1]),
        (status(504), passing[1]),
        (status(529), passing[1]),
        (Vec::new(), passing[1]),
        (cut_short.into(), passing[1]),
        (ok(&late), passing[1]),
        (page, passing[2]),
        (large.into(), passing[2]),
        (ok(&json!({ "choices": [] })), passing[2]),
        (ok(&json!({ "choices": [{}] })), passing[2]),
        (ok(&json!([1, 2])), passing[2]),
        // Pieces that end before the answer does.
        (answer(200, "", "data: {}\n\n"), passing[1]),
        (answer(200, "", ""), passing[2]),
        (answer(200, "content-encoding: br\r\n", "x"), passing[2]),
        (status(400), "refused"),
        (status(401), "refused"),
        (status(402), "refused"),
        (status(403), "refused"),
        (status(404), "refused"),
        (status(413), "refused"),
        (status(422), "refused"),
        (status(204), "refused"),
        (status(302), "refused"),
    ];
    for (bytes, expected) in table {
        let shown = String::from_utf8_lossy(&bytes).into_owned();
        let failing = bytes.clone();
        let server = Scripted::start(move |_, _| Act::Break(failing.clone())).await;
        let error = model(&server).chat(&question("Who?"), free).await.unwrap_err();
        let passes = passing.contains(&expected);
        assert_eq!((kind(&error), error.is_retryable()), (expected, passes), "{shown}: {error:?}");
        assert_eq!(server.requests(), if passes { 3 } else { 1 }, "{shown}");
        // A job that is run by the queue is tried again for the same reasons.
        assert_eq!(Error::from(error).retryable(), passes, "{shown}");

        // And once it has passed, the answer is as good as any.
        let server = Scripted::start(move |number, _| match number {
            0 | 1 => Act::Break(bytes.clone()),
            _ => Act::Say(hello()),
        })
        .await;
        let reply = model(&server).chat(&question("Who?"), free).await;
        assert_eq!(reply.ok().map(|reply| reply.retries), passes.then_some(2), "{shown}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_given_up_and_asked_again() {
    let server = Scripted::start(|number, _| if number == 0 { Act::Hang } else { Act::Say(hello()) }).await;
    let short = |config: &mut Config| {
        config.providers.llm_retry.per_call_timeout = Duration::from_millis(300).into();
    };
    assert_eq!(model_with(&server, short).chat(&question("Who?"), free).await.unwrap().retries, 1);

    let server = Scripted::start(|_, _| Act::Hang).await;
    let error = model_with(&server, short).chat(&question("Who?"), free).await.unwrap_err();
    assert_eq!((kind(&error), server.requests()), ("timed out", 3));

    let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let base = format!("http://{gone}/v1").parse().unwrap();
    let model = model_with(&server, |config| config.providers.ai.cloud.base_url = Some(base));
    assert_eq!(kind(&model.chat(&question("Who?"), free).await.unwrap_err()), "unavailable");
}

#[tokio::test]
async fn whoever_asks_for_time_is_given_it_up_to_the_longest_wait() {
    for status in [429, 503] {
        let slow_down = answer(status, "retry-after: 1\r\n", "{}");
        let server =
            Scripted::start(move |number, _| Act::Say(if number == 0 { slow_down.clone() } else { hello() }))
                .await;
        let begun = Instant::now();
        let reply = model(&server).chat(&question("Who?"), free).await.unwrap();
        assert!(begun.elapsed() >= Duration::from_secs(1), "{:?}", begun.elapsed());
        assert!(reply.latency < Duration::from_secs(1), "waiting is no latency");

        let server = always(answer(status, "retry-after: 3\r\n", "{}")).await;
        let error = model(&server).chat(&question("Who?"), free).await.unwrap_err();
        assert_eq!((kind(&error), error.retry_after()), ("rate limited", Some(Duration::from_secs(3))));
        assert_eq!(server.requests(), 1);
    }
    // Only these two are believed.
    let server = always(answer(500, "retry-after: 3600\r\n", "{}")).await;
    assert_eq!(kind(&model(&server).chat(&question("Who?"), free).await.unwrap_err()), "unavailable");
    assert_eq!(server.requests(), 3);
    let server = always(answer(429, "retry-after: 0\r\n", "{}")).await;
    let error = model(&server).chat(&question("Who?"), free).await.unwrap_err();
    assert_eq!((error.retry_after(), server.requests()), (Some(Duration::ZERO), 3));
}

#[tokio::test]
async fn a_refusal_is_told_in_the_services_own_words_and_never_with_the_key() {
    let long = "é".repeat(1_000);
    let hidden = "Incorrect API key: sk-very\u{200b}-secret";
    for (status, body, message, remedy) in [
        (
            401,
            json!({ "error": { "message": format!("Incorrect API key: {KEY}.") } }),
            "Incorrect API key: ***.",
            "cloud.api_key",
        ),
        (403, json!({ "error": { "message": hidden } }), "Incorrect API key: ***", "cloud.api_key"),
        (404, json!({ "error": "model\nnot\u{1b}[31m found" }), "model not [31m found", "cloud.base_url"),
        (400, json!({ "error": { "message": long } }), &"é".repeat(300), "will not help"),
        (422, json!({ "detail": "too long" }), "too long", "will not help"),
        (400, json!({ "message": "too long" }), "too long", "will not help"),
        (400, json!({ "error": { "message": 7 } }), "", "will not help"),
        (307, json!(null), "", "cloud.base_url"),
    ] {
        let server = always(answer(status, "location: http://127.0.0.1:1/\r\n", &body.to_string())).await;
        let error = model(&server).chat(&question("Who?"), free).await.unwrap_err();
        let AiError::Refused { message: told, .. } = &error else { panic!("{error:?}") };
        assert_eq!(told, message);
        let words = format!("{error} {error:?}");
        assert!(words.contains(remedy) && !words.contains(KEY), "{words}");
        assert!(!format!("{:?}", Error::from(error)).contains(KEY));
    }
    for body in
        [json!({ "error": { "message": KEY } }), json!({ "choices": [{ "message": {}, "error": KEY }] })]
    {
        let server = always(ok(&body)).await;
        let error = model(&server).chat(&question("Who?"), free).await.unwrap_err();
        let words = format!("{error} {error:?} {:?}", std::error::Error::source(&error));
        assert!(words.contains("***") && !words.contains(KEY), "{words}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let inside = always(hello()).await;
    let to = format!("location: http://{}/v1/chat/completions\r\n", inside.address);
    for status in [301, 302, 303, 307, 308] {
        let server = always(answer(status, &to, "")).await;
        let error = model(&server).chat(&question("Who?"), free).await.unwrap_err();
        assert!(matches!(error, AiError::Refused { status: told, .. } if told == status), "{error:?}");
    }
    assert_eq!(inside.accepted(), 0);
}

#[tokio::test]
async fn each_request_waits_for_its_turn_and_none_is_sent_without_it() {
    let server = always(answer(500, "", "{}")).await;
    let turns = AtomicU32::new(0);
    let turn = || {
        turns.fetch_add(1, Ordering::SeqCst);
        free()
    };
    model(&server).chat(&question("Who?"), turn).await.unwrap_err();
    assert_eq!((turns.load(Ordering::SeqCst), server.requests()), (3, 3));

    let no = || ready(Err(Error::Overloaded("not now")));
    let error = model(&server).chat(&question("Who?"), no).await.unwrap_err();
    assert!(
        error.is_retryable() && matches!(error, AiError::Turn(Error::Overloaded("not now"))),
        "{error:?}"
    );
    assert_eq!(server.requests(), 3);
}

#[tokio::test]
async fn no_more_calls_are_out_than_allowed() {
    for (limit, allowed) in [(0, 4..=8), (3, 1..=3)] {
        let server = Scripted::start(|_, _| Act::SayAfter(Duration::from_millis(300), hello())).await;
        let model = model_with(&server, |config| config.providers.ai.models[0].max_in_flight = limit);
        let calls: Vec<_> = (0..8)
            .map(|_| {
                let model = model.clone();
                tokio::spawn(async move { model.chat(&question("Who?"), free).await.map(|_| ()) })
            })
            .collect();
        for call in calls {
            call.await.unwrap().unwrap();
        }
        assert!(allowed.contains(&server.most_out()), "{} of {allowed:?}", server.most_out());
    }
}

#[tokio::test]
async fn whoever_waits_between_attempts_takes_no_place() {
    let server = Scripted::start(|number, _| {
        Act::Say(if number == 0 { answer(429, "retry-after: 1\r\n", "{}") } else { hello() })
    })
    .await;
    let model = model_with(&server, |config| config.providers.ai.models[0].max_in_flight = 1);
    let (first, second) = (question("first"), question("second"));
    let (first, second) = tokio::join!(model.chat(&first, free), model.chat(&second, free));
    assert_eq!((first.unwrap().retries, second.unwrap().retries), (1, 0));
    let order: Vec<_> = server
        .asked()
        .iter()
        .map(|asked| asked.body["messages"][1]["content"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(order, ["first", "second", "first"]);
}

#[tokio::test]
async fn connections_are_kept() {
    let server = always(hello()).await;
    let model = model(&server);
    for _ in 0..20 {
        model.chat(&question("Who?"), free).await.unwrap();
    }
    assert_eq!((server.requests(), server.accepted()), (20, 1));
}

#[tokio::test]
async fn many_calls_are_out_at_once_and_share_their_connections_afterwards() {
    const MANY: usize = 400;
    let server = Scripted::start(|_, _| Act::SayAfter(Duration::from_millis(500), hello())).await;
    let model = model(&server);
    for _ in 0..2 {
        let calls: Vec<_> = (0..MANY)
            .map(|_| {
                let model = model.clone();
                tokio::spawn(async move { model.chat(&question("Who?"), free).await.unwrap().retries })
            })
            .collect();
        for call in calls {
            assert_eq!(call.await.unwrap(), 0);
        }
    }
    assert_eq!(server.requests(), 2 * MANY);
    assert!(server.accepted() <= MANY, "{}", server.accepted());
    assert!(server.most_out() > MANY / 4, "{}", server.most_out());
}
