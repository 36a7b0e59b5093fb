//! What shares facts with a concept.

use serde_json::json;

use super::{Library, texts};

#[tokio::test]
async fn relations_have_floors_that_are_lifted_where_nothing_would_be_left() {
    let library = Library::open(&[]).await;
    let facts = library.facts(10, None).await;
    let hub = library.concept("Hub", "Animal", &facts[..8]).await;
    let six = library.concept("Six", "Animal", &facts[..6]).await;
    library.concept("Three", "Animal", &facts[5..]).await;
    library.concept("Small", "Animal", &facts[..4]).await;
    let one = library.concept("One", "Animal", &facts[..1]).await;
    let path = format!("/concepts/{hub}/relations");
    let page = library.read(&path).await;
    let rows = page["data"].as_array().unwrap();
    assert_eq!(texts(rows, "canonical_name"), ["Six", "Three"]);
    assert_eq!(texts(rows, "strength"), ["stable", "weak"]);
    assert_eq!((&rows[0]["concept_id"], &rows[0]["shared_fact_count"]), (&json!(six.uuid()), &json!(6)));
    assert_eq!(page["floor"], json!({"min_shared_fact_count": 3, "min_fact_count": 5, "applied": true}));
    for limit in [1, 2, 50] {
        let names = async |query: &str| library.all(&format!("{path}{query}"), limit, "canonical_name").await;
        assert_eq!(names("?show_small=true").await, ["Six", "Small", "Three"]);
        assert_eq!(names("?show_insignificant=true").await, ["Six", "Three"], "One is small as well");
        assert_eq!(names("?show_insignificant=true&show_small=true").await, ["Six", "Small", "Three", "One"]);
        // Nothing that shares facts with this one is strong: all of it is shown, on every page.
        let lifted = library.all(&format!("/concepts/{one}/relations"), limit, "canonical_name").await;
        assert_eq!(lifted, ["Small", "Six", "Hub"]);
    }
    assert_eq!(library.read(&format!("/concepts/{one}/relations")).await["floor"]["applied"], false);
    let all = library.read(&format!("{path}?show_insignificant=true&show_small=true")).await;
    assert_eq!(all["floor"]["applied"], false);
    let alone = library.concept("Alone", "Animal", &[]).await;
    let none = library.read(&format!("/concepts/{alone}/relations")).await;
    assert_eq!((&none["data"], &none["floor"]["applied"]), (&json!([]), &json!(true)));
}

#[tokio::test]
async fn a_relation_shows_the_facts_that_two_concepts_share() {
    let library = Library::open(&[]).await;
    let facts = library.facts(8, None).await;
    let one = library.concept("One", "Animal", &facts[..6]).await;
    let other = library.concept("Other", "Animal", &facts[4..7]).await;
    let part = library.concept("Part", "Animal", &[facts[2], facts[4]]).await;
    let apart = library.concept("Apart", "Animal", &facts[7..]).await;
    library.merge(part, other).await;
    for (from, to) in [(one, other), (other, one), (one, part), (part, one)] {
        let path = format!("/concepts/{from}/relations/{to}");
        let seen = library.read(&path).await;
        assert_eq!((&seen["shared_fact_count"], &seen["strength"]), (&json!(3), &json!("weak")), "{seen}");
        let ids = texts(seen["data"].as_array().unwrap(), "id");
        let mut wanted = Vec::new();
        for no in [facts[5], facts[4], facts[2]] {
            let id: uuid::Uuid = sqlx::query_scalar("SELECT id FROM okt_repository.facts WHERE no = $1")
                .bind(no)
                .fetch_one(&mut library.service.database.connect().await)
                .await
                .unwrap();
            wanted.push(id.to_string());
        }
        assert_eq!(ids, wanted, "the newest first");
        for limit in [1, 2] {
            assert_eq!(library.all(&path, limit, "id").await, ids);
        }
    }
    let seen = library.read(&format!("/concepts/{one}/relations/{part}")).await;
    assert_eq!(seen["other"]["concept_id"], json!(other.uuid()), "the one that it was merged into");
    let none = library.read(&format!("/concepts/{one}/relations/{apart}")).await;
    assert_eq!((&none["shared_fact_count"], &none["data"]), (&json!(0), &json!([])));
    assert_eq!(none["strength"], "insignificant");
    for same in [one, one] {
        assert_eq!(library.get(&format!("/concepts/{one}/relations/{same}")).await.status, 422);
    }
    assert_eq!(
        library.get(&format!("/concepts/{other}/relations/{part}")).await.status,
        422,
        "it is the same"
    );
}
