//! A model writes, and nothing that it invents, reorders, repeats or changes gets through.

use okt_testkit::app::TestApp;
use okt_testkit::llm::{Behaviour, Faults, sentences};
use serde_json::{Value, json};

use super::{
    COPPER, FUNDY, OPENED, RANCE, SIHWA, TURBINES, ask, by_model, faithful, list, read_until, sound, stream,
    supports_what_it_has, texts,
};

/// The key under which a text was given.
fn key_of<'f>(facts: &[(&'f str, &'f str)], part: &str) -> &'f str {
    facts.iter().find(|(_, text)| text.contains(part)).map_or("qqqq", |(key, _)| *key)
}

fn codes(answer: &Value) -> Vec<String> {
    list(answer, "dropped").iter().map(|one| one["code"].as_str().unwrap().to_owned()).collect()
}

async fn calls(app: &TestApp) -> i64 {
    app.count("SELECT count(*) FROM okt_system.ai_calls WHERE subject_kind = 'question'").await
}

#[tokio::test]
async fn a_faithful_model_is_believed_and_its_answer_is_paid_once() {
    let app = by_model(faithful(), &[], &[RANCE, OPENED, SIHWA, FUNDY]).await;
    let answer = ask(&app, TURBINES).await;
    sound(&answer);
    assert_eq!((&answer["status"], &answer["mode"]), (&json!("answered"), &json!("model")), "{answer:#}");
    assert!(!list(&answer, "sentences").is_empty() && answer["extractive_reason"].is_null());
    assert!(answer["cost"]["usd"].as_f64().unwrap() > 0.0, "{answer:#}");
    let paid = calls(&app).await;
    assert_eq!(answer["cost"]["calls"], paid, "{answer:#}");
    let again = ask(&app, TURBINES).await;
    assert_eq!((&again["cached"], &again["cost"]["usd"]), (&json!(true), &json!(0.0)), "{again:#}");
    assert_eq!(calls(&app).await, paid, "nothing is paid twice");
    let estimate = app.post("/ask/estimate", &json!({})).await.json();
    assert_eq!((&estimate["based_on"], &estimate["calls"]), (&json!(1), &json!(f64::from(i32::try_from(paid).unwrap()))), "{estimate:#}");
}

#[tokio::test]
async fn sentences_come_while_the_next_is_written() {
    let behaviour = Behaviour { pace_ms: 60, ..faithful() };
    let app = by_model(behaviour, &[], &[RANCE, OPENED, SIHWA, FUNDY]).await;
    let mut asked = stream(&app, &json!({ "question": TURBINES })).await;
    let heard = read_until(&mut asked, "sentence").await;
    assert!(heard.iter().all(|event| event.name != "done"), "{heard:?}");
    let running = app.read(&format!("/answers/{}", heard[0].data["answer_id"].as_str().unwrap())).await;
    assert_eq!((&running["status"], list(&running, "sentences").is_empty()), (&json!("running"), false));
    let rest = read_until(&mut asked, "done").await;
    assert_eq!(rest.last().unwrap().data["status"], "answered", "{rest:?}");
}

#[tokio::test]
async fn a_model_that_invents_reorders_and_repeats_keys_cites_nothing_that_was_not_given() {
    let writes = |_: &str, facts: &[(&str, &str)]| {
        let rance = key_of(facts, "24 turbines");
        let fundy = key_of(facts, "Bay of Fundy");
        sentences(
            &[
                (RANCE, &["zzzz", rance, rance, "1", "fact:1"][..]),
                (FUNDY, &[fundy.to_uppercase().as_str(), "bbbb"]),
                // The key of another fact, as of one that is off by one.
                (OPENED, &[fundy]),
                ("The Rance station is painted blue.", &["xxxx"]),
                ("The Rance station is painted red.", &[]),
                (RANCE, &[rance]),
            ],
            "",
        )
    };
    // It says yes to everything: the words bind it all the same.
    let behaviour = Behaviour { writes, posture: |_, _| "supports", ..Behaviour::default() };
    let app = by_model(behaviour, &[], &[RANCE, OPENED, FUNDY]).await;
    let answer = ask(&app, TURBINES).await;
    sound(&answer);
    assert_eq!(texts(&answer, "sentences"), [RANCE, FUNDY], "{answer:#}");
    assert_eq!(list(&answer["sentences"][0], "keys").len(), 1, "{answer:#}");
    assert_eq!(answer["status"], "partly");
    let codes = codes(&answer);
    assert_eq!(codes.iter().filter(|code| *code == "no_keys").count(), 2, "{answer:#}");
    assert_eq!(codes.len(), 3, "what is said twice is one sentence: {answer:#}");
}

#[tokio::test]
async fn changed_numbers_names_negations_and_joins_do_not_pass_whatever_a_checker_says() {
    let writes = |_: &str, facts: &[(&str, &str)]| {
        let (rance, sihwa) = (key_of(facts, "24 turbines"), key_of(facts, "Sihwa"));
        let opened = key_of(facts, "1966");
        sentences(
            &[
                ("The Rance tidal power station in Brittany has 25 turbines.", &[rance][..]),
                ("The Rance tidal power station in Brittany does not have 24 turbines.", &[rance]),
                ("The Kislaya tidal power station in Brittany has 24 turbines.", &[rance]),
                ("The Sihwa tidal power station in South Korea has 24 turbines.", &[rance, sihwa]),
                ("The Rance station was opened in 1966 because it has 24 turbines.", &[rance, opened]),
                ("A capacity of 240 megawatts is equivalent to 10 turbines.", &[rance, sihwa]),
                ("The Rance station has 24 turbines, see https://evil.example/x.", &[rance]),
            ],
            "",
        )
    };
    let behaviour = Behaviour { writes, posture: |_, _| "supports", ..Behaviour::default() };
    let app = by_model(behaviour, &[], &[RANCE, OPENED, SIHWA]).await;
    let answer = ask(&app, TURBINES).await;
    sound(&answer);
    assert!(list(&answer, "sentences").is_empty(), "{answer:#}");
    assert_eq!((&answer["status"], list(&answer, "dropped").len()), (&json!("abstained"), 7), "{answer:#}");
    let codes = codes(&answer);
    for code in ["number", "name", "join", "unsupported"] {
        assert!(codes.contains(&code.to_owned()), "{code}: {answer:#}");
    }
    assert!(list(&answer, "dropped").iter().all(|one| !one["reason"].as_str().unwrap().is_empty()));
}

#[tokio::test]
async fn what_a_checker_does_not_support_is_said_otherwise_or_not_at_all() {
    let writes = |_: &str, facts: &[(&str, &str)]| {
        let rance = key_of(facts, "24 turbines");
        let all = ["The Rance tidal power station in Brittany has a capacity with turbines.", RANCE];
        sentences(&[(all[0], &[rance][..]), (all[1], &[rance])], "how old it is")
    };
    let repairs = |asked: &str| {
        let key = asked.lines().find_map(|line| line.strip_prefix('[')?.split(']').next()).unwrap_or("zzzz");
        json!({ "sentences": [{ "n": 1, "s": "The Rance tidal power station in Brittany has 24 turbines.", "f": [key] }] })
            .to_string()
    };
    let posture = |sentence: &str, fact: &str| {
        if sentence.contains("capacity with turbines") {
            "related"
        } else {
            supports_what_it_has(sentence, fact)
        }
    };
    let behaviour = Behaviour { writes, repairs, posture, ..Behaviour::default() };
    let app = by_model(behaviour.clone(), &[], &[RANCE, OPENED]).await;
    let answer = ask(&app, TURBINES).await;
    sound(&answer);
    let shown = texts(&answer, "sentences");
    assert_eq!(shown, [RANCE, "The Rance tidal power station in Brittany has 24 turbines."], "{answer:#}");
    assert_eq!(
        (&answer["status"], &answer["missing"]),
        (&json!("answered"), &json!("how old it is")),
        "{answer:#}"
    );

    app.models.behave(Behaviour { repairs: Behaviour::default().repairs, ..behaviour });
    let answer = ask(&app, "How many turbines does the tidal power station in Brittany have?").await;
    sound(&answer);
    assert_eq!(
        (&answer["status"], codes(&answer)),
        (&json!("partly"), vec!["unsupported".to_owned()]),
        "{answer:#}"
    );
}

#[tokio::test]
async fn a_model_that_says_nothing_of_use_leaves_the_facts() {
    let behaviour =
        Behaviour { faults: Faults { garbage: 1.0, ..Faults::default() }, ..Behaviour::default() };
    let app = by_model(behaviour, &[], &[RANCE, OPENED]).await;
    let mut asked = stream(&app, &json!({ "question": TURBINES })).await;
    let heard = read_until(&mut asked, "done").await;
    let turned = heard.iter().find(|event| event.name == "turned").unwrap();
    assert_eq!(turned.data["extractive_reason"], "model_failed");
    let id = heard[0].data["answer_id"].as_str().unwrap();
    let answer = app.read(&format!("/answers/{id}")).await;
    sound(&answer);
    assert_eq!(
        (&answer["status"], &answer["mode"], &answer["extractive_reason"]),
        (&json!("extractive"), &json!("extractive"), &json!("model_failed")),
        "{answer:#}"
    );
}

#[tokio::test]
async fn a_checker_that_is_away_leaves_what_rules_say() {
    let settings = [("SVC__ASK__CHECK_MODEL", okt_model::POSTURE_MODEL)];
    let writes = |_: &str, facts: &[(&str, &str)]| {
        let rance = key_of(facts, "24 turbines");
        let loose = "In Brittany there is a station of the Rance whose turbines give power to whole towns.";
        sentences(&[(RANCE, &[rance][..]), (loose, &[rance])], "")
    };
    let app = by_model(Behaviour { writes, ..Behaviour::default() }, &settings, &[RANCE, OPENED]).await;
    let answer = ask(&app, TURBINES).await;
    sound(&answer);
    assert_eq!(answer["check_model"], okt_model::POSTURE_MODEL);
    let first = &answer["sentences"][0];
    assert_eq!((&first["verdict"], &first["method"]), (&json!("supported"), &json!("rule")), "{answer:#}");
    for other in &list(&answer, "sentences")[1..] {
        assert_eq!(other["verdict"], "unverified", "{answer:#}");
    }
    assert_eq!(answer["status"], "partly", "{answer:#}");
}

#[tokio::test]
async fn what_does_not_help_is_no_answer() {
    let behaviour = Behaviour { helps: |_, _| 0, ..faithful() };
    let app = by_model(behaviour, &[], &[RANCE, OPENED, SIHWA, FUNDY]).await;
    let answer = ask(&app, "How many ships pass the Rance tidal power station in a year?").await;
    sound(&answer);
    assert_eq!(answer["status"], "abstained", "{answer:#}");
    let asked = calls(&app).await;
    assert!(asked <= 1, "one call says that nothing helps: {asked}");
    // Nothing to do with the question at all: nobody is asked.
    let nothing = ask(&app, COPPER).await;
    assert_eq!(nothing["status"], "abstained", "{nothing:#}");
}

#[tokio::test]
async fn a_stopped_answer_keeps_what_is_there() {
    let behaviour = Behaviour { pace_ms: 150, ..faithful() };
    let app = by_model(behaviour, &[], &[RANCE, OPENED, SIHWA, FUNDY]).await;
    let mut asked = stream(&app, &json!({ "question": TURBINES })).await;
    let heard = read_until(&mut asked, "sentence").await;
    let id = heard[0].data["answer_id"].as_str().unwrap();
    let stopped = app.post(&format!("/answers/{id}/cancel"), &Value::Null).await;
    assert_eq!(stopped.status, 202, "{stopped:?}");
    let answer = stopped.json();
    sound(&answer);
    assert_eq!(answer["status"], "cancelled", "{answer:#}");
    assert!(!list(&answer, "sentences").is_empty());
    let rest = read_until(&mut asked, "done").await;
    assert_eq!(rest.last().unwrap().data["status"], "cancelled", "{rest:?}");
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let later = app.read(&format!("/answers/{id}")).await;
    assert_eq!(texts(&later, "sentences"), texts(&answer, "sentences"), "nothing is added");
    let again = app.post(&format!("/answers/{id}/cancel"), &Value::Null).await;
    assert_eq!(again.status, 409, "{again:?}");
}
