//! `okt admin`: what an operator does at the keyboard.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand};
use okt_app::{App, Origin};
use okt_config::Loaded;
use okt_store::{Databases, Purpose};

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
}

pub(crate) fn main(loaded: &Loaded, args: &AdminArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new().context("can't start the runtime")?;
    let AdminCommand::Promote { email } = &args.command;
    let promoted = runtime.block_on(async {
        let databases = Databases::open(&loaded.config, &[Purpose::Api]).await?;
        let databases = databases.into_iter().next().context("no database was opened")?;
        let app =
            App::new(loaded.config.clone(), databases.clone(), signing_secret(loaded)?.expose().as_bytes());
        let promoted = app.promote_by_email(&Origin::service("okt admin promote"), email).await?;
        databases.close().await;
        anyhow::Ok(promoted)
    })?;
    let said = if promoted { "is sysadmin now" } else { "was sysadmin already" };
    writeln!(std::io::stdout(), "{email} {said}")?;
    Ok(ExitCode::SUCCESS)
}
