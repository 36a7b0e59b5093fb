use http::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::repositories::two_databases::{TwoDatabases, path};

async fn put(fixture: &TwoDatabases, id: Uuid, part: &str, body: &Value) -> Value {
    let answer = fixture.send(&fixture.ada, Method::PUT, &path(id, &format!("settings/{part}")), body).await;
    assert_eq!(answer.status, 200, "{body}: {answer:?}");
    let shown = fixture.get(&fixture.ada, &path(id, "settings")).await.json();
    let told = if part == "budget" { &shown["budget"] } else { &shown };
    assert_eq!(answer.json(), *told, "what is answered is what is there");
    shown
}

async fn refused(fixture: &TwoDatabases, id: Uuid, part: &str, body: &Value) -> String {
    let answer = fixture.send(&fixture.ada, Method::PUT, &path(id, &format!("settings/{part}")), body).await;
    assert_eq!(answer.status, 422, "{body}: {answer:?}");
    answer.json()["errors"][0]["field"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_new_repository_has_the_settings_of_the_installation() {
    let fixture = TwoDatabases::new().await;
    let settings = fixture.get(&fixture.ada, &path(fixture.repository().await, "settings")).await.json();
    let keys: Vec<_> = settings.as_object().unwrap().keys().cloned().collect();
    assert_eq!(
        keys,
        [
            "accepted_promptset_hashes",
            "ask",
            "auto_contribute",
            "budget",
            "contexts",
            "promptset_hash",
            "providers",
            "registry",
            "stages",
            "unmapped_contexts"
        ]
    );
    assert_eq!(settings["auto_contribute"], false);
    assert_eq!(settings["accepted_promptset_hashes"], json!([]));
    assert_eq!(
        settings["registry"],
        json!({"id": null, "push_level": "concepts", "allowed_models": null, "trust": "anyone", "trusted_keys": [],
               "available": [], "signing_key_id": null})
    );
    assert_eq!(
        settings["budget"],
        json!({"monthly_usd": null, "effective_usd": null, "max_usd": null, "spent_usd": 0.0, "on_exceed": "pause"})
    );
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
    let fixture = TwoDatabases::with(&[("REGISTRY_URL", "https://registry.example.org")]).await;
    let (id, other) = (fixture.repository().await, fixture.repository().await);
    let before = fixture.get(&fixture.ada, &path(other, "settings")).await.json();

    let shown = put(&fixture, id, "providers", &json!({"provider": "web", "enabled": false})).await;
    assert_eq!(shown["providers"]["search"], json!({"web": false, "academic": true}));
    let shown = put(&fixture, id, "providers", &json!({"provider": "web", "enabled": true})).await;
    assert_eq!(shown["providers"]["search"], json!({"web": true, "academic": true}));
    let shown = put(&fixture, id, "providers", &json!({"provider": "tls", "enabled": false})).await;
    assert_eq!(shown["providers"]["resolution"]["tls"], false);
    assert_eq!(
        put(&fixture, id, "auto-contribute", &json!({"enabled": true})).await["auto_contribute"],
        true
    );

    let chosen =
        json!({"id": "default", "push_level": "facts", "allowed_models": ["gpt-*"], "trust": "signed"});
    let shown = put(&fixture, id, "registry", &chosen).await;
    for (name, value) in chosen.as_object().unwrap() {
        assert_eq!(&shown["registry"][name], value, "{name}");
    }
    assert_eq!(shown["registry"]["available"][0]["url"], "https://registry.example.org/");
    let shown = put(&fixture, id, "registry", &json!({})).await;
    let reset = json!({"id": null, "push_level": "concepts", "allowed_models": null, "trust": "signed"});
    for (name, value) in reset.as_object().unwrap() {
        assert_eq!(&shown["registry"][name], value, "{name}: trust stays as it is");
    }

    let (a, b) = ("a".repeat(64), "B".repeat(64));
    let shown = put(&fixture, id, "promptsets", &json!({"accepted_promptset_hashes": [b, a, a]})).await;
    assert_eq!(shown["accepted_promptset_hashes"], json!([a, b.to_lowercase()]));
    let shown = put(&fixture, id, "budget", &json!({"monthly_usd": 12.5, "on_exceed": "pause"})).await;
    let expected = json!({"monthly_usd": 12.5, "effective_usd": 12.5, "max_usd": null, "spent_usd": 0.0, "on_exceed": "pause"});
    assert_eq!(shown["budget"], expected);
    assert_eq!(
        put(&fixture, id, "budget", &json!({"monthly_usd": null})).await["budget"]["monthly_usd"],
        Value::Null
    );
    let shown = put(&fixture, id, "stages", &json!({"refinement": true})).await;
    assert_eq!(
        shown["stages"],
        json!({"refinement": true, "summarization": false, "synthesis": true, "image_extraction": true})
    );

    assert_eq!(
        fixture.get(&fixture.ada, &path(other, "settings")).await.json(),
        before,
        "another repository's are its own"
    );
    let audit = fixture.get(&fixture.ada, &path(id, "audit?action=settings.changed")).await.json();
    assert_eq!(audit["data"].as_array().unwrap().len(), 10);
}

#[tokio::test]
async fn what_can_not_be_set_is_refused_with_the_field() {
    let fixture = TwoDatabases::new().await;
    let id = fixture.repository().await;
    for (part, body, field) in [
        ("providers", json!({"provider": "bing", "enabled": true}), "provider"),
        ("providers", json!({"provider": "web"}), "enabled"),
        ("providers", json!({"provider": "web", "enabled": "yes"}), "enabled"),
        ("auto-contribute", json!({"enabled": 1}), "enabled"),
        ("registry", json!({"id": "default"}), "id"),
        ("registry", json!({"push_level": "all"}), "push_level"),
        ("registry", json!({"allowed_models": [""]}), "allowed_models"),
        ("promptsets", json!({"accepted_promptset_hashes": ["abc"]}), "accepted_promptset_hashes"),
        ("promptsets", json!({"accepted_promptset_hashes": ["é".repeat(32)]}), "accepted_promptset_hashes"),
        ("budget", json!({"monthly_usd": -1}), "monthly_usd"),
        ("budget", json!({}), "monthly_usd"),
        ("budget", json!({"monthly_usd": 1, "on_exceed": "ignore"}), "on_exceed"),
        ("stages", json!({"dedup": true}), "dedup"),
    ] {
        assert_eq!(refused(&fixture, id, part, &body).await, field, "{part} {body}");
    }
}

#[tokio::test]
async fn many_who_change_settings_at_once_lose_nothing() {
    let fixture = TwoDatabases::new().await;
    let id = fixture.repository().await;
    let providers = ["web", "academic", "fetch", "open_access", "tls", "challenge_solver"];
    let bodies = providers.map(|provider| json!({"provider": provider, "enabled": false}));
    let address = path(id, "settings/providers");
    let all = bodies.iter().map(|body| fixture.send(&fixture.ada, Method::PUT, &address, body));
    for answer in futures_util::future::join_all(all).await {
        assert_eq!(answer.status, 200);
    }
    let shown = fixture.get(&fixture.ada, &path(id, "settings")).await.json();
    let off = |kind: &str| shown["providers"][kind].as_object().unwrap().values().all(|on| on == false);
    assert!(off("search") && off("resolution"), "{shown}");
}

#[tokio::test]
async fn an_installation_without_a_registry_says_so() {
    let fixture = TwoDatabases::new().await;
    let id = fixture.repository().await;
    for what in ["contribute-all", "pull-all"] {
        let answer = fixture
            .send(&fixture.ada, Method::POST, &path(id, &format!("settings/{what}")), &json!({}))
            .await;
        assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (503, "not_configured"));
    }
}

/// The operator's money is the operator's: not even a sysadmin spends more than the settings say.
#[tokio::test]
async fn a_budget_is_no_more_than_the_operator_allows() {
    let fixture =
        TwoDatabases::with(&[("SVC__BUDGET__DEFAULT_USD", "2"), ("SVC__BUDGET__MAX_USD", "5")]).await;
    let id = fixture.repository().await;
    let shown = fixture.get(&fixture.ada, &path(id, "settings")).await.json();
    let expected = json!({"monthly_usd": null, "effective_usd": 2.0, "max_usd": 5.0, "spent_usd": 0.0, "on_exceed": "pause"});
    assert_eq!(shown["budget"], expected);
    for who in [&fixture.ada, &fixture.admin] {
        for (chosen, effective) in [(json!(5), 5.0), (json!(0), 0.0), (json!(0.1), 0.1), (Value::Null, 2.0)] {
            let body = json!({"monthly_usd": chosen});
            let set = fixture.send(who, Method::PUT, &path(id, "settings/budget"), &body).await;
            assert_eq!(
                (set.status.as_u16(), &set.json()["effective_usd"]),
                (200, &json!(effective)),
                "{set:?}"
            );
        }
        let body = json!({"monthly_usd": 5.01});
        let refused = fixture.send(who, Method::PUT, &path(id, "settings/budget"), &body).await;
        assert_eq!(refused.status, 422);
        let why = refused.json()["errors"][0]["message"].as_str().unwrap().to_owned();
        assert!(why.contains("at most 5,") && why.contains("budget.max_usd"), "{why}");
    }
}
