//! What an answer rests on is watched: an answer says when it is not what it was.

use okt_testkit::llm::{Behaviour, sentences};
use okt_testkit::receiver::Receiver;
use okt_testkit::wait::eventually;
use serde_json::{Value, json};

use super::{
    FUNDY, OPENED, RANCE, TURBINES, ask, by_model, extractive, faithful, list, say, sound, without_facts,
};

async fn changes(app: &okt_testkit::app::TestApp, id: &str) -> Vec<Value> {
    list(&app.read(&format!("/answers/{id}")).await, "evidence_changed").to_vec()
}

#[tokio::test]
async fn a_fact_that_is_rejected_or_gone_is_told_of() {
    let app = extractive(&[RANCE, OPENED, FUNDY]).await;
    let answer = ask(&app, TURBINES).await;
    let id = answer["id"].as_str().unwrap();
    assert!(changes(&app, id).await.is_empty());
    let facts = list(&answer["sentences"][0], "fact_ids");
    let fact = facts[0].as_str().unwrap();
    let set = async |status: &str| {
        let set = app.put(&format!("/facts/{fact}"), &json!({ "status": status, "reason": "no" })).await;
        assert!(set.status.is_success(), "{set:?}");
    };
    set("rejected").await;
    assert_eq!(changes(&app, id).await, [json!({ "fact_id": fact, "key": null, "change": "rejected" })]);
    assert_eq!(app.read("/answers").await["data"][0]["evidence_changed"], true);
    // The same question is answered anew.
    let anew = ask(&app, TURBINES).await;
    assert_eq!(anew["cached"], false, "{anew:#}");
    set("stable").await;
    assert!(changes(&app, id).await.is_empty(), "it is what it was");

    let source = answer["facts"].as_array().unwrap().iter().find(|one| one["id"] == fact).unwrap();
    let source = source["source"]["id"].as_str().unwrap();
    let marked = app
        .put(&format!("/sources/{source}/mark"), &json!({ "kind": "retracted", "reason": "withdrawn" }))
        .await;
    assert!(marked.status.is_success(), "{marked:?}");
    assert_eq!(changes(&app, id).await, [json!({ "fact_id": fact, "key": null, "change": "retracted" })]);
    let without = ask(&app, TURBINES).await;
    assert!(list(&without, "facts").iter().all(|one| one["id"] != fact), "no evidence: {without:#}");
    assert!(app.delete(&format!("/sources/{source}/mark")).await.status.is_success());
    assert!(changes(&app, id).await.is_empty());

    assert_eq!(app.delete(&format!("/sources/{source}")).await.status, 204);
    app.quiet().await;
    assert_eq!(changes(&app, id).await, [json!({ "fact_id": fact, "key": null, "change": "removed" })]);
    let kept = app.read(&format!("/answers/{id}")).await;
    assert_eq!(kept["sentences"], answer["sentences"], "it says what it said");
    // The words of the source are gone with it, but for those.
    let gone = list(&kept, "facts").iter().find(|one| one["id"] == fact).unwrap();
    assert_eq!(
        (&gone["text"], &gone["quote"], &gone["source"]),
        (&json!(""), &Value::Null, &Value::Null),
        "{kept:#}"
    );
    let words = "SELECT count(*) FROM okt_repository.answer_events
                  WHERE event ->> 'event' = 'evidence' AND event::text LIKE '%24 turbines%'";
    assert_eq!(app.count(words).await, 0);
}

#[tokio::test]
async fn a_contradiction_that_is_found_later_is_told_of() {
    let app = extractive(&[RANCE, OPENED]).await;
    let answer = ask(&app, TURBINES).await;
    let id = answer["id"].as_str().unwrap();
    say(&app, &[&RANCE.replace("24 turbines", "30 turbines")]).await;
    eventually(std::time::Duration::from_mins(1), "the contradiction is found", async || {
        let found = changes(&app, id).await;
        if found.iter().any(|change| change["change"] == "contradicted") { Ok(()) } else { Err(json!(found)) }
    })
    .await;
    let again = ask(&app, TURBINES).await;
    assert_eq!(again["cached"], false, "{again:#}");
    assert!(!list(&again, "disagreeing").is_empty(), "{again:#}");
}

#[tokio::test]
async fn without_reports_only_facts_that_answers_cite_are_noted() {
    let app = extractive(&[RANCE, OPENED]).await;
    let noted = async || app.count("SELECT count(*) FROM okt_repository.report_facts").await;
    assert_eq!(noted().await, 0, "nobody has asked anything");
    let answer = ask(&app, TURBINES).await;
    let fact = answer["sentences"][0]["fact_ids"][0].as_str().unwrap();
    app.sql(&format!("UPDATE okt_repository.facts SET status = 'rejected' WHERE id = '{fact}'")).await;
    assert_eq!(noted().await, 1);
    let others = format!(
        "UPDATE okt_repository.facts SET status = 'rejected' WHERE id <> '{fact}' AND no NOT IN (SELECT fact_no FROM okt_repository.answer_facts)"
    );
    app.sql(&others).await;
    assert_eq!(noted().await, 1);
}

#[tokio::test]
async fn what_contradicts_the_fact_into_which_a_cited_one_was_merged_is_told_of() {
    let app = extractive(&[RANCE, OPENED, FUNDY]).await;
    let answer = ask(&app, TURBINES).await;
    let id = answer["id"].as_str().unwrap();
    let sentence = list(&answer, "sentences").iter().find(|sentence| sentence["text"] == RANCE).unwrap();
    let fact = sentence["fact_ids"][0].as_str().unwrap();
    let of = |text: &str| format!("(SELECT no FROM okt_repository.facts WHERE text = '{text}')");
    let (into, other) = (of(OPENED), of(FUNDY));
    for statement in [
        format!(
            "UPDATE okt_repository.facts SET status = 'duplicate', merged_into = {into}, embedded_in = NULL WHERE id = '{fact}'"
        ),
        format!(
            "INSERT INTO okt_repository.fact_contradictions (repository_id, fact_no, other_no, difference, cosine)
             SELECT repository_id, least({into}, {other}), greatest({into}, {other}), 'number', 0.9
               FROM okt_repository.facts WHERE id = '{fact}'"
        ),
    ] {
        app.sql(&statement).await;
    }
    let told = changes(&app, id).await;
    assert!(told.contains(&json!({ "fact_id": fact, "key": null, "change": "contradicted" })), "{told:?}");
    let noted =
        "SELECT count(*) FROM okt_repository.report_facts r JOIN okt_repository.facts f ON f.no = r.fact_no";
    assert!(
        app.count(&format!("{noted} WHERE f.text = '{OPENED}'")).await > 0,
        "it is looked at for webhooks as well"
    );
}

#[tokio::test]
async fn a_passage_whose_source_is_retracted_or_gone_is_told_of() {
    let writes = |_: &str, facts: &[(&str, &str)]| {
        let first = facts.first().map_or("zzzz", |(key, _)| *key);
        sentences(&[(RANCE, &[first][..])], "")
    };
    let receiver = Receiver::start().await;
    let allowed = receiver.allowed();
    let allowed = [("SVC__PROVIDERS__RESOLUTION__FETCH__ALLOW_PRIVATE", allowed.as_str())];
    let app = by_model(Behaviour { writes, ..faithful() }, &allowed, &[&without_facts(RANCE)]).await;
    let hook = json!({ "url": receiver.url("/"), "events": ["answer.evidence_changed"] });
    assert_eq!(app.post("/webhooks", &hook).await.status, 201);
    let answer = ask(&app, TURBINES).await;
    sound(&answer);
    let (id, sentence) = (answer["id"].as_str().unwrap(), &answer["sentences"][0]);
    assert_eq!((&sentence["text"], &sentence["fact_ids"]), (&json!(RANCE), &json!([])), "{answer:#}");
    let changed = |change: &str| [json!({ "fact_id": null, "key": sentence["keys"][0], "change": change })];
    let marked = async || {
        app.count("SELECT count(*) FROM okt_repository.answers WHERE evidence_changed_at IS NOT NULL").await
    };
    assert_eq!((changes(&app, id).await.len(), marked().await), (0, 0));

    let source = answer["facts"][0]["source"]["id"].as_str().unwrap();
    let mark = format!("/sources/{source}/mark");
    let set = app.put(&mark, &json!({ "kind": "retracted", "reason": "withdrawn" })).await;
    assert!(set.status.is_success(), "{set:?}");
    assert_eq!(changes(&app, id).await, changed("retracted"));
    assert_eq!(marked().await, 1);
    let told = receiver.await_messages("/", 1).await.remove(0).json();
    assert_eq!(
        (&told["type"], &told["data"]["answer_id"]),
        (&json!("answer.evidence_changed"), &json!(id)),
        "{told:#}"
    );
    app.quiet().await;
    assert_eq!(receiver.messages("/").len(), 1, "webhooks are told once");
    assert_eq!(app.read("/answers").await["data"][0]["evidence_changed"], true);
    assert!(app.delete(&mark).await.status.is_success());
    assert_eq!((changes(&app, id).await.len(), marked().await), (0, 0), "it is what it was");

    assert_eq!(app.delete(&format!("/sources/{source}")).await.status, 204);
    assert_eq!(changes(&app, id).await, changed("removed"));
    assert_eq!(marked().await, 1);
}
