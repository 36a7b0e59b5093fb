//! A database that is down, misspelt or missing: where it was looked for, why, and where that was set, at once.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use okt_testkit::cluster::free_port;
use okt_testkit::db::TestDatabase;
use okt_testkit::process::Process;

use super::OKT;

const DATABASE: &str = "SVC__DATABASES__DEFAULT__URL";
const PASSWORD: &str = "planted-password";

#[test]
fn a_server_that_is_down_is_named_at_once_with_the_cause_and_the_variable() {
    let port = free_port();
    let url = format!("postgres://okt:{PASSWORD}@127.0.0.1:{port}/knowledge");
    let mut process = Process::spawn(&*OKT, &[(DATABASE, &url)]);
    let said = process.await_log(Duration::from_secs(10), |line| {
        line.contains("does not answer yet").then(|| line.to_owned())
    });
    for part in
        ["databases.default", "knowledge", &format!("127.0.0.1:{port}"), "connection refused", DATABASE]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    let log = process.log();
    let before: Vec<&str> = log.lines().take_while(|line| !line.contains("does not answer yet")).collect();
    assert!(before.len() < 5, "nothing came before it but the start: {log}");
    assert!(!log.contains(PASSWORD), "{log}");
}

#[test]
fn a_host_that_does_not_exist_is_said_to_be_none() {
    let url = format!("postgres://okt:{PASSWORD}@no-such-host.invalid/knowledge");
    let mut process = Process::spawn(&*OKT, &[(DATABASE, &url)]);
    let said = process.await_log(Duration::from_secs(20), |line| {
        line.contains("does not answer yet").then(|| line.to_owned())
    });
    assert!(said.contains("no-such-host.invalid:5432"), "{said}");
    // Some resolvers take longer than anybody waits.
    assert!(said.contains("no such host") || said.contains("no answer in time"), "{said}");
    assert!(!process.log().contains(PASSWORD));
}

#[test]
fn without_any_database_the_start_says_how_to_name_one_and_ends() {
    let mut process = Process::spawn(&*OKT, &[]);
    let begun = Instant::now();
    assert_eq!(process.wait().code(), Some(1));
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let log = process.log();
    assert!(log.contains("no database is configured") && log.contains(DATABASE), "{log}");
    assert!(log.contains("okt.toml") && log.contains("127.0.0.1:5432"), "{log}");
}

#[tokio::test]
async fn a_database_that_does_not_exist_comes_with_the_statement_that_makes_it() {
    let database = TestDatabase::empty().await;
    let (server, _) = database.url().rsplit_once('/').unwrap();
    let mut process = Process::spawn(&*OKT, &[(DATABASE, &format!("{server}/not_there_yet"))]);
    assert_eq!(process.wait().code(), Some(1));
    let log = process.log();
    assert!(log.contains("database \"not_there_yet\" does not exist"), "{log}");
    assert!(log.contains("CREATE DATABASE \"not_there_yet\""), "{log}");
    assert!(!log.contains("at line"), "nobody cares where in PostgreSQL's source that is: {log}");
}

#[test]
fn commands_that_somebody_waits_for_fail_at_once_and_name_the_line_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("okt.toml");
    let port = free_port();
    let url = format!("postgres://okt:{PASSWORD}@127.0.0.1:{port}/knowledge");
    fs::write(&file, format!("[databases.default]\nurl = \"{url}\"\n")).unwrap();
    for arguments in [
        &["migrate"][..],
        &["migrate", "--check"],
        &["version", "--check-schema"],
        &["admin", "promote", "ada@example.org"],
        &["doctor", "vectors"],
        &["reembed"],
        &["config", "check", "--online"],
    ] {
        let begun = Instant::now();
        let mut command = Command::new(&*OKT);
        command.args(arguments).arg("--config").arg(folder.path()).env_clear().current_dir(folder.path());
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(begun.elapsed() < Duration::from_secs(8), "{arguments:?} took {:?}", begun.elapsed());
        let place = format!("{}:2", file.display());
        for part in ["connection refused", "knowledge", &format!("127.0.0.1:{port}"), &place] {
            assert!(said.contains(part), "{arguments:?}, {part}: {said}");
        }
        assert!(!said.contains(PASSWORD), "{said}");
    }
}

#[tokio::test]
async fn who_is_not_found_is_named() {
    let database = TestDatabase::migrated().await;
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(&*OKT);
    command.args(["admin", "promote", "nobody@example.org", "--config"]).arg(folder.path());
    let output =
        command.env_clear().env(DATABASE, database.url()).current_dir(folder.path()).output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("nobody@example.org"), "{output:?}");
}
