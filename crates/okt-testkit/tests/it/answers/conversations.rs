//! Questions that follow on each other.

use okt_testkit::accounts::{give, register};
use serde_json::json;

use super::{
    COPPER, FUNDY, OPENED, RANCE, SIHWA, TURBINES, ask_as, by_model, events, extractive, faithful, list,
    sound,
};

#[tokio::test]
async fn each_of_five_turns_stands_by_itself() {
    let app = by_model(faithful(), &[], &[RANCE, OPENED, SIHWA, FUNDY]).await;
    let made = app.post("/conversations", &json!({})).await;
    assert_eq!(made.status, 201, "{made:?}");
    let id = made.json()["id"].as_str().unwrap().to_owned();
    let questions = [
        TURBINES,
        "When was it opened?",
        "By whom?",
        "How many turbines does Sihwa have?",
        "And its capacity?",
    ];
    for question in questions {
        let answer = ask_as(&app, &app.owner, &json!({ "question": question, "conversation_id": id })).await;
        sound(&answer);
        assert_eq!(answer["conversation_id"], json!(id));
        assert_eq!(answer["question"], json!(question), "both forms are kept");
        assert!(!list(&answer, "facts").is_empty(), "{answer:#}");
    }
    let whole = app.read(&format!("/conversations/{id}")).await;
    assert_eq!((&whole["title"], &whole["answer_count"]), (&json!(TURBINES), &json!(5)), "{whole:#}");
    let asked: Vec<&str> =
        list(&whole, "answers").iter().map(|row| row["question"].as_str().unwrap()).collect();
    assert_eq!(asked, questions);
    // The model is told what was asked before, and nothing that it said itself.
    let kept = app.count(
        "SELECT count(*) FROM okt_repository.answers WHERE searched LIKE 'When was it opened? %' OR searched = 'When was it opened?'",
    );
    assert_eq!(kept.await, 1);
    assert_eq!(
        app.read(&format!("/answers?conversation_id={id}")).await["data"].as_array().unwrap().len(),
        5
    );
    assert_eq!(app.delete(&format!("/conversations/{id}")).await.status, 204);
    assert_eq!(app.get(&format!("/conversations/{id}")).await.status, 404);
    assert_eq!(app.count("SELECT count(*) FROM okt_repository.answers").await, 0);
}

#[tokio::test]
async fn a_follow_up_is_looked_for_with_what_the_last_answer_was_about() {
    let app = extractive(&[RANCE, OPENED, SIHWA]).await;
    let made = app.post("/conversations", &json!({ "title": "Tides" })).await.json();
    let id = made["id"].as_str().unwrap();
    let first = ask_as(&app, &app.owner, &json!({ "question": OPENED, "conversation_id": id })).await;
    let next = ask_as(
        &app,
        &app.owner,
        &json!({ "question": "How many turbines are there?", "conversation_id": id }),
    )
    .await;
    let named: Vec<&str> =
        list(&first, "concepts").iter().map(|concept| concept["name"].as_str().unwrap()).collect();
    let searched = next["question_as_searched"].as_str().unwrap();
    assert!(named.iter().any(|name| searched.contains(name)), "{named:?}: {next:#}");
    assert!(
        list(&next, "facts").iter().any(|fact| fact["text"] == RANCE),
        "the turbines of what was spoken of: {next:#}"
    );
}

#[tokio::test]
async fn conversations_belong_to_their_person() {
    let app = extractive(&[RANCE]).await;
    let made = app.post("/conversations", &json!({ "title": "Mine" })).await.json();
    let id = made["id"].as_str().unwrap();
    let viewer = register(&app.service, "viewer").await;
    give(&app.service, viewer.id, &app.repository.to_string(), "viewer").await;
    assert_eq!(app.get_as(&viewer, &format!("/conversations/{id}")).await.status, 404);
    assert_eq!(app.delete_as(&viewer, &format!("/conversations/{id}")).await.status, 404);
    let listed = app.get_as(&viewer, "/conversations").await.json();
    assert!(listed["data"].as_array().unwrap().is_empty());
    let body = json!({ "question": TURBINES, "conversation_id": id });
    let asked = app.send(&viewer, http::Method::POST, "/ask", &body).await;
    assert_eq!(asked.status, 422, "{asked:?}");
}

#[tokio::test]
async fn a_new_subject_is_not_answered_from_the_one_before() {
    let app = extractive(&[RANCE, OPENED, SIHWA]).await;
    let made = app.post("/conversations", &json!({})).await.json();
    let id = made["id"].as_str().unwrap();
    ask_as(&app, &app.owner, &json!({ "question": OPENED, "conversation_id": id })).await;
    let next = ask_as(&app, &app.owner, &json!({ "question": COPPER, "conversation_id": id })).await;
    sound(&next);
    assert_eq!(
        (&next["status"], &next["question_as_searched"]),
        (&json!("abstained"), &json!(COPPER)),
        "{next:#}"
    );
}

#[tokio::test]
async fn a_shared_answer_says_nothing_of_its_conversation() {
    let app = extractive(&[RANCE, OPENED, SIHWA]).await;
    let made = app.post("/conversations", &json!({ "title": "Mine" })).await.json();
    let conversation = made["id"].as_str().unwrap();
    let question = "How many turbines are there?";
    for (question, shared) in [(OPENED, false), (question, true)] {
        let body = json!({ "question": question, "conversation_id": conversation, "shared": shared });
        ask_as(&app, &app.owner, &body).await;
    }
    let viewer = register(&app.service, "viewer").await;
    give(&app.service, viewer.id, &app.repository.to_string(), "viewer").await;
    let own = app.read("/answers?shared=true").await["data"][0].clone();
    assert_eq!(own["conversation_id"], json!(conversation), "{own:#}");
    let id = own["id"].as_str().unwrap();
    let listed = app.get_as(&viewer, "/answers").await.json()["data"][0].clone();
    let seen = app.get_as(&viewer, &format!("/answers/{id}")).await.json();
    for seen in [listed, seen.clone()] {
        assert!(seen["conversation_id"].is_null(), "{seen:#}");
    }
    assert_eq!(seen["question_as_searched"], question, "{seen:#}");
    let told = app.get_as(&viewer, &format!("/answers/{id}/events")).await.text;
    assert!(!told.contains(conversation), "{told}");
    assert!(events(&told).iter().any(|event| event.data["question_as_searched"] == question), "{told}");
}
