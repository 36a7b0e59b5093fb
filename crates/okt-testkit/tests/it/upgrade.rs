//! Databases that older versions left behind, with data in them: each upgrades and answers as before. `scripts/upgrade-dump`
//! makes one.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use flate2::read::GzDecoder;
use http::Method;
use okt_testkit::client::{Answer, client};
use okt_testkit::db::{TestDatabase, run};
use okt_testkit::process::Process;
use serde_json::{Value, json};
use sqlx::Connection as _;

/// To each of the new processes.
const REQUESTS: usize = 500;

#[tokio::test]
async fn the_data_of_every_older_version_is_there_after_the_upgrade() {
    let mut dumps = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "gz") {
            upgraded(&path).await;
            dumps += 1;
        }
    }
    assert!(dumps > 0, "there is nothing to upgrade from");
}

/// A worker of the release before still runs: it would fail at every column that has another name now.
#[tokio::test]
async fn nothing_is_migrated_under_the_hands_of_processes_that_can_not_work_with_it() {
    let database = TestDatabase::empty().await;
    restore(&database, &a_dump()).await;
    let mut worker = database.connect().await;
    let there = "INSERT INTO okt_tasks.workers (id, name, kinds) VALUES (-7, 'pid 4711', '{}')";
    run(&mut worker, there).await;
    run(&mut worker, "SELECT pg_advisory_lock(-7)").await;
    let applied = async || -> i64 {
        let applied = "SELECT (SELECT count(*) FROM okt_system.migrations)
                            + (SELECT count(*) FROM okt_repository.migrations)
                            + (SELECT count(*) FROM okt_tasks.migrations)";
        sqlx::query_scalar(applied).fetch_one(&mut database.connect().await).await.unwrap()
    };
    let before = applied().await;
    let (status, said) = migrate(&database);
    assert!(!status, "{said}");
    for part in ["pid 4711", "Stop all okt processes", "`okt migrate`", "0005 subjects"] {
        assert!(said.contains(part), "{said}");
    }
    let mut process = Process::spawn(okt_testkit::jobs::program(), &database.settings());
    assert_eq!(process.wait().code(), Some(1));
    assert!(process.log().contains("Stop all okt processes"), "{}", process.log());
    assert_eq!(applied().await, before);

    // It was stopped, and could not say so.
    worker.close().await.unwrap();
    let (status, said) = migrate(&database);
    assert!(status, "{said}");
    assert!(applied().await > before);
}

/// Two new processes come up at once on the rows of an older version; one migrates them. Whoever waits until one of them is
/// ready is served from then on, whatever is made anew of the rows in the background.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_for_the_new_processes_is_served_from_then_on() {
    let database = TestDatabase::empty().await;
    let dump = a_dump();
    restore(&database, &dump).await;
    let mut settings = database.settings().to_vec();
    // The facts of the dump have vectors of the built-in model.
    settings.pop();
    settings.push(("SVC__RATE_LIMITS__API_PER_MINUTE", "0"));
    let expected = expected_of(&dump);
    let key = expected["key"].as_str().unwrap();
    let facts = format!("/api/v1/repositories/{}/facts", expected["repository"].as_str().unwrap());

    let mut processes = [(); 2].map(|()| Process::spawn(okt_testkit::jobs::program(), &settings));
    let mut clients = Vec::new();
    for process in &mut processes {
        process.await_listening();
        process.await_ready().await;
        clients.push(tokio::spawn(served(process.url.clone(), facts.clone(), key.to_owned())));
    }
    for (process, client) in processes.iter().zip(clients) {
        let failed = client.await.unwrap();
        let first = &failed[..failed.len().min(3)];
        assert!(failed.is_empty(), "{} of {REQUESTS} failed: {first:?}\n{}", failed.len(), process.log());
    }
    let migrated = processes.iter().filter(|process| process.log().contains("schema migrated")).count();
    assert_eq!(migrated, 1, "one of them migrated");
}

/// Sends requests one after the other; those that were not answered with facts.
async fn served(url: String, facts: String, key: String) -> Vec<String> {
    let client = client();
    let mut failed = Vec::new();
    for number in 0..REQUESTS {
        let request = client.get(format!("{url}{facts}?limit={}", number % 50 + 1)).bearer_auth(&key);
        match Answer::try_of(request).await {
            Ok(answer) if answer.status == 200 && answer.json()["data"][0]["id"].is_string() => {}
            other => failed.push(format!("{number}: {other:?}")),
        }
    }
    failed
}

fn migrate(database: &TestDatabase) -> (bool, String) {
    let empty = tempfile::tempdir().unwrap();
    let mut command = Command::new(okt_testkit::jobs::program());
    command.arg("migrate").arg("--config").arg(empty.path()).current_dir(empty.path());
    command.env_clear().envs(okt_testkit::db::variables(empty.path(), &database.settings()));
    let ended = command.output().unwrap();
    (ended.status.success(), String::from_utf8_lossy(&ended.stderr).into_owned())
}

async fn upgraded(dump: &Path) {
    let database = TestDatabase::empty().await;
    restore(&database, dump).await;
    let mut settings = database.settings().to_vec();
    // The facts of the dump have vectors of the built-in model.
    settings.pop();
    let process = Process::serve(okt_testkit::jobs::program(), &settings);
    let expected = expected_of(dump);

    let account = json!({"email": "ada@example.org", "password": expected["password"]});
    let signed_in =
        Answer::of(client().post(format!("{}/api/v1/auth/login", process.url)).json(&account)).await;
    assert_eq!(signed_in.status, 200, "{signed_in:?}\n{}", process.log());
    let token = signed_in.json()["token"].as_str().unwrap().to_owned();
    let inside = format!("{}/api/v1/repositories/{}", process.url, expected["repository"].as_str().unwrap());
    let get = async |token: &str, rest: &str| {
        let answer =
            Answer::of(client().request(Method::GET, format!("{inside}{rest}")).bearer_auth(token)).await;
        assert_eq!(answer.status, 200, "{rest}: {answer:?}\n{}", process.log());
        answer.json()
    };

    for (status, texts) in expected["statuses"].as_object().unwrap() {
        let facts = get(&token, &format!("/facts?limit=200&status={status}")).await;
        let mut found: Vec<_> =
            facts["data"].as_array().unwrap().iter().map(|fact| fact["text"].clone()).collect();
        found.sort_by_key(|text| text.as_str().unwrap().to_owned());
        assert_eq!(&Value::from(found), texts, "{status}");
    }
    let facts = get(expected["key"].as_str().unwrap(), "/facts?status=stable").await;
    let fact = facts["data"][0]["id"].as_str().unwrap();
    let whole = get(&token, &format!("/facts/{fact}")).await;
    assert!(whole["sources"][0]["sentences"][0]["text"].is_string(), "{whole:#}");
    let similar = get(&token, &format!("/facts/{fact}/similar")).await;
    assert!(!similar["data"].as_array().unwrap().is_empty(), "{similar:#}");

    let sources = get(&token, "/sources").await;
    let mut statuses: Vec<_> =
        sources["data"].as_array().unwrap().iter().map(|source| source["status"].to_string()).collect();
    statuses.sort();
    let before: Vec<_> = expected["sources"].as_array().unwrap().iter().map(Value::to_string).collect();
    assert_eq!(statuses, before);
    let members = get(&token, "/members").await;
    assert_eq!(members["data"].as_array().unwrap().len(), expected["members"].as_array().unwrap().len());
    assert_eq!(get(&token, "/settings").await["budget"]["monthly_usd"], expected["budget"]);
    let usage = get(&token, "/ai/usage?from=2026-01-01").await;
    for figure in ["calls", "tokens_in", "tokens_out", "usd"] {
        assert_eq!(usage["total"][figure], expected["usage"][figure], "{figure}");
    }
}

async fn restore(database: &TestDatabase, dump: &Path) {
    // A server that no okt has used yet does not know the role that the dump gives rights to.
    let role =
        "DO $$ BEGIN CREATE ROLE okt_service NOLOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$";
    run(&mut database.connect().await, role).await;
    let psql =
        Path::new(&std::env::var_os("OKT_TEST_PG_BIN").expect("the services' environment")).join("psql");
    let mut child = Command::new(psql)
        .args(["--quiet", "--no-psqlrc", "--set", "ON_ERROR_STOP=1", "--output", "/dev/null", database.url()])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut text = Vec::new();
    GzDecoder::new(File::open(dump).unwrap()).read_to_end(&mut text).unwrap();
    child.stdin.take().unwrap().write_all(&text).unwrap();
    assert!(child.wait().unwrap().success(), "{} is not restored", dump.display());
}

/// Of any of the older versions.
fn a_dump() -> PathBuf {
    let mut paths = folder().read_dir().unwrap().map(|entry| entry.unwrap().path());
    paths.find(|path| path.extension().is_some_and(|end| end == "gz")).unwrap()
}

/// What the dump was made with.
fn expected_of(dump: &Path) -> Value {
    let path = dump.to_str().unwrap().replace(".sql.gz", ".json");
    serde_json::from_reader(File::open(path).unwrap()).unwrap()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/upgrade")
}
