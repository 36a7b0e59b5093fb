//! Sums up what the facts of concepts say. Takes concepts whose facts have changed, a few in each run, brings their slices in
//! line with their facts, and has a model write the slices whose facts are others than before; the rest costs nothing.
//!
//! Which facts a slice covers is stored before a model is asked, and every answer before it is used, so no run pays for what
//! another has paid for. A concept has one writer: the job that holds it. A text is stored only if it is about the facts that
//! the slice still has, and cites no others. What a model does not answer keeps its last text.
//!
//! A slice whose answer can't be used is given up until its facts change or somebody has the job run again. Where no model
//! answers at all, nothing is given up: the next run comes for it.

mod covering;
mod slices;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use okt_ai::{RepositoryBudget, Unanswered, waiting_for_budget};
use okt_extract::Promptset;
use okt_extract::summaries::{Known, Topic, Written, read_slice, slice_question};
use okt_model::{
    Concept, ContentHash, Error, Operation, Progress, Repository, RepositoryId, Result, SummarizeConcepts,
};
use okt_providers::ai::Model;
use okt_queue::{Finished, JobCommit, JobContext, JobError};
use okt_store::concept_summaries::{self, SliceText, UnwrittenSlice};
use okt_store::outbox::When;
use okt_store::summary_states::{self, HeldConcept};
use okt_store::{Connection, Databases, promptsets, repository_settings};

use self::covering::{MOST_SLICES, cover, push_synthesis};
use crate::Tools;
use crate::asking::{AboutConcept, Patience, RUNS, Stopped};

/// Concepts that are written about at once. The slices of one are written one after the other.
const CONCURRENCY: usize = 4;

/// Asks for concepts to be summed up if something waits, where the repository has that done ([`is_on`]); else for what was deleted to
/// be taken out of their texts.
pub(crate) async fn push(
    tx: &mut JobCommit,
    repository: RepositoryId,
    tools: &Tools,
    on: bool,
) -> Result<(), JobError> {
    if is_any_waiting(tx, tools, repository, on).await? {
        tx.push(&SummarizeConcepts {}, When::default()).await?;
    }
    Ok(())
}

/// Whether [`push`] would ask.
pub(crate) async fn is_wanted(databases: &Databases, tools: &Tools, of: &Repository) -> Result<bool> {
    let on = is_on(databases, tools, of.id).await?;
    let mut tx = databases.begin_to_read(&of.database, of.id).await?;
    let waiting = is_any_waiting(&mut tx, tools, of.id, on).await?;
    tx.commit().await?;
    Ok(waiting)
}

/// Whether the repository has its concepts summed up. Before a transaction begins: it takes a connection of its own.
pub(crate) async fn is_on(databases: &Databases, tools: &Tools, repository: RepositoryId) -> Result<bool> {
    // Most installations ask nobody at all.
    if tools.config().providers.summarization.model.is_empty() {
        return Ok(false);
    }
    let mut conn = databases.acquire_system().await?;
    let settings = repository_settings::find(&mut conn, repository).await?.unwrap_or_default();
    Ok(tools.config().providers.summarization.is_on(settings.stages.summarization))
}

async fn is_any_waiting(
    conn: &mut Connection,
    tools: &Tools,
    repository: RepositoryId,
    on: bool,
) -> Result<bool> {
    let staleness = tools.config().providers.summarization.lock_staleness.duration();
    let floor = i64::from(tools.config().concept_floor());
    Ok(if on {
        summary_states::is_any_waiting(conn, repository, floor, staleness).await?
    } else {
        summary_states::is_any_torn(conn, repository, staleness).await?
    })
}

pub(crate) async fn run(_: SummarizeConcepts, ctx: JobContext, tools: Tools) -> Result<Finished, JobError> {
    if !is_on(ctx.databases(), &tools, ctx.repository()).await? {
        return covering::only_cut(&ctx, &tools).await;
    }
    let writing = Writing::open(&ctx, &tools).await?;
    let held = writing.claim().await?;
    let total = u64::try_from(held.len()).ok();
    ctx.progress(Progress { stage: "summaries".to_owned(), done: 0, total, message: None });
    let calls: Vec<BoxFuture<'_, Ended>> =
        held.iter().map(|held| writing.unless_over(*held).boxed()).collect();
    // Those that are out are waited for, whatever the others met: they are paid for.
    let ended: Vec<Ended> = stream::iter(calls).buffered(CONCURRENCY).collect().await;
    let mut sum = Sum::default();
    for ended in ended {
        sum.take(ended);
    }
    writing.conclude(sum).await
}

/// What came of a concept; nothing where it was not begun because of what another one met.
type Ended = (HeldConcept, Option<Result<Summed, JobError>>);

/// What was done about one concept.
#[derive(Default)]
struct Summed {
    written: u64,
    dropped_sentences: u64,
    dropped_citations: u64,
    /// Slices without a usable answer, and why the first has none.
    failed: u64,
    failure: Option<String>,
    stopped: Option<Stopped>,
}

/// What was done about all of them.
#[derive(Default)]
struct Sum {
    concepts: u64,
    all: Summed,
    /// Concepts that were not finished.
    open: Vec<HeldConcept>,
    error: Option<JobError>,
}

impl Sum {
    fn take(&mut self, (held, ended): Ended) {
        match ended {
            Some(Ok(summed)) => {
                let all = &mut self.all;
                all.written += summed.written;
                all.dropped_sentences += summed.dropped_sentences;
                all.dropped_citations += summed.dropped_citations;
                all.failed += summed.failed;
                all.failure = all.failure.take().or(summed.failure);
                match summed.stopped {
                    Some(stopped) => {
                        stopped.merge_into(&mut all.stopped);
                        self.open.push(held);
                    }
                    None => self.concepts += 1,
                }
            }
            Some(Err(error)) => {
                self.error.get_or_insert(error);
                self.open.push(held);
            }
            None => self.open.push(held),
        }
    }
}

/// Who writes, and with what.
struct Writing<'w> {
    ctx: &'w JobContext,
    tools: &'w Tools,
    model: Model,
    promptset: Promptset,
    promptset_hash: ContentHash,
    budget: Arc<RepositoryBudget>,
    synthesizes: bool,
    patience: Patience,
    done: AtomicU64,
}

impl<'w> Writing<'w> {
    async fn open(ctx: &'w JobContext, tools: &'w Tools) -> Result<Writing<'w>, JobError> {
        let model = tools.ai().model(&tools.config().providers.summarization.model)?;
        let mut conn = ctx.databases().acquire_system().await?;
        let settings = repository_settings::find(&mut conn, ctx.repository()).await?.unwrap_or_default();
        let used = promptsets::find_used(&mut conn, ctx.repository()).await?;
        drop(conn);
        let promptset = Promptset::of(used.as_ref()).map_err(Error::internal)?;
        Ok(Self {
            ctx,
            tools,
            model,
            promptset_hash: promptset.hash(),
            promptset,
            budget: Arc::new(RepositoryBudget::open(tools.ai(), ctx.repository()).await?),
            synthesizes: tools.config().providers.synthesis.is_on(settings.stages.synthesis),
            patience: Patience::default(),
            done: AtomicU64::new(0),
        })
    }

    /// Concepts that this job holds from now on. Those that have facts enough by now are taken in when no others are left.
    async fn claim(&self) -> Result<Vec<HeldConcept>, JobError> {
        let settings = &self.tools.config().providers.summarization;
        let (staleness, limit) =
            (settings.lock_staleness.duration(), i64::from(settings.max_concepts_per_run));
        let (repository, job) = (self.ctx.repository(), self.ctx.id());
        let mut tx = self.ctx.checkpoint().await?;
        summary_states::resume(&mut tx, repository, job).await?;
        let held = summary_states::claim(&mut tx, repository, job, staleness, (limit, false)).await?;
        tx.commit().await?;
        if i64::try_from(held.len()).is_ok_and(|count| count >= limit) {
            return Ok(held);
        }
        // In a transaction of its own: it waits for whoever counts facts, who may wait for a concept that we hold.
        let mut tx = self.ctx.checkpoint().await?;
        let floor = i64::from(self.tools.config().concept_floor());
        let taken = summary_states::take_in(&mut tx, repository, floor).await?;
        tx.commit().await?;
        if taken == 0 {
            return Ok(held);
        }
        let mut tx = self.ctx.checkpoint().await?;
        let held = summary_states::claim(&mut tx, repository, job, staleness, (limit, false)).await?;
        tx.commit().await?;
        Ok(held)
    }

    async fn unless_over(&self, held: HeldConcept) -> Ended {
        if self.patience.is_over() {
            return (held, None);
        }
        let ended = self.one(held).await;
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        self.ctx.progress(Progress { stage: "summaries".to_owned(), done, total: None, message: None });
        (held, Some(ended))
    }

    async fn one(&self, held: HeldConcept) -> Result<Summed, JobError> {
        let (repository, job) = (self.ctx.repository(), self.ctx.id());
        let mut tx = self.ctx.checkpoint().await?;
        let Some(covered) = cover(&mut tx, self.tools, (repository, job), held).await? else {
            return Ok(Summed::default());
        };
        let Some(concept) = covered.concept else {
            push_synthesis(&mut tx, repository, held).await?;
            tx.commit().await?;
            return Ok(Summed::default());
        };
        tx.commit().await?;
        let mut summed = Summed::default();
        for slice in &covered.unwritten {
            let ended = self.ask(&concept, slice).await;
            self.patience.hear(&ended);
            match ended {
                Ok((written, question)) => {
                    if !self.store(held, slice, &written, question).await? {
                        // Another job has taken the concept over, and writes it.
                        return Ok(summed);
                    }
                    summed.written += 1;
                    summed.dropped_sentences += u64::from(written.dropped_sentences);
                    summed.dropped_citations += u64::from(written.dropped_citations);
                }
                Err(unanswered) => match Stopped::keep(&mut summed.stopped, unanswered) {
                    Some((_, message)) => {
                        self.note_failure(held, slice, &message).await?;
                        summed.failed += 1;
                        summed.failure.get_or_insert(message);
                    }
                    None => return Ok(summed),
                },
            }
        }
        let more = i64::try_from(covered.unwritten.len()).is_ok_and(|count| count >= MOST_SLICES);
        let mut tx = self.ctx.checkpoint().await?;
        let ours = if more {
            summary_states::release(&mut tx, repository, job, held.no).await?
        } else if summed.failed > 0 {
            summary_states::give_up(&mut tx, repository, job, held).await?
        } else {
            summary_states::finish(&mut tx, repository, job, held).await?
        };
        if ours && !more && (self.synthesizes || covered.torn) {
            push_synthesis(&mut tx, repository, held).await?;
        }
        tx.commit().await?;
        Ok(summed)
    }

    async fn ask(
        &self,
        concept: &Concept,
        slice: &UnwrittenSlice,
    ) -> Result<(Written, ContentHash), Unanswered> {
        let topic = Topic { name: &concept.canonical_name, context: &concept.context };
        let facts: Vec<Known<'_>> = slice
            .facts
            .iter()
            .map(|fact| Known {
                id: fact.id,
                text: &fact.text,
                sources: u32::try_from(fact.source_count).unwrap_or(0),
            })
            .collect();
        let max_tokens = self.tools.config().providers.summarization.max_tokens;
        let question = slice_question(&self.promptset, &topic, &facts, max_tokens);
        let key = question.key(self.model.id());
        let Self { ctx, tools, model, budget, .. } = self;
        let about = AboutConcept { ctx, tools, model, budget, concept: concept.id };
        let read = |answer: &str, attempt| read_slice(answer, &topic, &facts, attempt);
        let written = about.ask(Operation::ConceptSummary, &question, read).await?;
        Ok((written, key))
    }

    /// False if the job does not hold the concept any more. A slice whose facts have changed meanwhile keeps its text: whoever
    /// changed them has it written.
    async fn store(
        &self,
        held: HeldConcept,
        slice: &UnwrittenSlice,
        written: &Written,
        question: ContentHash,
    ) -> Result<bool, JobError> {
        let repository = self.ctx.repository();
        let mut tx = self.ctx.checkpoint().await?;
        if !summary_states::hold(&mut tx, repository, self.ctx.id(), held.no).await? {
            return Ok(false);
        }
        let text = SliceText {
            number: slice.number,
            revision: slice.revision,
            content: &written.content,
            dropped: i32::try_from(written.dropped_sentences).unwrap_or(i32::MAX),
            model: self.model.id(),
            promptset_hash: self.promptset_hash,
            question,
        };
        concept_summaries::write(&mut tx, repository, held.no, text).await?;
        tx.commit().await?;
        Ok(true)
    }

    async fn note_failure(
        &self,
        held: HeldConcept,
        slice: &UnwrittenSlice,
        message: &str,
    ) -> Result<(), JobError> {
        let place = (slice.number, slice.revision);
        let mut tx = self.ctx.checkpoint().await?;
        concept_summaries::fail(&mut tx, self.ctx.repository(), held.no, place, message).await?;
        Ok(tx.commit().await?)
    }

    /// What all of it means for the job.
    async fn conclude(&self, mut sum: Sum) -> Result<Finished, JobError> {
        let ctx = self.ctx;
        if let Some(error) = sum.error {
            return Err(error);
        }
        let stopped = match sum.all.stopped.take() {
            Some(Stopped::Wait { why, delay, budget }) => {
                if let Some(budget) = budget {
                    ctx.progress(waiting_for_budget("summaries", sum.concepts, budget));
                    // That may take until next month, and definitions wait for concepts that are held.
                    let mut tx = ctx.checkpoint().await?;
                    self.release(&mut tx, &sum.open).await?;
                    tx.commit().await?;
                }
                return Err(JobError::Waits { why, delay });
            }
            Some(Stopped::Retryable(error)) if error.retryable() && ctx.attempt() < RUNS => {
                return Err(error.into());
            }
            Some(Stopped::Retryable(error)) => Some(error.to_string()),
            Some(Stopped::Permanent { message, .. }) => Some(message),
            None => None,
        };
        let mut tx = ctx.begin_discardable().await?;
        // Nobody was asked about them, so they wait for the next run.
        self.release(&mut tx, &sum.open).await?;
        let given_up = summary_states::leave(&mut tx, ctx.repository(), ctx.id()).await?;
        // Others would meet the same.
        if stopped.is_none() {
            push(&mut tx, ctx.repository(), self.tools, true).await?;
        }
        let output = Some(serde_json::json!({
            "concepts": sum.concepts,
            "slices": sum.all.written,
            "failed": sum.all.failed,
            "dropped_sentences": sum.all.dropped_sentences,
            "dropped_citations": sum.all.dropped_citations,
        }));
        if let Some(why) = stopped {
            let left = sum.open.len();
            return tx
                .discard(format!("{left} concepts wait for the next run, because: {why}"), output)
                .await;
        }
        if given_up > 0 {
            let why = sum.all.failure.as_deref().unwrap_or("see the failures of their summaries");
            let message =
                format!("{given_up} concepts have summaries that were not written; the first: {why}");
            return tx.discard(message, output).await;
        }
        tx.commit(output).await
    }

    async fn release(&self, conn: &mut Connection, concepts: &[HeldConcept]) -> Result<(), JobError> {
        for held in concepts {
            summary_states::release(conn, self.ctx.repository(), self.ctx.id(), held.no).await?;
        }
        Ok(())
    }
}
