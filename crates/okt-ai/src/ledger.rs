//! Stores what models answered and what it cost, as soon as it is known: what is not stored when the process dies is paid
//! for again.
//!
//! The answer goes to the repository's own database, then the call to `ai_calls`: a run that finds an answer records its
//! call once more, so none is missing. While one batch is on its way the next one gathers, and where much
//! is to be written it gathers for a moment more: a thousand calls in a second are a few dozen transactions. Each
//! repository has a batch of its own: one whose database is away holds up nobody else.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use okt_model::{Error, ModelCall, Operation, RepositoryId, Result};
use okt_store::model_answers::{self, ModelAnswer};
use okt_store::{Databases, ai_calls};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until};

/// What was paid for is worth waiting for a database, or for a repository that is being moved.
const PATIENCE: Duration = Duration::from_mins(10);
const BETWEEN_TRIES: Duration = Duration::from_millis(500);
/// From one batch of a target to its next. What a process has in hand when it dies is paid for again, so it is little beside
/// the time that a call is out.
const PACE: Duration = Duration::from_millis(20);
/// Targets whose empty batches are kept.
const IDLE_BATCHES: usize = 1_000;

/// A call, with the answer where it is worth keeping.
pub(crate) enum Entry {
    Answer(ModelAnswer),
    Call(ModelCall),
}

/// One for a process. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Ledger(Arc<Mutex<HashMap<Target, Arc<Batch>>>>);

/// Where something is written.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Target {
    /// The named database of a repository, for answers.
    Answers { database: String, repository: RepositoryId },
    /// For calls.
    Calls,
}

/// Entries that wait to be written to one target, and the lock to write them, with the time from which on it may be used.
#[derive(Default)]
struct Batch {
    waiting: Mutex<Vec<(Entry, oneshot::Sender<Ended>)>>,
    writing: tokio::sync::Mutex<Option<Instant>>,
}

impl Batch {
    /// All that waits.
    async fn write(&self, databases: &Databases, target: &Target) {
        let (batch, done): (Vec<Entry>, Vec<_>) = std::mem::take(&mut *self.waiting()).into_iter().unzip();
        let ended = put_all(databases, target, &batch).await;
        for (done, ended) in done.into_iter().zip(ended) {
            // The other end may have been stopped.
            let _ = done.send(ended);
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<(Entry, oneshot::Sender<Ended>)>> {
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
        written: Entry,
    ) -> Result<()> {
        let call = match &written {
            Entry::Answer(answer) => answer.call.clone(),
            Entry::Call(call) => call.clone(),
        };
        meter(&call);
        let stored = if let Entry::Answer(_) = written {
            let answers = Target::Answers { database: database.to_owned(), repository };
            self.write_to(databases, answers, written).await
        } else {
            Ok(())
        };
        // Also where the answer is lost: it was paid for.
        self.write_to(databases, Target::Calls, Entry::Call(call)).await?;
        stored
    }

    async fn write_to(&self, databases: &Databases, target: Target, entry: Entry) -> Result<()> {
        let batch = self.batch_of(&target);
        let (done, mut heard) = oneshot::channel();
        batch.waiting().push((entry, done));
        let ended = tokio::select! {
            biased;
            // Whoever has the right may take ours along; then the right is for those who still need it.
            ended = &mut heard => ended,
            mut next = batch.writing.lock() => {
                if let Some(next) = *next {
                    sleep_until(next).await;
                }
                *next = Some(Instant::now() + PACE);
                batch.write(databases, &target).await;
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

    fn batch_of(&self, target: &Target) -> Arc<Batch> {
        let mut batches = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if batches.len() > IDLE_BATCHES {
            batches.retain(|_, batch| Arc::strong_count(batch) > 1);
        }
        Arc::clone(batches.entry(target.clone()).or_default())
    }
}

/// Counted once, when it is answered: one that is told again has been counted.
fn meter(call: &ModelCall) {
    let labels = [("model", call.model.clone()), ("operation", call.operation.as_str().to_owned())];
    metrics::counter!("okt_model_calls_total", "model" => call.model.clone(), "operation" => call.operation.as_str(),
        "outcome" => call.outcome.as_str())
    .increment(1);
    metrics::counter!("okt_model_retries_total", &labels).increment(call.retries.into());
    metrics::counter!("okt_model_input_tokens_total", &labels).increment(call.tokens_in);
    metrics::counter!("okt_model_output_tokens_total", &labels).increment(call.tokens_out);
    let microdollars = u64::try_from(call.usd.micros()).unwrap_or(0);
    metrics::counter!("okt_model_cost_microdollars_total", &labels).increment(microdollars);
}

/// A call that got no answer.
pub(crate) fn meter_failure(model: &str, operation: Operation) {
    metrics::counter!("okt_model_failures_total", "model" => model.to_owned(), "operation" => operation.as_str())
        .increment(1);
}

/// Records calls. One that was recorded before is not counted twice.
pub(crate) async fn record(databases: &Databases, calls: &[&ModelCall]) -> Result<()> {
    if calls.is_empty() {
        return Ok(());
    }
    let mut tx = databases.begin_system().await?;
    ai_calls::record(&mut tx, calls).await?;
    Ok(tx.commit().await?)
}

/// All at once; where one can't be written, one by one, so that it does not take the others along.
async fn put_all(databases: &Databases, target: &Target, batch: &[Entry]) -> Vec<Ended> {
    let all: Vec<&Entry> = batch.iter().collect();
    let ended = put(databases, target, &all).await;
    if batch.len() <= 1 || ended.as_ref().map_or_else(|error| error.retryable(), |()| true) {
        return vec![ended; batch.len()];
    }
    let mut each = Vec::new();
    for one in all {
        each.push(put(databases, target, &[one]).await);
    }
    each
}

/// As long as what is in the way may pass.
async fn put(databases: &Databases, target: &Target, entries: &[&Entry]) -> Ended {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let Err(error) = put_once(databases, target, entries).await else { return Ok(()) };
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            "failed to store a model's answer; will retry"
        );
        if !error.retryable() || Instant::now() >= deadline {
            return Err(Arc::new(error));
        }
        sleep(BETWEEN_TRIES).await;
    }
}

async fn put_once(databases: &Databases, target: &Target, entries: &[&Entry]) -> Result<()> {
    let (mut answers, mut calls) = (Vec::new(), Vec::new());
    for entry in entries {
        match entry {
            Entry::Answer(answer) => answers.push(answer),
            Entry::Call(call) => calls.push(call),
        }
    }
    match target {
        Target::Answers { database, repository } => {
            let mut tx = databases.begin(database, *repository).await?;
            model_answers::insert(&mut tx, *repository, &answers).await?;
            Ok(tx.commit().await?)
        }
        Target::Calls => record(databases, &calls).await,
    }
}

#[cfg(test)]
mod tests {
    use metrics_exporter_prometheus::PrometheusBuilder;
    use okt_model::{CallId, CallOutcome, JobId};

    use super::*;

    #[test]
    fn a_call_is_counted_by_model_and_operation() {
        let call = ModelCall {
            id: CallId::mint(),
            repository: RepositoryId::mint(),
            subject: None,
            job: Some(JobId::mint()),
            operation: Operation::FactExtraction,
            model: "m".to_owned(),
            outcome: CallOutcome::Ok,
            tokens_in: 1_000,
            tokens_out: 20,
            usd: okt_model::Money::from_micros(150),
            latency_ms: 1,
            retries: 2,
            characters: 5,
        };
        let recorder = PrometheusBuilder::new().build_recorder();
        metrics::with_local_recorder(&recorder, || {
            meter(&call);
            meter(&call);
            meter_failure("m", Operation::FactEmbedding);
        });
        let said = recorder.handle().render();
        let labels = "model=\"m\",operation=\"fact_extraction\"";
        for line in [
            &format!("okt_model_calls_total{{{labels},outcome=\"ok\"}} 2"),
            &format!("okt_model_retries_total{{{labels}}} 4"),
            &format!("okt_model_input_tokens_total{{{labels}}} 2000"),
            &format!("okt_model_output_tokens_total{{{labels}}} 40"),
            &format!("okt_model_cost_microdollars_total{{{labels}}} 300"),
            "okt_model_failures_total{model=\"m\",operation=\"fact_embedding\"} 1",
        ] {
            assert!(said.contains(line), "{line}:\n{said}");
        }
    }
}
