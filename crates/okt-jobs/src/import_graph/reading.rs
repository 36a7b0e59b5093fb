//! Reads the file of an import, in a thread of its own: once to see that all of it is right, and once for its rows.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use okt_check::Cut;
use okt_interchange::bundle::{Limits, OwnedRow, Read, Refused, ReportRow, Row, SourceRow, read};
use okt_model::{Error, MOST_REPORT_SENTENCES, Progress, Result, SourcePage};
use okt_parse::{SEGMENTER, language_of, segmenter_hash, sentences};
use okt_queue::JobContext;
use okt_store::bundles::SourceNames;
use okt_store::report_sentences::NewSentence;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::again;
use crate::Tools;

/// Rows, and about how many bytes of texts, that are handed on at once.
const BATCH: usize = 500;
const BATCH_BYTES: usize = 1 << 20;
const WAITING: usize = 4;
/// How often somebody is told how far it is.
const TOLD: Duration = Duration::from_millis(500);
const STOPPED: &str = "nobody reads it any more";

/// What is known of a file that is right.
pub(super) struct Verified {
    pub read: Read,
    /// Those that are taken in: neither files nor vectors.
    pub rows: u64,
    pub bytes_limit: u64,
    /// The images and originals that sources name, by source.
    pub files: BTreeMap<u32, BTreeSet<String>>,
    /// Of the sources that name some, and what their originals are said to have.
    pub names: BTreeMap<u32, SourceNames>,
}

/// Tells a thread that nobody waits for it any more.
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

pub(super) fn limits(compressed_bytes: u64) -> Limits {
    Limits { compressed_bytes, ..Limits::default() }
}

/// A refusal is for whoever made the bundle.
pub(super) fn refused(refused: &Refused) -> Error {
    Error::invalid("bundle", refused.to_string())
}

/// Reads all of it.
pub(super) async fn verify(ctx: &JobContext, tools: &Tools, file: &File) -> Result<Verified> {
    let bytes_limit = tools.config().server.limits.bundle_bytes;
    let (file, rows, stopped) = (again(file)?, Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let _stop = Stop(Arc::clone(&stopped));
    let counted = Arc::clone(&rows);
    let mut reading = tokio::task::spawn_blocking(move || {
        let (mut files, mut all) = (BTreeMap::<u32, BTreeSet<String>>::new(), BTreeMap::new());
        let mut taken_in = 0;
        let read = read(file, &limits(bytes_limit), &mut |row| {
            if stopped.load(Ordering::Relaxed) {
                return Err(Refused::new("", STOPPED));
            }
            counted.fetch_add(1, Ordering::Relaxed);
            taken_in += u64::from(is_taken_in(&row));
            match row {
                Row::Source(row) => {
                    let names = SourceNames::of(row).map_err(|error| Refused::new("", error.to_string()))?;
                    pages(row)?;
                    all.insert(row.idx, names);
                }
                Row::SourceImage(row) if !row.image_ref.is_empty() => {
                    files.entry(row.source_idx).or_default().insert(row.image_ref.clone());
                }
                Row::SourceBody(row) => {
                    files.entry(row.source_idx).or_default().insert(row.body_ref.clone());
                }
                _ => {}
            }
            Ok(())
        })?;
        all.retain(|idx, _| files.contains_key(idx));
        Ok::<_, Refused>((read, taken_in, files, all))
    });
    let ended = loop {
        match tokio::time::timeout(TOLD, &mut reading).await {
            Ok(ended) => break ended,
            Err(_) => ctx.progress(Progress {
                stage: "verifying".to_owned(),
                done: rows.load(Ordering::Relaxed),
                total: None,
                message: None,
            }),
        }
    };
    let (read, rows, files, names) = ended.map_err(Error::internal)?.map_err(|error| refused(&error))?;
    Ok(Verified { read, rows, bytes_limit, files, names })
}

/// Files and vectors are kept apart from the rows.
const fn is_taken_in(row: &Row<'_>) -> bool {
    !matches!(
        row,
        Row::Metadata(_)
            | Row::Image(..)
            | Row::Body(..)
            | Row::Vectors { .. }
            | Row::FactVector(..)
            | Row::ConceptVector(..)
    )
}

/// Whether they are what is handed out.
fn pages(row: &SourceRow) -> Result<(), Refused> {
    let Some(pages) = &row.pages else { return Ok(()) };
    let read = serde_json::from_str::<Option<Vec<SourcePage>>>(pages.get());
    read.map(drop).map_err(|error| Refused::new("", format!("pages: {error}")))
}

/// A row with what is made of it before it is stored.
pub(super) enum Staged {
    Row(OwnedRow),
    Report {
        row: ReportRow,
        sentences: Vec<NewSentence>,
        /// Of the title (-1), and of each sentence.
        words: Vec<(i32, Vec<String>)>,
        language: Option<String>,
    },
}

/// The rows of a file, batch by batch.
pub(super) struct Rows {
    rows: mpsc::Receiver<Vec<Staged>>,
    reading: JoinHandle<Result<Read, Refused>>,
}

impl Rows {
    pub(super) async fn next(&mut self) -> Option<Vec<Staged>> {
        self.rows.recv().await
    }

    /// An error where it was not read to its end.
    pub(super) async fn finish(self) -> Result<()> {
        self.reading.await.map_err(Error::internal)?.map(drop).map_err(|error| refused(&error))
    }
}

pub(super) fn staged(tools: &Tools, file: File, bytes_limit: u64) -> Rows {
    let (send, rows) = mpsc::channel(WAITING);
    let least = usize::try_from(tools.config().providers.reports.min_sentence_runes).unwrap_or(usize::MAX);
    let reading = tokio::task::spawn_blocking(move || {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        let gone = || Refused::new("", STOPPED);
        let read = read(file, &limits(bytes_limit), &mut |row| {
            bytes += weight(&row);
            let (row, is_large) = match row {
                Row::Source(row) => (Staged::Row(OwnedRow::Source(with_sentences(row))), true),
                Row::Report(row) => (report(row, least)?, true),
                Row::SourceImage(row) => (Staged::Row(OwnedRow::SourceImage(row.clone())), false),
                Row::SourceBody(row) => (Staged::Row(OwnedRow::SourceBody(row.clone())), false),
                Row::Fact(row) => (Staged::Row(OwnedRow::Fact(row.clone())), false),
                Row::FactSource(row) => (Staged::Row(OwnedRow::FactSource(row.clone())), false),
                Row::Reference(row) => (Staged::Row(OwnedRow::Reference(row.clone())), false),
                Row::Concept(row) => (Staged::Row(OwnedRow::Concept(row.clone())), false),
                Row::Alias(row) => (Staged::Row(OwnedRow::Alias(row.clone())), false),
                Row::FactConcept(row) => (Staged::Row(OwnedRow::FactConcept(row.clone())), false),
                Row::Summary(row) => (Staged::Row(OwnedRow::Summary(row.clone())), false),
                Row::Synthesis(row) => (Staged::Row(OwnedRow::Synthesis(row.clone())), false),
                Row::Investigation(row) => (Staged::Row(OwnedRow::Investigation(row.clone())), false),
                Row::InvestigationSource(row) => {
                    (Staged::Row(OwnedRow::InvestigationSource(row.clone())), false)
                }
                Row::Annotation(row) => (Staged::Row(OwnedRow::Annotation(row.clone())), false),
                Row::Curation(row) => (Staged::Row(OwnedRow::Curation(row.clone())), false),
                Row::Metadata(_)
                | Row::Image(..)
                | Row::Body(..)
                | Row::Vectors { .. }
                | Row::FactVector(..)
                | Row::ConceptVector(..) => return Ok(()),
            };
            batch.push(row);
            if is_large || batch.len() >= BATCH || bytes >= BATCH_BYTES {
                bytes = 0;
                send.blocking_send(std::mem::take(&mut batch)).map_err(|_| gone())?;
            }
            Ok(())
        })?;
        if !batch.is_empty() {
            send.blocking_send(batch).map_err(|_| gone())?;
        }
        Ok(read)
    });
    Rows { rows, reading }
}

/// About how many bytes of a row have no small limit. Sources and reports are handed on one by one.
fn weight(row: &Row<'_>) -> usize {
    let list = |numbers: &[u32]| 4 * numbers.len();
    match row {
        Row::SourceImage(row) => row.url.len() + row.alt_text.len(),
        Row::Fact(row) => row.text.len() + row.image_url.len(),
        Row::Concept(row) => row.description.len(),
        Row::Summary(row) => row.content.len() + list(&row.covered_fact_idxs),
        Row::Synthesis(row) => {
            let uuids: usize = row.image_uuids.iter().map(String::len).sum();
            let covered = list(&row.covered_summary_idxs) + list(&row.covered_concept_idxs);
            row.content.len() + uuids + covered + list(&row.embedded_image_idxs)
        }
        Row::Investigation(row) => row.topic.len(),
        Row::Annotation(row) => row.sentence_text.len(),
        Row::Curation(row) => row.text.len() + row.note.len(),
        _ => 0,
    }
}

/// Texts whose sentences the producer does not tell are cut here, as those are that were read here.
fn with_sentences(row: &SourceRow) -> SourceRow {
    let mut row = row.clone();
    if row.sentence_offsets.is_empty() && !row.parsed_text.is_empty() {
        let language = Some(row.language.as_str()).filter(|language| !language.is_empty());
        let language = language.map(str::to_owned).or_else(|| language_of(&row.parsed_text, None));
        let number = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
        let cut = sentences(&row.parsed_text, language.as_deref());
        row.sentence_offsets = cut.into_iter().map(|(start, end)| (number(start), number(end))).collect();
        SEGMENTER.clone_into(&mut row.segmenter);
        row.segmenter_hash = segmenter_hash();
        row.sentence_boxes = None;
    }
    row
}

fn report(row: &ReportRow, least: usize) -> Result<Staged, Refused> {
    let language = Some(row.language.clone()).filter(|language| !language.is_empty());
    let Cut { language, sentences } = Cut::new(&row.body_md, language, least);
    if sentences.len() > MOST_REPORT_SENTENCES {
        let reason = format!("body_md has more than {MOST_REPORT_SENTENCES} sentences");
        return Err(Refused::new("", reason));
    }
    let number = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    let lexemes = |text: &str| okt_check::lexemes(text, language.as_deref()).into_iter().collect();
    let mut words = vec![(-1, lexemes(&row.title))];
    words.extend(
        sentences.iter().enumerate().map(|(place, sentence)| (number(place), lexemes(&sentence.text))),
    );
    Ok(Staged::Report { row: row.clone(), sentences, words, language })
}
