//! What may be spent: on a subject, and by a repository.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use okt_model::{BudgetOf, Money, Progress, RepositoryId, Result, SpendingLimits};
use okt_store::{Databases, ai_calls, repository_settings};
use tokio::time::Instant;

use crate::{Ai, Billing};

/// How long it may go unnoticed that a repository has a budget now.
const AGE: Duration = Duration::from_secs(5);
/// When a job that waits for a budget looks again. Whoever raises a budget wakes the jobs that wait for it; the next month
/// does not.
pub const BUDGET_RETRY: Duration = Duration::from_mins(5);

/// How long a call waits for money that is only reserved, for others' calls, before its caller makes room for another.
pub(crate) const BUDGET_PATIENCE: Duration = Duration::from_secs(30);
pub(crate) const BUDGET_POLL: Duration = Duration::from_millis(250);
pub(crate) const BUDGET_BUSY: Duration = Duration::from_secs(15);

/// What may be spent on one subject.
pub struct SubjectBudget {
    pub(crate) limit: Option<Money>,
    /// What was spent, and what is reserved for calls in flight.
    state: Mutex<(Money, Money)>,
}

/// What came of an attempt to reserve money.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Headroom {
    Granted,
    /// Not yet: open reservations may turn out larger than their calls cost.
    Wait,
    Exceeded,
}

impl SubjectBudget {
    /// What the subject has cost so far counts.
    pub async fn open(ai: &Ai, billing: &Billing, limit: Option<Money>) -> Result<Self> {
        let spent = match (limit, billing.subject) {
            (Some(_), Some(subject)) => {
                let mut conn = ai.databases().acquire_system().await?;
                let cost = ai_calls::cost_of(&mut conn, billing.repository, subject).await?;
                cost.usd
            }
            _ => Money::ZERO,
        };
        Ok(Self::new(limit, spent))
    }

    pub const fn unlimited() -> Self {
        Self::new(None, Money::ZERO)
    }

    /// `limit` is the most that may be spent, `spent` what has been.
    const fn new(limit: Option<Money>, spent: Money) -> Self {
        Self { limit, state: Mutex::new((spent, Money::ZERO)) }
    }

    /// Reserves an amount, if the limit allows it.
    pub(crate) fn reserve(&self, most: Money) -> Headroom {
        let mut state = self.state();
        let (spent, reserved) = *state;
        if self.limit.is_none_or(|limit| spent + reserved + most <= limit) {
            state.1 += most;
            Headroom::Granted
        } else if self.limit.is_none_or(|limit| spent + most <= limit) {
            Headroom::Wait
        } else {
            Headroom::Exceeded
        }
    }

    /// Ends a reservation: so much of it was spent.
    pub(crate) fn settle(&self, reserved: Money, spent: Money) {
        let mut state = self.state();
        state.0 += spent;
        state.1 -= reserved;
    }

    fn state(&self) -> std::sync::MutexGuard<'_, (Money, Money)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether there is a budget to keep, as it was a moment ago: where there is none, nothing has to be reserved.
pub struct RepositoryBudget {
    pub(crate) limits: SpendingLimits,
    /// Whether the repository has one.
    known: Mutex<(Instant, bool)>,
}

impl RepositoryBudget {
    /// As it is now.
    pub async fn open(ai: &Ai, repository: RepositoryId) -> Result<Self> {
        let now = Instant::now();
        Ok(Self::new(ai.spending_limits(), now, has_budget(ai.databases(), repository).await?))
    }

    /// What the operator says, and whether the repository has one of its own, as it was read at that time.
    pub const fn new(limits: SpendingLimits, at: Instant, own: bool) -> Self {
        Self { limits, known: Mutex::new((at, own)) }
    }

    pub(crate) async fn is_set(&self, databases: &Databases, repository: RepositoryId) -> Result<bool> {
        if self.limits != SpendingLimits::default() {
            return Ok(true);
        }
        let (before, now) = {
            let mut known = self.known();
            if known.0.elapsed() < AGE {
                return Ok(known.1);
            }
            // One asks; the others, who hold places of a model, go on with what was known.
            let now = Instant::now();
            (std::mem::replace(&mut known.0, now), now)
        };
        let set = has_budget(databases, repository).await;
        let mut known = self.known();
        if known.0 == now {
            // Who could not ask leaves it to the next one.
            *known = set.as_ref().map_or((before, known.1), |set| (now, *set));
        }
        set
    }

    fn known(&self) -> MutexGuard<'_, (Instant, bool)> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn has_budget(databases: &Databases, repository: RepositoryId) -> Result<bool> {
    let mut conn = databases.acquire_system().await?;
    let settings = repository_settings::find(&mut conn, repository).await?;
    Ok(settings.is_some_and(|settings| settings.monthly_usd.is_some()))
}

/// What a job shows that can't go on before a budget is raised or the month is over.
pub fn waiting_for_budget(stage: &str, done: u64, budget: BudgetOf) -> Progress {
    let message = match budget {
        BudgetOf::Repository => {
            "the repository has spent what it may this month; its administrators can raise its budget"
        }
        BudgetOf::Installation => {
            "the installation has spent what it may this month; its operator can raise providers.ai.monthly_usd"
        }
    };
    Progress { stage: stage.to_owned(), done, total: None, message: Some(message.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_stay_within_the_limit() {
        let usd = |usd: f64| Money::from_usd(usd).unwrap();
        let budget = SubjectBudget::new(Some(usd(1.0)), usd(0.25));
        assert_eq!((budget.reserve(usd(0.5)), budget.reserve(usd(0.5))), (Headroom::Granted, Headroom::Wait));
        budget.settle(usd(0.5), usd(0.125));
        assert_eq!(budget.reserve(usd(0.5)), Headroom::Granted);
        budget.settle(usd(0.5), usd(0.5));
        assert_eq!(budget.reserve(usd(0.25)), Headroom::Exceeded, "0.875 of 1 is spent");
        let open = SubjectBudget::new(None, Money::MOST);
        assert_eq!(open.reserve(Money::MOST), Headroom::Granted);
    }
}
