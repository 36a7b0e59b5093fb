//! Which build this is, and `okt version`.

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::LazyLock;

use anyhow::Context;
use clap::Args;
use okt_config::Loaded;
use okt_store::Databases;

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Whoever builds a release sets `OKT_COMMIT`. Asking git would build everything anew at every commit, and not work in a
/// tree without one.
pub(crate) const COMMIT: &str = match option_env!("OKT_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};

/// For `okt --version`.
pub(crate) static LONG: LazyLock<String> = LazyLock::new(|| format!("{VERSION} (commit {COMMIT})"));

#[derive(Args)]
pub(crate) struct VersionArgs {
    /// Say of each named database whether it misses migrations of this release; changes nothing.
    #[arg(long)]
    check_schema: bool,
}

pub(crate) fn main(
    args: &VersionArgs,
    load: impl FnOnce() -> anyhow::Result<Loaded>,
) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "okt {}", *LONG)?;
    if !args.check_schema {
        return Ok(ExitCode::SUCCESS);
    }
    let loaded = load()?;
    let runtime = tokio::runtime::Runtime::new().context("can't start the runtime")?;
    let mut fits = true;
    for (name, inspected) in runtime.block_on(Databases::inspect(&loaded.config))? {
        let pending = inspected.map(|inspected| inspected.pending);
        fits &= matches!(pending, Ok(0));
        match pending {
            Ok(0) => writeln!(out, "databases.{name}: no migration is missing")?,
            Ok(count) => writeln!(out, "databases.{name}: {count} migrations missing: run `okt migrate`")?,
            // It names its database itself.
            Err(error) => writeln!(out, "{error}")?,
        }
    }
    Ok(if fits { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
