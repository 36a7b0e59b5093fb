//! Tools around the readers: `reader draw|fuzz|bench-pdf|locked-in`; each module says what it takes.

mod bench_pdf;
mod draw;
mod fuzz;
mod locked_in;

use std::error::Error;
use std::process::ExitCode;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    match std::env::args().nth(1).as_deref() {
        Some("draw") => draw::run()?,
        Some("fuzz") => fuzz::run()?,
        Some("bench-pdf") => return bench_pdf::run(),
        Some("locked-in") => locked_in::run()?,
        _ => return Err("name one of draw, fuzz, bench-pdf, locked-in".into()),
    }
    Ok(ExitCode::SUCCESS)
}
