//! Removes files that no row speaks of: of runs that died, of requests that broke off, of sources and repositories that
//! could not be cleaned up at once.
//!
//! A file is written before its row, so only one that has been there for longer than any job or request lasts is a stray.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::TryStreamExt as _;
use okt_model::{Payload, Progress, RepositoryId, Result, SourceFile, SourceId};
use okt_queue::{Finished, JobError, SystemContext};
use okt_store::{Blobs, Databases, repositories, sources, user_usage};
use serde::{Deserialize, Serialize};

use crate::Tools;

/// Longer than a job or a request lasts, unless somebody has taken away the limit of jobs.
const AGE: Duration = Duration::from_hours(48);
const BATCH: usize = 500;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CleanupFiles {}

impl Payload for CleanupFiles {
    const KIND: &'static str = "cleanup_files";
    const INTERNAL: bool = true;

    fn unique_key(&self) -> Option<String> {
        Some(String::new())
    }
}

pub(crate) async fn run(_: CleanupFiles, ctx: SystemContext, tools: Tools) -> Result<Finished, JobError> {
    let removed = cleanup_files(ctx.databases(), tools.blobs(), AGE, |removed| {
        ctx.progress(Progress { stage: "files".to_owned(), done: removed, ..Progress::default() });
    });
    let removed = removed.await?;
    Ok(ctx.finish(Some(serde_json::json!({ "files": removed }))))
}

/// Removes the strays that are at least this old; returns how many.
pub async fn cleanup_files(
    databases: &Databases,
    blobs: &Blobs,
    age: Duration,
    mut progress: impl FnMut(u64),
) -> Result<u64> {
    let mut conn = databases.acquire_system().await?;
    let now = repositories::now(&mut conn).await?;
    drop(conn);
    let mut removed = blobs.remove_abandoned(age, now).await? as u64;
    for repository in blobs.repositories().await? {
        removed += blobs.remove_old_bundles(repository, age, now).await?;
        let mut listed = blobs.list(repository);
        loop {
            let mut batch = Vec::new();
            while let Some(next) = listed.try_next().await? {
                if is_old(next.modified, now, age) {
                    batch.push(next.file);
                }
                if batch.len() >= BATCH {
                    break;
                }
            }
            if batch.is_empty() {
                break;
            }
            match remove_strays(databases, blobs, repository, &batch).await {
                Ok(count) => removed += count,
                // Its database does not answer, so nobody can tell what is a stray; the others' are looked for all the same.
                Err(error) if error.retryable() => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(repository.id = %repository, error, "failed to look for unreferenced files of a repository; will retry at the next run");
                    break;
                }
                Err(error) => return Err(error),
            }
            progress(removed);
        }
    }
    Ok(removed)
}

async fn remove_strays(
    databases: &Databases,
    blobs: &Blobs,
    repository: RepositoryId,
    files: &[SourceFile],
) -> Result<u64> {
    let mut conn = databases.acquire_system().await?;
    let database = repositories::find(&mut conn, repository).await?.map(|found| found.database);
    let deleted = repositories::was_deleted(&mut conn, repository).await?;
    drop(conn);
    let ids: BTreeSet<SourceId> = files.iter().map(|file| file.source).collect();
    let ids: Vec<SourceId> = ids.into_iter().collect();
    let (wanted, there) = match database {
        Some(database) => {
            let mut tx = databases.begin_to_read(&database, repository).await?;
            let wanted = sources::list_wanted(&mut tx, repository, files).await?;
            let there = sources::list_there(&mut tx, repository, &ids).await?;
            tx.commit().await?;
            (wanted, there)
        }
        None if deleted => (Vec::new(), Vec::new()),
        // Another installation's, or this one was told of the wrong database: nobody's to remove.
        None => return Ok(0),
    };
    let gone: Vec<SourceId> = ids.into_iter().filter(|id| !there.contains(id)).collect();
    if !gone.is_empty() {
        // Whoever uploaded them has that room again.
        let mut conn = databases.acquire_system().await?;
        user_usage::delete_uploads(&mut conn, repository, &gone).await?;
    }
    let strays: Vec<SourceFile> = files.iter().filter(|file| !wanted.contains(file)).copied().collect();
    blobs.remove(&strays).await?;
    Ok(strays.len() as u64)
}

fn is_old(modified: DateTime<Utc>, now: DateTime<Utc>, age: Duration) -> bool {
    (now - modified).to_std().unwrap_or_default() >= age
}
