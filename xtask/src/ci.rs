//! What every change has to pass. `.ci/run` brings the services; this runs the checks.

use std::time::Instant;

use anyhow::{Context, ensure};

use crate::cargo::cargo;

const STEPS: &[(&str, &[&str])] = &[
    ("formatting", &["fmt", "--all", "--check"]),
    ("layers", &["xtask", "layers"]),
    // Before the tests: it touches what has queries, and all of it would be built a second time after them.
    ("lints and recorded queries", &["xtask", "sqlx", "--check"]),
    ("tests", &["nextest", "run", "--workspace", "--locked"]),
];

#[expect(clippy::print_stderr, reason = "a chore talks to the person who runs it")]
pub fn run() -> anyhow::Result<()> {
    ensure!(
        std::env::var_os("OKT_TEST_DATABASE_URL").is_some(),
        "the tests need PostgreSQL: run `scripts/services start`, then `eval \"$(scripts/services env)\"`"
    );
    for (name, arguments) in STEPS {
        eprintln!("== {name}");
        let started = Instant::now();
        let status = cargo().args(*arguments).status().context("can't run cargo")?;
        ensure!(status.success(), "{name} failed: cargo {}", arguments.join(" "));
        eprintln!("== {name}: {} s", started.elapsed().as_secs());
    }
    Ok(())
}
