//! `okt eval html DIR`.
//!
//! Two layouts are read. Pages with their whole text (`ground-truth.json`, `html/ID.html.gz`, the article extraction
//! benchmark) are compared by shingles: precision and recall per page, means over pages. Pages with pieces that must and
//! must not be in the text (`evaldata.json`, pages in `tests/eval` and `tests/cache`, trafilatura's set unpacked beside it)
//! count pieces over all pages.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use flate2::read::GzDecoder;
use okt_parse::worker::Head;
use okt_parse::{Hint, Limits, ParseError};
use serde_json::{Map, Value};

use super::shingles::{Overlap, f1, mean};

const WORST: usize = 10;

pub fn measure(folder: &Path) -> anyhow::Result<String> {
    let (whole, pieces) = (folder.join("ground-truth.json"), folder.join("evaldata.json"));
    if whole.is_file() {
        by_text(folder, &index(&whole)?)
    } else if pieces.is_file() {
        by_pieces(folder, &index(&pieces)?)
    } else {
        bail!(
            "{} has neither ground-truth.json nor evaldata.json; name a data set's folder",
            folder.display()
        )
    }
}

fn index(path: &Path) -> anyhow::Result<Map<String, Value>> {
    let file = fs::read(path).with_context(|| format!("can't read {}", path.display()))?;
    serde_json::from_slice(&file).with_context(|| format!("{} is not a JSON object", path.display()))
}

struct Page {
    f1: f64,
    precision: f64,
    recall: f64,
    name: String,
}

fn by_text(folder: &Path, index: &Map<String, Value>) -> anyhow::Result<String> {
    let mut overlaps = Vec::new();
    let mut pages = Vec::new();
    for (id, entry) in index {
        let path = folder.join("html").join(format!("{id}.html.gz"));
        let url = entry["url"].as_str();
        let text = text(&path, url)?;
        let overlap = Overlap::of(&text, entry["articleBody"].as_str().unwrap_or_default());
        let (precision, recall) =
            (overlap.precision().unwrap_or_default(), overlap.recall().unwrap_or_default());
        let name = format!("{} {}", id.get(..8).unwrap_or(id), url.unwrap_or_default());
        pages.push(Page { f1: f1(precision, recall), precision, recall, name });
        overlaps.push(overlap);
    }
    // As the authors of the set: a page of which nothing was read counts against the recall alone.
    let precision = mean(overlaps.iter().filter_map(|overlap| overlap.precision()));
    let recall = mean(overlaps.iter().filter_map(|overlap| overlap.recall()));
    pages.sort_by(|one, other| one.f1.total_cmp(&other.f1));
    let mut out = String::new();
    writeln!(out, "{} pages, 4-word shingles, means over pages", pages.len())?;
    writeln!(out, "precision {precision:.4}  recall {recall:.4}  F1 {:.4}", f1(precision, recall))?;
    writeln!(out, "\nworst     F1  precision  recall")?;
    for Page { f1, precision, recall, name } in pages.iter().take(WORST) {
        writeln!(out, "      {f1:6.3} {precision:10.3} {recall:7.3}  {name}")?;
    }
    Ok(out)
}

fn by_pieces(folder: &Path, index: &Map<String, Value>) -> anyhow::Result<String> {
    let (mut found, mut missing, mut extra, mut absent) = (0_u32, 0_u32, 0_u32, 0_u32);
    let mut pages = Vec::new();
    for (url, entry) in index {
        let file = entry["file"].as_str().with_context(|| format!("{url} has no file"))?;
        let text = text(&page(folder, file)?, Some(url))?;
        let count = |key: &str| {
            let pieces = entry[key].as_array().map(Vec::as_slice).unwrap_or_default();
            let within = pieces.iter().filter_map(Value::as_str).filter(|piece| text.contains(piece)).count();
            (
                u32::try_from(within).unwrap_or(u32::MAX),
                u32::try_from(pieces.len() - within).unwrap_or(u32::MAX),
            )
        };
        let (good, lost) = count("with");
        let (bad, kept_out) = count("without");
        (found, missing, extra, absent) = (found + good, missing + lost, extra + bad, absent + kept_out);
        pages.push((lost + bad, lost, bad, file));
    }
    let overlap = Overlap { shared: found, extra, missing };
    let (precision, recall) = (overlap.precision().unwrap_or_default(), overlap.recall().unwrap_or_default());
    let accuracy = f64::from(found + absent) / f64::from((found + missing + extra + absent).max(1));
    pages.sort_by_key(|page| std::cmp::Reverse(page.0));
    let mut out = String::new();
    writeln!(
        out,
        "{} pages, {} pieces of text and {} of boilerplate",
        pages.len(),
        found + missing,
        extra + absent
    )?;
    writeln!(
        out,
        "precision {precision:.4}  recall {recall:.4}  accuracy {accuracy:.4}  F1 {:.4}",
        f1(precision, recall)
    )?;
    writeln!(out, "\nworst  missing  too much")?;
    for (_, lost, bad, file) in pages.iter().take(WORST) {
        writeln!(out, "      {lost:8} {bad:9}  {file}")?;
    }
    Ok(out)
}

fn page(folder: &Path, file: &str) -> anyhow::Result<PathBuf> {
    ["tests/eval", "tests/cache"]
        .into_iter()
        .map(|within| folder.join(within).join(file))
        .find(|path| path.is_file())
        .with_context(|| format!("{file} is not in {}; unpack the pages there", folder.display()))
}

/// What is read of a page; nothing if it is refused.
fn text(path: &Path, url: Option<&str>) -> anyhow::Result<String> {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if path.extension().is_some_and(|end| end == "gz") {
            GzDecoder::new(File::open(path)?).read_to_end(&mut bytes)?;
        } else {
            File::open(path)?.read_to_end(&mut bytes)?;
        }
        Ok(bytes)
    };
    let bytes = read().with_context(|| format!("can't read {}", path.display()))?;
    let hint =
        Hint { content_type: Some("text/html".to_owned()), file_name: None, url: url.map(str::to_owned) };
    let head = Head { hint, limits: Limits { images: 0, ..Limits::default() } };
    let engine = Err(ParseError::NoPdfEngine("none is needed here".to_owned()));
    Ok(okt_parse::parse(engine, &bytes, &head, &mut |_| {}).map(|document| document.text).unwrap_or_default())
}
