//! Looking after one job while it runs: its end, its limit, and whoever wants it to stop.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use okt_model::{Error, JobId, RepositoryId};
use tokio::sync::oneshot;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::claim::Claimed;
use crate::context::{Finished, Held, JobError, Said};
use crate::json;
use crate::settle::{Outcome, Settled};
use crate::worker::Shared;

/// How long a job that was told to stop may take to come to its next `await`.
const STUBBORN: Duration = Duration::from_secs(10);

/// Why a running job should stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Somebody asked for it.
    Cancel,
    /// It is somebody else's by now.
    Lost,
    /// The process is going away.
    Release,
    /// It took too long.
    TimedOut,
}

/// A job that runs in this process.
pub(crate) struct Running {
    pub(crate) kind: String,
    pub(crate) claims: i32,
    pub(crate) repository: Option<RepositoryId>,
    pub(crate) said: Arc<Said>,
    /// Whether the watchers have been told that it runs.
    pub(crate) announced: bool,
    order: Option<oneshot::Sender<Order>>,
}

impl Running {
    pub(crate) fn tell(&mut self, order: Order) {
        if let Some(sender) = self.order.take() {
            // It may just have ended by itself.
            let _ = sender.send(order);
        }
    }
}

/// Which kind of place a job has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Ordinary,
    Express,
    /// As the one job here that may be dangerous.
    Suspect,
}

/// Runs a job to its end, whatever that is, and tells the queue.
pub(crate) fn mind(
    shared: Arc<Shared>,
    job: Claimed,
    place: Place,
) -> impl Future<Output = ()> + Send + 'static {
    let (order, orders) = oneshot::channel();
    let job = Arc::new(job);
    let said = Arc::new(Said::since(job.cost));
    let running = Running {
        kind: job.kind.clone(),
        claims: job.claims,
        repository: job.repository,
        said: Arc::clone(&said),
        announced: false,
        order: Some(order),
    };
    // Now, not when the future is first looked at: the next claim asks who runs here.
    // Where an older run of the same job is replaced, it hears that it has lost it.
    shared.running().insert(job.id, running);
    mind_running(shared, job, place, said, orders)
}

async fn mind_running(
    shared: Arc<Shared>,
    job: Arc<Claimed>,
    place: Place,
    said: Arc<Said>,
    orders: oneshot::Receiver<Order>,
) {
    let outcome = if job.cancelled {
        Some(Outcome::Cancelled)
    } else {
        run(&shared, &job, Arc::clone(&said), orders).await
    };
    // In this order: whoever finds all places taken must find who has taken them, or a crowd would pass for a newcomer.
    match place {
        Place::Ordinary => shared.slots.give_back(&job.kind),
        Place::Express => shared.slots.give_back_express(&job.kind),
        Place::Suspect => {
            shared.suspect_runs.store(false, Ordering::Relaxed);
            shared.slots.give_back(&job.kind);
        }
    }
    // First the one and then the other, so that at no moment it looks as if nobody here knew of the job.
    if outcome.is_some() {
        shared.untold().insert(job.id);
    }
    shared.forget_running(job.id, job.claims);
    if let Some(outcome) = outcome {
        shared.settle(Settled::new(&job, outcome, &said)).await;
    }
}

/// `None` when it is not ours to tell.
async fn run(
    shared: &Arc<Shared>,
    job: &Arc<Claimed>,
    said: Arc<Said>,
    orders: oneshot::Receiver<Order>,
) -> Option<Outcome> {
    let cancel = CancellationToken::new();
    let held = Held { job: Arc::clone(job), databases: shared.worker.clone(), cancel: cancel.clone(), said };
    let work = shared.kinds.run(held)?;
    let span = tracing::info_span!("job", job.id = %job.id, job.kind = job.kind, job.attempt = job.attempt);
    let mut task = shared.spawn(work.instrument(span));
    let limit = async {
        match shared.settings.timeouts.get(&job.kind) {
            Some(limit) => tokio::time::sleep(*limit).await,
            None => std::future::pending().await,
        }
    };
    let order = tokio::select! {
        ended = &mut task => return match ended {
            // Its threads are gone, and so will be this process.
            Err(error) if !error.is_panic() => None,
            ended => Some(judge(job, ended)),
        },
        // Nobody can send any more only when the job was forgotten, and then it is not ours.
        order = orders => order.unwrap_or(Order::Lost),
        () = limit => Order::TimedOut,
    };
    cancel.cancel();
    task.abort();
    match tokio::time::timeout(STUBBORN, &mut task).await {
        // It was quicker than the order.
        Ok(Ok(ended)) => Some(judge(job, Ok(ended))),
        Ok(Err(error)) if error.is_panic() => Some(judge(job, Err(error))),
        Ok(Err(_)) => obeyed(shared, job, order),
        Err(_) => {
            tracing::error!(
                job.id = %job.id, job.kind = job.kind,
                "a job does not come to its next await; its slot is given back, its thread is lost until it does"
            );
            watch_stuck(shared, task);
            obeyed(shared, job, order)
        }
    }
}

fn obeyed(shared: &Shared, job: &Claimed, order: Order) -> Option<Outcome> {
    match order {
        Order::Cancel => Some(Outcome::Cancelled),
        Order::Release => Some(Outcome::Released),
        Order::TimedOut => {
            let limit = shared.settings.timeouts.get(&job.kind).copied().unwrap_or_default();
            let message = format!("it ran for longer than its limit of {} s", limit.as_secs_f64());
            tracing::warn!(job.id = %job.id, job.kind = job.kind, "a job ran for longer than its limit");
            Some(Outcome::Failed { message, after: None })
        }
        Order::Lost => {
            tracing::warn!(job.id = %job.id, job.kind = job.kind, "a job was taken over by somebody else");
            None
        }
    }
}

/// Counts a thread that is lost, until it is found.
fn watch_stuck(shared: &Arc<Shared>, task: JoinHandle<Result<Finished, JobError>>) {
    let shared = Arc::clone(shared);
    shared.stuck.fetch_add(1, Ordering::Relaxed);
    tokio::spawn(async move {
        drop(task.await);
        shared.stuck.fetch_sub(1, Ordering::Relaxed);
    });
}

fn judge(job: &Claimed, ended: Result<Result<Finished, JobError>, JoinError>) -> Outcome {
    let failed = match ended {
        Ok(Ok(finished)) => {
            return Outcome::Completed {
                output: finished.output.and_then(|json| json::storable(&json).ok()),
            };
        }
        Ok(Err(JobError::HasHappened)) => return Outcome::Completed { output: None },
        Ok(Err(JobError::Waits { why, delay })) => return Outcome::Waits { why, delay },
        Ok(Err(JobError::Failed(error))) => (error, None),
        Ok(Err(JobError::Later { error, after })) => (error, Some(after)),
        Err(_) => {
            tracing::error!(job.id = %job.id, job.kind = job.kind, "a job panicked");
            return Outcome::Crashed { message: "it panicked; the service's log says where".to_owned() };
        }
    };
    let (error, after) = failed;
    log(job.id, &job.kind, &error);
    let message = told(&error);
    if error.retryable() { Outcome::Failed { message, after } } else { Outcome::Hopeless { message } }
}

fn log(id: JobId, kind: &str, error: &Error) {
    let cause = error as &dyn std::error::Error;
    if error.retryable() {
        tracing::warn!(job.id = %id, job.kind = kind, error = cause, "a job failed, and may be tried again");
    } else {
        tracing::error!(job.id = %id, job.kind = kind, error = cause, "a job failed");
    }
}

/// What people hear: what they can act on, and never what lies behind an internal error.
fn told(error: &Error) -> String {
    match error {
        Error::Internal(_) | Error::Operator(_) => {
            "internal error; the service's log has more under the id of this job".to_owned()
        }
        Error::Invalid(fields) => {
            let fields: Vec<_> =
                fields.iter().map(|field| format!("{}: {}", field.field, field.message)).collect();
            fields.join("; ")
        }
        error => error.to_string(),
    }
}
