//! How long to wait before the next attempt.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

const BASE: Duration = Duration::from_secs(5);
const CAP: Duration = Duration::from_hours(1);

/// Before the attempt after this one: anything up to five seconds doubled each time, an hour at most. Anything, because
/// what failed together would otherwise come back together.
pub(crate) fn delay(attempt: i32) -> Duration {
    ceiling(attempt).mul_f64(fraction())
}

/// A period within a tenth of this one, so that processes that started together do not stay in step.
pub(crate) fn about(period: Duration) -> Duration {
    period.mul_f64(0.9 + 0.2 * fraction())
}

fn ceiling(attempt: i32) -> Duration {
    let doublings = u32::try_from(attempt.saturating_sub(1)).unwrap_or(0).min(20);
    BASE.saturating_mul(1 << doublings).min(CAP)
}

/// From 0 to 1. Not for secrets: its only use is that two processes differ.
fn fraction() -> f64 {
    let random = RandomState::new().hash_one(0_u8) >> 32;
    f64::from(u32::try_from(random).unwrap_or(0)) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_grows_is_bounded_and_differs() {
        assert_eq!(ceiling(1), BASE);
        assert_eq!(ceiling(2), BASE * 2);
        for attempt in 1..200 {
            assert!(ceiling(attempt) <= ceiling(attempt + 1));
            assert!(ceiling(attempt) <= CAP);
            assert!(delay(attempt) <= ceiling(attempt));
        }
        assert_eq!(ceiling(i32::MAX), CAP);
        assert_eq!(ceiling(0), BASE);
        let delays: std::collections::HashSet<_> = (0..100).map(|_| delay(5)).collect();
        assert!(delays.len() > 90, "{delays:?}");
    }

    #[test]
    fn a_period_stays_within_a_tenth() {
        for _ in 0..1000 {
            let period = about(Duration::from_secs(10));
            assert!((Duration::from_secs(9)..=Duration::from_secs(11)).contains(&period), "{period:?}");
        }
    }
}
