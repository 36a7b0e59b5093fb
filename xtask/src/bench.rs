//! Benchmarks with a bar to reach.

use std::process::Command;

use anyhow::{Context, ensure};

/// Each with its arguments.
const PROGRAMS: &[&[&str]] = &[&["okt-bench"], &["okt-bench-queue"]];
/// The short form: the queue against a bare loop, few rounds, in a build that takes minutes less.
const SHORT: &[&[&str]] = &[&["okt-bench-queue", "2", "200000"]];

pub fn run(short: bool) -> anyhow::Result<()> {
    let (profile, programs) = if short { ("quick", SHORT) } else { ("release", PROGRAMS) };
    // These alone: optimising a whole program is slow, and nobody measures the others.
    let mut build = Command::new("cargo");
    build.args(["build", "--locked", "--profile", profile, "-p", "okt-cli", "-p", "okt-testkit"]);
    if !short {
        build.args(["--bin", "okt", "--bin", "okt-bench"]);
    }
    let status = build.args(["--bin", "okt-bench-queue"]).status().context("can't run cargo")?;
    ensure!(status.success(), "the build failed");
    // Beside this program's own folder, wherever builds go here.
    let own = std::env::current_exe()?;
    let builds = own.parent().and_then(std::path::Path::parent).context("this program lies in a folder")?;
    let mut failed = Vec::new();
    for words in programs {
        let program = builds.join(profile).join(words[0]);
        let ended = Command::new(program).args(&words[1..]).status();
        if !ended.with_context(|| format!("can't run {}", words[0]))?.success() {
            failed.push(words[0]);
        }
    }
    ensure!(failed.is_empty(), "a figure is worse than its limit: {}", failed.join(", "));
    Ok(())
}
