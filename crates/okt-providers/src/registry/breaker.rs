//! Keeps requests away from a registry that has just failed. After a while one is let through, and the others wait for nothing
//! until it is known how that one went.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How long nobody asks after a failure.
pub(super) const REST: Duration = Duration::from_mins(1);

#[derive(Default)]
pub(super) struct Breaker(Mutex<State>);

#[derive(Clone, Copy, Default)]
enum State {
    #[default]
    Closed,
    /// Until then.
    Open(Instant),
    /// One request finds out; should it never end, the next one does after that.
    Trying(Instant),
}

/// Who was let through says how it went.
pub(super) struct Turn<'a>(&'a Breaker);

impl Breaker {
    /// `None` while it is better not to ask; `longest` is how long a request may take.
    pub(super) fn enter(&self, longest: Duration) -> Option<Turn<'_>> {
        self.enter_at(Instant::now(), longest)
    }

    fn enter_at(&self, now: Instant, longest: Duration) -> Option<Turn<'_>> {
        let mut state = self.state();
        match *state {
            State::Closed => Some(Turn(self)),
            State::Open(until) | State::Trying(until) if now < until => None,
            State::Open(_) | State::Trying(_) => {
                *state = State::Trying(now + longest);
                Some(Turn(self))
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn<'_> {
    pub(super) fn end(self, well: bool) {
        self.end_at(Instant::now(), well);
    }

    fn end_at(self, now: Instant, well: bool) {
        let mut state = self.0.state();
        match *state {
            // One that began before it was opened knows nothing new.
            State::Open(until) if well && now < until => {}
            _ if well => *state = State::Closed,
            _ => *state = State::Open(now + REST),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: Duration = Duration::from_secs(15);

    #[test]
    fn after_a_failure_nobody_asks_for_a_while_and_then_one_does() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        let enter = |now| breaker.enter_at(now, LONGEST);
        let (one, other) = (enter(now).unwrap(), enter(now).unwrap());
        one.end_at(now, false);
        assert!(enter(now).is_none());
        other.end_at(now, true);
        assert!(enter(now).is_none(), "an earlier one says nothing about now");
        let later = now + REST;
        let trying = enter(later).unwrap();
        assert!(enter(later).is_none(), "one is enough to find out");
        trying.end_at(later, false);
        assert!(enter(later).is_none());
        let later = later + REST;
        enter(later).unwrap().end_at(later, true);
        assert!(enter(later).is_some() && enter(later).is_some());
    }

    #[test]
    fn one_that_never_ends_keeps_nobody_away_for_good() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        let enter = |now| breaker.enter_at(now, LONGEST);
        enter(now).unwrap().end_at(now, false);
        assert!(enter(now + REST).is_some());
        assert!(enter(now + REST).is_none());
        assert!(enter(now + REST + LONGEST).is_some());
    }
}
