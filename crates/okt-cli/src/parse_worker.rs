//! `okt parse-worker` and `okt ocr-worker`: the children that read documents and pictures of them, locked in.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use okt_parse::ocr::run_tesseract;
use okt_parse::worker::run_worker;

#[derive(Args)]
pub struct ParseWorkerArgs {
    /// Path of the PDF library; without it, PDFs are rejected.
    #[arg(long, value_name = "FILE")]
    pdfium: Option<PathBuf>,
    /// Ask whoever started this for the words in pictures of pages.
    #[arg(long)]
    ocr: bool,
}

#[derive(Args)]
pub struct OcrWorkerArgs {
    /// Path of tesseract.
    #[arg(long, value_name = "FILE")]
    program: PathBuf,
    /// Languages of the text, as tesseract calls them.
    #[arg(long, value_name = "LANGUAGES")]
    languages: String,
}

pub fn main(args: &ParseWorkerArgs) -> ExitCode {
    run_worker(args.pdfium.as_deref(), args.ocr)
}

pub fn recognise(args: &OcrWorkerArgs) -> ExitCode {
    run_tesseract(&args.program, &args.languages)
}
