//! The notes service as a process: started, configured, drained and stopped by the same code as `okt serve`.

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> anyhow::Result<ExitCode> {
    // Called as `okt-test-server serve --config FOLDER`, like the real one.
    let folder = std::env::args_os().nth(3).map(PathBuf::from);
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    okt_cli::serve::main(
        okt_cli::load(folder)?,
        &okt_cli::serve::ServeArgs::default(),
        okt_testkit::notes::service,
    )
}
