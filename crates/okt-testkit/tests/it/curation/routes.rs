//! Curation as people meet it.

use http::Method;
use okt_store::curation;
use okt_testkit::concepts::{file_concept, link_facts};
use serde_json::{Value, json};

use crate::dedup::stored_facts::StoredFacts;

/// Two concepts with a fact each, and one that both share: the ids of the concepts, then of the facts.
async fn open() -> (StoredFacts, [String; 2], [String; 3]) {
    let fixture = StoredFacts::open(&[]).await;
    fixture.say(&["Bees dance.", "Bees sting.", "Wasps sting."].map(str::to_owned)).await;
    let rows: Vec<(i64, uuid::Uuid)> =
        sqlx::query_as("SELECT no, id FROM okt_repository.facts ORDER BY text")
            .fetch_all(&mut fixture.service.database.connect().await)
            .await
            .unwrap();
    let mut tx = fixture.databases.begin("default", fixture.repository).await.unwrap();
    let bee = file_concept(&mut tx, fixture.repository, "Bee", "Animal").await.unwrap();
    let wasp = file_concept(&mut tx, fixture.repository, "Wasp", "Animal").await.unwrap();
    link_facts(&mut tx, fixture.repository, bee, &[rows[0].0, rows[1].0]).await.unwrap();
    link_facts(&mut tx, fixture.repository, wasp, &[rows[1].0, rows[2].0]).await.unwrap();
    tx.commit().await.unwrap();
    let facts = [0, 1, 2].map(|at| rows[at].1.to_string());
    (fixture, [bee.to_string(), wasp.to_string()], facts)
}

async fn step(fixture: &StoredFacts, method: Method, path: &str, body: Value) -> Value {
    let answer = fixture.ask(method, path, &body).await;
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    let answer = answer.json();
    assert!(answer["curation_id"].is_string(), "{path}: {answer:#}");
    answer
}

#[tokio::test]
async fn every_step_is_listed_with_who_and_why_and_is_undone() {
    let (fixture, [bee, wasp], [dance, sting, _]) = Box::pin(open()).await;
    let concept = format!("/concepts/{bee}");
    let (put, post, delete) = (Method::PUT, Method::POST, Method::DELETE);
    let mut steps = Vec::new();
    let why = "Because";
    let renamed = json!({"canonical_name": " Honey  bee ", "context": "species", "reason": why});
    let answer = step(&fixture, put.clone(), &concept, renamed).await;
    assert_eq!(
        (&answer["concept"]["canonical_name"], &answer["concept"]["context"]),
        (&json!("Honey bee"), &json!("Species"))
    );
    steps.push(("rename", answer));
    let alias = json!({"alias": "Apis mellifera", "reason": why});
    let answer = step(&fixture, post.clone(), &format!("{concept}/aliases"), alias).await;
    steps.push(("add_alias", answer));
    let alias = json!({"alias": "apis MELLIFERA"});
    let answer = step(&fixture, delete.clone(), &format!("{concept}/aliases"), alias).await;
    steps.push(("remove_alias", answer));
    let split = json!({"fact_ids": [dance], "name": "Drone", "context": "Species", "reason": why});
    let answer = step(&fixture, post.clone(), &format!("{concept}/split"), split).await;
    assert_eq!(answer["concept"]["canonical_name"], "Drone");
    steps.push(("split", answer));
    let answer =
        fixture.ask(delete, &format!("/facts/{sting}/concepts/{wasp}?reason=Because"), &Value::Null).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    steps.push(("reject_link", answer.json()));
    let answer =
        step(&fixture, put, &format!("/facts/{sting}"), json!({"status": "rejected", "reason": why})).await;
    assert_eq!(answer["status"], "rejected");
    steps.push(("reject_fact", answer));
    let merge = json!({"into": wasp, "reason": why});
    let answer = step(&fixture, post.clone(), &format!("{concept}/merge"), merge.clone()).await;
    assert_eq!(answer["concept"]["id"], json!(wasp));
    steps.push(("merge", answer));
    let again = fixture.ask(post.clone(), &format!("{concept}/merge"), &merge).await;
    assert_eq!((again.status.as_u16(), &again.json()["code"]), (409, &json!("conflict")), "{again:?}");

    let listed = fixture.get("/curation").await.json();
    let listed = listed["data"].as_array().unwrap();
    let mut wanted: Vec<_> =
        steps.iter().map(|(action, answer)| (json!(action), &answer["curation_id"])).collect();
    wanted.reverse();
    let got: Vec<_> = listed.iter().map(|step| (step["action"].clone(), &step["id"])).collect();
    assert_eq!(got, wanted);
    let first = listed.last().unwrap();
    assert_eq!(
        (&first["concept"]["canonical_name"], &first["other"]["canonical_name"], &first["reason"]),
        (&json!("Bee"), &json!("Honey bee"), &json!("Because"))
    );
    assert!(first["user_id"].is_string() && first["undone_at"].is_null(), "{first:#}");
    let of_wasp = fixture.get(&format!("/curation?concept_id={wasp}&limit=1")).await.json();
    assert_eq!(of_wasp["data"][0]["action"], "merge");
    let next = of_wasp["next_cursor"].as_str().unwrap();
    let next = fixture.get(&format!("/curation?concept_id={wasp}&limit=1&cursor={next}")).await.json();
    assert_eq!(next["data"][0]["action"], "reject_link", "{next:#}");
    let all = fixture.get(&format!("/curation?concept_id={wasp}")).await.json();
    assert_eq!(all["data"].as_array().map(Vec::len), Some(6), "the other one is a part of it: {all:#}");

    let rename = steps[0].1["curation_id"].as_str().unwrap();
    let early = fixture.ask(post.clone(), &format!("/curation/{rename}/undo"), &Value::Null).await;
    assert_eq!((early.status.as_u16(), &early.json()["code"]), (409, &json!("conflict")), "{early:?}");
    let last = steps.last().unwrap().1["curation_id"].as_str().unwrap();
    assert!(early.json()["detail"].as_str().unwrap().contains(last), "{early:?}");
    for (_, answer) in steps.iter().rev() {
        let path = format!("/curation/{}/undo", answer["curation_id"].as_str().unwrap());
        let undone = fixture.ask(post.clone(), &path, &Value::Null).await;
        assert_eq!(undone.status, 200, "{undone:?}");
        assert!(undone.json()["undone_by"].is_string(), "{undone:?}");
        assert_eq!(fixture.ask(post.clone(), &path, &Value::Null).await.status, 409, "once");
    }
    let seen = fixture.get(&format!("/facts/{sting}/concepts")).await.json();
    let names: Vec<_> = seen["data"].as_array().unwrap().iter().map(|one| &one["canonical_name"]).collect();
    assert_eq!(names, [&json!("Bee"), &json!("Wasp")]);
    assert_eq!(fixture.get(&format!("/facts/{sting}")).await.json()["status"], "new");
    for (action, entries) in [
        ("concept.renamed", 1),
        ("concept.alias_added", 1),
        ("concept.alias_removed", 1),
        ("concept.split", 1),
        ("concept.link_rejected", 1),
        ("fact.rejected", 1),
        ("concept.merged", 1),
        ("curation.undone", 7),
    ] {
        let told = fixture.get(&format!("/audit?action={action}")).await.json();
        assert_eq!(told["data"].as_array().map(Vec::len), Some(entries), "{action}");
    }
}

#[tokio::test]
async fn what_is_not_possible_is_refused_in_words() {
    let (fixture, [bee, wasp], [dance, _, wasps]) = Box::pin(open()).await;
    let nobody = okt_model::ConceptId::mint();
    let long = "x".repeat(1_001);
    let (put, post, delete) = (Method::PUT, Method::POST, Method::DELETE);
    for (method, path, body, status, said) in [
        (&post, format!("/concepts/{nobody}/merge"), json!({"into": bee}), 404, "concept not found"),
        (
            &post,
            format!("/concepts/{bee}/merge"),
            json!({"into": nobody}),
            422,
            "into: no concept has this id",
        ),
        (
            &post,
            format!("/concepts/{bee}/merge"),
            json!({"into": bee}),
            409,
            "the two are one concept already",
        ),
        (
            &post,
            format!("/concepts/{bee}/merge"),
            json!({"into": wasp, "reason": long}),
            422,
            "reason: must be",
        ),
        (&put, format!("/concepts/{bee}"), json!({"canonical_name": "wasp"}), 409, "already exists"),
        (&put, format!("/concepts/{bee}"), json!({"context": "Nowhere"}), 422, "context: no context"),
        (&put, format!("/concepts/{bee}"), json!({"name": "X"}), 422, "name"),
        (&post, format!("/concepts/{bee}/aliases"), json!({"alias": "bee"}), 409, "own name"),
        (&post, format!("/concepts/{bee}/aliases"), json!({"alias": "Wasp"}), 409, "merge the two instead"),
        (&delete, format!("/concepts/{bee}/aliases"), json!({"alias": "Apis"}), 404, "alias not found"),
        (&delete, format!("/facts/{wasps}/concepts/{bee}"), Value::Null, 404, "link between"),
        (&post, format!("/curation/{nobody}/undo"), Value::Null, 404, "curation step not found"),
        (
            &post,
            format!("/concepts/{bee}/split"),
            json!({"fact_ids": [], "name": "X", "context": "Animal"}),
            422,
            "fact_ids",
        ),
        (
            &post,
            format!("/concepts/{bee}/split"),
            json!({"fact_ids": [dance, wasps], "name": "X", "context": "Animal"}),
            422,
            "is not linked to this concept",
        ),
    ] {
        let answer = fixture.ask(method.clone(), &path, &body).await;
        assert_eq!(answer.status, status, "{path} {body}: {answer:?}");
        let detail = answer.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(said), "{path} {body}: {detail}");
    }
    let same = fixture.ask(put, &format!("/concepts/{bee}"), &json!({"canonical_name": "Bee"})).await.json();
    assert_eq!(same["curation_id"], Value::Null, "nothing had to be changed");
    assert_eq!(fixture.get("/curation").await.json()["data"], json!([]));
    let mut tx = fixture.databases.begin("default", fixture.repository).await.unwrap();
    assert!(curation::list(&mut tx, fixture.repository, None, i64::MAX, 10).await.unwrap().is_empty());
}
