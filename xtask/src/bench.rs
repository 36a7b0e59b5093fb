//! Benchmarks with a bar to reach.

use std::process::Command;

use anyhow::{Context, ensure};

pub fn run() -> anyhow::Result<()> {
    let build = ["build", "--release", "--locked", "--workspace", "--bins"];
    let run = ["run", "--release", "--locked", "--package", "okt-testkit", "--bin", "okt-bench"];
    for arguments in [&build[..], &run[..]] {
        let status = Command::new("cargo").args(arguments).status().context("can't run cargo")?;
        ensure!(status.success(), "cargo {} failed", arguments.join(" "));
    }
    Ok(())
}
