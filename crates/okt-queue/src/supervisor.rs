//! Supervises one job while it runs: outcome, timeout, cancellation.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use okt_model::{Error, JobId, RepositoryId};
use tokio::sync::oneshot;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::claim_query::ClaimedJob;
use crate::context::{Finished, JobError, JobRun, ProgressTracker};
use crate::json;
use crate::outcome::{JobOutcome, Outcome};
use crate::worker::Shared;

/// How long an aborted job may take to reach its next `await`.
const ABORT_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a running job should stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopReason {
    /// A user cancelled the job.
    Cancel,
    /// Another worker has claimed the job.
    Lost,
    /// The worker is stopping.
    Release,
    /// It took too long.
    TimedOut,
}

/// A job that runs in this process.
pub(crate) struct Running {
    pub(crate) kind: String,
    pub(crate) fencing_token: i32,
    pub(crate) repository: Option<RepositoryId>,
    pub(crate) tracker: Arc<ProgressTracker>,
    /// Whether the watchers have been told that it runs.
    pub(crate) announced: bool,
    stop: Option<oneshot::Sender<StopReason>>,
}

impl Running {
    pub(crate) fn stop(&mut self, reason: StopReason) {
        if let Some(sender) = self.stop.take() {
            // It may just have ended by itself.
            let _ = sender.send(reason);
        }
    }
}

/// Which kind of slot a job occupies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotKind {
    Regular,
    Express,
    /// The one suspect that runs in this process.
    Suspect,
}

/// Runs a job to its end and records the outcome.
pub(crate) fn supervise(
    shared: Arc<Shared>,
    job: ClaimedJob,
    slot: SlotKind,
) -> impl Future<Output = ()> + Send + 'static {
    let (stop, stopped_by) = oneshot::channel();
    let job = Arc::new(job);
    let tracker = Arc::new(ProgressTracker::resume(job.cost));
    let running = Running {
        kind: job.kind.clone(),
        fencing_token: job.fencing_token,
        repository: job.repository,
        tracker: Arc::clone(&tracker),
        announced: false,
        stop: Some(stop),
    };
    // Now, not when the future is first looked at: the next claim asks who runs here.
    // Where an older run of the same job is replaced, it hears that it has lost it.
    shared.running().insert(job.id, running);
    supervise_running(shared, job, slot, tracker, stopped_by)
}

async fn supervise_running(
    shared: Arc<Shared>,
    job: Arc<ClaimedJob>,
    slot: SlotKind,
    tracker: Arc<ProgressTracker>,
    stopped_by: oneshot::Receiver<StopReason>,
) {
    let outcome = if job.cancelled {
        Some(Outcome::Cancelled)
    } else {
        run(&shared, &job, Arc::clone(&tracker), stopped_by).await
    };
    // Release the slot before removing the job from `running`, so that the express claim still sees this tenant as busy.
    match slot {
        SlotKind::Regular => shared.slots.release(&job.kind),
        SlotKind::Express => shared.slots.release_express(&job.kind),
        SlotKind::Suspect => {
            shared.suspect_runs.store(false, Ordering::Relaxed);
            shared.slots.release(&job.kind);
        }
    }
    // Insert here before removing from `running`: a job in neither would be released as an orphan.
    if outcome.is_some() {
        shared.unrecorded().insert(job.id);
    }
    shared.remove_running(job.id, job.fencing_token);
    if let Some(outcome) = outcome {
        shared.send_outcome(JobOutcome::new(&job, outcome, &tracker)).await;
    }
}

/// `None` when the outcome is not this worker's to record.
async fn run(
    shared: &Arc<Shared>,
    job: &Arc<ClaimedJob>,
    tracker: Arc<ProgressTracker>,
    stopped_by: oneshot::Receiver<StopReason>,
) -> Option<Outcome> {
    let cancel = CancellationToken::new();
    let job_run = JobRun {
        job: Arc::clone(job),
        databases: shared.job_databases.clone(),
        cancel: cancel.clone(),
        tracker,
    };
    let work = shared.kinds.run(job_run)?;
    let span = tracing::info_span!("job", job.id = %job.id, job.kind = job.kind, job.attempt = job.attempt);
    let mut task = shared.spawn(work.instrument(span));
    let limit = async {
        match shared.settings.timeouts.get(&job.kind) {
            Some(limit) => tokio::time::sleep(*limit).await,
            None => std::future::pending().await,
        }
    };
    let reason = tokio::select! {
        ended = &mut task => return match ended {
            // Its threads are gone, and so will be this process.
            Err(error) if !error.is_panic() => None,
            ended => Some(outcome_of(job, ended)),
        },
        // Nobody can send any more only when the job was forgotten, and then it is not ours.
        reason = stopped_by => reason.unwrap_or(StopReason::Lost),
        () = limit => StopReason::TimedOut,
    };
    cancel.cancel();
    task.abort();
    match tokio::time::timeout(ABORT_TIMEOUT, &mut task).await {
        // It was quicker than the order.
        Ok(Ok(ended)) => Some(outcome_of(job, Ok(ended))),
        Ok(Err(error)) if error.is_panic() => Some(outcome_of(job, Err(error))),
        Ok(Err(_)) => stopped(shared, job, reason),
        Err(_) => {
            tracing::error!(
                job.id = %job.id, job.kind = job.kind, waited_s = ABORT_TIMEOUT.as_secs(),
                "job did not stop when told to; its slot was freed, its thread stays blocked until the job yields"
            );
            count_stuck(shared, task);
            stopped(shared, job, reason)
        }
    }
}

fn stopped(shared: &Shared, job: &ClaimedJob, reason: StopReason) -> Option<Outcome> {
    match reason {
        StopReason::Cancel => Some(Outcome::Cancelled),
        StopReason::Release => Some(Outcome::Released),
        StopReason::TimedOut => {
            let limit = shared.settings.timeouts.get(&job.kind).copied().unwrap_or_default();
            let message = format!("timed out after {} s", limit.as_secs_f64());
            tracing::warn!(
                job.id = %job.id, job.kind = job.kind, timeout_s = limit.as_secs_f64(),
                "job timed out"
            );
            Some(Outcome::Failed { message, after: None })
        }
        StopReason::Lost => {
            tracing::warn!(job.id = %job.id, job.kind = job.kind, "job was claimed by another worker; stopped this run");
            None
        }
    }
}

/// Counts a blocked thread until its job yields.
fn count_stuck(shared: &Arc<Shared>, task: JoinHandle<Result<Finished, JobError>>) {
    let shared = Arc::clone(shared);
    shared.stuck.fetch_add(1, Ordering::Relaxed);
    tokio::spawn(async move {
        drop(task.await);
        shared.stuck.fetch_sub(1, Ordering::Relaxed);
    });
}

fn outcome_of(job: &ClaimedJob, ended: Result<Result<Finished, JobError>, JoinError>) -> Outcome {
    let failed = match ended {
        Ok(Ok(finished)) => {
            return Outcome::Completed {
                output: finished.output.and_then(|json| json::storable(&json).ok()),
            };
        }
        Ok(Err(JobError::AlreadyCommitted)) => return Outcome::Completed { output: None },
        Ok(Err(JobError::Waits { why, delay })) => return Outcome::Waits { why, delay },
        Ok(Err(JobError::Discarded { message, output })) => {
            return Outcome::Discarded {
                message,
                output: output.and_then(|json| json::storable(&json).ok()),
            };
        }
        Ok(Err(JobError::Failed(error))) => (error, None),
        Ok(Err(JobError::RetryAfter { error, after })) => (error, Some(after)),
        Err(_) => {
            tracing::error!(job.id = %job.id, job.kind = job.kind, "job panicked");
            return Outcome::Crashed {
                message: "the job panicked; see the service log under this job's id".to_owned(),
            };
        }
    };
    let (error, after) = failed;
    log(job.id, &job.kind, &error);
    let message = public_message(&error);
    if error.retryable() {
        Outcome::Failed { message, after }
    } else {
        Outcome::Discarded { message, output: None }
    }
}

fn log(id: JobId, kind: &str, error: &Error) {
    let cause = error as &dyn std::error::Error;
    if error.retryable() {
        tracing::warn!(job.id = %id, job.kind = kind, error = cause, "job failed; will retry while attempts are left");
    } else {
        tracing::error!(job.id = %id, job.kind = kind, error = cause, "job failed; retrying would not help");
    }
}

/// The message that users see: what they can act on, and never the cause of an internal error.
fn public_message(error: &Error) -> String {
    match error {
        Error::Internal(_) | Error::Operator(_) => {
            "internal error; see the service log under this job's id".to_owned()
        }
        Error::Invalid(fields) => {
            let fields: Vec<_> =
                fields.iter().map(|field| format!("{}: {}", field.field, field.message)).collect();
            fields.join("; ")
        }
        error => error.to_string(),
    }
}
