use http::Method;
use okt_testkit::client::Answer;
use okt_testkit::concepts::file_concept;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::repositories::two_databases::{TwoDatabases, path};

async fn add(fixture: &TwoDatabases, id: Uuid, label: &str) -> Answer {
    fixture.send(&fixture.ada, Method::POST, &path(id, "settings/contexts"), &json!({"label": label})).await
}

async fn put(fixture: &TwoDatabases, id: Uuid, label: &str, body: &Value) -> Answer {
    fixture.send(&fixture.ada, Method::PUT, &path(id, &format!("settings/contexts/{label}")), body).await
}

async fn file(fixture: &TwoDatabases, id: Uuid, name: &str, context: &str) {
    let databases = fixture.service.api.app.databases();
    let mut tx = databases.begin("default", id.into()).await.unwrap();
    file_concept(&mut tx, id.into(), name, context).await.unwrap();
    tx.commit().await.unwrap();
}

async fn shown(fixture: &TwoDatabases, id: Uuid, label: &str) -> Option<Value> {
    let settings = fixture.get(&fixture.ada, &path(id, "settings")).await.json();
    settings["contexts"].as_array().unwrap().iter().find(|one| one["label"] == label).cloned()
}

#[tokio::test]
async fn a_context_of_ones_own_is_added_changed_and_removed() {
    let fixture = TwoDatabases::new().await;
    let id = fixture.repository().await;
    let body = json!({"label": " Bee keeping / honey ", "description": "What keepers do"});
    let added = fixture.send(&fixture.ada, Method::POST, &path(id, "settings/contexts"), &body).await;
    assert_eq!(added.status, 201, "{added:?}");
    let expected = json!({"label": "Bee keeping / honey", "description": "What keepers do", "custom": true,
                          "ontology_class": null, "concept_count": 0, "merging_into": null});
    assert_eq!(added.json(), expected);
    assert_eq!(shown(&fixture, id, "Bee keeping / honey").await.unwrap(), expected);
    let address = added.header("location").to_owned();
    assert!(address.ends_with("/settings/contexts/Bee%20keeping%20%2F%20honey"), "{address}");

    // Its address is its label, in any case.
    let changed = fixture
        .send(
            &fixture.ada,
            Method::PUT,
            &address.to_lowercase().replace("%2f", "%2F"),
            &json!({"label": "Apiculture"}),
        )
        .await;
    assert_eq!(changed.status, 200, "{changed:?}");
    assert_eq!(
        (&changed.json()["label"], &changed.json()["description"]),
        (&json!("Apiculture"), &json!("What keepers do"))
    );
    assert!(shown(&fixture, id, "Bee keeping / honey").await.is_none());
    assert_eq!(fixture.delete(&fixture.ada, &path(id, "settings/contexts/APICULTURE")).await.status, 204);
    assert_eq!(fixture.delete(&fixture.ada, &path(id, "settings/contexts/Apiculture")).await.status, 404);
}

#[tokio::test]
async fn labels_are_unique_whatever_their_case_and_built_in_ones_stay_as_they_are() {
    let fixture = TwoDatabases::new().await;
    let id = fixture.repository().await;
    assert_eq!(add(&fixture, id, "Hive").await.status, 201);
    for label in ["hive", "HIVE", "disease"] {
        let refused = add(&fixture, id, label).await;
        assert_eq!((refused.status.as_u16(), refused.problem().as_str()), (409, "already_exists"), "{label}");
    }
    assert_eq!(put(&fixture, id, "Hive", &json!({"label": "Disease"})).await.problem(), "already_exists");
    assert_eq!(
        put(&fixture, id, "hive", &json!({"label": "HIVE"})).await.json()["label"],
        "HIVE",
        "its own in another case"
    );
    assert_eq!(put(&fixture, id, "Disease", &json!({"description": "x"})).await.problem(), "conflict");
    assert_eq!(put(&fixture, id, "Nothing", &json!({"description": "x"})).await.status, 404);
    for label in ["", " ", ".", "..", "a\nb", &"l".repeat(101)] {
        assert_eq!(add(&fixture, id, label).await.status, 422, "{label:?}");
    }
    // Another repository's are its own.
    let other = fixture.repository().await;
    assert_eq!(add(&fixture, other, "Hive").await.status, 201);
    assert_eq!(fixture.delete(&fixture.ada, &path(other, "settings/contexts/hive")).await.status, 204);
    assert!(shown(&fixture, id, "HIVE").await.is_some());
    // A built-in one that is not wanted can go.
    assert_eq!(fixture.delete(&fixture.ada, &path(id, "settings/contexts/Robot")).await.status, 204);
    assert!(shown(&fixture, id, "Robot").await.is_none());
}

#[tokio::test]
async fn a_context_in_use_is_not_deleted_and_says_by_how_many() {
    let fixture = TwoDatabases::new().await;
    let id = fixture.repository().await;
    for name in ["Varroosis", "Nosemosis", "VARROOSIS"] {
        file(&fixture, id, name, "disease").await;
    }
    assert_eq!(shown(&fixture, id, "Disease").await.unwrap()["concept_count"], 2);
    let refused = fixture.delete(&fixture.ada, &path(id, "settings/contexts/Disease")).await;
    assert_eq!((refused.status.as_u16(), refused.problem().as_str()), (409, "in_use"));
    assert!(refused.json()["detail"].as_str().unwrap().starts_with("2 concepts"), "{refused:?}");
    let record = fixture.get(&fixture.ada, &path(id, "")).await.json();
    assert_eq!(record["counts"]["concepts"], 2);
}

#[tokio::test]
async fn a_migration_is_a_job_that_ends_with_one_context_less() {
    let fixture = TwoDatabases::new().await;
    let id = fixture.repository().await;
    add(&fixture, id, "Illness").await;
    for (name, context) in [("Varroosis", "Illness"), ("Nosemosis", "Illness"), ("nosemosis", "Disease")] {
        file(&fixture, id, name, context).await;
    }
    let address = path(id, "settings/contexts/illness/migrate");
    let asked = fixture.send(&fixture.ada, Method::POST, &address, &json!({"target": "disease"})).await;
    assert_eq!(asked.status, 202, "{asked:?}");
    let job = asked.json()["job_id"].as_str().unwrap().to_owned();
    assert_eq!(shown(&fixture, id, "Illness").await.unwrap()["merging_into"], "Disease");
    // Nothing new is filed under it, and nobody takes it or its target away.
    file(&fixture, id, "Foulbrood", "Illness").await;
    assert_eq!(shown(&fixture, id, "Disease").await.unwrap()["concept_count"], 2);
    for label in ["Illness", "Disease"] {
        assert_eq!(
            fixture.delete(&fixture.ada, &path(id, &format!("settings/contexts/{label}"))).await.problem(),
            "conflict"
        );
    }
    for (source, target) in [("Illness", "Drug"), ("Disease", "Drug"), ("Drug", "Illness")] {
        let address = path(id, &format!("settings/contexts/{source}/migrate"));
        let refused = fixture.send(&fixture.ada, Method::POST, &address, &json!({"target": target})).await;
        assert_eq!(refused.problem(), "conflict", "{source} into {target}");
    }
    let worker = fixture.worker().await;
    fixture
        .until(
            "default",
            &format!("SELECT count(*) FROM okt_tasks.jobs WHERE id = '{job}' AND state = 'completed'"),
            1,
        )
        .await;
    worker.stop().await;
    assert!(shown(&fixture, id, "Illness").await.is_none());
    assert_eq!(shown(&fixture, id, "Disease").await.unwrap()["concept_count"], 3);
    assert_eq!(fixture.get(&fixture.ada, &path(id, "")).await.json()["counts"]["concepts"], 3);
    let done = fixture.get(&fixture.ada, &path(id, &format!("jobs/{job}"))).await.json();
    assert_eq!(done["output"], json!({"moved": 1, "merged": 1}));
}

#[tokio::test]
async fn a_migration_needs_two_contexts() {
    let fixture = TwoDatabases::new().await;
    let id = fixture.repository().await;
    let ask = async |source: &str, target: &str| {
        let address = path(id, &format!("settings/contexts/{source}/migrate"));
        fixture.send(&fixture.ada, Method::POST, &address, &json!({"target": target})).await.status.as_u16()
    };
    assert_eq!(ask("Nothing", "Disease").await, 404);
    assert_eq!(ask("Disease", "Nothing").await, 422);
    assert_eq!(ask("Disease", "DISEASE").await, 422);
}

/// The job is cancelled or given up: the context is not stranded.
#[tokio::test]
async fn a_migration_whose_job_was_cancelled_is_asked_for_again() {
    let fixture = TwoDatabases::new().await;
    let id = fixture.repository().await;
    file(&fixture, id, "Varroosis", "Disease").await;
    let address = path(id, "settings/contexts/Disease/migrate");
    let first = fixture.send(&fixture.ada, Method::POST, &address, &json!({"target": "Drug"})).await.json();
    // It is carried to the queue by hand, and cancelled there.
    let worker = fixture.worker_for(okt_queue::Kinds::default()).await;
    fixture.until("default", "SELECT count(*) FROM okt_tasks.jobs", 1).await;
    worker.stop().await;
    let cancel = path(id, &format!("jobs/{}/cancel", first["job_id"].as_str().unwrap()));
    assert_eq!(fixture.send(&fixture.ada, Method::POST, &cancel, &json!({})).await.status, 202);
    let again = fixture.send(&fixture.ada, Method::POST, &address, &json!({"target": "drug"})).await;
    assert_eq!(again.status, 202, "{again:?}");
    let worker = fixture.worker().await;
    fixture.until("default", "SELECT count(*) FROM okt_repository.contexts WHERE label = 'Disease'", 0).await;
    worker.stop().await;
    assert_eq!(shown(&fixture, id, "Drug").await.unwrap()["concept_count"], 1);
}

/// What one who waited for a context decides is decided by how it is then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_context_that_is_about_to_receive_another_is_not_deleted() {
    let fixture = TwoDatabases::new().await;
    for _ in 0..15 {
        let id = fixture.repository().await;
        let (merge, gone) =
            (path(id, "settings/contexts/Drug/migrate"), path(id, "settings/contexts/Disease"));
        let body = json!({"target": "Disease"});
        let (merged, deleted) = tokio::join!(
            fixture.send(&fixture.ada, Method::POST, &merge, &body),
            fixture.delete(&fixture.ada, &gone)
        );
        let both = (merged.status.as_u16(), deleted.status.as_u16());
        assert!([(202, 409), (422, 204)].contains(&both), "{both:?}");
    }
}

/// Crosswise, at once: one wins, and nobody waits for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_contexts_that_are_merged_into_each_other_are_merged_once() {
    let fixture = TwoDatabases::new().await;
    for _ in 0..5 {
        let id = fixture.repository().await;
        let (there, back) =
            (path(id, "settings/contexts/Drug/migrate"), path(id, "settings/contexts/Disease/migrate"));
        let (to_disease, to_drug) = (json!({"target": "Disease"}), json!({"target": "Drug"}));
        let (one, other) = tokio::join!(
            fixture.send(&fixture.ada, Method::POST, &there, &to_disease),
            fixture.send(&fixture.ada, Method::POST, &back, &to_drug)
        );
        let mut statuses = [one.status.as_u16(), other.status.as_u16()];
        statuses.sort_unstable();
        assert_eq!(statuses, [202, 409]);
    }
}
