//! Turns texts into vectors with a model of the catalogue or our own: what it may cost is set aside before, and what it did cost
//! is written down after.

use okt_model::{
    CallId, CallOutcome, Cost, EMBEDDING_MODEL, EmbeddingSpace, Error, JobId, ModelCall, Operation,
    RepositoryId, Result, SourceId, Waiting,
};
use okt_providers::ai::{AiError, Embedded, Model, Usage};
use okt_queue::JobError;
use okt_store::ai_calls::{self, Hold};
use okt_store::{Databases, sources};
use okt_vectors::Tenant;

use crate::Tools;
use crate::asking::{BUDGET_SPENT, Unanswered, explained, most_tokens, take_turn};
use crate::ledger::Written;

/// For whom, and with what. What it does has to outlive a job that is stopped: it is paid for.
#[derive(Clone)]
pub(crate) struct Embedder {
    tools: Tools,
    databases: Databases,
    database: String,
    repository: RepositoryId,
    source: Option<SourceId>,
    job: JobId,
    model: Model,
    dimensions: u32,
}

/// What became of the texts.
pub(crate) enum Vectors {
    Made(Vec<Vec<f32>>, Cost),
    /// It could cost more than may be spent on the source.
    TooDear,
}

impl Embedder {
    pub(crate) fn new(
        tools: &Tools,
        databases: &Databases,
        (repository, database): (RepositoryId, &str),
        source: Option<SourceId>,
        job: JobId,
        space: &EmbeddingSpace,
    ) -> Result<Self> {
        Ok(Self {
            tools: tools.clone(),
            databases: databases.clone(),
            database: database.to_owned(),
            repository,
            source,
            job,
            model: tools.model(&space.model)?,
            dimensions: space.dimensions,
        })
    }

    pub(crate) fn tenant(&self) -> Tenant {
        Tenant::new(self.repository, &self.database)
    }

    /// One vector for each text, in their order. One call to the model, so not more of them than
    /// `providers.ai.embed_batch_size`.
    pub(crate) async fn embed(&self, texts: &[String]) -> Result<Vectors, JobError> {
        let tokens_in = texts.iter().map(|text| most_tokens(text)).sum();
        let most = self.model.price(Usage { tokens_in, tokens_out: 0, estimated: true });
        let call = CallId::mint();
        if most > 0.0 {
            if self.exceeds(most).await? {
                return Ok(Vectors::TooDear);
            }
            self.hold(call, most).await?;
        }
        let longest = self.tools.config().providers.ai.rate_limit_wait_timeout.duration();
        let turn = || take_turn(&self.databases, &self.model, longest);
        let embedded = match self.model.embed(texts, turn).await {
            Ok(embedded) => embedded,
            Err(error) => {
                if most > 0.0 {
                    let mut conn = self.databases.acquire_system().await?;
                    ai_calls::let_go(&mut conn, call).await?;
                    conn.done();
                }
                return Err(failed(error));
            }
        };
        let cost = self.book(call, texts, &embedded).await?;
        let wanted = usize::try_from(self.dimensions).unwrap_or(usize::MAX);
        if let Some(other) = embedded.vectors.iter().find(|vector| vector.len() != wanted) {
            let message = format!(
                "{} answers with vectors of {} numbers, but providers.embedding.dimensions was {wanted} when they were \
                 first made; correct it and run `okt reembed`",
                self.model.id(),
                other.len(),
            );
            return Err(Error::Operator(message).into());
        }
        Ok(Vectors::Made(embedded.vectors, cost))
    }

    /// Whether so much more could be too much for the source.
    async fn exceeds(&self, most: f64) -> Result<bool> {
        let Some(source) = self.source else { return Ok(false) };
        let mut tx = self.databases.begin_to_read(&self.database, self.repository).await?;
        let found = sources::find(&mut tx, self.repository, source).await?;
        tx.commit().await?;
        let Some(limit) = found.and_then(|source| source.max_cost_usd) else { return Ok(false) };
        let mut conn = self.databases.acquire_system().await?;
        let spent = ai_calls::cost_of(&mut conn, self.repository, source).await?;
        conn.done();
        Ok(spent.usd + most > limit)
    }

    async fn hold(&self, call: CallId, usd: f64) -> Result<(), JobError> {
        let mut tx = self.databases.begin_system().await?;
        let held = ai_calls::hold(&mut tx, self.repository, call, usd, self.tools.longest_call()).await?;
        tx.commit().await?;
        match held {
            Hold::Free | Hold::Held => Ok(()),
            Hold::Exceeded { .. } => Err(JobError::Waits { why: Waiting::Budget, delay: BUDGET_SPENT }),
        }
    }

    /// What costs nothing and asks nobody is no call.
    async fn book(&self, id: CallId, texts: &[String], embedded: &Embedded) -> Result<Cost> {
        if self.model.id() == EMBEDDING_MODEL {
            return Ok(Cost::default());
        }
        let (usage, characters) =
            (embedded.usage, texts.iter().map(|text| text.chars().count()).sum::<usize>());
        let usd = self.model.price(usage);
        let call = ModelCall {
            id,
            repository: self.repository,
            source: self.source,
            job: self.job,
            operation: Operation::FactEmbedding,
            model: self.model.id().to_owned(),
            outcome: CallOutcome::Ok,
            tokens_in: usage.tokens_in,
            tokens_out: usage.tokens_out,
            usd,
            latency_ms: u64::try_from(embedded.latency.as_millis()).unwrap_or(u64::MAX),
            retries: embedded.retries,
            characters: u64::try_from(characters).unwrap_or(u64::MAX),
        };
        let ledger = self.tools.ledger();
        ledger.write(&self.databases, &self.database, self.repository, Written::Call(call)).await?;
        Ok(Cost { tokens_in: usage.tokens_in, tokens_out: usage.tokens_out, usd })
    }
}

fn failed(error: AiError) -> JobError {
    match explained(error) {
        Unanswered::Pause { why, delay } => JobError::Waits { why, delay },
        Unanswered::Later(error) => error.into(),
        Unanswered::Useless { message, .. } | Unanswered::Hopeless { message, .. } => {
            Error::Operator(message).into()
        }
    }
}
