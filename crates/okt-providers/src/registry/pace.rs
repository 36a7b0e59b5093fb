//! Keeps requests back while a registry wants none: it has said when to come again, and all who ask share what it grants.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Where it does not say when.
pub(super) const UNSAID: Duration = Duration::from_secs(30);
/// Longer is a quota of something, and no reason to ask for nothing else.
const LONGEST: Duration = Duration::from_mins(2);
/// Whoever wants no pushes for longer is asked again by then: a quota may have been raised.
const LONGEST_OF_PUSHES: Duration = Duration::from_hours(3);

#[derive(Default)]
pub(super) struct Pace(Mutex<Option<Instant>>);

impl Pace {
    /// How long it wants no requests yet.
    pub(super) fn left(&self) -> Option<Duration> {
        self.left_at(Instant::now())
    }

    pub(super) fn hold(&self, after: Duration) {
        self.hold_at(Instant::now(), after);
    }

    /// Of pushes alone: a quota of them is a reason.
    pub(super) fn hold_pushes(&self, after: Duration) {
        self.hold_pushes_at(Instant::now(), after);
    }

    fn left_at(&self, now: Instant) -> Option<Duration> {
        self.until().map(|until| until.saturating_duration_since(now)).filter(|left| !left.is_zero())
    }

    fn hold_at(&self, now: Instant, after: Duration) {
        if after <= LONGEST {
            self.extend(now + after);
        }
    }

    fn hold_pushes_at(&self, now: Instant, after: Duration) {
        self.extend(now + after.min(LONGEST_OF_PUSHES));
    }

    fn extend(&self, to: Instant) {
        let mut until = self.until();
        *until = (*until).max(Some(to));
    }

    fn until(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_asks_before_the_time_that_the_registry_named() {
        let (pace, now) = (Pace::default(), Instant::now());
        let second = Duration::from_secs(1);
        assert_eq!(pace.left_at(now), None);
        pace.hold_at(now, 3 * second);
        pace.hold_at(now, second);
        assert_eq!(pace.left_at(now + second), Some(2 * second));
        assert_eq!(pace.left_at(now + 3 * second), None);
        pace.hold_at(now, Duration::from_hours(1));
        assert_eq!(pace.left_at(now + 3 * second), None, "a quota of pushes says nothing of searches");
    }

    #[test]
    fn a_quota_keeps_pushes_back_and_not_for_days() {
        let (pace, now) = (Pace::default(), Instant::now());
        let hour = Duration::from_hours(1);
        pace.hold_pushes_at(now, hour);
        assert_eq!(pace.left_at(now), Some(hour));
        pace.hold_pushes_at(now, 100 * hour);
        assert_eq!(pace.left_at(now), Some(LONGEST_OF_PUSHES));
    }
}
