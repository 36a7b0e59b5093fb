//! Writes down what models answered and what it cost, as soon as it is known: what is not written down when the process
//! dies is paid for again.
//!
//! The answer goes to the repository's own database, then the call to the books of the installation: a run that finds an
//! answer tells its call once more, so none is missing. While one batch is on its way the next one gathers, and where much
//! is to be written it gathers for a moment more: a thousand calls in a second are a few dozen transactions. Each
//! repository has a batch of its own: one whose database is away holds up nobody else.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use okt_model::{Error, ModelCall, RepositoryId, Result};
use okt_store::model_answers::{self, ModelAnswer};
use okt_store::{Databases, ai_calls};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until};

/// What was paid for is worth waiting for a database, or for a repository that is being moved.
const PATIENCE: Duration = Duration::from_mins(10);
const BETWEEN_TRIES: Duration = Duration::from_millis(500);
/// From one batch of a place to its next. What a process has in hand when it dies is paid for again, so it is little beside
/// the time that a call is out.
const PACE: Duration = Duration::from_millis(20);
/// Places whose empty batches are kept.
const LANES: usize = 1_000;

/// A call, with the answer where it is worth keeping.
pub(crate) enum Written {
    Answer(ModelAnswer),
    Call(ModelCall),
}

/// One for a process. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Ledger(Arc<Mutex<HashMap<Place, Arc<Lane>>>>);

/// Where something is written.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Place {
    /// The named database of a repository, for answers.
    Home { database: String, repository: RepositoryId },
    /// For calls.
    Books,
}

/// What waits to be written to one place, and the right to write it, with the moment from which on it may be used.
#[derive(Default)]
struct Lane {
    waiting: Mutex<Vec<(Written, oneshot::Sender<Ended>)>>,
    writing: tokio::sync::Mutex<Option<Instant>>,
}

impl Lane {
    /// All that waits.
    async fn write(&self, databases: &Databases, place: &Place) {
        let (batch, done): (Vec<Written>, Vec<_>) = std::mem::take(&mut *self.waiting()).into_iter().unzip();
        let ended = put_all(databases, place, &batch).await;
        for (done, ended) in done.into_iter().zip(ended) {
            // The other end may have been stopped.
            let _ = done.send(ended);
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<(Written, oneshot::Sender<Ended>)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How it went, for all who wait for the same batch.
type Ended = Result<(), Arc<Error>>;

impl Ledger {
    /// Comes back when it is written down. For a task of its own: whoever writes has the entries of others with it.
    pub(crate) async fn write(
        &self,
        databases: &Databases,
        database: &str,
        repository: RepositoryId,
        written: Written,
    ) -> Result<()> {
        let call = match &written {
            Written::Answer(answer) => answer.call.clone(),
            Written::Call(call) => call.clone(),
        };
        if let Written::Answer(_) = written {
            let home = Place::Home { database: database.to_owned(), repository };
            self.write_to(databases, home, written).await?;
        }
        self.write_to(databases, Place::Books, Written::Call(call)).await
    }

    async fn write_to(&self, databases: &Databases, place: Place, entry: Written) -> Result<()> {
        let lane = self.lane(&place);
        let (done, mut heard) = oneshot::channel();
        lane.waiting().push((entry, done));
        let ended = tokio::select! {
            biased;
            // Whoever has the right may take ours along; then the right is for those who still need it.
            ended = &mut heard => ended,
            mut next = lane.writing.lock() => {
                if let Some(next) = *next {
                    sleep_until(next).await;
                }
                *next = Some(Instant::now() + PACE);
                lane.write(databases, &place).await;
                heard.await
            }
        };
        ended.map_err(Error::internal)?.map_err(|error| {
            if error.retryable() {
                Error::Unavailable { service: "the database", cause: error.into() }
            } else {
                Error::internal(error)
            }
        })
    }

    fn lane(&self, place: &Place) -> Arc<Lane> {
        let mut lanes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lanes.len() > LANES {
            lanes.retain(|_, lane| Arc::strong_count(lane) > 1);
        }
        Arc::clone(lanes.entry(place.clone()).or_default())
    }
}

/// Tells calls again whose answers were found; those that were told before are not counted twice.
pub(crate) async fn tell_again(databases: &Databases, calls: &[&ModelCall]) -> Result<()> {
    if calls.is_empty() {
        return Ok(());
    }
    let mut tx = databases.begin_system().await?;
    ai_calls::record(&mut tx, calls).await?;
    tx.commit().await
}

/// All at once; where one can't be written, one by one, so that it does not take the others along.
async fn put_all(databases: &Databases, place: &Place, batch: &[Written]) -> Vec<Ended> {
    let all: Vec<&Written> = batch.iter().collect();
    let ended = put(databases, place, &all).await;
    if batch.len() <= 1 || ended.as_ref().map_or_else(|error| error.retryable(), |()| true) {
        return vec![ended; batch.len()];
    }
    let mut each = Vec::new();
    for one in all {
        each.push(put(databases, place, &[one]).await);
    }
    each
}

/// As long as what is in the way may pass.
async fn put(databases: &Databases, place: &Place, entries: &[&Written]) -> Ended {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let Err(error) = put_once(databases, place, entries).await else { return Ok(()) };
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            "what a model answered can't be written down yet"
        );
        if !error.retryable() || Instant::now() >= deadline {
            return Err(Arc::new(error));
        }
        sleep(BETWEEN_TRIES).await;
    }
}

async fn put_once(databases: &Databases, place: &Place, entries: &[&Written]) -> Result<()> {
    let (mut answers, mut calls) = (Vec::new(), Vec::new());
    for entry in entries {
        match entry {
            Written::Answer(answer) => answers.push(answer),
            Written::Call(call) => calls.push(call),
        }
    }
    match place {
        Place::Home { database, repository } => {
            let mut tx = databases.begin(database, *repository).await?;
            model_answers::insert(&mut tx, *repository, &answers).await?;
            tx.commit().await
        }
        Place::Books => tell_again(databases, &calls).await,
    }
}
