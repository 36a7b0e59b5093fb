//! Tells sources whose job was given up or cancelled that nobody is coming. The job says why; without this a source would be
//! on its way for ever.
//!
//! The notes of such jobs are still there, so that they can be tried again; it is from them that we know. Harmless to
//! repeat: a source that has gone on, or belongs to another job, is left alone.

use std::time::Duration;

use okt_model::{
    Job, JobId, JobState, Payload, RepositoryId, RetrieveSource, SourceDecomposition, SourceFailure,
    SourceId, SourceStage,
};
use okt_queue::jobs::{self, Whose};
use okt_queue::{Finished, JobError, SystemContext};
use okt_store::{Databases, ai_calls, outbox, source_extractions, sources};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A job that ended a moment ago may just be telling its source itself.
const AGE: Duration = Duration::from_secs(10);
const BATCH: i64 = 500;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SettleSources {}

impl Payload for SettleSources {
    const KIND: &'static str = "settle_sources";

    fn unique_key(&self) -> Option<String> {
        Some(String::new())
    }
}

pub(crate) async fn run(_: SettleSources, ctx: SystemContext) -> Result<Finished, JobError> {
    let mut settled = 0;
    for home in ctx.databases().homes() {
        settled += settle_in(ctx.databases(), home).await?;
    }
    Ok(ctx.finish(Some(serde_json::json!({ "sources": settled }))))
}

async fn settle_in(databases: &Databases, home: &str) -> Result<u64, JobError> {
    let (mut after, mut settled) = ((Uuid::nil(), Uuid::nil()), 0);
    loop {
        let mut tx = databases.begin_relay(home).await?;
        let notes = outbox::list_arrived(&mut tx, after, AGE.as_secs_f64(), BATCH).await?;
        tx.commit().await?;
        let Some((repository, job)) = notes.last() else { return Ok(settled) };
        after = (repository.uuid(), job.uuid());
        let ids: Vec<JobId> = notes.iter().map(|(_, job)| *job).collect();
        for job in jobs::get(databases, Whose::Everybodys, &ids).await? {
            if let Some(failure) = failure_of(&job)
                && let (Some(repository), Some(source)) = (job.repository, job.subject.source)
            {
                settled +=
                    u64::from(settle(databases, home, repository, source.into(), job.id, &failure).await?);
            }
        }
    }
}

/// False when the source has gone on, or belongs to another job.
async fn settle(
    databases: &Databases,
    home: &str,
    repository: RepositoryId,
    source: SourceId,
    job: JobId,
    failure: &SourceFailure,
) -> Result<bool, JobError> {
    let mut conn = databases.acquire_system().await?;
    // Of a job that was stopped nobody else says what it had spent by then.
    let cost = ai_calls::cost_of(&mut conn, repository, source).await?;
    conn.done();
    let mut tx = databases.begin(home, repository).await?;
    let marked = sources::mark_failed(&mut tx, repository, source, job, failure, &[]).await?;
    if marked {
        source_extractions::note(&mut tx, repository, source, job, cost, None).await?;
    }
    tx.commit().await?;
    Ok(marked)
}

/// Why the source of this job goes no further, if it does not.
fn failure_of(job: &Job) -> Option<SourceFailure> {
    let stage = match &*job.kind {
        RetrieveSource::KIND => SourceStage::Fetch,
        SourceDecomposition::KIND => SourceStage::Decomposition,
        _ => return None,
    };
    match job.state {
        JobState::Cancelled => Some(SourceFailure::new(stage, "cancelled", "its job was cancelled", true)),
        JobState::Discarded => {
            let why = job.failures.last().map_or("its job was given up", |failure| &failure.message);
            Some(SourceFailure::new(stage, "job_failed", why, true))
        }
        _ => None,
    }
}
