//! A model of the catalogue, served by others.

use okt_config::{Config, LlmRetry};
use tokio::sync::Semaphore;

use super::attempts::Heard;
use super::endpoint::Endpoint;
use super::{AiError, Chat, Embedded, Reply, wire};
use crate::guarded::GuardedClient;

pub(super) struct Remote {
    pub settings: okt_config::Model,
    pub endpoint: Endpoint,
    /// `None` for no limit.
    pub places: Option<Semaphore>,
    pub retry: LlmRetry,
    batch: usize,
    /// What its vectors have to have; `None` where nobody said so.
    dimensions: Option<usize>,
}

impl Remote {
    pub(super) fn new(model: &okt_config::Model, config: &Config, client: &GuardedClient) -> Self {
        let (ai, embedding) = (&config.providers.ai, &config.providers.embedding);
        let limit = size(model.max_in_flight).min(Semaphore::MAX_PERMITS);
        Self {
            settings: model.clone(),
            endpoint: match &config.search.rerank {
                rerank if rerank.model == model.id && rerank.url.is_some() => {
                    Endpoint::of_reranker(rerank, client)
                }
                _ => Endpoint::new(model.provider, ai, client),
            },
            places: (limit > 0).then(|| Semaphore::new(limit)),
            retry: config.providers.llm_retry.clone(),
            batch: size(ai.embed_batch_size).max(1),
            dimensions: (model.id == embedding.model).then(|| size(embedding.dimensions)),
        }
    }

    pub(super) async fn chat<T, F>(&self, chat: &Chat, heard: Heard<'_>, turn: T) -> Result<Reply, AiError>
    where
        T: Fn() -> F,
        F: Future<Output = okt_model::Result<()>>,
    {
        let body = wire::chat(&self.settings.id, self.settings.thinks, chat, heard.is_some());
        let asked = wire::size(chat);
        let read = |answer: &[u8]| self.endpoint.read_chat(answer, asked);
        let answer = self.ask("chat/completions", body, heard, turn, read).await?;
        let wire::Said { text, end, usage } = answer.value;
        Ok(Reply { text, end, usage, latency: answer.latency, retries: answer.retries })
    }

    pub(super) async fn embed<T, F>(&self, texts: &[String], turn: T) -> Result<Embedded, AiError>
    where
        T: Fn() -> F,
        F: Future<Output = okt_model::Result<()>>,
    {
        let mut all = Embedded::default();
        for batch in texts.chunks(self.batch) {
            let body = wire::embed(&self.settings.id, batch);
            let before = all.vectors.first().map(Vec::len);
            let read = |answer: &[u8]| {
                let read = self.endpoint.read_embedded(answer, batch, before)?;
                self.endpoint.check_dimensions(&read.0, self.dimensions)?;
                Ok(read)
            };
            let answer = self.ask("embeddings", body, None, &turn, read).await?;
            let (vectors, usage) = answer.value;
            all.add(vectors, usage, answer.latency);
            all.retries += answer.retries;
        }
        Ok(all)
    }
}

fn size(setting: u32) -> usize {
    usize::try_from(setting).unwrap_or(usize::MAX)
}
