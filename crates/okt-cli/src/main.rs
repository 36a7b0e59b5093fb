//! The one binary: `okt`.

use std::process::ExitCode;

fn main() -> ExitCode {
    okt_cli::main()
}
