//! Finds what the facts of a source are about, and links them to concepts. Reads facts that are `stable` and that nobody has
//! read for concepts yet, with this model and these instructions; leaves them linked, or without a link if they name nothing.
//!
//! Facts are asked about a few at a time. Which are asked about together is written down before the first question, and every
//! answer before it is used, so no run pays for what another has paid for. A fact that several sources make is read once.

mod reading;
mod writing;

use std::collections::BTreeMap;

use okt_extract::Promptset;
use okt_extract::concepts::{self, Found};
use okt_model::{
    ConceptExtraction, ContentHash, Context, EmbedConcepts, Error, ExtractConcepts, JobId, NoFacts,
    RefreshConceptRelations, RepositoryId, Result, Source, SourceId, UnmappedContexts,
};
use okt_queue::ended::Ended;
use okt_queue::{Finished, JobCommit, JobContext, JobError};
use okt_store::concept_readings::{self, Readable, ReadingState};
use okt_store::outbox::{self, When};
use okt_store::{
    Connection, Databases, ai_calls, contexts, promptsets, repository_settings, source_extractions, sources,
};

use self::reading::Reading;
use crate::Tools;
use crate::asking::Stopped;
use crate::contribute_source;
use crate::refine_concepts;
use crate::tools::paid;

/// A source, its facts, and with what they are read.
struct Work {
    source: Source,
    facts: Vec<Readable>,
    contexts: Vec<Context>,
    unmapped: UnmappedContexts,
    reader: Reader,
}

/// The concepts of a fact, which is given by its place in [`Work::facts`].
struct Finding {
    fact: usize,
    /// The first of those that were asked about together. They are written together, so that none of a question is read and
    /// the others are not.
    batch: usize,
    concepts: Vec<Found>,
}

/// What was found, and what was not.
#[derive(Default)]
struct Findings {
    found: Vec<Finding>,
    skipped: BTreeMap<String, u32>,
    /// Facts without a usable answer, and the first reason.
    failed: u32,
    failure: Option<NoFacts>,
    /// Facts that were not asked about, or not answered in time.
    unanswered: u32,
    stopped: Option<Stopped>,
}

/// Asks for the concepts of a source, if concepts are looked for.
pub(crate) async fn push(tx: &mut JobCommit, tools: &Tools, source: SourceId) -> Result<(), JobError> {
    if tools.config().providers.decomposition.concept_extraction.is_on() {
        tx.push(&ExtractConcepts { source }, When::default()).await?;
        return Ok(());
    }
    contribute_source::push(tx, tools, source).await
}

/// As [`push`], for the sources that make these facts; in the transaction that makes the facts stable.
pub(crate) async fn push_for(
    conn: &mut Connection,
    tools: &Tools,
    repository: RepositoryId,
    facts: &[i64],
) -> Result<(), JobError> {
    if tools.config().providers.decomposition.concept_extraction.is_on() {
        for source in concept_readings::list_sources(conn, repository, facts).await? {
            outbox::push(conn, repository, JobId::mint(), &ExtractConcepts { source }, When::default())
                .await?;
        }
    }
    Ok(())
}

pub(crate) async fn run(
    payload: ExtractConcepts,
    ctx: JobContext,
    tools: Tools,
) -> Result<Finished, JobError> {
    if !tools.config().providers.decomposition.concept_extraction.is_on() {
        return ctx.begin().await?.commit(None).await;
    }
    // What it is going to ask, this one would ask as well.
    ctx.one_at_a_time().await?;
    let Some(work) = Work::read(&ctx, &tools, payload.source).await? else {
        // Deleted meanwhile.
        return ctx.begin().await?.commit(None).await;
    };
    // They came with their concepts, and nothing has changed since.
    if work.is_imported() {
        return ctx.begin().await?.commit(None).await;
    }
    let (work, findings) = if work.reader.model == concepts::MODEL {
        extract(work).await?
    } else {
        let on_cost = |cost| ctx.spent(cost);
        let findings = Reading::new(&ctx, &tools, &work, &on_cost).await?.run().await?;
        (work, findings)
    };
    conclude(&ctx, &tools, &work, findings).await
}

/// With what facts are read for concepts.
struct Reader {
    promptset: Promptset,
    model: String,
    promptset_hash: ContentHash,
    /// The model and its instructions as one number.
    number: i64,
}

impl Reader {
    async fn of(conn: &mut Connection, tools: &Tools, repository: RepositoryId) -> Result<Self> {
        let used = promptsets::find_used(conn, repository).await?;
        let promptset = Promptset::of(used.as_ref()).map_err(Error::internal)?;
        let model = tools.config().providers.decomposition.concept_extraction.model.clone();
        let promptset_hash =
            if model == concepts::MODEL { concepts::promptset_hash() } else { promptset.registry_hash() };
        let number = concepts::reader(&model, promptset_hash);
        Ok(Self { promptset, model, promptset_hash, number })
    }
}

/// A job that was stopped or died has told its source nothing: says why its facts were not read. False when there is nothing to
/// say, because another one has read them, or has said so.
pub(crate) async fn note_ended(
    databases: &Databases,
    tools: &Tools,
    job: &Ended,
    why: NoFacts,
) -> Result<bool> {
    let (repository, source) = (job.repository, SourceId::from(job.subject));
    let mut conn = databases.acquire_system().await?;
    let Reader { model, promptset_hash, number: reader, .. } =
        Reader::of(&mut conn, tools, repository).await?;
    let cost = ai_calls::cost_of(&mut conn, repository, source.into()).await?;
    drop(conn);
    let mut tx = databases.begin(&job.database, repository).await?;
    let seen = sources::find(&mut tx, repository, source).await?;
    let Some(found) = seen.and_then(|source| source.extraction) else { return Ok(false) };
    let facts = concept_readings::list(&mut tx, repository, source, reader).await?;
    let unread = facts.iter().filter(|fact| fact.state != ReadingState::Settled).count();
    if found.concepts.is_some_and(|before| before.failure.is_some() || unread == 0) {
        return Ok(false);
    }
    let (facts, links) = concept_readings::count(&mut tx, repository, source, reader).await?;
    let extraction = ConceptExtraction {
        model,
        promptset_hash: promptset_hash.to_string(),
        facts: u32::try_from(facts).unwrap_or(u32::MAX),
        links: u32::try_from(links).unwrap_or(u32::MAX),
        skipped: BTreeMap::new(),
        failed: u32::try_from(unread).unwrap_or(u32::MAX),
        failure: Some(why),
    };
    let noted = source_extractions::note_concepts(&mut tx, repository, source, &extraction, cost).await?;
    tx.commit().await?;
    Ok(noted)
}

impl Work {
    async fn read(ctx: &JobContext, tools: &Tools, source: SourceId) -> Result<Option<Self>, JobError> {
        let mut conn = ctx.databases().acquire_system().await?;
        let settings = repository_settings::find(&mut conn, ctx.repository()).await?.unwrap_or_default();
        let reader = Reader::of(&mut conn, tools, ctx.repository()).await?;
        drop(conn);
        let mut tx = ctx.checkpoint().await?;
        let Some(source) = sources::find(&mut tx, ctx.repository(), source).await? else { return Ok(None) };
        let facts = concept_readings::list(&mut tx, ctx.repository(), source.id, reader.number).await?;
        let mut contexts = contexts::list(&mut tx, ctx.repository()).await?;
        tx.commit().await?;
        // What becomes a part of another one takes in nothing new.
        contexts.retain(|context| context.merging_into.is_none());
        let unmapped = settings.unmapped_contexts;
        Ok(Some(Self { source, facts, contexts, unmapped, reader }))
    }
}

impl Work {
    /// Whether a registry had the concepts, and every fact was read.
    fn is_imported(&self) -> bool {
        let origin = self.source.extraction.as_ref().and_then(|found| found.registry.as_ref());
        origin.is_some_and(|origin| origin.has_concepts)
            && self.facts.iter().all(|fact| fact.state == ReadingState::Settled)
    }
}

/// Without a model: names, titles and noun phrases.
async fn extract(work: Work) -> Result<(Work, Findings)> {
    let found = tokio::task::spawn_blocking(move || {
        let texts: Vec<&str> = work.facts.iter().map(|fact| fact.text.as_str()).collect();
        let (title, language) = (work.source.title.as_deref(), work.source.language.as_deref());
        let found = concepts::extract(&texts, title, language, &work.contexts);
        (work, found)
    });
    let (work, found) = found.await.map_err(Error::internal)?;
    let found = found.into_iter().enumerate().map(|(fact, concepts)| Finding { fact, batch: fact, concepts });
    let found = found.filter(|finding| work.facts[finding.fact].state != ReadingState::Settled).collect();
    Ok((work, Findings { found, ..Findings::default() }))
}

/// What the findings mean for the source.
async fn conclude(
    ctx: &JobContext,
    tools: &Tools,
    work: &Work,
    mut findings: Findings,
) -> Result<Finished, JobError> {
    if let Some(stopped) = findings.stopped.take() {
        let read = u64::try_from(findings.found.len()).unwrap_or(u64::MAX);
        let (code, message) = stopped.or_again(ctx, "concepts", read)?;
        findings.give_up(code, &message);
    }
    let Findings { found, mut skipped, failed, failure, .. } = findings;
    writing::write(ctx, work, &found, &mut skipped).await?;
    let mut tx = ctx.checkpoint().await?;
    let (facts, links) =
        concept_readings::count(&mut tx, ctx.repository(), work.source.id, work.reader.number).await?;
    tx.commit().await?;
    let count = |number: i64| u32::try_from(number).unwrap_or(u32::MAX);
    let extraction = ConceptExtraction {
        model: work.reader.model.clone(),
        promptset_hash: work.reader.promptset_hash.to_string(),
        facts: count(facts),
        links: count(links),
        skipped,
        failed,
        failure,
    };
    let cost = paid(ctx, work.source.id).await?;
    let given_up = extraction.failure.as_ref().map(|failure| {
        format!("{failed} facts were not read for concepts, the first because: {}", failure.message)
    });
    let mut tx = if given_up.is_some() { ctx.begin_discardable().await? } else { ctx.begin().await? };
    source_extractions::note_concepts(&mut tx, ctx.repository(), work.source.id, &extraction, cost).await?;
    // Also for what deduplication and the source before it have changed.
    tx.push(&RefreshConceptRelations {}, When::default()).await?;
    if tools.vectors().is_some() {
        tx.push(&EmbedConcepts { source: Some(work.source.id), concepts: Vec::new() }, When::default())
            .await?;
    } else {
        refine_concepts::push(&mut tx, ctx, tools).await?;
        contribute_source::push(&mut tx, tools, work.source.id).await?;
    }
    let output = Some(serde_json::to_value(&extraction).map_err(Error::internal)?);
    match given_up {
        Some(why) => tx.discard(why, output).await,
        None => tx.commit(output).await,
    }
}

impl Findings {
    fn fail(&mut self, facts: usize, code: &str, message: &str) {
        self.failed += u32::try_from(facts).unwrap_or(u32::MAX);
        self.failure.get_or_insert_with(|| NoFacts::new(code, message));
    }

    /// Gives up what was not answered.
    fn give_up(&mut self, code: &str, message: &str) {
        let unanswered = std::mem::take(&mut self.unanswered);
        self.fail(usize::try_from(unanswered).unwrap_or(usize::MAX), code, message);
    }
}
