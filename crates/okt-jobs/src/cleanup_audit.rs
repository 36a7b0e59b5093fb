//! Deletes what the audit keeps no longer: `audit.retention_days`. Once a day, and harmless to repeat.

use okt_model::Payload;
use okt_queue::{Finished, JobError, SystemContext};
use serde::{Deserialize, Serialize};

use crate::Tools;
use crate::retention::{Expired, delete_expired};

#[derive(Serialize, Deserialize)]
pub struct CleanupAudit {}

impl Payload for CleanupAudit {
    const KIND: &'static str = "cleanup_audit";
}

pub(crate) async fn run(_: CleanupAudit, ctx: SystemContext, tools: Tools) -> Result<Finished, JobError> {
    let retention_days = tools.config().audit.retention_days;
    let deleted = delete_expired(ctx.databases(), Expired::Audit { retention_days }).await?;
    Ok(ctx.finish(Some(serde_json::json!({ "deleted": deleted }))))
}
