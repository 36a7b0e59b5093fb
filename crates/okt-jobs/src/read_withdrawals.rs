//! Asks registries what they do not hand out any more, and says so of what was imported. Nothing is removed for that: what is here is
//! for the people here to remove.

use std::time::Duration;

use chrono::DateTime;
use okt_model::{Error, Payload, Result};
use okt_providers::registry::{Registries, Registry, RegistryError, WithdrawnItem};
use okt_queue::{Finished, JobError, SystemContext};
use okt_store::imports::{self, Withdrawal};
use okt_store::registry_trust::{self, ReadPlace};
use okt_store::{Databases, repositories};
use serde::{Deserialize, Serialize};

use crate::Tools;
use crate::registries::storable;
use crate::spaces::next;

/// One that was withdrawn may be seen after one that was withdrawn later.
const OVERLAP: Duration = Duration::from_mins(10);
/// Pages of one registry at a time; the next tick goes on.
const MOST_PAGES: usize = 100;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadWithdrawals {}

impl Payload for ReadWithdrawals {
    const KIND: &'static str = "read_withdrawals";
    const INTERNAL: bool = true;

    fn unique_key(&self) -> Option<String> {
        Some(String::new())
    }
}

pub(crate) async fn run(_: ReadWithdrawals, ctx: SystemContext, tools: Tools) -> Result<Finished, JobError> {
    // Registries that do not answer, or databases, keep nothing else from being done.
    let taken_out = take_out_revoked(ctx.databases()).await;
    let (mut withdrawn, mut away) = (0, Vec::new());
    for registry in tools.registries().into_iter().flat_map(Registries::iter) {
        match read(ctx.databases(), registry).await {
            Ok(count) => withdrawn += count,
            Err(Failed::Here(error)) => return Err(error.into()),
            // The next tick comes for it again.
            Err(Failed::There(error)) => {
                let error = &error as &dyn std::error::Error;
                tracing::info!(
                    registry = registry.id(),
                    error,
                    "failed to read the withdrawals of a registry"
                );
                away.push(registry.id());
            }
        }
    }
    taken_out?;
    Ok(ctx.finish(Some(serde_json::json!({ "withdrawn": withdrawn, "registries_away": away }))))
}

/// What was imported while its key was being revoked, and whose job ended before it took that out again; and what is left where a
/// database did not answer, or a repository was being moved. Keys of which nothing can be left are not looked for any more.
async fn take_out_revoked(databases: &Databases) -> Result<()> {
    let mut conn = databases.acquire_system().await?;
    let begun = repositories::now(&mut conn).await?;
    let revoked = registry_trust::list_uncleared(&mut conn).await?;
    drop(conn);
    if revoked.is_empty() {
        return Ok(());
    }
    let (mut before, mut moving, mut failed) = (None, false, None);
    while let Some(repository) = next(databases, &mut before).await? {
        for key in &revoked {
            match imports::revoke_all(databases, &repository.database, repository.id, key)
                .await
                .map_err(Error::from)
            {
                // Deleted meanwhile.
                Ok(_) | Err(Error::NotFound(_)) => {}
                // The next tick comes for it.
                Err(Error::Moving) => moving = true,
                Err(error) => {
                    // Those behind it are not to keep what came from the key for that.
                    failed.get_or_insert(error);
                    break;
                }
            }
        }
    }
    match failed {
        Some(error) => return Err(error),
        None if moving => return Ok(()),
        None => {}
    }
    let mut conn = databases.acquire_system().await?;
    Ok(registry_trust::mark_cleared(&mut conn, &revoked, begun).await?)
}

enum Failed {
    Here(Error),
    There(RegistryError),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Here(error)
    }
}

impl From<okt_store::Error> for Failed {
    fn from(error: okt_store::Error) -> Self {
        Self::Here(error.into())
    }
}

/// How many imports were withdrawn. A list that is too long for one tick goes on where the last one ended.
async fn read(databases: &Databases, registry: &Registry) -> Result<u64, Failed> {
    let mut conn = databases.acquire_system().await?;
    let now = repositories::now(&mut conn).await?;
    let place = registry_trust::find_place(&mut conn, registry.id()).await?;
    drop(conn);
    let (since, mut after) = match place {
        Some(ReadPlace { since, cursor: Some(cursor), .. }) => (since, Some(cursor)),
        Some(ReadPlace { until, .. }) => (Some(until - OVERLAP), None),
        None => (None, None),
    };
    let mut count = 0;
    for _ in 0..MOST_PAGES {
        let page = match registry.withdrawals(since, after.as_deref()).await {
            // It does not know its own cursor any more: from the start of the list, the next time.
            Err(error @ RegistryError::Refused { .. }) if after.is_some() && !error.is_passing() => {
                let place =
                    ReadPlace { until: since.unwrap_or(DateTime::UNIX_EPOCH), since: None, cursor: None };
                mark_read(databases, registry, &place).await?;
                return Err(Failed::There(error));
            }
            page => page.map_err(Failed::There)?,
        };
        // Whatever a registry says: what is to come would keep everything else from being read.
        let at = |item: &WithdrawnItem| item.withdrawn_at.clamp(DateTime::UNIX_EPOCH, now);
        let Some(until) = page.data.last().map(at) else { break };
        let withdrawn: Vec<Withdrawal> = (page.data.iter())
            .filter_map(|item| {
                let why = item.reason.replace('\0', "").chars().take(1_000).collect();
                Some(Withdrawal {
                    // A package is one of a source and a model.
                    item: storable(item.source_id.as_deref().or(item.graph_id.as_deref())?),
                    model: item.model_id.as_deref().map(storable),
                    sha256: item.sha256.parse().ok()?,
                    at: at(item),
                    why,
                })
            })
            .collect();
        count += mark(databases, registry.id(), &withdrawn).await?;
        after = page.next_cursor.filter(|cursor| !cursor.contains('\0'));
        mark_read(databases, registry, &ReadPlace { until, since, cursor: after.clone() }).await?;
        if after.is_none() {
            break;
        }
    }
    Ok(count)
}

async fn mark_read(databases: &Databases, registry: &Registry, place: &ReadPlace) -> Result<()> {
    let mut conn = databases.acquire_system().await?;
    Ok(registry_trust::mark_read(&mut conn, registry.id(), place).await?)
}

/// In all repositories. If one can't be told, the page is read again later.
async fn mark(databases: &Databases, registry: &str, withdrawn: &[Withdrawal]) -> Result<u64> {
    let (mut before, mut count) = (None, 0);
    while let Some(repository) = next(databases, &mut before).await? {
        let marked = async {
            let mut tx = databases.begin(&repository.database, repository.id).await?;
            let marked = imports::mark_withdrawn(&mut tx, repository.id, registry, withdrawn).await?;
            tx.commit().await?;
            Ok::<_, Error>(marked)
        };
        match marked.await {
            Ok(marked) => count += marked,
            // It was deleted meanwhile; one that is moving is waited for.
            Err(Error::NotFound(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}
