//! Chat and embedding models, by the OpenAI-compatible protocol.
//!
//! Which models there are, where they are served and what they cost is in the catalogue `providers.ai.models`. What may
//! pass is tried again as `providers.llm_retry` says. What a model says is data: nothing here acts on it, and neither
//! it nor what was asked is ever logged.

mod attempts;
mod endpoint;
mod error;
mod wire;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use okt_config::{Config, LlmRetry};
use serde_json::Value;
use tokio::sync::Semaphore;

use endpoint::Endpoint;
pub use error::AiError;

use crate::guarded::GuardedClient;

/// The catalogue. Cheap to clone; made once in a process, since `max_in_flight` is counted in it.
#[derive(Clone)]
pub struct Models(Arc<HashMap<String, Model>>);

/// A model of the catalogue. Cheap to clone.
#[derive(Clone)]
pub struct Model(Arc<Inner>);

struct Inner {
    settings: okt_config::Model,
    endpoint: Endpoint,
    /// `None` for no limit.
    places: Option<Semaphore>,
    retry: LlmRetry,
    batch: usize,
}

/// What a chat model is asked.
#[derive(Clone)]
pub struct Chat {
    pub system: String,
    pub user: Vec<Part>,
    /// An answer that did not fit.
    pub again: Option<Again>,
    /// What the answer has to be like.
    pub schema: Option<Schema>,
    pub max_tokens: u32,
}

#[derive(Clone)]
pub enum Part {
    Text(String),
    Image { content_type: String, bytes: Bytes },
}

/// What the model has answered before, and what was wrong with it.
#[derive(Clone)]
pub struct Again {
    pub answer: String,
    pub complaint: String,
}

/// A JSON schema that the server holds the answer to, if it can.
#[derive(Clone)]
pub struct Schema {
    pub name: &'static str,
    pub schema: &'static Value,
}

#[derive(Clone, Debug)]
pub struct Reply {
    pub text: String,
    pub end: End,
    pub usage: Usage,
    /// Of the request that succeeded.
    pub latency: Duration,
    /// Requests that failed before it.
    pub retries: u32,
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It had said everything.
    Stop,
    /// It was cut off at `max_tokens`.
    Length,
    /// The server kept the answer back, or the model refused to give one.
    Filtered,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub tokens_in: u64,
    pub tokens_out: u64,
    /// The server did not say; counted from the characters.
    pub estimated: bool,
}

/// One vector for each text, in their order, all of the same length.
#[derive(Clone, Debug)]
pub struct Embedded {
    pub vectors: Vec<Vec<f32>>,
    pub usage: Usage,
    /// Of all requests that succeeded, together.
    pub latency: Duration,
    pub retries: u32,
}

impl Models {
    pub fn new(config: &Config, client: &GuardedClient) -> Self {
        let ai = &config.providers.ai;
        let of = |model: &okt_config::Model| {
            let limit =
                usize::try_from(model.max_in_flight).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
            Model(Arc::new(Inner {
                settings: model.clone(),
                endpoint: Endpoint::new(model.provider, ai, client),
                places: (limit > 0).then(|| Semaphore::new(limit)),
                retry: config.providers.llm_retry.clone(),
                batch: usize::try_from(ai.embed_batch_size).unwrap_or(usize::MAX).max(1),
            }))
        };
        Self(Arc::new(ai.models.iter().map(|model| (model.id.clone(), of(model))).collect()))
    }

    /// `None` when the catalogue does not have it.
    pub fn find(&self, id: &str) -> Option<Model> {
        self.0.get(id).cloned()
    }
}

impl Model {
    pub fn id(&self) -> &str {
        &self.0.settings.id
    }

    /// In US dollars.
    #[expect(clippy::cast_precision_loss, reason = "nobody pays for so many tokens that it would show")]
    pub fn price(&self, usage: Usage) -> f64 {
        let Inner { settings, .. } = &*self.0;
        let cost = usage.tokens_in as f64 * settings.input_cost_per_1m
            + usage.tokens_out as f64 * settings.output_cost_per_1m;
        cost / 1_000_000.0
    }

    /// 0 for no limit. To be kept by whoever gives the turns, for other processes count, too.
    pub fn rate_limit_rpm(&self) -> u32 {
        self.0.settings.rate_limit_rpm
    }

    /// Asks, and again after what may pass. `turn` is awaited before every request that is sent, with a
    /// place for it held; its error ends the call.
    pub async fn chat<T, F>(&self, chat: &Chat, turn: T) -> Result<Reply, AiError>
    where
        T: Fn() -> F + Send + Sync,
        F: Future<Output = okt_model::Result<()>> + Send,
    {
        let body = wire::chat(self.id(), chat);
        let asked = wire::size(chat);
        let read = |answer: &[u8]| self.0.endpoint.read_chat(answer, asked);
        let answer = self.ask("chat/completions", body, turn, read).await?;
        let wire::Said { text, end, usage } = answer.value;
        Ok(Reply { text, end, usage, latency: answer.latency, retries: answer.retries })
    }

    /// Turns texts into vectors, as many at once as `providers.ai.embed_batch_size`. Each request has its own attempts
    /// and turns, as in [`Model::chat`].
    pub async fn embed<T, F>(&self, texts: &[String], turn: T) -> Result<Embedded, AiError>
    where
        T: Fn() -> F + Send + Sync,
        F: Future<Output = okt_model::Result<()>> + Send,
    {
        let mut all =
            Embedded { vectors: Vec::new(), usage: Usage::default(), latency: Duration::ZERO, retries: 0 };
        for batch in texts.chunks(self.0.batch) {
            let body = wire::embed(self.id(), batch);
            let dimensions = all.vectors.first().map(Vec::len);
            let read = |answer: &[u8]| self.0.endpoint.read_embedded(answer, batch, dimensions);
            let answer = self.ask("embeddings", body, &turn, read).await?;
            let (vectors, usage) = answer.value;
            all.vectors.extend(vectors);
            all.usage = all.usage.and(usage);
            all.latency += answer.latency;
            all.retries += answer.retries;
        }
        Ok(all)
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Model").field(&self.id()).finish()
    }
}

impl Usage {
    const fn and(self, other: Self) -> Self {
        Self {
            tokens_in: self.tokens_in.saturating_add(other.tokens_in),
            tokens_out: self.tokens_out.saturating_add(other.tokens_out),
            estimated: self.estimated || other.estimated,
        }
    }
}
