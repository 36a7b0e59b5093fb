//! Token buckets per key. Each process counts for itself: N processes behind a balancer let N times as much through.

use std::hash::Hash;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};
use http::{HeaderMap, HeaderValue};

use crate::problem::{Code, Problem};

/// A limit per time and key; `None` inside when it is switched off.
pub struct Limit<K: Hash + Eq + Clone> {
    limiter: Option<RateLimiter<K, DashMapStateStore<K>, DefaultClock, StateInformationMiddleware>>,
    limit: u32,
}

/// What the bucket said, for the `RateLimit-*` headers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    limit: u32,
    remaining: u32,
    /// Seconds until the next request fits; 0 when one fits now.
    pub(crate) wait: u64,
}

impl<K: Hash + Eq + Clone> Limit<K> {
    pub fn per_minute(limit: u32) -> Self {
        Self::of(limit, Quota::per_minute)
    }

    pub fn per_hour(limit: u32) -> Self {
        Self::of(limit, Quota::per_hour)
    }

    fn of(limit: u32, quota: impl Fn(NonZeroU32) -> Quota) -> Self {
        let limiter =
            NonZeroU32::new(limit).map(|limit| RateLimiter::dashmap(quota(limit)).with_middleware());
        Self { limiter, limit }
    }

    /// Takes one token of `key`, or refuses.
    pub fn check(&self, key: &K) -> Result<(), Problem> {
        self.take(key).map(|_| ()).map_err(too_many)
    }

    /// Takes one token of `key`; `Err` when there is none.
    pub(crate) fn take(&self, key: &K) -> Result<Option<Allowance>, Allowance> {
        let Some(limiter) = &self.limiter else { return Ok(None) };
        match limiter.check_key(key) {
            Ok(state) => Ok(Some(Allowance {
                limit: self.limit,
                remaining: state.remaining_burst_capacity(),
                wait: 0,
            })),
            Err(not_until) => {
                let wait = whole_seconds(not_until.wait_time_from(DefaultClock::default().now()));
                Err(Allowance { limit: self.limit, remaining: 0, wait })
            }
        }
    }

    /// Forgets keys that have their whole allowance back, so that memory follows the active callers.
    pub fn forget_idle(&self) {
        if let Some(limiter) = &self.limiter {
            limiter.retain_recent();
            limiter.shrink_to_fit();
        }
    }
}

impl Allowance {
    /// The one of which less is left.
    pub(crate) const fn tighter(self, other: Self) -> Self {
        if other.remaining < self.remaining { other } else { self }
    }

    pub(crate) fn write(self, headers: &mut HeaderMap) {
        headers.insert("ratelimit-limit", HeaderValue::from(self.limit));
        headers.insert("ratelimit-remaining", HeaderValue::from(self.remaining));
        headers.insert("ratelimit-reset", HeaderValue::from(self.wait));
    }
}

pub(crate) fn too_many(exhausted: Allowance) -> Problem {
    Problem::new(Code::RateLimited, "this caller sends too many requests").limited(exhausted)
}

fn whole_seconds(wait: Duration) -> u64 {
    (wait + Duration::from_millis(999)).as_secs().max(1)
}
