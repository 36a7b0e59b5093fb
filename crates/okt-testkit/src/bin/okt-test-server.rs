//! The notes service as a process: started, configured, drained and stopped by the same code as `okt serve`.

use std::path::PathBuf;
use std::process::ExitCode;

use okt_cli::serve::{self, ServeArgs};
use okt_store::{Databases, connect_options};
use okt_testkit::{db, notes};
use sqlx::ConnectOptions;

fn main() -> anyhow::Result<ExitCode> {
    // Called as `okt-test-server serve --config FOLDER`, like the real one.
    let folder = std::env::args_os().nth(3).map(PathBuf::from);
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let loaded = okt_cli::load(folder)?;
    tokio::runtime::Runtime::new()?.block_on(async {
        Databases::migrate(&loaded.config).await?;
        let database = loaded.config.database("default").expect("it is required");
        db::run(&mut connect_options(&database)?.connect().await?, notes::TABLE).await;
        anyhow::Ok(())
    })?;
    serve::main(loaded, &ServeArgs::default(), notes::service)
}
