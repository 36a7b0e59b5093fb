//! Retention: deletes rows that have expired.

use okt_model::Result;
use okt_store::{
    Databases, ai_calls, api_keys, audit, host_providers, idempotency, invitations, oauth_clients,
    oauth_requests, sessions,
};

const BATCH: i64 = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expired {
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
    /// Budget reservations of processes that died.
    Reservations,
    /// How providers have done for hosts that nobody has asked in 90 days.
    Hosts,
    /// Invitations that nobody used in time.
    Invitations,
    /// Refresh tokens that have run out.
    RefreshTokens,
    /// Sessions that have been over for a day.
    Sessions,
}

impl Expired {
    /// All but the audit, by the names under which the job counts them.
    pub(crate) const ALL: [(&'static str, Self); 9] = [
        ("answers", Self::Answers),
        ("api_keys", Self::ApiKeys),
        ("authorizations", Self::Authorizations),
        ("clients", Self::Clients),
        ("holds", Self::Reservations),
        ("hosts", Self::Hosts),
        ("invitations", Self::Invitations),
        ("refresh_tokens", Self::RefreshTokens),
        ("sessions", Self::Sessions),
    ];
}

/// Deletes rows past their retention; returns how many. No connection is held between batches.
pub async fn delete_expired(databases: &Databases, what: Expired) -> Result<u64> {
    let mut total = 0;
    loop {
        let mut conn = databases.acquire_system().await?;
        let count = match what {
            Expired::Answers => idempotency::delete_expired(&mut conn, BATCH).await?,
            Expired::ApiKeys => api_keys::delete_old(&mut conn, BATCH).await?,
            Expired::Audit { retention_days } => {
                let days = i32::try_from(retention_days).unwrap_or(i32::MAX);
                audit::delete_old(&mut conn, days, BATCH).await?
            }
            Expired::Authorizations => oauth_requests::delete_expired(&mut conn, BATCH).await?,
            Expired::Clients => oauth_clients::delete_unused(&mut conn, BATCH).await?,
            Expired::Reservations => ai_calls::delete_expired_reservations(&mut conn, BATCH).await?,
            Expired::Hosts => host_providers::delete_old(&mut conn, BATCH).await?,
            Expired::Invitations => invitations::delete_expired(&mut conn, BATCH).await?,
            Expired::RefreshTokens => sessions::delete_expired_refresh_tokens(&mut conn, BATCH).await?,
            Expired::Sessions => sessions::delete_expired(&mut conn, BATCH).await?,
        };
        total += count;
        if count < BATCH.unsigned_abs() {
            if total > 0 {
                tracing::info!(?what, count = total, "deleted expired rows");
            }
            return Ok(total);
        }
    }
}
