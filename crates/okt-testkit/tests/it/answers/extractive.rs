//! Without a model: the facts themselves, streamed, kept, shared and rated.

use http::Method;
use okt_testkit::accounts::{give, register};
use okt_testkit::app::TestApp;
use serde_json::{Value, json};

use super::{
    COPPER, FUNDY, OPENED, RANCE, SIHWA, SOON, TURBINES, ask, ask_as, events, extractive, list, read_until,
    say, sound, stream, texts, without_facts,
};

#[tokio::test]
async fn the_facts_nearest_to_a_question_answer_it_and_say_where_they_stand() {
    let app = extractive(&[&format!("{FUNDY} {RANCE}"), OPENED, SIHWA]).await;
    let answer = ask(&app, TURBINES).await;
    sound(&answer);
    assert_eq!(
        (&answer["status"], &answer["mode"], &answer["extractive_reason"]),
        (&json!("extractive"), &json!("extractive"), &json!("no_model")),
        "{answer:#}"
    );
    assert!(texts(&answer, "sentences").contains(&RANCE.to_owned()), "{answer:#}");
    assert_eq!(answer["cost"]["calls"], 0);
    for fact in list(&answer, "facts") {
        let quote = fact["quote"].as_str().unwrap();
        assert!(quote.contains(fact["text"].as_str().unwrap()), "the words of the source: {fact:#}");
        let id = fact["id"].as_str().unwrap();
        assert!(fact["url"].as_str().unwrap().ends_with(&format!("/facts/{id}")), "{fact:#}");
        assert!(fact["source"]["url"].as_str().unwrap().contains(&format!("fact={id}")), "{fact:#}");
        assert!(!list(fact, "found_by").is_empty() && fact["key"].as_str().unwrap().len() == 4, "{fact:#}");
    }
    let traced = app.read(&format!("/answers/{}?explain=true", answer["id"].as_str().unwrap())).await;
    assert_eq!(list(&traced, "trace").len(), list(&answer, "facts").len());
    assert!(answer.get("trace").is_none());

    // The same again, from the store.
    let again = ask(&app, "how many TURBINES does the Rance tidal power station have").await;
    assert_eq!((&again["cached"], &again["status"]), (&json!(true), &json!("extractive")), "{again:#}");
    sound(&again);
    assert_ne!(again["id"], answer["id"]);
    assert_eq!(texts(&again, "sentences"), texts(&answer, "sentences"));
}

#[tokio::test]
async fn nothing_is_known_is_an_answer_without_citations() {
    let app = extractive(&[FUNDY, RANCE]).await;
    let answer = ask(&app, COPPER).await;
    sound(&answer);
    assert_eq!((&answer["status"], &answer["near_only"]), (&json!("abstained"), &json!(true)), "{answer:#}");
    assert!(list(&answer, "sentences").is_empty() && answer["missing"].is_string(), "{answer:#}");
    // A question that shares a word with a fact is not answered by it.
    let near = ask(&app, "What is the population of the largest town at the Bay of Fundy in Canada?").await;
    sound(&near);
    assert!(!texts(&near, "sentences").iter().any(|text| text.contains("population")), "{near:#}");
}

#[tokio::test]
async fn an_answer_is_a_stream_that_goes_on_where_it_was_left() {
    let app = extractive(&[FUNDY, RANCE, OPENED]).await;
    let mut first = stream(&app, &json!({ "question": TURBINES })).await;
    assert_eq!(first.headers()["content-type"], "text/event-stream");
    let id = first.headers()["x-answer-id"].to_str().unwrap().to_owned();
    assert!(first.headers()["location"].to_str().unwrap().ends_with(&format!("/answers/{id}")));
    let whole = read_until(&mut first, "done").await;
    let names: Vec<&str> = whole.iter().map(|event| event.name.as_str()).collect();
    assert_eq!((names[0], names[1], *names.last().unwrap()), ("understood", "evidence", "done"), "{names:?}");
    assert!(whole.iter().map(|event| event.id).eq(1..=i64::try_from(whole.len()).unwrap()), "{whole:?}");
    assert_eq!(whole[0].data["answer_id"], json!(id));

    let path = app.path(&format!("/answers/{id}/events"));
    let from = async |last: &str| {
        let request = app.service.request(Method::GET, &path).bearer_auth(&app.owner.token);
        let response = request.header("last-event-id", last).send().await.unwrap();
        (response.status().as_u16(), events(&response.text().await.unwrap()))
    };
    let (_, rest) = from("2").await;
    assert_eq!(rest.len(), whole.len() - 2);
    assert!(rest.iter().zip(&whole[2..]).all(|(one, other)| (one.id, &one.data) == (other.id, &other.data)));
    for nothing in ["no number", "9999", "-1"] {
        assert_eq!(from(nothing).await.1.len(), whole.len(), "{nothing} was never told");
    }
    let last = whole.last().unwrap().id.to_string();
    assert_eq!(from(&last).await.0, 204, "it is over, and that was heard");
}

#[tokio::test]
async fn evidence_is_there_before_anybody_works() {
    let mut app = extractive(&[FUNDY, RANCE]).await;
    app.rest();
    let mut asked = stream(&app, &json!({ "question": TURBINES })).await;
    let begun = std::time::Instant::now();
    let heard = read_until(&mut asked, "evidence").await;
    assert!(begun.elapsed().as_secs() < 2, "{:?}", begun.elapsed());
    assert!(!list(&heard[1].data, "facts").is_empty());
    // Whoever does not stream is told which answer to wait for.
    let waiting =
        app.post("/ask", &json!({ "question": "How high are the tides of the Bay of Fundy?" })).await;
    assert_eq!(waiting.status, 202, "{waiting:?}");
    assert!(waiting.json()["answer_id"].is_string() && waiting.json()["job_id"].is_string());
    // There is nothing to be written down yet.
    let path = format!("/answers/{}/report", waiting.json()["answer_id"].as_str().unwrap());
    let refused = app.post(&path, &json!({})).await;
    assert_eq!(refused.status, 409, "{refused:?}");
}

#[tokio::test]
async fn what_was_rejected_since_it_was_found_is_not_cited() {
    let mut app = extractive(&[RANCE, OPENED, FUNDY]).await;
    app.rest();
    let asked = app.post("/ask", &json!({ "question": TURBINES })).await;
    assert_eq!(asked.status, 202, "{asked:?}");
    let id = asked.json()["answer_id"].as_str().unwrap().to_owned();
    let found = app.read(&format!("/answers/{id}")).await;
    let fact = list(&found, "facts").iter().find(|fact| fact["text"] == RANCE).unwrap()["id"].clone();
    let path = format!("/facts/{}", fact.as_str().unwrap());
    let rejected = app.put(&path, &json!({ "status": "rejected", "reason": "no" })).await;
    assert!(rejected.status.is_success(), "{rejected:?}");
    app.work().await;
    let answer = super::ended(&app, &app.owner, &id).await;
    sound(&answer);
    assert!(!texts(&answer, "sentences").contains(&RANCE.to_owned()), "{answer:#}");
}

#[tokio::test]
async fn an_answer_whose_job_was_forgotten_has_failed() {
    let mut app = extractive(&[RANCE]).await;
    app.rest();
    let asked = app.post("/ask", &json!({ "question": TURBINES })).await;
    assert_eq!(asked.status, 202, "{asked:?}");
    let path = format!("/answers/{}", asked.json()["answer_id"].as_str().unwrap());
    for table in ["okt_repository.outbox", "okt_tasks.jobs"] {
        app.sql(&format!("DELETE FROM {table} WHERE kind = 'answer_question'")).await;
    }
    assert_eq!(app.read(&path).await["status"], "running", "it may be on its way");
    app.sql("UPDATE okt_repository.answers SET created_at = created_at - interval '2 hours'").await;
    let answer = app.read(&path).await;
    assert_eq!(
        (&answer["status"], &answer["problem"]["code"]),
        (&json!("failed"), &json!("internal")),
        "{answer:#}"
    );
}

#[tokio::test]
async fn a_fact_is_quoted_from_a_source_that_was_asked_for_and_stands() {
    let app = extractive(&[]).await;
    let mut ids = Vec::new();
    for (at, text) in [format!("{RANCE} {FUNDY}"), format!("{OPENED} {RANCE}")].iter().enumerate() {
        let id = app.add_text(&format!("{at}.txt"), text).await;
        app.settled(&id).await;
        ids.push(json!(id));
    }
    app.quiet().await;
    let source = async |body: Value| {
        let answer = ask_as(&app, &app.owner, &body).await;
        let fact = list(&answer, "facts").iter().find(|fact| fact["text"] == RANCE).unwrap();
        fact["source"]["id"].clone()
    };
    assert_eq!(source(json!({ "question": TURBINES })).await, ids[0]);
    let of_other = json!({ "question": TURBINES, "filters": { "source_ids": [ids[1]] } });
    assert_eq!(source(of_other).await, ids[1]);
    let path = format!("/sources/{}/mark", ids[0].as_str().unwrap());
    let marked = app.put(&path, &json!({ "kind": "retracted", "reason": "withdrawn" })).await;
    assert!(marked.status.is_success(), "{marked:?}");
    assert_eq!(source(json!({ "question": TURBINES })).await, ids[1], "the other one bears it");
}

#[tokio::test]
async fn questions_that_differ_by_signs_are_two() {
    let app = extractive(&[RANCE]).await;
    for question in [
        "Does the Rance tidal power station have > 3 turbines?",
        "Does the Rance tidal power station have < 3 turbines?",
        "Does the Rance tidal power station have -3 turbines?",
    ] {
        assert_eq!(ask(&app, question).await["cached"], false, "{question}");
    }
    let again = ask(&app, "does the  Rance tidal power station have > 3 turbines").await;
    assert_eq!(again["cached"], true, "{again:#}");
}

#[tokio::test]
async fn a_key_counts_a_question_once() {
    let app = extractive(&[RANCE]).await;
    let send = async |question: &str, key: &str| {
        let request = app.service.request(Method::POST, &app.path("/ask")).bearer_auth(&app.owner.token);
        let body = json!({ "question": question });
        okt_testkit::client::Answer::of(request.header("idempotency-key", key).json(&body)).await
    };
    let first = send(TURBINES, "k1").await;
    let again = send(TURBINES, "k1").await;
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(first.header("x-answer-id"), again.header("x-answer-id"));
    let other = send("When was the Rance station opened?", "k1").await;
    assert_eq!((other.status.as_u16(), other.problem()), (422, "idempotency_mismatch".to_owned()));
    assert_ne!(send(TURBINES, "k2").await.header("x-answer-id"), first.header("x-answer-id"));
    assert_eq!(app.read("/answers").await["data"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn answers_belong_to_who_asked_until_they_are_shared() {
    let app = extractive(&[RANCE, OPENED]).await;
    let answer = ask(&app, TURBINES).await;
    let id = answer["id"].as_str().unwrap();
    let path = format!("/answers/{id}");
    let viewer = register(&app.service, "viewer").await;
    give(&app.service, viewer.id, &app.repository.to_string(), "viewer").await;
    let theirs = ask_as(&app, &viewer, &json!({ "question": TURBINES })).await;
    assert_eq!(theirs["cached"], false, "whether somebody else has asked is nobody's business: {theirs:#}");
    for path in [path.clone(), format!("{path}/events")] {
        assert_eq!(app.get_as(&viewer, &path).await.status, 404, "{path}");
    }
    for (method, rest, body) in [
        (Method::POST, "/cancel", Value::Null),
        (Method::POST, "/feedback", json!({ "verdict": "right" })),
        (Method::PUT, "", json!({ "shared": true })),
    ] {
        let refused = app.send(&viewer, method, &format!("{path}{rest}"), &body).await;
        assert_eq!(refused.status, 404, "{refused:?}");
    }
    assert_eq!(app.delete_as(&viewer, &path).await.status, 404);

    assert_eq!(app.put(&path, &json!({ "shared": true })).await.status, 200);
    let seen = app.get_as(&viewer, &path).await.json();
    assert_eq!((&seen["is_own"], &seen["shared"]), (&json!(false), &json!(true)), "{seen:#}");
    let listed = async |query: &str| {
        let rows = app.get_as(&viewer, &format!("/answers{query}")).await.json();
        rows["data"].as_array().unwrap().len()
    };
    assert_eq!((listed("").await, listed("?shared=true").await, listed("?shared=false").await), (2, 1, 1));
    assert_eq!(app.delete_as(&viewer, &path).await.status, 404, "seeing is not owning");

    let rated = json!({ "sentence": 0, "verdict": "wrong", "note": "Another station" });
    assert_eq!(app.post(&format!("{path}/feedback"), &rated).await.status, 204);
    let again = json!({ "sentence": 0, "verdict": "right" });
    assert_eq!(app.post(&format!("{path}/feedback"), &again).await.status, 204);
    let seen = app.read(&path).await;
    assert_eq!(seen["feedback"], json!([{ "sentence": 0, "verdict": "right", "note": null }]));
    let nowhere = json!({ "sentence": 99, "verdict": "right" });
    assert_eq!(app.post(&format!("{path}/feedback"), &nowhere).await.status, 422);

    assert_eq!(app.delete(&path).await.status, 204);
    assert_eq!(app.get(&path).await.status, 404);
    assert_eq!(
        app.delete_as(&viewer, &format!("/answers/{}", theirs["id"].as_str().unwrap())).await.status,
        204
    );
    for table in ["answers", "answer_events", "answer_facts", "answer_feedback"] {
        assert_eq!(app.count(&format!("SELECT count(*) FROM okt_repository.{table}")).await, 0, "{table}");
    }
}

#[tokio::test]
async fn an_answer_becomes_a_report_that_cites_and_is_checked() {
    let app = extractive(&[RANCE, OPENED]).await;
    let answer = ask(&app, TURBINES).await;
    let id = answer["id"].as_str().unwrap();
    let made = app.post(&format!("/answers/{id}/report"), &json!({ "topic": "Tides" })).await;
    assert_eq!(made.status, 201, "{made:?}");
    let report = made.json();
    assert_eq!((&report["title"], &report["topic"]), (&json!(TURBINES), &json!("Tides")), "{report:#}");
    app.ended(report["job_id"].as_str().unwrap()).await;
    let report = report["id"].as_str().unwrap();
    let counts = app.read(&format!("/reports/{report}/health")).await["counts"].clone();
    assert_eq!((&counts["waiting"], &counts["unsupported"]), (&json!(0), &json!(0)), "{counts:#}");
    assert!(counts["supported"].as_i64().unwrap() >= 1, "{counts:#}");
    let body = app.read(&format!("/reports/{report}?include=body")).await;
    assert!(body["body_markdown"].as_str().unwrap().contains("](<fact:"), "{body:#}");
    let nothing = ask(&app, COPPER).await;
    let refused = app.post(&format!("/answers/{}/report", nothing["id"].as_str().unwrap()), &json!({})).await;
    assert_eq!(refused.status, 409, "{refused:?}");
}

#[tokio::test]
async fn questions_filters_and_modes_are_checked() {
    let app = extractive(&[RANCE]).await;
    for (body, field) in [
        (json!({ "question": "?!" }), "question"),
        (json!({ "question": "x".repeat(2_001) }), "question"),
        (json!({ "question": TURBINES, "mode": "fast" }), "mode"),
        (json!({ "question": TURBINES, "max_cost_usd": 0 }), "max_cost_usd"),
        (json!({ "question": TURBINES, "answer_language": "German" }), "answer_language"),
        (json!({ "question": TURBINES, "filters": { "published_from": 20_000 } }), "filters.published_from"),
        (json!({ "question": TURBINES, "conversation_id": app.repository.to_string() }), "conversation_id"),
    ] {
        let refused = app.post("/ask", &body).await;
        assert_eq!(
            (refused.status.as_u16(), &refused.json()["errors"][0]["field"]),
            (422, &json!(field)),
            "{refused:?}"
        );
    }
    let refused = app.post("/ask", &json!({ "question": TURBINES, "mode": "model" })).await;
    assert_eq!((refused.status.as_u16(), refused.problem()), (503, "not_configured".to_owned()));
    let estimate = app.post("/ask/estimate", &json!({})).await.json();
    assert_eq!(
        (&estimate["mode"], &estimate["extractive_reason"], &estimate["based_on"], &estimate["usd"]),
        (&json!("extractive"), &json!("no_model"), &json!(0), &Value::Null),
        "{estimate:#}"
    );
    // Filters hold for evidence.
    say(&app, &[SIHWA]).await;
    let sources = app.read("/sources").await;
    let newest = sources["data"][0]["id"].as_str().unwrap();
    let body = json!({ "question": "How many turbines does a tidal power station have?", "filters": { "source_ids": [newest] } });
    let answer = ask_as(&app, &app.owner, &body).await;
    assert!(list(&answer, "facts").iter().all(|fact| fact["source"]["id"] == newest), "{answer:#}");
    assert_eq!(answer["filters"]["source_ids"], json!([newest]));
}

#[tokio::test]
async fn what_disagrees_stands_beside_what_is_cited() {
    let other = RANCE.replace("24 turbines", "30 turbines");
    let app = extractive(&[RANCE, &other]).await;
    let answer = ask(&app, TURBINES).await;
    sound(&answer);
    let shown = texts(&answer, "sentences");
    let against: Vec<String> =
        list(&answer, "disagreeing").iter().flat_map(|one| texts(one, "facts")).collect();
    let both = [RANCE.to_owned(), other];
    assert!(both.iter().all(|text| shown.contains(text) || against.contains(text)), "{answer:#}");
    assert!(both.iter().any(|text| against.contains(text)), "{answer:#}");
}

#[tokio::test]
async fn a_fact_of_a_pdf_leads_to_the_page_on_which_its_words_stand() {
    let app = extractive(&[]).await;
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/sample/tides.pdf");
    let pdf = std::fs::read(path).expect("the document of the quickstart");
    let added = app.upload("tides.pdf", "application/pdf", &pdf).await.json();
    let source = added["source_id"].as_str().unwrap();
    app.settled(source).await;
    app.quiet().await;
    let answer = ask(&app, TURBINES).await;
    sound(&answer);
    let facts: Vec<&Value> = list(&answer, "facts").iter().filter(|one| one["kind"] == "fact").collect();
    assert!(facts.iter().any(|one| one["text"].as_str().unwrap().contains("since 1966")), "{answer:#}");
    let beside = list(&answer, "facts").iter().filter(|one| one["kind"] == "passage");
    let beside = beside.filter(|one| one["quote"].as_str().unwrap().contains("turbines")).count();
    assert!(beside > 0, "what no fact says stands in a passage: {answer:#}");
    let one_line = |text: &Value| {
        text.as_str().unwrap().split_whitespace().map(str::to_owned).collect::<Vec<String>>().join(" ")
    };
    for one in facts {
        let number = &one["source"]["page"];
        assert!(one["source"]["url"].as_str().unwrap().ends_with(&format!("page={number}")), "{one:#}");
        let page = app.read(&format!("/sources/{source}/pages/{number}")).await;
        let cited = list(&page, "sentences").iter().find(|sentence| {
            list(sentence, "fact_ids").contains(&one["id"])
                && one_line(&one["quote"]).contains(&one_line(&sentence["text"]))
        });
        assert!(cited.is_some_and(|sentence| !list(sentence, "boxes").is_empty()), "{one:#} {page:#}");
    }
}

#[tokio::test]
async fn a_passage_stands_in_where_there_are_no_facts() {
    let mut app = TestApp::builder().settings(&[SOON]).start().await;
    app.work().await;
    say(&app, &[&without_facts(RANCE)]).await;
    assert_eq!(app.count("SELECT count(*) FROM okt_repository.facts").await, 0);
    let answer = ask(&app, TURBINES).await;
    sound(&answer);
    let passages = list(&answer, "facts");
    assert!(!passages.is_empty(), "{answer:#}");
    for passage in passages {
        assert_eq!((&passage["kind"], &passage["id"]), (&json!("passage"), &Value::Null), "{answer:#}");
        assert!(passage["quote"].as_str().unwrap().contains("24 turbines"), "{answer:#}");
    }
    assert_eq!(answer["status"], "abstained", "without a model a passage says nothing by itself: {answer:#}");
    let nothing = ask(&app, COPPER).await;
    assert!(list(&nothing, "facts").is_empty(), "it has none of the words: {nothing:#}");
}

#[tokio::test]
async fn a_document_without_a_fact_is_found_among_many_facts() {
    let stations = [
        "Sihwa",
        "Annapolis",
        "Kislaya",
        "Jiangxia",
        "Uldolmok",
        "Swansea",
        "Garorim",
        "Mezen",
        "Tugur",
        "Severn",
    ];
    let facts = stations.map(|name| {
        format!("The {name} tidal power station has turbines with a capacity of {} megawatts.", name.len())
    });
    let mut texts: Vec<&str> = facts.iter().map(String::as_str).collect();
    let without = without_facts(RANCE);
    texts.push(&without);
    let app = extractive(&texts).await;
    let answer = ask(&app, TURBINES).await;
    sound(&answer);
    let of = |kind: &str| list(&answer, "facts").iter().filter(|one| one["kind"] == kind).count();
    assert_eq!((of("fact") >= 8, of("passage")), (true, 1), "{answer:#}");
    let passage = list(&answer, "facts").iter().find(|one| one["kind"] == "passage").unwrap();
    assert!(passage["quote"].as_str().unwrap().contains("24 turbines"), "{answer:#}");
}
