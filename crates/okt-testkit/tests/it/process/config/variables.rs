//! Which layer wins, shown by the origin of each value.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::{SECRET, finish, okt};

/// Name, key, the default as shown, a value for the file (as TOML, and as shown), a value for the variable and how
/// that is shown. Secrets show as `***`, so for them the origin tells.
type Variable = (&'static str, &'static str, &'static str, &'static str, (&'static str, &'static str));

/// Every documented variable.
const VARIABLES: &[Variable] = &[
    ("SEARCH_WEB_API_KEY", "providers.search.web.api_key", r#""""#, r#""***""#, ("k2", r#""***""#)),
    (
        "SEARCH_ACADEMIC_EMAIL",
        "providers.search.academic.email",
        r#""""#,
        r#""a@file""#,
        ("a@env", r#""a@env""#),
    ),
    ("SEARCH_ACADEMIC_API_KEY", "providers.search.academic.api_key", r#""""#, r#""***""#, ("k2", r#""***""#)),
    ("LLM_GATEWAY_API_KEY", "providers.ai.gateway.api_key", r#""""#, r#""***""#, ("k2", r#""***""#)),
    ("LLM_CLOUD_API_KEY", "providers.ai.cloud.api_key", r#""""#, r#""***""#, ("k2", r#""***""#)),
    (
        "LLM_LOCAL_BASE_URL",
        "providers.ai.local.base_url",
        r#""""#,
        r#""http://file/v1""#,
        ("http://env/v1", r#""http://env/v1""#),
    ),
    (
        "OA_RESOLVER_EMAIL",
        "providers.resolution.open_access.email",
        r#""""#,
        r#""b@file""#,
        ("b@env", r#""b@env""#),
    ),
    (
        "SVC_FETCH_IMPERSONATE",
        "providers.resolution.tls.impersonate",
        r#""""#,
        r#""file""#,
        ("env", r#""env""#),
    ),
    (
        "CHALLENGE_SOLVER_URL",
        "providers.resolution.challenge_solver.url",
        r#""""#,
        r#""http://file/v1""#,
        ("http://env/v1", r#""http://env/v1""#),
    ),
    (
        "CHALLENGE_SOLVER_ENDPOINTS",
        "providers.resolution.challenge_solver.endpoints",
        "[]",
        r#"["http://file/v1"]"#,
        ("http://a/v1, http://b/v1", r#"["http://a/v1","http://b/v1"]"#),
    ),
    (
        "CHALLENGE_SOLVER_MAX_CONCURRENCY",
        "providers.resolution.challenge_solver.max_concurrency",
        "0",
        "1",
        ("2", "2"),
    ),
    ("VECTOR_STORE_HOST", "providers.vector_store.host", r#""""#, r#""file""#, ("env", r#""env""#)),
    ("VECTOR_STORE_PORT", "providers.vector_store.port", "6334", "7001", ("7002", "7002")),
    ("VECTOR_STORE_API_KEY", "providers.vector_store.api_key", r#""""#, r#""***""#, ("k2", r#""***""#)),
    (
        "REGISTRY_URL",
        "providers.registry.url",
        r#""""#,
        r#""https://file/api""#,
        ("https://env/api", r#""https://env/api""#),
    ),
    ("REGISTRY_AUTH_MODE", "providers.registry.auth_mode", r#""none""#, r#""bearer""#, ("hmac", r#""hmac""#)),
    ("REGISTRY_API_KEY", "providers.registry.api_key", r#""""#, r#""***""#, ("k2", r#""***""#)),
    ("REGISTRY_READ_API_KEY", "providers.registry.read_api_key", r#""""#, r#""***""#, ("k2", r#""***""#)),
    ("AUTH_JWTSECRET", "auth.jwt_secret", r#""""#, r#""***""#, (SECRET, r#""***""#)),
    (
        "SVC_OAUTH_ISSUER",
        "oauth.issuer",
        r#""""#,
        r#""https://file/a""#,
        ("https://env/a", r#""https://env/a""#),
    ),
    ("SVC_BOOTSTRAP_AUTO_PROMOTE", "bootstrap.auto_promote_first_user", "true", "false", ("TRUE", "true")),
    (
        "SVC_BOOTSTRAP_DEFAULT_ADMIN_EMAIL",
        "bootstrap.default_admin_email",
        r#""""#,
        r#""c@file""#,
        ("c@env", r#""c@env""#),
    ),
    (
        "SVC_BOOTSTRAP_DEFAULT_ADMIN_PASSWORD",
        "bootstrap.default_admin_password",
        r#""""#,
        r#""***""#,
        (SECRET, r#""***""#),
    ),
    (
        "SVC_BOOTSTRAP_DEFAULT_ADMIN_DISPLAY_NAME",
        "bootstrap.default_admin_display_name",
        r#""""#,
        r#""File""#,
        ("Env", r#""Env""#),
    ),
    ("SVC_AUDIT_RETENTION_DAYS", "audit.retention_days", "30", "31", ("32", "32")),
];

#[test]
fn every_documented_variable_beats_the_file_which_beats_the_default() {
    let dir = tempfile::tempdir().unwrap();
    let shown = show(dir.path(), &[]);
    for (name, key, default, ..) in VARIABLES {
        assert_eq!(shown[*key], (default.to_string(), "default".into()), "{name}");
    }

    let file = dir.path().join("okt.toml");
    let lines: Vec<String> = VARIABLES
        .iter()
        .map(|(_, key, _, in_file, _)| format!("{key} = {}", in_file.replace("***", SECRET)))
        .collect();
    fs::write(&file, lines.join("\n")).unwrap();
    let from_file = format!("okt.toml ({})", file.display());
    let shown = show(dir.path(), &[]);
    for (name, key, _, in_file, _) in VARIABLES {
        assert_eq!(shown[*key], (in_file.to_string(), from_file.clone()), "{name}");
    }

    // One at a time, so that no variable can pass for another.
    for (name, key, _, _, (value, in_env)) in VARIABLES {
        let shown = show(dir.path(), &[(name, value)]);
        assert_eq!(shown[*key], (in_env.to_string(), format!("environment {name}")), "{name}");
        let others =
            shown.iter().filter(|(other, (_, origin))| other != key && origin.starts_with("environment"));
        assert_eq!(others.count(), 0, "{name} set more than {key}");
        assert_eq!(show(dir.path(), &[(name, "")])[*key].1, from_file, "{name} is empty, so it is not set");
    }
}

#[test]
fn the_promotion_switch_takes_words_and_digits_in_any_case() {
    let dir = tempfile::tempdir().unwrap();
    for (value, expected) in [("TRUE", "true"), ("1", "true"), ("False", "false"), ("0", "false")] {
        let shown = show(dir.path(), &[("SVC_BOOTSTRAP_AUTO_PROMOTE", value)]);
        assert_eq!(shown["bootstrap.auto_promote_first_user"].0, expected, "{value}");
    }
}

#[test]
fn any_key_can_be_set_by_its_path_but_a_name_of_its_own_wins() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("okt.toml"), "server.port = 9000").unwrap();
    let shown = show(
        dir.path(),
        &[
            ("SVC__SERVER__PORT", "9001"),
            ("SVC__SERVER__TRUSTED_PROXIES", "10.0.0.0/8, ::1/128"),
            ("SVC__DATABASES__TENANT_1__URL", "postgres://u:s3cr3t@h/d"),
            ("SVC__DATABASES__TENANT_1__MAX_CONNS", "5"),
            ("SVC__TASK__TIMEOUTS__EMBED_FACTS", "90s"),
            ("SVC__AUDIT__RETENTION_DAYS", "7"),
            ("SVC_AUDIT_RETENTION_DAYS", "8"),
        ],
    );
    let of = |key: &str| (shown[key].0.as_str(), shown[key].1.as_str());
    assert_eq!(of("server.port"), ("9001", "environment SVC__SERVER__PORT"));
    assert_eq!(of("server.trusted_proxies").0, r#"["10.0.0.0/8","::1/128"]"#);
    let address = (r#""postgres://u:***@h/d""#, "environment SVC__DATABASES__TENANT_1__URL");
    assert_eq!(of("databases.tenant_1.url"), address, "all but the password is shown");
    assert_eq!(of("databases.tenant_1.max_conns").0, "5");
    assert_eq!(of("databases.tenant_1.ssl_mode"), (r#""disable""#, "default"));
    assert_eq!(of("task.timeouts.embed_facts").0, r#""1m30s""#);
    assert_eq!(of("audit.retention_days"), ("8", "environment SVC_AUDIT_RETENTION_DAYS"));
}

/// What `okt config show --origin` says: key → value and origin.
pub fn show(dir: &Path, env: &[(&str, &str)]) -> BTreeMap<String, (String, String)> {
    let mut command = okt(dir);
    command.args(["config", "show", "--origin", "--config"]).arg(dir).envs(env.iter().copied());
    let ended = finish(command);
    assert!(ended.success, "{env:?}: {}", ended.stderr);
    assert!(!ended.stdout.contains("s3cr3t"), "a secret is shown");
    let parse = |line: &str| {
        let (key, rest) = line.split_once(" = ")?;
        let (value, origin) = rest.rsplit_once("  # ")?;
        Some((key.to_owned(), (value.to_owned(), origin.to_owned())))
    };
    ended.stdout.lines().map(|line| parse(line).unwrap_or_else(|| panic!("can't read {line}"))).collect()
}
