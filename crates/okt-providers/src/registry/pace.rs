//! Keeps requests back while a registry wants none: it has said when to come again, and all who ask share what it grants.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Where it does not say when.
pub(super) const UNSAID: Duration = Duration::from_secs(30);
/// Longer is a quota of something, and no reason to ask for nothing else.
const LONGEST: Duration = Duration::from_mins(2);

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

    fn left_at(&self, now: Instant) -> Option<Duration> {
        self.until().map(|until| until.saturating_duration_since(now)).filter(|left| !left.is_zero())
    }

    fn hold_at(&self, now: Instant, after: Duration) {
        if after <= LONGEST {
            let mut until = self.until();
            *until = (*until).max(Some(now + after));
        }
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
}
