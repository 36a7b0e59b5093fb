//! Asks a model about a source: nothing is spent that may not be spent, and every answer is written down before it is used.
//! While one is being written down, the next question is out: a model does not wait for a disk.
//!
//! A call is a task of its own. When its job is stopped, a request that is out is still waited for and its answer kept: it is
//! paid for.

mod allowance;
mod call;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use okt_extract::{Misfit, Question};
use okt_model::{CallOutcome, Cost, Error, Operation, Result, SourceId, Waiting};
use okt_providers::ai::{Again, Chat, End, Model, Part, Reply, Schema};
use okt_queue::JobContext;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use self::call::Call;
use crate::Tools;

pub(crate) use self::allowance::{Budget, Purse};
pub(crate) use self::call::{BUDGET_SPENT, explained, most_tokens, take_turn};

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// The model was asked and gave nothing that could be used.
    Useless { code: &'static str, message: String },
    /// Nothing would help but a change of the settings or of the source's limit.
    Hopeless { code: &'static str, message: String, retryable: bool },
    /// Not now.
    Pause { why: Waiting, delay: Duration },
    /// Another run may have more luck.
    Later(Error),
}

impl From<Error> for Unanswered {
    fn from(error: Error) -> Self {
        Self::Later(error)
    }
}

/// What everything that is asked about a source has in common.
pub(crate) struct Asker<'a> {
    ctx: &'a JobContext,
    tools: &'a Tools,
    source: SourceId,
    purse: Arc<Purse>,
    budget: Arc<Budget>,
    /// Answers that are being written down.
    writing: Mutex<Vec<JoinHandle<Result<()>>>>,
}

impl<'a> Asker<'a> {
    pub(crate) fn new(
        ctx: &'a JobContext,
        tools: &'a Tools,
        source: SourceId,
        purse: Purse,
        budget: Arc<Budget>,
    ) -> Self {
        Self { ctx, tools, source, purse: Arc::new(purse), budget, writing: Mutex::default() }
    }

    /// The answer of a model as `read` understands it. One that does not fit is complained about once. It may be used when
    /// [`Asker::written`] has come back.
    pub(crate) async fn ask<T>(
        &self,
        model: &Model,
        operation: Operation,
        question: &Question,
        image: Option<Part>,
        read: impl Fn(&str) -> Result<T, Misfit>,
    ) -> Result<T, Unanswered> {
        let mut user = vec![Part::Text(question.user.clone())];
        user.extend(image);
        let mut chat = Chat {
            system: question.system.clone(),
            user,
            again: None,
            schema: Some(Schema { name: "answer", schema: question.schema }),
            max_tokens: question.max_tokens,
        };
        for last in [false, true] {
            let (reply, told) = self.send(model, operation, question, chat.clone()).await?;
            let (outcome, complaint, value) = match (reply.end, read(&reply.text)) {
                (End::Stop, Ok(value)) => (CallOutcome::Ok, String::new(), Some(value)),
                (End::Stop, Err(misfit)) => (CallOutcome::Misfit, misfit.to_string(), None),
                (End::Length, _) => (CallOutcome::Truncated, "it was cut off".to_owned(), None),
                (End::Filtered, _) => {
                    (CallOutcome::Filtered, "the model did not want to answer".to_owned(), None)
                }
            };
            let writing = told.judged(outcome);
            if let Some(value) = value {
                self.writing.lock().unwrap_or_else(PoisonError::into_inner).push(writing);
                return Ok(value);
            }
            writing.await.map_err(Error::internal)??;
            if last || outcome == CallOutcome::Filtered {
                let message = format!("the model's answer could not be used: {complaint}");
                return Err(Unanswered::Useless { code: outcome.as_str(), message });
            }
            if outcome == CallOutcome::Truncated {
                chat.max_tokens = chat.max_tokens.saturating_mul(2);
            } else {
                chat.again = Some(Again { answer: reply.text, complaint });
            }
        }
        Err(Error::internal("a question was neither answered nor given up").into())
    }

    /// Comes back when all that was answered is written down.
    pub(crate) async fn written(&self) -> Result<()> {
        let writing = std::mem::take(&mut *self.writing.lock().unwrap_or_else(PoisonError::into_inner));
        for one in writing {
            one.await.map_err(Error::internal)??;
        }
        Ok(())
    }

    /// One call: its reply, and whom to tell what came of it.
    async fn send(
        &self,
        model: &Model,
        operation: Operation,
        question: &Question,
        chat: Chat,
    ) -> Result<(Reply, Told), Unanswered> {
        let (purse, budget) = (Arc::clone(&self.purse), Arc::clone(&self.budget));
        let call = Call::new(self.ctx, self.tools, model, self.source, operation, question, purse, budget);
        let (reply, replied) = oneshot::channel();
        let (verdict, judged) = oneshot::channel();
        let writing = tokio::spawn(call.run(chat, reply, judged));
        let reply = replied.await.map_err(Error::internal)??;
        let (tokens_in, tokens_out) = (reply.usage.tokens_in, reply.usage.tokens_out);
        self.ctx.spent(Cost { tokens_in, tokens_out, usd: model.price(reply.usage) });
        Ok((reply, Told { verdict, writing }))
    }
}

/// A call that was answered and waits to hear whether the answer is of use.
struct Told {
    verdict: oneshot::Sender<CallOutcome>,
    writing: JoinHandle<Result<()>>,
}

impl Told {
    /// What ends when it is written down.
    fn judged(self, outcome: CallOutcome) -> JoinHandle<Result<()>> {
        // Who is not there to hear it has written it down already.
        let _ = self.verdict.send(outcome);
        self.writing
    }
}
