//! The web UI, built by its own tools.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

pub fn build() -> anyhow::Result<()> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/web");
    let status = Command::new(&script)
        .arg("build")
        .status()
        .with_context(|| format!("failed to run {}", script.display()))?;
    ensure!(status.success(), "the web UI was not built");
    Ok(())
}
