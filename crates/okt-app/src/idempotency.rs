//! Requests that may arrive twice and must count once.
//!
//! With one key a thing is done at most once, whatever breaks: an answer is kept also when it is a failure of ours,
//! because the failure may have come after the change. What became of a request whose process died is not known, and
//! said so.

use std::time::Duration;

use okt_model::Result;
use okt_store::idempotency::{self, Claim};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::App;

/// A claimed key, to be finished or released.
pub struct Claimed {
    id: Uuid,
    principal: String,
    key: String,
}

/// What a key stands for.
pub enum Once {
    Run(Claimed),
    InFlight,
    Lost,
    Mismatch,
    Again(Answer),
}

/// An answer that is kept.
pub struct Answer {
    pub status: u16,
    pub content_type: Option<String>,
    pub location: Option<String>,
    pub body: Vec<u8>,
}

impl App {
    /// Claims `key` for this principal and this very request.
    pub async fn claim_once(&self, principal: &str, key: &str, target: &str, body: &[u8]) -> Result<Once> {
        let mut hasher = Sha256::new();
        hasher.update((target.len() as u64).to_be_bytes());
        hasher.update(target);
        hasher.update(body);
        let fingerprint: [u8; 32] = hasher.finalize().into();
        // A live request ends by the write timeout, and keeping its answer takes a moment.
        let lease = self.config().server.write_timeout.duration() + Duration::from_secs(30);

        let mut conn = self.databases().acquire_system().await?;
        Ok(match idempotency::claim(&mut conn, principal, key, &fingerprint, lease).await? {
            Claim::Ours(id) => {
                Once::Run(Claimed { id, principal: principal.to_owned(), key: key.to_owned() })
            }
            Claim::InFlight => Once::InFlight,
            Claim::Lost => Once::Lost,
            Claim::Mismatch => Once::Mismatch,
            Claim::Answered(kept) => match self.answers().open(kept.claim.as_bytes(), &kept.sealed_body) {
                Some(body) => Once::Again(Answer {
                    status: kept.status,
                    content_type: kept.content_type,
                    location: kept.location,
                    body,
                }),
                // Sealed with a secret that was changed since.
                None => Once::Lost,
            },
        })
    }

    /// Keeps the answer for whoever asks again.
    pub async fn finish_once(&self, claimed: &Claimed, answer: Answer) -> Result<()> {
        let kept = idempotency::Answer {
            claim: claimed.id,
            status: answer.status,
            content_type: answer.content_type,
            location: answer.location,
            sealed_body: self.answers().seal(claimed.id.as_bytes(), &answer.body)?,
        };
        let mut conn = self.databases().acquire_system().await?;
        Ok(idempotency::finish(&mut conn, &claimed.principal, &claimed.key, &kept).await?)
    }

    /// Forgets the claim of a request that did nothing.
    pub async fn release_once(&self, claimed: &Claimed) -> Result<()> {
        let mut conn = self.databases().acquire_system().await?;
        Ok(idempotency::release(&mut conn, claimed.id, &claimed.principal, &claimed.key).await?)
    }
}
