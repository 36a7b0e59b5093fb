//! Makes one fact of those that say the same. Reads facts that are `new`, leaves them `stable` or `duplicate`.
//!
//! The nearest by their vectors are proposed; before two become one, what they say is compared, for a claim and its opposite
//! are near each other, too, and so may both be to a third: a fact is compared with all that another stands for. Those that
//! differ stay two, and that they sound alike is kept for people to see. Of two that are one the older stays, and what the
//! sources say is not touched.

mod groups;

use std::collections::{BTreeSet, HashMap, HashSet};

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

/// What came of comparing.
#[derive(Debug, Default)]
struct Decided {
    merges: Vec<Merge>,
    contradictions: Vec<NewContradiction>,
    /// Their vectors are not where they should be.
    lost: Vec<i64>,
    /// What was compared with what.
    groups: Groups,
    /// Of all that were compared, by their numbers.
    ids: HashMap<i64, Uuid>,
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
            let decided = decide(&ctx, &tools, &space, &vectors, &new).await?;
            // Vectors that are dropped under our hands would look like lost ones.
            still(&ctx, &tools, &space).await?;
            let done = apply(&ctx, &space, &vectors, &new, &decided).await?;
            compared += new.len();
            merged += done;
            refused += decided.contradictions.len();
            without += decided.lost.len();
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

/// What is to become of new facts. Nothing is changed.
async fn decide(
    ctx: &JobContext,
    tools: &Tools,
    space: &EmbeddingSpace,
    vectors: &Vectors,
    new: &[Comparable],
) -> Result<Decided, JobError> {
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
    let all: Vec<i64> = known.iter().chain(new).map(|fact| fact.no).collect();
    let groups = Groups::read(&mut tx, ctx.repository(), &all).await?;
    tx.commit().await?;
    let ids = known.iter().chain(new).map(|fact| (fact.no, fact.id.uuid())).collect();
    let known = known.into_iter().map(|fact| (fact.id.uuid(), fact)).collect();
    Ok(Decided { lost, ids, ..pair(new, &near, &known, groups) })
}

/// Each new fact with the nearest that says the same, the oldest facts first.
fn pair(
    new: &[Comparable],
    near: &HashMap<Uuid, Vec<Near>>,
    known: &HashMap<Uuid, Comparable>,
    mut groups: Groups,
) -> Decided {
    let mut decided = Decided { groups: groups.clone(), ..Decided::default() };
    // A fact takes part in one merge only as the one that goes, and not at all as one that others go into then.
    let (mut gone, mut kept) = (HashSet::new(), HashSet::new());
    for fact in new {
        let others = near.get(&fact.id.uuid()).into_iter().flatten();
        let others = others.filter_map(|near| Some((known.get(&near.id)?, near.cosine)));
        // Older ones first: who takes in a younger one can't go into an older one any more.
        let (older, younger): (Vec<_>, Vec<_>) = others
            .filter(|(other, _)| other.no != fact.no && other.kind == fact.kind)
            .partition(|(other, _)| other.no < fact.no);
        for (other, cosine) in older.into_iter().chain(younger) {
            let (old, young) = if other.no < fact.no { (other, fact) } else { (fact, other) };
            match groups.compare(old, young) {
                Verdict::Same => {}
                Verdict::Judged => continue,
                Verdict::Differ(difference) => {
                    let facts = (old.no, young.no);
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

/// Does what was decided, as far as nothing has changed meanwhile; returns how many became a part of another.
async fn apply(
    ctx: &JobContext,
    space: &EmbeddingSpace,
    vectors: &Vectors,
    new: &[Comparable],
    decided: &Decided,
) -> Result<usize, JobError> {
    let repository = ctx.repository();
    let sides: Vec<i64> = decided.merges.iter().flat_map(|merge| [merge.fact, merge.into]).collect();
    let differing = decided.contradictions.iter().flat_map(|found| [found.facts.0, found.facts.1]);
    let concerned: BTreeSet<i64> =
        new.iter().map(|fact| fact.no).chain(sides.iter().copied()).chain(differing).collect();
    let concerned: Vec<i64> = concerned.into_iter().collect();
    let mut tx = ctx.step().await?;
    let open: HashSet<i64> = fact_merges::hold(&mut tx, repository, &concerned).await?.into_iter().collect();
    // They may have come to stand for more meanwhile, or somebody said that two are not the same.
    let now = Groups::read(&mut tx, repository, &sides).await?;
    let judged = decided.groups.is_judged_since(&now);
    let same = |fact| open.contains(&fact) && decided.groups.is_as_before(&now, fact);
    let (merges, stale): (Vec<Merge>, Vec<Merge>) =
        decided.merges.iter().partition(|merge| !judged && same(merge.fact) && same(merge.into));
    fact_merges::merge(&mut tx, repository, &merges, ctx.id()).await?;
    let still: Vec<NewContradiction> = decided
        .contradictions
        .iter()
        .filter(|found| open.contains(&found.facts.0) && open.contains(&found.facts.1))
        .copied()
        .collect();
    fact_contradictions::insert(&mut tx, repository, &still).await?;
    fact_vectors::mark(&mut tx, repository, &decided.lost, None).await?;
    // Those whose other half went away meanwhile are compared once more, and those without a vector when they have one.
    let again: HashSet<i64> =
        stale.iter().flat_map(|merge| [merge.fact, merge.into]).chain(decided.lost.iter().copied()).collect();
    let settled: Vec<i64> =
        new.iter().map(|fact| fact.no).filter(|no| open.contains(no) && !again.contains(no)).collect();
    fact_merges::settle(&mut tx, repository, &settled).await?;
    tx.commit().await?;
    let ids: Vec<Uuid> = merges.iter().filter_map(|merge| decided.ids.get(&merge.fact).copied()).collect();
    // What is left behind here is swept up by `cleanup_facts`.
    let tenant = Tenant::new(repository, ctx.database());
    vectors.store().remove(&tenant, &vectors.space(space), &ids).await.map_err(or_wait)?;
    Ok(merges.len())
}
