//! What jobs have in common that ask a model about many parts of one thing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use okt_ai::{Asker, Billing, RepositoryBudget, SubjectBudget, Unanswered, waiting_for_budget};
use okt_extract::summaries::Attempt;
use okt_extract::{Misfit, Question};
use okt_model::{BudgetOf, ConceptId, Cost, Error, Operation, Result, Subject, SubjectKind, Waiting};
use okt_providers::ai::Model;
use okt_queue::{JobContext, JobError};

use crate::Tools;

/// Runs of a job after which a part that a model did not answer for is given up.
pub(crate) const RUNS: i32 = 4;
/// Parts in a row after which a model is taken to be away.
const SILENCE: u32 = 8;

/// How long parts are asked about, where some are not answered.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    /// Nothing more is asked.
    over: AtomicBool,
    /// Parts in a row that were not answered.
    silence: AtomicU32,
}

impl Patience {
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Takes in what came of a part.
    pub(crate) fn hear<T>(&self, ended: &Result<T, Unanswered>) {
        let silence = if matches!(ended, Err(Unanswered::Retryable(_))) {
            self.silence.fetch_add(1, Ordering::Relaxed) + 1
        } else {
            self.silence.store(0, Ordering::Relaxed);
            0
        };
        // Nobody there: with all its attempts each further part would take as long to say so.
        if silence >= SILENCE || matches!(ended, Err(Unanswered::Wait { .. } | Unanswered::Permanent { .. }))
        {
            self.over.store(true, Ordering::Relaxed);
        }
    }
}

/// Asks a model about a concept. Answers are kept under the question, so nobody pays twice.
pub(crate) struct AboutConcept<'a> {
    pub ctx: &'a JobContext,
    pub tools: &'a Tools,
    pub model: &'a Model,
    pub budget: &'a Arc<RepositoryBudget>,
    pub concept: ConceptId,
}

impl AboutConcept<'_> {
    /// Of the answer to a complaint, and of a kept one, whatever can be used is taken.
    pub(crate) async fn ask<T>(
        &self,
        operation: Operation,
        question: &Question,
        read: impl Fn(&str, Attempt) -> Result<T, Misfit>,
    ) -> Result<T, Unanswered> {
        let key = question.key(self.model.id());
        let billing = Billing {
            repository: self.ctx.repository(),
            database: self.ctx.database().to_owned(),
            subject: Some(Subject::new(SubjectKind::Concept, self.concept.uuid())),
            job: Some(self.ctx.id()),
        };
        let answered = self.tools.ai().answered(&billing, &[key]).await?;
        if let Some(Ok(value)) = answered.get(&key).map(|earlier| read(&earlier.answer, Attempt::Last)) {
            return Ok(value);
        }
        // Each reply costs something, so the second one is the answer to a complaint.
        let replies = AtomicU32::new(0);
        let on_cost = |cost: Cost| {
            replies.fetch_add(1, Ordering::Relaxed);
            self.ctx.spent(cost);
        };
        let budget = Arc::clone(self.budget);
        let asker = Asker::new(self.tools.ai(), billing, SubjectBudget::unlimited(), budget, &on_cost);
        let read = |answer: &str| {
            let again = replies.load(Ordering::Relaxed) > 1;
            read(answer, if again { Attempt::Last } else { Attempt::First })
        };
        let value = asker.ask(self.model, operation, question, None, read).await?;
        asker.stored().await?;
        Ok(value)
    }
}

/// Why nobody is asked again: a code, and what happened.
pub(crate) type GivenUp = (&'static str, String);

/// Why not everything was asked.
#[derive(Debug)]
pub(crate) enum Stopped {
    Wait { why: Waiting, delay: Duration, budget: Option<BudgetOf> },
    Retryable(Error),
    Permanent { code: &'static str, message: String, retryable: bool },
}

impl Stopped {
    /// Takes the place of a reason that is less grave.
    pub(crate) fn merge_into(self, other: &mut Option<Self>) {
        let gravity = |stopped: &Self| match stopped {
            Self::Retryable(_) => 0,
            Self::Wait { .. } => 1,
            Self::Permanent { .. } => 2,
        };
        if other.as_ref().is_none_or(|other| gravity(other) < gravity(&self)) {
            *other = Some(self);
        }
    }

    /// Runs the job again if that may help; otherwise why it is given up. `stage` and `done` say how far it came.
    pub(crate) fn or_again(self, ctx: &JobContext, stage: &str, done: u64) -> Result<GivenUp, JobError> {
        match self {
            Self::Wait { why, delay, budget } => {
                if let Some(budget) = budget {
                    ctx.progress(waiting_for_budget(stage, done, budget));
                }
                Err(JobError::Waits { why, delay })
            }
            // What can't pass would not pass in another run.
            Self::Retryable(error) if error.retryable() && ctx.attempt() < RUNS => Err(error.into()),
            Self::Retryable(error) => Ok(("unanswered", error.to_string())),
            Self::Permanent { code, message, .. } => Ok((code, message)),
        }
    }

    /// Keeps the gravest of several reasons. A part that was answered with nothing usable is no reason to stop: its code and
    /// message are handed back.
    pub(crate) fn keep(stopped: &mut Option<Self>, unanswered: Unanswered) -> Option<(&'static str, String)> {
        match unanswered {
            Unanswered::Unusable { code, message } => return Some((code, message)),
            Unanswered::Retryable(error) => drop(stopped.get_or_insert(Self::Retryable(error))),
            Unanswered::Wait { why, delay, budget } => {
                // It comes back by itself, so nothing else needs to be done about it.
                if !matches!(stopped, Some(Self::Permanent { .. })) {
                    *stopped = Some(Self::Wait { why, delay, budget });
                }
            }
            Unanswered::Permanent { code, message, retryable } => {
                *stopped = Some(Self::Permanent { code, message, retryable });
            }
        }
        None
    }
}
