//! Removes what lies of a repository where it does not live: everywhere once it was deleted, and at its old place once it
//! has moved. Reads how things are, so it can be run again and again.

use std::time::Duration;

use okt_model::{CleanupRepository, Progress, Waiting};
use okt_queue::{Finished, JobError, SystemContext, jobs};
use okt_store::doors::{self, Closed};
use okt_store::repositories::{self, Untidy};
use okt_store::{Databases, api_keys, embedding_spaces, moves, roles};
use okt_vectors::Tenant;

use crate::Tools;

/// Somebody may have asked where it lives a moment before it moved, and be reading still.
const READERS: Duration = Duration::from_secs(50);
const BATCH: i64 = 5_000;

pub(crate) async fn run(
    payload: CleanupRepository,
    ctx: SystemContext,
    tools: Tools,
) -> Result<Finished, JobError> {
    let databases = ctx.databases();
    // Whoever moves a repository must not find us removing what they copy.
    let Some(mut alone) = databases.take_alone(payload.repository).await? else {
        return Err(JobError::Waits { why: Waiting::Dependency, delay: READERS });
    };
    let mut conn = databases.acquire_system().await?;
    let untidy = repositories::find_untidy(&mut conn, payload.repository).await?;
    conn.done();
    let Some(untidy) = untidy else { return Ok(ctx.finish(None)) };
    if untidy.moving_to.is_some() || (!untidy.deleted && untidy.age < READERS.as_secs_f64()) {
        return Err(JobError::Waits { why: Waiting::Dependency, delay: READERS });
    }
    if untidy.deleted {
        // First of all nobody may write there any more, or the job would never come to an end.
        doors::close(databases, &untidy.database, untidy.id, &Closed::Deleted).await?;
        jobs::cancel_all(databases, untidy.id).await?;
    }
    if !untidy.deleted {
        let here = databases.home(&untidy.database).unwrap_or(&untidy.database).to_owned();
        jobs::move_notes(databases, untidy.id, &here).await?;
    }
    let mut removed = 0;
    for place in elsewhere(databases, &untidy) {
        // Where the one who moved it could not leave the address.
        doors::forward(databases, place, untidy.id, &untidy.database).await?;
        for table in moves::TABLES {
            // Whoever lost the lock may not be the only one any more.
            alone.ping().await?;
            loop {
                let count = moves::remove(databases, untidy.id, table, place, BATCH).await?;
                removed += count;
                ctx.progress(Progress { stage: table.name.to_owned(), done: removed, ..Progress::default() });
                if count == 0 {
                    break;
                }
            }
        }
    }
    if untidy.deleted {
        tools.blobs().remove_repository(untidy.id).await?;
        forget_vectors(databases, &tools, &untidy).await?;
    }
    let mut conn = databases.acquire_system().await?;
    if untidy.deleted {
        // Whoever was just giving out a role or a key when it was deleted.
        roles::remove_all(&mut conn, untidy.id).await?;
        api_keys::revoke_of(&mut conn, untidy.id).await?;
    }
    repositories::mark_tidy(&mut conn, &untidy).await?;
    conn.done();
    tracing::info!(repository.id = %untidy.id, count = removed, "a repository was cleaned up");
    Ok(ctx.finish(Some(serde_json::json!({ "rows": removed }))))
}

/// Where the vectors are kept beside the facts, they went with the rows.
async fn forget_vectors(databases: &Databases, tools: &Tools, untidy: &Untidy) -> Result<(), JobError> {
    let Some(vectors) = tools.vectors() else { return Ok(()) };
    let mut conn = databases.acquire_system().await?;
    let spaces = embedding_spaces::list(&mut conn).await?;
    conn.done();
    let tenant = Tenant::new(untidy.id, &untidy.database);
    for space in spaces {
        vectors.store().forget(&tenant, &vectors.space(&space)).await?;
    }
    Ok(())
}

/// The places where it does not live.
fn elsewhere<'a>(databases: &'a Databases, untidy: &Untidy) -> impl Iterator<Item = &'a str> {
    let here = if untidy.deleted { None } else { databases.home(&untidy.database) };
    databases.homes().iter().map(String::as_str).filter(move |place| Some(*place) != here)
}
