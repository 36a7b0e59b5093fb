use std::fmt::Write;
use std::fs;
use std::process::Command;

use okt_testkit::client::{Answer, client};
use okt_testkit::db::TestDatabase;
use okt_testkit::process::Process;
use serde_json::Value;

use super::OKT;

/// The one secret that is not made up: tests that serve need the address of a database that is there.
const DATABASE_KEY: &str = "databases.<name>.url";
const DATABASE_VARIABLE: &str = "SVC__DATABASES__DEFAULT__URL";
const DATABASE_URL: &str = "postgres://okt:planted-database-password@127.0.0.1/okt";

/// What only a file can say.
const REGISTRIES: &str = "providers.registries[].";

/// What a client may send and must not find in our logs.
const SENT: &[&str] = &[
    "planted-bearer-token",
    "planted-cookie",
    "planted-query-token",
    "planted-body-password",
    "planted-in-a-path",
];

/// A configuration in which every key that holds a secret has a value that stands nowhere else, except for the address
/// of the database.
struct Planted {
    folder: tempfile::TempDir,
    variables: Vec<(String, String)>,
    secrets: Vec<String>,
}

impl Planted {
    fn everywhere() -> Self {
        let mut file =
            "[[providers.registries]]\nid = \"a\"\nurl = \"https://registry.example\"\n".to_owned();
        let (mut variables, mut secrets) = (Vec::new(), Vec::new());
        for key in secret_keys().into_iter().filter(|key| key != DATABASE_KEY) {
            // The end makes it long enough for every rule, and keeps one from being the beginning of another.
            let secret = format!("planted-{}-kq8Zr1vXw5Tn0Lb7", key.replace(['.', '_', '[', ']'], "-"));
            let secret = match &*key {
                // As long as such keys are.
                "providers.registry.signing_key" => format!("oks_{}", &secret[..43]),
                _ => secret,
            };
            if let Some(last) = key.strip_prefix(REGISTRIES) {
                writeln!(file, "{last} = \"{secret}\"").unwrap();
            } else {
                assert!(
                    !key.contains(['<', '[']),
                    "{key} holds a secret and no variable sets it: plant it in the file"
                );
                variables.push((format!("SVC__{}", key.to_uppercase().replace('.', "__")), secret.clone()));
            }
            secrets.push(secret);
        }
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("okt.toml"), file).unwrap();
        Self { folder, variables, secrets }
    }

    fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    fn secrets(&self) -> impl Iterator<Item = &str> {
        self.secrets.iter().map(String::as_str)
    }

    /// `okt config …` on it.
    fn config(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&*OKT);
        command.arg("config").args(arguments).arg("--config").arg(self.folder.path());
        command.env_clear().envs(self.variables()).env(DATABASE_VARIABLE, DATABASE_URL);
        command
    }
}

/// Every key that holds a secret, with `<name>` for a name that people choose and `[]` for each table of a list.
fn secret_keys() -> Vec<String> {
    fn collect(schema: &Value, key: &str, found: &mut Vec<String>) {
        if schema["writeOnly"] == true {
            found.push(key.to_owned());
        }
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let below = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
            collect(property, &below, found);
        }
        for (part, suffix) in [("additionalProperties", ".<name>"), ("items", "[]")] {
            // It may also be `false`.
            if schema[part].is_object() {
                collect(&schema[part], &format!("{key}{suffix}"), found);
            }
        }
        for branch in schema["anyOf"].as_array().into_iter().flatten() {
            collect(branch, key, found);
        }
    }

    let mut found = Vec::new();
    collect(&okt_config::json_schema(), "", &mut found);
    found
}

/// So that a secret which is added later can't be forgotten below.
#[test]
fn every_key_that_holds_a_secret_is_planted() {
    let keys = secret_keys();
    assert!(keys.len() >= 14, "the schema says less than it did: {keys:?}");
    let output = Planted::everywhere().config(&["show", "--json", "--origin"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    for key in keys {
        let entry = &shown[key.replace("<name>", "default").replace("[]", "[0]")];
        // All of an address is shown but its password.
        let shown = if key == DATABASE_KEY { "postgres://okt:***@127.0.0.1/okt" } else { "***" };
        assert_eq!(entry["value"], shown, "{key} holds a secret and is not planted");
        assert_ne!(entry["origin"], "default", "{key}");
    }
}

fn hits<'a>(text: &str, secrets: &[&'a str]) -> Vec<&'a str> {
    secrets.iter().copied().filter(|secret| text.contains(secret)).collect()
}

// On two threads, because the collector has to answer while the process is waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn planted_secrets_are_nowhere_in_logs_metrics_traces_and_answers() {
    let database = TestDatabase::empty().await;
    let database_password = database.url().split(':').nth(2).unwrap().split('@').next().unwrap().to_owned();
    assert!(database_password.len() >= 8, "a password worth looking for");
    let planted = Planted::everywhere();
    let secrets: Vec<&str> = planted.secrets().chain([database_password.as_str()]).collect();

    for format in ["json", "pretty"] {
        let collector = crate::process::traces::Collector::start().await;
        let mut settings: Vec<(&str, &str)> = planted.variables().collect();
        settings.extend([
            (DATABASE_VARIABLE, database.url()),
            ("SVC__LOG__LEVEL", "trace"),
            ("SVC__LOG__FORMAT", format),
            ("SVC__SERVER__DRAIN_DELAY", "10ms"),
            ("SVC__TELEMETRY__OTLP_ENDPOINT", collector.url.as_str()),
        ]);
        let mut process = Process::serve_in(&*OKT, planted.folder.path(), &settings);
        process.await_ready().await;

        let mut said = String::new();
        for path in [
            "/healthz",
            "/readyz",
            "/metrics",
            "/nowhere",
            "/nowhere/planted-in-a-path",
            "/api/v1/users/planted-in-a-path",
            "/api/v1/openapi.json",
            "/api/v1/repositories/presets",
        ] {
            for method in [axum::http::Method::GET, axum::http::Method::POST] {
                let request = client()
                    .request(method, format!("{}{path}?access_token={}", process.url, SENT[2]))
                    .bearer_auth(SENT[0])
                    .header("cookie", format!("session={}", SENT[1]))
                    .header("x-request-id", "kept-id")
                    .header("content-type", "application/json")
                    .body(format!("{{\"password\":\"{}\"}}", SENT[3]));
                let answer = Answer::of(request).await;
                writeln!(said, "{answer:?}").unwrap();
            }
        }
        process.terminate();
        assert!(process.wait().success());
        let (log, traces) = (process.log(), collector.received());

        assert!(log.contains("TRACE") && log.contains("kept-id"), "the log is at its finest:\n{log}");
        assert!(!traces.is_empty(), "traces were sent");
        for (place, text) in [("log", &log), ("answers", &said), ("traces", &traces)] {
            assert_eq!(hits(text, &secrets), [""; 0], "{place}");
            assert_eq!(hits(text, SENT), [""; 0], "{place}");
        }
    }
}

#[test]
fn config_show_redacts_every_planted_secret() {
    let planted = Planted::everywhere();
    for arguments in [
        &["show"][..],
        &["show", "--origin"],
        &["show", "--json"],
        &["show", "--json", "--origin"],
        &["check"],
    ] {
        let output = planted.config(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let said = format!("{output:?}");
        assert!(!said.contains("planted-"), "{said}");
    }
}

/// Errors are where secrets slip out: each of these is wrong because of its secret, or beside one.
#[test]
fn complaints_about_the_configuration_name_the_key_and_not_the_secret() {
    for (name, value) in [
        (DATABASE_VARIABLE, "mysql://okt:planted-password@127.0.0.1/okt"),
        (DATABASE_VARIABLE, "planted-nonsense"),
        ("AUTH_JWTSECRET", "planted-short"),
        ("SVC__AUTH__JWT_SECRET_PREVIOUS", "planted-short"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(&*OKT);
        command.arg("serve").arg("--config").arg(folder.path()).env_clear().env(name, value);
        let output = command.output().unwrap();
        assert!(!output.status.success(), "{name}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(name), "{said}");
        assert!(!said.contains("planted"), "{said}");
    }
}
