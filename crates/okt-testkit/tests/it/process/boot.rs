use std::process::Command;
use std::time::Duration;

use okt_testkit::client::{Answer, client};
use okt_testkit::cluster::Cluster;
use okt_testkit::db::{TestDatabase, migration_files};
use okt_testkit::process::Process;

use super::OKT;

const DATABASE: &str = "SVC__DATABASES__DEFAULT__URL";

#[tokio::test]
async fn five_simultaneous_boots_on_an_empty_database_migrate_it_once() {
    let database = TestDatabase::empty().await;
    let mut processes: Vec<_> =
        (0..5).map(|_| Process::spawn(&*OKT, &[(DATABASE, database.url())])).collect();
    for process in &mut processes {
        process.await_listening();
        process.await_ready().await;
    }
    let migrated: Vec<_> = processes.iter().map(|process| count(&process.log(), "schema migrated")).collect();
    let mut sorted = migrated.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, [0, 0, 0, 0, 4], "one process applied all four schemas: {migrated:?}");

    let applied: i64 = sqlx::query_scalar(
        "SELECT (SELECT count(*) FROM okt_system.migrations) + (SELECT count(*) FROM okt_repository.migrations)
              + (SELECT count(*) FROM okt_tasks.migrations) + (SELECT count(*) FROM okt_vectors.migrations)",
    )
    .fetch_one(&mut database.connect().await)
    .await
    .unwrap();
    assert_eq!(usize::try_from(applied).unwrap(), migration_files().len());
}

#[tokio::test]
async fn migrate_check_says_what_is_missing_and_changes_nothing() {
    let database = TestDatabase::empty().await;
    let okt = |arguments: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(&*OKT);
        command.args(arguments).arg("--config").arg(folder.path()).env_clear().env(DATABASE, database.url());
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    for _ in 0..2 {
        let (code, said) = okt(&["migrate", "--check"]);
        assert_eq!(code, Some(1));
        assert_eq!(count(&said, "pending"), migration_files().len(), "{said}");
        let (code, said) = okt(&["version", "--check-schema"]);
        assert_eq!((code, count(&said, "migrations missing")), (Some(1), 1), "{said}");
        assert!(said.starts_with("okt ") && said.contains(" (commit "), "{said}");
    }
    let (code, said) = okt(&["migrate"]);
    assert_eq!((code, count(&said, "applied")), (Some(0), migration_files().len()), "{said}");
    let (code, said) = okt(&["migrate", "--check"]);
    assert_eq!((code, count(&said, "up to date")), (Some(0), 4), "{said}");
    let (code, said) = okt(&["version", "--check-schema"]);
    assert_eq!((code, count(&said, "no migration is missing")), (Some(0), 1), "{said}");
}

#[tokio::test]
async fn a_database_that_starts_late_is_waited_for() {
    let cluster = Cluster::start();
    cluster.down();
    let mut process = Process::spawn(&*OKT, &[(DATABASE, &cluster.url())]);
    process.await_log(Duration::from_secs(20), |line| line.contains("does not answer yet").then_some(()));
    cluster.up();
    process.await_listening();
    process.await_ready().await;
}

#[tokio::test]
async fn being_told_to_stop_while_it_waits_is_heard() {
    let nowhere = format!("postgres://okt@127.0.0.1:{}/okt", okt_testkit::cluster::free_port());
    let mut process = Process::spawn(&*OKT, &[(DATABASE, &nowhere)]);
    process.await_log(Duration::from_secs(20), |line| line.contains("does not answer yet").then_some(()));
    let started = std::time::Instant::now();
    process.terminate();
    assert!(process.wait().success());
    assert!(started.elapsed() < Duration::from_secs(2));
}

#[test]
fn a_setting_that_is_not_text_is_refused() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    for name in ["AUTH_JWTSECRET", "SVC__SERVER__PORT"] {
        let mut command = Command::new(&*OKT);
        command.args(["config", "check", "--config"]).arg(folder.path()).env_clear();
        let output = command.env(name, std::ffi::OsStr::from_bytes(b"\xff\xfe")).output().unwrap();
        assert!(!output.status.success());
        assert!(String::from_utf8_lossy(&output.stderr).contains(name), "{output:?}");
    }
}

#[tokio::test]
async fn a_wrong_password_is_said_at_once_without_the_password() {
    let database = TestDatabase::empty().await;
    let (_, address) = database.url().split_once('@').unwrap();
    let wrong = format!("postgres://postgres:not-this-one@{address}");
    let mut process = Process::spawn(&*OKT, &[(DATABASE, &wrong)]);
    assert_eq!(process.wait().code(), Some(1));
    let log = process.log();
    assert!(log.contains("databases.default") && log.contains("password authentication failed"), "{log}");
    assert!(log.contains("check the user and the password"), "{log}");
    assert!(!log.contains("not-this-one"), "{log}");
}

#[tokio::test]
async fn roles_serve_what_they_are_for() {
    let database = TestDatabase::empty().await;
    for (role, presets) in [("api", 200), ("worker", 404), ("all", 200)] {
        let process = Process::serve_as(&*OKT, &["--role", role], &[(DATABASE, database.url())]);
        let status =
            async |path: &str| Answer::of(client().get(format!("{}{path}", process.url))).await.status;
        assert_eq!(status("/readyz").await, 200, "{role}");
        assert_eq!(status("/metrics").await, 200, "{role}");
        assert_eq!(status("/api/v1/repositories/presets").await, presets, "{role}");
    }
}

#[tokio::test]
async fn metrics_are_not_for_the_public_unless_somebody_says_so() {
    let database = TestDatabase::empty().await;
    let port = okt_testkit::cluster::free_port().to_string();
    let main = format!("127.0.0.1:{port}");
    let production = [
        (DATABASE, database.url()),
        ("SVC__MODE", "production"),
        ("AUTH_JWTSECRET", "hk3Qz8vN1pXw6rTy0bLm5sJd9gFc2aEu"),
        ("SVC__SERVER__PORT", port.as_str()),
    ];
    for (asked, expected) in [(None, 404), (Some(("SVC__SERVER__METRICS_ADDR", main.as_str())), 200)] {
        let settings: Vec<_> = production.into_iter().chain(asked).collect();
        let process = Process::serve(&*OKT, &settings);
        let status = Answer::of(client().get(format!("{}/metrics", process.url))).await.status;
        assert_eq!(status, expected, "{asked:?}");
        assert_eq!(Answer::of(client().get(format!("{}/healthz", process.url))).await.status, 200);
    }
}

#[tokio::test]
async fn metrics_move_to_their_own_listener_when_told_to() {
    let database = TestDatabase::empty().await;
    let address = format!("127.0.0.1:{}", okt_testkit::cluster::free_port());
    let settings = [(DATABASE, database.url()), ("SVC__SERVER__METRICS_ADDR", address.as_str())];
    let process = Process::serve(&*OKT, &settings);
    let status = async |url: String| Answer::of(client().get(url)).await.status;
    assert_eq!(status(format!("{}/metrics", process.url)).await, 404);
    assert_eq!(status(format!("http://{address}/metrics")).await, 200);
    assert_eq!(status(format!("http://{address}/api/v1/repositories/presets")).await, 404);

    status(format!("{}/api/v1/repositories/presets", process.url)).await;
    status(format!("{}/api/v1/repositories/00000000-0000-0000-0000-000000000000", process.url)).await;
    let metrics = Answer::of(client().get(format!("http://{address}/metrics"))).await.text;
    assert!(metrics.contains("route=\"/api/v1/repositories/presets\",status=\"200\"} 1"), "{metrics}");
    assert!(metrics.contains("route=\"unmatched\""), "{metrics}");
    assert!(!metrics.contains("00000000-0000"), "an address is not a label");
    assert!(
        metrics.contains("okt_database_connections_limit{database=\"default\",pool=\"api\"}"),
        "{metrics}"
    );
}

#[tokio::test]
async fn a_development_secret_is_made_once_and_kept_private() {
    use std::os::unix::fs::PermissionsExt;
    let database = TestDatabase::empty().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let file = folder.path().join("okt.dev-secret");
    let mut kept = None;
    for _ in 0..2 {
        let settings = [(DATABASE, database.url())];
        let process = Process::serve_in(&*OKT, path, &settings);
        let secret = std::fs::read_to_string(&file).unwrap();
        assert!(secret.trim().len() >= 32);
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!process.log().contains(secret.trim()));
        assert_eq!(*kept.get_or_insert(secret.clone()), secret);
    }
}

fn count(text: &str, what: &str) -> usize {
    text.matches(what).count()
}
