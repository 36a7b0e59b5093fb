//! What has to be swept up now and then.

use std::time::Duration;

use okt_model::Result;
use okt_store::{api_keys, audit, idempotency, oauth_clients, oauth_requests, sessions};

use crate::App;

const EVERY: Duration = Duration::from_mins(10);
const BATCH: i64 = 1000;

/// What is kept for a while and then forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Old {
    /// Idempotent answers, after 24 hours.
    Answers,
    /// API keys that have been over for 90 days.
    ApiKeys,
    /// Audit records, after `audit.retention_days`.
    Audit,
    /// Requests for authorization and the browsers they were made in, when their minutes are over.
    Authorizations,
    /// OAuth clients that nobody let in within a day, or that nobody has used for 30 days.
    Clients,
    /// Refresh tokens that have run out.
    RefreshTokens,
    /// Sessions that have been over for a day.
    Sessions,
}

impl Old {
    const ALL: [Self; 7] = [
        Self::Answers,
        Self::ApiKeys,
        Self::Audit,
        Self::Authorizations,
        Self::Clients,
        Self::RefreshTokens,
        Self::Sessions,
    ];
}

impl App {
    /// Sweeps until dropped. Any number of processes may do so at once.
    pub async fn keep_house(&self) {
        let mut timer = tokio::time::interval(EVERY);
        loop {
            timer.tick().await;
            for what in Old::ALL {
                match self.forget(what).await {
                    Ok(0) => {}
                    Ok(count) => tracing::info!(?what, count, "forgot what was kept long enough"),
                    Err(error) => {
                        let error = &error as &dyn std::error::Error;
                        tracing::warn!(?what, error, "can't sweep, will try again");
                    }
                }
            }
        }
    }

    /// Deletes what is kept no longer; returns how many rows. No connection is held between batches.
    pub async fn forget(&self, what: Old) -> Result<u64> {
        let retention = i32::try_from(self.config().audit.retention_days).unwrap_or(i32::MAX);
        let mut total = 0;
        loop {
            let mut conn = self.databases().acquire_system().await?;
            let count = match what {
                Old::Answers => idempotency::delete_expired(&mut conn, BATCH).await?,
                Old::ApiKeys => api_keys::delete_old(&mut conn, BATCH).await?,
                Old::Audit => audit::delete_old(&mut conn, retention, BATCH).await?,
                Old::Authorizations => oauth_requests::delete_expired(&mut conn, BATCH).await?,
                Old::Clients => oauth_clients::delete_unused(&mut conn, BATCH).await?,
                Old::RefreshTokens => sessions::delete_expired_refresh_tokens(&mut conn, BATCH).await?,
                Old::Sessions => sessions::delete_expired(&mut conn, BATCH).await?,
            };
            total += count;
            if count < BATCH.unsigned_abs() {
                return Ok(total);
            }
        }
    }
}
