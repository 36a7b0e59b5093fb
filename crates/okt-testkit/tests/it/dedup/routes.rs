//! What people see of merges and neighbours, and how they take a merge back.

use http::Method;
use okt_model::{EMBEDDING_MODEL, JobId};
use okt_store::fact_merges::{self, Merge};
use serde_json::json;

use crate::dedup::stored_facts::StoredFacts;

const OLD: &str = "Wax is made by young bees.";
const YOUNG: &str = "Young bees make wax.";

#[tokio::test]
async fn a_person_sees_what_was_merged_and_takes_it_back_for_good() {
    let fixture = StoredFacts::open(&[("SVC__PROVIDERS__EMBEDDING__MODEL", EMBEDDING_MODEL)]).await;
    fixture.say(&[OLD.to_owned()]).await;
    fixture.say(&[YOUNG.to_owned()]).await;
    let rows: Vec<(i64, uuid::Uuid)> = sqlx::query_as("SELECT no, id FROM okt_repository.facts ORDER BY no")
        .fetch_all(&mut fixture.service.database.connect().await)
        .await
        .unwrap();
    let [(old_no, old), (young_no, young)] = rows[..] else { panic!("{rows:?}") };
    let mut tx = fixture.databases.begin("default", fixture.repository).await.unwrap();
    let merge = Merge { fact: young_no, into: old_no, cosine: 0.97, by: okt_model::MergedBy::Cosine };
    fact_merges::merge(&mut tx, fixture.repository, &[merge], JobId::mint()).await.unwrap();
    tx.commit().await.unwrap();

    let seen = fixture.get(&format!("/facts/{old}")).await.json();
    assert_eq!((&seen["duplicates"], &seen["source_count"]), (&json!([young]), &json!(2)), "{seen:#}");
    assert_eq!(seen["sources"].as_array().unwrap().len(), 2);
    let listed = fixture.get("/facts").await.json();
    assert_eq!(listed["data"].as_array().unwrap().len(), 1, "{listed:#}");
    assert_eq!(fixture.get("/facts?status=duplicate").await.json()["data"][0]["id"], json!(young));
    let rejected = fixture.ask(Method::PUT, &format!("/facts/{young}"), &json!({"status": "rejected"})).await;
    assert_eq!(rejected.status, 409, "{rejected:?}");

    let separated = fixture.ask(Method::PUT, &format!("/facts/{young}"), &json!({"status": "stable"})).await;
    assert_eq!(separated.status, 200, "{separated:?}");
    let separated = separated.json();
    assert_eq!(
        (&separated["status"], &separated["source_count"]),
        (&json!("stable"), &json!(1)),
        "{separated:#}"
    );
    let other = &separated["candidate_contradictions"][0];
    assert_eq!((&other["fact_id"], &other["difference"]), (&json!(old), &json!("judged")), "{separated:#}");
    assert_eq!(fixture.get("/facts").await.json()["data"].as_array().unwrap().len(), 2);
    let asked = "SELECT count(*) FROM okt_repository.outbox WHERE kind = 'embed_facts'";
    assert_eq!(fixture.count(asked).await, 1, "it gets its vector back");
    let told = fixture.get("/audit?action=fact.merge_undone").await;
    assert_eq!(told.json()["data"].as_array().map(Vec::len), Some(1), "{told:?}");
}

#[tokio::test]
async fn a_source_counts_what_it_lists_and_a_duplicate_names_its_canonical_fact() {
    let fixture = StoredFacts::open(&[]).await;
    fixture.say(&[OLD.to_owned(), YOUNG.to_owned()]).await;
    let rows: Vec<(i64, uuid::Uuid)> = sqlx::query_as("SELECT no, id FROM okt_repository.facts ORDER BY no")
        .fetch_all(&mut fixture.service.database.connect().await)
        .await
        .unwrap();
    let [(old_no, old), (young_no, young)] = rows[..] else { panic!("{rows:?}") };
    let source = fixture.get("/sources").await.json()["data"][0].clone();
    let id = source["id"].as_str().unwrap();
    assert_eq!(source.get("fact_count"), None, "a list counts nothing, however much its sources say");
    assert_eq!(fixture.get(&format!("/sources/{id}")).await.json()["fact_count"], 2);
    let mut tx = fixture.databases.begin("default", fixture.repository).await.unwrap();
    let merge = Merge { fact: young_no, into: old_no, cosine: 0.97, by: okt_model::MergedBy::Cosine };
    fact_merges::merge(&mut tx, fixture.repository, &[merge], JobId::mint()).await.unwrap();
    tx.commit().await.unwrap();

    let listed = fixture.get(&format!("/sources/{id}/facts")).await.json();
    let listed = listed["data"].as_array().unwrap().len();
    let source = fixture.get(&format!("/sources/{id}")).await.json();
    assert_eq!((listed, &source["fact_count"]), (1, &json!(1)));

    assert_eq!(fixture.get(&format!("/facts/{young}")).await.json()["duplicate_of"], json!(old));
    assert_eq!(fixture.get("/facts?status=duplicate").await.json()["data"][0]["duplicate_of"], json!(old));
    let canonical = fixture.get(&format!("/facts/{old}")).await.json();
    assert_eq!(
        (&canonical["duplicate_of"], &canonical["duplicates"]),
        (&json!(null), &json!([young])),
        "{canonical:#}"
    );
}

#[tokio::test]
async fn neighbours_are_asked_for_within_bounds_and_only_where_there_are_vectors() {
    let fixture = StoredFacts::open(&[("SVC__PROVIDERS__EMBEDDING__MODEL", EMBEDDING_MODEL)]).await;
    let tools = okt_testkit::jobs::tools(fixture.service.api.app.config(), &fixture.databases).await;
    okt_jobs::spaces::start(&fixture.databases, &tools).await.unwrap();
    fixture.say(&[OLD.to_owned()]).await;
    let id = fixture.get("/facts").await.json()["data"][0]["id"].as_str().unwrap().to_owned();
    let found = fixture.get(&format!("/facts/{id}/similar")).await;
    assert_eq!(found.status, 200, "{found:?}");
    assert_eq!(found.json(), json!({"model": EMBEDDING_MODEL, "data": []}), "it has no vector yet");
    for limit in ["0", "51", "many"] {
        let answer = fixture.get(&format!("/facts/{id}/similar?limit={limit}")).await;
        assert!([400, 422].contains(&answer.status.as_u16()), "{limit}: {answer:?}");
    }
    let nobody = fixture.get(&format!("/facts/{}/similar", okt_model::FactId::mint().uuid())).await;
    assert_eq!(nobody.status, 404);

    let without = StoredFacts::open(&[]).await;
    without.say(&[OLD.to_owned()]).await;
    let id = without.get("/facts").await.json()["data"][0]["id"].as_str().unwrap().to_owned();
    let answer = without.get(&format!("/facts/{id}/similar")).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.json()["code"]),
        (503, &json!("not_configured")),
        "{answer:?}"
    );
}
