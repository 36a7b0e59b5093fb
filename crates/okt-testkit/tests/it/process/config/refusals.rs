//! What stops the service, each with its key and its place.

use std::fs;

use super::{SECRET, finish, okt};

/// Where the message must point to.
enum Place {
    File,
    Variable(&'static str),
}
use Place::{File, Variable};

/// What is wrong: text of the override file, environment, key in the message, place in the message.
type Bad = (&'static str, &'static [(&'static str, &'static str)], &'static str, Place);

const BAD: &[Bad] = &[
    // Form.
    ("[server\nport = 1", &[], "line 1", File),
    ("server.port = 1\nserver.port = 2", &[], "line 2", File),
    ("auth.jwt_secret = \"SECRET", &[], "line 1", File),
    ("auth.jwt_secret = SECRET", &[], "line 1", File),
    // Unknown keys.
    ("[servr]\nport = 1", &[], "servr: unknown key; did you mean `server`?", File),
    ("[server]\nprot = 1", &[], "server.prot: unknown key; did you mean `port`?", File),
    ("jwt_secret = \"SECRET\"", &[], "jwt_secret: unknown key; did you mean `auth.jwt_secret`?", File),
    ("databases.default.password = \"SECRET\"", &[], "databases.default.password", File),
    (
        "task.queues.embed_fact = 1",
        &[],
        "task.queues.embed_fact: unknown key; did you mean `embed_facts`?",
        File,
    ),
    ("task.timeouts.embed_fact = \"1h\"", &[], "task.timeouts.embed_fact", File),
    ("", &[("SVC__SERVER__PROT", "1")], "did you mean `SVC__SERVER__PORT`?", Variable("SVC__SERVER__PROT")),
    ("", &[("SVC__AUTH__SECRET", "SECRET")], "auth.secret", Variable("SVC__AUTH__SECRET")),
    // Types, ranges and words.
    ("server.port = \"abc\"", &[], "server.port: expected a whole number from 0 to 65535, got \"abc\"", File),
    ("server.port = 65536", &[], "server.port", File),
    ("", &[("SVC__SERVER__PORT", "abc")], "server.port", Variable("SVC__SERVER__PORT")),
    ("server = 5", &[], "server: expected a table", File),
    ("server.host = \"localhost\"", &[], "server.host", File),
    ("server.read_timeout = 15", &[], "server.read_timeout", File),
    ("server.read_timeout = \"0s\"", &[], "server.read_timeout", File),
    ("server.write_timeout = \"0s\"", &[], "server.write_timeout", File),
    ("server.header_timeout = \"0s\"", &[], "server.header_timeout", File),
    ("server.drain_timeout = \"0s\"", &[], "server.drain_timeout", File),
    ("server.max_in_flight = 0", &[], "server.max_in_flight", File),
    ("server.max_in_flight = 1000001", &[], "server.max_in_flight", File),
    // One more than a semaphore of tokio holds.
    (
        "",
        &[("SVC__SERVER__MAX_CONNECTIONS", "2305843009213693952")],
        "server.max_connections",
        Variable("SVC__SERVER__MAX_CONNECTIONS"),
    ),
    ("server.trusted_proxies = [\"10.0.0.1\"]", &[], "server.trusted_proxies[0]", File),
    ("server.metrics_addr = \"127.0.0.1\"", &[], "server.metrics_addr", File),
    ("server.limits.json_depth = 0", &[], "server.limits.json_depth", File),
    ("rate_limits.api_per_minute = -1", &[], "rate_limits.api_per_minute", File),
    (
        "log.level = \"loud\"",
        &[],
        "log.level: expected one of `error`, `warn`, `info`, `debug`, `trace`",
        File,
    ),
    ("mode = \"prod\"", &[], "mode: expected one of `development`, `production`", File),
    ("telemetry.otlp_endpoint = \"collector:4318\"", &[], "telemetry.otlp_endpoint", File),
    ("audit.retention_days = 0", &[], "audit.retention_days", File),
    (
        "",
        &[("SVC_AUDIT_RETENTION_DAYS", "many")],
        "audit.retention_days",
        Variable("SVC_AUDIT_RETENTION_DAYS"),
    ),
    (
        "",
        &[("SVC_BOOTSTRAP_AUTO_PROMOTE", "maybe")],
        "bootstrap.auto_promote_first_user: expected true or false",
        Variable("SVC_BOOTSTRAP_AUTO_PROMOTE"),
    ),
    ("search.hybrid.min_score = 1.5", &[], "search.hybrid.min_score", File),
    ("providers.dedup.threshold = -0.1", &[], "providers.dedup.threshold", File),
    (
        "providers.dedup.policy = \"judge\"",
        &[],
        "providers.dedup.judge_model: must name a model of providers.ai.models, which policy = \"judge\" asks",
        File,
    ),
    (
        "",
        &[("SVC__PROVIDERS__DEDUP__POLICY", "judge"), ("SVC__PROVIDERS__DEDUP__JUDGE_MODEL", "sage")],
        "providers.dedup.judge_model",
        Variable("SVC__PROVIDERS__DEDUP__JUDGE_MODEL"),
    ),
    ("providers.embedding.dimensions = 0", &[], "providers.embedding.dimensions", File),
    ("providers.synthesis.thinking_level = \"deep\"", &[], "providers.synthesis.thinking_level", File),
    ("", &[("VECTOR_STORE_PORT", "grpc")], "providers.vector_store.port", Variable("VECTOR_STORE_PORT")),
    (
        "",
        &[("LLM_LOCAL_BASE_URL", "localhost:1234")],
        "providers.ai.local.base_url",
        Variable("LLM_LOCAL_BASE_URL"),
    ),
    ("providers.ai.gateway.base_url = \"https://u:SECRET@h\"", &[], "providers.ai.gateway.base_url", File),
    ("providers.ai.gateway = \"SECRET\"", &[], "providers.ai.gateway: expected a table", File),
    ("auth.jwt_secret = [\"SECRET\"]", &[], "auth.jwt_secret: expected text", File),
    // Secrets and issuer.
    ("auth.jwt_secret = \"s3cr3t-short\"", &[], "auth.jwt_secret: must have at least 32 bytes", File),
    ("", &[("AUTH_JWTSECRET", "s3cr3t-short")], "auth.jwt_secret", Variable("AUTH_JWTSECRET")),
    ("mode = \"production\"", &[], "auth.jwt_secret: must be set in production mode", File),
    (
        "mode = \"production\"",
        &[("AUTH_JWTSECRET", "changeme-SECRET")],
        "auth.jwt_secret: looks like a placeholder",
        Variable("AUTH_JWTSECRET"),
    ),
    (
        "mode = \"production\"\noauth.issuer = \"http://okt.example\"",
        &[("AUTH_JWTSECRET", SECRET)],
        "oauth.issuer: must be https",
        File,
    ),
    ("", &[("SVC_OAUTH_ISSUER", "https://okt.example/?a=b")], "oauth.issuer", Variable("SVC_OAUTH_ISSUER")),
    ("api_keys.default_ttl = 91", &[], "api_keys.default_ttl", File),
    (
        "",
        &[("SVC_BOOTSTRAP_DEFAULT_ADMIN_EMAIL", "nobody")],
        "bootstrap.default_admin_email",
        Variable("SVC_BOOTSTRAP_DEFAULT_ADMIN_EMAIL"),
    ),
    (
        "",
        &[("SVC_BOOTSTRAP_DEFAULT_ADMIN_PASSWORD", "s3cr3t")],
        "bootstrap.default_admin_password",
        Variable("SVC_BOOTSTRAP_DEFAULT_ADMIN_PASSWORD"),
    ),
    // Databases.
    ("databases.default.url = \"\"", &[], "databases.default.url: must be set", File),
    ("databases.default.url = \"mysql://u:SECRET@h/d\"", &[], "databases.default.url", File),
    ("databases.default.url = \"postgres://u:SECRET@h\"", &[], "databases.default.url", File),
    ("databases.default = \"postgres://u:SECRET@h/d\"", &[], "databases.default: expected a table", File),
    (
        "",
        &[("SVC__DATABASES__TASKS__URL", "postgres://u:SECRET@h/d?sslmode=disable")],
        "databases.tasks.url",
        Variable("SVC__DATABASES__TASKS__URL"),
    ),
    ("databases.default.ssl_mode = \"prefer\"", &[], "databases.default.ssl_mode", File),
    (
        "databases.default = { ssl_mode = \"verify-full\", ssl_root_cert = \"/no/such.pem\" }",
        &[],
        "databases.default.ssl_root_cert",
        File,
    ),
    ("databases.Tenant.url = \"postgres://h/d\"", &[], "databases.Tenant", File),
    ("databases.default.max_conns = 0", &[], "databases.default.max_conns", File),
    ("databases.default.max_conns = 10001", &[], "databases.default.max_conns", File),
    ("databases.default.acquire_timeout = \"0s\"", &[], "databases.default.acquire_timeout", File),
    ("databases.default.acquire_timeout = \"301s\"", &[], "databases.default.acquire_timeout", File),
    ("databases.default.statement_timeout = \"25d\"", &[], "databases.default.statement_timeout", File),
    (
        "databases.default.worker_statement_timeout = \"25d\"",
        &[],
        "databases.default.worker_statement_timeout",
        File,
    ),
    ("databases.default.lock_timeout = \"577h\"", &[], "databases.default.lock_timeout", File),
    (
        "",
        &[("SVC__DATABASES__TASKS__IDLE_IN_TRANSACTION_TIMEOUT", "36500d")],
        "databases.tasks.idle_in_transaction_timeout",
        Variable("SVC__DATABASES__TASKS__IDLE_IN_TRANSACTION_TIMEOUT"),
    ),
    ("system.database = \"sytem\"", &[], "system.database", File),
    ("isolation.default_database = \"defualt\"", &[], "did you mean `default`?", File),
    ("isolation.allowed_databases = [\"default\", \"none\"]", &[], "isolation.allowed_databases", File),
    (
        "isolation.allowed_databases = [\"default\", \"tasks\"]",
        &[],
        "isolation.allowed_databases: \"tasks\" is set apart for the job queue",
        File,
    ),
    (
        "isolation.allowed_databases = [\"queue\"]\ndatabases.queue.url = \"postgres://h/d\"",
        &[("SVC__TASK__DATABASE", "queue")],
        "isolation.allowed_databases: \"queue\" is set apart for the job queue",
        File,
    ),
    ("task.database = \"task\"", &[], "task.database", File),
    // Settings that must fit each other.
    ("task.heartbeat_interval = \"10m\"", &[], "task.heartbeat_interval", File),
    ("task.job_timeout = \"20m\"", &[], "4 attempts × 5m + waits of 2s + 4s + 8s = 20m14s", File),
    ("task.timeouts.annotate_report = \"4m\"", &[], "providers.llm_retry.per_call_timeout", File),
    (
        "",
        &[("SVC__PROVIDERS__LLM_RETRY__MAX_ATTEMPTS", "60")],
        "task.job_timeout",
        Variable("SVC__PROVIDERS__LLM_RETRY__MAX_ATTEMPTS"),
    ),
    ("concepts.min_shared_fact_count = 7", &[], "concepts.min_shared_fact_count", File),
    (
        "providers.decomposition.chunking.chunk_overlap = 2000",
        &[],
        "providers.decomposition.chunking.chunk_overlap",
        File,
    ),
    ("providers.search.web.kind = \"searxng\"", &[], "providers.search.web.base_url", File),
    (
        "",
        &[("REGISTRY_URL", "https://r.example"), ("REGISTRY_AUTH_MODE", "bearer")],
        "providers.registry.api_key",
        Variable("REGISTRY_AUTH_MODE"),
    ),
    ("", &[("REGISTRY_AUTH_MODE", "basic")], "providers.registry.auth_mode", Variable("REGISTRY_AUTH_MODE")),
    ("[[providers.registries]]\nid = \"a\"", &[], "providers.registries[0].url: is required", File),
    (
        "[[providers.registries]]\nid = \"a\"\nurl = \"https://a.example\"\n\
         [[providers.registries]]\nid = \"a\"\nurl = \"https://b.example\"",
        &[],
        "providers.registries[1].id",
        File,
    ),
    ("providers.synthesis.model = \"big\"", &[], "providers.synthesis.model", File),
    ("default_repository_preset = \"generel\"", &[], "did you mean `general`?", File),
    ("repository_presets.general.contexts = \"some\"", &[], "repository_presets.general.contexts", File),
    ("repository_presets.general.contexts = [\"diseese\"]", &[], "did you mean `Disease`?", File),
    (
        "repository_presets.general.providers.search = [\"bing\"]",
        &[],
        "repository_presets.general.providers.search[0]",
        File,
    ),
];

#[test]
fn a_wrong_configuration_stops_the_service_and_says_where_to_mend_it() {
    const { assert!(BAD.len() >= 40) };
    for (text, env, key, place) in BAD {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("okt.toml");
        fs::write(&file, text.replace("SECRET", SECRET)).unwrap();
        let mut command = okt(dir.path());
        command.args(["serve", "--config"]).arg(dir.path());
        for (name, value) in *env {
            command.env(name, value.replace("SECRET", SECRET));
        }

        let ended = finish(command);
        let case = format!("{text} {env:?} gave:\n{}", ended.stderr);
        assert!(!ended.success, "{case}");
        assert!(ended.stderr.contains(key), "no {key} in {case}");
        let place = match place {
            File => file.display().to_string(),
            Variable(name) => format!("environment {name}"),
        };
        assert!(ended.stderr.contains(&place), "no {place} in {case}");
        assert!(!ended.stderr.contains("s3cr3t") && !ended.stdout.contains("s3cr3t"), "a secret in {case}");
        assert!(!dir.path().join("okt.dev-secret").exists(), "it went too far: {case}");
    }
}

#[test]
fn all_problems_are_told_at_once() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("okt.toml"), "mode = \"production\"\n[server]\nport = \"x\"\nnope = 1\n")
        .unwrap();
    let mut command = okt(dir.path());
    command.args(["config", "check", "--config"]).arg(dir.path());
    let ended = finish(command);
    assert!(!ended.success);
    for key in ["auth.jwt_secret: ", "server.nope: ", "server.port: "] {
        assert!(ended.stderr.contains(key), "{key} is missing in {}", ended.stderr);
    }
}
