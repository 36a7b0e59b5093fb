//! Secrets that the service itself gives out: shown once, and nowhere else.

mod flow;

use std::fmt::Write;
use std::process::Command;

use okt_testkit::client::{Answer, client};
use okt_testkit::db::TestDatabase;
use okt_testkit::process::Process;
use serde_json::{Value, json};

use self::flow::Flow;
use super::OKT;
use crate::process::traces::Collector;

const PASSWORD: &str = "planted-password-of-ada";
const WRONG: &str = "planted-wrong-password";

/// Everything the service gave out or was told in confidence.
#[derive(Default)]
struct Issued(Vec<String>);

impl Issued {
    fn take(&mut self, body: &Value) -> String {
        for field in ["token", "refresh_token"] {
            self.0.extend(body[field].as_str().map(str::to_owned));
        }
        body["token"].as_str().unwrap().to_owned()
    }

    /// What is in this field.
    fn field(&mut self, body: &Value, name: &str) -> String {
        let secret = body[name].as_str().unwrap().to_owned();
        self.0.push(secret.clone());
        secret
    }
}

// On two threads, because the collector has to answer while the process is waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_that_was_ever_issued_is_in_logs_metrics_traces_errors_or_a_dump() {
    let (database, collector) = (TestDatabase::empty().await, Collector::start().await);
    let mut process = Process::serve(
        &*OKT,
        &[
            ("SVC__DATABASES__DEFAULT__URL", database.url()),
            ("SVC__LOG__LEVEL", "trace"),
            ("SVC__SERVER__DRAIN_DELAY", "10ms"),
            ("SVC__TELEMETRY__OTLP_ENDPOINT", collector.url.as_str()),
        ],
    );
    let (client, base) = (client(), format!("{}/api/v1", process.url));
    let post = |path: &str, body: Value| client.post(format!("{base}{path}")).json(&body);
    let mut issued = Issued(vec![PASSWORD.to_owned(), WRONG.to_owned()]);
    let mut errors = String::new();

    let account = json!({"email": "ada@example.org", "password": PASSWORD, "name": "Ada"});
    let registered = Answer::of(post("/auth/register", account.clone())).await.json();
    let token = issued.take(&registered);
    let login = json!({"email": "ada@example.org", "password": PASSWORD});
    issued.take(&Answer::of(post("/auth/login", login.clone())).await.json());
    let refresh = json!({"refresh_token": registered["refresh_token"]});
    issued.take(&Answer::of(post("/auth/refresh", refresh.clone())).await.json());
    let cookie = Answer::of(post(
        "/auth/login",
        json!({"email": "ada@example.org", "password": PASSWORD, "cookie": true}),
    ))
    .await;
    issued.take(&cookie.json());
    let in_cookie = cookie.header("set-cookie").split(['=', ';']).nth(1).unwrap().to_owned();
    issued.0.push(in_cookie);
    let key = post("/users/me/api-keys", json!({"name": "k", "permissions": ["user:read"]}));
    let key = Answer::of(key.bearer_auth(&token).header("idempotency-key", "once")).await;
    let api_key = issued.take(&key.json());
    assert_eq!(Answer::of(client.get(format!("{base}/admin/users")).bearer_auth(&api_key)).await.status, 200);

    for refused in [
        post("/auth/register", account),
        post("/auth/login", json!({"email": "ada@example.org", "password": WRONG})),
        post("/auth/login", json!({"email": "ada@example.org", "password": PASSWORD, "extra": WRONG})),
        post("/auth/refresh", json!({"refresh_token": format!("{}x", issued.0[3])})),
        post("/auth/logout", json!({})).bearer_auth(format!("{token}x")),
        client.get(format!("{base}/users/me?access_token={token}")),
        client.get(format!("{base}/admin/audit")).bearer_auth(&api_key),
        post("/users/me/api-keys", json!({})).bearer_auth(&api_key),
    ] {
        let answer = Answer::of(refused).await;
        assert!(answer.status.is_client_error(), "{answer:?}");
        writeln!(errors, "{answer:?}").unwrap();
    }
    let clients = Flow { url: &process.url, issued: &mut issued, errors: &mut errors }.drive().await;
    let metrics = Answer::of(client.get(format!("{}/metrics", process.url))).await.text;
    let audit =
        Answer::of(client.get(format!("{base}/admin/audit?limit=200")).bearer_auth(&token)).await.text;

    process.terminate();
    assert!(process.wait().success());
    let dump = Command::new(std::path::Path::new(&std::env::var("OKT_TEST_PG_BIN").unwrap()).join("pg_dump"))
        .args(["--inserts", "-d", database.url()])
        .output()
        .unwrap();
    assert!(dump.status.success(), "{dump:?}");
    let dump = String::from_utf8_lossy(&dump.stdout).into_owned();
    assert!(dump.contains("ada@example.org") && dump.contains("argon2id"), "the dump has the rows");
    assert!(clients.iter().all(|id| dump.contains(id)), "the dump has the clients");

    assert!(issued.0.len() >= 40, "{}", issued.0.len());
    let (log, traces) = (process.log(), collector.received());
    assert!(
        log.contains("/oauth/token") && traces.contains("/oauth/token"),
        "both have the requests of clients"
    );
    for (place, text) in [
        ("log", &log),
        ("metrics", &metrics),
        ("traces", &traces),
        ("errors", &errors),
        ("audit", &audit),
        ("dump", &dump),
    ] {
        for secret in &issued.0 {
            assert!(
                !text.contains(secret.as_str()),
                "{place} holds a secret that begins with {}",
                &secret[..12]
            );
            // bytea is dumped as hex.
            let hex = hex::encode(secret);
            assert!(!text.contains(&hex), "{place} holds a secret in hex");
        }
        if place != "dump" {
            assert!(!text.contains("ada@example.org"), "{place} holds an e-mail address");
        }
    }
}
