//! `okt parse-worker`: the child that reads documents, locked in.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use okt_parse::worker::run_worker;

#[derive(Args)]
pub struct ParseWorkerArgs {
    /// The library that reads PDFs; without it, they are refused.
    #[arg(long, value_name = "FILE")]
    pdfium: Option<PathBuf>,
}

pub fn main(args: &ParseWorkerArgs) -> ExitCode {
    run_worker(args.pdfium.as_deref())
}
