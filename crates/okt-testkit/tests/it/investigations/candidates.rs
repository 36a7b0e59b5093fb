//! Sources that somebody looks for, and adds to an investigation together.

use http::Method;
use okt_testkit::accounts::{give, register};
use okt_testkit::app::TestApp;
use okt_testkit::web::{Page, Web};
use serde_json::{Value, json};

use super::{begin, column, investigation};

/// What an academic search for bees finds.
fn results() -> Value {
    let work = |doi: Option<&str>, url: &str, title: &str| {
        json!({"doi": doi.map(|doi| format!("https://doi.org/{doi}")), "display_name": title,
               "primary_location": {"landing_page_url": url}})
    };
    json!({"meta": {"next_cursor": "more"}, "results": [
        work(Some("10.1000/dance"), "https://journal.test/dance", "On dances"),
        work(None, "https://journal.test/wax", "On wax"),
        work(Some("10.1000/honey"), "https://journal.test/honey", "On honey"),
    ]})
}

/// An app whose academic search is this web.
async fn searching(settings: &[(&str, &str)]) -> (TestApp, Web) {
    let web = Web::start().await;
    let fields = "id%2Cdoi%2Cdisplay_name%2Cpublication_date%2Cis_retracted%2Cbest_oa_location%2Cprimary_location%2Cabstract_inverted_index";
    for (limit, cursor, page) in [(3, "*", results()), (3, "more", json!({"results": []}))] {
        let path = format!("/works?search=bees&per-page={limit}&cursor={cursor}&select={fields}");
        web.page(&path, Page::new("application/json", page.to_string()));
    }
    let base = web.url("/");
    let search = [("SVC__PROVIDERS__SEARCH__ACADEMIC__BASE_URL", &*base)];
    let app = TestApp::builder().settings(&search).settings(settings).start().await;
    (app, web)
}

#[tokio::test]
async fn candidates_say_what_is_there_and_are_added_together() {
    let (app, web) = searching(&[]).await;
    let id = begin(&app, "Bees").await;
    // One by its DOI, one by its address; a third is known by its address although it has a DOI.
    let dance = app.post("/sources", &json!({"doi": "10.1000/Dance"})).await.json();
    let honey = app.post("/sources", &json!({"url": "https://journal.test/honey"})).await.json();
    let question = json!({"query": "bees", "limit": 3});
    let found = app.post("/sources/search", &question).await;
    assert_eq!(found.status, 200, "{found:?} {:?}", web.asked());
    let found = found.json();
    let seen: Vec<(&Value, &Value, &Value)> = found["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hit| (&hit["title"], &hit["already_exists"], &hit["source_id"]))
        .collect();
    assert_eq!(
        seen,
        [
            (&json!("On dances"), &json!(true), &dance["source_id"]),
            (&json!("On wax"), &json!(false), &Value::Null),
            (&json!("On honey"), &json!(true), &honey["source_id"]),
        ]
    );
    let more = json!({"query": "bees", "limit": 3, "provider": "academic", "cursor": found["next_cursor"]});
    let more = app.post("/sources/search", &more).await.json();
    assert_eq!((&more["data"], &more["next_cursor"]), (&json!([]), &Value::Null));

    let candidates = json!({"candidates": [
        {"doi": "10.1000/dance"},
        {"url": "https://journal.test/wax"},
        {"url": "https://journal.test/wax?utm_source=x"},
        {"url": "no address"},
        {"doi": "10.1000/honey", "url": "https://journal.test/honey"},
        {"url": "https://journal.test/honey"},
    ]});
    let path = format!("/investigations/{id}/sources");
    let added = app.post(&path, &candidates).await;
    assert_eq!(added.status, 200, "{added:?}");
    let added = added.json();
    let rows = added["data"].as_array().unwrap();
    let outcomes: Vec<(&str, bool)> =
        rows.iter().map(|row| (row["outcome"].as_str().unwrap(), row["linked"].as_bool().unwrap())).collect();
    let expected = [
        ("existing", true),
        ("added", true),
        ("existing", false),
        ("invalid", false),
        ("invalid", false),
        ("existing", true),
    ];
    assert_eq!(outcomes, expected, "{added:#}");
    assert_eq!((&rows[0]["source_id"], &rows[5]["source_id"]), (&dance["source_id"], &honey["source_id"]));
    assert_eq!(rows[1]["source_id"], rows[2]["source_id"]);
    assert!(rows[3]["message"].as_str().unwrap().starts_with("url:"), "{added:#}");
    let job = rows[1]["job_id"].as_str().unwrap();
    assert_eq!(app.read(&format!("/jobs/{job}")).await["kind"], "retrieve_source");
    assert_eq!(column(&app, &path, 2, "id").await.len(), 3);

    let again = app.post(&path, &candidates).await.json();
    assert!(again["data"].as_array().unwrap().iter().all(|row| row["linked"] == false), "{again:#}");
    assert_eq!(app.count("SELECT count(*) FROM okt_repository.sources").await, 3);
}

#[tokio::test]
async fn a_full_repository_takes_only_what_it_has() {
    let (app, _web) = searching(&[("SVC__LIMITS__SOURCES_PER_REPOSITORY", "2")]).await;
    let id = begin(&app, "Bees").await;
    let body = json!({"candidates": [
        {"doi": "10.1000/1"}, {"doi": "10.1000/2"}, {"doi": "10.1000/3"}, {"doi": "10.1000/1"},
    ]});
    let added = app.post(&format!("/investigations/{id}/sources"), &body).await.json();
    let outcomes: Vec<&str> =
        added["data"].as_array().unwrap().iter().map(|row| row["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["added", "added", "skipped", "existing"], "{added:#}");
    let why = added["data"][2]["message"].as_str().unwrap();
    assert!(why.contains("limits.sources_per_repository"), "{why}");
    assert_eq!(investigation(&app, &id).await["source_count"], 2);
}

/// Services are asked at the operator's expense: how often is counted for a person, not for a key or a repository.
#[tokio::test]
async fn a_person_searches_only_so_often() {
    let (app, web) = searching(&[("SVC__RATE_LIMITS__SOURCE_SEARCH_PER_HOUR", "2")]).await;
    let editor = register(&app.service, "editor").await;
    give(&app.service, editor.id, &app.repository.to_string(), "editor").await;
    let question = json!({"query": "bees", "limit": 3});
    let wrong = app.send(&editor, Method::POST, "/sources/search", &json!({"query": " "})).await;
    assert_eq!(wrong.status, 422, "what is asked of nobody is not counted");
    for expected in [200, 200, 429] {
        let answer = app.send(&editor, Method::POST, "/sources/search", &question).await;
        assert_eq!(answer.status, expected, "{answer:?}");
    }
    assert_eq!(web.asked().len(), 2);
    assert_eq!(app.post("/sources/search", &question).await.status, 200, "others are not concerned");
}

#[tokio::test]
async fn only_providers_that_are_switched_on_are_asked() {
    let (app, web) = searching(&[]).await;
    let question = |provider: &str| json!({"query": "bees", "limit": 3, "provider": provider});
    for (provider, code, status) in [("web", "not_configured", 503), ("bing", "invalid", 422)] {
        let refused = app.post("/sources/search", &question(provider)).await;
        assert_eq!((refused.status.as_u16(), refused.problem().as_str()), (status, code), "{provider}");
    }
    let off = app.put("/settings/providers", &json!({"provider": "academic", "enabled": false})).await;
    assert_eq!(off.status, 200, "{off:?}");
    let refused = app.post("/sources/search", &question("academic")).await;
    assert_eq!((refused.status.as_u16(), refused.problem().as_str()), (409, "conflict"));
    let refused = app.post("/sources/search", &json!({"query": "bees"})).await;
    assert_eq!((refused.status.as_u16(), refused.problem().as_str()), (503, "not_configured"));
    assert_eq!(web.asked(), [""; 0], "nobody was asked");
}
