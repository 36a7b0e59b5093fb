//! What the parser's child can't do, tried from within it.
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

/// `examples/reader/locked_in.rs`, which is built beside this test.
fn locked_in(arguments: &[&str]) -> Output {
    let this = std::env::current_exe().unwrap();
    let program = this.parent().unwrap().parent().unwrap().join("examples/reader");
    Command::new(program).arg("locked-in").args(arguments).env_clear().output().unwrap()
}

#[test]
fn a_locked_in_process_reaches_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let output = locked_in(&["try", &listener.local_addr().unwrap().to_string()]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let (environment, tried) = said.split_once('\n').unwrap();
    assert_eq!(environment, "environment: 0");
    assert_eq!(tried.lines().count(), 11, "{said}");
    for line in tried.lines() {
        assert!(line.contains("os error 1)"), "not refused: {line}");
    }
    assert!(listener.accept().is_err(), "a connection came through");
}

#[test]
fn memory_ends_at_the_limit() {
    let output = locked_in(&["memory"]);
    assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
}

#[test]
fn time_ends_at_the_limit() {
    let output = locked_in(&["time"]);
    // SIGXCPU, or SIGKILL where both limits are reached at once.
    assert!(matches!(output.status.signal(), Some(24 | 9)), "{output:?}");
}
