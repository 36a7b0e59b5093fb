//! Whether what we lean on answers.
//!
//! The databases are asked every time, since they decide whether this process gets requests. Of everything else the last
//! answer counts for a while, and nobody waits long for the next one: a probe that is late is a probe that failed.

use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, join_all};
use okt_store::{Blobs, Probed};
use okt_vectors::Vectors;

use crate::App;

/// How old the answer of storage and vectors may be.
const AGE: Duration = Duration::from_secs(10);
/// How long a dependency may take to answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long whoever asks us waits for that.
const PATIENCE: Duration = Duration::from_millis(500);

/// How a dependency is. The words are for everybody: they name no host, path or account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Ok,
    /// Something does not work, and what.
    Degraded(&'static str),
    Down(&'static str),
}

/// One dependency by name.
#[derive(Clone, Debug)]
pub struct Check {
    pub name: String,
    pub state: State,
    /// Whether nothing works without it.
    pub required: bool,
}

impl Check {
    /// Whether this process can do its work as far as this dependency goes.
    pub fn serves(&self) -> bool {
        !self.required || self.state == State::Ok
    }
}

/// Asks a dependency.
pub type Probe = Box<dyn Fn() -> BoxFuture<'static, State> + Send + Sync>;

/// What is asked now and then.
#[derive(Default)]
pub(crate) struct Watch(RwLock<Vec<Arc<Watched>>>);

struct Watched {
    name: &'static str,
    age: Duration,
    probe: Probe,
    last: Mutex<Option<(Instant, State)>>,
    /// Whoever holds it asks; the others find its answer.
    asking: tokio::sync::Mutex<()>,
}

impl Watched {
    fn fresh(&self) -> Option<State> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.filter(|(at, _)| at.elapsed() < self.age).map(|(_, state)| state)
    }

    async fn ask(self: Arc<Self>) -> State {
        let _asking = self.asking.lock().await;
        if let Some(state) = self.fresh() {
            return state;
        }
        let asked = tokio::time::timeout(TIMEOUT, (self.probe)()).await;
        let state = asked.unwrap_or(State::Down("it does not answer in time"));
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let before = last.replace((Instant::now(), state)).map_or(State::Ok, |(_, state)| state);
        // Once per change, because probes come every few seconds.
        if before != state {
            match state {
                State::Ok => tracing::info!(dependency = self.name, "dependency recovered"),
                State::Degraded(reason) | State::Down(reason) => {
                    tracing::warn!(dependency = self.name, reason, "dependency is unhealthy");
                }
            }
        }
        state
    }

    async fn check(self: Arc<Self>) -> Check {
        let name = self.name.to_owned();
        if let Some(state) = self.fresh() {
            return Check { name, state, required: false };
        }
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).map(|(_, state)| state);
        // In a task of its own: it goes on when nobody waits any more.
        let state = match tokio::time::timeout(PATIENCE, tokio::spawn(self.ask())).await {
            Ok(Ok(state)) => state,
            _ => last.unwrap_or(State::Degraded("it has not answered yet")),
        };
        Check { name, state, required: false }
    }
}

impl App {
    /// Has a dependency asked for `readiness`, at most once in `age`.
    pub fn watch(&self, name: &'static str, age: Duration, probe: Probe) {
        let watched =
            Watched { name, age, probe, last: Mutex::default(), asking: tokio::sync::Mutex::default() };
        self.0.watch.0.write().unwrap_or_else(PoisonError::into_inner).push(Arc::new(watched));
    }

    pub(crate) fn watch_own(&self) {
        let blobs = self.blobs().clone();
        self.watch("storage", AGE, Box::new(move || Box::pin(storage(blobs.clone()))));
        if self.config().providers.embedding.model.is_empty() {
            return;
        }
        let vectors = self.vectors().cloned();
        self.watch("vectors", AGE, Box::new(move || Box::pin(answers(vectors.clone()))));
    }

    /// Asks every dependency; an answer may be a moment old, so that a flood of probes asks no more often than one.
    pub async fn readiness(&self) -> Vec<Check> {
        let check = |probed: Probed| Check {
            name: format!("database:{}", probed.name),
            state: probed.trouble.map_or(State::Ok, State::Down),
            required: probed.required,
        };
        let watched = self.0.watch.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        let watched = join_all(watched.into_iter().map(Watched::check));
        let (databases, watched) = tokio::join!(self.databases().probe(), watched);
        databases.into_iter().map(check).chain(watched).collect()
    }
}

async fn storage(blobs: Blobs) -> State {
    match blobs.check().await {
        Ok(()) => State::Ok,
        Err(error) => {
            tracing::debug!(error = &error as &dyn std::error::Error, "failed to write a probe file");
            State::Down("no file can be written")
        }
    }
}

async fn answers(vectors: Option<Vectors>) -> State {
    let Some(vectors) = vectors else {
        return State::Degraded("facts get no vectors: pgvector is missing");
    };
    match vectors.store().ping().await {
        Ok(()) => State::Ok,
        Err(error) => {
            tracing::debug!(error = &error as &dyn std::error::Error, "the vector store does not answer");
            State::Down("the vector store does not answer")
        }
    }
}
