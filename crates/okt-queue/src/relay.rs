//! Carrying notes from the databases of repositories to the queue.
//!
//! Taken up, queued, marked as arrived: three steps in two databases. Whoever stops in between has queued a job that is
//! queued once more ten seconds later, which its id makes harmless.

use std::time::Duration;

use okt_model::{JobId, NewJob, RepositoryId, Result};
use okt_store::{Databases, outbox};
use tokio_util::sync::CancellationToken;

use crate::backoff::about;
use crate::enqueue::enqueue;

const BATCH: usize = 500;
/// How often it looks without having heard anything.
const POLL: Duration = Duration::from_secs(1);
const RECONNECT: Duration = Duration::from_millis(500);

/// Carries the notes of one database until told to stop.
pub(crate) async fn relay(databases: &Databases, home: &str, stop: &CancellationToken) {
    let mut listener = None;
    let mut trouble = false;
    while !stop.is_cancelled() {
        if listener.is_none() {
            // Without it there is still the poll.
            listener = databases.listen_to_notes(home).await.ok();
        }
        match carry(databases, home).await {
            Ok(carried) => {
                if trouble {
                    tracing::info!(database = home, "notes of jobs reach the queue again");
                    trouble = false;
                }
                if carried == BATCH {
                    continue;
                }
            }
            Err(error) => {
                if !trouble {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(
                        database = home,
                        error,
                        "notes of jobs can't reach the queue, will try again"
                    );
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

/// Carries one batch; returns its size.
async fn carry(databases: &Databases, home: &str) -> Result<usize> {
    let mut tx = databases.begin_relay(home).await?;
    let notes = outbox::take_up(&mut tx, home, i64::try_from(BATCH).unwrap_or(i64::MAX)).await?;
    tx.commit().await?;
    if notes.is_empty() {
        return Ok(0);
    }
    let keys = keys(&notes);
    if let Err(error) = queue(databases, &notes).await {
        // So that nobody has to wait until they count as dropped.
        if let Ok(mut tx) = databases.begin_relay(home).await
            && outbox::put_down(&mut tx, &keys).await.is_ok()
        {
            drop(tx.commit().await);
        }
        return Err(error);
    }
    let mut tx = databases.begin_relay(home).await?;
    outbox::mark_arrived(&mut tx, &keys).await?;
    tx.commit().await?;
    Ok(notes.len())
}

async fn queue(databases: &Databases, notes: &[NewJob]) -> Result<()> {
    let mut tx = databases.begin_tasks().await?;
    enqueue(&mut tx, notes).await?;
    tx.commit().await
}

fn keys(notes: &[NewJob]) -> Vec<(RepositoryId, JobId)> {
    notes.iter().filter_map(|note| Some((note.repository?, note.id))).collect()
}
