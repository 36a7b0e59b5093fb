//! What people see of merges and neighbours, and how they take a merge back.

use http::Method;
use okt_model::{EMBEDDING_MODEL, JobId};
use okt_store::fact_merges::{self, Merge};
use serde_json::json;

use crate::desk::Desk;

const OLD: &str = "Wax is made by young bees.";
const YOUNG: &str = "Young bees make wax.";

#[tokio::test]
async fn a_person_sees_what_was_merged_and_takes_it_back_for_good() {
    let desk = Desk::open(&[("SVC__PROVIDERS__EMBEDDING__MODEL", EMBEDDING_MODEL)]).await;
    desk.say(&[OLD.to_owned()]).await;
    desk.say(&[YOUNG.to_owned()]).await;
    let rows: Vec<(i64, uuid::Uuid)> = sqlx::query_as("SELECT no, id FROM okt_repository.facts ORDER BY no")
        .fetch_all(&mut desk.service.database.connect().await)
        .await
        .unwrap();
    let [(old_no, old), (young_no, young)] = rows[..] else { panic!("{rows:?}") };
    let mut tx = desk.databases.begin("default", desk.repository).await.unwrap();
    let merge = Merge { fact: young_no, into: old_no, cosine: 0.97 };
    fact_merges::merge(&mut tx, desk.repository, &[merge], JobId::mint()).await.unwrap();
    tx.commit().await.unwrap();

    let seen = desk.get(&format!("/facts/{old}")).await.json();
    assert_eq!((&seen["duplicates"], &seen["source_count"]), (&json!([young]), &json!(2)), "{seen:#}");
    assert_eq!(seen["sources"].as_array().unwrap().len(), 2);
    let listed = desk.get("/facts").await.json();
    assert_eq!(listed["data"].as_array().unwrap().len(), 1, "{listed:#}");
    assert_eq!(desk.get("/facts?status=duplicate").await.json()["data"][0]["id"], json!(young));
    let rejected = desk.ask(Method::PUT, &format!("/facts/{young}"), &json!({"status": "rejected"})).await;
    assert_eq!(rejected.status, 409, "{rejected:?}");

    let parted = desk.ask(Method::PUT, &format!("/facts/{young}"), &json!({"status": "stable"})).await;
    assert_eq!(parted.status, 200, "{parted:?}");
    let parted = parted.json();
    assert_eq!((&parted["status"], &parted["source_count"]), (&json!("stable"), &json!(1)), "{parted:#}");
    let other = &parted["candidate_contradictions"][0];
    assert_eq!((&other["fact_id"], &other["difference"]), (&json!(old), &json!("judged")), "{parted:#}");
    assert_eq!(desk.get("/facts").await.json()["data"].as_array().unwrap().len(), 2);
    let asked: i64 =
        sqlx::query_scalar("SELECT count(*) FROM okt_repository.outbox WHERE kind = 'embed_facts'")
            .fetch_one(&mut desk.service.database.connect().await)
            .await
            .unwrap();
    assert_eq!(asked, 1, "it gets its vector back");
    let told = desk.get("/audit?action=fact.parted").await;
    assert_eq!(told.json()["data"].as_array().map(Vec::len), Some(1), "{told:?}");
}

#[tokio::test]
async fn neighbours_are_asked_for_within_bounds_and_only_where_there_are_vectors() {
    let desk = Desk::open(&[("SVC__PROVIDERS__EMBEDDING__MODEL", EMBEDDING_MODEL)]).await;
    let tools = okt_testkit::jobs::tools(desk.service.api.app.config(), &desk.databases).await;
    okt_jobs::spaces::start(&desk.databases, &tools).await.unwrap();
    desk.say(&[OLD.to_owned()]).await;
    let id = desk.get("/facts").await.json()["data"][0]["id"].as_str().unwrap().to_owned();
    let found = desk.get(&format!("/facts/{id}/similar")).await;
    assert_eq!(found.status, 200, "{found:?}");
    assert_eq!(found.json(), json!({"model": EMBEDDING_MODEL, "data": []}), "it has no vector yet");
    for limit in ["0", "51", "many"] {
        let answer = desk.get(&format!("/facts/{id}/similar?limit={limit}")).await;
        assert!([400, 422].contains(&answer.status.as_u16()), "{limit}: {answer:?}");
    }
    let nobody = desk.get(&format!("/facts/{}/similar", okt_model::FactId::mint().uuid())).await;
    assert_eq!(nobody.status, 404);

    let without = Desk::open(&[]).await;
    without.say(&[OLD.to_owned()]).await;
    let id = without.get("/facts").await.json()["data"][0]["id"].as_str().unwrap().to_owned();
    let answer = without.get(&format!("/facts/{id}/similar")).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.json()["code"]),
        (503, &json!("not_configured")),
        "{answer:?}"
    );
}
