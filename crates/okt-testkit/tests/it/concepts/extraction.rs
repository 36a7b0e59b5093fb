//! Facts lead to concepts; what a model invents leads nowhere, and nobody pays twice.

use std::collections::BTreeSet;
use std::time::Duration;

use http::Method;
use okt_jobs::SettleSources;
use okt_model::{CONCEPT_MODEL, ExtractConcepts};
use okt_store::outbox::When;
use okt_testkit::app::{MODEL, TestApp};
use okt_testkit::jobs;
use okt_testkit::llm::{Behaviour, Latency};
use okt_testkit::wait::eventually;
use serde_json::{Value, json};

use crate::concepts::{mentioned, read_for_concepts};
use crate::facts::essay;

const PRICE: &str = "input_cost_per_1m = 1.0\noutput_cost_per_1m = 4.0";

async fn with_model(behaviour: Behaviour) -> TestApp {
    let mut app = TestApp::builder().models(behaviour, PRICE).concepts(MODEL).start().await;
    app.work().await;
    app
}

/// What the test model names in a fact of an essay.
fn named(text: &str) -> BTreeSet<(String, String)> {
    let words: Vec<&str> = text.split_whitespace().map(|word| word.trim_end_matches('.')).collect();
    let places = words.windows(2).filter(|pair| pair[0] == "apiary" || pair[0] == "hive");
    let places = places.map(|pair| (pair.join(" "), "Place".to_owned()));
    places.chain([("bees".to_owned(), "Species".to_owned())]).collect()
}

async fn count(app: &TestApp, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(&mut app.service.database.connect().await).await.unwrap()
}

async fn choose(app: &TestApp, unmapped: &str) -> Value {
    let answer = app.put("/settings/contexts", &json!({ "unmapped_contexts": unmapped })).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

#[tokio::test]
async fn without_a_model_facts_lead_to_what_they_name() {
    let mut app = TestApp::builder().concepts(CONCEPT_MODEL).start().await;
    app.work().await;
    let text = "The Moon causes tides on Earth. Isaac Newton explained the tides in the Principia. \
                The Bay of Fundy in Canada has the highest tides of the world. The Moon moves away from Earth.";
    let id = app.add_text("tides.txt", text).await;
    let seen = read_for_concepts(&app, &id).await;
    let found = &seen["extraction"]["concepts"];
    assert_eq!((&found["model"], &found["failed"]), (&json!(CONCEPT_MODEL), &json!(0)), "{found:#}");
    let mut all = BTreeSet::new();
    for fact in app.facts(&id).await {
        all.extend(mentioned(&app, &fact).await);
    }
    let names: BTreeSet<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    for name in ["Moon", "Earth", "Isaac Newton", "Bay of Fundy", "Canada"] {
        assert!(names.contains(name), "{name} is not among {all:#?}");
    }
    // Moon and Earth share two facts, and relations say so in a moment.
    eventually(Duration::from_secs(20), "relations are counted", async || {
        let shared = count(
            &app,
            "SELECT coalesce(max(r.shared_fact_count), 0) FROM okt_repository.concept_relations r
               JOIN okt_repository.concepts a ON a.no = r.concept_no AND a.name_key = 'moon'
               JOIN okt_repository.concepts b ON b.no = r.other_no AND b.name_key = 'earth'",
        );
        let shared = shared.await;
        if shared == 2 { Ok(()) } else { Err(shared) }
    })
    .await;
}

#[tokio::test]
async fn a_source_says_that_the_job_that_looked_for_its_concepts_died() {
    let mut app = TestApp::builder().concepts(CONCEPT_MODEL).start().await;
    app.work().await;
    let id =
        app.add_text("tides.txt", "The Moon causes tides on Earth. Isaac Newton explained the tides.").await;
    read_for_concepts(&app, &id).await;
    // As after a third crash, in the middle of the work.
    app.sql("DELETE FROM okt_repository.concept_readings").await;
    app.sql("UPDATE okt_repository.sources SET extraction = extraction - 'concepts'").await;
    app.sql(
        "UPDATE okt_tasks.jobs SET state = 'discarded', finished_at = now() - interval '1 minute',
                failures = '[{\"at\": \"2026-01-01T00:00:00Z\", \"attempt\": 3, \"message\": \"its process died\"}]'
          WHERE kind = 'extract_concepts'",
    )
    .await;
    let settle = async || {
        okt_queue::jobs::push(app.service.api.app.databases(), &SettleSources {}, Duration::ZERO)
            .await
            .unwrap();
    };
    settle().await;
    let seen = read_for_concepts(&app, &id).await;
    let found = &seen["extraction"]["concepts"];
    assert_eq!((&found["facts"], &found["failed"]), (&json!(0), &seen["fact_count"]), "{found:#}");
    assert_eq!(found["failure"], json!({"code": "job_failed", "message": "its process died"}));
    // The next one reads them, and says so.
    let source = id.parse().unwrap();
    jobs::push(app.service.api.app.databases(), app.repository, &ExtractConcepts { source }, When::default())
        .await;
    app.until(&id, |seen| {
        let found = &seen["extraction"]["concepts"];
        found["failure"].is_null() && found["facts"] == seen["fact_count"]
    })
    .await;
}

#[tokio::test]
async fn with_a_model_every_fact_is_read_once_and_paid_once() {
    let app = with_model(Behaviour::default()).await;
    let id = app.add_text("essay.txt", &essay(1, 45)).await;
    let seen = read_for_concepts(&app, &id).await;
    let found = &seen["extraction"]["concepts"];
    assert_eq!((&found["facts"], &found["links"]), (&json!(45), &json!(135)), "{found:#}");
    for fact in app.facts(&id).await {
        assert_eq!(mentioned(&app, &fact).await, named(fact["text"].as_str().unwrap()));
    }
    let usage = app.read("/ai/usage?group_by=operation").await;
    let rows = usage["data"].as_array().unwrap();
    let row = rows.iter().find(|row| row["key"] == "concept_extraction").expect("it is in the books");
    assert_eq!(row["calls"], 5, "batches of ten: {usage:#}");
    let stats = app.models.await_stats(|stats| stats.in_flight == 0).await;
    assert_eq!(
        (&seen["cost"]["tokens_in"], &seen["cost"]["tokens_out"]),
        (&json!(stats.tokens_in), &json!(stats.tokens_out)),
        "the source says what it cost"
    );

    // Neither another run nor another source with the same facts asks again.
    let before = seen["processed_at"].clone();
    assert_eq!(app.ask(Method::POST, &format!("/sources/{id}/process"), &Value::Null).await.status, 202);
    app.until(&id, |now| now["processed_at"] != before).await;
    let twin = app.add_text("twin.txt", &format!("{} ", essay(1, 45))).await;
    let twin = read_for_concepts(&app, &twin).await;
    assert_eq!(twin["extraction"]["concepts"]["facts"], 45, "{twin:#}");
    let asked = app.models.await_stats(|stats| stats.in_flight == 0).await.good;
    assert!(asked.values().all(|times| times.len() == 1), "nothing was asked twice");
}

#[tokio::test]
async fn what_a_model_invents_is_counted_and_not_stored() {
    let app = with_model(Behaviour { inventive: true, ..Behaviour::default() }).await;
    let id = app.add_text("essay.txt", &essay(2, 20)).await;
    let seen = read_for_concepts(&app, &id).await;
    for fact in app.facts(&id).await {
        assert_eq!(mentioned(&app, &fact).await, named(fact["text"].as_str().unwrap()));
    }
    let stored = count(
        &app,
        "SELECT count(*) FROM okt_repository.concepts WHERE name_key IN ('atlantis', 'it', '1789', 'poseidon')",
    );
    assert_eq!(stored.await, 0);
    let skipped = &seen["extraction"]["concepts"]["skipped"];
    for reason in ["not_in_fact", "pronoun", "date_or_number", "unknown_fact", "no_fact"] {
        assert!(skipped[reason].as_u64().is_some_and(|count| count > 0), "{reason}: {skipped}");
    }
}

#[tokio::test]
async fn a_context_that_the_repository_does_not_have_is_handled_as_it_says() {
    let concepts: fn(&str) -> Vec<(String, &'static str)> = |_| vec![("bees".to_owned(), "Pollinator")];
    let app = with_model(Behaviour { concepts, ..Behaviour::default() }).await;
    assert_eq!(app.read("/settings").await["unmapped_contexts"], "catch_all");
    let id = app.add_text("one.txt", &essay(3, 3)).await;
    read_for_concepts(&app, &id).await;
    for fact in app.facts(&id).await {
        let concept = BTreeSet::from([("bees".to_owned(), "Concept".to_owned())]);
        assert_eq!(mentioned(&app, &fact).await, concept);
    }
    let kept = count(
        &app,
        "SELECT count(*) FROM okt_repository.concepts WHERE name_key = 'bees' AND unmapped_label = 'Pollinator'",
    );
    assert_eq!(kept.await, 1, "what the model called it stays");

    assert_eq!(choose(&app, "skip").await["unmapped_contexts"], "skip");
    let id = app.add_text("two.txt", &essay(4, 3)).await;
    let seen = read_for_concepts(&app, &id).await;
    assert_eq!(seen["extraction"]["concepts"]["skipped"]["unmapped_context"], 3, "{seen:#}");
    assert_eq!(seen["extraction"]["concepts"]["links"], 0);

    choose(&app, "add").await;
    let id = app.add_text("three.txt", &essay(5, 3)).await;
    read_for_concepts(&app, &id).await;
    let concept = BTreeSet::from([("bees".to_owned(), "Pollinator".to_owned())]);
    assert_eq!(mentioned(&app, &app.facts(&id).await[0]).await, concept);
    let contexts = app.read("/settings").await["contexts"].clone();
    let added = contexts.as_array().unwrap().iter().find(|context| context["label"] == "Pollinator");
    assert_eq!(added.expect("it was added")["concept_count"], 1);
}

/// Nobody says what it is, and there is one of that name.
#[tokio::test]
async fn what_falls_into_the_catch_all_joins_the_one_concept_of_its_name() {
    let app = with_model(Behaviour::default()).await;
    let first = app.add_text("one.txt", &essay(6, 3)).await;
    read_for_concepts(&app, &first).await;
    let concepts: fn(&str) -> Vec<(String, &'static str)> = |_| vec![("Bees".to_owned(), "Concept")];
    app.models.behave(Behaviour { concepts, ..Behaviour::default() });
    let second = app.add_text("two.txt", &essay(7, 3)).await;
    read_for_concepts(&app, &second).await;
    let named = "SELECT count(*) FROM okt_repository.concepts WHERE name_key = 'bees'";
    assert_eq!(count(&app, named).await, 1, "one thing, one concept");
    let concept = BTreeSet::from([("bees".to_owned(), "Species".to_owned())]);
    assert_eq!(mentioned(&app, &app.facts(&second).await[0]).await, concept);
}

/// Apple is no apple, although nobody says what it is.
#[tokio::test]
async fn a_proper_name_does_not_join_the_common_noun_of_its_spelling() {
    let mut app = TestApp::builder().concepts(CONCEPT_MODEL).start().await;
    app.work().await;
    for (file, text) in [
        ("fruit.txt", "The orchards of Norway grow a late apple. The apple of Hardanger ripens in October."),
        (
            "phones.txt",
            "In 2007 the phones of Apple were sold in Oslo. In 2011 Nokia paid Apple 600 million euros.",
        ),
    ] {
        let id = app.add_text(file, text).await;
        read_for_concepts(&app, &id).await;
    }
    let names = "SELECT canonical_name FROM okt_repository.concepts
                  WHERE name_key = 'apple' AND merged_into IS NULL ORDER BY canonical_name COLLATE \"C\"";
    let mut connection = app.service.database.connect().await;
    let names: Vec<String> = sqlx::query_scalar(names).fetch_all(&mut connection).await.unwrap();
    assert_eq!(names, ["Apple", "apple"]);
}

/// A source takes two spellings for one name. Where a person parted the two, each fact belongs to the one that it names.
#[tokio::test]
async fn two_spellings_that_a_person_parted_stay_two() {
    let mut app = TestApp::builder().concepts(CONCEPT_MODEL).start().await;
    app.work().await;
    for (file, name) in [("one.txt", "Jean-Luc Brandt"), ("two.txt", "Jean Luc Brandt")] {
        let id = app.add_text(file, &format!("{name} wrote a book about the tides of Norway.")).await;
        read_for_concepts(&app, &id).await;
    }
    let ids =
        "SELECT id::text FROM okt_repository.concepts WHERE name_key LIKE 'jean%' AND merged_into IS NULL
                ORDER BY name_key";
    let mut connection = app.service.database.connect().await;
    let ids: Vec<String> = sqlx::query_scalar(ids).fetch_all(&mut connection).await.unwrap();
    let [apart, hyphen] = &ids[..] else { panic!("two concepts: {ids:?}") };
    let merge = app.ask(Method::POST, &format!("/concepts/{apart}/merge"), &json!({ "into": hyphen })).await;
    let step = merge.json()["curation_id"].as_str().unwrap().to_owned();
    let undo = app.ask(Method::POST, &format!("/curation/{step}/undo"), &Value::Null).await;
    assert_eq!(undo.status, 200, "{undo:?}");

    let text = "Jean-Luc Brandt sailed to Bergen in 1901. Jean Luc Brandt died in Oslo in 1930. \
                Jean-Luc Brandt was a Norwegian sailor and writer.";
    let id = app.add_text("three.txt", text).await;
    read_for_concepts(&app, &id).await;
    let facts = app.facts(&id).await;
    assert_eq!(facts.len(), 3, "{facts:?}");
    for fact in facts {
        let written =
            if fact["text"].as_str().unwrap().contains("Jean-Luc") { "Jean-Luc" } else { "Jean Luc" };
        let named = mentioned(&app, &fact).await;
        let people: Vec<&str> =
            named.iter().map(|(name, _)| name.as_str()).filter(|name| name.starts_with("Jean")).collect();
        assert_eq!(people, [format!("{written} Brandt")], "{fact}");
    }
    for concept in [apart, hyphen] {
        let aliases = app.read(&format!("/concepts/{concept}")).await["aliases"].clone();
        assert_eq!(aliases, json!([]), "the name of one is no alias of the other");
    }
}

/// What a person calls by a name is meant by it, whatever class a machine takes it for.
#[tokio::test]
async fn an_alias_of_a_person_holds_in_every_context() {
    let app = with_model(Behaviour::default()).await;
    let first = app.add_text("one.txt", &essay(6, 3)).await;
    read_for_concepts(&app, &first).await;
    let bees = "SELECT id::text FROM okt_repository.concepts WHERE name_key = 'bees'";
    let bees: String =
        sqlx::query_scalar(bees).fetch_one(&mut app.service.database.connect().await).await.unwrap();
    let path = format!("/concepts/{bees}/aliases");
    let step = app.ask(Method::POST, &path, &json!({ "alias": "keepers" })).await;
    assert_eq!(step.status, 200, "{step:?}");
    let unknown = Behaviour { concepts: |_| vec![("keepers".to_owned(), "Concept")], ..Behaviour::default() };
    let another = Behaviour { concepts: |_| vec![("keepers".to_owned(), "Person")], ..Behaviour::default() };
    for (behaviour, number) in [unknown, another].into_iter().zip(7..) {
        app.models.behave(behaviour);
        let next = app.add_text("next.txt", &essay(number, 3)).await;
        read_for_concepts(&app, &next).await;
        let concept = BTreeSet::from([("bees".to_owned(), "Species".to_owned())]);
        assert_eq!(mentioned(&app, &app.facts(&next).await[0]).await, concept);
    }
}

#[tokio::test]
async fn another_reader_replaces_what_was_found_before() {
    let concepts: fn(&str) -> Vec<(String, &'static str)> = |_| vec![("keepers".to_owned(), "Person")];
    let mut app = with_model(Behaviour { concepts, ..Behaviour::default() }).await;
    let id = app.add_text("one.txt", &essay(8, 3)).await;
    let seen = read_for_concepts(&app, &id).await;
    let fact = app.facts(&id).await[0].clone();
    assert!(mentioned(&app, &fact).await.iter().any(|(name, _)| name == "keepers"));

    let mut config = app.service.api.app.config().clone();
    config.providers.decomposition.concept_extraction.model = CONCEPT_MODEL.to_owned();
    app.work_as(&config).await;
    assert_eq!(app.ask(Method::POST, &format!("/sources/{id}/process"), &Value::Null).await.status, 202);
    app.until(&id, |now| now["extraction"]["concepts"]["model"] == CONCEPT_MODEL).await;
    assert_eq!(seen["extraction"]["concepts"]["model"], MODEL);
    let now = mentioned(&app, &fact).await;
    assert!(
        !now.is_empty() && !now.iter().any(|(name, context)| name == "keepers" && context == "Person"),
        "{now:?}"
    );
}

/// Two that would ask the same questions ask one after the other.
#[tokio::test]
async fn two_jobs_of_one_source_do_not_pay_for_the_same() {
    let mut app = TestApp::builder().models(Behaviour::default(), PRICE).concepts(MODEL).start().await;
    let config = app.service.api.app.config().clone();
    let before = jobs::worker(&config, jobs::kinds(&config).await, Vec::new(), |settings| {
        settings.slots.remove("extract_concepts");
    });
    let before = before.await;
    let id = app.add_text("essay.txt", &essay(9, 25)).await;
    app.until(&id, |seen| seen["status"] == "processed").await;
    before.stop().await;
    let twin = ExtractConcepts { source: id.parse().unwrap() };
    jobs::push(app.service.api.app.databases(), app.repository, &twin, When::default()).await;
    app.models.behave(Behaviour { latency: Latency::Fixed(700), ..Behaviour::default() });
    app.work().await;
    eventually(Duration::from_mins(1), "both have ended", async || {
        let ended = count(
            &app,
            "SELECT count(*) FROM okt_tasks.jobs WHERE kind = 'extract_concepts' AND state = 'completed'",
        );
        let ended = ended.await;
        if ended == 2 { Ok(()) } else { Err(ended) }
    })
    .await;
    let asked = app.models.await_stats(|stats| stats.in_flight == 0).await.good;
    assert!(asked.values().all(|times| times.len() == 1), "{asked:?}");
    assert_eq!(app.source(&id).await["extraction"]["concepts"]["links"], 75);
}

/// The contexts are a part of the question, and another context makes another question.
#[tokio::test]
async fn what_was_answered_is_not_asked_again_because_a_context_came() {
    let app = with_model(Behaviour::default()).await;
    // Whoever files a concept waits for who holds its context.
    let mut conn = app.connect().await;
    for statement in ["BEGIN", "SELECT FROM okt_repository.contexts FOR UPDATE"] {
        sqlx::query(statement).execute(&mut conn).await.unwrap();
    }
    let id = app.add_text("essay.txt", &essay(10, 25)).await;
    eventually(Duration::from_mins(1), "all is answered, and not written", async || {
        let waiting = app
            .count(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
            )
            .await;
        if waiting > 0 { Ok(()) } else { Err(waiting) }
    })
    .await;
    for statement in [
        "INSERT INTO okt_repository.contexts (repository_id, label, description)
         SELECT repository_id, 'Pollinator', '' FROM okt_repository.contexts LIMIT 1",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE datname = current_database() AND wait_event_type = 'Lock'",
        "COMMIT",
    ] {
        sqlx::query(statement).execute(&mut conn).await.unwrap();
    }
    let seen = read_for_concepts(&app, &id).await;
    assert_eq!(seen["extraction"]["concepts"]["links"], 75, "{seen:#}");
    let usage = app.read("/ai/usage?group_by=operation").await;
    let rows = usage["data"].as_array().unwrap();
    let row = rows.iter().find(|row| row["key"] == "concept_extraction").expect("it is in the books");
    assert_eq!(row["calls"], 3, "{usage:#}");
}

#[tokio::test]
async fn the_estimate_counts_concepts_too() {
    let mut app = TestApp::builder().models(Behaviour::default(), PRICE).concepts(MODEL).start().await;
    let config = app.service.api.app.config().clone();
    let fetcher = jobs::worker(&config, jobs::kinds(&config).await, Vec::new(), |settings| {
        settings.slots.remove("source_decomposition");
    });
    let fetcher = fetcher.await;
    let mut ids = Vec::new();
    for n in 0..6 {
        ids.push(app.add_text(&format!("{n}.txt"), &essay(40 + n, 25 + 5 * n)).await);
    }
    for id in &ids {
        app.until(id, |seen| seen["status"] == "fetched").await;
    }
    fetcher.stop().await;
    let estimate = app.post("/sources/estimate", &json!({ "source_ids": ids })).await;
    assert_eq!(estimate.status, 200, "{estimate:?}");
    let total = estimate.json()["total"].clone();
    app.work().await;
    for id in &ids {
        read_for_concepts(&app, id).await;
    }
    let stats = app.models.await_stats(|stats| stats.in_flight == 0).await;
    assert_eq!(total["calls"], stats.good_answers(), "{total}");
    let off = |name: &str, truth: u64| {
        let truth = f64::from(u32::try_from(truth).unwrap());
        (total[name].as_f64().unwrap() - truth).abs() / truth
    };
    println!("{total}; used {} and {}", stats.tokens_in, stats.tokens_out);
    assert!(off("tokens_in", stats.tokens_in) <= 0.15, "{total}, {}", stats.tokens_in);
    assert!(off("tokens_out", stats.tokens_out) <= 0.25, "{total}, {}", stats.tokens_out);
    // What was answered costs nothing.
    let again = app.post("/sources/estimate", &json!({ "source_ids": ids })).await.json();
    assert_eq!((&again["total"]["calls"], &again["total"]["usd"]), (&json!(0), &json!(0.0)), "{again:#}");
}
