//! Deletes sessions, keys, grants and answers whose time is over. Every ten minutes, and harmless to repeat.

use okt_model::Payload;
use okt_queue::{Finished, JobError, SystemContext};
use serde::{Deserialize, Serialize};

use crate::forget::{Old, forget};

#[derive(Serialize, Deserialize)]
pub struct CleanupExpired {}

impl Payload for CleanupExpired {
    const KIND: &'static str = "cleanup_expired";
}

pub(crate) async fn run(ctx: SystemContext) -> Result<Finished, JobError> {
    let mut output = serde_json::Map::new();
    for (name, what) in Old::EXPIRED {
        let deleted = forget(ctx.databases(), what).await?;
        output.insert(name.to_owned(), deleted.into());
    }
    Ok(ctx.finish(Some(output.into())))
}
