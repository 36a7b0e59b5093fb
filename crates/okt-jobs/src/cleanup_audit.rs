//! Deletes what the audit keeps no longer: `audit.retention_days`. Once a day, and harmless to repeat.

use okt_model::Payload;
use okt_queue::{Finished, JobError, SystemContext};
use serde::{Deserialize, Serialize};

use crate::forget::{Old, forget};

#[derive(Serialize, Deserialize)]
pub struct CleanupAudit {}

impl Payload for CleanupAudit {
    const KIND: &'static str = "cleanup_audit";
}

pub(crate) async fn run(ctx: SystemContext, retention_days: u32) -> Result<Finished, JobError> {
    let deleted = forget(ctx.databases(), Old::Audit { retention_days }).await?;
    Ok(ctx.finish(Some(serde_json::json!({ "deleted": deleted }))))
}
