//! `okt admin`: what an operator does at the keyboard.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand};
use okt_app::{App, Origin};
use okt_config::Loaded;
use okt_store::{Blobs, Databases, Purpose};

use crate::secret::signing_secret;

#[derive(Args)]
pub(crate) struct AdminArgs {
    #[command(subcommand)]
    command: AdminCommand,
}

#[derive(Subcommand)]
enum AdminCommand {
    /// Make an existing user sysadmin. Takes effect at once, without a restart.
    Promote {
        /// The e-mail address of the account.
        email: String,
    },
    /// Move a repository to another named database. It can be read meanwhile, but not written to. When it is cut off, run
    /// it again; to give it up, move the repository to where it is.
    MoveRepository {
        /// Its id or its slug.
        repository: String,
        /// The name of the database, as in the configuration.
        #[arg(long, value_name = "DATABASE")]
        to: String,
    },
}

pub(crate) fn main(loaded: &Loaded, args: &AdminArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new().context("can't start the runtime")?;
    runtime.block_on(async {
        let databases = Databases::open(&loaded.config, &[Purpose::Worker]).await?;
        let databases = databases.into_iter().next().context("no database was opened")?;
        let secret = signing_secret(loaded)?;
        let blobs = Blobs::open(&loaded.config.providers.storage)?;
        let app = App::new(loaded.config.clone(), databases.clone(), blobs, None, secret.expose().as_bytes());
        let done = run(&app, &args.command).await;
        databases.close().await;
        done
    })?;
    Ok(ExitCode::SUCCESS)
}

async fn run(app: &App, command: &AdminCommand) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    match command {
        AdminCommand::Promote { email } => {
            let promoted = app.promote_by_email(&Origin::service("okt admin promote"), email).await?;
            let said = if promoted { "is sysadmin now" } else { "was sysadmin already" };
            writeln!(out, "{email} {said}")?;
        }
        AdminCommand::MoveRepository { repository, to } => {
            let origin = Origin::service("okt admin move-repository");
            let moved = app.move_repository(&origin, repository, to).await?;
            for (table, rows) in &moved.rows {
                writeln!(out, "{table:>20} {rows:>12} rows")?;
            }
            if moved.from == *to {
                writeln!(out, "{repository} lives in {to}")?;
            } else {
                writeln!(out, "{repository} moved from {} to {to}", moved.from)?;
            }
        }
    }
    Ok(())
}
