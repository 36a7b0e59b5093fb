//! Who has failed often is left alone for a while.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Spares questions the wait for what has failed often just before.
#[derive(Default)]
pub(super) struct Breaker(Mutex<Failures>);

#[derive(Default)]
struct Failures {
    count: u32,
    first: Option<Instant>,
    closed_until: Option<Instant>,
}

impl Breaker {
    const MOST: u32 = 5;
    const WITHIN: Duration = Duration::from_secs(10);
    const PAUSE: Duration = Duration::from_secs(5);

    pub fn lets_through(&self, now: Instant) -> bool {
        let failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        failures.closed_until.is_none_or(|until| now >= until)
    }

    pub fn succeeded(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Failures::default();
    }

    pub fn failed(&self, now: Instant) {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.first.is_none_or(|first| now.duration_since(first) > Self::WITHIN) {
            (failures.count, failures.first) = (0, Some(now));
        }
        failures.count += 1;
        // One that was let through after a pause tells enough.
        if failures.count >= Self::MOST || failures.closed_until.is_some() {
            failures.closed_until = Some(now + Self::PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_failed_often_is_not_asked_for_a_while() {
        let (breaker, start) = (Breaker::default(), Instant::now());
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        for second in 0..4 {
            breaker.failed(at(second));
        }
        assert!(breaker.lets_through(at(4)));
        breaker.failed(at(4));
        assert!(!breaker.lets_through(at(5)) && !breaker.lets_through(at(8)));
        assert!(breaker.lets_through(at(9)), "somebody tries again");
        breaker.failed(at(9));
        assert!(!breaker.lets_through(at(10)), "one failure after a pause is enough");
        breaker.succeeded();
        assert!(breaker.lets_through(at(10)));
        breaker.failed(at(11));
        assert!(breaker.lets_through(at(12)));
    }

    #[test]
    fn failures_long_ago_do_not_count() {
        let (breaker, start) = (Breaker::default(), Instant::now());
        for second in [0, 11, 22, 33, 44, 55] {
            breaker.failed(start + Duration::from_secs(second));
            assert!(breaker.lets_through(start + Duration::from_secs(second)));
        }
    }
}
