//! `okt eval pdf DIR`.
//!
//! The folder has `ID.pdf`, `ID.gold.txt` (title, abstract and body) and `ID.jats.xml` (the publisher's record with authors
//! and the date) for each paper. Texts are compared in lower case, by shingles: recall is what counts, because references,
//! margins and code are in the file and not in the wanted text. Order is the share of shingles that stand in the wanted order,
//! of those that occur once in both texts.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use okt_config::Loaded;
use okt_parse::pdf::Engine;
use okt_parse::worker::Head;
use okt_parse::{Document, Hint, Limits};

use super::shingles::{Overlap, mean, words};
use crate::serve;

#[derive(Default)]
struct Paper {
    name: String,
    recall: f64,
    precision: f64,
    order: f64,
    /// All names of the record, and no others.
    authors: bool,
    /// A day, and none before that of the record, which may be the day of the submission.
    dated: bool,
}

pub fn measure(folder: &Path, loaded: &Loaded) -> anyhow::Result<String> {
    let library = serve::pdfium(&loaded.config)?.context(
        "PDFs can't be read: name a libpdfium.so in providers.parsing.pdfium, or put it beside the program",
    )?;
    let engine = Engine::load(&library)?;
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .with_context(|| format!("can't read {}", folder.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "pdf"))
        .filter(|path| path.with_extension("gold.txt").is_file())
        .collect();
    files.sort();
    if files.is_empty() {
        bail!("{} has no ID.pdf with an ID.gold.txt beside it", folder.display());
    }
    let papers = files.iter().map(|path| paper(&engine, path)).collect::<anyhow::Result<Vec<_>>>()?;
    table(&papers)
}

fn paper(engine: &Engine, path: &Path) -> anyhow::Result<Paper> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let bytes = fs::read(path)?;
    let limits = Limits { images: 0, page_images: 0, ..Limits::default() };
    let head = Head { hint: Hint::default(), limits };
    // What is refused is a paper of which nothing was read.
    let Ok(document) = okt_parse::parse(Ok(engine), &bytes, &head, &mut |_| {}) else {
        return Ok(Paper { name, ..Paper::default() });
    };
    let wanted = fs::read_to_string(path.with_extension("gold.txt"))?.to_lowercase();
    let read = document.text.to_lowercase();
    let overlap = Overlap::of(&read, &wanted);
    let record = fs::read_to_string(path.with_extension("jats.xml")).unwrap_or_default();
    Ok(Paper {
        name,
        recall: overlap.recall().unwrap_or_default(),
        precision: overlap.precision().unwrap_or_default(),
        order: order(&read, &wanted),
        authors: has_authors(&document, &record),
        dated: document.published_at.is_some_and(|day| day.len() == 10 && day.as_str() >= recorded(&record)),
    })
}

/// Of the shingles that occur once in both texts, the share in the longest run that has the same order in both.
fn order(read: &str, wanted: &str) -> f64 {
    let places = |text: &str| {
        let mut places: HashMap<String, Option<usize>> = HashMap::new();
        for (at, run) in words(text).windows(4).enumerate() {
            places.entry(run.join(" ")).and_modify(|place| *place = None).or_insert(Some(at));
        }
        places
    };
    let read = places(read);
    let mut shared: Vec<(usize, usize)> =
        places(wanted).into_iter().filter_map(|(run, at)| Some((at?, (*read.get(&run)?)?))).collect();
    shared.sort_unstable();
    // The least end of a rising run of each length.
    let mut ends: Vec<usize> = Vec::new();
    for &(_, place) in &shared {
        let at = ends.partition_point(|end| *end < place);
        if at == ends.len() { ends.push(place) } else { ends[at] = place }
    }
    let count = |list: usize| f64::from(u32::try_from(list).unwrap_or(u32::MAX));
    if shared.is_empty() { 0.0 } else { count(ends.len()) / count(shared.len()) }
}

/// Whether each author of the record is named by the document, and nobody else is.
fn has_authors(document: &Document, record: &str) -> bool {
    let Some(author) = document.author.as_deref() else { return false };
    let found: Vec<String> = author.split(", ").map(fold).collect();
    let people: Vec<&str> = record.split("<contrib contrib-type=\"author\"").skip(1).collect();
    let named = people.iter().filter(|person| {
        let surname = fold(element(person, "surname").unwrap_or_default());
        let given = fold(element(person, "given-names").unwrap_or_default());
        let first = given.split(' ').next().unwrap_or_default();
        found.iter().any(|name| name.ends_with(&surname) && name.starts_with(first))
    });
    !people.is_empty() && named.count() == people.len() && found.len() == people.len()
}

/// `2024-05-23`; nothing, which is before every day, if there is none.
fn recorded(record: &str) -> &str {
    let date = record.split_once("<pub-date").and_then(|(_, rest)| rest.split_once("iso-8601-date=\""));
    date.and_then(|(_, rest)| rest.split_once('"')).map_or("", |(day, _)| day)
}

/// The text of the first element of a name.
fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    rest.split_once("</").map(|(text, _)| text)
}

fn fold(name: &str) -> String {
    words(&name.to_lowercase()).join(" ")
}

fn table(papers: &[Paper]) -> anyhow::Result<String> {
    let count = |is: fn(&Paper) -> bool| papers.iter().filter(|paper| is(paper)).count();
    let mut out = String::new();
    writeln!(out, "{} papers, 4-word shingles, means over papers", papers.len())?;
    writeln!(
        out,
        "recall {:.4}  precision {:.4}  order {:.4}",
        mean(papers.iter().map(|paper| paper.recall)),
        mean(papers.iter().map(|paper| paper.precision)),
        mean(papers.iter().map(|paper| paper.order))
    )?;
    writeln!(out, "authors {}  dates {}", count(|paper| paper.authors), count(|paper| paper.dated))?;
    writeln!(out, "\npaper            recall  order  authors  date")?;
    for paper in papers {
        let sign = |is: bool| if is { "yes" } else { "no" };
        writeln!(
            out,
            "{:<16} {:6.3} {:6.3}  {:<7}  {}",
            paper.name,
            paper.recall,
            paper.order,
            sign(paper.authors),
            sign(paper.dated)
        )?;
    }
    Ok(out)
}
