//! The notes service as a process: started, configured, drained and stopped by the same code as `okt serve`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use okt_cli::serve::{self, ServeArgs};
use okt_store::{Databases, connect_options};
use okt_testkit::{db, notes};
use sqlx::ConnectOptions;

/// As the real program takes them.
#[derive(Args)]
pub struct Options {
    #[arg(long)]
    config: Option<PathBuf>,
}

pub fn run(options: Options) -> anyhow::Result<ExitCode> {
    let loaded = okt_cli::load(options.config)?;
    tokio::runtime::Runtime::new()?.block_on(async {
        Databases::migrate(&loaded.config).await?;
        let database = loaded.config.database("default").expect("it is required");
        db::run(&mut connect_options(&database)?.connect().await?, notes::TABLE).await;
        anyhow::Ok(())
    })?;
    serve::main(loaded, &ServeArgs::default(), notes::service)
}
