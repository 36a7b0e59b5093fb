//! How fast PDFs become text, against the engine alone, on the same 200 pages in one run:
//!
//! `OKT_PDFIUM=$(scripts/pdfium) cargo run --release -p okt-parse --example reader -- bench-pdf`
//!
//! Alone means: load each page and its text, and ask for every character and its place. Fails below [`BAR`].

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use okt_parse::{Limits, pdf};

const BAR: f64 = 0.8;
const PAGES: usize = 200;
/// Alone, ours, ours, alone: so often.
const ROUNDS: usize = 5;

pub fn run() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let library = std::env::var_os("OKT_PDFIUM").ok_or("set OKT_PDFIUM to what scripts/pdfium prints")?;
    let engine = pdf::Engine::load(Path::new(&library))?;
    let bytes = make(&engine)?;
    let (mut alone, mut ours, mut chars) = (0.0, 0.0, 0);
    for _ in 0..ROUNDS {
        for order in [true, false, false, true] {
            let before = cpu_seconds()?;
            if order {
                chars = run_alone(&engine, &bytes)?;
                alone += cpu_seconds()? - before;
            } else {
                run_ours(&engine, &bytes)?;
                ours += cpu_seconds()? - before;
            }
        }
    }
    // For comparison only: text whose places nobody knows is of no use here.
    let before = cpu_seconds()?;
    run_without_places(&engine, &bytes)?;
    let without_places = cpu_seconds()? - before;
    let pages = f64::from(u32::try_from(PAGES * ROUNDS * 2)?);
    let ratio = alone / ours;
    let mut said = String::new();
    writeln!(said, "{PAGES} pages, {chars} characters, {} runs each", ROUNDS * 2)?;
    writeln!(said, "engine alone  {:>7.0} pages per CPU second", pages / alone)?;
    writeln!(said, "ours          {:>7.0} pages per CPU second", pages / ours)?;
    writeln!(said, "(engine, text only: {:.0})", f64::from(u32::try_from(PAGES)?) / without_places)?;
    writeln!(said, "ratio         {ratio:>7.2} (at least {BAR})")?;
    std::io::stdout().write_all(said.as_bytes())?;
    Ok(if ratio < BAR { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The two-column fixture, over and over.
fn make(engine: &pdf::Engine) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/pdf/paper.pdf");
    let source = engine.bare().load_pdf_from_file(file, None)?;
    let mut target = engine.bare().create_new_pdf()?;
    for index in 0..i32::try_from(PAGES)? {
        target.pages_mut().copy_page_from_document(&source, index % 2, index)?;
    }
    Ok(target.save_to_bytes()?)
}

fn run_alone(engine: &pdf::Engine, bytes: &[u8]) -> Result<u32, Box<dyn std::error::Error>> {
    let document = engine.bare().load_pdf_from_byte_slice(bytes, None)?;
    let mut chars = 0;
    for index in 0..document.pages().len() {
        let page = document.pages().get(index)?;
        let text = page.text()?;
        for char in text.chars().iter() {
            std::hint::black_box((char.unicode_value(), char.loose_bounds().ok()));
            chars += 1;
        }
    }
    Ok(chars)
}

fn run_without_places(engine: &pdf::Engine, bytes: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
    let document = engine.bare().load_pdf_from_byte_slice(bytes, None)?;
    for index in 0..document.pages().len() {
        std::hint::black_box(document.pages().get(index)?.text()?.all());
    }
    Ok(())
}

fn run_ours(engine: &pdf::Engine, bytes: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
    let limits = Limits { images: 0, ..Limits::default() };
    std::hint::black_box(pdf::parse(engine, bytes, &limits, &mut |_| {})?);
    Ok(())
}

/// Of this process, in the kernel and out of it, to the microsecond of its scheduler.
fn cpu_seconds() -> Result<f64, Box<dyn std::error::Error>> {
    let said = std::fs::read_to_string("/proc/self/schedstat")?;
    let nanoseconds: f64 = said.split_whitespace().next().ok_or("an empty schedstat")?.parse()?;
    Ok(nanoseconds / 1e9)
}
