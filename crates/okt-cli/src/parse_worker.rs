//! `okt parse-worker`: the child that reads documents, locked in.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use okt_parse::pdf::{self, Engine};
use okt_parse::worker::{Head, run_worker};
use okt_parse::{Document, Image, ParseError};

#[derive(Args)]
pub struct ParseWorkerArgs {
    /// The library that reads PDFs; without it, they are refused.
    #[arg(long, value_name = "FILE")]
    pdfium: Option<PathBuf>,
}

pub fn main(args: &ParseWorkerArgs) -> ExitCode {
    run_worker(args.pdfium.as_deref(), parse)
}

fn parse(
    engine: Result<&Engine, ParseError>,
    bytes: &[u8],
    head: &Head,
    images: &mut dyn FnMut(Image),
) -> Result<Document, ParseError> {
    if !pdf::is_pdf(bytes) {
        return Err(ParseError::Unsupported("it is no PDF".to_owned()));
    }
    pdf::parse(engine?, bytes, &head.limits, paragraphs, images)
}

/// Each paragraph as one sentence.
fn paragraphs(text: &str, _language: Option<&str>) -> Vec<(u32, u32)> {
    let mut at = 0;
    let mut found = Vec::new();
    for paragraph in text.split("\n\n") {
        let len = u32::try_from(paragraph.chars().count()).unwrap_or(u32::MAX);
        found.push((at, at + len));
        at += len + 2;
    }
    found
}
