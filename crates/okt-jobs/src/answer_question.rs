//! Writes and checks an answer whose evidence has been found. Reads an answer that runs, leaves one that has ended.
//!
//! Each sentence is kept, with its verdict, before the next one is looked at, so a run that comes after one that died goes on behind the
//! last. What a model has answered is kept by what it was asked, so nothing is paid twice but what was on the wire.

mod checking;
mod extractive;
mod settled;
mod writing;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use okt_ai::{Asker, Billing, Heard, RepositoryBudget, SubjectBudget, Unanswered};
use okt_check::Judge;
use okt_extract::answers::Given;
use okt_extract::{Misfit, Question};
use okt_model::{
    Answer, AnswerEvent, AnswerMode, AnswerQuestion, Cost, Error, Evidence, EvidenceKind, MarkKind,
    Operation, Progress, SourceId, Subject, SubjectKind, WhyExtractive,
};
use okt_providers::ai::Model;
use okt_queue::{Finished, JobContext, JobError};
use okt_store::answers::{self, AnswerFilter};
use okt_store::{answer_events, repositories, source_marks, sources};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

use crate::Tools;

/// Runs after which a model that does not answer is given up, and the facts themselves are shown.
const RUNS: i32 = 3;
/// All models together may take so many times the patience with one of them.
const LONGEST: u32 = 3;
/// Questions of a conversation by which a follow-up is understood.
const EARLIER: i64 = 3;

pub(crate) async fn run(
    payload: AnswerQuestion,
    ctx: JobContext,
    tools: Tools,
) -> Result<Finished, JobError> {
    // Two would write the same sentences.
    ctx.one_at_a_time().await?;
    let mut tx = ctx.checkpoint().await?;
    let Some(answer) = answers::hold_running(&mut tx, ctx.repository(), payload.answer).await? else {
        // It was cancelled or deleted.
        tx.commit().await?;
        return ctx.begin().await?.commit(None).await;
    };
    let events = answer_events::list(&mut tx, ctx.repository(), answer.no, 0).await?;
    let age = repositories::now(&mut tx).await? - answer.created_at;
    let mut earlier = Vec::new();
    if answer.conversation.is_some() {
        earlier = earlier_questions(&mut tx, &ctx, &answer).await?;
    }
    tx.commit().await?;
    let events: Vec<AnswerEvent> = events.into_iter().map(|(_, event)| event).collect();
    let found = evidence_of(&events);
    let evidence = standing(&ctx, &found).await?;
    let billing = Billing {
        repository: ctx.repository(),
        database: ctx.database().to_owned(),
        subject: Some(Subject::new(SubjectKind::Question, answer.id.uuid())),
        job: Some(ctx.id()),
    };
    let turned = events.iter().find_map(|event| match event {
        AnswerEvent::Turned { why } => Some(*why),
        _ => None,
    });
    let repository_budget = Arc::new(RepositoryBudget::open(tools.ai(), ctx.repository()).await?);
    let limit = Some(answer.max_cost);
    let budget = Arc::new(SubjectBudget::open(tools.ai(), &billing, limit).await?);
    let judge = match &answer.check_model {
        // Nobody is asked about an answer that nobody has written.
        Some(name) if answer.mode == AnswerMode::Model && turned.is_none() => {
            match Judge::named(tools.ai(), ctx.databases(), ctx.repository(), name).await {
                Ok(judge) => Some(judge),
                // The settings may have been changed meanwhile.
                Err(Error::NotConfigured(_)) => None,
                Err(error) => return Err(error.into()),
            }
        }
        _ => Some(Judge::Rule),
    };
    let patience = tools.config().ask.patience.duration();
    let answering = Answering {
        ctx: &ctx,
        tools: &tools,
        answer: &answer,
        found: &found,
        evidence: &evidence,
        earlier: &earlier,
        billing,
        budget,
        repository_budget,
        silent: AtomicBool::new(judge.is_none()),
        judge: judge.unwrap_or(Judge::Rule),
        patience,
        last: Instant::now() + patience * LONGEST,
        patient: ctx.attempt() < RUNS && age < chrono::Duration::minutes(2),
        written: Mutex::new(events),
    };
    let ending = match (answer.mode, turned) {
        (AnswerMode::Model, None) => answering.by_model().await,
        (_, why) => answering.extractive(why.or(answer.why_extractive)).await,
    };
    match ending {
        Ok(ending) => answering.end(ending).await,
        // Somebody has stopped it meanwhile.
        Err(Stop::Ended) => ctx.begin().await?.commit(None).await,
        Err(Stop::Job(error)) => Err(error),
    }
}

/// Why an answer is not written to its end by this run.
enum Stop {
    /// It has ended.
    Ended,
    Job(JobError),
}

impl<E: Into<JobError>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Job(error.into())
    }
}

async fn earlier_questions(
    tx: &mut okt_store::Tx,
    ctx: &JobContext,
    answer: &Answer,
) -> Result<Vec<String>, JobError> {
    let Some(conversation) = answer.conversation else { return Ok(Vec::new()) };
    let found =
        okt_store::conversations::list(tx, ctx.repository(), answer.asked_by, Some(conversation), None, 1)
            .await?;
    let Some(conversation) = found.first() else { return Ok(Vec::new()) };
    let filter = AnswerFilter { shared: Some(false), conversation: Some(conversation.no) };
    let before =
        answers::list(tx, ctx.repository(), answer.asked_by, filter, Some(answer.id), EARLIER).await?;
    Ok(before.into_iter().rev().map(|answer| answer.question).collect())
}

fn evidence_of(events: &[AnswerEvent]) -> Vec<Evidence> {
    let mut found = Vec::new();
    for event in events {
        if let AnswerEvent::Evidence { facts, .. } = event {
            found.clone_from(facts);
        }
    }
    found
}

/// What was not rejected, retracted or deleted since it was found: the job may begin late, or again.
async fn standing(ctx: &JobContext, found: &[Evidence]) -> Result<Vec<Evidence>, JobError> {
    let facts: Vec<i64> = found.iter().filter_map(|one| one.fact_no).collect();
    let of_passages = found.iter().filter(|one| one.kind == EvidenceKind::Passage);
    let sources: Vec<SourceId> =
        of_passages.filter_map(|one| one.source.as_ref()).map(|source| source.id).collect();
    let mut tx = ctx.read().await?;
    let facts = answers::list_standing(&mut tx, ctx.repository(), &facts).await?;
    let there = sources::list_there(&mut tx, ctx.repository(), &sources).await?;
    let marked = source_marks::get(&mut tx, ctx.repository(), &there).await?;
    tx.commit().await?;
    let retracted = |id: &SourceId| marked.get(id).is_some_and(|mark| mark.kind == MarkKind::Retracted);
    let stands = |one: &&Evidence| match one.fact_no {
        Some(no) => facts.contains(&no),
        None => {
            one.source.as_ref().is_some_and(|source| there.contains(&source.id) && !retracted(&source.id))
        }
    };
    Ok(found.iter().filter(stands).cloned().collect())
}

/// What all parts of the work have in common.
struct Answering<'a> {
    ctx: &'a JobContext,
    tools: &'a Tools,
    answer: &'a Answer,
    /// What was found when it was asked, and what of that still stands.
    found: &'a [Evidence],
    evidence: &'a [Evidence],
    earlier: &'a [String],
    billing: Billing,
    budget: Arc<SubjectBudget>,
    repository_budget: Arc<RepositoryBudget>,
    judge: Judge,
    /// So long a model may say nothing, and then until when it is heard at all: somebody waits.
    patience: Duration,
    last: Instant,
    /// A checker did not answer, or may not be asked any more: the rest is checked by rules.
    silent: AtomicBool,
    /// Another run may ask a model again that did not answer.
    patient: bool,
    /// All events so far.
    written: Mutex<Vec<AnswerEvent>>,
}

impl Answering<'_> {
    /// Adds an event, if the answer has not been stopped. A watcher sees it at once.
    async fn tell(&self, event: AnswerEvent) -> Result<(), Stop> {
        let mut tx = self.ctx.checkpoint().await?;
        let held = answers::hold_running(&mut tx, self.ctx.repository(), self.answer.id).await?;
        // Another run may go on with it, if this one was away for so long that it was given up.
        let place = answer_events::last_place(&mut tx, self.ctx.repository(), self.answer.no).await?;
        if held.is_none() || usize::try_from(place) != Ok(self.written.lock().await.len()) {
            return Err(Stop::Ended);
        }
        answer_events::append(&mut tx, self.ctx.repository(), self.answer.no, std::slice::from_ref(&event))
            .await?;
        tx.commit().await?;
        let mut written = self.written.lock().await;
        written.push(event);
        let done = u64::try_from(written.len()).unwrap_or(0);
        self.ctx.progress(Progress { stage: "sentences".to_owned(), done, total: None, message: None });
        Ok(())
    }

    /// Until when a model that is asked now has to say something.
    fn soon(&self) -> Instant {
        self.last.min(Instant::now() + self.patience)
    }

    /// The answer of a model, or the one that it gave to the same question before.
    async fn ask<T>(
        &self,
        model: &Model,
        operation: Operation,
        question: &Question,
        heard: Option<&Heard>,
        until: Instant,
        read: impl Fn(&str) -> Result<T, Misfit>,
    ) -> Result<T, Unanswered> {
        let key = question.key(model.id());
        let answered = self.tools.ai().answered(&self.billing, &[key]).await?;
        if let Some(Ok(value)) = answered.get(&key).map(|earlier| read(&earlier.answer)) {
            return Ok(value);
        }
        let on_cost = |cost: Cost| self.ctx.spent(cost);
        let asker = Asker::new(
            self.tools.ai(),
            self.billing.clone(),
            Arc::clone(&self.budget),
            Arc::clone(&self.repository_budget),
            &on_cost,
        );
        // The call goes on without us, and what it costs is written down.
        let answer = asker.ask_heard(model, operation, question, None, heard, read);
        let value = timeout_at(until, answer).await.unwrap_or_else(|_| Err(slow()))?;
        asker.stored().await?;
        Ok(value)
    }

    fn given(&self) -> Vec<Given<'_>> {
        self.evidence.iter().map(given).collect()
    }

    fn find(&self, key: &str) -> Option<&Evidence> {
        self.evidence.iter().find(|one| one.key == key)
    }

    /// As it was asked, in ISO 639.
    fn language(&self) -> Option<String> {
        self.answer.language.clone().or_else(|| okt_parse::language_of(&self.answer.question, None))
    }

    fn silence(&self) {
        self.silent.store(true, Ordering::Relaxed);
    }

    fn is_silent(&self) -> bool {
        self.silent.load(Ordering::Relaxed)
    }
}

/// A piece of evidence as models and rules are given it.
fn given(one: &Evidence) -> Given<'_> {
    use chrono::Datelike as _;
    let source = one.source.as_ref();
    Given {
        key: &one.key,
        text: &one.text,
        quote: one.quote.as_deref(),
        around: one.around.as_deref(),
        title: source.and_then(|source| source.title.as_deref()),
        year: source.and_then(|source| source.published_at).map(|day| day.year()),
    }
}

/// What a model that says nothing in time has said. It is not asked again: the facts are there.
fn slow() -> Unanswered {
    let message = "the model has said nothing in time (ask.patience)".to_owned();
    Unanswered::Permanent { code: "model_slow", message, retryable: false }
}

/// Why a model that was asked has written nothing, as it is shown.
fn why(unanswered: &Unanswered) -> WhyExtractive {
    match unanswered {
        Unanswered::Permanent { code: "max_cost_reached", .. } => WhyExtractive::MaxCost,
        Unanswered::Wait { budget: Some(_), .. } => WhyExtractive::OverBudget,
        _ => WhyExtractive::ModelFailed,
    }
}
