//! Which layer wins, and what is said about it.

use std::fs;

use serde_json::json;

use super::Place;
use crate::{Mode, Origin, env, tree};

#[test]
fn without_anything_the_defaults_hold_and_are_written_beside_the_binary() {
    let place = Place::new();
    let loaded = place.load().unwrap();
    assert_eq!(loaded.config.mode, Mode::Development);
    assert_eq!(loaded.config.server.port, 8080);
    assert!(loaded.entries().iter().all(|entry| entry.origin == Origin::Default));
    assert_eq!(loaded.config_dir, place.path("bin"));
    assert!(place.path("bin/okt.default.toml").is_file());
    assert!(place.load().unwrap().notes.is_empty(), "the second start has nothing to say");
}

#[test]
fn file_beats_default_and_environment_beats_file() {
    let place = Place::with("[server]\nport = 9000\nhost = \"::1\"\n").set("SVC__SERVER__PORT", "9001");
    let loaded = place.load().unwrap();
    assert_eq!((loaded.config.server.port, loaded.config.server.host.to_string()), (9001, "::1".into()));
    let file = place.path("here/okt.toml");
    assert_eq!(place.origin("server.host"), format!("okt.toml ({})", file.display()));
    assert_eq!(place.origin("server.port"), "environment SVC__SERVER__PORT");
    assert_eq!(place.origin("server.read_timeout"), "default");
}

#[test]
fn an_edited_copy_of_the_defaults_counts_below_the_override_file() {
    let place = Place::new();
    place.load().unwrap();
    let copy = place.path("bin/okt.default.toml");
    let text = fs::read_to_string(&copy).unwrap();
    let text = text.replace("port = 8080", "port = 7000").replace("rrf_k = 60", "rrf_k = 61");
    fs::write(&copy, &text).unwrap();
    place.write("here/okt.toml", "server.port = 7001");

    let config = place.load().unwrap().config;
    assert_eq!((config.server.port, config.search.hybrid.rrf_k), (7001, 61));
    assert_eq!(place.origin("search.hybrid.rrf_k"), format!("okt.default.toml ({})", copy.display()));
    assert_eq!(place.origin("search.hybrid.enabled"), "default", "what was not changed is not theirs");
    assert_eq!(fs::read_to_string(&copy).unwrap(), text, "it is not overwritten");
}

#[test]
fn the_override_file_is_looked_for_here_and_then_beside_the_binary() {
    let place = Place::new();
    place.write("bin/okt.toml", "server.port = 1001");
    let loaded = place.load().unwrap();
    assert_eq!((loaded.config.server.port, loaded.config_dir), (1001, place.path("bin")));
    place.write("here/okt.toml", "server.port = 1002");
    let loaded = place.load().unwrap();
    assert_eq!((loaded.config.server.port, loaded.config_dir), (1002, place.path("here")));
}

#[test]
fn a_named_file_is_the_override_file_and_must_exist() {
    let mut place = Place::with("server.port = 1002");
    place.write("etc/my.toml", "server.port = 1003");
    place.config = Some("../etc/my.toml".into());
    let loaded = place.load().unwrap();
    assert_eq!(loaded.config.server.port, 1003);
    assert!(place.path("bin/okt.default.toml").is_file());

    place.config = Some(place.path("etc/none.toml"));
    assert_eq!(place.problems(), "--config: /etc/none.toml does not exist");
}

#[test]
fn a_named_directory_holds_both_files() {
    let mut place = Place::with("server.port = 1002");
    place.config = Some(place.path("etc"));
    let loaded = place.load().unwrap();
    assert_eq!((loaded.config.server.port, loaded.config_dir), (8080, place.path("etc")));
    assert!(place.path("etc/okt.default.toml").is_file());
    assert!(!place.path("bin/okt.default.toml").exists());
    place.write("etc/okt.toml", "server.port = 1004");
    assert_eq!(place.load().unwrap().config.server.port, 1004);
}

#[test]
fn a_variable_with_its_own_name_beats_the_general_form() {
    let place = Place::new().set("SVC__AUDIT__RETENTION_DAYS", "7").set("SVC_AUDIT_RETENTION_DAYS", "8");
    let loaded = place.load().unwrap();
    assert_eq!(loaded.config.audit.retention_days, 8);
    assert_eq!(place.origin("audit.retention_days"), "environment SVC_AUDIT_RETENTION_DAYS");
    let ignored = "environment SVC__AUDIT__RETENTION_DAYS: ignored, since SVC_AUDIT_RETENTION_DAYS is set";
    assert!(loaded.notes.iter().any(|note| note == ignored), "{:?}", loaded.notes);
}

#[test]
fn an_empty_variable_counts_as_not_set() {
    let mut place = Place::with("oauth.issuer = \"https://okt.example\"");
    for known in env::TABLE {
        place = place.set(known.name, "");
    }
    let place = place.set("SVC__SERVER__PORT", "").set("SVC__NO__SUCH", "");
    let loaded = place.load().unwrap();
    assert!(loaded.entries().iter().all(|entry| !matches!(entry.origin, Origin::Environment(_))));
    assert_eq!(loaded.config.oauth.issuer.unwrap().as_str(), "https://okt.example/");
}

#[test]
fn the_general_form_reads_every_kind_of_value() {
    let place = Place::new()
        .set("SVC__DATABASES__TENANT_1__URL", "postgres://h/d")
        .set("SVC__TASK__QUEUES__EMBED_FACTS", "3")
        .set("SVC__TASK__TIMEOUTS__EMBED_FACTS", "3m")
        .set("SVC__SEARCH__HYBRID__MIN_SCORE", "0.25")
        .set("SVC__RBAC__USERS_MAY_CREATE_REPOSITORIES", "FALSE")
        .set("SVC__ISOLATION__ALLOWED_DATABASES", "default, tenant_1")
        .set("SVC__SERVER__METRICS_ADDR", "127.0.0.1:9090")
        .set("SVC__REPOSITORY_PRESETS__ENTERPRISE__CONTEXTS", "all")
        .set("SVC__REPOSITORY_PRESETS__GENERAL__CONTEXTS", "disease,drug");
    let config = place.load().unwrap_or_else(|error| panic!("{error}")).config;
    assert_eq!(config.database("tenant_1").unwrap().url.expose(), "postgres://h/d");
    assert_eq!(config.database("tenant_1").unwrap().max_conns, 200);
    assert_eq!(config.task.queues["embed_facts"], 3);
    assert_eq!(config.task.timeout("embed_facts").unwrap().to_string(), "3m");
    assert!((config.search.hybrid.min_score - 0.25).abs() < f64::EPSILON);
    assert!(!config.rbac.users_may_create_repositories);
    assert_eq!(config.isolation.allowed_databases, ["default", "tenant_1"]);
    assert_eq!(config.server.metrics_addr.unwrap().port(), 9090);
    let presets = serde_json::to_value(config.repository_presets).unwrap();
    assert_eq!(presets["enterprise"]["contexts"], "all");
    assert_eq!(presets["general"]["contexts"], json!(["disease", "drug"]));
}

#[test]
fn a_mistyped_variable_of_ours_is_mentioned() {
    let place = Place::new().set("SVC_OAUTH_ISUER", "https://okt.example");
    let notes = place.load().unwrap().notes;
    let expected = "environment SVC_OAUTH_ISUER: no setting has this name; did you mean `SVC_OAUTH_ISSUER`?";
    assert!(notes.iter().any(|note| note == expected), "{notes:?}");
}

#[test]
fn lists_are_replaced_and_tables_are_merged() {
    let place = Place::with(
        "[repository_presets.enterprise]\ncontexts = [\"company\"]\n\
         [repository_presets.mine]\nlabel = \"Mine\"\n",
    );
    let loaded = place.load().unwrap();
    let presets = serde_json::to_value(&loaded.config.repository_presets).unwrap();
    assert_eq!(presets["enterprise"]["contexts"], json!(["company"]));
    assert_eq!(presets["enterprise"]["label"], "Enterprise");
    assert_eq!(presets["mine"]["contexts"], "all");
    assert_eq!(presets.as_object().unwrap().len(), 4);
    assert_eq!(place.origin("repository_presets.mine.contexts"), "default");
}

#[test]
fn a_member_of_a_list_has_the_origin_of_the_list() {
    let place = Place::with(
        "[[providers.registries]]\nid = \"a\"\nurl = \"https://a.example\"\n\
         [[providers.registries]]\nid = \"b\"\nurl = \"https://b.example\"\n",
    );
    assert!(place.origin("providers.registries[1].url").starts_with("okt.toml"));
    assert!(place.origin("providers.registries[1].auth_mode").starts_with("okt.toml"));
    let ids: Vec<String> =
        place.load().unwrap().config.providers.registries.into_iter().map(|entry| entry.id).collect();
    assert_eq!(ids, ["a", "b"]);
}

#[test]
fn a_database_without_an_address_shares_the_default_one() {
    let place = Place::with(
        "[databases.default]\nurl = \"postgres://u:pw@h/d\"\nssl_mode = \"require\"\n\
         [databases.tasks]\nmax_conns = 7\nssl_mode = \"disable\"\n",
    );
    let config = place.load().unwrap().config;
    let tasks = config.database("tasks").unwrap();
    assert_eq!((tasks.url.expose(), tasks.max_conns), ("postgres://u:pw@h/d", 7));
    assert_eq!(tasks.ssl_mode, crate::SslMode::Require);
    assert!(config.database("none").is_none());
    assert_eq!(config.system_database(), "default");
}

#[test]
fn entries_are_in_order_and_complete() {
    let loaded = Place::new().load().unwrap();
    let entries = loaded.entries();
    assert!(entries.is_sorted_by(|left, right| left.key < right.key));
    let whole = serde_json::to_value(&loaded.config).unwrap();
    assert_eq!(entries.len(), tree::leaves(&whole).len());
    assert!(entries.iter().any(|entry| entry.key == "task.timeouts" && entry.value == json!({})));
}
