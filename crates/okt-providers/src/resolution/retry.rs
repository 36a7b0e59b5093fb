//! When a request is made again.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use okt_config::Retry;

use super::attempt::{Outcome, Trouble};

/// The requests of one provider so far.
pub(super) struct Tries<'a> {
    settings: &'a Retry,
    forbidden: u32,
    others: u32,
}

impl<'a> Tries<'a> {
    pub(super) const fn new(settings: &'a Retry) -> Self {
        Self { settings, forbidden: 0, others: 0 }
    }

    /// How long to wait before the next, if there is to be one after this trouble. A host that asks for more time than
    /// `max_delay` is left alone.
    pub(super) fn again(&mut self, trouble: &Trouble) -> Option<Duration> {
        let allowed = if (trouble.outcome, trouble.status) == (Outcome::Forbidden, Some(403)) {
            self.forbidden += 1;
            self.forbidden <= self.settings.retry_403_max_attempts
        } else {
            self.others += 1;
            trouble.again && self.others < self.settings.max_attempts
        };
        let longest = self.settings.max_delay.duration();
        let asked = trouble.retry_after.unwrap_or_default();
        if !allowed || asked > longest {
            return None;
        }
        Some(delay(self.settings, self.forbidden + self.others).max(asked))
    }
}

/// Doubled each time, and anything from half of that to all of it: who failed together does not come back together.
pub(super) fn delay(settings: &Retry, failures: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
    let longest = settings.max_delay.duration();
    let full = settings.base_delay.duration().saturating_mul(doubled).min(longest);
    // A fresh one has keys of its own, which is all the chance that is needed here.
    let chance = RandomState::new().hash_one(0_u8) % 1_000;
    full / 2 + full * u32::try_from(chance).unwrap_or_default() / 2_000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Retry {
        okt_config::Config::default().providers.resolution.fetch.retry
    }

    #[test]
    fn waits_are_doubled_up_to_the_longest_and_differ() {
        let settings = settings();
        for (failures, full) in [(1, 2), (2, 4), (3, 8), (4, 15), (40, 15)] {
            let waits: Vec<_> = (0..100).map(|_| delay(&settings, failures)).collect();
            let full = Duration::from_secs(full);
            assert!(waits.iter().all(|wait| (full / 2..=full).contains(wait)), "{failures}: {waits:?}");
            assert!(waits.iter().any(|wait| *wait != waits[0]));
        }
    }

    #[test]
    fn what_passes_is_tried_three_times_and_what_stays_once() {
        let settings = settings();
        let count = |trouble: &dyn Fn() -> Trouble| {
            let mut tries = Tries::new(&settings);
            1 + (0..100).take_while(|_| tries.again(&trouble()).is_some()).count()
        };
        let of = |outcome| move || Trouble::new(outcome, "");
        assert_eq!(count(&of(Outcome::ServerError)), 3);
        assert_eq!(count(&of(Outcome::TimedOut)), 3);
        assert_eq!(count(&of(Outcome::NotFound)), 1);
        assert_eq!(count(&|| of(Outcome::Challenge)().with_status(403)), 1);
        assert_eq!(count(&|| of(Outcome::Forbidden)().with_status(403)), 3);
        assert_eq!(count(&|| of(Outcome::Forbidden)().with_status(401)), 1);
        let asking = |seconds| {
            move || Trouble { retry_after: Some(Duration::from_secs(seconds)), ..of(Outcome::RateLimited)() }
        };
        assert_eq!(count(&asking(15)), 3);
        assert_eq!(count(&asking(16)), 1);
        let mut tries = Tries::new(&settings);
        assert_eq!(tries.again(&asking(14)()), Some(Duration::from_secs(14)));
    }
}
