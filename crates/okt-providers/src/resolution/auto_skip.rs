//! Leaving out a provider that keeps failing for a host.

use std::time::Duration;

use okt_config::AutoSkip;

/// For how much longer a provider is left out for a host; `None` when it is asked.
///
/// `total` and `failures` count the attempts of the pair for which [`Attempt::failed`](super::Attempt::failed) is `Some`
/// and `Some(true)`; `since_last` is the time since the last failure. When the cooldown is over the provider is asked
/// again: one more failure leaves it out for another cooldown, and as long as it succeeds it stays.
pub fn skipped_for(settings: &AutoSkip, total: u64, failures: u64, since_last: Duration) -> Option<Duration> {
    if !settings.enabled || total < u64::from(settings.min_sample) {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "a share of what a table can hold")]
    let share = failures as f64 / total as f64;
    if share < settings.failure_threshold {
        return None;
    }
    settings.cooldown.duration().checked_sub(since_last).filter(|left| !left.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_left_out_when_enough_of_enough_attempts_failed_and_only_for_a_while() {
        const HOUR: Duration = Duration::from_hours(1);
        let mut settings = okt_config::Config::default().providers.resolution.auto_skip;
        for (total, failures, hours, left) in [
            (0, 0, 0, None),
            (99, 99, 0, None),
            (100, 84, 0, None),
            (100, 85, 0, Some(24)),
            (100, 100, 1, Some(23)),
            (100, 100, 24, None),
            (100, 100, 25, None),
        ] {
            let left_out = skipped_for(&settings, total, failures, HOUR * hours);
            assert_eq!(
                left_out,
                left.map(|left: u32| HOUR * left),
                "{failures} of {total} after {hours} hours"
            );
        }
        settings.enabled = false;
        assert_eq!(skipped_for(&settings, 1_000, 1_000, Duration::ZERO), None);
    }
}
