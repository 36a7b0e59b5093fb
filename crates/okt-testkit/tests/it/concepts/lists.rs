//! Lists of concepts, and what is read of one.

use okt_store::concept_aliases::{self, NewAlias};
use okt_testkit::accounts::{give, repository};
use okt_testkit::concepts::file_concept;
use serde_json::json;

use super::{Library, texts};

#[tokio::test]
async fn concepts_are_listed_by_facts_and_by_name_with_the_contexts_of_their_names() {
    let library = Library::open(&[]).await;
    let facts = library.facts(9, None).await;
    for (name, context, count) in [
        ("Mercury", "Animal", 6),
        ("Mercury", "Disease", 7),
        ("Venus", "Animal", 8),
        ("Mars", "Animal", 9),
        ("Moon", "Animal", 2),
    ] {
        library.concept(name, context, &facts[..count]).await;
    }
    let page = library.read("/concepts").await;
    let rows = page["data"].as_array().unwrap();
    assert_eq!(
        texts(rows, "canonical_name"),
        ["Mars", "Venus", "Mercury", "Mercury"],
        "Moon is below the floor"
    );
    assert_eq!(page["floor"], json!({"min_fact_count": 5, "applied": true}));
    assert_eq!(rows[0]["ontology_class"], "dbo:Animal");
    assert_eq!(rows[2]["ontology_class"], json!(null));
    assert_eq!(texts(rows[3]["contexts"].as_array().unwrap(), "context"), ["Disease", "Animal"]);
    assert_eq!(rows[3]["contexts"][1]["concept_id"], rows[3]["id"]);
    assert_eq!(rows[3]["contexts"][0]["fact_count"], 7);
    assert_eq!(rows[0]["contexts"].as_array().unwrap().len(), 1);

    let by_name = ["Mars", "Mercury", "Mercury", "Moon", "Venus"];
    let by_facts = ["Mars", "Venus", "Mercury", "Mercury", "Moon"];
    for limit in [1, 2, 50] {
        assert_eq!(
            library.all("/concepts?show_small=true&sort=name", limit, "canonical_name").await,
            by_name
        );
        assert_eq!(library.all("/concepts?show_small=true", limit, "canonical_name").await, by_facts);
        let animals = library.all("/concepts?context=animal&sort=fact_count", limit, "canonical_name").await;
        assert_eq!(animals, ["Mars", "Venus", "Mercury"]);
    }
    assert_eq!(library.read("/concepts?show_small=true").await["floor"]["applied"], false);
    let first = library.get("/concepts?limit=1").await;
    assert!(first.header("link").contains("rel=\"next\""), "{first:?}");

    for (query, field) in
        [("context=Nothing", "context"), ("sort=odd", "sort"), ("show_small=x", "show_small")]
    {
        let refused = library.get(&format!("/concepts?{query}")).await;
        assert_eq!((refused.status.as_u16(), &refused.json()["errors"][0]["field"]), (422, &json!(field)));
    }
    let long = library.get(&format!("/concepts?q={}", "a".repeat(101))).await;
    assert_eq!(long.json()["errors"][0]["field"], "q");
    assert_eq!(library.get("/concepts?cursor=AAAA").await.problem(), "bad_cursor");
}

#[tokio::test]
async fn where_the_floor_hides_everything_the_small_ones_are_shown_on_all_pages() {
    let library = Library::open(&[]).await;
    let empty = library.read("/concepts").await;
    assert_eq!((&empty["data"], &empty["floor"]["applied"]), (&json!([]), &json!(true)), "there are none");
    let facts = library.facts(6, None).await;
    for (at, name) in ["Apis", "Bombus", "Vespa"].iter().enumerate() {
        library.concept(name, "Animal", &facts[..=at]).await;
    }
    for limit in [1, 2, 50] {
        assert_eq!(library.all("/concepts", limit, "canonical_name").await, ["Vespa", "Bombus", "Apis"]);
        assert_eq!(
            library.all("/concepts?sort=name", limit, "canonical_name").await,
            ["Apis", "Bombus", "Vespa"]
        );
    }
    assert_eq!(library.read("/concepts").await["floor"], json!({"min_fact_count": 5, "applied": false}));

    // One that is large enough, and the others are gone; unless only they are looked for.
    library.concept("Osmia", "Animal", &facts).await;
    let page = library.read("/concepts").await;
    assert_eq!(texts(page["data"].as_array().unwrap(), "canonical_name"), ["Osmia"]);
    assert_eq!(page["floor"]["applied"], true);
    let page = library.read("/concepts?q=ves").await;
    assert_eq!(texts(page["data"].as_array().unwrap(), "canonical_name"), ["Vespa"]);
    assert_eq!(page["floor"]["applied"], false);
    let none = library.read("/concepts?q=nothing").await;
    assert_eq!((&none["data"], &none["floor"]["applied"]), (&json!([]), &json!(true)));
}

#[tokio::test]
async fn a_concept_is_found_by_a_word_of_its_name_by_an_alias_and_by_a_name_that_was_merged() {
    let library = Library::open(&[]).await;
    let facts = library.facts(6, None).await;
    let covid = library.concept("COVID-19 (disease)", "Disease", &facts).await;
    let mite = library.concept("Varroa mite", "Animal", &facts[..5]).await;
    let old = library.concept("Bee parasite", "Animal", &facts[..1]).await;
    library.merge(old, mite).await;
    let mut tx = library.begin().await;
    let new = NewAlias { concept: mite, text: "Varroa destructor".to_owned(), by: okt_model::AliasBy::Model };
    concept_aliases::insert(&mut tx, library.repository, &[new]).await.unwrap();
    tx.commit().await.unwrap();
    for (q, expected) in [
        ("var", vec!["Varroa mite"]),
        ("MIT", vec!["Varroa mite"]),
        ("varroa%20d", vec!["Varroa mite"]),
        ("paras", vec!["Varroa mite"]),
        ("covid-19", vec!["COVID-19 (disease)"]),
        ("covid%2019", vec!["COVID-19 (disease)"]),
        ("19", vec!["COVID-19 (disease)"]),
        ("(dis", vec!["COVID-19 (disease)"]),
        ("arroa", vec![]),
        ("it", vec![]),
        ("-", vec!["COVID-19 (disease)", "Varroa mite"]),
    ] {
        for limit in [1, 50] {
            let found = library.all(&format!("/concepts?q={q}"), limit, "canonical_name").await;
            assert_eq!(found, expected, "{q}");
            let by_name = library.all(&format!("/concepts?q={q}&sort=name"), limit, "canonical_name").await;
            assert_eq!(by_name, expected, "{q}");
        }
    }
    assert_eq!(library.all("/concepts?q=v&context=Disease", 5, "id").await, [""; 0]);
    // By its new name from then on, and no longer by its old one.
    let mut tx = library.begin().await;
    okt_store::concepts::update(&mut tx, library.repository, covid, Some("Corona virus disease"), None)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    assert_eq!(library.all("/concepts?q=virus", 5, "id").await, [covid.to_string()]);
    assert_eq!(library.all("/concepts?q=disease", 5, "id").await, [covid.to_string()]);
    assert_eq!(library.all("/concepts?q=covid", 5, "id").await, [""; 0]);
}

#[tokio::test]
async fn a_concept_says_its_other_names_and_a_merged_id_leads_on() {
    let library = Library::open(&[]).await;
    let facts = library.facts(4, None).await;
    let mite = library.concept("Varroa mite", "Animal", &facts[..3]).await;
    let elsewhere = library.concept("varroa MITE", "Disease", &facts[..1]).await;
    let old = library.concept("Varroa jacobsoni", "Animal", &facts[2..]).await;
    let mut tx = library.begin().await;
    let new =
        NewAlias { concept: mite, text: "Varroa destructor".to_owned(), by: okt_model::AliasBy::Person };
    concept_aliases::insert(&mut tx, library.repository, &[new]).await.unwrap();
    tx.commit().await.unwrap();
    library.merge(old, mite).await;

    let seen = library.read(&format!("/concepts/{mite}")).await;
    assert_eq!((&seen["canonical_name"], &seen["fact_count"]), (&json!("Varroa mite"), &json!(4)));
    assert_eq!((&seen["merged_from"], &seen["unmapped_label"]), (&json!(null), &json!(null)));
    let aliases = json!([{"alias": "Varroa destructor", "added_by": "person"},
                         {"alias": "Varroa jacobsoni", "added_by": null}]);
    assert_eq!(seen["aliases"], aliases);
    let contexts = json!([{"concept_id": mite.uuid(), "context": "Animal", "fact_count": 4},
                          {"concept_id": elsewhere.uuid(), "context": "Disease", "fact_count": 1}]);
    assert_eq!(seen["contexts"], contexts);
    let led = library.read(&format!("/concepts/{old}")).await;
    assert_eq!((&led["id"], &led["merged_from"]), (&json!(mite.uuid()), &json!(old.uuid())));
    for limit in [1, 3, 50] {
        for id in [mite, old] {
            let listed = library.all(&format!("/concepts/{id}/facts"), limit, "id").await;
            assert_eq!(listed.len(), 4, "{listed:?}");
        }
    }
}

#[tokio::test]
async fn a_concept_of_another_repository_is_not_there() {
    let library = Library::open(&[]).await;
    let (facts, other) = (library.facts(1, None).await, repository(&library.service).await);
    let mine = library.concept("Apis", "Animal", &facts).await;
    let mut tx = library.databases().begin("default", other).await.unwrap();
    okt_store::contexts::insert(
        &mut tx,
        other,
        &[okt_store::contexts::NewContext {
            label: "Animal".to_owned(),
            description: String::new(),
            ontology_class: None,
        }],
    )
    .await
    .unwrap();
    let theirs = file_concept(&mut tx, other, "Theirs", "Animal").await.unwrap();
    tx.commit().await.unwrap();
    for rest in ["", "/facts", "/sources", "/timeline", "/relations", &format!("/relations/{mine}")] {
        let path = format!("/concepts/{theirs}{rest}");
        assert_eq!(library.get(&path).await.status, 404, "{path}");
        assert_eq!(
            library.get(&path.replace(&theirs.to_string(), &mine.to_string())).await.status.as_u16(),
            if rest.ends_with(&mine.to_string()) { 422 } else { 200 },
            "{path}"
        );
    }
    for path in [
        format!("/concepts/{mine}/relations/{theirs}"),
        format!("/graph?center={theirs}"),
        format!("/graph/path?from={mine}&to={theirs}"),
        format!("/graph/path?from={theirs}&to={mine}"),
        "/concepts/nothing".to_owned(),
    ] {
        assert_eq!(library.get(&path).await.status, 404, "{path}");
    }
    assert_eq!(library.all("/concepts?q=theirs", 5, "id").await, [""; 0]);

    // Nor for somebody who may read neither, or only sources.
    let stranger = okt_testkit::accounts::register(&library.service, "stranger").await;
    let path = format!("/api/v1/repositories/{}/concepts", library.repository);
    assert_eq!(library.service.get_as(&stranger.token, &path).await.status, 404);
    give(&library.service, stranger.id, &library.repository.to_string(), "viewer").await;
    assert_eq!(library.service.get_as(&stranger.token, &path).await.status, 200);
}

#[tokio::test]
async fn sources_and_timeline_of_a_concept_follow_its_facts() {
    let library = Library::open(&[]).await;
    let late = library.facts(3, Some("2025-05-01")).await;
    let early = library.facts(2, Some("1999-12-31")).await;
    let undated = library.facts(1, None).await;
    let apis = library.concept("Apis", "Animal", &[late[0], late[1], early[0]]).await;
    let old = library.concept("Apis mellifera", "Animal", &[undated[0], late[1]]).await;
    library.merge(old, apis).await;
    // The older source says the same as the newer one, in other words.
    let mut tx = library.begin().await;
    let merge = okt_store::fact_merges::Merge {
        fact: early[1],
        into: late[1],
        cosine: 0.99,
        by: okt_model::MergedBy::Rule,
    };
    okt_store::fact_merges::hold(&mut tx, library.repository, &[late[1], early[1]]).await.unwrap();
    okt_store::fact_merges::merge(&mut tx, library.repository, &[merge], okt_model::JobId::mint())
        .await
        .unwrap();
    tx.commit().await.unwrap();

    let sources = library.read(&format!("/concepts/{apis}/sources")).await;
    let counts: Vec<_> = sources["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["published_at"].clone(), row["fact_count"].clone()))
        .collect();
    let dated = |date: &str, count: i64| (json!(date), json!(count));
    assert_eq!(counts, [dated("1999-12-31", 2), dated("2025-05-01", 2), (json!(null), json!(1))]);
    assert_eq!(sources["complete"], true);

    let timeline = library.read(&format!("/concepts/{old}/timeline")).await;
    let rows = timeline["data"].as_array().unwrap();
    assert_eq!(texts(rows, "date_kind"), ["published", "published", "published", "fetched"]);
    assert_eq!(texts(&rows[..3], "date"), ["1999-12-31", "1999-12-31", "2025-05-01"]);
    assert_eq!(timeline["complete"], true);
    for limit in [1, 2, 50] {
        let pages = library.all(&format!("/concepts/{apis}/timeline"), limit, "fact/id").await;
        assert_eq!(pages, texts(rows, "fact/id"));
        let pages = library.all(&format!("/concepts/{apis}/sources"), limit, "source_id").await;
        assert_eq!(pages, texts(sources["data"].as_array().unwrap(), "source_id"));
    }
    assert_eq!(rows[0]["source_id"], sources["data"][0]["source_id"]);
}
