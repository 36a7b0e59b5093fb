//! Good manners: how many requests one host sees of us, and how quickly one follows the other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until};
use url::Url;

/// Every host that is busy, or was a moment ago.
pub(super) struct Hosts {
    at_once: usize,
    delay: Duration,
    known: Mutex<Known>,
}

struct Known {
    hosts: HashMap<String, Arc<Host>>,
    /// How many there may be before those that rest are forgotten.
    room: usize,
}

struct Host {
    free: Arc<Semaphore>,
    next: Mutex<Instant>,
}

/// The right to ask a host something, until it is dropped.
pub(super) struct Turn {
    _permit: Option<OwnedSemaphorePermit>,
}

const LEAST_ROOM: usize = 64;

impl Hosts {
    pub(super) fn new(at_once: u32, delay: Duration) -> Self {
        Self {
            at_once: usize::try_from(at_once).unwrap_or(usize::MAX).clamp(1, Semaphore::MAX_PERMITS),
            delay,
            known: Mutex::new(Known { hosts: HashMap::new(), room: LEAST_ROOM }),
        }
    }

    /// Waits until the host of `url` may be asked. The next one waits for `gap` from now on, or for the delay of the
    /// settings where that is longer.
    pub(super) async fn turn(&self, url: &Url, gap: Duration) -> Turn {
        let host = self.host(url.host_str().unwrap_or_default());
        let permit = Arc::clone(&host.free).acquire_owned().await.ok();
        let now = Instant::now();
        let start = {
            let mut next = host.next.lock().unwrap_or_else(PoisonError::into_inner);
            let start = now.max(*next);
            *next = start + gap.max(self.delay);
            start
        };
        // Timers are a millisecond late.
        if start > now {
            sleep_until(start).await;
        }
        Turn { _permit: permit }
    }

    fn host(&self, name: &str) -> Arc<Host> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(host) = known.hosts.get(name) {
            return Arc::clone(host);
        }
        let now = Instant::now();
        if known.hosts.len() >= known.room {
            known.hosts.retain(|_, host| !self.rests(host, now));
            known.room = LEAST_ROOM.max(known.hosts.len() * 2);
        }
        let host = Arc::new(Host { free: Arc::new(Semaphore::new(self.at_once)), next: Mutex::new(now) });
        known.hosts.insert(name.to_owned(), Arc::clone(&host));
        host
    }

    /// Whether nothing would be different if it were forgotten.
    fn rests(&self, host: &Arc<Host>, now: Instant) -> bool {
        Arc::strong_count(host) == 1
            && host.free.available_permits() == self.at_once
            && *host.next.lock().unwrap_or_else(PoisonError::into_inner) <= now
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    const NONE: Duration = Duration::ZERO;

    fn url(host: usize) -> Url {
        format!("https://h{host}.test/").parse().unwrap()
    }

    #[tokio::test]
    async fn a_host_has_so_many_requests_at_once_and_another_has_its_own() {
        let hosts = Hosts::new(2, NONE);
        let held = [hosts.turn(&url(1), NONE).await, hosts.turn(&url(1), NONE).await];
        let same = url(1);
        let mut third = pin!(hosts.turn(&same, NONE));
        assert!(third.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        hosts.turn(&url(2), NONE).await;
        drop(held);
        third.await;
    }

    #[tokio::test]
    async fn requests_to_a_host_keep_their_distance() {
        let hosts = Hosts::new(4, Duration::from_millis(20));
        let began = Instant::now();
        for gap in [0, 50, 10, 0] {
            drop(hosts.turn(&url(1), Duration::from_millis(gap)).await);
        }
        assert!(began.elapsed() >= Duration::from_millis(20 + 50 + 20), "{:?}", began.elapsed());
    }

    #[tokio::test]
    async fn hosts_that_rest_are_forgotten_and_busy_ones_are_not() {
        let hosts = Hosts::new(1, NONE);
        let busy = hosts.turn(&url(0), NONE).await;
        drop(hosts.turn(&url(1), Duration::from_hours(1)).await);
        for host in 2..10_000 {
            drop(hosts.turn(&url(host), NONE).await);
        }
        let known = hosts.known.lock().unwrap();
        assert!(known.hosts.len() <= LEAST_ROOM, "{}", known.hosts.len());
        assert!(known.hosts.contains_key("h0.test") && known.hosts.contains_key("h1.test"));
        drop(busy);
    }
}
