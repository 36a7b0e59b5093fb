//! Deletes sessions, keys, grants and answers whose time is over, and has untidy repositories cleaned up. Every ten
//! minutes, and harmless to repeat.

use std::time::Duration;

use okt_model::{CleanupRepository, Payload};
use okt_queue::{Finished, JobError, SystemContext, jobs};
use okt_store::{api_keys, repositories};
use serde::{Deserialize, Serialize};

use crate::Tools;
use crate::retention::{Expired, delete_expired};

/// By then whoever made a repository untidy has asked for it to be cleaned up, or can't any more.
const UNTIDY: Duration = Duration::from_mins(5);
const REPOSITORIES: i64 = 1_000;

#[derive(Serialize, Deserialize)]
pub struct CleanupExpired {}

impl Payload for CleanupExpired {
    const KIND: &'static str = "cleanup_expired";
}

pub(crate) async fn run(_: CleanupExpired, ctx: SystemContext, tools: Tools) -> Result<Finished, JobError> {
    let longest_key = tools.config().api_keys.max_ttl.duration();
    let mut output = serde_json::Map::new();
    for (name, what) in Expired::ALL {
        let deleted = delete_expired(ctx.databases(), what).await?;
        output.insert(name.to_owned(), deleted.into());
    }
    let mut conn = ctx.databases().acquire_system().await?;
    // Keys from before there was a bound, or a smaller one, end as if they were made now.
    if !longest_key.is_zero() {
        let bounded = api_keys::bound(&mut conn, longest_key).await?;
        output.insert("bounded_api_keys".to_owned(), bounded.into());
    }
    let untidy = repositories::list_untidy(&mut conn, UNTIDY.as_secs_f64(), REPOSITORIES).await?;
    drop(conn);
    output.insert("untidy_repositories".to_owned(), untidy.len().into());
    for repository in untidy {
        jobs::push(ctx.databases(), &CleanupRepository { repository }, Duration::ZERO).await?;
    }
    Ok(ctx.finish(Some(output.into())))
}
