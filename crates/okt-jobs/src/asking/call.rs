//! One call of a model, from the money that is set aside for it to its line in the books.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use okt_extract::Question;
use okt_model::{
    CallId, CallOutcome, ContentHash, Error, JobId, ModelCall, Operation, RepositoryId, Result, SourceId,
    Waiting,
};
use okt_providers::ai::{AiError, Chat, End, Model, Part, Reply, Usage};
use okt_queue::JobContext;
use okt_store::ai_calls::{self, Hold};
use okt_store::model_answers::ModelAnswer;
use okt_store::{Databases, ai_turns};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use super::Unanswered;
use super::allowance::{Budget, Purse, Room};
use crate::Tools;
use crate::ledger::Written;

/// How long a call waits for money that is only set aside, for others' calls, before its job makes room for another.
const BUDGET_PATIENCE: Duration = Duration::from_secs(30);
const BUDGET_POLL: Duration = Duration::from_millis(250);
const BUDGET_BUSY: Duration = Duration::from_secs(15);
/// Whoever raises a budget wakes the jobs that wait for it; the next month does not.
pub(crate) const BUDGET_SPENT: Duration = Duration::from_mins(5);
const TURN_PAUSE: Duration = Duration::from_mins(1);
/// Who wants to be left alone, and not for any time, is left alone for a moment.
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
/// For what goes along with a question: its form, roles, the schema.
const AROUND: u64 = 1_000;
/// What no picture takes more than, whoever looks at it.
const PICTURE: u64 = 50_000;

pub(super) struct Call {
    id: CallId,
    tools: Tools,
    databases: Databases,
    database: String,
    repository: RepositoryId,
    job: JobId,
    source: SourceId,
    model: Model,
    operation: Operation,
    key: ContentHash,
    purse: Arc<Purse>,
    budget: Arc<Budget>,
    /// Whether money was set aside for it.
    held: AtomicBool,
    /// Why it may not be made.
    refused: Mutex<Option<Unanswered>>,
}

impl Call {
    #[expect(clippy::too_many_arguments, reason = "what a call has to outlive its job with")]
    pub(super) fn new(
        ctx: &JobContext,
        tools: &Tools,
        model: &Model,
        source: SourceId,
        operation: Operation,
        question: &Question,
        purse: Arc<Purse>,
        budget: Arc<Budget>,
    ) -> Self {
        Self {
            id: CallId::mint(),
            tools: tools.clone(),
            databases: ctx.databases().clone(),
            database: ctx.database().to_owned(),
            repository: ctx.repository(),
            job: ctx.id(),
            source,
            model: model.clone(),
            operation,
            key: question.key(model.id()),
            purse,
            budget,
            held: AtomicBool::new(false),
            refused: Mutex::default(),
        }
    }

    /// Asks, hands over the reply, hears what came of it, and writes it down. When nobody is there any more, the answer is
    /// kept for whoever asks next.
    pub(super) async fn run(
        self,
        chat: Chat,
        reply: oneshot::Sender<Result<Reply, Unanswered>>,
        judged: oneshot::Receiver<CallOutcome>,
    ) -> Result<()> {
        let (characters, most) = self.most(&chat);
        let turn = || self.turn(most, &reply);
        let ended = self.model.chat(&chat, turn).await;
        let spent = ended.as_ref().map_or(0.0, |reply| self.model.price(reply.usage));
        if self.held.load(Ordering::Relaxed) {
            self.purse.settle(most, spent);
        }
        let mut answered = match ended {
            Ok(answered) => answered,
            Err(error) => {
                self.let_go().await;
                let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner).take();
                drop(reply.send(Err(refused.unwrap_or_else(|| explained(error)))));
                return Ok(());
            }
        };
        // PostgreSQL has no place for it, and JSON has no use for it.
        answered.text.retain(|character| character != '\0');
        let kept = answered.clone();
        drop(reply.send(Ok(answered)));
        let outcome = judged.await.unwrap_or(CallOutcome::Unread);
        let call = self.entry(&kept, outcome, characters);
        let worth_keeping = match outcome {
            CallOutcome::Ok => true,
            CallOutcome::Unread => kept.end == End::Stop,
            CallOutcome::Misfit | CallOutcome::Truncated | CallOutcome::Filtered => false,
        };
        let written = if worth_keeping {
            Written::Answer(ModelAnswer { key: self.key, answer: kept.text, call })
        } else {
            Written::Call(call)
        };
        self.tools.ledger().write(&self.databases, &self.database, self.repository, written).await
    }

    /// Before every request: is anybody still waiting, is there money, is it our turn?
    async fn turn(&self, most: f64, waiting: &oneshot::Sender<Result<Reply, Unanswered>>) -> Result<()> {
        if waiting.is_closed() {
            return Err(Error::Overloaded("nobody waits for the answer any more"));
        }
        if !self.held.load(Ordering::Relaxed) {
            if let Err(refused) = self.hold_back(most).await {
                *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(refused);
                return Err(Error::Overloaded("there is no money for the call"));
            }
            self.held.store(true, Ordering::Relaxed);
        }
        let longest = self.tools.config().providers.ai.rate_limit_wait_timeout.duration();
        take_turn(&self.databases, &self.model, longest).await
    }

    /// Sets aside what the call may cost, from what the source and the repository may spend.
    async fn hold_back(&self, usd: f64) -> Result<(), Unanswered> {
        let deadline = Instant::now() + BUDGET_PATIENCE;
        loop {
            match self.purse.take(usd) {
                Room::There => {}
                // Those who hold it are calls of the same job.
                Room::Later => {
                    sleep(BUDGET_POLL).await;
                    continue;
                }
                Room::Never => return Err(self.too_dear()),
            }
            let held = self.hold(usd).await;
            if matches!(held, Ok(Hold::Free | Hold::Held)) {
                return Ok(());
            }
            self.purse.settle(usd, 0.0);
            if let Hold::Exceeded { spent, limit } = held?
                && spent + usd > limit
            {
                return Err(Unanswered::Pause { why: Waiting::Budget, delay: BUDGET_SPENT });
            }
            if Instant::now() >= deadline {
                return Err(Unanswered::Pause { why: Waiting::Budget, delay: BUDGET_BUSY });
            }
            sleep(BUDGET_POLL).await;
        }
    }

    fn too_dear(&self) -> Unanswered {
        let limit = self.purse.limit.unwrap_or_default();
        Unanswered::Hopeless {
            code: "max_cost_reached",
            message: format!(
                "going on could cost more than its max_cost_usd of {limit}; what was found so far is kept, and what was \
                 paid for is not asked again"
            ),
            retryable: false,
        }
    }

    async fn hold(&self, usd: f64) -> Result<Hold> {
        if usd <= 0.0 || !self.budget.is_set(&self.databases, self.repository).await? {
            return Ok(Hold::Free);
        }
        let mut tx = self.databases.begin_system().await?;
        let held = ai_calls::hold(&mut tx, self.repository, self.id, usd, self.tools.longest_call()).await?;
        tx.commit().await?;
        Ok(held)
    }

    /// What can't be given back now is given back by time.
    async fn let_go(&self) {
        if !self.held.load(Ordering::Relaxed) {
            return;
        }
        if let Ok(mut conn) = self.databases.acquire_system().await
            && ai_calls::let_go(&mut conn, self.id).await.is_ok()
        {
            conn.done();
        }
    }

    /// How many characters it sends, and the most it can cost.
    fn most(&self, chat: &Chat) -> (u64, f64) {
        let again = chat.again.iter().flat_map(|again| [&again.answer, &again.complaint]);
        let texts = chat.user.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text),
            Part::Image { .. } => None,
        });
        let (mut characters, mut tokens_in) = (0, AROUND);
        for text in [&chat.system].into_iter().chain(texts).chain(again) {
            characters += count(text.chars().count());
            tokens_in += most_tokens(text);
        }
        let pictures = chat.user.iter().filter(|part| matches!(part, Part::Image { .. })).count();
        tokens_in += PICTURE * count(pictures);
        let usage = Usage { tokens_in, tokens_out: chat.max_tokens.into(), estimated: true };
        (characters, self.model.price(usage))
    }

    fn entry(&self, reply: &Reply, outcome: CallOutcome, characters: u64) -> ModelCall {
        ModelCall {
            id: self.id,
            repository: self.repository,
            source: Some(self.source),
            job: self.job,
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

/// More than any tokenizer makes of a text: half of its letters where it is ASCII, and every byte where it is not.
pub(crate) fn most_tokens(text: &str) -> u64 {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    count(ascii / 2 + (text.len() - ascii))
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// Waits for the next turn of a model that allows so many calls in a minute, all processes together.
pub(crate) async fn take_turn(databases: &Databases, model: &Model, longest: Duration) -> Result<()> {
    let per_minute = model.rate_limit_rpm();
    if per_minute == 0 {
        return Ok(());
    }
    let mut conn = databases.acquire_system().await?;
    let wait = ai_turns::take(&mut conn, model.id(), per_minute, longest).await?;
    conn.done();
    match wait {
        Some(wait) => {
            sleep(wait).await;
            Ok(())
        }
        None => Err(Error::Overloaded(NO_TURN)),
    }
}

const NO_TURN: &str = "the model has no turn within providers.ai.rate_limit_wait_timeout";

pub(crate) fn explained(error: AiError) -> Unanswered {
    match error {
        AiError::Turn(Error::Overloaded(NO_TURN)) => {
            Unanswered::Pause { why: Waiting::RateLimit, delay: TURN_PAUSE }
        }
        AiError::RateLimited { retry_after, .. } => {
            let delay = retry_after.unwrap_or(TURN_PAUSE).max(SHORTEST_PAUSE);
            Unanswered::Pause { why: Waiting::RateLimit, delay }
        }
        AiError::Refused { status: 400 | 413 | 422, .. } => {
            Unanswered::Useless { code: "refused", message: error.to_string() }
        }
        AiError::Refused { .. } | AiError::NotConfigured(_) => Unanswered::Hopeless {
            code: "model_refused",
            message: error.to_string(),
            // Once somebody has put it right.
            retryable: true,
        },
        error => Unanswered::Later(error.into()),
    }
}
