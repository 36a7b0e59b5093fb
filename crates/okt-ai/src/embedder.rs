//! Turns texts into vectors with a model of the catalogue or a built-in one: what it may cost is reserved before, and what it did
//! cost is recorded after.

use std::sync::Arc;
use std::time::Duration;

use okt_model::{
    BudgetOf, CallId, CallOutcome, Cost, EmbeddingSpace, Error, ModelCall, Money, Operation, Result, Waiting,
};
use okt_providers::ai::{AiError, Embedded, Model, Usage};
use okt_store::ai_calls::{self, BudgetReservation};
use tokio::time::{Instant, sleep};

use crate::budget::{BUDGET_BUSY, BUDGET_PATIENCE, BUDGET_POLL, Headroom, SubjectBudget};
use crate::ledger::{Entry, meter_failure};
use crate::{Ai, Billing, Unanswered, most_tokens, rate_limit};

/// For whom, and with what. Cheap to clone: a call that was paid for has to outlive a job that is stopped.
#[derive(Clone)]
pub struct Embedder {
    ai: Ai,
    billing: Billing,
    subject_budget: Arc<SubjectBudget>,
    operation: Operation,
    model: Model,
    dimensions: u32,
    /// What the model wants before each text.
    prefix: String,
    /// Of whoever waits for it; a job has as much as the settings.
    patience: Option<Duration>,
}

/// What became of the texts.
pub enum Vectors {
    Embedded(Vec<Vec<f32>>, Cost),
    /// It could cost more than may be spent on the subject.
    OverMaxCost,
    /// Of the repository or of the installation.
    OverBudget(BudgetOf),
}

impl Embedder {
    pub fn new(
        ai: &Ai,
        billing: Billing,
        subject_budget: SubjectBudget,
        operation: Operation,
        space: &EmbeddingSpace,
    ) -> Result<Self> {
        let model = ai.model(&space.model)?;
        let prefix = match operation {
            Operation::QuestionEmbedding => model.query_prefix().to_owned(),
            // As those that are there already, whatever the settings say by now.
            _ => space.passage_prefix.clone(),
        };
        Ok(Self {
            ai: ai.clone(),
            billing,
            subject_budget: Arc::new(subject_budget),
            operation,
            model,
            dimensions: space.dimensions,
            prefix,
            patience: None,
        })
    }

    /// Somebody waits for the answer, and only for so long.
    #[must_use]
    pub fn within(self, patience: Duration) -> Self {
        Self { patience: Some(patience), ..self }
    }

    pub fn model(&self) -> &str {
        self.model.id()
    }

    pub fn billing(&self) -> &Billing {
        &self.billing
    }

    /// One vector for each text, in their order. One call to the model, so not more of them than
    /// `providers.ai.embed_batch_size`.
    ///
    /// In a task of its own: a caller who leaves meanwhile has paid all the same, and it is recorded.
    pub async fn embed(&self, mut texts: Vec<String>) -> Result<Vectors, Unanswered> {
        for text in texts.iter_mut().filter(|_| !self.prefix.is_empty()) {
            text.insert_str(0, &self.prefix);
        }
        let embedder = self.clone();
        tokio::spawn(async move { embedder.embed_here(&texts).await }).await.map_err(Error::internal)?
    }

    async fn embed_here(&self, texts: &[String]) -> Result<Vectors, Unanswered> {
        let tokens_in = texts.iter().map(|text| most_tokens(text)).sum();
        let most = self.model.price(Usage { tokens_in, tokens_out: 0, estimated: true });
        if most.is_zero() {
            return self.embed_within(texts, most).await;
        }
        if self.subject_budget.reserve(most) != Headroom::Granted {
            return Ok(Vectors::OverMaxCost);
        }
        let ended = self.embed_within(texts, most).await;
        let spent = if let Ok(Vectors::Embedded(_, cost)) = &ended { cost.usd } else { Money::ZERO };
        self.subject_budget.settle(most, spent);
        ended
    }

    async fn embed_within(&self, texts: &[String], most: Money) -> Result<Vectors, Unanswered> {
        let call = CallId::mint();
        let deadline = Instant::now() + self.patience.unwrap_or(BUDGET_PATIENCE).min(BUDGET_PATIENCE);
        while !most.is_zero()
            && let BudgetReservation::Exceeded { budget, spent, limit } =
                self.reserve_in_repository(call, most).await?
        {
            if spent + most > limit {
                return Ok(Vectors::OverBudget(budget));
            }
            // It is only reserved, for calls that are out and may turn out to be cheaper.
            if Instant::now() >= deadline {
                let why = Waiting::Budget;
                return Err(Unanswered::Wait { why, delay: BUDGET_BUSY, budget: Some(budget) });
            }
            sleep(BUDGET_POLL).await;
        }
        let turn = || rate_limit::wait(&self.ai, &self.model, self.patience);
        let embedded = match self.model.embed(texts, turn).await {
            Ok(embedded) => embedded,
            Err(error) => {
                if !most.is_zero() {
                    let mut conn = self.ai.databases().acquire_system().await?;
                    ai_calls::let_go(&mut conn, call).await?;
                }
                if !matches!(error, AiError::Turn(_)) {
                    meter_failure(self.model.id(), self.operation);
                }
                return Err(error.into());
            }
        };
        let cost = self.record(call, texts, &embedded).await?;
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
        Ok(Vectors::Embedded(embedded.vectors, cost))
    }

    async fn reserve_in_repository(&self, call: CallId, most: Money) -> Result<BudgetReservation> {
        let (limits, expires) = (self.ai.spending_limits(), self.ai.longest_call());
        let mut tx = self.ai.databases().begin_system().await?;
        let held = ai_calls::reserve(&mut tx, &limits, self.billing.repository, call, most, expires).await?;
        tx.commit().await?;
        Ok(held)
    }

    /// What costs nothing and asks nobody is no call.
    async fn record(&self, id: CallId, texts: &[String], embedded: &Embedded) -> Result<Cost> {
        if self.model.is_local() {
            return Ok(Cost::default());
        }
        let (usage, characters) =
            (embedded.usage, texts.iter().map(|text| text.chars().count()).sum::<usize>());
        let usd = self.model.price(usage);
        let Billing { repository, database, subject, job } = &self.billing;
        let call = ModelCall {
            id,
            repository: *repository,
            subject: *subject,
            job: *job,
            operation: self.operation,
            model: self.model.id().to_owned(),
            outcome: CallOutcome::Ok,
            tokens_in: usage.tokens_in,
            tokens_out: usage.tokens_out,
            usd,
            latency_ms: u64::try_from(embedded.latency.as_millis()).unwrap_or(u64::MAX),
            retries: embedded.retries,
            characters: u64::try_from(characters).unwrap_or(u64::MAX),
        };
        let ledger = self.ai.ledger();
        ledger.write(self.ai.databases(), database, *repository, Entry::Call(call)).await?;
        Ok(Cost { tokens_in: usage.tokens_in, tokens_out: usage.tokens_out, usd })
    }
}
