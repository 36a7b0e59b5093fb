//! Asks chat models about a subject: nothing is spent that may not be spent, and every answer is stored before it is used.
//! While one is being stored, the next question is out: a model does not wait for a disk.
//!
//! A call is a task of its own. When its caller is stopped, a request that is out is still waited for and its answer kept: it is
//! paid for.

use std::sync::{Arc, Mutex, PoisonError};

use okt_extract::{Misfit, Question};
use okt_model::{Cost, Error, Operation, Result};
use okt_providers::ai::{Chat, Model, Part, Reply};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::budget::{RepositoryBudget, SubjectBudget};
use crate::call::{Call, Ended};
use crate::dialogue::{Dialogue, Turn};
use crate::{Ai, Billing, Unanswered};

/// Told all that has come of an answer, each time that there is more, and an empty text when a request begins: it may be another
/// answer then.
pub type Heard = Arc<dyn Fn(&str) + Send + Sync>;

/// What all questions about a subject have in common.
pub struct Asker<'a> {
    ai: Ai,
    billing: Billing,
    subject_budget: Arc<SubjectBudget>,
    repository_budget: Arc<RepositoryBudget>,
    /// Told the cost of each answer as it comes.
    on_cost: &'a (dyn Fn(Cost) + Send + Sync),
    /// Answers that are being stored.
    storing: Mutex<Vec<JoinHandle<Result<()>>>>,
}

impl<'a> Asker<'a> {
    pub fn new(
        ai: &Ai,
        billing: Billing,
        subject_budget: impl Into<Arc<SubjectBudget>>,
        repository_budget: Arc<RepositoryBudget>,
        on_cost: &'a (dyn Fn(Cost) + Send + Sync),
    ) -> Self {
        Self {
            ai: ai.clone(),
            billing,
            subject_budget: subject_budget.into(),
            repository_budget,
            on_cost,
            storing: Mutex::default(),
        }
    }

    /// The answer of a model as `read` understands it. One that does not fit is complained about once. It may be used when
    /// [`Asker::stored`] has returned.
    pub async fn ask<T>(
        &self,
        model: &Model,
        operation: Operation,
        question: &Question,
        image: Option<Part>,
        read: impl Fn(&str) -> Result<T, Misfit>,
    ) -> Result<T, Unanswered> {
        self.ask_heard(model, operation, question, image, None, read).await
    }

    /// As [`Asker::ask`]; somebody is told what has come of the answer while it is written, see [`Heard`].
    pub async fn ask_heard<T>(
        &self,
        model: &Model,
        operation: Operation,
        question: &Question,
        image: Option<Part>,
        heard: Option<&Heard>,
        read: impl Fn(&str) -> Result<T, Misfit>,
    ) -> Result<T, Unanswered> {
        if self.billing.subject.is_none() {
            return Err(
                Error::internal("a chat call needs a billing subject to store its answer under").into()
            );
        }
        let mut dialogue = Dialogue::new(question, image);
        loop {
            let (reply, pending) =
                self.send(model, operation, question, dialogue.chat().clone(), heard).await?;
            let (ended, turn) = dialogue.take(&reply, &read);
            let storing = pending.end(ended);
            if let Turn::Done(value) = turn {
                self.storing.lock().unwrap_or_else(PoisonError::into_inner).push(storing);
                return Ok(value);
            }
            storing.await.map_err(Error::internal)??;
            if let Turn::Unusable { code, message } = turn {
                return Err(Unanswered::Unusable { code, message });
            }
        }
    }

    /// Returns when all that was answered is stored.
    pub async fn stored(&self) -> Result<()> {
        let storing = std::mem::take(&mut *self.storing.lock().unwrap_or_else(PoisonError::into_inner));
        for one in storing {
            one.await.map_err(Error::internal)??;
        }
        Ok(())
    }

    /// One call: its reply, and its entry.
    async fn send(
        &self,
        model: &Model,
        operation: Operation,
        question: &Question,
        chat: Chat,
        heard: Option<&Heard>,
    ) -> Result<(Reply, Pending), Unanswered> {
        let budgets = (Arc::clone(&self.subject_budget), Arc::clone(&self.repository_budget));
        let call = Call::new(&self.ai, self.billing.clone(), model, operation, question, budgets);
        let (reply, replied) = oneshot::channel();
        let (ended, told) = oneshot::channel();
        let storing = tokio::spawn(call.run(chat, heard.cloned(), reply, told));
        let reply = replied.await.map_err(Error::internal)??;
        let (tokens_in, tokens_out) = (reply.usage.tokens_in, reply.usage.tokens_out);
        (self.on_cost)(Cost { tokens_in, tokens_out, usd: model.price(reply.usage) });
        Ok((reply, Pending { ended, storing }))
    }
}

/// A call that was answered, whose entry waits for the outcome of the answer.
struct Pending {
    ended: oneshot::Sender<Ended>,
    storing: JoinHandle<Result<()>>,
}

impl Pending {
    /// Ends when the answer is stored.
    fn end(self, ended: Ended) -> JoinHandle<Result<()>> {
        // A receiver that is gone has stored it already.
        let _ = self.ended.send(ended);
        self.storing
    }
}
