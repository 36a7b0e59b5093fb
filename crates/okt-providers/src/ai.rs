//! Chat, embedding and reranking models: those of others by the OpenAI-compatible protocol, and those in our own process.
//!
//! Which models there are, where they are served and what they cost is in the catalogue `providers.ai.models`. What may
//! pass is tried again as `providers.llm_retry` says. What a model says is data: nothing here acts on it, and neither
//! it nor what was asked is ever logged. Those in our own process are in no catalogue and found by their name only.

mod attempts;
mod endpoint;
mod error;
mod folder;
mod local;
mod remote;
mod rerank;
mod wire;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use okt_config::Config;
use okt_model::Money;

pub use error::AiError;
use folder::Folder;
use local::Local;
use remote::Remote;

use crate::guarded::GuardedClient;

/// The catalogue, and the models in our own process. Cheap to clone; made once in a process, since calls at once are counted in it.
#[derive(Clone)]
pub struct Models(Arc<HashMap<String, Model>>);

/// Cheap to clone.
#[derive(Clone)]
pub struct Model(Kind);

#[derive(Clone)]
enum Kind {
    Remote(Arc<Remote>),
    Local(Local),
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
    /// How long it may think, such as `low`; only models that can be told are.
    pub thinking: Option<&'static str>,
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
    /// Sent as it is written.
    pub schema: &'static str,
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
#[derive(Clone, Debug, Default)]
pub struct Embedded {
    pub vectors: Vec<Vec<f32>>,
    pub usage: Usage,
    /// Of all requests that succeeded, together.
    pub latency: Duration,
    pub retries: u32,
}

/// How well texts answer a question.
#[derive(Clone, Debug)]
pub struct Reranked {
    /// One for each text, in their order; larger is better, and nothing else is known of the numbers. Missing where the
    /// model said nothing of a text.
    pub scores: Vec<Option<f64>>,
    pub usage: Usage,
    /// What a model that is paid by the search counts it as.
    pub searches: u64,
    pub latency: Duration,
}

impl Models {
    /// The built-in one alone: it needs nobody.
    pub fn own() -> Self {
        Self(Arc::new(HashMap::from([Self::local(Local::builtin())])))
    }

    pub fn new(config: &Config, client: &GuardedClient) -> Self {
        let remote = |model: &okt_config::Model| {
            let kind = Kind::Remote(Arc::new(Remote::new(model, config, client)));
            (model.id.clone(), Model(kind))
        };
        let folder = Folder::new(&config.providers.embedding).map(Local::folder);
        let local = folder.into_iter().chain([Local::builtin()]).map(Self::local);
        Self(Arc::new(config.providers.ai.models.iter().map(remote).chain(local).collect()))
    }

    fn local(local: Local) -> (String, Model) {
        (local.id().to_owned(), Model(Kind::Local(local)))
    }

    /// `None` when the catalogue does not have it.
    pub fn find(&self, id: &str) -> Option<Model> {
        self.0.get(id).cloned()
    }
}

impl Model {
    pub fn id(&self) -> &str {
        match &self.0 {
            Kind::Remote(remote) => &remote.settings.id,
            Kind::Local(local) => local.id(),
        }
    }

    /// Whether it runs in this process: nobody is asked, and nothing is paid.
    pub fn is_local(&self) -> bool {
        matches!(self.0, Kind::Local(_))
    }

    pub fn price(&self, usage: Usage) -> Money {
        match &self.0 {
            Kind::Remote(remote) => remote.settings.price(usage.tokens_in, usage.tokens_out),
            Kind::Local(_) => Money::ZERO,
        }
    }

    /// Of having texts ranked.
    pub fn rerank_price(&self, tokens_in: u64, searches: u64) -> Money {
        match &self.0 {
            Kind::Remote(remote) => remote.settings.rerank_price(tokens_in, searches),
            Kind::Local(_) => Money::ZERO,
        }
    }

    /// What it wants before a question that it turns into a vector.
    pub fn query_prefix(&self) -> &str {
        match &self.0 {
            Kind::Remote(remote) => &remote.settings.query_prefix,
            Kind::Local(local) => local.query_prefix(),
        }
    }

    /// 0 for no limit. To be kept by whoever gives the turns, for other processes count, too.
    pub fn rate_limit_rpm(&self) -> u32 {
        match &self.0 {
            Kind::Remote(remote) => remote.settings.rate_limit_rpm,
            Kind::Local(_) => 0,
        }
    }

    /// Whether who serves it answers and knows it: a list of models is asked for, once. `None` where there is no list to
    /// be had.
    pub async fn is_listed(&self, limit: Duration) -> Result<Option<bool>, AiError> {
        match &self.0 {
            Kind::Remote(remote) => {
                let listed = remote.endpoint.list(limit).await?;
                Ok(listed.map(|ids| ids.contains(&remote.settings.id)))
            }
            Kind::Local(local) => local.load().await.map(|()| Some(true)),
        }
    }

    /// Asks, and again after what may pass. `turn` is awaited before every request that is sent, with a
    /// place for it held; its error ends the call.
    pub async fn chat<T, F>(&self, chat: &Chat, turn: T) -> Result<Reply, AiError>
    where
        T: Fn() -> F + Send + Sync,
        F: Future<Output = okt_model::Result<()>> + Send,
    {
        match &self.0 {
            Kind::Remote(remote) => remote.chat(chat, None, turn).await,
            Kind::Local(_) => Err(local::NO_CHAT),
        }
    }

    /// As [`Model::chat`]; `heard` is told all that has come of the answer, each time that there is more, and an empty text when a
    /// request begins. A server that answers at once is heard of at the end only.
    pub async fn chat_heard<T, F>(
        &self,
        chat: &Chat,
        heard: &(dyn Fn(&str) + Send + Sync),
        turn: T,
    ) -> Result<Reply, AiError>
    where
        T: Fn() -> F + Send + Sync,
        F: Future<Output = okt_model::Result<()>> + Send,
    {
        match &self.0 {
            Kind::Remote(remote) => remote.chat(chat, Some(heard), turn).await,
            Kind::Local(_) => Err(local::NO_CHAT),
        }
    }

    /// Turns texts into vectors, a few at once: as many as `providers.ai.embed_batch_size` in a request. Each request has
    /// its own attempts and turns, as in [`Model::chat`]. Vectors of the model of `providers.embedding` that are not as
    /// long as it says are an error.
    pub async fn embed<T, F>(&self, texts: &[String], turn: T) -> Result<Embedded, AiError>
    where
        T: Fn() -> F + Send + Sync,
        F: Future<Output = okt_model::Result<()>> + Send,
    {
        match &self.0 {
            Kind::Remote(remote) => remote.embed(texts, turn).await,
            Kind::Local(local) => local.embed(texts, turn).await,
        }
    }

    /// Says how well texts answer a question. One request, with one turn as in [`Model::chat`].
    pub async fn rerank<T, F>(&self, question: &str, texts: &[String], turn: T) -> Result<Reranked, AiError>
    where
        T: Fn() -> F + Send + Sync,
        F: Future<Output = okt_model::Result<()>> + Send,
    {
        match &self.0 {
            Kind::Remote(remote) => remote.rerank(question, texts, turn).await,
            Kind::Local(_) => Err(local::NO_RERANK),
        }
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Model").field(&self.id()).finish()
    }
}

impl Embedded {
    fn add(&mut self, vectors: Vec<Vec<f32>>, usage: Usage, latency: Duration) {
        self.vectors.extend(vectors);
        self.usage = self.usage.and(usage);
        self.latency += latency;
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
