//! Carrying notes from the databases of repositories to the queue.
//!
//! Taken up, queued, marked as arrived: three steps in two databases. Whoever stops in between has queued a job that is
//! queued once more ten seconds later, which its id makes harmless.

use std::time::Duration;

use okt_model::{Error, JobId, NewJob, RepositoryId, Result};
use okt_store::{Databases, outbox};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::backoff::about;
use crate::enqueue::{enqueue, record_refused};

/// How many notes of one repository are carried at once.
const EACH: i64 = 200;
/// How often it looks without having heard anything.
const POLL: Duration = Duration::from_secs(1);
const RECONNECT: Duration = Duration::from_millis(500);

/// Carries the notes of one database until told to stop.
pub(crate) async fn relay(databases: &Databases, home: &str, stop: &CancellationToken) {
    let mut listener = None;
    let (mut trouble, mut after) = (false, RepositoryId::from(Uuid::nil()));
    while !stop.is_cancelled() {
        if listener.is_none() {
            // Without it there is still the poll.
            listener = databases.listen_to_notes(home).await.ok();
        }
        match carry(databases, home, after).await {
            Ok(last) => {
                if trouble {
                    tracing::info!(database = home, "notes of jobs reach the queue again");
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

/// Carries a few notes of the next repositories after this one; returns the last of them.
async fn carry(databases: &Databases, home: &str, after: RepositoryId) -> Result<Option<RepositoryId>> {
    let mut tx = databases.begin_relay(home).await?;
    let notes = outbox::take_up(&mut tx, home, after, EACH).await?;
    tx.commit().await?;
    if notes.is_empty() {
        return Ok(None);
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
    Ok(keys.iter().map(|(repository, _)| *repository).max())
}

/// All at once; where one of them is to blame for a failure, each by itself, so that it does not hold up the others.
async fn queue(databases: &Databases, notes: &[NewJob]) -> Result<()> {
    match queue_together(databases, notes).await {
        Err(error) if !error.retryable() && notes.len() > 1 => {
            for note in notes {
                match queue_together(databases, std::slice::from_ref(note)).await {
                    Err(error) if !error.retryable() => refuse(databases, note, &error).await?,
                    queued => queued?,
                }
            }
            Ok(())
        }
        Err(error) if !error.retryable() && notes.len() == 1 => refuse(databases, &notes[0], &error).await,
        queued => queued,
    }
}

async fn queue_together(databases: &Databases, notes: &[NewJob]) -> Result<()> {
    let mut tx = databases.begin_tasks().await?;
    enqueue(&mut tx, notes).await?;
    tx.commit().await
}

async fn refuse(databases: &Databases, note: &NewJob, error: &Error) -> Result<()> {
    tracing::error!(
        job.id = %note.id, job.kind = note.kind, error = error as &dyn std::error::Error, "a job can't be queued"
    );
    let mut conn = databases.acquire_tasks().await?;
    record_refused(&mut conn, note).await?;
    conn.done();
    Ok(())
}

fn keys(notes: &[NewJob]) -> Vec<(RepositoryId, JobId)> {
    notes.iter().filter_map(|note| Some((note.repository?, note.id))).collect()
}
