//! Has a reranking model of the catalogue say how well texts answer a question. Somebody waits for it, so it is asked once, and not
//! at all where money would have to be waited for.

use std::time::Duration;

use okt_model::{BudgetOf, CallId, CallOutcome, Error, ModelCall, Money, Operation, Result};
use okt_providers::ai::{AiError, Model, Reranked};
use okt_store::ai_calls::{self, BudgetReservation};
use tokio::sync::oneshot;

use crate::ledger::{Entry, meter_failure};
use crate::{Ai, Billing, Unanswered, most_tokens, rate_limit};

const OPERATION: Operation = Operation::QuestionReranking;
/// Those who are paid by the search count a longer text as several, and so many texts as one search.
const TOKENS_PER_TEXT: u64 = 500;
const TEXTS_PER_SEARCH: u64 = 100;

/// For whom, and with what. Cheap to clone.
#[derive(Clone)]
pub struct Reranker {
    ai: Ai,
    billing: Billing,
    model: Model,
    patience: Duration,
}

/// What became of the texts.
pub enum Scores {
    /// One for each text, in their order; larger is better. Missing where the model said nothing of a text.
    Given(Vec<Option<f64>>),
    /// Of the repository or of the installation.
    OverBudget(BudgetOf),
}

/// Whoever waits for the scores.
type Asker = oneshot::Sender<Result<Scores, Unanswered>>;

impl Reranker {
    /// Whoever asks waits for so long.
    pub fn new(ai: &Ai, billing: Billing, model: &str, patience: Duration) -> Result<Self> {
        Ok(Self { ai: ai.clone(), billing, model: ai.model(model)?, patience })
    }

    /// In a task of its own: a caller who leaves meanwhile has paid all the same, and it is recorded.
    pub async fn rerank(&self, question: String, texts: Vec<String>) -> Result<Scores, Unanswered> {
        let reranker = self.clone();
        let (asker, replied) = oneshot::channel();
        tokio::spawn(async move {
            let scores = reranker.rerank_for(&asker, &question, &texts).await;
            drop(asker.send(scores));
        });
        replied.await.map_err(Error::internal)?
    }

    async fn rerank_for(
        &self,
        asker: &Asker,
        question: &str,
        texts: &[String],
    ) -> Result<Scores, Unanswered> {
        let (call, most) = (CallId::mint(), self.most(question, texts));
        if !most.is_zero()
            && let BudgetReservation::Exceeded { budget, .. } = self.reserve(call, most).await?
        {
            return Ok(Scores::OverBudget(budget));
        }
        match self.model.rerank(question, texts, || self.turn(asker)).await {
            Ok(reranked) => {
                let characters =
                    question.chars().count() + texts.iter().map(|text| text.chars().count()).sum::<usize>();
                self.record(call, characters, &reranked).await?;
                Ok(Scores::Given(reranked.scores))
            }
            Err(error) => {
                if !most.is_zero() {
                    let mut conn = self.ai.databases().acquire_system().await?;
                    ai_calls::let_go(&mut conn, call).await?;
                }
                if !matches!(error, AiError::Turn(_)) {
                    meter_failure(self.model.id(), OPERATION);
                }
                Err(error.into())
            }
        }
    }

    /// Before the request: is it our turn, and is anybody still waiting?
    async fn turn(&self, asker: &Asker) -> Result<()> {
        rate_limit::wait(&self.ai, &self.model, Some(self.patience)).await?;
        if asker.is_closed() {
            return Err(Error::Overloaded("the caller has stopped waiting for the answer"));
        }
        Ok(())
    }

    async fn reserve(&self, call: CallId, most: Money) -> Result<BudgetReservation> {
        let (limits, expires) = (self.ai.spending_limits(), self.ai.longest_call());
        let mut tx = self.ai.databases().begin_system().await?;
        let held = ai_calls::reserve(&mut tx, &limits, self.billing.repository, call, most, expires).await?;
        tx.commit().await?;
        Ok(held)
    }

    /// The most it can cost.
    fn most(&self, question: &str, texts: &[String]) -> Money {
        let (mut tokens, mut counted) = (0, 0);
        for text in texts {
            let read = most_tokens(text) + most_tokens(question);
            tokens += read;
            counted += read.div_ceil(TOKENS_PER_TEXT).max(1);
        }
        self.model.rerank_price(tokens, counted.div_ceil(TEXTS_PER_SEARCH))
    }

    async fn record(&self, id: CallId, characters: usize, reranked: &Reranked) -> Result<()> {
        let Billing { repository, database, subject, job } = &self.billing;
        let call = ModelCall {
            id,
            repository: *repository,
            subject: *subject,
            job: *job,
            operation: OPERATION,
            model: self.model.id().to_owned(),
            outcome: CallOutcome::Ok,
            tokens_in: reranked.usage.tokens_in,
            tokens_out: 0,
            usd: self.model.rerank_price(reranked.usage.tokens_in, reranked.searches),
            latency_ms: u64::try_from(reranked.latency.as_millis()).unwrap_or(u64::MAX),
            retries: 0,
            characters: u64::try_from(characters).unwrap_or(u64::MAX),
        };
        self.ai.ledger().write(self.ai.databases(), database, *repository, Entry::Call(call)).await
    }
}
