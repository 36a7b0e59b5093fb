//! What is refused or noted although every value for itself is fine.

use okt_model::{EMBEDDING_DIMENSIONS, EMBEDDING_MODEL};

use super::Place;
use super::problems::refused;

#[test]
fn rules_between_settings_blame_the_one_that_was_set() {
    for (text, expected) in [
        (
            "task.heartbeat_timeout = \"30s\"",
            "task.heartbeat_interval: must be less than task.heartbeat_timeout: 1m is not less than 30s",
        ),
        (
            "concepts.stable_shared_fact_count = 2",
            "concepts.min_shared_fact_count: must be at most concepts.stable_shared_fact_count: 3 is more than 2",
        ),
        (
            "providers.decomposition.chunking.chunk_size = 200",
            "providers.decomposition.chunking.chunk_overlap: must be less than chunk_size: 200 is not less than 200",
        ),
        (
            "task.job_timeout = \"20m14s\"",
            "task.job_timeout: 20m14s must be more than the worst case of a call to a model: \
             4 attempts × 5m + waits of 2s + 4s + 8s = 20m14s (providers.llm_retry)",
        ),
        (
            "task.timeouts.refine_concepts = \"4m\"",
            "providers.llm_retry.per_call_timeout: 5m must be at most the shortest limit of a job that calls a \
             model: task.timeouts.refine_concepts, 4m",
        ),
        (
            "providers.llm_retry.max_attempts = 50",
            "task.job_timeout: 4h must be more than the worst case of a call to a model: \
             50 attempts × 5m + waits of 2s + 4s + 8s + … + 30s = 4h33m (providers.llm_retry)",
        ),
        (
            "mode = \"production\"",
            "auth.jwt_secret: must be set in production mode, here or as AUTH_JWTSECRET, to at least 32 random bytes; \
             `openssl rand -base64 32` makes some",
        ),
        (
            "isolation.allowed_databases = [\"default\", \"tasks\"]",
            "isolation.allowed_databases: \"tasks\" is set apart for the job queue (task.database), so no repository \
             can live there",
        ),
        ("task.database = \"task\"", "task.database: no database is named \"task\"; did you mean `tasks`?"),
        (
            "default_repository_preset = \"generel\"",
            "default_repository_preset: no preset is named \"generel\"; did you mean `general`?",
        ),
        (
            "providers.synthesis.model = \"big\"",
            "providers.synthesis.model: no model in providers.ai.models is named \"big\"",
        ),
        (
            "repository_presets.scientific.contexts = [\"diseese\"]",
            "repository_presets.scientific.contexts: no class of the ontology is named \"diseese\"; did you mean \
             `Disease`?; contexts of one's own belong into custom_contexts",
        ),
        (
            "telemetry.otlp_endpoint = \"https://traces.example\"\nproviders.offline = true",
            "telemetry.otlp_endpoint: leads outside of this machine, which providers.offline forbids",
        ),
        ("api_keys.default_ttl = 91", "api_keys.default_ttl: 91 days is more than api_keys.max_ttl, 2160h"),
    ] {
        refused(text, &format!("{expected} (in /here/okt.toml:1)"));
    }
}

#[test]
fn limits_that_just_fit_are_taken() {
    for text in [
        "task.job_timeout = \"20m15s\"",
        "task.job_timeout = \"0s\"",
        "task.timeouts.embed_facts = \"1s\"",
        "search.hybrid.min_score = 1",
        "server.port = 0",
        "providers.offline = true\ntelemetry.otlp_endpoint = \"http://localhost:4318\"",
        "api_keys.default_ttl = 90",
        "api_keys = { default_ttl = 10000, max_ttl = \"0s\" }",
        "server = { max_in_flight = 1000000, max_connections = 1000000 }",
        "databases.default.max_conns = 10000",
        "isolation = { default_database = \"tasks\", allowed_databases = [\"tasks\"] }",
        "task.database = \"default\"\nisolation.allowed_databases = [\"default\", \"tasks\"]",
    ] {
        Place::with(text).load().unwrap_or_else(|error| panic!("{text}: {error}"));
    }
}

#[test]
fn production_is_strict_about_secret_and_issuer() {
    let good = "kq8Zr1vXw5Tn0Lb7Yc3Hd9Js2Pf6Gm4A";
    let production = |issuer: &str, secret: &str| {
        Place::with(&format!("mode = \"production\"\noauth.issuer = \"{issuer}\""))
            .set("AUTH_JWTSECRET", secret)
    };
    production("https://okt.example", good).load().unwrap();
    production("http://127.0.0.1:8080", good).load().unwrap();
    production("http://localhost", good).load().unwrap();
    production("", good).load().unwrap();
    assert_eq!(
        production("http://okt.example", good).problems(),
        "oauth.issuer: must be https in production mode, unless its host is loopback (in /here/okt.toml:2)"
    );
    assert_eq!(
        production("https://okt.example?a#b", good).problems(),
        "oauth.issuer: must have no query and no fragment (in /here/okt.toml:2)"
    );
    for placeholder in ["changeme-changeme-changeme-changeme", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"] {
        assert_eq!(
            production("", placeholder).problems(),
            "auth.jwt_secret: looks like a placeholder; production mode needs random bytes, such as `openssl rand -base64 32` \
             makes (in environment AUTH_JWTSECRET)"
        );
    }
    Place::new().set("AUTH_JWTSECRET", "changeme-changeme-changeme-changeme").load().unwrap();
    assert_eq!(
        Place::new().set("AUTH_JWTSECRET", "short").problems(),
        "auth.jwt_secret: must have at least 32 bytes (in environment AUTH_JWTSECRET)"
    );
}

#[test]
fn databases_are_checked_without_showing_their_address() {
    for (url, fault) in [
        ("nonsense", "must be an address such as postgres://user:password@host:5432/database"),
        ("mysql://h/d", "must begin with postgres:// or postgresql://"),
        ("postgres:///d", "must name a host"),
        ("postgres://h", "must name a database, as in postgres://host/database"),
        ("postgres://h/d?sslmode=disable", "must not set TLS; use ssl_mode and ssl_root_cert beside it"),
        ("postgres://h/d?ssl-root-cert=/x", "must not set TLS; use ssl_mode and ssl_root_cert beside it"),
        (
            "postgres://h/d?pasword=p",
            "may carry no parameters but application_name, dbname, host, hostaddr, options, password, port and user",
        ),
        (
            "",
            "must be set, here or as SVC__DATABASES__DEFAULT__URL: postgres://user:password@host:5432/database",
        ),
    ] {
        refused(
            &format!("databases.default.url = \"{url}\""),
            &format!("databases.default.url: {fault} (in /here/okt.toml:1)"),
        );
    }
    for url in ["postgresql://h/d", "postgres://u:p@[::1]:5432/d", "postgres:///d?host=/run/postgresql"] {
        Place::with(&format!("databases.default.url = \"{url}\"")).load().unwrap();
    }
    refused(
        "databases.tasks = { ssl_mode = \"verify-full\", ssl_root_cert = \"/no/such.pem\" }",
        "databases.tasks.ssl_root_cert: /no/such.pem is not a file (in /here/okt.toml:1)",
    );
}

#[test]
fn languages_of_a_model_are_codes_of_two_letters() {
    let key = "providers.embedding.languages";
    Place::with(&format!("{key} = [\"en\", \"de\"]")).load().unwrap();
    for wrong in ["English", "EN", "de-CH"] {
        refused(
            &format!("{key} = [\"{wrong}\"]"),
            &format!(
                "{key}: {wrong:?} is no ISO 639-1 code; name languages by two letters, such as \"de\" (in /here/okt.toml:1)"
            ),
        );
    }
}

#[test]
fn what_may_be_fetched_although_private_is_an_exact_address_and_port() {
    let key = "providers.resolution.fetch.allow_private";
    Place::with(&format!("{key} = [\"127.0.0.1:8000\", \"[::1]:8000\"]")).load().unwrap();
    for wrong in ["127.0.0.1", "localhost:80", "10.0.0.0/8", "127.0.0.1:*", ""] {
        let got = if wrong.is_empty() { "an empty text".into() } else { format!("{wrong:?}") };
        refused(
            &format!("{key} = [\"{wrong}\"]"),
            &format!(
                "{key}[0]: expected an address with a port such as 127.0.0.1:9090, got {got} (in /here/okt.toml:1)"
            ),
        );
    }
    for wrong in ["127.0.0.1:0", "[fe80::1%2]:80"] {
        refused(
            &format!("{key} = [\"{wrong}\"]"),
            &format!(
                "{key}: {wrong} can't be fetched from: name a port other than 0, and no zone (in /here/okt.toml:1)"
            ),
        );
    }
}

#[test]
fn registries_need_unique_ids_and_keys() {
    refused(
        "[[providers.registries]]\nid = \"a\"\nurl = \"https://a.example\"\n\
         [[providers.registries]]\nid = \"a\"\nurl = \"https://b.example\"\nauth_mode = \"hmac\"",
        "providers.registries[1].api_key: must be set for auth_mode bearer and hmac (or read_api_key, to read only) \
         (in /here/okt.toml:4)\n\
         providers.registries[1].id: \"a\" is there twice (in /here/okt.toml:5)",
    );
    let place = Place::new().set("REGISTRY_URL", "https://r.example").set("REGISTRY_AUTH_MODE", "bearer");
    assert_eq!(
        place.problems(),
        "providers.registry.api_key: must be set for auth_mode bearer and hmac (or read_api_key, to read only) \
         (in environment REGISTRY_AUTH_MODE)"
    );
    place.set("REGISTRY_READ_API_KEY", "r").load().unwrap();
}

#[test]
fn our_own_models_are_named_where_they_can_be_used_and_nowhere_else() {
    let entry = "providers.ai.models = [{ id = \"ID\", provider = \"local\" }]";
    for (text, expected) in [
        (
            entry.replace("ID", "builtin-extractive-1"),
            "providers.ai.models[0].id: \"builtin-extractive-1\" is no model but our own rules",
        ),
        (
            entry.replace("ID", "builtin-minilm-1"),
            "providers.ai.models[0].id: \"builtin-minilm-1\" is a built-in model, which no provider serves",
        ),
        (
            "providers.synthesis.model = \"builtin-minilm-1\"".into(),
            "providers.synthesis.model: no model in providers.ai.models is named \"builtin-minilm-1\"",
        ),
        (
            "providers.decomposition.fact_extraction.model = \"builtin-minilm-1\"".into(),
            "providers.decomposition.fact_extraction.model: no model in providers.ai.models is named \
             \"builtin-minilm-1\"",
        ),
        (
            "providers.embedding.model = \"builtin-extractive-1\"".into(),
            "providers.embedding.model: no model in providers.ai.models is named \"builtin-extractive-1\"",
        ),
        (
            "providers.embedding.dimensions = 1024".into(),
            "providers.embedding.dimensions: must be 384 for builtin-minilm-1",
        ),
    ] {
        refused(&text, &format!("{expected} (in /here/okt.toml:1)"));
    }
    let own = Place::new().load().unwrap().config.providers.embedding;
    assert_eq!((own.model.as_str(), own.dimensions), (EMBEDDING_MODEL, EMBEDDING_DIMENSIONS));
    for text in [
        "providers.embedding.model = \"builtin-minilm-1\"".to_owned(),
        "providers.embedding = { model = \"\", dimensions = 1024 }".to_owned(),
        format!(
            "providers.embedding = {{ model = \"mine\", dimensions = 768 }}\n{}",
            entry.replace("ID", "mine")
        ),
    ] {
        Place::with(&text).load().unwrap_or_else(|error| panic!("{text}: {error}"));
    }
}

#[test]
fn a_rule_says_nothing_about_a_value_that_was_wrong_anyway() {
    refused(
        "task.heartbeat_interval = \"1h\"\ntask.heartbeat_timeout = \"soon\"",
        "task.heartbeat_timeout: expected a period such as 15s, 1m30s or 24h, longer than 0s, got \"soon\" \
         (in /here/okt.toml:2)",
    );
}

#[test]
fn a_default_admin_without_credentials_is_a_warning() {
    let said = Place::with("bootstrap.default_admin = true").load().unwrap().warnings;
    assert!(said.iter().any(|said| said.starts_with("bootstrap.default_admin: no admin")), "{said:?}");
}

/// Whoever finds a fresh public installation first must not get it only because nobody thought of it.
#[test]
fn production_promotes_the_first_user_only_where_somebody_said_so() {
    let production = |text: &str| {
        Place::with(&format!("mode = \"production\"\noauth.issuer = \"https://okt.example\"\n{text}"))
            .set("AUTH_JWTSECRET", "kq8Zr1vXw5Tn0Lb7Yc3Hd9Js2Pf6Gm4A")
    };
    let first_user = |place: &Place| {
        let loaded = place.load().unwrap();
        (loaded.config.bootstrap.auto_promote_first_user, loaded.warnings.join("\n"))
    };
    assert!(first_user(&Place::new()).0);
    let (promoted, notes) = first_user(&production(""));
    assert!(!promoted && notes.contains("registering makes no user sysadmin"), "{notes}");
    let told = production("bootstrap.auto_promote_first_user = true");
    for place in [told, production("").set("SVC_BOOTSTRAP_AUTO_PROMOTE", "1")] {
        let (promoted, notes) = first_user(&place);
        assert!(promoted && notes.contains("the first user to register becomes sysadmin"), "{notes}");
    }
    let admin = "bootstrap = { default_admin = true, default_admin_email = \"a@x.org\", \
                 default_admin_password = \"a long sentence\", default_admin_display_name = \"A\" }";
    assert_eq!(first_user(&production(admin)), (false, String::new()));
}

#[test]
fn an_installation_that_nobody_can_get_into_is_a_note() {
    let closed = "auth.registration = \"closed\"\nbootstrap.auto_promote_first_user = false";
    let notes = Place::with(closed).load().unwrap().warnings;
    assert!(notes.iter().any(|note| note.starts_with("auth.registration: on an empty")), "{notes:?}");
    refused(
        "auth.registration = \"maybe\"",
        "auth.registration: expected one of `open`, `invite`, `closed`, got \"maybe\" (in /here/okt.toml:1)",
    );
    refused(
        "bootstrap.setup_code = \"short\"",
        "bootstrap.setup_code: must have at least 12 characters (in /here/okt.toml:1)",
    );
}

#[test]
fn a_database_reached_in_plain_text_is_a_warning_in_production() {
    let noted = |mode: &str, database: &str| -> Vec<String> {
        let place = Place::with(&format!("mode = \"{mode}\"\ndatabases.tenant = {{ {database} }}"))
            .set("AUTH_JWTSECRET", "kq8Zr1vXw5Tn0Lb7Yc3Hd9Js2Pf6Gm4A");
        let said = place.load().unwrap_or_else(|error| panic!("{database}: {error}")).warnings;
        said.into_iter().filter(|said| said.starts_with("databases.")).collect()
    };
    for url in [
        "postgres://u:s3cr3t@db.example/d",
        "postgres://u:s3cr3t@10.0.0.1/d",
        "postgres://u:s3cr3t@[2001:db8::1]/d",
        "postgres://u:s3cr3t@localhost.example/d",
        "postgres://u:s3cr3t@localhost/d?host=db.example",
        "postgres://u:s3cr3t@localhost/d?hostaddr=10.0.0.1",
    ] {
        let disabled = format!("url = \"{url}\", ssl_mode = \"disable\"");
        let said = noted("production", &disabled);
        assert!(
            matches!(&said[..], [note] if note.starts_with("databases.tenant.ssl_mode: ")),
            "{url}: {said:?}"
        );
        assert!(!said[0].contains("s3cr3t") && !said[0].contains("example"), "{said:?}");
        assert_eq!(noted("development", &disabled), [""; 0], "{url}");
        assert_eq!(
            noted("production", &format!("url = \"{url}\", ssl_mode = \"require\"")),
            [""; 0],
            "{url}"
        );
    }
    for url in [
        "postgres://127.0.0.1/d",
        "postgres://127.1.2.3:5432/d",
        "postgres://[::1]/d",
        "postgres://LocalHost/d",
        "postgres://db.localhost/d",
        "postgres://%2Frun%2Fpostgresql/d",
        "postgres:///d?host=/run/postgresql",
        "postgres://db.example/d?hostaddr=127.0.0.1",
        "",
    ] {
        assert_eq!(noted("production", &format!("url = \"{url}\"")), [""; 0], "{url}");
    }
}

#[test]
fn a_library_that_is_not_there_is_refused() {
    refused(
        "providers.parsing.pdfium = \"/no/such.so\"",
        "providers.parsing.pdfium: there is no file /no/such.so (in /here/okt.toml:1)",
    );
}

#[test]
fn a_model_in_use_without_its_key_is_a_warning_that_names_the_variable() {
    let warned = |text: &str, env: &[(&str, &str)]| {
        let place =
            Place::with(&format!("{text}\n[[providers.ai.models]]\nid = \"m\"\nprovider = \"cloud\""));
        let place = env.iter().fold(place, |place, (name, value)| place.set(name, value));
        place.load().unwrap_or_else(|error| panic!("{error}")).warnings
    };
    let used = "providers.decomposition.fact_extraction.model = \"m\"";
    assert_eq!(
        warned(used, &[]),
        ["providers.ai.cloud.api_key: is empty, and api.openai.com wants a key for m \
          (providers.decomposition.fact_extraction.model); set LLM_CLOUD_API_KEY"]
    );
    assert_eq!(warned(used, &[("LLM_CLOUD_API_KEY", "k")]), [""; 0]);
    assert_eq!(warned("", &[]), [""; 0], "nobody uses it");
    let here = [("SVC__PROVIDERS__AI__CLOUD__BASE_URL", "http://127.0.0.1:1/v1")];
    assert_eq!(warned(used, &here), [""; 0], "a server of one's own may want none");
    let local = Place::with(&format!("{used}\n[[providers.ai.models]]\nid = \"m\"\nprovider = \"local\""));
    assert_eq!(
        local.load().unwrap().warnings,
        [
            "providers.ai.local.base_url: is empty, so m (providers.decomposition.fact_extraction.model) can't be \
          asked; set LLM_LOCAL_BASE_URL"
        ]
    );
}

#[test]
fn metrics_are_served_where_they_are_asked_for() {
    use crate::{Metrics, Mode};

    let mut config = crate::Config::default();
    let main = std::net::SocketAddr::new(config.server.host, config.server.port);
    assert_eq!(config.metrics(), Metrics::Main);
    config.mode = Mode::Production;
    assert_eq!(config.metrics(), Metrics::Nowhere);
    config.server.metrics_addr = Some(main);
    assert_eq!(config.metrics(), Metrics::Main);
    let other = std::net::SocketAddr::new(config.server.host, 9090);
    config.server.metrics_addr = Some(other);
    assert_eq!(config.metrics(), Metrics::At(other));
}

#[test]
fn a_reranker_is_a_model_of_the_catalogue_that_does_nothing_else() {
    let entry = "providers.ai.models = [{ id = \"mine\", provider = \"cloud\", search_cost_per_1k = 2.0 }]";
    refused(
        "search.rerank.model = \"mine\"",
        "search.rerank.model: no model in providers.ai.models is named \"mine\" (in /here/okt.toml:1)",
    );
    refused(
        &format!("search.rerank.model = \"mine\"\nproviders.synthesis.model = \"mine\"\n{entry}"),
        "search.rerank.model: must be a model that only ranks texts, and not that of providers.synthesis.model too \
         (in /here/okt.toml:1)",
    );
    let text = format!(
        "search.rerank = {{ model = \"mine\", url = \"https://rank.example.org/v1\", api_key = \"very-secret\" }}\n{entry}"
    );
    let loaded = Place::with(&text).load().unwrap();
    assert!(!format!("{:?}", loaded.config).contains("very-secret"));
    assert!(Place::new().load().unwrap().config.search.rerank.model.is_empty(), "off by default");
}

#[test]
fn each_embedding_model_has_its_own_prefixes() {
    refused(
        "providers.embedding.query_prefix = \"query: \"",
        "providers.embedding.query_prefix: is for a model in providers.embedding.path; one of the catalogue has its own, \
         in providers.ai.models (in /here/okt.toml:1)",
    );
    let text = "providers.embedding = { model = \"e5\", dimensions = 768 }\nproviders.ai.models = [{ id = \"e5\", provider = \
                \"local\", query_prefix = \"query: \", passage_prefix = \"passage: \" }]";
    let providers = Place::with(text).load().unwrap().config.providers;
    assert_eq!(
        (providers.passage_prefix(), providers.ai.models[0].query_prefix.as_str()),
        ("passage: ", "query: ")
    );
    assert_eq!(Place::new().load().unwrap().config.providers.passage_prefix(), "");
}

#[test]
fn words_count_for_as_much_as_the_embedding_model_says() {
    let model = |rest: &str| {
        format!(
            "providers.embedding = {{ model = \"e5\", dimensions = 768 }}\n\
             providers.ai.models = [{{ id = \"e5\", provider = \"local\"{rest} }}]"
        )
    };
    let weight = |text: &str| Place::with(text).load().unwrap().config.lexical_weight();
    assert_eq!(Place::new().load().unwrap().config.lexical_weight(), Some(0.7), "the built-in one");
    assert_eq!(weight(&model(", lexical_weight = 0.3")), Some(0.3));
    assert_eq!(weight(&model("")), None);
    let text = model(", lexical_weight = 1.5");
    assert!(Place::with(&text).load().is_err(), "more than all");
}
