//! Whether the databases answer.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use sqlx::Connection;
use tokio::sync::Mutex;

use crate::pool::Pool;

/// How old an answer may be: a flood of probes asks no more often than this.
const AGE: Duration = Duration::from_millis(250);
const TIMEOUT: Duration = Duration::from_secs(2);

/// What one place said.
#[derive(Clone, Debug)]
pub struct Probed {
    pub name: String,
    pub up: bool,
    /// Whether nothing works without it. A tenant's own database that is away is that tenant's trouble.
    pub required: bool,
}

/// A connection per place that is kept for asking, so that a busy pool does not look like a dead database, and the
/// last answers.
pub(crate) struct Probes {
    pools: BTreeMap<String, (Pool, bool)>,
    last: Mutex<Option<(Instant, Vec<Probed>)>>,
}

impl Probes {
    /// Pools by name, each with whether it is required.
    pub(crate) fn new(pools: BTreeMap<String, (Pool, bool)>) -> Self {
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
        let asked = self.pools.iter().map(|(name, (pool, required))| async {
            let answered = tokio::time::timeout(TIMEOUT, async { pool.acquire().await?.ping().await }).await;
            let trouble = match answered {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(error.to_string()),
                Err(_) => Some("no answer in time".to_owned()),
            };
            (Probed { name: name.clone(), up: trouble.is_none(), required: *required }, trouble)
        });
        let answers = futures_util::future::join_all(asked).await;
        let was_up = |name: &str| {
            let before =
                last.as_ref().and_then(|(_, before)| before.iter().find(|probed| probed.name == name));
            before.is_none_or(|probed| probed.up)
        };
        for (Probed { name, up, .. }, trouble) in &answers {
            // Once per change, because probes come every few seconds.
            match trouble {
                Some(cause) if was_up(name) => {
                    tracing::warn!(database = name, cause, "the database does not answer");
                }
                None if !was_up(name) => tracing::info!(database = name, up, "the database answers again"),
                _ => {}
            }
        }
        let answers: Vec<_> = answers.into_iter().map(|(probed, _)| probed).collect();
        *last = Some((Instant::now(), answers.clone()));
        answers
    }

    pub(crate) async fn close(&self) {
        for (pool, _) in self.pools.values() {
            pool.close().await;
        }
    }
}
