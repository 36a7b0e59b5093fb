//! What is kept for a while and then forgotten.

use okt_model::Result;
use okt_store::{
    Databases, ai_calls, api_keys, audit, host_providers, idempotency, oauth_clients, oauth_requests,
    sessions,
};

const BATCH: i64 = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Old {
    /// Idempotent answers, after 24 hours.
    Answers,
    /// API keys that have been over for 90 days.
    ApiKeys,
    Audit {
        retention_days: u32,
    },
    /// Requests for authorization and the browsers they were made in, when their minutes are over.
    Authorizations,
    /// OAuth clients that nobody let in within a day, or that nobody has used for 30 days.
    Clients,
    /// Money that processes had set aside for calls when they died.
    Holds,
    /// How providers have done for hosts that nobody has asked in 90 days.
    Hosts,
    /// Refresh tokens that have run out.
    RefreshTokens,
    /// Sessions that have been over for a day.
    Sessions,
}

impl Old {
    /// All but the audit, by the names under which the job counts them.
    pub(crate) const EXPIRED: [(&'static str, Self); 8] = [
        ("answers", Self::Answers),
        ("api_keys", Self::ApiKeys),
        ("authorizations", Self::Authorizations),
        ("clients", Self::Clients),
        ("holds", Self::Holds),
        ("hosts", Self::Hosts),
        ("refresh_tokens", Self::RefreshTokens),
        ("sessions", Self::Sessions),
    ];
}

/// Deletes what is kept no longer; returns how many rows. No connection is held between batches.
pub async fn forget(databases: &Databases, what: Old) -> Result<u64> {
    let mut total = 0;
    loop {
        let mut conn = databases.acquire_system().await?;
        let count = match what {
            Old::Answers => idempotency::delete_expired(&mut conn, BATCH).await?,
            Old::ApiKeys => api_keys::delete_old(&mut conn, BATCH).await?,
            Old::Audit { retention_days } => {
                let days = i32::try_from(retention_days).unwrap_or(i32::MAX);
                audit::delete_old(&mut conn, days, BATCH).await?
            }
            Old::Authorizations => oauth_requests::delete_expired(&mut conn, BATCH).await?,
            Old::Clients => oauth_clients::delete_unused(&mut conn, BATCH).await?,
            Old::Holds => ai_calls::delete_expired_holds(&mut conn, BATCH).await?,
            Old::Hosts => host_providers::delete_old(&mut conn, BATCH).await?,
            Old::RefreshTokens => sessions::delete_expired_refresh_tokens(&mut conn, BATCH).await?,
            Old::Sessions => sessions::delete_expired(&mut conn, BATCH).await?,
        };
        conn.done();
        total += count;
        if count < BATCH.unsigned_abs() {
            if total > 0 {
                tracing::info!(?what, count = total, "forgot what was kept long enough");
            }
            return Ok(total);
        }
    }
}
