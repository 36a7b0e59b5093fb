//! Sees that facts and vectors fit together: a vector for every fact that is to be found, and none for what is gone.
//!
//! It looks at both sides, so it can be run again and again; `okt doctor vectors` does the same for all repositories.

use std::collections::HashSet;

use okt_model::{
    CleanupFacts, EmbedConcepts, EmbedFacts, EmbeddingSpace, FactId, Payload, Progress, RepositoryId, Result,
    SourceId,
};
use okt_queue::{Finished, JobContext, JobError, active_sources};
use okt_store::outbox::When;
use okt_store::{Databases, concept_vectors, fact_merges, fact_vectors};
use okt_vectors::{Tenant, Vectors};
use uuid::Uuid;

use crate::Tools;
use crate::embed_concepts;
use crate::embed_facts::{current, or_wait};
use crate::embed_passages;

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
    /// Facts without a vector that a job is about to give one to.
    pub queued: u64,
}

pub(crate) async fn run(_: CleanupFacts, ctx: JobContext, tools: Tools) -> Result<Finished, JobError> {
    let Some((space, vectors)) = current(&tools).await? else {
        return ctx.begin().await?.commit(None).await;
    };
    ctx.progress(Progress { stage: "vectors".to_owned(), ..Progress::default() });
    let (repository, database) = (ctx.repository(), ctx.database());
    let done =
        reconcile(ctx.databases(), database, repository, &vectors, &space, true).await.map_err(or_wait)?;
    embed_concepts::reconcile(ctx.databases(), database, repository, &vectors, &space)
        .await
        .map_err(or_wait)?;
    embed_passages::reconcile(ctx.databases(), database, repository, &vectors, &space)
        .await
        .map_err(or_wait)?;
    vectors.store().index(&Tenant::new(repository, database), &vectors.space(&space)).await?;
    let describing = active_sources(ctx.databases(), database, repository, EmbedConcepts::KIND).await?;
    // One that is under way does it, and two would pay for the same.
    let under_way = active_sources(ctx.databases(), database, repository, EmbedFacts::KIND).await?;
    let mut tx = ctx.begin().await?;
    let without = fact_vectors::list_missing(&mut tx, repository, None, space.no, 0, 1).await?;
    let new = fact_merges::list_new(&mut tx, repository, None, 0, 1).await?;
    if (!without.is_empty() || !new.is_empty()) && !under_way.contains(&None) {
        tx.push(&EmbedFacts { source: None }, When::default()).await?;
    }
    if describing.is_empty() && concept_vectors::is_any_missing(&mut tx, repository, space.no).await? {
        tx.push(&EmbedConcepts::default(), When::default()).await?;
    }
    let output = serde_json::json!({
        "vectors": done.vectors, "orphaned": done.orphaned, "missing": done.missing,
    });
    tx.commit(Some(output)).await
}

/// Compares both sides of a repository, and with `mend` removes what is orphaned and marks what is missing. What a job is about
/// to give a vector to is not missing.
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
    let awaited = awaited(databases, database, repository, space).await?;
    let mut after = 0;
    loop {
        let mut tx = databases.begin_to_read(database, repository).await?;
        let facts =
            fact_vectors::list_missing(&mut tx, repository, None, space.no, after, i64::from(PAGE)).await?;
        tx.commit().await?;
        let Some(last) = facts.last() else { break };
        after = last.no;
        let queued = facts.iter().filter(|fact| awaited.has(fact.no)).count();
        found.queued += count(queued);
        found.missing += count(facts.len() - queued);
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
        let there: HashSet<Uuid> =
            vectors.store().existing(&tenant, &place, &ids).await?.into_iter().collect();
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

/// Facts that a job is about to give a vector to.
enum Awaited {
    All,
    These(HashSet<i64>),
}

impl Awaited {
    fn has(&self, fact: i64) -> bool {
        match self {
            Self::All => true,
            Self::These(facts) => facts.contains(&fact),
        }
    }
}

async fn awaited(
    databases: &Databases,
    database: &str,
    repository: RepositoryId,
    space: &EmbeddingSpace,
) -> Result<Awaited> {
    let mut facts = HashSet::new();
    for source in active_sources(databases, database, repository, EmbedFacts::KIND).await? {
        let Some(source) = source else { return Ok(Awaited::All) };
        let mut after = 0;
        loop {
            let mut tx = databases.begin_to_read(database, repository).await?;
            let source = Some(SourceId::from(source));
            let page =
                fact_vectors::list_missing(&mut tx, repository, source, space.no, after, i64::from(PAGE))
                    .await?;
            tx.commit().await?;
            let Some(last) = page.last() else { break };
            after = last.no;
            facts.extend(page.iter().map(|fact| fact.no));
        }
    }
    Ok(Awaited::These(facts))
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
