//! What became of a job that was run: told to the queue in batches, and refused when the job is somebody else's by now.

use std::collections::BTreeSet;
use std::time::Duration;

use okt_model::{Error, JobId, RepositoryId, Result, Waiting};
use okt_store::{Connection, from_sqlx};
use uuid::Uuid;

use crate::backoff;
use crate::changes;
use crate::claim::Claimed;
use crate::context::Said;

/// How often a job may crash.
pub(crate) const MAX_CRASHES: i32 = 3;

/// What became of one run.
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
    Hopeless {
        message: String,
    },
    /// It panicked.
    Crashed {
        message: String,
    },
    Cancelled,
    /// It can't go on yet, through no fault of its own: the attempt does not count.
    Waits {
        why: Waiting,
        delay: Duration,
    },
    /// The process is going away: the attempt does not count.
    Released,
}

/// An outcome and the claim that entitles to tell it.
#[derive(Clone, Debug)]
pub(crate) struct Settled {
    id: JobId,
    claims: i32,
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

impl Settled {
    pub(crate) fn new(job: &Claimed, outcome: Outcome, said: &Said) -> Self {
        let (progress, cost) = said.as_json();
        let row = Row { progress, cost, ..row(job, outcome) };
        Self { id: job.id, claims: job.claims, repository: job.repository, kind: job.kind.clone(), row }
    }

    pub(crate) const fn id(&self) -> JobId {
        self.id
    }

    /// The same, when what it came with can't be stored.
    fn unstorable(&self, error: &Error) -> Self {
        let message = format!("what it left behind could not be stored: {error}");
        let row = Row { state: "discarded", message: Some(message), ..Row::default() };
        Self { row, ..self.clone() }
    }
}

/// The one place that decides where a run leads.
fn row(job: &Claimed, outcome: Outcome) -> Row {
    match outcome {
        Outcome::Completed { output } => Row { state: "completed", output, ..Row::default() },
        Outcome::Cancelled => Row { state: "cancelled", ..Row::default() },
        Outcome::Hopeless { message } => {
            Row { state: "discarded", message: Some(storable(message)), ..Row::default() }
        }
        Outcome::Failed { message, .. } if job.attempt >= job.max_attempts => Row {
            state: "discarded",
            message: Some(storable(format!("{message} (given up after {} attempts)", job.attempt))),
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
            message: Some(storable(format!("{message} (set aside after {MAX_CRASHES} crashes)"))),
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

/// Tells the queue; returns the jobs that were still this process's to settle.
#[tracing::instrument(level = "debug", name = "db.jobs.settle", skip_all)]
pub(crate) async fn settle(conn: &mut Connection, worker: i64, told: &[Settled]) -> Result<Vec<JobId>> {
    let changed = changes::message(told.iter().map(|settled| (settled.repository, settled.id)));
    let ids: Vec<Uuid> = told.iter().map(|settled| settled.id.uuid()).collect();
    let claims: Vec<i32> = told.iter().map(|settled| settled.claims).collect();
    let states: Vec<String> = told.iter().map(|settled| settled.row.state.to_owned()).collect();
    let delays: Vec<Option<i64>> = told.iter().map(|settled| settled.row.delay.map(milliseconds)).collect();
    let refunds: Vec<i32> = told.iter().map(|settled| settled.row.refund).collect();
    let crashes: Vec<i32> = told.iter().map(|settled| settled.row.crash).collect();
    let waiting: Vec<Option<String>> =
        told.iter().map(|settled| settled.row.waiting_for.map(ToOwned::to_owned)).collect();
    let messages: Vec<Option<String>> = told.iter().map(|settled| settled.row.message.clone()).collect();
    let outputs: Vec<Option<String>> = told.iter().map(|settled| settled.row.output.clone()).collect();
    let progress: Vec<Option<String>> = told.iter().map(|settled| settled.row.progress.clone()).collect();
    let costs: Vec<Option<String>> = told.iter().map(|settled| settled.row.cost.clone()).collect();
    let waiting_kinds: BTreeSet<&str> = told
        .iter()
        .filter(|settled| settled.row.state == "available")
        .map(|settled| &*settled.kind)
        .collect();
    let waiting_kinds = waiting_kinds.into_iter().collect::<Vec<_>>().join(",");
    let row = sqlx::query_file!(
        "src/sql/settle.sql",
        &ids,
        &claims,
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
    .await
    .map_err(from_sqlx)?;
    Ok(row.ids.unwrap_or_default().into_iter().map(Into::into).collect())
}

/// As [`settle`], one by one: for a batch that can't be stored as a whole.
pub(crate) async fn settle_each(conn: &mut Connection, worker: i64, told: &[Settled]) -> Result<Vec<JobId>> {
    let mut all = Vec::new();
    for settled in told {
        match settle(conn, worker, std::slice::from_ref(settled)).await {
            Ok(settled) => all.extend(settled),
            Err(error) if !is_about_data(&error) => return Err(error),
            Err(error) => all.extend(settle(conn, worker, &[settled.unstorable(&error)]).await?),
        }
    }
    Ok(all)
}

/// Whether what was to be stored is to blame, and not the one who stores it.
fn is_about_data(error: &Error) -> bool {
    let Error::Internal(cause) = error else { return false };
    let cause = cause.downcast_ref::<sqlx::Error>().and_then(sqlx::Error::as_database_error);
    cause.and_then(sqlx::error::DatabaseError::code).is_some_and(|code| code.starts_with("22"))
}

pub(crate) fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
