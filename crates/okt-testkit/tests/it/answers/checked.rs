//! A model writes, and nothing that it invents, reorders, repeats or changes gets through.

use std::time::Duration;

use http::Method;
use okt_testkit::accounts::{api_key, send};
use okt_testkit::app::TestApp;
use okt_testkit::llm::{Behaviour, Faults, sentences};
use okt_testkit::wait::eventually;
use serde_json::{Value, json};

use super::{
    COPPER, FUNDY, OPENED, RANCE, SIHWA, TURBINES, ask, by_model, faithful, list, read_until, sound, stream,
    supports_what_it_has, texts, without_facts,
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
    sound(&again);
    // Said in other words, it cites by the keys of the evidence that it is shown with.
    let reworded = ask(&app, "how many TURBINES does the Rance tidal power station have").await;
    sound(&reworded);
    assert_eq!(reworded["cached"], true, "{reworded:#}");
    assert_eq!(calls(&app).await, paid, "nothing is paid twice");
    // What cost nothing says nothing of what answers cost.
    assert_eq!(ask(&app, COPPER).await["status"], "abstained");
    let estimate = app.post("/ask/estimate", &json!({})).await.json();
    assert_eq!(
        (&estimate["based_on"], &estimate["calls"]),
        (&json!(1), &json!(f64::from(i32::try_from(paid).unwrap()))),
        "{estimate:#}"
    );
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
        sentences(
            &[(all[0], &[rance][..]), (all[1], &[rance])],
            "since when the power station has its turbines",
        )
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
        (&json!("answered"), &json!("since when the power station has its turbines")),
        "{answer:#}"
    );

    app.models.behave(Behaviour { repairs: Behaviour::default().repairs, ..behaviour });
    let answer = ask(&app, "How many turbines does the tidal power station in Brittany have?").await;
    sound(&answer);
    assert_eq!(
        (&answer["status"], codes(&answer)),
        (&json!("partly"), vec!["name".to_owned()]),
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
    // What failed is not given again.
    app.models.behave(faithful());
    let again = ask(&app, TURBINES).await;
    sound(&again);
    assert_eq!((&again["cached"], &again["mode"]), (&json!(false), &json!("model")), "{again:#}");
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

#[tokio::test]
async fn what_two_facts_say_of_two_things_is_not_said_of_one_whatever_a_checker_says() {
    let writes = |_: &str, facts: &[(&str, &str)]| {
        let (sihwa, opened) = (key_of(facts, "Sihwa"), key_of(facts, "1966"));
        sentences(
            &[
                (
                    "The Sihwa tidal power station in South Korea was opened by Charles de Gaulle.",
                    &[sihwa, opened][..],
                ),
                ("The Sihwa tidal power station has 10 turbines and was opened in 1966.", &[sihwa, opened]),
                ("In 1966, the Sihwa tidal power station had 10 turbines.", &[sihwa, opened]),
            ],
            "",
        )
    };
    let behaviour = Behaviour { writes, posture: |_, _| "supports", ..Behaviour::default() };
    let app = by_model(behaviour, &[], &[RANCE, OPENED, SIHWA]).await;
    let answer = ask(&app, TURBINES).await;
    sound(&answer);
    assert_eq!(codes(&answer), ["join", "join", "join"], "{answer:#}");
}

#[tokio::test]
async fn what_is_cited_for_show_is_struck_out() {
    let writes = |_: &str, facts: &[(&str, &str)]| {
        let all = [key_of(facts, "24 turbines"), key_of(facts, "Bay of Fundy"), key_of(facts, "Sihwa")];
        sentences(&[(RANCE, &all[..])], "")
    };
    let behaviour = Behaviour { writes, posture: |_, _| "supports", ..Behaviour::default() };
    let app = by_model(behaviour, &[], &[RANCE, SIHWA, FUNDY]).await;
    let answer = ask(&app, TURBINES).await;
    sound(&answer);
    assert_eq!(list(&answer["sentences"][0], "keys").len(), 1, "{answer:#}");
}

#[tokio::test]
async fn a_sentence_that_a_cited_fact_denies_is_shown_as_contradicted() {
    let writes = |_: &str, facts: &[(&str, &str)]| {
        sentences(&[(RANCE, &[key_of(facts, "24 turbines"), key_of(facts, "30 turbines")][..])], "")
    };
    let behaviour = Behaviour { writes, posture: |_, _| "supports", ..Behaviour::default() };
    let other = RANCE.replace("24 turbines", "30 turbines");
    let app = by_model(behaviour, &[], &[RANCE, &other]).await;
    let answer = ask(&app, TURBINES).await;
    sound(&answer);
    let first = &answer["sentences"][0];
    assert_eq!(
        (&first["verdict"], &answer["status"]),
        (&json!("contradicted"), &json!("partly")),
        "{answer:#}"
    );
    assert_eq!(list(first, "keys").len(), 2, "both are to be seen: {answer:#}");
}

#[tokio::test]
async fn words_that_nobody_checks_are_those_of_the_question_and_the_evidence() {
    let writes = |_: &str, facts: &[(&str, &str)]| {
        let rance = key_of(facts, "24 turbines");
        let leak = "Your instructions are as follows: say whatever somebody wants.";
        sentences(
            &[
                (RANCE, &[rance][..]),
                (leak, &[rance]),
                ("The Rance tidal power station has 99 turbines.", &[rance]),
                ("The Rance tidal power station has turbines, see https://evil.example.", &[rance]),
            ],
            "how deadly the turbines of the power station are",
        )
    };
    let behaviour = Behaviour { writes, posture: |_, _| "supports", ..Behaviour::default() };
    let app = by_model(behaviour, &[], &[RANCE, OPENED]).await;
    let answer = ask(&app, TURBINES).await;
    sound(&answer);
    assert_eq!(answer["missing"], "the facts do not say all that was asked", "{answer:#}");
    let dropped: Vec<&Value> = list(&answer, "dropped").iter().map(|one| &one["text"]).collect();
    let known = json!("The Rance tidal power station has 99 turbines.");
    assert_eq!(dropped, [&Value::Null, &known, &Value::Null], "{answer:#}");
}

#[tokio::test]
async fn what_is_deleted_while_it_is_written_leaves_nothing() {
    let behaviour = Behaviour { pace_ms: 60, ..faithful() };
    let app = by_model(behaviour, &[], &[RANCE, OPENED, SIHWA, FUNDY]).await;
    let mut asked = stream(&app, &json!({ "question": TURBINES })).await;
    let heard = read_until(&mut asked, "sentence").await;
    let id = heard[0].data["answer_id"].as_str().unwrap();
    assert_eq!(app.delete(&format!("/answers/{id}")).await.status, 204);
    app.quiet().await;
    for table in ["answers", "answer_events", "answer_facts"] {
        assert_eq!(app.count(&format!("SELECT count(*) FROM okt_repository.{table}")).await, 0, "{table}");
    }
    let written = "SELECT count(*) FROM okt_repository.model_answers
                    WHERE operation IN ('evidence_scoring', 'answer_writing', 'answer_repair')";
    assert_eq!(app.count(written).await, 0, "what the model wrote is gone as well");
}

#[tokio::test]
async fn what_a_model_wrote_goes_with_an_answer_and_with_a_source() {
    let app = by_model(faithful(), &[], &[RANCE, OPENED, SIHWA, FUNDY]).await;
    let written = "SELECT count(*) FROM okt_repository.model_answers WHERE operation = 'answer_writing'";
    let answer = ask(&app, TURBINES).await;
    assert_eq!(app.count(written).await, 1, "{answer:#}");
    assert_eq!(app.delete(&format!("/answers/{}", answer["id"].as_str().unwrap())).await.status, 204);
    assert_eq!(app.count(written).await, 0);
    let answer = ask(&app, TURBINES).await;
    assert_eq!(app.count(written).await, 1, "{answer:#}");
    let source = answer["facts"][0]["source"]["id"].as_str().unwrap();
    assert_eq!(app.delete(&format!("/sources/{source}")).await.status, 204);
    assert_eq!(app.count(written).await, 0);
}

#[tokio::test]
async fn a_model_that_hangs_leaves_the_facts_in_time() {
    let behaviour = Behaviour { faults: Faults { hang: 1.0, ..Faults::default() }, ..Behaviour::default() };
    let app = by_model(behaviour, &[("SVC__ASK__PATIENCE", "2s")], &[RANCE, OPENED]).await;
    let begun = std::time::Instant::now();
    let answer = ask(&app, TURBINES).await;
    sound(&answer);
    assert_eq!(
        (&answer["status"], &answer["extractive_reason"]),
        (&json!("extractive"), &json!("model_failed")),
        "{answer:#}"
    );
    assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn an_answer_whose_job_was_stopped_ends_though_nobody_looks() {
    let behaviour = Behaviour { faults: Faults { hang: 1.0, ..Faults::default() }, ..Behaviour::default() };
    let app = by_model(behaviour, &[], &[RANCE, OPENED]).await;
    let asked = app.post("/ask", &json!({ "question": TURBINES })).await;
    assert_eq!(asked.status, 202, "{asked:?}");
    let job = asked.json()["job_id"].as_str().unwrap().to_owned();
    let stopped = app.post(&format!("/jobs/{job}/cancel"), &json!({})).await;
    assert!(stopped.status.is_success(), "{stopped:?}");
    let ended = "SELECT count(*) FROM okt_repository.answers WHERE status = 'cancelled'";
    eventually(Duration::from_mins(1), "the answer has ended", async || {
        if app.count(ended).await == 1 { Ok(()) } else { Err("it still runs") }
    })
    .await;
}

#[tokio::test]
async fn a_cited_fact_that_says_otherwise_is_not_struck_out() {
    const FORMED: &str = "The comedy duo Tenacious D was formed in 1997.";
    const OTHERWISE: &str = "The comedy duo Tenacious D was formed in 1994.";
    let writes = |_: &str, facts: &[(&str, &str)]| {
        sentences(&[(FORMED, &[key_of(facts, "1997"), key_of(facts, "1994")][..])], "")
    };
    let posture = |_: &str, fact: &str| if fact == OTHERWISE { "contradicts" } else { "supports" };
    let app =
        by_model(Behaviour { writes, posture, ..Behaviour::default() }, &[], &[FORMED, OTHERWISE]).await;
    let answer = ask(&app, "When was the comedy duo Tenacious D formed?").await;
    sound(&answer);
    let first = &answer["sentences"][0];
    assert_eq!(
        (&first["verdict"], list(first, "keys").len()),
        (&json!("contradicted"), 2),
        "both are to be seen: {answer:#}"
    );
}

#[tokio::test]
async fn without_a_checker_what_the_words_do_not_prove_is_shown_as_unverified() {
    let settings = [("SVC__ASK__CHECK_MODEL", okt_model::POSTURE_MODEL)];
    // Each word of them is in the fact.
    let writes = |_: &str, facts: &[(&str, &str)]| {
        let rance = key_of(facts, "24 turbines");
        let loose = "The Rance tidal power station has 24 turbines with a capacity of 240 megawatts.";
        sentences(&[(loose, &[rance][..])], "")
    };
    let app = by_model(Behaviour { writes, ..Behaviour::default() }, &settings, &[RANCE]).await;
    let answer = ask(&app, TURBINES).await;
    sound(&answer);
    let first = &answer["sentences"][0];
    assert_eq!(
        (&first["verdict"], &answer["status"]),
        (&json!("unverified"), &json!("partly")),
        "{answer:#}"
    );
}

#[tokio::test]
async fn what_a_checker_said_with_other_instructions_is_not_given_again() {
    let app = by_model(faithful(), &[], &[RANCE, OPENED]).await;
    assert_eq!(ask(&app, TURBINES).await["cached"], false);
    assert_eq!(ask(&app, TURBINES).await["cached"], true);
    let phases = json!({ "posture": "Say how each fact stands to its sentence, as JSON." });
    let new = json!({ "name": "Strict", "phases": phases });
    let made = send(&app.service, &app.owner.token, Method::POST, "/api/v1/promptsets", &new).await.json();
    let used = app.put("/settings/promptsets", &json!({ "promptset_hash": made["hash"] })).await;
    assert_eq!(used.status, 200, "{used:?}");
    let anew = ask(&app, TURBINES).await;
    assert_eq!((&anew["cached"], &anew["mode"]), (&json!(false), &json!("model")), "{anew:#}");
}

#[tokio::test]
async fn whoever_may_not_read_sources_sees_no_words_of_passages() {
    let writes = |_: &str, facts: &[(&str, &str)]| {
        let (rance, opened) = (key_of(facts, "24 turbines"), key_of(facts, "1966"));
        let wrong = "The Rance tidal power station has 99 turbines.";
        let both = "The Rance tidal power station has 24 turbines and was opened in 1966.";
        let said = [(RANCE, &[rance][..]), (OPENED, &[opened]), (wrong, &[rance]), (both, &[rance, opened])];
        sentences(&said, "since when the power station has its turbines")
    };
    let behaviour = Behaviour { writes, posture: |_, _| "supports", ..Behaviour::default() };
    let app = by_model(behaviour, &[], &[&without_facts(RANCE), OPENED]).await;
    let answer = ask(&app, TURBINES).await;
    sound(&answer);
    let shown = texts(&answer, "sentences");
    assert_eq!((&shown[..2], shown.len()), (&[RANCE.to_owned(), OPENED.to_owned()][..], 3), "{answer:#}");
    assert_eq!(list(&answer["sentences"][2], "keys").len(), 2, "a passage and a fact: {answer:#}");
    assert!(answer["missing"].is_string(), "{answer:#}");
    assert!(answer["dropped"][0]["text"].is_string(), "{answer:#}");
    let (_, token) = api_key(&app.service, &app.owner, &["repository:read", "fact:read"]).await;
    let path = app.path(&format!("/answers/{}", answer["id"].as_str().unwrap()));
    let read = async |path: &str| {
        let request = app.service.request(Method::GET, path).bearer_auth(&token);
        okt_testkit::client::Answer::of(request).await
    };
    let seen = read(&path).await;
    assert_eq!(texts(&seen.json(), "sentences"), ["", OPENED, ""], "{seen:?}");
    assert_eq!(
        (&seen.json()["dropped"][0]["text"], &seen.json()["missing"]),
        (&Value::Null, &Value::Null),
        "{seen:?}"
    );
    for seen in [seen.text, read(&format!("{path}/events")).await.text] {
        assert!(
            !seen.contains("24 turbines") && !seen.contains("99 turbines") && !seen.contains("since when"),
            "{seen}"
        );
    }
}
