//! Configuration as an operator meets it: what stops the service, what wins, and what is written to disk.

mod refusals;
mod variables;

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Stands wherever a secret would, and must never come back.
const SECRET: &str = "s3cr3t-that-nobody-may-ever-read-anywhere";

#[test]
fn nothing_that_is_shown_holds_a_secret() {
    let dir = tempfile::tempdir().unwrap();
    for arguments in [
        &["show"][..],
        &["show", "--origin"],
        &["show", "--json"],
        &["show", "--json", "--origin"],
        &["check"],
    ] {
        let mut command = okt(dir.path());
        command.arg("config").args(arguments).arg("--config").arg(dir.path());
        command.env("AUTH_JWTSECRET", SECRET).env("LLM_GATEWAY_API_KEY", SECRET);
        command.env("SVC__DATABASES__DEFAULT__URL", format!("postgres://u:{SECRET}@h/d"));
        let ended = finish(command);
        assert!(ended.success, "{arguments:?}: {}", ended.stderr);
        assert!(!ended.stdout.contains("s3cr3t") && !ended.stderr.contains("s3cr3t"), "{arguments:?}");
        assert_eq!(ended.stdout.contains("***"), arguments[0] == "show", "{arguments:?}");
    }
}

#[test]
fn the_first_run_writes_the_defaults_beside_the_binary_and_keeps_what_people_edit() {
    let dir = tempfile::tempdir().unwrap();
    let (bin, work) = (dir.path().join("bin"), dir.path().join("work"));
    fs::create_dir(&bin).unwrap();
    fs::create_dir(&work).unwrap();
    let program = bin.join("okt");
    // Another file system has no links to here.
    fs::hard_link(okt_testkit::jobs::program(), &program)
        .or_else(|_| fs::copy(okt_testkit::jobs::program(), &program).map(drop))
        .unwrap();
    let check = || {
        let mut command = Command::new(&program);
        command.env_clear().current_dir(&work).args(["config", "show", "--origin"]);
        let ended = finish(command);
        assert!(ended.success, "{}", ended.stderr);
        ended.stdout
    };

    check();
    let copy = bin.join("okt.default.toml");
    let written = fs::read_to_string(&copy).unwrap();
    assert!(written.contains("port = 8080"));
    assert_eq!(fs::read_dir(&work).unwrap().count(), 0, "nothing is written where it was started");

    let edited = written.replace("port = 8080", "port = 8181");
    fs::write(&copy, &edited).unwrap();
    let shown = check();
    let line = format!("server.port = 8181  # okt.default.toml ({})\n", copy.display());
    assert!(shown.contains(&line), "{shown}");
    assert_eq!(fs::read_to_string(&copy).unwrap(), edited);

    fs::remove_file(&copy).unwrap();
    check();
    assert_eq!(fs::read_to_string(&copy).unwrap(), written, "it is written anew");
}

#[test]
fn a_named_directory_gets_the_defaults_and_a_missing_path_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    variables::show(dir.path(), &[]);
    let copy = dir.path().join("okt.default.toml");
    let edited = fs::read_to_string(&copy).unwrap().replace("rrf_k = 60", "rrf_k = 61");
    fs::write(&copy, &edited).unwrap();
    assert_eq!(variables::show(dir.path(), &[])["search.hybrid.rrf_k"].0, "61");
    assert_eq!(fs::read_to_string(&copy).unwrap(), edited);

    let missing = dir.path().join("none.toml");
    let mut command = okt(dir.path());
    command.args(["serve", "--config"]).arg(&missing);
    let ended = finish(command);
    assert!(!ended.success && ended.stderr.contains("--config"), "{}", ended.stderr);
    assert!(ended.stderr.contains(&missing.display().to_string()), "{}", ended.stderr);
}

#[test]
fn schema_and_reference_need_no_valid_configuration() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("okt.toml"), "nonsense").unwrap();
    for (what, part) in [("schema", "\"okt configuration\""), ("reference", "# Configuration")] {
        let mut command = okt(dir.path());
        command.args(["config", what, "--config"]).arg(dir.path());
        let ended = finish(command);
        assert!(ended.success && ended.stdout.contains(part), "{what}: {}", ended.stderr);
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let dir = tempfile::tempdir().unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = okt(dir.path());
    command.args(["config", "show", "--config"]).arg(dir.path());
    let ended = command.stdout(writer).output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

struct Ended {
    success: bool,
    stdout: String,
    stderr: String,
}

/// The binary, in `dir` and without any environment.
fn okt(dir: &Path) -> Command {
    let mut command = Command::new(okt_testkit::jobs::program());
    command.env_clear().current_dir(dir);
    command
}

/// Runs a command that should end by itself. One that went on to serve is killed, and fails the test.
fn finish(mut command: Command) -> Ended {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let (mut stdout, mut stderr) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
    let (done, ended) = mpsc::channel();
    let reader = thread::spawn(move || {
        let mut out = String::new();
        stdout.read_to_string(&mut out).expect("text");
        out
    });
    let errors = thread::spawn(move || {
        let mut err = String::new();
        stderr.read_to_string(&mut err).expect("text");
        let _ = done.send(());
        err
    });
    let in_time = ended.recv_timeout(Duration::from_secs(30)).is_ok();
    if !in_time {
        child.kill().expect("it runs");
    }
    let success = child.wait().expect("it ran").success();
    let (stdout, stderr) = (reader.join().expect("read"), errors.join().expect("read"));
    assert!(in_time, "{command:?} did not end by itself:\n{stderr}");
    Ended { success, stdout, stderr }
}
