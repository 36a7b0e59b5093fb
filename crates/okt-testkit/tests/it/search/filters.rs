//! Filters and facets.

use okt_model::CONCEPT_MODEL;
use okt_testkit::accounts::{api_key, send};
use okt_testkit::app::TestApp;
use serde_json::{Value, json};

use super::{add, rows, search, settled, sources};

const TIDES: &str =
    "The Bay of Fundy in Canada has the highest tides of the world. Fishermen know the tides well.";
const HARBOUR: &str = "The harbour of Bergen in Norway knows no high tides. The harbour was built in 1702.";
const GERMAN: &str = "Die Gezeiten sind in der Bay of Fundy am höchsten. Viele Fischer leben noch am Ufer des Flusses und der Bucht.";

/// Three sources: in English of 2019 and 2021, and in German of 2021.
async fn filled() -> (TestApp, [String; 3]) {
    let mut app = TestApp::builder().concepts(CONCEPT_MODEL).start().await;
    app.work().await;
    let ids = [
        add(&app, "tides", "Tides", TIDES).await,
        add(&app, "harbour", "Bergen", HARBOUR).await,
        add(&app, "gezeiten", "Gezeiten", GERMAN).await,
    ];
    settled(&app, &ids).await;
    for (id, year) in [(&ids[0], 2019), (&ids[1], 2021), (&ids[2], 2021)] {
        app.sql(&format!(
            "UPDATE okt_repository.sources SET published_at = '{year}-05-01' WHERE id = '{id}'"
        ))
        .await;
    }
    (app, ids)
}

fn sorted(mut ids: Vec<String>) -> Vec<String> {
    ids.sort();
    ids
}

#[tokio::test]
async fn filters_leave_what_they_name() {
    let (app, [tides, harbour, german]) = filled().await;
    let q = "tides Gezeiten harbour";
    let found = async |q: &str, rest: &str| sorted(sources(&search(&app, q, rest).await));
    let some = |ids: &[&String]| sorted(ids.iter().map(|id| (*id).clone()).collect());
    let all = "&types=facts,passages,sources";
    assert_eq!(found(q, all).await, some(&[&tides, &harbour, &german]));
    for (rest, expected) in [
        ("&year=2019".to_owned(), some(&[&tides])),
        ("&year=2020..2022".to_owned(), some(&[&harbour, &german])),
        ("&year=..2019".to_owned(), some(&[&tides])),
        ("&language=de".to_owned(), some(&[&german])),
        ("&language=eng".to_owned(), some(&[&tides, &harbour])),
        ("&language=en&year=2021".to_owned(), some(&[&harbour])),
        ("&kind=text".to_owned(), some(&[&tides, &harbour, &german])),
        ("&kind=pdf".to_owned(), Vec::new()),
        (format!("&source={german}"), some(&[&german])),
        (format!("&source={}", uuid::Uuid::nil()), Vec::new()),
        ("&source=bergen".to_owned(), some(&[&harbour])),
        ("&concept=Bay+of+Fundy".to_owned(), some(&[&tides, &german])),
        (format!("&concept=Bay+of+Fundy&source={tides}"), some(&[&tides])),
        ("&concept=Atlantis".to_owned(), Vec::new()),
    ] {
        assert_eq!(found(q, &format!("{all}{rest}")).await, expected, "{rest}");
    }
    // The same in the question; what is no field, or no year, is words.
    for (filter, expected) in [
        ("year:2021 language:en", some(&[&harbour])),
        ("concept:\"Bay of Fundy\" language:de", some(&[&german])),
        (&format!("source:{tides}"), some(&[&tides])),
        ("language:de language:en", some(&[&tides, &harbour, &german])),
        ("year:soon", some(&[&tides, &harbour, &german])),
        ("colour:blue", some(&[&tides, &harbour, &german])),
    ] {
        assert_eq!(found(&format!("{q} {filter}"), all).await, expected, "{filter}");
    }
    // A question without words is answered with what its filter names.
    assert_eq!(found(&format!("source:{harbour}"), "&types=facts,sources").await, some(&[&harbour]));

    // Contexts are those of concepts.
    let facets = search(&app, q, "&types=facts&facets=true").await["facets"].clone();
    let context = facets["context"][0]["value"].as_str().unwrap_or_else(|| panic!("{facets:#}"));
    let context: String = url::form_urlencoded::byte_serialize(context.as_bytes()).collect();
    let within = search(&app, q, &format!("&context={context}")).await;
    let types: Vec<&str> = rows(&within).iter().map(|row| row["type"].as_str().unwrap()).collect();
    assert!(
        types.contains(&"facts") && types.iter().all(|kind| ["facts", "concepts"].contains(kind)),
        "{within:#}"
    );
    assert!(rows(&search(&app, q, "&context=Nowhere").await).is_empty());

    for (rest, field) in [("&year=soon", "year"), ("&kind=scroll", "kind"), ("&concept=", "concept")] {
        let refused = app.get(&format!("/search?q=a{rest}")).await;
        assert_eq!(
            (refused.status.as_u16(), &refused.json()["errors"][0]["field"]),
            (422, &json!(field)),
            "{rest}"
        );
    }
}

/// A source whose facts would not be among the candidates of the whole repository is searched by itself.
#[tokio::test]
async fn what_is_named_is_found_among_many() {
    let mut app = TestApp::start().await;
    app.work().await;
    let mut ids = Vec::new();
    for number in 0..3 {
        let sentences: Vec<String> =
            (0..600).map(|at| format!("Honey honey honey keeper {number} has jar {at}.")).collect();
        ids.push(add(&app, &format!("m{number}"), "Honey honey", &sentences.join(" ")).await);
    }
    let poor =
        add(&app, "poor", "Notes", "The museum of Bergen has shown one small jar of honey since 1902.").await;
    ids.push(poor.clone());
    settled(&app, &ids).await;
    let whole = search(&app, "honey honey", "&types=facts&mode=lexical&limit=200").await;
    assert!(!sources(&whole).contains(&poor), "it is far behind");
    let named = search(&app, "honey", &format!("&types=facts,passages,sources&source={poor}")).await;
    let types: Vec<&str> = rows(&named).iter().map(|row| row["type"].as_str().unwrap()).collect();
    assert_eq!(sources(&named), [poor]);
    assert!(["facts", "passages", "sources"].iter().all(|kind| types.contains(kind)), "{named:#}");
}

#[tokio::test]
async fn facets_count_what_candidates_have() {
    let (app, [tides, harbour, german]) = filled().await;
    let q = "tides Gezeiten harbour";
    let found = search(&app, q, "&types=sources&facets=true&limit=1").await;
    let facets = &found["facets"];
    assert_eq!(facets["of"], 3, "{facets:#}");
    assert_eq!(
        facets["year"],
        json!([{"value": "2021", "label": null, "count": 2}, {"value": "2019", "label": null, "count": 1}])
    );
    assert_eq!(
        facets["language"],
        json!([{"value": "en", "label": null, "count": 2}, {"value": "de", "label": null, "count": 1}])
    );
    assert_eq!(facets["kind"], json!([{"value": "text", "label": null, "count": 3}]));
    let mut counted: Vec<(&str, &str)> = facets["source"]
        .as_array()
        .unwrap()
        .iter()
        .map(|value| (value["value"].as_str().unwrap(), value["label"].as_str().unwrap()))
        .collect();
    let mut expected = vec![(&*tides, "Tides"), (&*harbour, "Bergen"), (&*german, "Gezeiten")];
    counted.sort_unstable();
    expected.sort_unstable();
    assert_eq!(counted, expected);
    // Of facts also what they speak of; and filters leave the others out.
    let facets = search(&app, q, "&types=facts&facets=true").await["facets"].clone();
    let fundy = |facets: &Value| {
        let values = facets["concept"].as_array().unwrap().iter();
        values
            .filter(|value| value["label"] == "Bay of Fundy")
            .map(|value| value["count"].as_u64().unwrap())
            .sum::<u64>()
    };
    assert_eq!(fundy(&facets), 2, "{facets:#}");
    let facets = search(&app, q, "&types=facts&facets=true&language=de").await["facets"].clone();
    assert_eq!((fundy(&facets), facets["year"].as_array().unwrap().len()), (1, 1), "{facets:#}");
    assert_eq!(search(&app, q, "").await.get("facets"), None);
    // Who may read facts only is told of facts only.
    let (_, key) = api_key(&app.service, &app.owner, &["fact:read"]).await;
    let path = format!("/api/v1/repositories/{}/search?q=tides&facets=true", app.repository);
    let facets =
        send(&app.service, &key, http::Method::GET, &path, &Value::Null).await.json()["facets"].clone();
    assert!(facets["of"].as_u64().unwrap() > 0, "{facets:#}");
    for field in ["concept", "context", "source", "language", "year", "kind"] {
        assert_eq!(facets[field], json!([]), "{field}");
    }
}
