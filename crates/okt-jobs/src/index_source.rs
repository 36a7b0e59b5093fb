//! Has a source found by its words: its facts, its passages, and the source as a whole; or, where it was deleted, has it found no
//! more. It compares what can be found with what is there, so it is harmless to repeat.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use okt_model::{EmbedPassages, Error, IndexSource, PASSAGES_OF_SOURCE, UnitKind, Waiting};
use okt_queue::{Finished, JobContext, JobError};
use okt_search::language_of;
use okt_store::outbox::When;
use okt_store::search_units::{self, Indexable, NAME, NewUnit, TITLE};
use okt_store::{Tx, passage_vectors, report_facts};
use okt_vectors::Tenant;

use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::embed_facts::current;
use crate::{Tools, check_reports, embed_passages};

/// Texts in one transaction, which keeps others from writing lists of the repository.
const BATCH: usize = 200;
/// Texts that are looked at in one transaction when some may have to go.
const PAGE: i64 = 500;
/// Until somebody else has written the lists, and for how long in a row: who begins anew reads the whole source again.
const BUSY: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_secs(10);
/// About so many words make a passage.
const PASSAGE: usize = 120;
/// A source has no more passages than this; those of a long one are longer.
#[expect(clippy::cast_possible_truncation, reason = "a small number")]
const MOST_PASSAGES: usize = PASSAGES_OF_SOURCE as usize;

pub(crate) async fn run(payload: IndexSource, ctx: JobContext, tools: Tools) -> Result<Finished, JobError> {
    // Of two for one source the earlier one may have read what the later one replaces.
    ctx.one_at_a_time().await?;
    let repository = ctx.repository();
    let mut tx = ctx.read().await?;
    let source = search_units::read_source(&mut tx, repository, payload.source).await?;
    tx.commit().await?;
    let is_there = source.is_some();
    let (no, language, units) = match (source, payload.gone) {
        (Some(source), _) => {
            let language = language_of(source.language.as_deref(), &source.text).map(str::to_owned);
            let no = source.no;
            let units = tokio::task::spawn_blocking(move || units(&source)).await.map_err(Error::internal)?;
            (no, language, units)
        }
        (None, Some(no)) => (no, None, Vec::new()),
        (None, None) => return ctx.begin().await?.commit(None).await,
    };
    let before = vectors(&ctx, no).await?;
    let _turn = tools.list_turns().take(repository).await;
    let mut changed = 0;
    for batch in units.chunks(BATCH) {
        let mut tx = held(&ctx).await?;
        let batch = search_units::list_existing(&mut tx, repository, no, batch).await?;
        changed += search_units::put(&mut tx, repository, no, &batch, language.as_deref()).await?;
        tx.commit().await?;
    }
    let wanted: BTreeSet<(UnitKind, i64)> = units.iter().map(|unit| (unit.kind, unit.no)).collect();
    let (mut removed, mut after) = (0, None);
    loop {
        let mut tx = held(&ctx).await?;
        let mut gone = search_units::list_of_source(&mut tx, repository, no, after, PAGE).await?;
        let is_last = i64::try_from(gone.len()).map_err(Error::internal)? < PAGE;
        after = gone.last().copied();
        gone.retain(|unit| !wanted.contains(unit));
        removed += search_units::give_up(&mut tx, repository, no, &gone).await?;
        tx.commit().await?;
        if is_last {
            break;
        }
    }
    let output = serde_json::json!({ "texts": units.len(), "changed": changed, "removed": removed });
    if !before.is_empty()
        && let Some((space, store)) = current(&tools).await?
    {
        let after = vectors(&ctx, no).await?;
        let gone: Vec<Uuid> = before.difference(&after).copied().collect();
        if !gone.is_empty() {
            let (tenant, place) = (Tenant::new(repository, ctx.database()), store.passage_space(&space));
            // They lead nowhere: where the store is away, whoever compares it with the rows removes them.
            if let Err(error) = store.store().remove(&tenant, &place, &gone).await {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "vectors of passages that are gone were not removed");
            }
        }
    }
    let mut tx = ctx.begin().await?;
    if is_there && embed_passages::is_on(&tools) {
        passage_vectors::note(&mut tx, repository, no, None).await?;
        tx.push(&EmbedPassages { source: payload.source }, When::default()).await?;
    }
    if !payload.imported {
        // Reports that were compared with them before could not find them by their words.
        report_facts::note_source(&mut tx, repository, no).await?;
        check_reports::push(&mut tx, repository).await?;
    }
    tx.commit(Some(output)).await
}

/// Those of the passages of a source.
async fn vectors(ctx: &JobContext, source_no: i64) -> Result<BTreeSet<Uuid>, JobError> {
    let mut tx = ctx.read().await?;
    let all = PASSAGES_OF_SOURCE;
    let vectors = passage_vectors::list(&mut tx, ctx.repository(), &[source_no], all, all).await?;
    tx.commit().await?;
    Ok(vectors.into_iter().map(|(vector, _)| vector).collect())
}

/// A transaction that holds the lists of the repository. Another process may: whoever waited in the database would give up after
/// a while, so the job comes back.
async fn held(ctx: &JobContext) -> Result<Tx, JobError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut tx = ctx.checkpoint().await?;
        if search_units::try_hold(&mut tx, ctx.repository()).await? {
            return Ok(tx);
        }
        drop(tx);
        if Instant::now() >= deadline {
            return Err(JobError::Waits { why: Waiting::Dependency, delay: BUSY });
        }
        sleep(BUSY).await;
    }
}

/// All that can be found of a source. Each text is found by the words of the title too: a sentence seldom says what it is about.
fn units(source: &Indexable) -> Vec<NewUnit> {
    let language = language_of(source.language.as_deref(), &source.text);
    let title = counted(source.title.as_deref().unwrap_or_default(), language);
    let with_title = |kind, no, sentences, text: &str| {
        let mut words = title.clone();
        add(&mut words, counted(text, language));
        NewUnit { kind, no, sentences, words }
    };
    let mut units: Vec<NewUnit> =
        source.facts.iter().map(|(no, text)| with_title(UnitKind::Fact, *no, None, text)).collect();
    let bytes = byte_ranges(&source.text, &source.sentences);
    let sentences: Vec<&str> =
        bytes.iter().map(|range| source.text.get(range.clone()).unwrap_or_default()).collect();
    let lengths: Vec<usize> = sentences.iter().map(|text| okt_search::words(text, language).len()).collect();
    for (at, (first, last)) in passages(&lengths).into_iter().enumerate() {
        let text = source.text.get(bytes[first].start..bytes[last].end).unwrap_or_default();
        let number = |at: usize| i32::try_from(at).unwrap_or(i32::MAX);
        let no = source.no * PASSAGES_OF_SOURCE + i64::from(number(at));
        units.push(with_title(UnitKind::Passage, no, Some((number(first), number(last))), text));
    }
    let mut whole = with_title(UnitKind::Source, source.no, None, &source.text);
    add(&mut whole.words, counted(source.author.as_deref().unwrap_or_default(), language));
    whole.words.extend(named(source, language));
    units.push(whole);
    units
}

fn counted(text: &str, language: Option<&str>) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for word in okt_search::words(text, language) {
        *counts.entry(word.lexeme).or_default() += 1;
    }
    counts
}

/// The names of a source, which lead from it to others that have them.
fn named(source: &Indexable, language: Option<&str>) -> BTreeMap<String, u32> {
    let word = |name: &str| format!("{NAME}{name}");
    let mut named: BTreeMap<String, u32> =
        okt_search::names(&source.text, language).iter().map(|name| (word(name), 1)).collect();
    named.extend(source.title.as_deref().and_then(okt_search::title_name).map(|name| (word(&name), TITLE)));
    named
}

fn add(words: &mut BTreeMap<String, u32>, more: BTreeMap<String, u32>) {
    for (word, count) in more {
        *words.entry(word).or_default() += count;
    }
}

/// Sentences, which are given in code points, in bytes.
pub(crate) fn byte_ranges(text: &str, sentences: &[(i32, i32)]) -> Vec<Range<usize>> {
    let mut starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    starts.push(text.len());
    let byte =
        |at: i32| usize::try_from(at).ok().and_then(|at| starts.get(at)).copied().unwrap_or(text.len());
    sentences.iter().map(|(start, end)| byte(*start)..byte(*end)).collect()
}

/// The first and the last sentence of each passage, from how many words each sentence has: all sentences, each in one.
fn passages(lengths: &[usize]) -> Vec<(usize, usize)> {
    let all: usize = lengths.iter().sum();
    // Rounded up, and one passage may end before the last sentences: there are never too many.
    let enough = PASSAGE.max(all / (MOST_PASSAGES - 1) + 1);
    let (mut passages, mut first, mut words) = (Vec::new(), 0, 0);
    for (at, length) in lengths.iter().enumerate() {
        words += length;
        if words >= enough || at + 1 == lengths.len() {
            passages.push((first, at));
            (first, words) = (at + 1, 0);
        }
    }
    passages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passages_cover_every_sentence_once_and_are_not_too_many() {
        for count in [0, 1, 3, 4, 5, 40, 5_000, 40_000] {
            let passages = passages(&vec![30; count]);
            assert!(passages.len() <= MOST_PASSAGES, "{count}: {}", passages.len());
            let covered: Vec<usize> = passages.iter().flat_map(|(first, last)| *first..=*last).collect();
            assert_eq!(covered, (0..count).collect::<Vec<_>>());
        }
        assert_eq!(passages(&[30; 8]), [(0, 3), (4, 7)]);
    }

    #[test]
    fn what_can_be_found_has_the_words_of_the_title() {
        let text = "Die Brücken sind alt. Sie tragen viel.".to_owned();
        let source = Indexable {
            no: 7,
            title: Some("Städte".to_owned()),
            author: Some("Mia Berg".to_owned()),
            language: Some("de".to_owned()),
            sentences: vec![(0, 21), (22, 38)],
            text,
            facts: vec![(90, "Brücken sind alt.".to_owned())],
        };
        let units = units(&source);
        let kinds: Vec<(UnitKind, i64)> = units.iter().map(|unit| (unit.kind, unit.no)).collect();
        assert_eq!(kinds, [(UnitKind::Fact, 90), (UnitKind::Passage, 1_792), (UnitKind::Source, 7)]);
        for unit in &units {
            assert!(unit.words.contains_key("stadt") && unit.words.contains_key("bruck"), "{unit:?}");
        }
        assert!(units[2].words.contains_key("berg") && !units[1].words.contains_key("berg"));
        assert_eq!(units[1].sentences, Some((0, 1)));
        assert_eq!(units[2].words.get("=stadte"), Some(&TITLE), "names are not stemmed");
        assert!(!units[1].words.contains_key("=stadte"), "only the whole source has names");
    }
}
