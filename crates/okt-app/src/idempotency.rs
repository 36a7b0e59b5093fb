//! Requests that may arrive twice and must count once.

use std::time::Duration;

use okt_model::Result;
use okt_store::idempotency::{self, Claim};
use sha2::{Digest, Sha256};

use crate::{Answer, App};

/// A claimed key, to be finished or released.
pub struct Claimed {
    id: uuid::Uuid,
    principal: String,
    key: String,
}

/// What a key stands for.
pub enum Once {
    Run(Claimed),
    InFlight,
    Mismatch,
    Again(Answer),
}

impl App {
    /// Claims `key` for this principal and this very request.
    pub async fn claim_once(&self, principal: &str, key: &str, target: &str, body: &[u8]) -> Result<Once> {
        let mut hasher = Sha256::new();
        hasher.update((target.len() as u64).to_be_bytes());
        hasher.update(target);
        hasher.update(body);
        let fingerprint: [u8; 32] = hasher.finalize().into();
        // A live request ends by the write timeout; a claim older than that and a bit belongs to a dead process.
        let lease = self.config().server.write_timeout.duration() + Duration::from_secs(5);

        let mut conn = self.databases().acquire_system().await?;
        Ok(match idempotency::claim(&mut conn, principal, key, &fingerprint, lease).await? {
            Claim::Ours(id) => {
                Once::Run(Claimed { id, principal: principal.to_owned(), key: key.to_owned() })
            }
            Claim::InFlight => Once::InFlight,
            Claim::Mismatch => Once::Mismatch,
            Claim::Answered(answer) => Once::Again(answer),
        })
    }

    /// Keeps the answer for whoever asks again.
    pub async fn finish_once(&self, claimed: &Claimed, answer: &Answer) -> Result<()> {
        let mut conn = self.databases().acquire_system().await?;
        let kept =
            idempotency::finish(&mut conn, claimed.id, &claimed.principal, &claimed.key, answer).await?;
        if !kept {
            tracing::warn!("an idempotent request outlived its claim; its answer was not kept");
        }
        Ok(())
    }

    /// Forgets the claim after a failure, so that the request can be tried again.
    pub async fn release_once(&self, claimed: &Claimed) -> Result<()> {
        let mut conn = self.databases().acquire_system().await?;
        idempotency::release(&mut conn, claimed.id, &claimed.principal, &claimed.key).await
    }
}
