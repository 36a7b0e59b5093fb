//! Searching a repository: what is found by its words, by its meaning and over concepts, and what is not.

mod away;
mod filters;
mod fuzz;
mod pages;
mod passages;
mod prefixes;
mod rerank;
mod upkeep;

use std::collections::BTreeSet;
use std::time::Duration;

use okt_model::CONCEPT_MODEL;
use okt_testkit::accounts::{api_key, register, send};
use okt_testkit::app::TestApp;
use okt_testkit::multipart::form;
use okt_testkit::wait::eventually;
use serde_json::{Value, json};

/// Adds a text with a title; returns the id of its source.
async fn add(app: &TestApp, name: &str, title: &str, text: &str) -> String {
    let form = form(&[("title", title)], &format!("{name}.txt"), "text/plain", text.as_bytes());
    let answer = app.upload_form(form).await;
    answer.json()["source_id"].as_str().unwrap_or_else(|| panic!("{answer:?}")).to_owned()
}

/// Waits until nothing is left to do.
async fn settled(app: &TestApp, sources: &[String]) {
    for source in sources {
        app.settled(source).await;
    }
    eventually(Duration::from_mins(2), "all jobs have ended", async || {
        let open = "SELECT (SELECT count(*) FROM okt_tasks.jobs WHERE finished_at IS NULL AND kind <> 'cleanup_facts'
                               AND repository_id IS NOT NULL)
                         + (SELECT count(*) FROM okt_repository.outbox WHERE kind <> 'cleanup_facts')";
        let open = app.count(open).await;
        if open == 0 { Ok(()) } else { Err(open) }
    })
    .await;
}

async fn search(app: &TestApp, q: &str, rest: &str) -> Value {
    let q: String = url::form_urlencoded::byte_serialize(q.as_bytes()).collect();
    app.read(&format!("/search?q={q}{rest}")).await
}

fn rows(found: &Value) -> &[Value] {
    found["data"].as_array().unwrap()
}

/// The sources of rows, each once, in their order.
fn sources(found: &Value) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let ids = rows(found).iter().flat_map(|row| row["source_ids"].as_array().unwrap());
    let ids = ids.map(|id| id.as_str().unwrap().to_owned());
    ids.filter(|id| seen.insert(id.clone())).collect()
}

#[tokio::test]
async fn words_are_found_in_other_forms_and_in_the_languages_of_sources() {
    let mut app = TestApp::start().await;
    app.work().await;
    let texts = [
        ("en", "Galaxies were measured by the new telescope in Chile. The measurements took three years."),
        (
            "de",
            "Die alten Brücken der Stadt wurden im letzten Jahr erneuert. Viele Häuser stehen noch am Ufer des Flusses.",
        ),
        (
            "es",
            "Las canciones españolas se cantan en las fiestas de los pueblos. Los niños aprenden muchas de ellas en la escuela.",
        ),
        (
            "ru",
            "Под старыми мостами города текут широкие реки. Зимой они замерзают, и местные дети катаются там на коньках. \
             Этот город очень любят художники, которые приезжают сюда каждое лето.",
        ),
        ("ar", "ذهب الأطفال إلى المدرسة في الصباح الباكر. قرأ المعلمون الكتب الجديدة أمام التلاميذ."),
        ("zh", "北京大学的学生在图书馆里学习物理。他们每天都读很多书。"),
    ];
    let mut ids = Vec::new();
    for (name, text) in texts {
        ids.push(add(&app, name, name, text).await);
    }
    settled(&app, &ids).await;
    for (at, q) in [
        (0, "measuring a galaxy"),
        (1, "Brücke"),
        (1, "Haus am Fluss"),
        (2, "canción española"),
        (3, "мост"),
        (4, "مدرسة"),
        (5, "图书馆"),
        (5, "北京大学"),
    ] {
        let found = search(&app, q, "&types=passages,sources").await;
        assert_eq!(sources(&found).first(), Some(&ids[at]), "{q}: {found:#}");
        let passage = rows(&found).iter().find(|row| row["type"] == "passages").unwrap();
        assert!(!passage["highlights"].as_array().unwrap().is_empty(), "{q}: {passage:#}");
    }
    let found = search(&app, "Brück", "&types=passages&prefix=true").await;
    assert_eq!(sources(&found), [ids[1].clone()], "{found:#}");
    assert!(rows(&search(&app, "submarine", "&types=passages,sources").await).is_empty());
}

#[tokio::test]
async fn phrases_stand_together_and_what_is_excluded_is_not_shown() {
    let mut app = TestApp::start().await;
    app.work().await;
    let one = "The Bay of Fundy in Canada has the highest tides of the world.";
    let other = "The tides of the North Sea are highest in the bay of Saint-Malo.";
    let ids = [add(&app, "one", "Fundy", one).await, add(&app, "other", "North Sea", other).await];
    settled(&app, &ids).await;
    let found = async |q: &str| sources(&search(&app, q, "&types=passages").await);
    assert_eq!(found("highest tides").await.len(), 2);
    assert_eq!(found("\"highest tides\"").await, [ids[0].clone()]);
    assert_eq!(found("tides -canada").await, [ids[1].clone()]);
    assert_eq!(found("tides -\"north sea\"").await, [ids[0].clone()]);
    // Offsets are those of code points, and say where.
    let rows = search(&app, "\"highest tides\"", "&types=passages&explain=true").await;
    let row = &rows["data"][0];
    let text: Vec<char> = row["text"].as_str().unwrap().chars().collect();
    let marked: Vec<String> = row["highlights"]
        .as_array()
        .unwrap()
        .iter()
        .map(|range| {
            let at = |end: usize| usize::try_from(range[end].as_u64().unwrap()).unwrap();
            text[at(0)..at(1)].iter().collect()
        })
        .collect();
    assert_eq!(marked, ["highest tides"], "{row:#}");
    assert_eq!(row["explain"]["lexical"]["rank"], 1, "{row:#}");
    assert_eq!((&row["found_by"], &row["via"]), (&json!(["lexical"]), &Value::Null));
}

#[tokio::test]
async fn pages_make_up_the_whole_and_what_is_deleted_is_not_found() {
    let mut app = TestApp::start().await;
    app.work().await;
    let mut ids = Vec::new();
    for number in 0..7 {
        let text =
            format!("Keeper {number} found honey in apiary {number}. The honey of hive {number} was dark.");
        ids.push(add(&app, &format!("t{number}"), &format!("Honey {number}"), &text).await);
    }
    settled(&app, &ids).await;
    let whole = search(&app, "honey", "&types=facts,passages,sources&limit=200").await;
    let key = |row: &Value| (row["type"].clone().to_string(), row["id"].to_string(), row["text"].to_string());
    let all: Vec<_> = rows(&whole).iter().map(key).collect();
    assert!(all.len() >= 14, "{whole:#}");
    let (mut paged, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = search(&app, "honey", &format!("&types=facts,passages,sources&limit=4{cursor}")).await;
        paged.extend(rows(&page).iter().map(key));
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(paged, all);
    assert_eq!(app.delete(&format!("/sources/{}", ids[3])).await.status, 204);
    let left = search(&app, "honey", "&types=facts,passages,sources&limit=200").await;
    assert!(!sources(&left).contains(&ids[3]) && sources(&left).len() == 6, "{left:#}");
    settled(&app, &[]).await;
    let words = "SELECT count(*) FROM okt_repository.search_units WHERE '3' = ANY (words)";
    assert_eq!(app.count(words).await, 0, "nor are its words kept");
}

/// What a question needs but does not say: the second text is led to by a name in the first.
#[tokio::test]
async fn deep_search_goes_on_over_names() {
    let mut app = TestApp::builder().concepts(CONCEPT_MODEL).vectors().start().await;
    app.work().await;
    let texts = [
        (
            "The Silent Harbour",
            "The Silent Harbour is a 1957 film. The Silent Harbour was directed by Ole Brandtmann in Bergen.",
        ),
        (
            "Ole Brandtmann",
            "Ole Brandtmann was born in Tromsø in 1911. Ole Brandtmann studied law before he worked in Oslo.",
        ),
        (
            "The Loud Harbour",
            "The Loud Harbour is a 1961 film. The Loud Harbour was directed by Mia Solberg in Stavanger.",
        ),
        (
            "Mia Solberg",
            "Mia Solberg was born in Ålesund in 1920. Mia Solberg wrote five novels about the sea.",
        ),
        ("Bees", "Honey bees dance on the comb. Honey bees tell each other where food is."),
        ("Tides", "The Moon causes the tides. The tides are highest in the Bay of Fundy."),
        ("Granite Hymn", "The Granite Hymn is a song of 1931. It was made for Lars Winthersen by others."),
        ("Lars Winthersen", "He was a sailor. It was there that he grew up, and so did she."),
    ];
    let mut ids = Vec::new();
    for (at, (title, text)) in texts.iter().enumerate() {
        ids.push(add(&app, &format!("d{at}"), title, text).await);
    }
    settled(&app, &ids).await;
    // Nothing was stated of him, so no concept leads there: his name does. What one text has in quotes, another need not have.
    let question = "What was the profession of whom \"Granite Hymn\" was made for?";
    let deep = search(&app, question, "&types=facts,passages&mode=deep").await;
    let sailor = rows(&deep).iter().find(|row| row["source_ids"][0] == ids.last().unwrap().as_str()).unwrap();
    let led = (&sailor["type"], &sailor["via"], &sailor["via_name"]);
    assert_eq!(led, (&json!("passages"), &Value::Null, &json!("lars winthersen")), "{sailor:#}");
    assert!(sailor["found_by"].as_array().unwrap().contains(&json!("hop")), "{sailor:#}");
    let question = "Where was the director of the film The Silent Harbour born?";
    let deep = search(&app, question, "&types=facts&mode=deep").await;
    assert_eq!((&deep["search_mode"], &deep["degraded_reason"]), (&json!("deep"), &Value::Null), "{deep:#}");
    // The two best stay where they are.
    assert_eq!((&sources(&deep)[0], &sources(&deep)[2]), (&ids[0], &ids[1]), "{deep:#}");
    let reached = rows(&deep).iter().find(|row| row["source_ids"][0] == ids[1].as_str()).unwrap();
    assert!(reached["found_by"].as_array().unwrap().contains(&json!("hop")), "{reached:#}");
    let via = reached["via"].as_str().unwrap();
    let via = app.read(&format!("/concepts/{via}")).await;
    assert_eq!(
        (&via["canonical_name"], &reached["via_name"]),
        (&json!("Ole Brandtmann"), &json!("Ole Brandtmann"))
    );
    let hybrid = search(&app, question, "&types=facts&mode=hybrid").await;
    assert_eq!(hybrid["search_mode"], "hybrid");
    assert!(rows(&hybrid).iter().all(|row| row["via"].is_null()));
    // By meaning alone, and by words alone.
    let vector = search(&app, "insects that communicate about nectar", "&types=facts&mode=vector").await;
    assert_eq!(sources(&vector).first(), Some(&ids[4]), "{vector:#}");
    let lexical = search(&app, "director Harbour", "&types=facts&mode=lexical").await;
    assert!(rows(&lexical).iter().all(|row| row["found_by"] == json!(["lexical"])), "{lexical:#}");
}

#[tokio::test]
async fn without_vectors_the_answer_is_lexical_and_says_why() {
    let mut app = TestApp::start().await;
    app.work().await;
    let id = add(&app, "one", "Tides", "The Moon causes the tides.").await;
    settled(&app, std::slice::from_ref(&id)).await;
    for mode in ["auto", "hybrid", "vector"] {
        let found = search(&app, "tides", &format!("&types=passages&mode={mode}")).await;
        assert_eq!(
            (&found["search_mode"], &found["degraded_reason"]),
            (&json!("lexical"), &json!("no_vectors")),
            "{mode}"
        );
        assert_eq!(sources(&found), std::slice::from_ref(&id), "{mode}");
    }
    let found = search(&app, "tides", "&types=passages&mode=lexical").await;
    assert_eq!((&found["search_mode"], &found["degraded_reason"]), (&json!("lexical"), &Value::Null));
    for (path, said) in [
        ("/search?q=", "q: must not be empty"),
        ("/search?q=a&types=facts,stars", "types: must be one of facts, concepts, sources, passages"),
        ("/search?q=a&mode=best", "mode: must be one of"),
        ("/search?query=a", "query"),
    ] {
        let answer = app.get(path).await;
        assert_eq!(answer.status, 422, "{path}: {answer:?}");
        assert!(answer.json()["detail"].as_str().unwrap().contains(said), "{path}: {answer:?}");
    }
}

/// Statistics are those of one repository: what others have changes neither what is found nor how it is scored.
#[tokio::test]
async fn texts_of_others_do_not_change_a_score() {
    let mut app = TestApp::start().await;
    app.work().await;
    let mut ids = Vec::new();
    for (name, text) in
        [("a", "The Moon causes the tides of the sea."), ("b", "The sea is deep near Norway.")]
    {
        ids.push(add(&app, name, name, text).await);
    }
    settled(&app, &ids).await;
    let before = search(&app, "tides of the sea", "&types=passages,sources,facts&explain=true").await;
    let other = register(&app.service, "stranger").await;
    let made = send(
        &app.service,
        &other.token,
        http::Method::POST,
        "/api/v1/repositories",
        &json!({"name": "Other"}),
    )
    .await;
    let theirs = made.json()["id"].as_str().unwrap_or_else(|| panic!("{made:?}")).to_owned();
    let path = format!("/api/v1/repositories/{theirs}/sources/upload");
    let mut added = Vec::new();
    for number in 0..4 {
        let text = format!("Tides, tides and the sea {number}: nothing but tides.");
        let request = app.service.request(http::Method::POST, &path).bearer_auth(&other.token);
        let body = form(&[], &format!("x{number}.txt"), "text/plain", text.as_bytes());
        let request = request.header("content-type", okt_testkit::multipart::CONTENT_TYPE).body(body);
        added.push(okt_testkit::client::Answer::of(request).await.json()["source_id"].clone());
    }
    eventually(Duration::from_mins(2), "the other one's texts can be found", async || {
        let path = format!("/api/v1/repositories/{theirs}/search?q=tides&types=sources");
        let found = send(&app.service, &other.token, http::Method::GET, &path, &Value::Null).await.json();
        if rows(&found).len() == 4 { Ok(()) } else { Err(found) }
    })
    .await;
    let after = search(&app, "tides of the sea", "&types=passages,sources,facts&explain=true").await;
    assert_eq!(after, before);
    let path = format!("/api/v1/repositories/{}/search?q=tides", app.repository);
    let refused = send(&app.service, &other.token, http::Method::GET, &path, &Value::Null).await;
    assert_eq!(refused.status, 404, "{refused:?}");
    let path = format!("/api/v1/repositories/{theirs}/search?q=Moon+Norway&types=facts,sources,passages");
    let found = send(&app.service, &other.token, http::Method::GET, &path, &Value::Null).await;
    assert!(rows(&found.json()).is_empty(), "{found:?}");
}

/// Whoever may read facts only finds no words of sources and no concepts.
#[tokio::test]
async fn each_type_needs_its_own_permission() {
    let mut app = TestApp::builder().concepts(CONCEPT_MODEL).start().await;
    app.work().await;
    let id = add(&app, "one", "Tides", "The Moon causes the tides of the sea. Book here!").await;
    settled(&app, std::slice::from_ref(&id)).await;
    let (_, key) = api_key(&app.service, &app.owner, &["fact:read"]).await;
    let ask = async |types: &str| {
        let path = format!("/api/v1/repositories/{}/search?q=moon{types}", app.repository);
        send(&app.service, &key, http::Method::GET, &path, &Value::Null).await
    };
    for types in ["sources", "passages", "concepts", "facts,sources"] {
        assert_eq!(ask(&format!("&types={types}")).await.status, 403, "{types}");
    }
    let found = ask("").await.json();
    assert!(rows(&found).iter().all(|row| row["type"] == "facts") && !rows(&found).is_empty(), "{found:#}");
    let all = search(&app, "moon", "").await;
    let types: BTreeSet<&str> = rows(&all).iter().map(|row| row["type"].as_str().unwrap()).collect();
    assert_eq!(types, BTreeSet::from(["concepts", "facts", "sources"]), "{all:#}");
}

/// A fact of two sources is found as long as one of them makes it.
#[tokio::test]
async fn a_fact_of_two_sources_outlives_the_first() {
    let mut app = TestApp::start().await;
    app.work().await;
    let shared = "The Bay of Fundy in Canada has the highest tides of the world.";
    let one = add(&app, "one", "First", shared).await;
    settled(&app, std::slice::from_ref(&one)).await;
    let two = add(&app, "two", "Second", &format!("{shared} The Moon causes the tides of the sea.")).await;
    settled(&app, std::slice::from_ref(&two)).await;
    let found = search(&app, "\"highest tides\"", "&types=facts").await;
    assert_eq!((rows(&found).len(), sources(&found).len()), (1, 2), "{found:#}");
    assert_eq!(app.delete(&format!("/sources/{one}")).await.status, 204);
    settled(&app, &[]).await;
    let found = search(&app, "\"highest tides\"", "&types=facts").await;
    assert_eq!(sources(&found), [two], "{found:#}");
    let word = "SELECT count(*) FROM okt_repository.search_lists WHERE word = 'first'";
    assert_eq!(app.count(word).await, 0, "it is found with the other's title");
}
