//! Token buckets per key. Each process counts for itself: N processes behind a balancer let N times as much through.

use std::hash::Hash;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};
use http::{HeaderMap, HeaderValue};

/// A limit per minute and key; `None` inside when it is switched off.
pub(crate) struct PerMinute<K: Hash + Eq + Clone> {
    limiter: Option<RateLimiter<K, DashMapStateStore<K>, DefaultClock, StateInformationMiddleware>>,
    limit: u32,
}

/// What the bucket said, for the `RateLimit-*` headers.
#[derive(Clone, Copy)]
pub(crate) struct Allowance {
    limit: u32,
    remaining: u32,
    /// Seconds until the next request fits; 0 when one fits now.
    pub(crate) wait: u64,
}

impl<K: Hash + Eq + Clone> PerMinute<K> {
    pub(crate) fn new(limit: u32) -> Self {
        let limiter = NonZeroU32::new(limit)
            .map(|per_minute| RateLimiter::dashmap(Quota::per_minute(per_minute)).with_middleware());
        Self { limiter, limit }
    }

    /// Takes one token of `key`; `Err` when there is none.
    pub(crate) fn take(&self, key: &K) -> Result<Option<Allowance>, Allowance> {
        let Some(limiter) = &self.limiter else {
            return Ok(None);
        };
        match limiter.check_key(key) {
            Ok(state) => Ok(Some(Allowance {
                limit: self.limit,
                remaining: state.remaining_burst_capacity(),
                wait: 0,
            })),
            Err(not_until) => {
                let wait = not_until.wait_time_from(DefaultClock::default().now());
                let wait = (wait + Duration::from_millis(999)).as_secs().max(1);
                Err(Allowance { limit: self.limit, remaining: 0, wait })
            }
        }
    }

    /// Forgets keys that have their whole allowance back, so that memory follows the active callers.
    pub(crate) fn forget_idle(&self) {
        if let Some(limiter) = &self.limiter {
            limiter.retain_recent();
            limiter.shrink_to_fit();
        }
    }
}

impl Allowance {
    pub(crate) fn write(self, headers: &mut HeaderMap) {
        headers.insert("ratelimit-limit", HeaderValue::from(self.limit));
        headers.insert("ratelimit-remaining", HeaderValue::from(self.remaining));
        headers.insert("ratelimit-reset", HeaderValue::from(self.wait));
    }
}
