//! Sources that the academic search service lists as retracted.

use okt_testkit::app::TestApp;
use okt_testkit::web::{Page, Web};
use serde_json::{Value, json};

const DOI: &str = "10.1000/dance";
const LOOK_UP: &str = "/works?filter=doi%3A10.1000%2Fdance&per-page=1&select=doi%2Cis_retracted";

fn works(retracted: bool) -> Page {
    let works = json!({"results": [{"doi": "https://doi.org/10.1000/Dance", "is_retracted": retracted}]});
    Page::new("application/json", works.to_string())
}

/// An app whose academic service lists nothing yet.
async fn started() -> (TestApp, Web) {
    let web = Web::start().await;
    let base = web.url("/");
    let settings = [("SVC__PROVIDERS__SEARCH__ACADEMIC__BASE_URL", &*base)];
    let mut app = TestApp::builder().settings(&settings).start().await;
    app.work().await;
    (app, web)
}

/// A page that names the DOI, read to its end.
async fn read(app: &TestApp, path: &str) -> String {
    let page = "<!doctype html><html lang=en><head><title>On dances</title>\
                <meta name=citation_title content='On dances'><meta name=citation_doi content='10.1000/Dance'></head><body><article>";
    let text =
        "<p>A forager that has found food tells the others by a dance on the comb of its own hive.</p>"
            .repeat(20);
    app.web.page(path, Page::html(format!("{page}{text}</article></body></html>")));
    let id = app.add_page(path).await;
    app.settled(&id).await;
    id
}

async fn marked(app: &TestApp, id: &str) -> Value {
    app.read(&format!("/sources/{id}?include=")).await["mark"].clone()
}

#[tokio::test]
async fn a_source_is_marked_when_the_service_lists_it_as_retracted() {
    let (app, web) = started().await;
    web.page(LOOK_UP, works(true));
    let id = read(&app, "/dance").await;
    assert_eq!(app.read(&format!("/sources/{id}?include=")).await["doi"], DOI);
    let mark = marked(&app, &id).await;
    assert_eq!(
        (&mark["kind"], &mark["origin"]),
        (&json!("retracted"), &json!("provider")),
        "{:?}",
        web.asked()
    );
    assert_eq!(mark["user_id"], Value::Null);
    assert_eq!(web.asked(), [LOOK_UP]);

    // Who removes it has the last word, however often the service is asked.
    assert_eq!(app.delete(&format!("/sources/{id}/mark")).await.status, 204);
    let again = read(&app, "/dance/again").await;
    assert_eq!(marked(&app, &again).await["origin"], "provider", "the same paper from elsewhere");
    assert_eq!(marked(&app, &id).await, Value::Null);
}

#[tokio::test]
async fn a_service_that_is_silent_or_knows_nothing_marks_nothing() {
    let (app, web) = started().await;
    let missing = read(&app, "/one").await;
    web.page(LOOK_UP, works(false));
    let sound = read(&app, "/two").await;
    web.page(LOOK_UP, Page::html("Please sign in"));
    let garbled = read(&app, "/three").await;
    let other = json!({"results": [{"doi": "https://doi.org/10.1000/other", "is_retracted": true}]});
    web.page(LOOK_UP, Page::new("application/json", other.to_string()));
    let another = read(&app, "/four").await;
    for id in [missing, sound, garbled, another] {
        assert_eq!(marked(&app, &id).await, Value::Null);
        assert_eq!(app.source(&id).await["status"], "processed");
    }
    assert_eq!(web.asked().len(), 4);
}

#[tokio::test]
async fn a_repository_without_academic_search_asks_nobody() {
    let (app, web) = started().await;
    web.page(LOOK_UP, works(true));
    let settings = json!({"provider": "academic", "enabled": false});
    let off = app.put("/settings/providers", &settings).await;
    assert!(off.status.is_success(), "{off:?}");
    let id = read(&app, "/dance").await;
    assert_eq!(marked(&app, &id).await, Value::Null);
    assert!(web.asked().is_empty(), "{:?}", web.asked());
}

#[tokio::test]
async fn candidates_that_are_listed_as_retracted_mark_the_sources_that_they_are() {
    let (app, web) = started().await;
    let id = read(&app, "/dance").await;
    assert_eq!(marked(&app, &id).await, Value::Null);
    let fields = "id%2Cdoi%2Cdisplay_name%2Cpublication_date%2Cis_retracted%2Cbest_oa_location%2Cprimary_location%2C\
                  abstract_inverted_index";
    let path = format!("/works?search=bees&per-page=3&cursor=*&select={fields}");
    let work = |doi: &str, retracted: bool| {
        json!({"doi": format!("https://doi.org/{doi}"), "display_name": doi, "is_retracted": retracted,
               "primary_location": {"landing_page_url": format!("https://journal.test/{doi}")}})
    };
    let results = json!({"results": [work(DOI, true), work("10.1000/wax", false)]});
    web.page(&path, Page::new("application/json", results.to_string()));
    let found =
        app.post("/sources/search", &json!({"query": "bees", "limit": 3, "provider": "academic"})).await;
    assert_eq!(found.status, 200, "{found:?} {:?}", web.asked());
    let found = found.json();
    assert_eq!(
        (&found["data"][0]["retracted"], &found["data"][1]["retracted"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(marked(&app, &id).await["origin"], "provider");
    // What a person says of it stays.
    let said = app.put(&format!("/sources/{id}/mark"), &json!({"kind": "superseded"})).await;
    assert_eq!(said.status, 200, "{said:?}");
    app.post("/sources/search", &json!({"query": "bees", "limit": 3, "provider": "academic"})).await;
    assert_eq!(marked(&app, &id).await["kind"], "superseded");
}
