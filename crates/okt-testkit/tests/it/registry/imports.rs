use std::collections::BTreeSet;
use std::time::Duration;

use okt_testkit::app::TestApp;
use okt_testkit::registry::{StandIn, package};
use okt_testkit::wait::eventually;
use okt_testkit::web::Page;
use serde_json::{Value, json};

use super::{FACTS, add, builder, id, is_imported, start};

fn texts(facts: &[Value]) -> BTreeSet<&str> {
    facts.iter().map(|fact| fact["text"].as_str().unwrap()).collect()
}

/// Nothing was asked of a model or of the web.
async fn assert_free(app: &TestApp) {
    assert_eq!(app.web.asked(), [""; 0], "nothing is fetched");
    assert_eq!(app.models.stats().requests, 0, "no model is asked");
    assert_eq!(app.count("SELECT count(*) FROM okt_system.ai_calls").await, 0);
}

#[tokio::test]
async fn a_source_that_the_registry_has_is_not_fetched_and_no_model_is_asked() {
    let (app, registry) = start().await;
    let package = package(&FACTS);
    registry.offer(&app.web.url("/gulls"), &package);
    let seen = add(&app).await;
    let source = id(&seen);
    assert_free(&app).await;
    assert_eq!(
        (&seen["parsed_title"], &seen["kind"], &seen["fact_count"]),
        (&json!("On gulls"), &json!("html"), &json!(3))
    );
    let extraction = &seen["extraction"];
    assert_eq!(extraction["model"], "far-model");
    assert_eq!(extraction["registry"]["registry"], "default");
    assert_eq!(extraction["registry"]["decomposed_by"], "somebody");
    assert_eq!(extraction["concepts"]["links"], 3);

    let facts = app.facts(&source).await;
    assert_eq!(texts(&facts), FACTS.into());
    let ids: BTreeSet<&str> = facts.iter().map(|fact| fact["id"].as_str().unwrap()).collect();
    let theirs = package["facts"].as_array().unwrap();
    assert_eq!(ids, theirs.iter().map(|fact| fact["id"].as_str().unwrap()).collect(), "they keep their ids");
    assert!(facts.iter().all(|fact| fact["promptset_hash"] == "9".repeat(64)));
    let one = app.read(&format!("/facts/{}", facts[0]["id"].as_str().unwrap())).await;
    let quote = format!("As they say: {}", facts[0]["text"].as_str().unwrap());
    assert_eq!(one["sources"][0]["sentences"][0]["text"], quote, "{one:#}");
    assert_eq!(one["concepts"][0]["canonical_name"], "Gull", "{one:#}");

    let concepts = "SELECT count(*) FROM okt_repository.concepts WHERE fact_count = 3";
    eventually(Duration::from_mins(1), "relations are counted", async || {
        let counted = app.count(concepts).await;
        if counted == 1 { Ok(()) } else { Err(counted) }
    })
    .await;
    let alias = "SELECT count(*) FROM okt_repository.concept_aliases WHERE alias = 'Seagull'";
    assert_eq!(app.count(alias).await, 1);
    let slice = format!(
        "SELECT count(*) FROM okt_repository.concept_summaries WHERE NOT is_open AND slice_number = 1 AND content LIKE '%{}%'",
        theirs[0]["id"].as_str().unwrap()
    );
    assert_eq!(app.count(&slice).await, 1, "a frozen slice that cites the fact");
    let counted =
        "SELECT count(*) FROM okt_repository.counters WHERE (name, value) IN (('facts', 3), ('concepts', 1))";
    assert_eq!(app.count(counted).await, 2);
}

#[tokio::test]
async fn what_is_here_already_is_kept_and_linked() {
    let (app, registry) = start().await;
    registry.offer(&app.web.url("/gulls"), &package(&FACTS));
    add(&app).await;
    // Another source with one of the facts, under ids of its own, and one that is called as another fact is.
    let mut other = package(&[FACTS[1], "Gulls sleep standing on one leg."]);
    other["facts"][0]["id"] = json!("0197a3c0-0000-7000-8000-000000000099");
    other["concepts"][0]["aliases"] = json!(["Sea mew"]);
    other["summaries"] = json!([]);
    registry.offer(&app.web.url("/other"), &other);
    let source = app.add_page("/other").await;
    let seen = app.settled(&source).await;
    assert!(is_imported(&seen), "{seen}");
    let facts = app.facts(&source).await;
    assert_eq!(texts(&facts), [FACTS[1], "Gulls sleep standing on one leg."].into());
    let of = |text: &str| facts.iter().find(|fact| fact["text"] == text).unwrap();
    assert_eq!(
        (&of(FACTS[1])["id"], &of(FACTS[1])["source_count"]),
        (&json!("00000000-0000-0000-0000-000000000002"), &json!(2))
    );
    let taken = of("Gulls sleep standing on one leg.")["id"].as_str().unwrap();
    assert_ne!(taken, "00000000-0000-0000-0000-000000000002", "that id is another fact's");
    assert_eq!(app.count("SELECT count(*) FROM okt_repository.facts").await, 4);
    assert_eq!(app.count("SELECT count(*) FROM okt_repository.concepts").await, 1);
    assert_eq!(app.count("SELECT count(*) FROM okt_repository.concept_aliases").await, 2);
    // What was saved stays saved.
    assert_eq!(app.count("SELECT count(*) FROM okt_repository.imports").await, 2);
    assert_eq!(app.delete(&format!("/sources/{source}")).await.status, 204);
    assert_eq!(app.count("SELECT count(*) FROM okt_repository.imports").await, 2);
    assert_eq!(app.count("SELECT count(*) FROM okt_repository.facts").await, 3);
}

#[tokio::test]
async fn vectors_of_the_model_in_use_are_kept_and_others_are_made_anew() {
    let registry = StandIn::start().await;
    let url = registry.url();
    let mut app = builder(&url).vectors().start().await;
    app.work().await;
    for (path, model, is_ours) in
        [("/gulls", okt_model::EMBEDDING_MODEL, true), ("/terns", "another-model", false)]
    {
        let mut package =
            package(&FACTS.map(|text| text.replace("ulls", path)).each_ref().map(String::as_str));
        let vector = |at: usize| {
            let mut vector = vec![0.0; usize::try_from(okt_model::EMBEDDING_DIMENSIONS).unwrap()];
            vector[at] = 1.0;
            vector
        };
        for (at, fact) in package["facts"].as_array_mut().unwrap().iter_mut().enumerate() {
            fact["id"] =
                json!(uuid::Uuid::from_u128(0x100 * path.len() as u128 + at as u128 + u128::from(is_ours)));
        }
        package["summaries"] = json!([]);
        package["concepts"][0]["canonical_name"] = json!(path);
        let ids: Vec<Value> =
            package["facts"].as_array().unwrap().iter().map(|fact| fact["id"].clone()).collect();
        let vectors: serde_json::Map<String, Value> = ids
            .iter()
            .enumerate()
            .map(|(at, id)| (id.as_str().unwrap().to_owned(), json!(vector(at))))
            .collect();
        package["embeddings"] =
            json!({"model": model, "dimensions": okt_model::EMBEDDING_DIMENSIONS, "vectors": vectors});
        let concept = package["concepts"][0]["id"].as_str().unwrap().to_owned();
        package["concept_embeddings"] = json!({"model": model, "dimensions": okt_model::EMBEDDING_DIMENSIONS,
                                               "vectors": {concept: vector(9)}});
        registry.offer(&app.web.url(path), &package);
        let source = app.add_page(path).await;
        let seen = app.settled(&source).await;
        assert!(is_imported(&seen));
        let job = app.ended(seen["job_id"].as_str().unwrap()).await;
        let kept =
            if is_ours { json!({"facts": 3, "concepts": 1}) } else { json!({"facts": 0, "concepts": 0}) };
        assert_eq!(job["output"]["vectors"], kept, "{model}: {job:#}");
        let without = "SELECT (SELECT count(*) FROM okt_repository.facts WHERE embedded_in IS NULL)
                            + (SELECT count(*) FROM okt_repository.concepts WHERE embedded_in IS NULL)
                            + (SELECT count(*) FROM okt_repository.facts WHERE status = 'new')";
        eventually(Duration::from_mins(2), "everything has a vector and was compared", async || {
            let without = app.count(without).await;
            if without == 0 { Ok(()) } else { Err(without) }
        })
        .await;
    }
}

#[tokio::test]
async fn only_packages_that_the_repository_wants_are_taken() {
    let (app, registry) = start().await;
    registry.offer(&app.web.url("/gulls"), &package(&FACTS));
    let settings = |rest: &str| format!("/settings/{rest}");
    let hashes = json!({"accepted_promptset_hashes": ["a".repeat(64)]});
    assert!(app.put(&settings("promptsets"), &hashes).await.status.is_success());
    let seen = add(&app).await;
    assert!(!is_imported(&seen), "another promptset");
    assert_eq!(app.delete(&format!("/sources/{}", id(&seen))).await.status, 204);

    let hashes = json!({"accepted_promptset_hashes": ["9".repeat(64)]});
    assert!(app.put(&settings("promptsets"), &hashes).await.status.is_success());
    let models = json!({"allowed_models": ["near-model"]});
    assert!(app.put(&settings("registry"), &models).await.status.is_success());
    let seen = add(&app).await;
    assert!(!is_imported(&seen), "another model");
    assert_eq!(app.delete(&format!("/sources/{}", id(&seen))).await.status, 204);

    let models = json!({"allowed_models": ["near-model", "far-model"]});
    assert!(app.put(&settings("registry"), &models).await.status.is_success());
    assert!(is_imported(&add(&app).await));
}

/// What a list says of a package need not be what the package says.
#[tokio::test]
async fn a_package_that_is_another_than_the_list_says_is_not_taken() {
    let (app, registry) = start().await;
    let hashes = json!({"accepted_promptset_hashes": ["9".repeat(64)]});
    assert!(app.put("/settings/promptsets", &hashes).await.status.is_success());
    let mut package = package(&FACTS);
    registry.offer(&app.web.url("/gulls"), &package);
    package["promptset_hash"] = json!("b".repeat(64));
    let body = Page::new("application/json", package.to_string());
    registry.web.page("/api/v1/sources/s1/decompositions/far-model", body);
    assert!(!is_imported(&add(&app).await));
}

#[tokio::test]
async fn concepts_of_unknown_contexts_are_filed_as_the_repository_says() {
    for (unmapped, label, concepts) in [("catch_all", "Concept", 1), ("add", "Kraken", 1), ("skip", "", 0)] {
        let (app, registry) = start().await;
        let changed = app.put("/settings/contexts", &json!({"unmapped_contexts": unmapped})).await;
        assert!(changed.status.is_success(), "{changed:?}");
        let mut package = package(&FACTS);
        package["concepts"][0]["context"] = json!("Kraken");
        registry.offer(&app.web.url("/gulls"), &package);
        assert!(is_imported(&add(&app).await));
        let filed = format!(
            "SELECT count(*) FROM okt_repository.concepts c JOIN okt_repository.contexts x ON x.no = c.context_no
              WHERE x.label = '{label}'"
        );
        assert_eq!(app.count(&filed).await, concepts, "{unmapped}");
        assert_eq!(app.count("SELECT count(*) FROM okt_repository.facts").await, 3, "{unmapped}");
    }
}
