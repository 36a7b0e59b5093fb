//! Relays outbox entries from the databases of repositories to the queue.
//!
//! Leased, enqueued, marked as arrived: three steps in two databases. A relay that stops in between has enqueued a job that
//! is enqueued once more ten seconds later, which its id makes harmless.

use std::time::Duration;

use okt_model::{Error, JobId, NewJob, RepositoryId, Result};
use okt_store::{Databases, outbox};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::backoff::about;
use crate::enqueue::{enqueue, record_refused};

/// How many entries of one repository are relayed at once.
const EACH: i64 = 200;
/// How often it looks without having heard anything.
const POLL: Duration = Duration::from_secs(1);
const RECONNECT: Duration = Duration::from_millis(500);

/// Relays the entries of one database until `stop`.
pub(crate) async fn relay(databases: &Databases, database: &str, stop: &CancellationToken) {
    let mut listener = None;
    let (mut trouble, mut after) = (false, RepositoryId::from(Uuid::nil()));
    while !stop.is_cancelled() {
        if listener.is_none() {
            // Without it there is still the poll.
            listener = databases.listen_to_outbox(database).await.ok();
        }
        match relay_batch(databases, database, after).await {
            Ok(last) => {
                if trouble {
                    tracing::info!(database, "outbox relay recovered");
                    trouble = false;
                }
                // Round and round, until a round from the beginning finds nothing.
                let first = after.uuid().is_nil();
                after = last.unwrap_or(RepositoryId::from(Uuid::nil()));
                if last.is_some() || !first {
                    continue;
                }
            }
            Err(error) => {
                if !trouble {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(database, error, "outbox relay failed; will retry");
                    trouble = true;
                }
            }
        }
        let heard = async {
            match &mut listener {
                Some(listening) => listening.hear().await.is_ok(),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(about(if trouble { RECONNECT } else { POLL })) => {}
            heard = heard => if !heard { listener = None },
        }
    }
}

/// Relays a few entries of the next repositories after this one; returns the last of those.
async fn relay_batch(
    databases: &Databases,
    database: &str,
    after: RepositoryId,
) -> Result<Option<RepositoryId>> {
    let mut tx = databases.begin_relay(database).await?;
    let entries = outbox::take_up(&mut tx, database, after, EACH).await?;
    tx.commit().await?;
    if entries.is_empty() {
        return Ok(None);
    }
    let keys = keys(&entries);
    let superfluous = match enqueue_batch(databases, &entries).await {
        Ok(dropped) => dropped,
        Err(error) => {
            // So that nobody has to wait until they count as dropped.
            if let Ok(mut tx) = databases.begin_relay(database).await
                && outbox::put_down(&mut tx, &keys).await.is_ok()
            {
                drop(tx.commit().await);
            }
            return Err(error);
        }
    };
    let last = keys.iter().map(|(repository, _)| *repository).max();
    let (gone, arrived): (Vec<_>, Vec<_>) = keys.into_iter().partition(|(_, job)| superfluous.contains(job));
    let mut tx = databases.begin_relay(database).await?;
    outbox::mark_arrived(&mut tx, &arrived).await?;
    if !gone.is_empty() {
        outbox::delete(&mut tx, &gone).await?;
    }
    tx.commit().await?;
    Ok(last)
}

/// All at once; where one of them is to blame for a failure, each by itself, so that it does not hold up the others. Returns
/// those that were dropped because a twin waits.
async fn enqueue_batch(databases: &Databases, entries: &[NewJob]) -> Result<Vec<JobId>> {
    match enqueue_together(databases, entries).await {
        Err(error) if !error.retryable() && entries.len() > 1 => {
            let mut dropped = Vec::new();
            for entry in entries {
                match enqueue_together(databases, std::slice::from_ref(entry)).await {
                    Err(error) if !error.retryable() => refuse(databases, entry, &error).await?,
                    queued => dropped.extend(queued?),
                }
            }
            Ok(dropped)
        }
        Err(error) if !error.retryable() && entries.len() == 1 => {
            refuse(databases, &entries[0], &error).await?;
            Ok(Vec::new())
        }
        queued => queued,
    }
}

async fn enqueue_together(databases: &Databases, entries: &[NewJob]) -> Result<Vec<JobId>> {
    let mut tx = databases.begin_tasks().await?;
    let dropped = enqueue(&mut tx, entries).await?;
    tx.commit().await?;
    Ok(dropped)
}

async fn refuse(databases: &Databases, entry: &NewJob, error: &Error) -> Result<()> {
    tracing::error!(
        job.id = %entry.id, job.kind = entry.kind, error = error as &dyn std::error::Error, "job cannot be enqueued; recorded as discarded"
    );
    let mut conn = databases.acquire_tasks().await?;
    record_refused(&mut conn, entry).await?;
    Ok(())
}

fn keys(entries: &[NewJob]) -> Vec<(RepositoryId, JobId)> {
    entries.iter().filter_map(|entry| Some((entry.repository?, entry.id))).collect()
}
