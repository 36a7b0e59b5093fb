//! Whether the databases answer.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use okt_pg::Why;
use sqlx::Connection;
use tokio::sync::Mutex;

use crate::databases::Slot;

/// How old an answer may be: a flood of probes asks no more often than this.
const AGE: Duration = Duration::from_millis(250);
pub(crate) const TIMEOUT: Duration = Duration::from_secs(2);

/// What one endpoint said.
#[derive(Clone, Debug)]
pub struct Probed {
    pub name: String,
    pub up: bool,
    /// Why it does not answer, in a few words that name no host, user or database; `None` when it does.
    pub trouble: Option<&'static str>,
    /// Whether nothing works without it. A tenant's own database that is away is that tenant's trouble.
    pub required: bool,
}

/// A connection per endpoint that is kept for asking, so that a busy pool does not look like a dead database, and the
/// last answers.
pub(crate) struct Probes {
    pools: BTreeMap<String, (Slot, bool)>,
    last: Mutex<Option<(Instant, Vec<Probed>)>>,
}

impl Probes {
    /// Pools by name, each with whether it is required.
    pub(crate) fn new(pools: BTreeMap<String, (Slot, bool)>) -> Self {
        Self { pools, last: Mutex::new(None) }
    }

    /// Asks everybody at the same time.
    pub(crate) async fn ask(&self) -> Vec<Probed> {
        let mut last = self.last.lock().await;
        if let Some((at, answers)) = &*last
            && at.elapsed() < AGE
        {
            return answers.clone();
        }
        let asked = self.pools.iter().map(|(name, (slot, required))| async {
            let why = match slot.get() {
                None => Some(Why::not_opened()),
                Some(pool) => {
                    let ping = async { pool.acquire().await?.ping().await };
                    match tokio::time::timeout(TIMEOUT, ping).await {
                        Ok(Ok(())) => None,
                        Ok(Err(error)) => Some(Why::of(&error, None)),
                        Err(_) => Some(Why::timed_out()),
                    }
                }
            };
            let trouble = why.as_ref().map(|why| why.brief);
            (Probed { name: name.clone(), up: trouble.is_none(), trouble, required: *required }, why)
        });
        let answers = futures_util::future::join_all(asked).await;
        let was_up = |name: &str| {
            let before =
                last.as_ref().and_then(|(_, before)| before.iter().find(|probed| probed.name == name));
            before.is_none_or(|probed| probed.up)
        };
        for (Probed { name, .. }, why) in &answers {
            // Once per change, because probes come every few seconds.
            match why {
                Some(cause) if was_up(name) => {
                    tracing::warn!(database = name, %cause, "the database does not answer");
                }
                None if !was_up(name) => tracing::info!(database = name, "the database answers again"),
                _ => {}
            }
        }
        let answers: Vec<_> = answers.into_iter().map(|(probed, _)| probed).collect();
        *last = Some((Instant::now(), answers.clone()));
        answers
    }

    pub(crate) async fn close(&self) {
        for pool in self.pools.values().filter_map(|(slot, _)| slot.get()) {
            pool.close().await;
        }
    }
}
