//! What an operator sees of a running process: readiness, metrics, its first line and its version.

use std::fs;
use std::process::Command;
use std::time::Duration;

use okt_testkit::client::{Answer, client};
use okt_testkit::db::TestDatabase;
use okt_testkit::jobs::pdfium;
use okt_testkit::process::Process;
use okt_testkit::served::TestService;
use serde_json::{Value, json};

use super::OKT;

const DATABASE: &str = "SVC__DATABASES__DEFAULT__URL";
const PDFIUM: &str = "SVC__PROVIDERS__PARSING__PDFIUM";

async fn ready(process: &Process) -> (u16, Value) {
    let answer = Answer::of(client().get(format!("{}/readyz", process.url))).await;
    (answer.status.as_u16(), answer.json())
}

/// The first answer about a dependency may come later than the first question.
async fn settled(process: &Process) -> (u16, Value) {
    for _ in 0..100 {
        let (status, said) = ready(process).await;
        if !said.to_string().contains("not answered yet") {
            return (status, said);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    ready(process).await
}

#[tokio::test]
async fn readiness_names_every_dependency_and_what_is_wrong_with_it() {
    let (database, folder) = (TestDatabase::migrated().await, tempfile::tempdir().unwrap());
    let library = pdfium().expect("the tests have one");
    let settings = [(DATABASE, database.url()), (PDFIUM, library.to_str().unwrap())];
    let process = Process::serve_in(&*OKT, folder.path(), &settings);
    let (status, said) = settled(&process).await;
    let well = json!({"status": "ok"});
    assert_eq!(status, 200, "{said}");
    assert_eq!(
        said,
        json!({"status": "ready", "checks": {
            "database:default": well, "storage": well, "vectors": well, "parser": well}})
    );
    drop(process);

    // No library, and a file where the folder was.
    let process = Process::serve_in(&*OKT, folder.path(), &settings[..1]);
    let root = folder.path().join("data");
    let root = if root.exists() { root } else { folder.path().join("files") };
    fs::rename(&root, folder.path().join("elsewhere")).unwrap();
    fs::write(&root, "").unwrap();
    let (status, said) = settled(&process).await;
    assert_eq!(status, 200, "what does not need them is served: {said}");
    assert_eq!(said["checks"]["storage"], json!({"status": "down", "reason": "no file can be written"}));
    assert_eq!(said["checks"]["parser"]["status"], "degraded", "{said}");
    assert!(said["checks"]["parser"]["reason"].as_str().unwrap().contains("PDF"), "{said}");
}

#[tokio::test]
async fn every_family_of_metrics_says_what_it_means_and_is_documented() {
    let database = TestDatabase::migrated().await;
    let process = Process::serve(&*OKT, &[(DATABASE, database.url())]);
    process.await_ready().await;
    let metrics = Answer::of(client().get(format!("{}/metrics", process.url))).await.text;
    let logging = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/LOGGING.md")).unwrap();
    let families: Vec<&str> =
        metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    for family in &families {
        assert!(metrics.contains(&format!("# HELP {family} ")), "{family} has no HELP");
        assert!(logging.contains(&format!("`{family}`")), "docs/LOGGING.md does not name {family}");
    }
    for family in [
        "okt_build_info",
        "okt_http_requests_total",
        "okt_jobs_waiting",
        "okt_jobs_oldest_waiting_seconds",
        "process_resident_memory_bytes",
        "process_cpu_seconds_total",
        "process_open_fds",
        "process_start_time_seconds",
    ] {
        assert!(families.contains(&family), "{family} is missing:\n{metrics}");
    }
    for line in metrics.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let name = line.split(['{', ' ']).next().unwrap();
        let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
        assert!(families.contains(&name) || family.is_some_and(|name| families.contains(&name)), "{line}");
    }
    let build = format!("version=\"{}\"", env!("CARGO_PKG_VERSION"));
    assert!(metrics.contains(&build) && metrics.contains("commit=\""), "{metrics}");
}

#[tokio::test]
async fn the_first_line_and_the_version_say_which_build_it_is() {
    let output = Command::new(&*OKT).arg("--version").output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.starts_with(&format!("okt {} (commit ", env!("CARGO_PKG_VERSION"))), "{said}");

    let database = TestDatabase::migrated().await;
    let mut process = Process::serve(&*OKT, &[(DATABASE, database.url()), ("SVC__LOG__FORMAT", "pretty")]);
    let log = process.log();
    let first = log.lines().next().unwrap();
    assert!(first.contains("starting") && first.contains("version=") && first.contains("commit="), "{log}");

    let body = json!({"email": "ada@example.org", "password": "a long sentence", "name": "Ada"});
    let request = client().post(format!("{}/api/v1/auth/register", process.url)).json(&body);
    let answer = Answer::of(request.header("x-request-id", "follow-me")).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    assert_eq!(answer.json()["expires_in"], 86_400);
    let line = process.await_log(Duration::from_secs(10), |line| {
        line.contains("first user became").then(|| line.to_owned())
    });
    let (time, rest) = line.split_once(' ').unwrap();
    assert!(time.starts_with("20") && time.ends_with('Z'), "lines sort by their time: {line}");
    assert!(rest.starts_with("[follow-me POST /api/v1/auth/register] "), "{line}");
}

#[test]
fn a_setting_given_as_an_option_leads_to_its_variable() {
    for (option, variable) in [("--port", "SVC__SERVER__PORT"), ("--host=0.0.0.0", "SVC__SERVER__HOST")] {
        let output = Command::new(&*OKT).args(["serve", option, "9090"]).env_clear().output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(variable) && said.contains("okt.toml"), "{said}");
    }
}

#[tokio::test]
async fn what_waits_in_the_queue_is_counted_by_kind() {
    let service = TestService::product(&[]).await;
    okt_testkit::accounts::sql(
        &service,
        "INSERT INTO okt_tasks.jobs (id, kind, state, priority, turn, payload, max_attempts, scheduled_at)
         SELECT gen_random_uuid(), 'embed_facts', 'available', 2, n, '{}', 3, now() - n * interval '50 s'
           FROM generate_series(1, 3) AS n",
    )
    .await;
    let metrics = service.get("/metrics").await.text;
    assert!(metrics.contains("okt_jobs_waiting{kind=\"embed_facts\"} 3\n"), "{metrics}");
    assert!(metrics.contains("okt_jobs_waiting{kind=\"retrieve_source\"} 0\n"), "{metrics}");
    let age = metrics
        .lines()
        .find_map(|line| line.strip_prefix("okt_jobs_oldest_waiting_seconds{kind=\"embed_facts\"} "));
    let age: f64 = age.unwrap().parse().unwrap();
    assert!((150.0..600.0).contains(&age), "{age}");
}
