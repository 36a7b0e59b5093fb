//! Sees that facts and vectors fit together: a vector for every fact that is to be found, and none for what is gone.
//!
//! It looks at both sides, so it can be run again and again; `okt doctor vectors` does the same for all repositories.

use std::collections::HashSet;

use okt_model::{CleanupFacts, EmbedFacts, EmbeddingSpace, FactId, Progress, RepositoryId, Result};
use okt_queue::{Finished, JobContext, JobError};
use okt_store::outbox::When;
use okt_store::{Databases, fact_merges, fact_vectors};
use okt_vectors::{Tenant, Vectors};
use uuid::Uuid;

use crate::Tools;
use crate::embed_facts::{current, or_wait};

const PAGE: u32 = 1_000;

/// What did not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reconciled {
    /// Vectors that were looked at.
    pub vectors: u64,
    /// Of them those whose fact is gone, or is a part of another.
    pub orphaned: u64,
    /// Facts without a vector, whether or not they are said to have one.
    pub missing: u64,
}

pub(crate) async fn run(_: CleanupFacts, ctx: JobContext, tools: Tools) -> Result<Finished, JobError> {
    let Some((space, vectors)) = current(&ctx, &tools).await? else {
        return ctx.begin().await?.commit(None).await;
    };
    ctx.progress(Progress { stage: "vectors".to_owned(), ..Progress::default() });
    let (repository, database) = (ctx.repository(), ctx.database());
    let done =
        reconcile(ctx.databases(), database, repository, &vectors, &space, true).await.map_err(or_wait)?;
    vectors.store().index(&Tenant::new(repository, database), &vectors.space(&space)).await?;
    let mut effect = ctx.begin().await?;
    let without = fact_vectors::list_missing(&mut effect, repository, None, space.no, 0, 1).await?;
    let new = fact_merges::list_new(&mut effect, repository, None, 0, 1).await?;
    if !without.is_empty() || !new.is_empty() {
        effect.push(&EmbedFacts { source: None }, When::default()).await?;
    }
    let output = serde_json::json!({
        "vectors": done.vectors, "orphaned": done.orphaned, "missing": done.missing,
    });
    effect.commit(Some(output)).await
}

/// Compares both sides of a repository, and with `mend` removes what is orphaned and marks what is missing.
pub async fn reconcile(
    databases: &Databases,
    database: &str,
    repository: RepositoryId,
    vectors: &Vectors,
    space: &EmbeddingSpace,
    mend: bool,
) -> Result<Reconciled> {
    let (tenant, place) = (Tenant::new(repository, database), vectors.space(space));
    let mut found = Reconciled::default();
    let mut after = None;
    loop {
        let ids = vectors.store().list(&tenant, &place, after, PAGE).await?;
        let Some(last) = ids.last() else { break };
        after = Some(*last);
        let mut tx = databases.begin_to_read(database, repository).await?;
        let live = fact_vectors::list_live(&mut tx, repository, &ids).await?;
        tx.commit().await?;
        let live: HashSet<Uuid> = live.into_iter().map(FactId::uuid).collect();
        let gone: Vec<Uuid> = ids.iter().copied().filter(|id| !live.contains(id)).collect();
        found.vectors += count(ids.len());
        found.orphaned += count(gone.len());
        if mend && !gone.is_empty() {
            vectors.store().remove(&tenant, &place, &gone).await?;
        }
    }
    let mut after = 0;
    loop {
        let mut tx = databases.begin_to_read(database, repository).await?;
        let facts =
            fact_vectors::list_missing(&mut tx, repository, None, space.no, after, i64::from(PAGE)).await?;
        tx.commit().await?;
        let Some(last) = facts.last() else { break };
        after = last.no;
        found.missing += count(facts.len());
    }
    let mut after = 0;
    loop {
        let mut tx = databases.begin_to_read(database, repository).await?;
        let facts =
            fact_vectors::list_embedded(&mut tx, repository, space.no, after, i64::from(PAGE)).await?;
        tx.commit().await?;
        let Some(last) = facts.last() else { break };
        after = last.no;
        let ids: Vec<Uuid> = facts.iter().map(|fact| fact.id.uuid()).collect();
        let there: HashSet<Uuid> = vectors.store().there(&tenant, &place, &ids).await?.into_iter().collect();
        let missing: Vec<i64> =
            facts.iter().filter(|fact| !there.contains(&fact.id.uuid())).map(|fact| fact.no).collect();
        found.missing += count(missing.len());
        if mend && !missing.is_empty() {
            let mut tx = databases.begin(database, repository).await?;
            fact_vectors::mark(&mut tx, repository, &missing, None).await?;
            tx.commit().await?;
        }
    }
    Ok(found)
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
