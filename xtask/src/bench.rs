//! Benchmarks with a bar to reach.

use std::process::Command;

use anyhow::{Context, ensure};

use crate::cargo::cargo;

const PROGRAMS: &[&str] =
    &["okt-bench", "okt-bench-queue", "okt-bench-repositories", "okt-bench-pipeline", "okt-bench-vectors"];
/// What they start.
const HELPERS: &[&str] = &["okt-test-model"];

pub fn run() -> anyhow::Result<()> {
    // These alone: optimising a whole program is slow, and nobody measures the others.
    let mut build = cargo();
    build.args(["build", "--release", "--locked", "-p", "okt-cli", "-p", "okt-testkit", "--bin", "okt"]);
    build.args(PROGRAMS.iter().chain(HELPERS).flat_map(|program| ["--bin", program]));
    ensure!(build.status().context("can't run cargo")?.success(), "the build failed");
    // Beside this program's own folder, wherever builds go here.
    let own = std::env::current_exe()?;
    let builds = own.parent().and_then(std::path::Path::parent).context("this program lies in a folder")?;
    let mut failed = Vec::new();
    for program in PROGRAMS {
        let ended = Command::new(builds.join("release").join(program)).status();
        if !ended.with_context(|| format!("can't run {program}"))?.success() {
            failed.push(*program);
        }
    }
    ensure!(failed.is_empty(), "a figure is worse than its limit: {}", failed.join(", "));
    Ok(())
}
