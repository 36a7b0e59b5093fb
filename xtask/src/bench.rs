//! Benchmarks with a bar to reach.

use std::process::Command;

use anyhow::{Context, ensure};

use crate::cargo::cargo;

/// Those with a bar; `okt-test bench embeddings` is for looking at.
const BENCHMARKS: &[&str] = &["http", "permissions", "queue", "repositories", "pipeline", "vectors"];

pub fn run() -> anyhow::Result<()> {
    // These alone: optimising a whole program is slow, and nobody measures the others.
    let mut build = cargo();
    build.args([
        "build",
        "--release",
        "--locked",
        "-p",
        "okt-cli",
        "-p",
        "okt-testkit",
        "--bin",
        "okt",
        "--bin",
        "okt-test",
    ]);
    ensure!(build.status().context("can't run cargo")?.success(), "the build failed");
    // Beside this program's own folder, wherever builds go here.
    let own = std::env::current_exe()?;
    let builds = own.parent().and_then(std::path::Path::parent).context("this program lies in a folder")?;
    let mut failed = Vec::new();
    for benchmark in BENCHMARKS {
        let ended = Command::new(builds.join("release/okt-test")).args(["bench", benchmark]).status();
        if !ended.context("can't run okt-test")?.success() {
            failed.push(*benchmark);
        }
    }
    ensure!(failed.is_empty(), "a figure is worse than its limit: {}", failed.join(", "));
    Ok(())
}
