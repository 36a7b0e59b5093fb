//! Deletes what logs keep no longer: the audit (`audit.retention_days`) and the deliveries of webhooks. Once a day, and harmless to
//! repeat.

use okt_model::{Error, Payload, Repository, Result};
use okt_queue::{Finished, JobError, SystemContext};
use okt_store::{Databases, webhook_deliveries};
use serde::{Deserialize, Serialize};

use crate::Tools;
use crate::retention::{Expired, delete_expired};
use crate::spaces::next;

const DELIVERIES: i64 = 1_000;

#[derive(Serialize, Deserialize)]
pub struct CleanupAudit {}

impl Payload for CleanupAudit {
    const KIND: &'static str = "cleanup_audit";
}

pub(crate) async fn run(_: CleanupAudit, ctx: SystemContext, tools: Tools) -> Result<Finished, JobError> {
    let retention_days = tools.config().audit.retention_days;
    let deleted = delete_expired(ctx.databases(), Expired::Audit { retention_days }).await?;
    let (mut before, mut deliveries) = (None, 0);
    while let Some(repository) = next(ctx.databases(), &mut before).await? {
        match tidy(ctx.databases(), &repository).await {
            Ok(count) => deliveries += count,
            // It was deleted meanwhile, or is on its way to another database.
            Err(Error::NotFound(_) | Error::Moving) => {}
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(
                    repository.id = %repository.id, database = repository.database, error,
                    "failed to delete old deliveries of webhooks; will retry tomorrow"
                );
            }
        }
    }
    Ok(ctx.finish(Some(serde_json::json!({ "deleted": deleted, "deliveries": deliveries }))))
}

async fn tidy(databases: &Databases, repository: &Repository) -> Result<u64> {
    let mut tx = databases.begin_to_read(&repository.database, repository.id).await?;
    let is_untidy = webhook_deliveries::is_untidy(&mut tx, repository.id).await?;
    tx.commit().await?;
    if !is_untidy {
        return Ok(0);
    }
    let mut total = 0;
    loop {
        let mut tx = databases.begin(&repository.database, repository.id).await?;
        let count = webhook_deliveries::tidy(&mut tx, repository.id, DELIVERIES).await?;
        tx.commit().await?;
        total += count;
        if count < DELIVERIES.unsigned_abs() {
            return Ok(total);
        }
    }
}
