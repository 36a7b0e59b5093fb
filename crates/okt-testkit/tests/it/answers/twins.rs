//! Questions whose evidence was removed: nothing is made up in its place.

use okt_testkit::llm::{Behaviour, sentences};
use serde_json::json;

use super::{FUNDY, OPENED, RANCE, SIHWA, TURBINES, ask, by_model, faithful, list, sound, texts};

const QUESTIONS: [(&str, &str, &str); 4] = [
    (TURBINES, RANCE, "24 turbines"),
    ("When was the Rance tidal power station opened?", OPENED, "1966"),
    ("How many turbines does the Sihwa tidal power station have?", SIHWA, "10 turbines"),
    ("How high are the tides in the Bay of Fundy?", FUNDY, "16 metres"),
];

/// It knows the answers by heart, and cites the first fact for whatever it says.
fn from_memory(question: &str, facts: &[(&str, &str)]) -> String {
    let said =
        QUESTIONS.iter().find(|(asked, ..)| *asked == question).map_or("Nobody knows.", |(_, said, _)| *said);
    let first = facts.first().map_or("zzzz", |(key, _)| *key);
    let of = facts.iter().find(|(_, text)| text.contains(said)).map_or(first, |(key, _)| *key);
    sentences(&[(said, &[of])], "")
}

#[tokio::test]
async fn with_the_evidence_there_is_an_answer_and_without_it_there_is_none() {
    let behaviour = Behaviour { writes: from_memory, posture: |_, _| "supports", ..Behaviour::default() };
    let app = by_model(behaviour, &[], &[]).await;
    let mut ids = Vec::new();
    for (at, (_, text, _)) in QUESTIONS.iter().enumerate() {
        let id = app.add_text(&format!("{at}.txt"), text).await;
        app.settled(&id).await;
        ids.push(id);
    }
    app.quiet().await;
    for (question, _, part) in QUESTIONS {
        let answer = ask(&app, question).await;
        sound(&answer);
        assert_eq!(answer["status"], "answered", "{answer:#}");
        assert!(texts(&answer, "sentences")[0].contains(part), "{answer:#}");
    }
    let (mut false_answers, mut asked) = (0, 0);
    for ((question, text, part), id) in QUESTIONS.into_iter().zip(ids) {
        assert_eq!(app.delete(&format!("/sources/{id}")).await.status, 204);
        app.quiet().await;
        let answer = ask(&app, question).await;
        sound(&answer);
        asked += 1;
        let shown = texts(&answer, "sentences");
        false_answers += shown.iter().filter(|sentence| sentence.contains(part)).count();
        assert_eq!(answer["status"], "abstained", "{text}: {answer:#}");
        assert_eq!(list(&answer, "sentences").len(), 0);
        assert_ne!(answer["cached"], json!(true), "the evidence is not what it was: {answer:#}");
    }
    assert_eq!((false_answers, asked), (0, 4));
}

#[tokio::test]
async fn what_is_missing_may_be_shown_by_a_fact_that_says_so() {
    const GAP: &str =
        "The archive of the Rance tidal power station has no record of the day on which it was opened.";
    const MISSING: &str = "when the Rance tidal power station was opened";
    let writes = |_: &str, facts: &[(&str, &str)]| {
        let gap = facts.iter().find(|(_, text)| text.contains("no record")).map_or("zzzz", |(key, _)| *key);
        sentences(&[(GAP, &[gap][..])], MISSING)
    };
    let app = by_model(Behaviour { writes, ..faithful() }, &[], &[GAP, RANCE, SIHWA]).await;
    let answer = ask(&app, "When was the Rance tidal power station opened?").await;
    sound(&answer);
    // It cites what shows the gap, and that is no reason to leave it out.
    assert_eq!(texts(&answer, "sentences"), [GAP], "{answer:#}");
    assert_eq!((&answer["status"], &answer["missing"]), (&json!("answered"), &json!(MISSING)), "{answer:#}");
}
