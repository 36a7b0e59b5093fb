//! The one way to ask a model. A call spends nothing that may not be spent, waits for the model's rate limit, and its answer
//! is stored before it is used; its cost belongs to a subject (a source, a concept, a report, a question).
//!
//! Used by jobs and by use cases alike: it must not know HTTP, nor what a job is. To ask for something new, add an
//! [`okt_model::Operation`], make a question in `okt-extract`, and call [`Asker::ask`], [`Embedder::embed`] or
//! [`Reranker::rerank`].

mod asker;
mod budget;
mod call;
mod definitions;
mod dialogue;
mod embedder;
mod ledger;
mod rate_limit;
mod reranker;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use okt_config::Config;
use okt_model::{
    BudgetOf, ContentHash, EmbeddingSpace, Error, JobId, ModelCall, RepositoryId, Result, SpaceKind,
    SpendingLimits, Subject, Waiting,
};
use okt_providers::GuardedClient;
use okt_providers::ai::{AiError, Model, Models};
use okt_store::model_answers::{self, ModelAnswer};
use okt_store::{Databases, embedding_spaces};

use crate::ledger::Ledger;

pub use asker::{Asker, Heard};
pub use budget::{BUDGET_RETRY, RepositoryBudget, SubjectBudget, waiting_for_budget};
pub use call::Ended;
pub use definitions::{Gathered, Parts};
pub use dialogue::{Dialogue, Turn};
pub use embedder::{Embedder, Vectors};
pub use reranker::{Reranker, Scores};

/// The models of an installation and the accounts of what they cost. One for a process; cheap to clone.
#[derive(Clone)]
pub struct Ai(Arc<Inner>);

struct Inner {
    databases: Databases,
    ledger: Ledger,
    models: Models,
    /// Whether other services can be asked at all.
    online: bool,
    limits: SpendingLimits,
    rate_limit_wait: Duration,
    longest_call: Duration,
}

impl Ai {
    /// Without a client only the built-in models can be asked.
    pub fn new(config: &Config, databases: &Databases, client: Option<&GuardedClient>) -> Self {
        let (retry, ai) = (&config.providers.llm_retry, &config.providers.ai);
        let rate_limit_wait = ai.rate_limit_wait_timeout.duration();
        let attempt = retry.per_call_timeout.duration().saturating_add(retry.max_delay.duration());
        Self(Arc::new(Inner {
            databases: databases.clone(),
            ledger: Ledger::default(),
            models: client.map_or_else(Models::own, |client| Models::new(config, client)),
            online: client.is_some(),
            limits: config.spending_limits(),
            rate_limit_wait,
            longest_call: attempt.saturating_add(rate_limit_wait).saturating_mul(retry.max_attempts),
        }))
    }

    /// A model of `providers.ai.models`, or a built-in one.
    pub fn model(&self, id: &str) -> Result<Model> {
        self.0.models.find(id).ok_or(Error::NotConfigured(if self.0.online {
            "a setting names a model that is not in providers.ai.models"
        } else {
            "no model can be called: no root CA certificates are installed"
        }))
    }

    /// The vectors that are searched for things of this kind; `None` before the first were made.
    pub async fn current_space(&self, kind: SpaceKind) -> Result<Option<EmbeddingSpace>> {
        let mut conn = self.0.databases.acquire_system().await?;
        let space = embedding_spaces::find_current(&mut conn, kind).await?;
        Ok(space)
    }

    /// Those of these questions that were answered before, by their keys. A process that stored an answer may have died before
    /// it recorded the call, so the calls for the same subject are recorded once more.
    pub async fn answered(
        &self,
        billing: &Billing,
        keys: &[ContentHash],
    ) -> Result<HashMap<ContentHash, ModelAnswer>> {
        let Billing { repository, database, subject, .. } = billing;
        let mut tx = self.databases().begin_to_read(database, *repository).await?;
        let answered = model_answers::list(&mut tx, *repository, keys).await?;
        tx.commit().await?;
        let ours = answered.values().map(|answer| &answer.call).filter(|call| call.subject == *subject);
        ledger::record(self.databases(), &ours.collect::<Vec<&ModelCall>>()).await?;
        Ok(answered)
    }

    pub fn spending_limits(&self) -> SpendingLimits {
        self.0.limits
    }

    fn databases(&self) -> &Databases {
        &self.0.databases
    }

    fn ledger(&self) -> &Ledger {
        &self.0.ledger
    }

    /// How long a call takes at most, with all its attempts and waits.
    pub fn longest_call(&self) -> Duration {
        self.0.longest_call
    }
}

/// Whom a call is charged to.
#[derive(Clone, Debug)]
pub struct Billing {
    pub repository: RepositoryId,
    /// The named database of the repository.
    pub database: String,
    pub subject: Option<Subject>,
    /// `None` where a caller waits for the answer.
    pub job: Option<JobId>,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Unanswered {
    /// The model was asked and gave nothing that could be used.
    Unusable { code: &'static str, message: String },
    /// Nothing would help but a change of the settings or of the subject's limit.
    Permanent { code: &'static str, message: String, retryable: bool },
    /// Not now.
    Wait { why: Waiting, delay: Duration, budget: Option<BudgetOf> },
    /// Another try may succeed.
    Retryable(Error),
}

impl From<Error> for Unanswered {
    fn from(error: Error) -> Self {
        Self::Retryable(error)
    }
}

impl From<okt_store::Error> for Unanswered {
    fn from(error: okt_store::Error) -> Self {
        Self::Retryable(error.into())
    }
}

impl From<AiError> for Unanswered {
    fn from(error: AiError) -> Self {
        /// At least this long, also where a provider asks for no time at all.
        const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
        let pause = |delay| Self::Wait { why: Waiting::RateLimit, delay, budget: None };
        match error {
            AiError::Turn(ref cause) if rate_limit::is_timeout(cause) => pause(rate_limit::PAUSE),
            AiError::RateLimited { retry_after, .. } => {
                pause(retry_after.unwrap_or(rate_limit::PAUSE).max(SHORTEST_PAUSE))
            }
            AiError::Refused { status: 400 | 413 | 422, .. } => {
                Self::Unusable { code: "refused", message: error.to_string() }
            }
            AiError::Refused { .. } | AiError::NotConfigured(_) => Self::Permanent {
                code: "model_refused",
                message: error.to_string(),
                // Once somebody has corrected the settings.
                retryable: true,
            },
            error => Self::Retryable(error.into()),
        }
    }
}

/// An upper bound of what any tokenizer makes of a text: half of its letters where it is ASCII, and every byte where it is not.
fn most_tokens(text: &str) -> u64 {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    u64::try_from(ascii / 2 + (text.len() - ascii)).unwrap_or(u64::MAX)
}
