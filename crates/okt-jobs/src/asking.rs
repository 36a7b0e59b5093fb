//! What jobs have in common that ask a model about many parts of one thing.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use okt_ai::Unanswered;
use okt_extract::summaries::Attempt;
use okt_model::{BudgetOf, Error, Waiting};

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

/// Counts the replies to one question, by what each of them cost: of the second one, whatever can be used is taken.
#[derive(Debug, Default)]
pub(crate) struct Replies(AtomicU32);

impl Replies {
    pub(crate) fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn attempt(&self) -> Attempt {
        if self.0.load(Ordering::Relaxed) > 1 { Attempt::Last } else { Attempt::First }
    }
}

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
