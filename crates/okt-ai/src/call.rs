//! One call of a chat model, from the money that is reserved for it to its entry in the ledger.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use okt_extract::Question;
use okt_model::{CallId, CallOutcome, ContentHash, Error, ModelCall, Money, Operation, Result, Waiting};
use okt_providers::ai::{AiError, Chat, End, Model, Part, Reply, Usage};
use okt_store::ai_calls::{self, BudgetReservation};
use okt_store::model_answers::ModelAnswer;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use crate::asker::Heard;
use crate::budget::{
    BUDGET_BUSY, BUDGET_PATIENCE, BUDGET_POLL, BUDGET_RETRY, Headroom, RepositoryBudget, SubjectBudget,
};
use crate::ledger::{Entry, meter_failure};
use crate::{Ai, Billing, Unanswered, most_tokens, rate_limit};

/// For what goes along with a question: its form, roles, the schema.
const OVERHEAD_TOKENS: u64 = 1_000;
/// What no picture takes more than, whoever looks at it.
const IMAGE_TOKENS: u64 = 50_000;

/// What came of a call, as whoever read the answer says.
pub struct Ended {
    pub outcome: CallOutcome,
    /// The answer as it is kept, so that the same question is not paid for again.
    pub keep: Option<String>,
}

pub(crate) struct Call {
    id: CallId,
    ai: Ai,
    billing: Billing,
    model: Model,
    operation: Operation,
    key: ContentHash,
    subject_budget: Arc<SubjectBudget>,
    repository_budget: Arc<RepositoryBudget>,
    /// Whether money was reserved for it.
    reserved: AtomicBool,
    /// Why it may not be made.
    refused: Mutex<Option<Unanswered>>,
}

impl Call {
    pub(crate) fn new(
        ai: &Ai,
        billing: Billing,
        model: &Model,
        operation: Operation,
        question: &Question,
        (subject_budget, repository_budget): (Arc<SubjectBudget>, Arc<RepositoryBudget>),
    ) -> Self {
        Self {
            id: CallId::mint(),
            ai: ai.clone(),
            billing,
            model: model.clone(),
            operation,
            key: question.key(model.id()),
            subject_budget,
            repository_budget,
            reserved: AtomicBool::new(false),
            refused: Mutex::default(),
        }
    }

    /// Asks, hands over the reply, waits for its outcome, and stores both. If the caller is gone, the answer is stored for the
    /// next caller that asks the same.
    pub(crate) async fn run(
        self,
        chat: Chat,
        heard: Option<Heard>,
        reply: oneshot::Sender<Result<Reply, Unanswered>>,
        told: oneshot::Receiver<Ended>,
    ) -> Result<()> {
        let (characters, most) = self.most(&chat);
        let turn = || self.before_request(most, &reply);
        let ended = match &heard {
            Some(heard) => self.model.chat_heard(&chat, &**heard, turn).await,
            None => self.model.chat(&chat, turn).await,
        };
        let spent = ended.as_ref().map_or(Money::ZERO, |reply| self.model.price(reply.usage));
        if self.reserved.load(Ordering::Relaxed) {
            self.subject_budget.settle(most, spent);
        }
        let mut answered = match ended {
            Ok(answered) => answered,
            Err(error) => {
                self.release_reservation().await;
                let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner).take();
                // One that was never made is no failure of the model.
                if !matches!(error, AiError::Turn(_)) {
                    meter_failure(self.model.id(), self.operation);
                }
                drop(reply.send(Err(refused.unwrap_or_else(|| error.into()))));
                return Ok(());
            }
        };
        // PostgreSQL has no place for it, and JSON has no use for it.
        answered.text.retain(|character| character != '\0');
        let kept = answered.clone();
        drop(reply.send(Ok(answered)));
        let Ended { outcome, keep } = told.await.unwrap_or_else(|_| Ended {
            outcome: CallOutcome::Unread,
            keep: (kept.end == End::Stop).then(|| kept.text.clone()),
        });
        let call = self.entry(&kept, outcome, characters);
        let written = match keep {
            Some(answer) => Entry::Answer(ModelAnswer { key: self.key, answer, call }),
            None => Entry::Call(call),
        };
        let Billing { repository, database, .. } = &self.billing;
        self.ai.ledger().write(self.ai.databases(), database, *repository, written).await
    }

    /// Before every request: is anybody still waiting, is there money, is it our turn?
    async fn before_request(
        &self,
        most: Money,
        waiting: &oneshot::Sender<Result<Reply, Unanswered>>,
    ) -> Result<()> {
        if waiting.is_closed() {
            return Err(Error::Overloaded("the caller has stopped waiting for the answer"));
        }
        if !self.reserved.load(Ordering::Relaxed) {
            if let Err(refused) = self.reserve(most).await {
                *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(refused);
                return Err(Error::Overloaded("the budget does not allow the call"));
            }
            self.reserved.store(true, Ordering::Relaxed);
        }
        rate_limit::wait(&self.ai, &self.model, None).await
    }

    /// Reserves what the call may cost, from what may be spent on the subject and by the repository.
    async fn reserve(&self, most: Money) -> Result<(), Unanswered> {
        let deadline = Instant::now() + BUDGET_PATIENCE;
        loop {
            match self.subject_budget.reserve(most) {
                Headroom::Granted => {}
                // Those who hold it are calls of the same job.
                Headroom::Wait => {
                    sleep(BUDGET_POLL).await;
                    continue;
                }
                Headroom::Exceeded => return Err(self.over_max_cost()),
            }
            let held = self.reserve_in_repository(most).await;
            if matches!(held, Ok(BudgetReservation::Free | BudgetReservation::Reserved)) {
                return Ok(());
            }
            self.subject_budget.settle(most, Money::ZERO);
            let BudgetReservation::Exceeded { budget, spent, limit } = held? else { return Ok(()) };
            let paused = |delay| Unanswered::Wait { why: Waiting::Budget, delay, budget: Some(budget) };
            if spent + most > limit {
                return Err(paused(BUDGET_RETRY));
            }
            if Instant::now() >= deadline {
                return Err(paused(BUDGET_BUSY));
            }
            sleep(BUDGET_POLL).await;
        }
    }

    fn over_max_cost(&self) -> Unanswered {
        let limit = self.subject_budget.limit.unwrap_or_default();
        Unanswered::Permanent {
            code: "max_cost_reached",
            message: format!(
                "going on could cost more than its max_cost_usd of {limit}; what was found so far is kept, and what was \
                 paid for is not asked again"
            ),
            retryable: false,
        }
    }

    async fn reserve_in_repository(&self, most: Money) -> Result<BudgetReservation> {
        if most.is_zero()
            || !self.repository_budget.is_set(self.ai.databases(), self.billing.repository).await?
        {
            return Ok(BudgetReservation::Free);
        }
        let mut tx = self.ai.databases().begin_system().await?;
        let (limits, expires) = (&self.repository_budget.limits, self.ai.longest_call());
        let held =
            ai_calls::reserve(&mut tx, limits, self.billing.repository, self.id, most, expires).await?;
        tx.commit().await?;
        Ok(held)
    }

    /// A reservation that can't be ended now expires.
    async fn release_reservation(&self) {
        if !self.reserved.load(Ordering::Relaxed) {
            return;
        }
        if let Ok(mut conn) = self.ai.databases().acquire_system().await {
            drop(ai_calls::let_go(&mut conn, self.id).await);
        }
    }

    /// How many characters it sends, and the most it can cost.
    fn most(&self, chat: &Chat) -> (u64, Money) {
        let again = chat.again.iter().flat_map(|again| [&again.answer, &again.complaint]);
        let texts = chat.user.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text),
            Part::Image { .. } => None,
        });
        let (mut characters, mut tokens_in) = (0, OVERHEAD_TOKENS);
        for text in [&chat.system].into_iter().chain(texts).chain(again) {
            characters += count(text.chars().count());
            tokens_in += most_tokens(text);
        }
        let pictures = chat.user.iter().filter(|part| matches!(part, Part::Image { .. })).count();
        tokens_in += IMAGE_TOKENS * count(pictures);
        let usage = Usage { tokens_in, tokens_out: chat.max_tokens.into(), estimated: true };
        (characters, self.model.price(usage))
    }

    fn entry(&self, reply: &Reply, outcome: CallOutcome, characters: u64) -> ModelCall {
        ModelCall {
            id: self.id,
            repository: self.billing.repository,
            subject: self.billing.subject,
            job: self.billing.job,
            operation: self.operation,
            model: self.model.id().to_owned(),
            outcome,
            tokens_in: reply.usage.tokens_in,
            tokens_out: reply.usage.tokens_out,
            usd: self.model.price(reply.usage),
            latency_ms: u64::try_from(reply.latency.as_millis()).unwrap_or(u64::MAX),
            retries: reply.retries,
            characters,
        }
    }
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
