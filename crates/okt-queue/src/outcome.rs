//! Outcomes of runs: recorded in batches, and rejected when another worker has claimed the job since.

use std::collections::BTreeSet;
use std::time::Duration;

use okt_model::{JobId, RepositoryId, Waiting};
use okt_pg::Result;
use okt_store::Connection;
use uuid::Uuid;

use crate::backoff;
use crate::changes;
use crate::claim_query::ClaimedJob;
use crate::context::ProgressTracker;

/// How often a job may crash before it is discarded.
pub(crate) const MAX_CRASHES: i32 = 3;

/// How one run ended.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    Completed {
        output: Option<String>,
    },
    /// Worth another attempt, if there is one left; `after` is what the other side asked for.
    Failed {
        message: String,
        after: Option<Duration>,
    },
    /// No attempt would help.
    Discarded {
        message: String,
        output: Option<String>,
    },
    /// It panicked.
    Crashed {
        message: String,
    },
    Cancelled,
    /// It has to wait for something: the attempt does not count.
    Waits {
        why: Waiting,
        delay: Duration,
    },
    /// The worker is stopping: the attempt does not count.
    Released,
}

/// An outcome, with the fencing token that entitles to record it.
#[derive(Clone, Debug)]
pub(crate) struct JobOutcome {
    id: JobId,
    fencing_token: i32,
    repository: Option<RepositoryId>,
    kind: String,
    row: Row,
}

#[derive(Clone, Debug, Default)]
struct Row {
    state: &'static str,
    delay: Option<Duration>,
    refund: i32,
    crash: i32,
    waiting_for: Option<&'static str>,
    message: Option<String>,
    output: Option<String>,
    progress: Option<String>,
    cost: Option<String>,
}

impl JobOutcome {
    pub(crate) fn new(job: &ClaimedJob, outcome: Outcome, tracker: &ProgressTracker) -> Self {
        let (progress, cost) = tracker.as_json();
        let row = Row { progress, cost, ..row(job, outcome) };
        Self {
            id: job.id,
            fencing_token: job.fencing_token,
            repository: job.repository,
            kind: job.kind.clone(),
            row,
        }
    }

    pub(crate) const fn id(&self) -> JobId {
        self.id
    }

    /// The same, when what it came with can't be stored.
    fn unstorable(&self, error: &okt_pg::Error) -> Self {
        let message = format!("output could not be stored: {error}");
        let row = Row { state: "discarded", message: Some(message), ..Row::default() };
        Self { row, ..self.clone() }
    }
}

/// The next state of a job, for every outcome.
fn row(job: &ClaimedJob, outcome: Outcome) -> Row {
    match outcome {
        Outcome::Completed { output } => Row { state: "completed", output, ..Row::default() },
        Outcome::Cancelled => Row { state: "cancelled", ..Row::default() },
        Outcome::Discarded { message, output } => {
            Row { state: "discarded", message: Some(storable(message)), output, ..Row::default() }
        }
        Outcome::Failed { message, .. } if job.attempt >= job.max_attempts => Row {
            state: "discarded",
            message: Some(storable(format!("{message} (discarded after {} attempts)", job.attempt))),
            ..Row::default()
        },
        Outcome::Failed { message, after } => {
            let delay = backoff::delay(job.attempt);
            Row {
                state: "retryable",
                delay: Some(after.map_or(delay, |after| after.max(delay))),
                waiting_for: Some(Waiting::Retry.as_str()),
                message: Some(storable(message)),
                ..Row::default()
            }
        }
        Outcome::Crashed { message } if job.crashes + 1 >= MAX_CRASHES => Row {
            state: "discarded",
            crash: 1,
            message: Some(storable(format!("{message} (discarded after {MAX_CRASHES} crashes)"))),
            ..Row::default()
        },
        Outcome::Crashed { message } => {
            Row { state: "available", crash: 1, message: Some(storable(message)), ..Row::default() }
        }
        Outcome::Waits { why, delay } => Row {
            state: "scheduled",
            delay: Some(delay),
            refund: 1,
            waiting_for: Some(why.as_str()),
            ..Row::default()
        },
        Outcome::Released => Row { state: "available", refund: 1, ..Row::default() },
    }
}

/// PostgreSQL has no place for NUL, and a message is no place for a book.
fn storable(mut text: String) -> String {
    const LONGEST: usize = 16_384;
    text.retain(|character| character != '\0');
    text.truncate(text.floor_char_boundary(LONGEST));
    text
}

/// Records outcomes; returns the jobs whose fencing token was still valid.
#[tracing::instrument(level = "debug", name = "db.jobs.record", skip_all)]
pub(crate) async fn record(
    conn: &mut Connection,
    worker: i64,
    outcomes: &[JobOutcome],
) -> Result<Vec<JobId>> {
    let changed = changes::message(outcomes.iter().map(|outcome| (outcome.repository, outcome.id)));
    let ids: Vec<Uuid> = outcomes.iter().map(|outcome| outcome.id.uuid()).collect();
    let tokens: Vec<i32> = outcomes.iter().map(|outcome| outcome.fencing_token).collect();
    let states: Vec<String> = outcomes.iter().map(|outcome| outcome.row.state.to_owned()).collect();
    let delays: Vec<Option<i64>> =
        outcomes.iter().map(|outcome| outcome.row.delay.map(milliseconds)).collect();
    let refunds: Vec<i32> = outcomes.iter().map(|outcome| outcome.row.refund).collect();
    let crashes: Vec<i32> = outcomes.iter().map(|outcome| outcome.row.crash).collect();
    let waiting: Vec<Option<String>> =
        outcomes.iter().map(|outcome| outcome.row.waiting_for.map(ToOwned::to_owned)).collect();
    let messages: Vec<Option<String>> = outcomes.iter().map(|outcome| outcome.row.message.clone()).collect();
    let outputs: Vec<Option<String>> = outcomes.iter().map(|outcome| outcome.row.output.clone()).collect();
    let progress: Vec<Option<String>> = outcomes.iter().map(|outcome| outcome.row.progress.clone()).collect();
    let costs: Vec<Option<String>> = outcomes.iter().map(|outcome| outcome.row.cost.clone()).collect();
    let waiting_kinds: BTreeSet<&str> = outcomes
        .iter()
        .filter(|outcome| outcome.row.state == "available")
        .map(|outcome| &*outcome.kind)
        .collect();
    let waiting_kinds = waiting_kinds.into_iter().collect::<Vec<_>>().join(",");
    let row = sqlx::query_file!(
        "src/sql/record_outcomes.sql",
        &ids,
        &tokens,
        &states,
        &delays as &[Option<i64>],
        &refunds,
        &crashes,
        &waiting as &[Option<String>],
        &messages as &[Option<String>],
        &outputs as &[Option<String>],
        changed,
        worker,
        waiting_kinds,
        &progress as &[Option<String>],
        &costs as &[Option<String>],
    )
    .fetch_one(conn)
    .await?;
    Ok(row.ids.unwrap_or_default().into_iter().map(Into::into).collect())
}

/// As [`record`], one by one: for a batch that can't be stored as a whole.
pub(crate) async fn record_each(
    conn: &mut Connection,
    worker: i64,
    outcomes: &[JobOutcome],
) -> Result<Vec<JobId>> {
    let mut all = Vec::new();
    for outcome in outcomes {
        match record(conn, worker, std::slice::from_ref(outcome)).await {
            Ok(recorded) => all.extend(recorded),
            Err(error) if !is_about_data(&error) => return Err(error),
            Err(error) => all.extend(record(conn, worker, &[outcome.unstorable(&error)]).await?),
        }
    }
    Ok(all)
}

/// Whether what was to be stored is to blame, and not the one who stores it.
fn is_about_data(error: &okt_pg::Error) -> bool {
    error.said().is_some_and(|said| said.code().starts_with("22"))
}

pub(crate) fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
