//! Asks registries what they do not hand out any more, and says so of what was imported. Nothing is removed for that: what is here is
//! for the people here to remove.

use std::time::Duration;

use okt_model::{Error, Payload, Result};
use okt_providers::registry::{Registry, RegistryError};
use okt_queue::{Finished, JobError, SystemContext};
use okt_store::imports::{self, Withdrawal};
use okt_store::{Databases, registry_trust};
use serde::{Deserialize, Serialize};

use crate::Tools;
use crate::spaces::next;

/// One that was withdrawn may be seen after one that was withdrawn later.
const OVERLAP: Duration = Duration::from_mins(10);
/// Pages of one registry at a time; the next tick goes on.
const MOST_PAGES: usize = 1_000;

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
    let (mut withdrawn, mut away) = (0, Vec::new());
    for registry in tools.registries().into_iter().flat_map(|registries| registries.iter()) {
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
    Ok(ctx.finish(Some(serde_json::json!({ "withdrawn": withdrawn, "registries_away": away }))))
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

/// How many imports were withdrawn.
async fn read(databases: &Databases, registry: &Registry) -> Result<u64, Failed> {
    let mut conn = databases.acquire_system().await?;
    let since = registry_trust::read_until(&mut conn, registry.id()).await?.map(|until| until - OVERLAP);
    drop(conn);
    let (mut count, mut after) = (0, None::<String>);
    for _ in 0..MOST_PAGES {
        let page = registry.withdrawals(since, after.as_deref()).await.map_err(Failed::There)?;
        let Some(last) = page.data.last().map(|item| item.withdrawn_at) else { break };
        let withdrawn: Vec<Withdrawal> = (page.data.into_iter())
            .filter_map(|item| {
                let why = item.reason.replace('\0', "").chars().take(1_000).collect();
                Some(Withdrawal { sha256: item.sha256.parse().ok()?, at: item.withdrawn_at, why })
            })
            .collect();
        count += mark(databases, registry.id(), &withdrawn).await?;
        let mut conn = databases.acquire_system().await?;
        registry_trust::mark_read(&mut conn, registry.id(), last).await?;
        drop(conn);
        after = page.next_cursor;
        if after.is_none() {
            break;
        }
    }
    Ok(count)
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
