use http::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::house::{House, path};

async fn put(house: &House, id: Uuid, part: &str, body: &Value) -> Value {
    let answer = house.send(&house.ada, Method::PUT, &path(id, &format!("settings/{part}")), body).await;
    assert_eq!(answer.status, 200, "{body}: {answer:?}");
    let shown = house.get(&house.ada, &path(id, "settings")).await.json();
    assert_eq!(answer.json(), shown, "what is answered is what is there");
    shown
}

async fn refused(house: &House, id: Uuid, part: &str, body: &Value) -> String {
    let answer = house.send(&house.ada, Method::PUT, &path(id, &format!("settings/{part}")), body).await;
    assert_eq!(answer.status, 422, "{body}: {answer:?}");
    answer.json()["errors"][0]["field"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_new_repository_has_the_settings_of_the_installation() {
    let house = House::new().await;
    let settings = house.get(&house.ada, &path(house.repository().await, "settings")).await.json();
    let keys: Vec<_> = settings.as_object().unwrap().keys().cloned().collect();
    assert_eq!(
        keys,
        [
            "accepted_promptset_hashes",
            "auto_contribute",
            "budget",
            "contexts",
            "promptset_hash",
            "providers",
            "registry",
            "stages"
        ]
    );
    assert_eq!(settings["auto_contribute"], false);
    assert_eq!(settings["accepted_promptset_hashes"], json!([]));
    assert_eq!(settings["registry"], json!({"id": null, "push_level": "concepts", "allowed_models": null}));
    assert_eq!(settings["budget"], json!({"monthly_usd": null, "on_exceed": "pause"}));
    let stages =
        json!({"refinement": false, "summarization": false, "synthesis": true, "image_extraction": true});
    assert_eq!(settings["stages"], stages);
    let disease =
        settings["contexts"].as_array().unwrap().iter().find(|one| one["label"] == "Disease").unwrap();
    assert_eq!(
        (&disease["custom"], &disease["ontology_class"], &disease["concept_count"]),
        (&json!(false), &json!("dbo:Disease"), &json!(0))
    );
}

#[tokio::test]
async fn each_part_is_changed_by_its_own_route_and_nothing_else_is() {
    let house = House::with(&[("REGISTRY_URL", "https://registry.example.org")]).await;
    let (id, other) = (house.repository().await, house.repository().await);
    let before = house.get(&house.ada, &path(other, "settings")).await.json();

    let shown = put(&house, id, "providers", &json!({"provider": "web", "enabled": false})).await;
    assert_eq!(shown["providers"]["search"], json!({"web": false, "academic": true}));
    let shown = put(&house, id, "providers", &json!({"provider": "web", "enabled": true})).await;
    assert_eq!(shown["providers"]["search"], json!({"web": true, "academic": true}));
    let shown = put(&house, id, "providers", &json!({"provider": "tls", "enabled": false})).await;
    assert_eq!(shown["providers"]["resolution"]["tls"], false);
    assert_eq!(put(&house, id, "auto-contribute", &json!({"enabled": true})).await["auto_contribute"], true);

    let chosen = json!({"id": "default", "push_level": "facts", "allowed_models": ["gpt-*"]});
    assert_eq!(put(&house, id, "registry", &chosen).await["registry"], chosen);
    let shown = put(&house, id, "registry", &json!({})).await;
    assert_eq!(shown["registry"], json!({"id": null, "push_level": "concepts", "allowed_models": null}));

    let (a, b) = ("a".repeat(64), "B".repeat(64));
    let shown = put(&house, id, "promptsets", &json!({"accepted_promptset_hashes": [b, a, a]})).await;
    assert_eq!(shown["accepted_promptset_hashes"], json!([a, b.to_lowercase()]));
    let shown = put(&house, id, "budget", &json!({"monthly_usd": 12.5, "on_exceed": "pause"})).await;
    assert_eq!(shown["budget"], json!({"monthly_usd": 12.5, "on_exceed": "pause"}));
    assert_eq!(
        put(&house, id, "budget", &json!({"monthly_usd": null})).await["budget"]["monthly_usd"],
        Value::Null
    );
    let shown = put(&house, id, "stages", &json!({"refinement": true})).await;
    assert_eq!(
        shown["stages"],
        json!({"refinement": true, "summarization": false, "synthesis": true, "image_extraction": true})
    );

    assert_eq!(
        house.get(&house.ada, &path(other, "settings")).await.json(),
        before,
        "another repository's are its own"
    );
    let audit = house.get(&house.ada, &path(id, "audit?action=settings.changed")).await.json();
    assert_eq!(audit["data"].as_array().unwrap().len(), 10);
}

#[tokio::test]
async fn what_can_not_be_set_is_refused_with_the_field() {
    let house = House::new().await;
    let id = house.repository().await;
    for (part, body, field) in [
        ("providers", json!({"provider": "bing", "enabled": true}), "provider"),
        ("providers", json!({"provider": "web"}), "body"),
        ("providers", json!({"provider": "web", "enabled": "yes"}), "enabled"),
        ("auto-contribute", json!({"enabled": 1}), "enabled"),
        ("registry", json!({"id": "default"}), "id"),
        ("registry", json!({"push_level": "all"}), "push_level"),
        ("registry", json!({"allowed_models": [""]}), "allowed_models"),
        ("promptsets", json!({"accepted_promptset_hashes": ["abc"]}), "accepted_promptset_hashes"),
        ("promptsets", json!({"accepted_promptset_hashes": ["é".repeat(32)]}), "accepted_promptset_hashes"),
        ("budget", json!({"monthly_usd": -1}), "monthly_usd"),
        ("budget", json!({}), "body"),
        ("budget", json!({"monthly_usd": 1, "on_exceed": "ignore"}), "on_exceed"),
        ("stages", json!({"dedup": true}), "dedup"),
    ] {
        assert_eq!(refused(&house, id, part, &body).await, field, "{part} {body}");
    }
}

#[tokio::test]
async fn many_who_change_settings_at_once_lose_nothing() {
    let house = House::new().await;
    let id = house.repository().await;
    let providers = ["web", "academic", "fetch", "open_access", "tls", "challenge_solver"];
    let bodies = providers.map(|provider| json!({"provider": provider, "enabled": false}));
    let address = path(id, "settings/providers");
    let all = bodies.iter().map(|body| house.send(&house.ada, Method::PUT, &address, body));
    for answer in futures_util::future::join_all(all).await {
        assert_eq!(answer.status, 200);
    }
    let shown = house.get(&house.ada, &path(id, "settings")).await.json();
    let off = |kind: &str| shown["providers"][kind].as_object().unwrap().values().all(|on| on == false);
    assert!(off("search") && off("resolution"), "{shown}");
}

#[tokio::test]
async fn an_installation_without_a_registry_says_so() {
    let house = House::new().await;
    let id = house.repository().await;
    for what in ["contribute-all", "pull-all"] {
        let answer =
            house.send(&house.ada, Method::POST, &path(id, &format!("settings/{what}")), &json!({})).await;
        assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (503, "not_configured"));
    }
}
