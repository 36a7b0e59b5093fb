//! `okt migrate`.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use okt_config::Loaded;
use okt_store::{Databases, Report};

#[derive(Args)]
pub(crate) struct MigrateArgs {
    /// Apply nothing; exit with 1 if migrations are pending.
    #[arg(long)]
    check: bool,
}

pub(crate) fn main(loaded: &Loaded, args: &MigrateArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new().context("can't start the runtime")?;
    let config = &loaded.config;
    runtime.block_on(Databases::reach(config))?;
    let mut out = std::io::stdout().lock();
    if args.check {
        let reports = runtime.block_on(Databases::pending(config))?;
        let pending = write_reports(&mut out, &reports, "pending")?;
        return Ok(if pending == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let reports = runtime.block_on(Databases::migrate(config))?;
    write_reports(&mut out, &reports, "applied")?;
    Ok(ExitCode::SUCCESS)
}

/// One line per migration, or per schema that needs none; returns how many migrations there were.
fn write_reports(out: &mut impl Write, reports: &[Report], word: &str) -> std::io::Result<usize> {
    for Report { database, schema, migrations } in reports {
        if migrations.is_empty() {
            writeln!(out, "{database}/{schema}: up to date")?;
        }
        for migration in migrations {
            writeln!(out, "{database}/{schema}: {word} {migration}")?;
        }
    }
    Ok(reports.iter().map(|report| report.migrations.len()).sum())
}
