//! Removes what lies of a repository where it does not live: everywhere once it was deleted, and at its old place once it
//! has moved. Reads how things are, so it can be run again and again.

use std::time::Duration;

use okt_model::{CleanupRepository, Progress, Result, Waiting};
use okt_queue::{Finished, JobError, SystemContext, jobs};
use okt_store::repositories::{self, Untidy};
use okt_store::write_fence::{self, Closed};
use okt_store::{Databases, Listener, api_keys, embedding_spaces, invitations, moves, roles, user_usage};
use okt_vectors::Tenant;

use crate::Tools;

/// Somebody may have asked where it lives a moment before it moved, and be reading still.
const READERS: Duration = Duration::from_secs(50);
const BATCH: i64 = 5_000;
const PEOPLE: i64 = 1_000;

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
    drop(conn);
    let Some(untidy) = untidy else { return Ok(ctx.finish(None)) };
    if untidy.moving_to.is_some() || (!untidy.deleted && untidy.age < READERS.as_secs_f64()) {
        return Err(JobError::Waits { why: Waiting::Dependency, delay: READERS });
    }
    if untidy.deleted {
        // Whatever else has to wait for a database that is away.
        forget_people(databases, &untidy).await?;
        // Then nobody may write there any more, or the job would never come to an end.
        write_fence::close(databases, &untidy.database, untidy.id, &Closed::Deleted).await?;
        jobs::cancel_all(databases, untidy.id).await?;
    }
    if !untidy.deleted {
        let here = databases.shard(&untidy.database).unwrap_or(&untidy.database).to_owned();
        jobs::set_database(databases, untidy.id, &here).await?;
    }
    let (mut removed, mut away) = (0, None);
    for place in elsewhere(databases, &untidy) {
        // Whoever lost the lock may not be the only one any more.
        alone.ping().await?;
        match remove_from(&ctx, place, &untidy, &mut alone, &mut removed).await {
            // What lies elsewhere goes all the same; the job comes back for this one.
            Err(error) if error.retryable() => drop(away.get_or_insert(error)),
            done => done?,
        }
    }
    if untidy.deleted {
        tools.blobs().remove_repository(untidy.id).await?;
        forget_vectors(databases, &tools, &untidy).await?;
    }
    if let Some(error) = away {
        return Err(error.into());
    }
    if untidy.deleted {
        // Whoever was just giving out a role when it was deleted.
        forget_people(databases, &untidy).await?;
    }
    let mut conn = databases.acquire_system().await?;
    repositories::mark_tidy(&mut conn, &untidy).await?;
    tracing::info!(repository.id = %untidy.id, rows = removed, "cleaned up after a repository");
    Ok(ctx.finish(Some(serde_json::json!({ "rows": removed }))))
}

/// Removes what lies of it in one database.
async fn remove_from(
    ctx: &SystemContext,
    place: &str,
    untidy: &Untidy,
    alone: &mut Listener,
    removed: &mut u64,
) -> Result<()> {
    let databases = ctx.databases();
    // Where the one who moved it could not leave the address.
    write_fence::forward(databases, place, untidy.id, &untidy.database).await?;
    for table in moves::TABLES {
        alone.ping().await?;
        loop {
            let count = moves::remove(databases, untidy.id, table, place, BATCH).await?;
            *removed += count;
            ctx.progress(Progress { stage: table.name.to_owned(), done: *removed, ..Progress::default() });
            if count == 0 {
                break;
            }
        }
    }
    Ok(())
}

/// Who had a role or a key there, who was invited, and who uploaded what.
/// No connection is held between batches.
async fn forget_people(databases: &Databases, untidy: &Untidy) -> Result<(), JobError> {
    loop {
        let mut conn = databases.acquire_system().await?;
        let mut removed = roles::remove_some(&mut conn, untidy.id, PEOPLE).await?;
        removed += api_keys::revoke_some(&mut conn, untidy.id, PEOPLE).await?;
        removed += invitations::delete_of(&mut conn, untidy.id, PEOPLE).await?;
        removed += user_usage::delete_uploads_of(&mut conn, untidy.id, PEOPLE).await?;
        if removed == 0 {
            return Ok(());
        }
    }
}

/// Where the vectors are kept beside the facts, they went with the rows.
async fn forget_vectors(databases: &Databases, tools: &Tools, untidy: &Untidy) -> Result<(), JobError> {
    let Some(vectors) = tools.vectors() else { return Ok(()) };
    let mut conn = databases.acquire_system().await?;
    let spaces = embedding_spaces::list(&mut conn).await?;
    drop(conn);
    let tenant = Tenant::new(untidy.id, &untidy.database);
    for space in spaces {
        for place in vectors.spaces(&space) {
            vectors.store().delete_tenant(&tenant, &place).await?;
        }
    }
    Ok(())
}

/// The places where it does not live.
fn elsewhere<'a>(databases: &'a Databases, untidy: &Untidy) -> impl Iterator<Item = &'a str> {
    let here = if untidy.deleted { None } else { databases.shard(&untidy.database) };
    databases.shards().iter().map(String::as_str).filter(move |place| Some(*place) != here)
}
