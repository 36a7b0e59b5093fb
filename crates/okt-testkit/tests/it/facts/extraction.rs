//! A source becomes facts that rest on its sentences, and nobody pays twice for it.

use std::collections::BTreeSet;

use http::Method;
use okt_testkit::app::MODEL;
use okt_testkit::llm::{Behaviour, Faults};
use okt_testkit::web::Page;
use serde_json::{Value, json};

use crate::facts::{essay, job_in, test_app, test_app_with};

#[tokio::test]
async fn every_fact_leads_back_to_its_sentences() {
    let mut app = test_app(&[]).await;
    app.work().await;
    let id = app.add_text("essay.txt", &essay(1, 60)).await;
    let seen = app.settled(&id).await;
    assert_eq!((&seen["status"], &seen["fact_count"]), (&json!("processed"), &json!(60)), "{seen:#}");
    let found = &seen["extraction"];
    assert_eq!(found["model"], MODEL);
    assert_eq!((&found["failed"], &found["coverage"]), (&json!(0), &json!(1.0)), "{found:#}");
    assert!(found["chunks"].as_u64().unwrap() >= 3, "{found:#}");

    let offsets = seen["sentence_offsets"].as_array().unwrap();
    let text: Vec<char> = seen["parsed_text"].as_str().unwrap().chars().collect();
    let builtin = okt_extract::Promptset::builtin().registry_hash();
    let mut cited = BTreeSet::new();
    for fact in app.facts(&id).await {
        assert_eq!((&fact["model"], &fact["promptset_hash"]), (&json!(MODEL), &json!(builtin.to_string())));
        let shown = app.read(&format!("/facts/{}", fact["id"].as_str().unwrap())).await;
        let source = &shown["sources"][0];
        assert_eq!(source["source_id"], json!(id));
        let quote = &source["sentences"][0];
        let at = usize::try_from(quote["sentence_index"].as_u64().unwrap()).unwrap();
        let span = |n: usize| usize::try_from(offsets[at][n].as_u64().unwrap()).unwrap();
        let sentence: String = text[span(0)..span(1)].iter().collect();
        assert_eq!((&quote["text"], &shown["text"]), (&json!(sentence), &json!(sentence.trim())));
        cited.insert(at);
    }
    assert_eq!(cited, (0..60).collect());

    // From the other side: each sentence with what rests on it.
    let references = app.read(&format!("/sources/{id}/references?limit=200")).await;
    for row in references["data"].as_array().unwrap() {
        assert_eq!(row["facts"][0]["text"], json!(row["text"].as_str().unwrap().trim()), "{row}");
        assert_eq!(row["facts"][0]["model"], MODEL);
    }
    let uncited = app.read(&format!("/sources/{id}/references?cited=false")).await;
    assert_eq!(uncited["data"], json!([]));
}

/// A small model gives a page back as one fact; of a few sentences it makes several.
#[tokio::test]
async fn a_model_that_copies_is_asked_again_in_smaller_pieces() {
    let mut app = test_app(&[]).await;
    app.models.behave(Behaviour { copies_above: 6, ..Behaviour::default() });
    app.work().await;
    let id = app.add_text("essay.txt", &essay(1, 60)).await;
    let seen = app.settled(&id).await;
    assert_eq!((&seen["status"], &seen["fact_count"]), (&json!("processed"), &json!(60)), "{seen:#}");
    assert_eq!(seen["extraction"]["coverage"], 1.0, "{seen:#}");
    let before = app.models.await_stats(|stats| stats.in_flight == 0).await;
    let asked = app.ask(Method::POST, &format!("/sources/{id}/process"), &Value::Null).await;
    assert_eq!(asked.status, 202, "{asked:?}");
    app.until(&id, |now| now["processed_at"] != seen["processed_at"]).await;
    assert_eq!(app.models.stats().requests, before.requests, "what was answered is not asked again");

    // One that always copies is asked about quarters and no less, and says where it failed.
    app.models.behave(Behaviour { copies_above: 2, ..Behaviour::default() });
    let id = app.add_text("other.txt", &essay(2, 60)).await;
    let seen = app.settled(&id).await;
    assert_eq!(seen["status"], "failed", "{seen:#}");
    let failures = seen["extraction"]["failures"].as_array().unwrap();
    assert!(failures.len() >= 8, "{failures:#?}");
    assert!(failures.iter().all(|failure| failure["code"] == "too_coarse"), "{failures:#?}");
}

#[tokio::test]
async fn what_was_paid_is_on_the_source_the_job_and_in_the_ledger() {
    let mut app = test_app(&[]).await;
    app.work().await;
    let id = app.add_text("essay.txt", &essay(1, 60)).await;
    let seen = app.settled(&id).await;
    let stats = app.models.await_stats(|stats| stats.in_flight == 0).await;
    let (tokens_in, tokens_out) = (json!(stats.tokens_in), json!(stats.tokens_out));
    // The source says that it is done a moment before its job does.
    let job = job_in(&app, "completed", &seen).await;
    for cost in [&seen["cost"], &job["cost"]] {
        assert_eq!((&cost["tokens_in"], &cost["tokens_out"]), (&tokens_in, &tokens_out), "{cost}");
    }
    let precise = |number: u64| f64::from(u32::try_from(number).unwrap());
    let usd = (precise(stats.tokens_in) + 4.0 * precise(stats.tokens_out)) / 1e6;
    assert!((seen["cost"]["usd"].as_f64().unwrap() - usd).abs() < 1e-9, "{usd} {}", seen["cost"]);
    for group in ["day", "model", "operation", "source"] {
        let usage = app.read(&format!("/ai/usage?group_by={group}")).await;
        let row = &usage["data"][0];
        assert_eq!((&row["tokens_in"], &row["tokens_out"]), (&tokens_in, &tokens_out), "{usage:#}");
        assert_eq!(row["calls"], seen["extraction"]["chunks"]);
        let keys = [("model", json!(MODEL)), ("operation", json!("fact_extraction")), ("source", json!(id))];
        assert!(keys.iter().all(|(name, key)| *name != group || row["key"] == *key), "{row}");
    }
    // No more than three tokens for each of the source's own.
    let own = okt_testkit::llm::tokens(seen["parsed_text"].as_str().unwrap());
    assert!(stats.tokens_in <= 3 * own, "{} tokens were sent for {own}", stats.tokens_in);
}

#[tokio::test]
async fn a_fact_of_two_sources_is_there_once_and_stays_while_one_of_them_does() {
    let mut app = test_app(&[]).await;
    app.work().await;
    let shared = essay(1, 8);
    let first = app.add_text("first.txt", &format!("{shared}\n\n{}", essay(2, 5))).await;
    let second = app.add_text("second.txt", &format!("{}\n\n{shared}", essay(3, 4))).await;
    app.settled(&first).await;
    app.settled(&second).await;
    let counts = app.read("").await;
    assert_eq!(counts["counts"]["facts"], 8 + 5 + 4, "{counts:#}");
    let most = app.read("/facts?sort=source_count&limit=8").await;
    for fact in most["data"].as_array().unwrap() {
        assert_eq!(fact["source_count"], 2, "{fact}");
        let shown = app.read(&format!("/facts/{}", fact["id"].as_str().unwrap())).await;
        assert_eq!(shown["sources"].as_array().unwrap().len(), 2);
    }
    let preview = app.ask(Method::DELETE, &format!("/sources/{first}?dry_run=true"), &Value::Null).await;
    assert_eq!(preview.json()["facts"], 5, "{preview:?}");
    let gone = app.ask(Method::DELETE, &format!("/sources/{first}"), &Value::Null).await;
    assert_eq!(gone.status, 204, "{gone:?}");
    assert_eq!(app.read("").await["counts"]["facts"], 8 + 4);
    let left = app.read("/facts?limit=200").await;
    assert!(left["data"].as_array().unwrap().iter().all(|fact| fact["source_count"] == 1), "{left:#}");
    assert_eq!(app.facts(&second).await.len(), 12);
    let mut conn = app.service.database.connect().await;
    let answers: i64 =
        sqlx::query_scalar("SELECT count(DISTINCT subject_id) FROM okt_repository.model_answers")
            .fetch_one(&mut conn)
            .await
            .unwrap();
    assert_eq!(answers, 1, "what was said of a deleted source is gone");
}

#[tokio::test]
async fn processing_again_asks_nobody_and_finds_the_same() {
    let mut app = test_app(&[]).await;
    app.work().await;
    let id = app.add_text("essay.txt", &essay(1, 40)).await;
    let seen = app.settled(&id).await;
    let before = app.models.await_stats(|stats| stats.in_flight == 0).await;
    let asked = app.ask(Method::POST, &format!("/sources/{id}/process"), &Value::Null).await;
    assert_eq!(asked.status, 202, "{asked:?}");
    let again = app.until(&id, |now| now["processed_at"] != seen["processed_at"]).await;
    assert_eq!(app.models.stats().requests, before.requests, "nobody was asked");
    assert_eq!((&again["fact_count"], &again["cost"]), (&seen["fact_count"], &seen["cost"]));
    assert_eq!(app.read("").await["counts"]["facts"], seen["fact_count"]);
}

#[tokio::test]
async fn a_chunk_that_failed_is_told_and_a_retry_asks_for_it_alone() {
    let garbage =
        Behaviour { faults: Faults { garbage: 0.7, ..Faults::default() }, seed: 6, ..Behaviour::default() };
    let mut app = test_app_with(garbage, "", &[]).await;
    app.work().await;
    let id = app.add_text("essay.txt", &essay(1, 120)).await;
    let seen = app.settled(&id).await;
    assert_eq!(seen["status"], "failed", "{seen:#}");
    let (failure, found) = (&seen["failure"], &seen["extraction"]);
    assert_eq!((&failure["code"], &failure["retryable"]), (&json!("chunks_failed"), &json!(true)));
    let (chunks, failed) = (found["chunks"].as_u64().unwrap(), found["failed"].as_u64().unwrap());
    assert!(failed > 0 && failed < chunks, "some, but not all: {found:#}");
    for part in found["failures"].as_array().unwrap() {
        assert_eq!(part["code"], "misfit", "{part}");
        // The sentences that it would have been about are those that nothing rests on.
        let (first, last) =
            (part["first_sentence"].as_u64().unwrap(), part["last_sentence"].as_u64().unwrap());
        let rows = app.read(&format!("/sources/{id}/references?cited=false&limit=200")).await;
        let indexes: BTreeSet<u64> = rows["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["sentence_index"].as_u64().unwrap())
            .collect();
        assert!((first..=last).all(|index| indexes.contains(&index)), "{first} to {last} in {indexes:?}");
    }
    let before = app.facts(&id).await.len();
    assert!(before > 0 && before < 120, "what the others gave is kept: {before}");

    app.models.behave(Behaviour::default());
    let good = app.models.stats().good_answers();
    let retried = app.ask(Method::POST, &format!("/sources/{id}/retry"), &Value::Null).await;
    assert_eq!(retried.status, 202, "{retried:?}");
    let seen = app.settled(&id).await;
    assert_eq!((&seen["status"], &seen["fact_count"]), (&json!("processed"), &json!(120)), "{seen:#}");
    let stats = app.models.await_stats(|stats| stats.in_flight == 0).await;
    let new = stats.good_answers() - good;
    assert_eq!(u64::try_from(new).unwrap(), failed, "only those were asked");
    assert!(stats.good.values().all(|times| times.len() == 1), "none was paid twice: {:?}", stats.good);
}

#[tokio::test]
async fn an_answer_that_is_cut_off_is_seen_as_such() {
    let truncated =
        Behaviour { faults: Faults { truncated: 1.0, ..Faults::default() }, ..Behaviour::default() };
    let mut app = test_app_with(truncated, "", &[]).await;
    app.work().await;
    let id = app.add_text("essay.txt", &essay(1, 1)).await;
    let seen = app.settled(&id).await;
    assert_eq!(seen["extraction"]["failures"][0]["code"], "truncated", "{seen:#}");
    let usage = app.read("/ai/usage").await;
    assert_eq!(usage["total"]["calls"], 2, "both tries were paid for: {usage:#}");
    assert_eq!(app.facts(&id).await, Vec::<Value>::new());
}

/// Its second answer is cut off as well; one that repeats itself is not asked for a second.
#[tokio::test]
async fn an_answer_that_is_cut_off_keeps_its_complete_facts_and_is_paid_once() {
    let faults = Faults { truncated: 1.0, ..Faults::default() };
    for (loops, calls) in [(false, 2), (true, 1)] {
        let mut app = test_app_with(Behaviour { faults, loops, ..Behaviour::default() }, "", &[]).await;
        app.work().await;
        let id = app.add_text("essay.txt", &essay(1, 10)).await;
        let seen = app.settled(&id).await;
        assert_eq!(seen["status"], "processed", "{seen:#}");
        let facts = seen["fact_count"].as_u64().unwrap();
        assert!(if loops { facts == 10 } else { (3..=5).contains(&facts) }, "{seen:#}");
        assert_eq!(seen["extraction"]["dropped"], json!({ "truncated": 1 }), "{seen:#}");
        let usage = app.read("/ai/usage").await;
        assert_eq!(usage["total"]["calls"], calls, "{usage:#}");

        let asked = app.ask(Method::POST, &format!("/sources/{id}/process"), &Value::Null).await;
        assert_eq!(asked.status, 202, "{asked:?}");
        let again = app.until(&id, |now| now["processed_at"] != seen["processed_at"]).await;
        assert_eq!(app.models.stats().requests, calls, "what was paid is not asked again");
        assert_eq!(
            (&again["fact_count"], &again["extraction"]["dropped"]),
            (&seen["fact_count"], &seen["extraction"]["dropped"])
        );
    }
}

#[tokio::test]
async fn a_model_that_refuses_us_fails_the_source_at_once_and_says_what_to_look_at() {
    // A model that is not there: the catalogue names an endpoint without an address.
    let catalogue = "input_cost_per_1m = 1.0";
    let mut app = test_app_with(Behaviour::default(), catalogue, &[("LLM_LOCAL_BASE_URL", "")]).await;
    app.work().await;
    let id = app.add_text("essay.txt", &essay(1, 10)).await;
    let seen = app.settled(&id).await;
    assert_eq!(
        (&seen["status"], &seen["failure"]["code"]),
        (&json!("failed"), &json!("model_refused")),
        "{seen:#}"
    );
    let message = seen["failure"]["message"].as_str().unwrap();
    assert!(message.contains("providers.ai.local"), "{message}");
    assert_eq!(app.models.stats().requests, 0);
}

#[tokio::test]
async fn a_run_that_fails_takes_nothing_away_that_an_earlier_one_found() {
    let mut app = test_app(&[]).await;
    app.work().await;
    let id = app.add_text("essay.txt", &essay(1, 30)).await;
    app.settled(&id).await;
    let name = json!({"name": "Other", "phases": {"fact_extraction": "State the facts as JSON."}});
    let made = okt_testkit::accounts::send(
        &app.service,
        &app.owner.token,
        Method::POST,
        "/api/v1/promptsets",
        &name,
    );
    let hash = made.await.json()["hash"].as_str().unwrap().to_owned();
    let used = app.ask(Method::PUT, "/settings/promptsets", &json!({"promptset_hash": hash})).await;
    assert_eq!((used.status.as_u16(), &used.json()["promptset_hash"]), (200, &json!(hash)));
    let garbage = Behaviour { faults: Faults { garbage: 1.0, ..Faults::default() }, ..Behaviour::default() };
    app.models.behave(garbage);
    app.ask(Method::POST, &format!("/sources/{id}/process"), &Value::Null).await;
    let seen = app.until(&id, |seen| seen["status"] == "failed").await;
    assert_eq!(seen["fact_count"], 30, "{seen:#}");
    app.models.behave(Behaviour::default());
    app.ask(Method::POST, &format!("/sources/{id}/retry"), &Value::Null).await;
    app.until(&id, |seen| seen["status"] == "processed").await;
    let facts = app.facts(&id).await;
    assert_eq!(facts.len(), 30, "the same facts, put into words by the first");
}

#[tokio::test]
async fn images_are_looked_at_by_a_model_that_can_see() {
    let settings = [("SVC__PROVIDERS__DECOMPOSITION__IMAGE_EXTRACTION__MODEL", MODEL)];
    let mut app = test_app(&settings).await;
    app.work().await;
    let mut picture = b"\x89PNG\r\n\x1a\n".to_vec();
    picture.extend_from_slice(b"a chart of honey by the month");
    let essay = essay(1, 12);
    app.web.page("/chart.png", Page::new("image/png", picture));
    app.web.page(
        "/page",
        Page::html(format!("<article><p>{essay}</p><img src=/chart.png alt='Honey by month'></article>")),
    );
    let id = app.add_page("/page").await;
    let seen = app.settled(&id).await;
    assert_eq!(
        (&seen["status"], &seen["extraction"]["images"]),
        (&json!("processed"), &json!(1)),
        "{seen:#}"
    );
    let images = app.read(&format!("/facts?kind=image&source_id={id}")).await;
    let fact = &images["data"][0];
    assert!(fact["text"].as_str().unwrap().starts_with("The image shows pattern "), "{images:#}");
    let shown = app.read(&format!("/facts/{}", fact["id"].as_str().unwrap())).await;
    assert_eq!(shown["sources"][0]["image_id"], seen["images"][0]["id"], "{shown:#}");
    assert_eq!(shown["sources"][0]["sentences"], json!([]));
    let usage = app.read("/ai/usage?group_by=operation").await.to_string();
    assert!(usage.contains("image_fact_extraction"), "{usage}");
    // Another picture at the same place would be another question; the same one is not asked again.
    let requests = app.models.stats().requests;
    app.ask(Method::POST, &format!("/sources/{id}/process"), &Value::Null).await;
    app.until(&id, |now| now["processed_at"] != seen["processed_at"]).await;
    assert_eq!(app.models.stats().requests, requests);
    // A repository that does not want it has it switched off.
    app.ask(Method::PUT, "/settings/stages", &json!({"image_extraction": false})).await;
    let before = app.source(&id).await;
    app.ask(Method::POST, &format!("/sources/{id}/process"), &Value::Null).await;
    let now = app.until(&id, |now| now["processed_at"] != before["processed_at"]).await;
    assert_eq!((&now["extraction"]["images"], &now["fact_count"]), (&json!(0), &json!(12)), "{now:#}");
}

#[tokio::test]
async fn a_stage_that_is_off_is_passed_and_what_it_found_stays() {
    let mut app = test_app(&[]).await;
    app.work().await;
    let id = app.add_text("essay.txt", &essay(1, 12)).await;
    let seen = app.settled(&id).await;
    let mut off = app.service.api.app.config().clone();
    off.providers.decomposition.fact_extraction.model = String::new();
    app.work_as(&off).await;
    app.ask(Method::POST, &format!("/sources/{id}/process"), &Value::Null).await;
    let now = app.until(&id, |now| now["processed_at"] != seen["processed_at"]).await;
    assert_eq!((&now["status"], &now["fact_count"]), (&json!("processed"), &json!(12)), "{now:#}");
    assert_eq!(app.facts(&id).await.len(), 12);
}
