use std::fmt::Write;
use std::process::Command;

use okt_testkit::client::{Answer, client};
use okt_testkit::db::TestDatabase;
use okt_testkit::process::Process;

use crate::OKT;

/// Every key that holds a secret, with a value that stands nowhere else.
const PLANTED: &[(&str, &str)] = &[
    ("AUTH_JWTSECRET", "planted-jwt-secret-0123456789abcdef0123456789"),
    ("SVC__AUTH__JWT_SECRET_PREVIOUS", "planted-previous-secret-0123456789abcdef01"),
    ("SEARCH_WEB_API_KEY", "planted-search-web-key"),
    ("LLM_GATEWAY_API_KEY", "planted-gateway-key"),
    ("LLM_CLOUD_API_KEY", "planted-cloud-key"),
    ("VECTOR_STORE_API_KEY", "planted-vector-key"),
    ("REGISTRY_API_KEY", "planted-registry-key"),
    ("REGISTRY_READ_API_KEY", "planted-registry-read-key"),
    ("SVC_BOOTSTRAP_DEFAULT_ADMIN_PASSWORD", "planted-admin-password"),
];

/// What a client may send and must not find in our logs.
const SENT: &[&str] =
    &["planted-bearer-token", "planted-cookie", "planted-query-token", "planted-body-password"];

fn hits<'a>(text: &str, secrets: &[&'a str]) -> Vec<&'a str> {
    secrets.iter().copied().filter(|secret| text.contains(secret)).collect()
}

// On two threads, because the collector has to answer while the process is waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn planted_secrets_are_nowhere_in_logs_metrics_traces_and_answers() {
    let database = TestDatabase::empty().await;
    let database_password = database.url().split(':').nth(2).unwrap().split('@').next().unwrap().to_owned();
    assert!(database_password.len() >= 8, "a password worth looking for");
    let mut secrets: Vec<&str> = PLANTED.iter().map(|(_, value)| *value).collect();
    secrets.push(&database_password);

    for format in ["json", "pretty"] {
        let collector = crate::traces::Collector::start().await;
        let mut settings = PLANTED.to_vec();
        settings.extend([
            ("SVC__DATABASES__DEFAULT__URL", database.url()),
            ("SVC__LOG__LEVEL", "trace"),
            ("SVC__LOG__FORMAT", format),
            ("SVC__SERVER__DRAIN_DELAY", "10ms"),
            ("SVC__TELEMETRY__OTLP_ENDPOINT", collector.url.as_str()),
        ]);
        let mut process = Process::spawn(OKT, &settings);
        process.await_listening();
        process.await_ready().await;

        let mut said = String::new();
        for path in [
            "/healthz",
            "/readyz",
            "/metrics",
            "/nowhere",
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
    let folder = tempfile::tempdir().unwrap();
    let url = ("SVC__DATABASES__DEFAULT__URL", "postgres://okt:planted-database-password@127.0.0.1/okt");
    for arguments in [&["show"][..], &["show", "--origin"], &["show", "--json"], &["check"]] {
        let mut command = Command::new(OKT);
        command.arg("config").args(arguments).arg("--config").arg(folder.path()).env_clear();
        let output = command.envs(PLANTED.iter().copied()).env(url.0, url.1).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let said = format!("{output:?}");
        assert!(!said.contains("planted-"), "{said}");
    }
}

/// Errors are where secrets slip out: each of these is wrong because of its secret, or beside one.
#[test]
fn complaints_about_the_configuration_name_the_key_and_not_the_secret() {
    for (name, value) in [
        ("SVC__DATABASES__DEFAULT__URL", "mysql://okt:planted-password@127.0.0.1/okt"),
        ("SVC__DATABASES__DEFAULT__URL", "planted-nonsense"),
        ("AUTH_JWTSECRET", "planted-short"),
        ("SVC__AUTH__JWT_SECRET_PREVIOUS", "planted-short"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(OKT);
        command.arg("serve").arg("--config").arg(folder.path()).env_clear().env(name, value);
        let output = command.output().unwrap();
        assert!(!output.status.success(), "{name}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(name), "{said}");
        assert!(!said.contains("planted"), "{said}");
    }
}
