//! Reads the pages of a folder again and again: `html_bench FOLDER ROUNDS`.
//!
//! Writes the text of each page beside `OUT` in the environment if it is set, and prints how many seconds of CPU one page
//! took on average. Its partner is `scripts/bench-html`.

use std::error::Error;
use std::path::{Path, PathBuf};

use okt_parse::ParseError;
use okt_parse::worker::Head;

#[expect(clippy::print_stdout, reason = "the figure is what it is run for")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("the folder of the pages is missing")?);
    let rounds: u32 = arguments.next().ok_or("the number of rounds is missing")?.parse()?;
    let mut pages = Vec::new();
    for entry in std::fs::read_dir(&folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "html") {
            let page = std::fs::read(&path)?;
            pages.push((path, page));
        }
    }
    pages.sort();
    let out = std::env::var_os("OUT").map(PathBuf::from);
    for (path, page) in &pages {
        let text = read(page)?;
        if let Some(out) = &out {
            let name = path.file_stem().unwrap_or_default();
            std::fs::write(out.join(Path::new(name).with_extension("txt")), text)?;
        }
    }
    let before = cpu_ticks()?;
    for _ in 0..rounds {
        for (_, page) in &pages {
            std::hint::black_box(read(page)?);
        }
    }
    let ticks = cpu_ticks()? - before;
    let read = f64::from(rounds) * f64::from(u32::try_from(pages.len())?);
    // The kernel counts in hundredths of a second, whatever its own clock is.
    println!("{:.9}", ticks / 100.0 / read);
    Ok(())
}

fn read(page: &[u8]) -> Result<String, Box<dyn Error>> {
    let engine = Err(ParseError::NoPdfEngine("none is needed here".to_owned()));
    Ok(okt_parse::parse(engine, page, &Head::default(), &mut |_| {})?.text)
}

/// User and system time of this process.
fn cpu_ticks() -> Result<f64, Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks: Vec<f64> =
        fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse().ok()).collect();
    Ok(ticks.iter().sum())
}
