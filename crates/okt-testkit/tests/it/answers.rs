//! Questions that are answered from the facts, each sentence checked before it is shown.

mod checked;
mod command;
mod conversations;
mod extractive;
mod hostile;
mod kills;
mod money;
mod twins;
mod watched;

use std::time::Duration;

use http::Method;
use okt_testkit::accounts::Person;
use okt_testkit::app::{MODEL, TestApp};
use okt_testkit::llm::Behaviour;
use okt_testkit::wait::eventually;
use serde_json::{Value, json};

const FUNDY: &str = "The Bay of Fundy has the highest tides of the world, with a range of 16 metres.";
const RANCE: &str =
    "The Rance tidal power station in Brittany has 24 turbines with a capacity of 240 megawatts.";
const OPENED: &str = "The Rance tidal power station in Brittany was opened in 1966 by Charles de Gaulle.";
const SIHWA: &str =
    "The Sihwa tidal power station in South Korea has 10 turbines with a capacity of 254 megawatts.";
const TURBINES: &str = "How many turbines does the Rance tidal power station have?";
const COPPER: &str = "Why did copper become so expensive on the markets of Zurich?";

/// Short waits for those who do not stream.
const SOON: (&str, &str) = ("SVC__SERVER__WRITE_TIMEOUT", "3s");

/// Without a model, with a source for each text.
async fn extractive(texts: &[&str]) -> TestApp {
    let builder = TestApp::builder().vectors().concepts(okt_model::CONCEPT_MODEL).settings(&[SOON]);
    let mut app = builder.start().await;
    app.work().await;
    say(&app, texts).await;
    app
}

/// With a model that writes and checks.
async fn by_model(behaviour: Behaviour, settings: &[(&str, &str)], texts: &[&str]) -> TestApp {
    let mut all = vec![
        SOON,
        ("SVC__ASK__MODEL", MODEL),
        ("SVC__PROVIDERS__DECOMPOSITION__FACT_EXTRACTION__MODEL", okt_model::EXTRACTIVE_MODEL),
    ];
    all.extend_from_slice(settings);
    let prices = "input_cost_per_1m = 1.0\noutput_cost_per_1m = 2.0";
    let builder = TestApp::builder().vectors().concepts(okt_model::CONCEPT_MODEL);
    let mut app = builder.models(behaviour, prices).settings(&all).start().await;
    app.work().await;
    say(&app, texts).await;
    app
}

async fn say(app: &TestApp, texts: &[&str]) {
    for (at, text) in texts.iter().enumerate() {
        let id = app.add_text(&format!("tides-{at}.txt"), text).await;
        app.settled(&id).await;
    }
    app.quiet().await;
}

/// The same words, of which the built-in extraction makes no fact: they are an exclamation.
fn without_facts(text: &str) -> String {
    text.replace('.', "!")
}

/// A posture that is true of texts that say all that a sentence says.
fn supports_what_it_has(sentence: &str, fact: &str) -> &'static str {
    if fact.contains(sentence.trim_end_matches('.')) { "supports" } else { "related" }
}

fn faithful() -> Behaviour {
    Behaviour { posture: supports_what_it_has, ..Behaviour::default() }
}

/// An answer that has ended, as the owner sees it.
async fn ask(app: &TestApp, question: &str) -> Value {
    ask_as(app, &app.owner, &json!({ "question": question })).await
}

async fn ask_as(app: &TestApp, who: &Person, body: &Value) -> Value {
    let asked = app.send(who, Method::POST, "/ask", body).await;
    match asked.status.as_u16() {
        200 => asked.json(),
        202 => ended(app, who, asked.json()["answer_id"].as_str().unwrap()).await,
        _ => panic!("{asked:?}"),
    }
}

async fn ended(app: &TestApp, who: &Person, id: &str) -> Value {
    let path = format!("/answers/{id}");
    let mut seen = Value::Null;
    eventually(Duration::from_mins(2), "the answer has ended", async || {
        let answer = app.get_as(who, &path).await.json();
        seen = answer.clone();
        if answer["status"] == "running" { Err(answer) } else { Ok(()) }
    })
    .await;
    seen
}

fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value[name].as_array().unwrap_or_else(|| panic!("{name} of {value:#}"))
}

fn texts(value: &Value, name: &str) -> Vec<String> {
    list(value, name).iter().map(|one| one["text"].as_str().unwrap().to_owned()).collect()
}

/// What holds of every answer, whoever wrote it.
fn sound(answer: &Value) {
    let keys: Vec<&Value> = list(answer, "facts").iter().map(|fact| &fact["key"]).collect();
    let ids: Vec<&Value> = list(answer, "facts").iter().map(|fact| &fact["id"]).collect();
    for (at, sentence) in list(answer, "sentences").iter().enumerate() {
        assert_eq!(sentence["index"], at, "{answer:#}");
        assert!(!list(sentence, "keys").is_empty(), "a sentence without evidence is shown: {sentence:#}");
        assert!(list(sentence, "keys").iter().all(|key| keys.contains(&key)), "{sentence:#}");
        assert!(list(sentence, "fact_ids").iter().all(|id| ids.contains(&id)), "{sentence:#}");
    }
    let none = list(answer, "sentences").is_empty();
    let status = answer["status"].as_str().unwrap();
    assert!(!(none && matches!(status, "answered" | "partly" | "extractive")), "{answer:#}");
    assert!(none || status != "abstained", "{answer:#}");
    assert_eq!(status == "abstained", answer["near_only"] == true, "{answer:#}");
    let all_right = list(answer, "sentences").iter().all(|sentence| sentence["verdict"] == "supported");
    assert!(status != "answered" || (all_right && list(answer, "dropped").is_empty()), "{answer:#}");
}

/// An event of a stream.
#[derive(Clone, Debug)]
struct Event {
    id: i64,
    name: String,
    data: Value,
}

/// The events of a text, in order.
fn events(text: &str) -> Vec<Event> {
    let blocks = text.split("\n\n").filter(|block| block.contains("event: "));
    blocks
        .map(|block| {
            let field = |name: &str| {
                block.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{block}"))
            };
            Event {
                id: field("id: ").parse().unwrap(),
                name: field("event: ").to_owned(),
                data: serde_json::from_str(field("data: ")).unwrap(),
            }
        })
        .collect()
}

/// Asks for a stream, which is not read yet.
async fn stream(app: &TestApp, body: &Value) -> reqwest::Response {
    let request = app.service.request(Method::POST, &app.path("/ask")).bearer_auth(&app.owner.token);
    request.header("accept", "text/event-stream").json(body).send().await.unwrap()
}

/// Reads until an event of this name has come, or to the end.
async fn read_until(stream: &mut reqwest::Response, name: &str) -> Vec<Event> {
    let mut text = String::new();
    while let Some(chunk) = stream.chunk().await.unwrap() {
        text.push_str(str::from_utf8(&chunk).unwrap());
        if text.ends_with("\n\n") && events(&text).iter().any(|event| event.name == name) {
            break;
        }
    }
    events(&text)
}
