//! Embedding models in our own process: nobody is asked, and there is nothing to pay.
//!
//! The built-in one has its weights in its crate, so it works without a network or a file. It reads the first 128 tokens of
//! a text, which is more than a fact has, and was made for English. Another is read from a folder (`folder.rs`).

use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use okt_model::{Cause, EMBEDDING_MODEL};
use pocket_encoder::Encoder;
use rayon::ThreadPoolBuilder;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use super::folder::Folder;
use super::{AiError, Embedded, Usage, wire};

pub(super) const NO_CHAT: AiError = AiError::NotConfigured(
    "an embedding model that runs inside okt turns texts into vectors and answers nothing; an operator can name a chat \
     model of providers.ai.models",
);

pub(super) const NO_RERANK: AiError = AiError::NotConfigured(
    "an embedding model that runs inside okt ranks no texts; an operator can name a reranking model of providers.ai.models",
);

/// More than a model reads of any text, unless its words have hundreds of letters.
const MOST_BYTES: usize = 16 * 1024;
/// Tokens of a text that the built-in model reads.
const WINDOW: u64 = 128;
/// The tokenizer leaves it out, so it is to the model what an empty text would be if the encoder took one.
const NOTHING: &str = "\u{fffd}";

#[derive(Clone)]
pub(super) struct Local {
    weights: Weights,
    /// One for each core. More would only wait for each other, and for those the API and the jobs.
    places: Arc<Semaphore>,
}

#[derive(Clone)]
enum Weights {
    Builtin,
    Folder(Arc<Folder>),
}

impl Local {
    pub(super) fn builtin() -> Self {
        Self::of(Weights::Builtin)
    }

    pub(super) fn folder(folder: Folder) -> Self {
        Self::of(Weights::Folder(Arc::new(folder)))
    }

    fn of(weights: Weights) -> Self {
        let cores = available_parallelism().map_or(1, usize::from).min(Semaphore::MAX_PERMITS);
        Self { weights, places: Arc::new(Semaphore::new(cores)) }
    }

    pub(super) fn id(&self) -> &str {
        match &self.weights {
            Weights::Builtin => EMBEDDING_MODEL,
            Weights::Folder(folder) => folder.id(),
        }
    }

    pub(super) fn query_prefix(&self) -> &str {
        match &self.weights {
            Weights::Builtin => "",
            Weights::Folder(folder) => folder.query_prefix(),
        }
    }

    /// Whether its files can be read.
    pub(super) async fn load(&self) -> Result<(), AiError> {
        let Weights::Folder(folder) = self.weights.clone() else { return Ok(()) };
        spawn_blocking(move || folder.loaded().map(drop)).await.map_err(failed)?.map_err(failed)
    }

    pub(super) async fn embed<T, F>(&self, texts: &[String], turn: T) -> Result<Embedded, AiError>
    where
        T: Fn() -> F,
        F: Future<Output = okt_model::Result<()>>,
    {
        let mut all = Embedded::default();
        for batch in texts.chunks(self.weights.batch()) {
            let place = self.places.clone().acquire_owned().await.ok();
            turn().await.map_err(AiError::Turn)?;
            let batch: Vec<String> = batch.iter().map(|text| beginning(text).to_owned()).collect();
            let usage = usage(&batch, self.weights.window());
            let weights = self.weights.clone();
            // Whoever stops waiting does not stop the work, so it is the work that holds the place.
            let work = spawn_blocking(move || {
                let _place = place;
                weights.encode(&batch)
            });
            let (vectors, latency) = work.await.map_err(failed)?.map_err(failed)?;
            all.add(vectors, usage, latency);
        }
        Ok(all)
    }
}

impl Weights {
    /// Few, so that who has one text waits for no more than these before it is their turn.
    const fn batch(&self) -> usize {
        match self {
            Self::Builtin => 8,
            // It reads them all at once.
            Self::Folder(_) => 16,
        }
    }

    fn window(&self) -> u64 {
        match self {
            Self::Builtin => WINDOW,
            Self::Folder(folder) => folder.max_tokens(),
        }
    }

    fn encode(&self, texts: &[String]) -> Result<(Vec<Vec<f32>>, Duration), Cause> {
        let begun = Instant::now();
        // Its maths would spread over all cores, and so would everybody else's. A thread costs less than one text.
        let pool = ThreadPoolBuilder::new().num_threads(1).build()?;
        // Weights are loaded the first time, and kept.
        let vectors = match self {
            Self::Builtin => {
                let encoder = Encoder::new()?;
                pool.install(|| encoder.embed(texts))?
            }
            Self::Folder(folder) => pool.install(|| folder.encode(texts))?,
        };
        Ok((vectors, begun.elapsed()))
    }
}

/// What of a text is handed to the encoder, which refuses texts that are empty or very long.
fn beginning(text: &str) -> &str {
    let text = text.trim_start();
    if text.is_empty() { NOTHING } else { &text[..text.floor_char_boundary(MOST_BYTES)] }
}

/// Counted from the characters, for the encoders do not say.
fn usage(texts: &[String], window: u64) -> Usage {
    let tokens_in = texts.iter().map(|text| wire::tokens(text).min(window)).sum();
    Usage { tokens_in, tokens_out: 0, estimated: true }
}

fn failed(cause: impl Into<Cause>) -> AiError {
    AiError::Unavailable { service: "the embedding model inside okt", cause: cause.into() }
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use super::*;

    #[tokio::test]
    async fn work_keeps_its_place_when_nobody_waits_for_it_any_more() {
        let builtin = Local::builtin();
        let cores = builtin.places.available_permits();
        let texts: Vec<String> = (0..8).map(|n| format!("{n} bees {}", "and flowers ".repeat(60))).collect();
        let mut call = Box::pin(builtin.embed(&texts, || ready(Ok(()))));
        // Long enough for the work to begin, and not for it to end.
        let waited = tokio::time::timeout(Duration::from_millis(1), &mut call).await;
        drop(call);
        assert_eq!((waited.is_err(), builtin.places.available_permits()), (true, cores - 1));
        let all = u32::try_from(cores).unwrap();
        let given_back = tokio::time::timeout(Duration::from_mins(1), builtin.places.acquire_many(all)).await;
        assert!(given_back.is_ok());
    }
}
