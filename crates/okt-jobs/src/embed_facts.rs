//! Gives facts their vectors. Reads facts that are `new` or `stable` and have none in the current space, leaves them with one.
//!
//! A vector goes into the store as soon as it is made, and a run that finds it there does not ask for it again: nobody pays
//! twice for one, whenever a process dies.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use okt_ai::{BUDGET_RETRY, Embedder, SubjectBudget, Vectors, waiting_for_budget};
use okt_model::{
    BudgetOf, Cost, DeduplicateFacts, EmbedFacts, EmbeddingSpace, Error, Money, Operation, Progress,
    RepositoryId, Result, SourceId, SpaceKind, TextOfFact, Waiting,
};
use okt_queue::{Finished, JobContext, JobError};
use okt_store::outbox::When;
use okt_store::{Tx, fact_merges, fact_vectors, sources};
use okt_vectors::{Point, Tenant};
use uuid::Uuid;

use crate::Tools;
use crate::tools::{billing, or_retry};
use crate::{check_reports, extract_concepts};

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
    let Some((space, vectors)) = current(&tools).await? else { return settle(&ctx, &tools, payload).await };
    let (mut after, mut done, mut usd) = (0, 0_u64, Money::ZERO);
    let billing = billing(&ctx, payload.source);
    let limit = max_cost(&ctx, payload.source).await?;
    let budget = SubjectBudget::open(tools.ai(), &billing, limit).await?;
    let embedder = Embedder::new(tools.ai(), billing, budget, Operation::FactEmbedding, &space)?;
    // It may have been away when the service started, or been dropped since.
    vectors.store().prepare(&vectors.space(&space), false).await.map_err(or_wait)?;
    let batch = i64::from(tools.config().providers.ai.embed_batch_size.max(1));
    loop {
        let mut tx = ctx.checkpoint().await?;
        let facts =
            fact_vectors::list_missing(&mut tx, ctx.repository(), payload.source, space.no, after, batch)
                .await?;
        tx.commit().await?;
        let Some(last) = facts.last() else { break };
        after = last.no;
        still(&tools, &space).await?;
        let things: Vec<Embeddable> = facts.iter().map(Into::into).collect();
        let filled = match fill(&embedder, &vectors, &vectors.space(&space), &things).await? {
            Filled::For(filled) => filled,
            Filled::OverMaxCost => return settle(&ctx, &tools, payload).await,
            Filled::OverBudget(budget) => {
                ctx.progress(waiting_for_budget("vectors", done, budget));
                return Err(JobError::Waits { why: Waiting::Budget, delay: BUDGET_RETRY });
            }
        };
        usd += filled.cost.usd;
        ctx.spent(filled.cost);
        let mut tx = ctx.checkpoint().await?;
        filled.mark(&mut tx, ctx.repository(), &space).await?;
        tx.commit().await?;
        done += u64::try_from(facts.len()).unwrap_or(0);
        ctx.progress(Progress { stage: "vectors".to_owned(), done, total: None, message: None });
    }
    // Before they are compared with all others.
    vectors.store().index(&tenant(&embedder), &vectors.space(&space)).await.map_err(or_wait)?;
    let mut tx = ctx.begin().await?;
    tx.push(&DeduplicateFacts { source: payload.source }, When::default()).await?;
    tx.commit(Some(serde_json::json!({ "facts": done, "model": space.model, "usd": usd }))).await
}

/// The most that may be spent on the source.
pub(crate) async fn max_cost(ctx: &JobContext, source: Option<SourceId>) -> Result<Option<Money>, JobError> {
    let Some(source) = source else { return Ok(None) };
    let mut tx = ctx.read().await?;
    let found = sources::find(&mut tx, ctx.repository(), source).await?;
    tx.commit().await?;
    Ok(found.and_then(|source| source.max_cost_usd))
}

fn tenant(embedder: &Embedder) -> Tenant {
    let billing = embedder.billing();
    Tenant::new(billing.repository, &billing.database)
}

/// The vectors that are searched, and where they are; `None` where there are to be none.
pub(crate) async fn current(tools: &Tools) -> Result<Option<(EmbeddingSpace, okt_vectors::Vectors)>> {
    let Some(vectors) = tools.vectors() else { return Ok(None) };
    let space = tools.ai().current_space(SpaceKind::Facts).await?;
    Ok(space.map(|space| (space, vectors.clone())))
}

/// Whether these are still the vectors that are searched; where they are not, the job begins anew.
pub(crate) async fn still(tools: &Tools, space: &EmbeddingSpace) -> Result<(), JobError> {
    match current(tools).await? {
        Some((now, _)) if now.no == space.no => Ok(()),
        _ => Err(JobError::Waits { why: Waiting::Dependency, delay: Duration::from_secs(1) }),
    }
}

/// What became of texts that need a vector.
pub(crate) enum Filled<T = Embedded> {
    For(T),
    /// It could cost more than may be spent on the source.
    OverMaxCost,
    OverBudget(BudgetOf),
}

/// What is to get a vector: by what the vector is called, and its own number.
#[derive(Clone)]
pub(crate) struct Embeddable {
    pub id: Uuid,
    pub no: i64,
    pub text: String,
}

impl From<&TextOfFact> for Embeddable {
    fn from(fact: &TextOfFact) -> Self {
        Self { id: fact.id.uuid(), no: fact.no, text: fact.text.clone() }
    }
}

/// What was to get a vector, by its numbers.
#[derive(Default)]
pub(crate) struct Embedded {
    /// Those that have one now.
    pub numbers: Vec<i64>,
    /// Those for which the model gave none that can be used.
    pub without: Vec<i64>,
    pub cost: Cost,
}

impl Embedded {
    /// Writes it down of facts; returns how many have one now.
    pub(crate) async fn mark(
        &self,
        tx: &mut Tx,
        repository: RepositoryId,
        space: &EmbeddingSpace,
    ) -> Result<u64> {
        let made = fact_vectors::mark(tx, repository, &self.numbers, Some(space.no)).await?;
        fact_vectors::mark_without(tx, repository, &self.without, space.no).await?;
        // They can't be compared, so they stand as they are.
        fact_merges::settle(tx, repository, &self.without).await?;
        Ok(made)
    }
}

/// Sees that things have a vector in a place, and says what it cost.
pub(crate) async fn fill(
    embedder: &Embedder,
    vectors: &okt_vectors::Vectors,
    place: &okt_vectors::Space,
    things: &[Embeddable],
) -> Result<Filled, JobError> {
    let numbers: HashMap<Uuid, i64> = things.iter().map(|one| (one.id, one.no)).collect();
    let (tenant, place) = (tenant(embedder), place.clone());
    let mut texts: HashMap<Uuid, &str> = things.iter().map(|one| (one.id, one.text.as_str())).collect();
    let ids: Vec<Uuid> = texts.keys().copied().collect();
    for there in vectors.store().existing(&tenant, &place, &ids).await.map_err(or_wait)? {
        texts.remove(&there);
    }
    if texts.is_empty() {
        let numbers = numbers.into_values().collect();
        return Ok(Filled::For(Embedded { numbers, without: Vec::new(), cost: Cost::default() }));
    }
    let (ids, texts): (Vec<Uuid>, Vec<String>) =
        texts.into_iter().map(|(id, text)| (id, text.to_owned())).unzip();
    let (model, vectors) = (embedder.model().to_owned(), vectors.clone());
    embed(embedder, texts, move |made, cost| async move {
        let points = ids.into_iter().zip(made).map(|(id, vector)| Point { id, vector });
        // One without a direction would keep all others out of the store.
        let (points, useless): (Vec<Point>, Vec<Point>) =
            points.partition(|point| okt_vectors::Space::has_direction(&point.vector));
        for point in &useless {
            tracing::warn!(
                point.id = %point.id, model,
                "the embedding model returned an unusable vector (all zeros, or not finite); what it is of is stored \
                 without one and is not compared with others"
            );
        }
        keep(&vectors, &tenant, &place, &points).await?;
        let useless: HashSet<Uuid> = useless.into_iter().map(|point| point.id).collect();
        let (without, with): (Vec<_>, Vec<_>) = numbers.into_iter().partition(|(id, _)| useless.contains(id));
        let numbers = |facts: Vec<(Uuid, i64)>| facts.into_iter().map(|(_, no)| no).collect();
        Ok(Embedded { numbers: numbers(with), without: numbers(without), cost })
    })
    .await
}

/// Has texts embedded, and their vectors kept as `keep` does it, in a task of its own: what was asked is paid for, so it is kept even
/// when the job is stopped.
pub(crate) async fn embed<T, K, F>(
    embedder: &Embedder,
    texts: Vec<String>,
    keep: K,
) -> Result<Filled<T>, JobError>
where
    T: Send + 'static,
    K: FnOnce(Vec<Vec<f32>>, Cost) -> F + Send + 'static,
    F: Future<Output = Result<T>> + Send,
{
    let embedder = embedder.clone();
    let made = tokio::spawn(async move {
        let count = texts.len();
        let (made, cost) = match embedder.embed(texts).await.map_err(or_retry)? {
            Vectors::Embedded(made, cost) => (made, cost),
            Vectors::OverMaxCost => return Ok(Filled::OverMaxCost),
            Vectors::OverBudget(budget) => return Ok(Filled::OverBudget(budget)),
        };
        if made.len() != count {
            let (model, made) = (embedder.model(), made.len());
            return Err(Error::internal(format!("{model} returned {made} vectors for {count} texts")).into());
        }
        Ok(Filled::For(keep(made, cost).await?))
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
async fn settle(ctx: &JobContext, tools: &Tools, payload: EmbedFacts) -> Result<Finished, JobError> {
    let (mut after, mut settled) = (0, Vec::new());
    let mut tx = ctx.begin().await?;
    loop {
        let new = fact_merges::list_new(&mut tx, ctx.repository(), payload.source, after, 1_000).await?;
        let Some(last) = new.last() else { break };
        after = last.no;
        let numbers: Vec<i64> = new.iter().map(|fact| fact.no).collect();
        fact_merges::settle(&mut tx, ctx.repository(), &numbers).await?;
        settled.extend(numbers);
    }
    check_reports::push(&mut tx, ctx.repository()).await?;
    match payload.source {
        Some(source) => extract_concepts::push(&mut tx, tools, source).await?,
        None => extract_concepts::push_for(&mut tx, tools, ctx.repository(), &settled).await?,
    }
    tx.commit(Some(serde_json::json!({ "facts": 0 }))).await
}
