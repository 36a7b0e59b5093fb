//! Gives facts their vectors. Reads facts that are `new` or `stable` and have none in the current space, leaves them with one.
//!
//! A vector goes into the store as soon as it is made, and a run that finds it there does not ask for it again: nobody pays
//! twice for one, whenever a process dies.

use std::collections::HashMap;
use std::time::Duration;

use okt_model::{
    Cost, DeduplicateFacts, EmbedFacts, EmbeddingSpace, Error, Progress, Result, TextOfFact, Waiting,
};
use okt_queue::{Finished, JobContext, JobError};
use okt_store::outbox::When;
use okt_store::{fact_merges, fact_vectors};
use okt_vectors::{Point, Tenant};
use uuid::Uuid;

use crate::Tools;
use crate::embedding::{Embedder, Vectors};
use crate::spaces;

const STORE_AWAY: Duration = Duration::from_secs(10);
/// How long vectors that were paid for wait for a store to take them.
const WAITS: [Duration; 6] = [
    Duration::from_millis(200),
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(10),
    Duration::from_secs(30),
    Duration::from_mins(1),
];

pub(crate) async fn run(payload: EmbedFacts, ctx: JobContext, tools: Tools) -> Result<Finished, JobError> {
    let Some((space, vectors)) = current(&ctx, &tools).await? else { return settle(&ctx, payload).await };
    let (mut after, mut done, mut usd) = (0, 0_u64, 0.0);
    let tenant = (ctx.repository(), ctx.database());
    let embedder = Embedder::new(&tools, ctx.databases(), tenant, payload.source, ctx.id(), &space)?;
    // It may have been away when the service started, or been dropped since.
    vectors.store().prepare(&vectors.space(&space), false).await.map_err(or_wait)?;
    let batch = i64::from(tools.config().providers.ai.embed_batch_size.max(1));
    loop {
        let mut tx = ctx.step().await?;
        let facts =
            fact_vectors::list_missing(&mut tx, ctx.repository(), payload.source, space.no, after, batch)
                .await?;
        tx.commit().await?;
        let Some(last) = facts.last() else { break };
        after = last.no;
        still(&ctx, &tools, &space).await?;
        let Some(cost) = fill(&embedder, &vectors, &space, &facts).await? else {
            return settle(&ctx, payload).await;
        };
        usd += cost.usd;
        ctx.spent(cost);
        let numbers: Vec<i64> = facts.iter().map(|fact| fact.no).collect();
        let mut tx = ctx.step().await?;
        fact_vectors::mark(&mut tx, ctx.repository(), &numbers, Some(space.no)).await?;
        tx.commit().await?;
        done += u64::try_from(facts.len()).unwrap_or(0);
        ctx.progress(Progress { stage: "vectors".to_owned(), done, total: None, message: None });
    }
    // Before they are compared with all others.
    vectors.store().index(&embedder.tenant(), &vectors.space(&space)).await.map_err(or_wait)?;
    let mut effect = ctx.begin().await?;
    effect.push(&DeduplicateFacts { source: payload.source }, When::default()).await?;
    effect.commit(Some(serde_json::json!({ "facts": done, "model": space.model, "usd": usd }))).await
}

/// The vectors that are searched, and where they are; `None` where there are to be none.
pub(crate) async fn current(
    ctx: &JobContext,
    tools: &Tools,
) -> Result<Option<(EmbeddingSpace, okt_vectors::Vectors)>> {
    let Some(vectors) = tools.vectors() else { return Ok(None) };
    let space = spaces::current(ctx.databases()).await?;
    Ok(space.map(|space| (space, vectors.clone())))
}

/// Whether these are still the vectors that are searched; where they are not, the job begins anew.
pub(crate) async fn still(ctx: &JobContext, tools: &Tools, space: &EmbeddingSpace) -> Result<(), JobError> {
    match current(ctx, tools).await? {
        Some((now, _)) if now.no == space.no => Ok(()),
        _ => Err(JobError::Waits { why: Waiting::Dependency, delay: Duration::from_secs(1) }),
    }
}

/// Sees that facts have a vector in a space, and says what it cost; `None` when it could cost more than it may.
pub(crate) async fn fill(
    embedder: &Embedder,
    vectors: &okt_vectors::Vectors,
    space: &EmbeddingSpace,
    facts: &[TextOfFact],
) -> Result<Option<Cost>, JobError> {
    let (tenant, place) = (embedder.tenant(), vectors.space(space));
    let mut texts: HashMap<Uuid, &str> =
        facts.iter().map(|fact| (fact.id.uuid(), fact.text.as_str())).collect();
    let ids: Vec<Uuid> = texts.keys().copied().collect();
    for there in vectors.store().there(&tenant, &place, &ids).await.map_err(or_wait)? {
        texts.remove(&there);
    }
    if texts.is_empty() {
        return Ok(Some(Cost::default()));
    }
    let (ids, texts): (Vec<Uuid>, Vec<String>) =
        texts.into_iter().map(|(id, text)| (id, text.to_owned())).unzip();
    let (embedder, vectors) = (embedder.clone(), vectors.clone());
    // A task of its own: what was asked is paid for, so it is kept even when the job is stopped.
    let made = tokio::spawn(async move {
        let (made, cost) = match embedder.embed(&texts).await? {
            Vectors::Made(made, cost) => (made, cost),
            Vectors::TooDear => return Ok(None),
        };
        if made.len() != ids.len() {
            return Err(Error::internal("a text has no vector, or two").into());
        }
        let points: Vec<Point> = ids.into_iter().zip(made).map(|(id, vector)| Point { id, vector }).collect();
        keep(&vectors, &tenant, &place, &points).await?;
        Ok(Some(cost))
    });
    made.await.map_err(Error::internal)?
}

/// Puts vectors that were paid for into the store, and does not give up at once. In the end it is a failure that counts: a store
/// that takes nothing must not be paid for again and again.
async fn keep(
    vectors: &okt_vectors::Vectors,
    tenant: &Tenant,
    space: &okt_vectors::Space,
    points: &[Point],
) -> Result<()> {
    for wait in WAITS {
        match vectors.store().upsert(tenant, space, points).await {
            Err(error) if error.retryable() => tokio::time::sleep(wait).await,
            ended => return ended,
        }
    }
    vectors.store().upsert(tenant, space, points).await
}

/// A store that is away comes back; until then the job sleeps, and says why.
pub(crate) fn or_wait(error: Error) -> JobError {
    match error {
        Error::Unavailable { .. } => JobError::Waits { why: Waiting::Dependency, delay: STORE_AWAY },
        error => error.into(),
    }
}

/// Without vectors nothing can be compared, and the facts stand as they are.
async fn settle(ctx: &JobContext, payload: EmbedFacts) -> Result<Finished, JobError> {
    let mut after = 0;
    let mut effect = ctx.begin().await?;
    loop {
        let new = fact_merges::list_new(&mut effect, ctx.repository(), payload.source, after, 1_000).await?;
        let Some(last) = new.last() else { break };
        after = last.no;
        let numbers: Vec<i64> = new.iter().map(|fact| fact.no).collect();
        fact_merges::settle(&mut effect, ctx.repository(), &numbers).await?;
    }
    effect.commit(Some(serde_json::json!({ "facts": 0 }))).await
}
