//! Makes one fact of those that say the same. Reads facts that are `new`, leaves them `stable` or `duplicate`.
//!
//! The nearest by their vectors are proposed; before two become one, what they say is compared, for a claim and its opposite
//! are near each other, too, and so may both be to a third: a fact is compared with all that another stands for. Those that
//! differ stay two, and that they sound alike is kept for people to see. Of two that are one the older stays, and what the
//! sources say is not touched.

mod groups;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use okt_model::{CleanupFacts, DeduplicateFacts, EmbedFacts, EmbeddingSpace, Progress, Result};
use okt_queue::{Finished, JobContext, JobError};
use okt_store::fact_contradictions::{self, NewContradiction};
use okt_store::fact_merges::{self, Comparable, Merge};
use okt_store::fact_vectors;
use okt_store::outbox::When;
use okt_vectors::{Near, Tenant, Vectors};
use uuid::Uuid;

use self::groups::{Groups, Verdict};
use crate::Tools;
use crate::embed_facts::{current, or_wait, still};

const BATCH: i64 = 256;
/// How many of the nearest are looked at.
const NEIGHBOURS: u32 = 16;
/// A fact that others change at the same time is looked at again.
const ROUNDS: u32 = 5;
/// Until facts and vectors are checked against each other; what comes meanwhile is checked with it.
pub(crate) const CLEANUP_MS: i64 = 6 * 60 * 60 * 1_000;

/// What new facts may be the same as.
struct Proposed {
    near: HashMap<Uuid, Vec<Near>>,
    /// Those of them that can be merged.
    known: HashMap<Uuid, Comparable>,
    /// New facts whose vectors are not where they should be.
    lost: Vec<i64>,
}

/// What is to become of them.
#[derive(Default)]
struct Decided {
    merges: Vec<Merge>,
    contradictions: Vec<NewContradiction>,
}

pub(crate) async fn run(
    payload: DeduplicateFacts,
    ctx: JobContext,
    tools: Tools,
) -> Result<Finished, JobError> {
    let (mut compared, mut merged, mut refused, mut without) = (0, 0, 0, 0);
    if let Some((space, vectors)) = current(&ctx, &tools).await? {
        if payload.source.is_none() {
            let age = tools.config().providers.dedup.catchup_max_age.duration();
            let mut tx = ctx.step().await?;
            fact_merges::settle_old(&mut tx, ctx.repository(), age).await?;
            tx.commit().await?;
        }
        let (mut after, mut round) = (0, 0);
        loop {
            let mut tx = ctx.step().await?;
            let new = fact_merges::list_new(&mut tx, ctx.repository(), payload.source, after, BATCH).await?;
            tx.commit().await?;
            let Some(last) = new.last() else {
                round += 1;
                if after == 0 || round == ROUNDS {
                    break;
                }
                // Those that changed under our hands, if there are any.
                after = 0;
                continue;
            };
            after = last.no;
            let proposed = propose(&ctx, &tools, &space, &vectors, &new).await?;
            // Vectors that are dropped under our hands would look like lost ones.
            still(&ctx, &tools, &space).await?;
            let decided = decide(&ctx, &space, &vectors, &new, &proposed).await?;
            compared += new.len();
            merged += decided.merges.len();
            refused += decided.contradictions.len();
            without += proposed.lost.len();
            let done = u64::try_from(compared).unwrap_or(u64::MAX);
            ctx.progress(Progress { stage: "facts".to_owned(), done, total: None, message: None });
        }
    }
    let mut effect = ctx.begin().await?;
    if without > 0 && payload.source.is_some() {
        effect.push(&EmbedFacts { source: payload.source }, When::default()).await?;
    }
    effect.push(&CleanupFacts { soon: false }, When { delay_ms: CLEANUP_MS, ..When::default() }).await?;
    let output =
        serde_json::json!({ "compared": compared, "merged": merged, "candidate_contradictions": refused });
    effect.commit(Some(output)).await
}

/// The nearest of new facts. Nothing is changed.
async fn propose(
    ctx: &JobContext,
    tools: &Tools,
    space: &EmbeddingSpace,
    vectors: &Vectors,
    new: &[Comparable],
) -> Result<Proposed, JobError> {
    let (tenant, place) = (Tenant::new(ctx.repository(), ctx.database()), vectors.space(space));
    let ids: Vec<Uuid> = new.iter().map(|fact| fact.id.uuid()).collect();
    let points = vectors.store().find(&tenant, &place, &ids).await.map_err(or_wait)?;
    let there: HashSet<Uuid> = points.iter().map(|point| point.id).collect();
    let lost = new.iter().filter(|fact| !there.contains(&fact.id.uuid())).map(|fact| fact.no).collect();
    let (found, queries): (Vec<Uuid>, Vec<Vec<f32>>) =
        points.into_iter().map(|point| (point.id, point.vector)).unzip();
    #[expect(clippy::cast_possible_truncation, reason = "cosines have no more digits than that")]
    let threshold = tools.config().providers.dedup.threshold as f32;
    let near =
        vectors.store().nearest(&tenant, &place, &queries, NEIGHBOURS, threshold).await.map_err(or_wait)?;
    let near: HashMap<Uuid, Vec<Near>> = found.into_iter().zip(near).collect();
    let ids: BTreeSet<Uuid> = near.values().flatten().map(|near| near.id).collect();
    let ids: Vec<Uuid> = ids.into_iter().collect();
    // The store is not asked who may be compared with whom.
    let mut tx = ctx.look().await?;
    let known = fact_merges::list_comparable(&mut tx, ctx.repository(), &ids).await?;
    tx.commit().await?;
    let known = known.into_iter().map(|fact| (fact.id.uuid(), fact)).collect();
    Ok(Proposed { near, known, lost })
}

/// Makes one of those that say the same. Decided while all of them are held, because others do so at the same moment.
async fn decide(
    ctx: &JobContext,
    space: &EmbeddingSpace,
    vectors: &Vectors,
    new: &[Comparable],
    proposed: &Proposed,
) -> Result<Decided, JobError> {
    let repository = ctx.repository();
    let ids: BTreeMap<i64, Uuid> =
        new.iter().chain(proposed.known.values()).map(|fact| (fact.no, fact.id.uuid())).collect();
    let concerned: Vec<i64> = ids.keys().copied().collect();
    let mut tx = ctx.step().await?;
    let open: HashSet<i64> = fact_merges::hold(&mut tx, repository, &concerned).await?.into_iter().collect();
    let groups = Groups::read(&mut tx, repository, &concerned).await?;
    let decided = pair(new, proposed, &open, groups);
    fact_merges::merge(&mut tx, repository, &decided.merges, ctx.id()).await?;
    fact_contradictions::insert(&mut tx, repository, &decided.contradictions).await?;
    fact_vectors::mark(&mut tx, repository, &proposed.lost, None).await?;
    // Those that something near went away from meanwhile are compared once more, and those without a vector when they have
    // one.
    let settled = new.iter().filter(|fact| {
        let mut others = proposed.of(fact);
        open.contains(&fact.no)
            && !proposed.lost.contains(&fact.no)
            && others.all(|(other, _)| open.contains(&other.no))
    });
    let settled: Vec<i64> = settled.map(|fact| fact.no).collect();
    fact_merges::settle(&mut tx, repository, &settled).await?;
    tx.commit().await?;
    let gone: Vec<Uuid> = decided.merges.iter().filter_map(|merge| ids.get(&merge.fact).copied()).collect();
    // What is left behind here is swept up by `cleanup_facts`.
    let tenant = Tenant::new(repository, ctx.database());
    vectors.store().remove(&tenant, &vectors.space(space), &gone).await.map_err(or_wait)?;
    Ok(decided)
}

impl Proposed {
    /// What may be the same as a fact, the nearest first.
    fn of(&self, fact: &Comparable) -> impl Iterator<Item = (&Comparable, f32)> {
        let near = self.near.get(&fact.id.uuid()).into_iter().flatten();
        near.filter_map(|near| Some((self.known.get(&near.id)?, near.cosine)))
    }
}

/// Each new fact with the nearest that says the same, the oldest facts first.
fn pair(new: &[Comparable], proposed: &Proposed, open: &HashSet<i64>, mut groups: Groups) -> Decided {
    let mut decided = Decided::default();
    // A fact takes part in one merge only as the one that goes, and not at all as one that others go into then.
    let (mut gone, mut kept) = (HashSet::new(), HashSet::new());
    for fact in new.iter().filter(|fact| open.contains(&fact.no)) {
        // Older ones first: who takes in a younger one can't go into an older one any more.
        let (older, younger): (Vec<_>, Vec<_>) = proposed
            .of(fact)
            .filter(|(other, _)| other.no != fact.no && other.kind == fact.kind && open.contains(&other.no))
            .partition(|(other, _)| other.no < fact.no);
        for (other, cosine) in older.into_iter().chain(younger) {
            let (old, young) = if other.no < fact.no { (other, fact) } else { (fact, other) };
            match groups.compare(old, young) {
                Verdict::Same => {}
                Verdict::Apart => continue,
                Verdict::Differ { facts, difference } => {
                    decided.contradictions.push(NewContradiction { facts, difference, cosine });
                    continue;
                }
            }
            if gone.contains(&old.no) || gone.contains(&young.no) || kept.contains(&young.no) {
                continue;
            }
            gone.insert(young.no);
            kept.insert(old.no);
            groups.join(young, old);
            decided.merges.push(Merge { fact: young.no, into: old.no, cosine });
            if young.no == fact.no {
                break;
            }
        }
    }
    decided
}
