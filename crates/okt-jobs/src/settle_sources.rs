//! Tells sources, reports and answers whose job was given up or cancelled that nobody is coming. The job says why; without this a source
//! would be on its way for ever, a report would never be checked, and an answer would hold the money that it may cost.
//!
//! Each such job is looked at once, until it is retried. Harmless to repeat: a source that has gone on, or belongs to another
//! job, is left alone.

use std::collections::BTreeSet;
use std::time::Duration;

use okt_model::{
    AnnotateReport, AnswerId, AnswerQuestion, AnswerStatus, Error, ExtractConcepts, JobState, NoFacts,
    Payload, ReportId, ReportStatus, RetrieveSource, SourceDecomposition, SourceFailure, SourceId,
    SourceStage, Subject, SubjectKind,
};
use okt_queue::ended::{self, Ended};
use okt_queue::{Finished, JobError, SystemContext};
use okt_store::{Databases, ai_calls, answers, report_sentences, reports, source_extractions, sources};
use serde::{Deserialize, Serialize};

use crate::{Tools, extract_concepts};

/// A job that ended a moment ago may just be telling its source itself.
const AGE: Duration = Duration::from_secs(10);
const BATCH: i64 = 500;
const KINDS: [&str; 5] = [
    RetrieveSource::KIND,
    SourceDecomposition::KIND,
    ExtractConcepts::KIND,
    AnnotateReport::KIND,
    AnswerQuestion::KIND,
];

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SettleSources {}

impl Payload for SettleSources {
    const KIND: &'static str = "settle_sources";
    const INTERNAL: bool = true;

    fn unique_key(&self) -> Option<String> {
        Some(String::new())
    }
}

pub(crate) async fn run(_: SettleSources, ctx: SystemContext, tools: Tools) -> Result<Finished, JobError> {
    let (mut settled, mut away) = (0, BTreeSet::new());
    loop {
        let without: Vec<String> = away.iter().cloned().collect();
        let ended = ended::list_unhandled(ctx.databases(), &KINDS, AGE, &without, BATCH).await?;
        if ended.is_empty() {
            break;
        }
        let mut handled = Vec::new();
        for job in ended {
            if away.contains(&job.database) {
                continue;
            }
            match settle(ctx.databases(), &tools, &job).await {
                Ok(marked) => {
                    settled += u64::from(marked);
                    handled.push(job.id);
                }
                // Its repository was deleted, and the source with it.
                Err(Error::NotFound(_)) => handled.push(job.id),
                // One database that is away does not hold up the sources of the others; the next tick comes for its own.
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(
                        database = job.database,
                        error,
                        "failed to update sources whose job ended; will retry at the next run"
                    );
                    away.insert(job.database);
                }
            }
        }
        ended::mark_handled(ctx.databases(), &handled).await?;
    }
    Ok(ctx.finish(Some(serde_json::json!({ "sources": settled, "databases_away": away }))))
}

/// False when the source has gone on, or belongs to another job.
async fn settle(databases: &Databases, tools: &Tools, job: &Ended) -> Result<bool, Error> {
    let Some((code, why)) = reason_of(job) else { return Ok(false) };
    if job.kind == AnnotateReport::KIND {
        return settle_report(databases, job, code, why).await;
    }
    if job.kind == AnswerQuestion::KIND {
        return settle_answer(databases, job).await;
    }
    let (repository, source) = (job.repository, SourceId::from(job.subject));
    let stage = match &*job.kind {
        RetrieveSource::KIND => SourceStage::Fetch,
        SourceDecomposition::KIND => SourceStage::Decomposition,
        // Its facts are there: only what they are about is not known.
        _ => return extract_concepts::note_ended(databases, tools, job, NoFacts::new(code, why)).await,
    };
    let failure = SourceFailure::new(stage, code, why, true);
    let mut conn = databases.acquire_system().await?;
    // Of a job that was stopped nobody else says what it had spent by then.
    let cost = ai_calls::cost_of(&mut conn, repository, source.into()).await?;
    drop(conn);
    let mut tx = databases.begin(&job.database, repository).await?;
    let marked = sources::mark_failed(&mut tx, repository, source, job.id, &failure, &[]).await?;
    if marked {
        source_extractions::note(&mut tx, repository, source, job.id, cost, None).await?;
    }
    tx.commit().await?;
    Ok(marked)
}

/// False when nothing of the report waits any more.
async fn settle_report(databases: &Databases, job: &Ended, code: &str, why: &str) -> Result<bool, Error> {
    let mut tx = databases.begin(&job.database, job.repository).await?;
    let report = reports::find(&mut tx, job.repository, ReportId::from(job.subject)).await?;
    let Some(report) = report else { return Ok(false) };
    let waits = report_sentences::is_waiting(&mut tx, job.repository, report.no).await?;
    if waits {
        reports::mark(&mut tx, job.repository, report.no, ReportStatus::Failed, Some((code, why))).await?;
    }
    tx.commit().await?;
    Ok(waits)
}

/// False when the answer has ended.
async fn settle_answer(databases: &Databases, job: &Ended) -> Result<bool, Error> {
    let (repository, answer) = (job.repository, AnswerId::from(job.subject));
    let subject = Subject::new(SubjectKind::Question, answer.uuid());
    let mut conn = databases.acquire_system().await?;
    let spent = ai_calls::cost_and_calls_of(&mut conn, repository, subject).await?;
    drop(conn);
    let cancelled = job.state == JobState::Cancelled;
    let status = if cancelled { AnswerStatus::Cancelled } else { AnswerStatus::Failed };
    let mut tx = databases.begin(&job.database, repository).await?;
    let ended = answers::break_off(&mut tx, repository, answer, status, spent).await?;
    tx.commit().await?;
    Ok(ended)
}

/// Why the source of this job goes no further, if it does not: a stable code, and words.
fn reason_of(job: &Ended) -> Option<(&'static str, &str)> {
    match job.state {
        JobState::Cancelled => Some(("cancelled", "its job was cancelled")),
        JobState::Discarded => Some(("job_failed", job.message.as_deref().unwrap_or("its job was given up"))),
        _ => None,
    }
}
