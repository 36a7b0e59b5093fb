//! Workers and API processes die in mid-answer: the stream goes on, and nothing is paid twice but what was on the wire.

use std::time::Duration;

use okt_testkit::jobs::program;
use okt_testkit::llm::Behaviour;
use okt_testkit::process::Process;
use okt_testkit::wait::eventually;
use serde_json::json;

use super::{
    Event, FUNDY, OPENED, RANCE, SIHWA, TURBINES, by_model, events, faithful, list, sound,
    supports_what_it_has, texts,
};

/// Reads events of a stream until there are so many, or it ends.
async fn some(stream: &mut reqwest::Response, many: usize) -> Vec<Event> {
    let mut text = String::new();
    loop {
        let whole = text.rfind("\n\n").map_or("", |end| &text[..end + 2]);
        if events(whole).len() >= many {
            return events(whole);
        }
        match tokio::time::timeout(Duration::from_mins(1), stream.chunk()).await {
            Ok(Ok(Some(chunk))) => text.push_str(str::from_utf8(&chunk).unwrap()),
            _ => return events(whole),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_worker_and_an_api_process_are_killed_the_answer_is_written_to_its_end_once() {
    let behaviour = Behaviour { pace_ms: 120, posture: supports_what_it_has, ..faithful() };
    let settings = [
        ("SVC__TASK__HEARTBEAT_INTERVAL", "200ms"),
        ("SVC__TASK__HEARTBEAT_TIMEOUT", "1s"),
        ("SVC__PROVIDERS__LLM_RETRY__PER_CALL_TIMEOUT", "20s"),
    ];
    let mut app = by_model(behaviour, &settings, &[RANCE, OPENED, SIHWA, FUNDY]).await;
    app.rest();
    let processes = app.process_settings();
    let mut api = Process::serve_as(program(), &["--role", "api"], &processes);
    api.await_listening();
    let worker = Process::serve_as(program(), &["--role", "worker"], &processes);
    let client = okt_testkit::client::client();
    let path = app.path("/ask");
    let mut asked = client
        .post(format!("{}{path}", api.url))
        .bearer_auth(&app.owner.token)
        .header("accept", "text/event-stream")
        .json(&json!({ "question": TURBINES }))
        .send()
        .await
        .unwrap();
    let id = asked.headers()["x-answer-id"].to_str().unwrap().to_owned();
    // Understood, evidence, and a sentence.
    let heard = some(&mut asked, 3).await;
    assert_eq!(heard.last().unwrap().name, "sentence", "{heard:?}");
    drop(worker);
    drop(api);
    let worker = Process::serve_as(program(), &["--role", "worker"], &processes);
    let mut other = Process::serve_as(program(), &["--role", "api"], &processes);
    other.await_listening();
    let last = heard.last().unwrap().id;
    let mut rest = Vec::new();
    eventually(Duration::from_mins(2), "the stream comes to its end", async || {
        let from = rest.last().map_or(last, |event: &Event| event.id);
        let stream = client
            .get(format!("{}{}", other.url, app.path(&format!("/answers/{id}/events"))))
            .bearer_auth(&app.owner.token)
            .header("last-event-id", from.to_string())
            .send()
            .await
            .map_err(|error| error.to_string())?;
        let mut stream = stream;
        rest.extend(some(&mut stream, usize::MAX).await);
        if rest.last().is_some_and(|event| event.name == "done") { Ok(()) } else { Err(format!("{rest:?}")) }
    })
    .await;
    drop((worker, other));
    let ids: Vec<i64> = heard.iter().chain(&rest).map(|event| event.id).collect();
    assert_eq!(
        ids,
        (1..=i64::try_from(ids.len()).unwrap()).collect::<Vec<_>>(),
        "none is lost and none comes twice"
    );
    let answer = app.read(&format!("/answers/{id}")).await;
    sound(&answer);
    assert_eq!(answer["status"], "answered", "{answer:#}");
    let mut said = texts(&answer, "sentences");
    let count = said.len();
    said.sort();
    said.dedup();
    assert_eq!(said.len(), count, "nothing is said twice: {answer:#}");
    assert_eq!(list(&answer, "sentences").len(), 3, "{answer:#}");
    // What was on the wire when the worker died is asked once more, and nothing else.
    let paid = app
        .count(
            "SELECT count(*) FROM okt_system.ai_calls WHERE subject_kind = 'question' AND operation = 'evidence_scoring'",
        )
        .await;
    assert_eq!(paid, 1);
    let written = app
        .count("SELECT count(*) FROM okt_system.ai_calls WHERE subject_kind = 'question' AND operation = 'answer_writing'")
        .await;
    assert_eq!(written, 1, "the first was never answered in full");
    let twice = app
        .count(
            "SELECT count(*) FROM (SELECT operation, count(*) FROM okt_system.ai_calls WHERE subject_kind = 'question'
               GROUP BY operation, characters, tokens_in HAVING count(*) > 2) AS often",
        )
        .await;
    assert_eq!(twice, 0);
}
