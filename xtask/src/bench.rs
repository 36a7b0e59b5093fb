//! Benchmarks with a bar to reach.

use std::process::Command;

use anyhow::{Context, ensure};

pub fn run() -> anyhow::Result<()> {
    // The two alone: optimising a whole program is slow, and nobody measures the others.
    let build = [
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
        "okt-bench",
    ];
    let status = Command::new("cargo").args(build).status().context("can't run cargo")?;
    ensure!(status.success(), "the build failed");
    // Beside this program's own folder, wherever builds go here.
    let own = std::env::current_exe()?;
    let builds = own.parent().and_then(std::path::Path::parent).context("this program lies in a folder")?;
    let ended = Command::new(builds.join("release/okt-bench")).status().context("can't run okt-bench")?;
    ensure!(ended.success(), "a figure is worse than its limit");
    Ok(())
}
