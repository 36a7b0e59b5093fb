//! Writes down what models answered and what it cost, as soon as it is known: what is not written down when the process
//! dies is paid for again.
//!
//! The answer goes to the repository's own database, then the call to the books of the installation: a run that finds an
//! answer tells its call once more, so none is missing. While one batch is on its way the next one gathers, so a thousand
//! calls in a second are a few dozen transactions. Each repository has a batch of its own: one whose database is away holds
//! up nobody else.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use okt_model::{Error, ModelCall, RepositoryId, Result};
use okt_store::model_answers::{self, ModelAnswer};
use okt_store::{Databases, ai_calls};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

/// What was paid for is worth waiting for a database, or for a repository that is being moved.
const PATIENCE: Duration = Duration::from_mins(10);
const BETWEEN_TRIES: Duration = Duration::from_millis(500);
/// Repositories whose empty batches are kept.
const HOMES: usize = 1_000;

/// A call, with the answer where it is worth keeping.
#[derive(Clone)]
pub(crate) enum Written {
    Answer(ModelAnswer),
    Call(ModelCall),
}

/// One for a process. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Ledger(Arc<Inner>);

#[derive(Default)]
struct Inner {
    answers: Mutex<HashMap<Home, Arc<Lane<ModelAnswer>>>>,
    books: Arc<Lane<ModelCall>>,
}

/// Where answers go: the named database of a repository.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Home {
    database: String,
    repository: RepositoryId,
}

/// What waits to be written to one place, and the right to write it.
struct Lane<T> {
    waiting: Mutex<Vec<(T, oneshot::Sender<Ended>)>>,
    writing: tokio::sync::Mutex<()>,
}

impl<T> Default for Lane<T> {
    fn default() -> Self {
        Self { waiting: Mutex::default(), writing: tokio::sync::Mutex::default() }
    }
}

impl<T> Lane<T> {
    fn add(&self, entry: T) -> oneshot::Receiver<Ended> {
        let (done, heard) = oneshot::channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push((entry, done));
        heard
    }

    fn take(&self) -> (Vec<T>, Vec<oneshot::Sender<Ended>>) {
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner)).into_iter().unzip()
    }
}

/// How it went, for all who wait for the same batch.
type Ended = Result<(), Failure>;

#[derive(Clone)]
struct Failure {
    words: String,
    passes: bool,
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        if failure.passes {
            return Self::Unavailable { service: "the database", cause: failure.words.into() };
        }
        Self::internal(failure.words)
    }
}

impl Ledger {
    /// Comes back when it is written down. What was begun is finished, also when nobody waits for it any more.
    pub(crate) async fn write(
        &self,
        databases: &Databases,
        database: &str,
        repository: RepositoryId,
        written: Written,
    ) -> Result<()> {
        let (ledger, databases) = (self.clone(), databases.clone());
        let home = Home { database: database.to_owned(), repository };
        let writing = tokio::spawn(async move {
            let call = match written {
                Written::Answer(answer) => {
                    let call = answer.call.clone();
                    ledger.keep(&databases, home, answer).await?;
                    call
                }
                Written::Call(call) => call,
            };
            ledger.tell(&databases, call).await
        });
        writing.await.map_err(Error::internal)?
    }

    async fn keep(&self, databases: &Databases, home: Home, answer: ModelAnswer) -> Result<()> {
        let lane = {
            let mut homes = self.0.answers.lock().unwrap_or_else(PoisonError::into_inner);
            if homes.len() > HOMES {
                homes.retain(|_, lane| Arc::strong_count(lane) > 1);
            }
            Arc::clone(homes.entry(home.clone()).or_default())
        };
        let heard = lane.add(answer);
        {
            let _right = lane.writing.lock().await;
            // Whoever had the right before may have taken ours along.
            let (batch, done) = lane.take();
            if !batch.is_empty() {
                let ended = keep_all(databases, &home, &batch).await;
                tell_all(done, ended);
            }
        }
        Ok(heard.await.map_err(Error::internal)??)
    }

    async fn tell(&self, databases: &Databases, call: ModelCall) -> Result<()> {
        let lane = Arc::clone(&self.0.books);
        let heard = lane.add(call);
        {
            let _right = lane.writing.lock().await;
            let (batch, done) = lane.take();
            if !batch.is_empty() {
                let ended = record_all(databases, &batch).await;
                tell_all(done, ended);
            }
        }
        Ok(heard.await.map_err(Error::internal)??)
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

fn tell_all(done: Vec<oneshot::Sender<Ended>>, ended: Vec<Ended>) {
    for (done, ended) in done.into_iter().zip(ended) {
        // The other end may have been stopped.
        let _ = done.send(ended);
    }
}

async fn keep_all(databases: &Databases, home: &Home, batch: &[ModelAnswer]) -> Vec<Ended> {
    let all: Vec<&ModelAnswer> = batch.iter().collect();
    let ended = keep_some(databases, home, &all).await;
    if !is_somebodys_fault(&ended, batch.len()) {
        return vec![ended; batch.len()];
    }
    let mut each = Vec::new();
    for one in all {
        each.push(keep_some(databases, home, &[one]).await);
    }
    each
}

async fn keep_some(databases: &Databases, home: &Home, answers: &[&ModelAnswer]) -> Ended {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match insert(databases, home, answers).await {
            Err(error) if may_pass(&error, deadline) => sleep(BETWEEN_TRIES).await,
            ended => return ended.map_err(|error| failure(&error)),
        }
    }
}

async fn insert(databases: &Databases, home: &Home, answers: &[&ModelAnswer]) -> Result<()> {
    let mut tx = databases.begin(&home.database, home.repository).await?;
    model_answers::insert(&mut tx, home.repository, answers).await?;
    tx.commit().await
}

async fn record_all(databases: &Databases, batch: &[ModelCall]) -> Vec<Ended> {
    let all: Vec<&ModelCall> = batch.iter().collect();
    let ended = record_some(databases, &all).await;
    if !is_somebodys_fault(&ended, batch.len()) {
        return vec![ended; batch.len()];
    }
    let mut each = Vec::new();
    for one in all {
        each.push(record_some(databases, &[one]).await);
    }
    each
}

async fn record_some(databases: &Databases, calls: &[&ModelCall]) -> Ended {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match tell_again(databases, calls).await {
            Err(error) if may_pass(&error, deadline) => sleep(BETWEEN_TRIES).await,
            ended => return ended.map_err(|error| failure(&error)),
        }
    }
}

/// One that can't be written must not take the others along.
fn is_somebodys_fault(ended: &Ended, count: usize) -> bool {
    count > 1 && ended.as_ref().is_err_and(|failure| !failure.passes)
}

fn may_pass(error: &Error, deadline: Instant) -> bool {
    tracing::warn!(
        error = error as &dyn std::error::Error,
        "what a model answered can't be written down yet"
    );
    error.retryable() && Instant::now() < deadline
}

fn failure(error: &Error) -> Failure {
    let mut words = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        words = format!("{words}: {next}");
        cause = next.source();
    }
    Failure { words, passes: error.retryable() }
}
