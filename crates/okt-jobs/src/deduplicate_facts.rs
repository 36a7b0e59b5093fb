//! Merges facts that say the same. Reads facts that are `new`, and leaves them `stable` or `duplicate`.
//!
//! Facts whose vectors are near each other are candidates. A claim and its opposite are near each other too, so the texts of
//! two candidates are compared before they are merged, and the texts of their duplicates with them: two facts that contradict
//! each other may both be near a third. `providers.dedup.policy` says when two facts are merged. The younger one then becomes
//! a duplicate of the older one; what the sources say is not changed. If the texts differ in a way that can be named, both
//! facts stay and the pair is recorded as a candidate contradiction. If it can't, both stay and join a similar group
//! (`similar`).
//!
//! Comparing is slow, so it is done without locks, on facts that were read before. Then the facts are locked, and what has
//! changed since they were read is not merged but compared again in the next round.

mod groups;
mod judge;
mod languages;
mod similar;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

use okt_config::DedupPolicy;
use okt_model::{
    CleanupFacts, ContradictionFoundBy, DeduplicateFacts, EmbedFacts, EmbeddingSpace, Error, Progress, Result,
};
use okt_queue::{Finished, JobContext, JobError};
use okt_store::fact_contradictions::{self, NewContradiction};
use okt_store::fact_merges::{self, Comparable, Merge};
use okt_store::outbox::When;
use okt_store::{fact_groups, fact_vectors};
use okt_vectors::{Near, Tenant, Vectors, cosine};
use uuid::Uuid;

pub(crate) use self::groups::{Compared, PAIRS, compare};
use self::groups::{GroupComparison, Groups, Members};
use self::judge::{Doubt, Judge};
pub(crate) use self::languages::Languages;
use self::similar::Similar;
use crate::Tools;
use crate::embed_facts::{current, or_wait, still};
use crate::{check_reports, extract_concepts};

const BATCH: i64 = 256;
/// How many of the nearest are looked at.
const NEIGHBOURS: u32 = 16;
/// A fact that others change at the same time is looked at again.
const ROUNDS: u32 = 5;
/// For so long facts of a batch are compared; the next batch begins with the first that was not.
const COMPARING: Duration = Duration::from_secs(2);
/// Until facts and vectors are checked against each other; what comes meanwhile is checked with it.
pub(crate) const CLEANUP_MS: i64 = 6 * 60 * 60 * 1_000;

/// What new facts may be the same as.
struct Proposed {
    near: HashMap<Uuid, Vec<Near>>,
    /// Representatives of groups that some of the nearest are in, and that are near enough themselves.
    beyond: HashMap<Uuid, Vec<i64>>,
    /// Those of them that can be merged.
    known: HashMap<Uuid, Comparable>,
    /// Their ids.
    ids: HashMap<i64, Uuid>,
    /// New facts whose vectors are not where they should be.
    lost: Vec<i64>,
}

/// What is to become of them, if nothing has changed since they were read.
struct Decided {
    merges: Vec<Merge>,
    contradictions: Vec<NewContradiction>,
    similar: Similar,
    /// The new facts that were compared with all that is near them.
    compared: Vec<Comparable>,
    proposed: Proposed,
    /// The duplicates of each fact, and which pairs people had separated, when they were read.
    before: Members,
}

pub(crate) async fn run(
    payload: DeduplicateFacts,
    ctx: JobContext,
    tools: Tools,
) -> Result<Finished, JobError> {
    let (mut compared, mut merged, mut grouped, mut refused, mut without) = (0, 0, 0, 0, 0);
    let mut judge = match tools.config().providers.dedup.policy {
        DedupPolicy::Judge => Some(Judge::new(&ctx, &tools, payload.source).await?),
        DedupPolicy::Rule | DedupPolicy::Cosine => None,
    };
    if let Some((space, vectors)) = current(&tools).await? {
        if payload.source.is_none() {
            let age = tools.config().providers.dedup.catchup_max_age.duration();
            let mut tx = ctx.checkpoint().await?;
            let settled = fact_merges::settle_old(&mut tx, ctx.repository(), age).await?;
            extract_concepts::push_for(&mut tx, &tools, ctx.repository(), &settled).await?;
            tx.commit().await?;
        }
        let (mut after, mut round) = (0, 0);
        loop {
            let mut tx = ctx.checkpoint().await?;
            let new = fact_merges::list_new(&mut tx, ctx.repository(), payload.source, after, BATCH).await?;
            tx.commit().await?;
            if new.is_empty() {
                round += 1;
                if after == 0 || round == ROUNDS {
                    break;
                }
                // Those that others changed meanwhile, if there are any.
                after = 0;
                continue;
            }
            let proposed = propose(&ctx, &tools, &space, &vectors, &new).await?;
            // Vectors that were dropped meanwhile would look like lost ones.
            still(&tools, &space).await?;
            let decided = decide(&ctx, &tools, judge.as_mut(), new, proposed).await?;
            after = decided.compared.last().map_or(after, |fact| fact.no);
            compared += decided.compared.len();
            refused += decided.contradictions.len();
            without += decided.proposed.lost.len();
            let applied = apply(&ctx, &tools, &payload, (&space, &vectors), decided).await?;
            merged += applied.merged;
            grouped += applied.grouped;
            let done = u64::try_from(compared).unwrap_or(u64::MAX);
            ctx.progress(Progress { stage: "facts".to_owned(), done, total: None, message: None });
        }
    }
    let mut tx = ctx.begin().await?;
    if without > 0 && payload.source.is_some() {
        tx.push(&EmbedFacts { source: payload.source }, When::default()).await?;
    }
    if let Some(source) = payload.source {
        extract_concepts::push(&mut tx, &tools, source).await?;
    }
    // Who took the source apart has asked for it already.
    if payload.source.is_none() {
        tx.push(&CleanupFacts { soon: false }, When { delay_ms: CLEANUP_MS, ..When::default() }).await?;
    }
    check_reports::push(&mut tx, ctx.repository()).await?;
    let mut output = serde_json::json!({
        "compared": compared, "merged": merged, "grouped": grouped, "candidate_contradictions": refused,
    });
    if let Some(judge) = &judge {
        judge.describe(&mut output);
    }
    tx.commit(Some(output)).await
}

/// The nearest of new facts, where the model knows their language. Nothing is changed.
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
    let providers = &tools.config().providers;
    let languages = Languages::new(providers.embedding.languages_of(&space.model));
    let understood: HashSet<Uuid> =
        new.iter().filter(|fact| languages.know(fact)).map(|fact| fact.id.uuid()).collect();
    let (found, queries): (Vec<Uuid>, Vec<Vec<f32>>) = points
        .into_iter()
        .filter(|point| understood.contains(&point.id))
        .map(|point| (point.id, point.vector))
        .unzip();
    #[expect(clippy::cast_possible_truncation, reason = "cosines have no more digits than that")]
    let threshold = providers.dedup.threshold as f32;
    let near =
        vectors.store().nearest(&tenant, &place, &queries, NEIGHBOURS, threshold).await.map_err(or_wait)?;
    let own: HashMap<Uuid, Vec<f32>> = found.iter().copied().zip(queries).collect();
    let near: HashMap<Uuid, Vec<Near>> = found.into_iter().zip(near).collect();
    let ids: BTreeSet<Uuid> = near.values().flatten().map(|near| near.id).collect();
    let ids: Vec<Uuid> = ids.into_iter().collect();
    // The store is not asked who may be compared with whom.
    let mut tx = ctx.read().await?;
    let known = fact_merges::list_comparable(&mut tx, ctx.repository(), &ids).await?;
    tx.commit().await?;
    let known = known.into_iter().filter(|fact| languages.know(fact));
    let known: HashMap<Uuid, Comparable> = known.map(|fact| (fact.id.uuid(), fact)).collect();
    let ids = known.values().map(|fact| (fact.no, fact.id.uuid())).collect();
    let mut proposed = Proposed { near, beyond: HashMap::new(), known, ids, lost };
    // In a large group the nearest are members, and the representative is not among them.
    let wanted = proposed.unseen_representatives();
    let ids: BTreeSet<Uuid> = wanted.iter().map(|(_, representative)| *representative).collect();
    let ids: Vec<Uuid> = ids.into_iter().collect();
    let points = vectors.store().find(&tenant, &place, &ids).await.map_err(or_wait)?;
    let points: HashMap<Uuid, Vec<f32>> = points.into_iter().map(|point| (point.id, point.vector)).collect();
    for (fact, representative) in wanted {
        let Some((one, other)) = own.get(&fact).zip(points.get(&representative)) else { continue };
        if cosine(one, other) >= f64::from(threshold) {
            let no = proposed.known[&representative].no;
            proposed.beyond.entry(fact).or_default().push(no);
        }
    }
    Ok(proposed)
}

/// Compares new facts with what is near them, which may take a core for seconds and a model for longer. No row is held
/// meanwhile.
async fn decide(
    ctx: &JobContext,
    tools: &Tools,
    judge: Option<&mut Judge<'_>>,
    mut new: Vec<Comparable>,
    mut proposed: Proposed,
) -> Result<Decided, JobError> {
    let policy = tools.config().providers.dedup.policy;
    let concerned = concerned(&new, &proposed);
    let numbers: Vec<i64> = concerned.keys().copied().collect();
    let mut tx = ctx.read().await?;
    let (duplicates, members) = fact_merges::list_members(&mut tx, ctx.repository(), &numbers).await?;
    let similar = Similar::new(members);
    let mut groups =
        Groups::read(&mut tx, ctx.repository(), &numbers, duplicates, &similar.numbers(), policy).await?;
    tx.commit().await?;
    if let Some(judge) = judge {
        let doubts;
        let found = tokio::task::spawn_blocking(move || doubt(new, proposed, groups));
        (new, proposed, groups, doubts) = found.await.map_err(Error::internal)?;
        groups.confirm(judge.confirmed(doubts).await?);
    }
    let decided = tokio::task::spawn_blocking(move || pair(new, proposed, groups, similar));
    Ok(decided.await.map_err(Error::internal)?)
}

/// How many facts became a part of another, and how many joined a group.
struct Applied {
    merged: usize,
    grouped: usize,
}

/// Makes one of those that say the same, and groups those that are alike, as far as nothing has changed since they were
/// compared. What has changed stays new, and is compared again.
async fn apply(
    ctx: &JobContext,
    tools: &Tools,
    payload: &DeduplicateFacts,
    (space, vectors): (&EmbeddingSpace, &Vectors),
    decided: Decided,
) -> Result<Applied, JobError> {
    let repository = ctx.repository();
    let Decided { merges, contradictions, similar, compared, proposed, before } = decided;
    let concerned = concerned(&compared, &proposed);
    let numbers: Vec<i64> = concerned.keys().copied().collect();
    let mut tx = ctx.checkpoint().await?;
    let held = fact_merges::hold(&mut tx, repository, &numbers).await?;
    let all: Vec<i64> = held.iter().map(|fact| fact.no).collect();
    let judged = fact_contradictions::list_judged(&mut tx, repository, &all).await?;
    let unchanged = before.unchanged(&held, &judged);
    let is_true = |merge: &Merge| unchanged.contains(&merge.fact) && unchanged.contains(&merge.into);
    let merges: Vec<Merge> = merges.into_iter().filter(is_true).collect();
    fact_merges::merge(&mut tx, repository, &merges, ctx.id()).await?;
    let (joins, outdated) = similar.still_true(&held, &unchanged);
    fact_groups::join(&mut tx, repository, &joins).await?;
    // What is gone or was rejected meanwhile contradicts nobody.
    let there = held.iter().filter(|fact| fact.open || fact.merged_into.is_some());
    let there: HashSet<i64> = there.map(|fact| fact.no).collect();
    let of_those = |one: &NewContradiction| there.contains(&one.facts.0) && there.contains(&one.facts.1);
    let contradictions: Vec<NewContradiction> = contradictions.into_iter().filter(of_those).collect();
    fact_contradictions::insert(&mut tx, repository, &contradictions).await?;
    fact_vectors::mark(&mut tx, repository, &proposed.lost, None).await?;
    // Those that something near has changed for are compared once more, and those without a vector when they have one.
    let settled = compared.iter().filter(|fact| {
        let mut others = proposed.of(fact);
        unchanged.contains(&fact.no)
            && !outdated.contains(&fact.no)
            && !proposed.lost.contains(&fact.no)
            && others.all(|(other, _)| unchanged.contains(&other.no))
    });
    let settled: Vec<i64> = settled.map(|fact| fact.no).collect();
    fact_merges::settle(&mut tx, repository, &settled).await?;
    // Of one source all facts are read together, at the end.
    if payload.source.is_none() {
        extract_concepts::push_for(&mut tx, tools, repository, &settled).await?;
    }
    tx.commit().await?;
    let gone: Vec<Uuid> = merges.iter().filter_map(|merge| concerned.get(&merge.fact).copied()).collect();
    // What is left behind here is swept up by `cleanup_facts`.
    let tenant = Tenant::new(repository, ctx.database());
    vectors.store().remove(&tenant, &vectors.space(space), &gone).await.map_err(or_wait)?;
    Ok(Applied { merged: merges.len(), grouped: joins.len() })
}

/// The numbers and ids of all that a decision may rest on.
fn concerned(new: &[Comparable], proposed: &Proposed) -> BTreeMap<i64, Uuid> {
    new.iter().chain(proposed.known.values()).map(|fact| (fact.no, fact.id.uuid())).collect()
}

impl Proposed {
    /// What may be the same as a fact, the nearest first.
    fn of(&self, fact: &Comparable) -> impl Iterator<Item = (&Comparable, f32)> {
        let near = self.near.get(&fact.id.uuid()).into_iter().flatten();
        near.filter_map(|near| Some((self.known.get(&near.id)?, near.cosine)))
    }

    /// The representatives of groups that a fact is near enough to, and facts near it that are in no group.
    fn representatives(&self, fact: &Comparable) -> impl Iterator<Item = &Comparable> {
        let near = self.of(fact).map(|(other, _)| other).filter(|other| other.similar_to.is_none());
        let beyond = self.beyond.get(&fact.id.uuid()).into_iter().flatten();
        near.chain(beyond.filter_map(|no| self.known.get(self.ids.get(no)?)))
    }

    /// Facts, each with a representative of one of the nearest that is not among the nearest itself.
    fn unseen_representatives(&self) -> BTreeSet<(Uuid, Uuid)> {
        let mut unseen = BTreeSet::new();
        for (fact, near) in &self.near {
            let seen: HashSet<Uuid> = near.iter().map(|near| near.id).collect();
            let groups = near.iter().filter_map(|near| self.known.get(&near.id)?.similar_to);
            let representatives = groups.filter_map(|no| self.ids.get(&no).copied());
            unseen.extend(representatives.filter(|id| !seen.contains(id)).map(|id| (*fact, id)));
        }
        unseen
    }
}

/// What a model is asked before new facts are paired, in the order of their numbers; of as many new facts as there is time for,
/// and at least one.
fn doubt(
    mut new: Vec<Comparable>,
    proposed: Proposed,
    mut groups: Groups,
) -> (Vec<Comparable>, Proposed, Groups, Vec<Doubt>) {
    let until = Instant::now() + COMPARING;
    let (mut doubts, mut compared) = (Vec::new(), 0);
    for fact in &new {
        if compared > 0 && Instant::now() > until {
            break;
        }
        compared += 1;
        let others = proposed.of(fact).map(|(other, _)| other);
        let others = others.filter(|other| other.no != fact.no && other.kind == fact.kind);
        let others: BTreeMap<i64, &Comparable> = others.map(|other| (other.no, other)).collect();
        for other in others.into_values() {
            let pairs = groups.unsure(fact, other);
            if !pairs.is_empty() {
                doubts.push(Doubt { fact: fact.no, pairs });
            }
        }
    }
    new.truncate(compared);
    (new, proposed, groups, doubts)
}

/// Each new fact with the nearest that says the same, the oldest facts first; as many as there is time for, and at least one.
/// Then those that are left with those that they are like.
fn pair(mut new: Vec<Comparable>, proposed: Proposed, mut groups: Groups, mut similar: Similar) -> Decided {
    let (before, until) = (groups.members(), Instant::now() + COMPARING);
    let (mut merges, mut contradictions) = (Vec::new(), Vec::new());
    // A fact takes part in one merge only as the one that goes, and not at all as one that others go into then.
    let (mut gone, mut kept) = (HashSet::new(), HashSet::new());
    let mut compared = 0;
    for fact in &new {
        if compared > 0 && Instant::now() > until {
            break;
        }
        compared += 1;
        // Older ones first: who takes in a younger one can't go into an older one any more.
        let (older, younger): (Vec<_>, Vec<_>) = proposed
            .of(fact)
            .filter(|(other, _)| other.no != fact.no && other.kind == fact.kind)
            .partition(|(other, _)| other.no < fact.no);
        for (other, cosine) in older.into_iter().chain(younger) {
            let (old, young) = if other.no < fact.no { (other, fact) } else { (fact, other) };
            match groups.compare(old, young) {
                GroupComparison::Same => {}
                GroupComparison::Unsure | GroupComparison::Apart => continue,
                GroupComparison::Differ { facts, difference } => {
                    contradictions.push(NewContradiction {
                        facts,
                        difference,
                        cosine,
                        found_by: ContradictionFoundBy::RefusedMerge,
                    });
                    continue;
                }
            }
            if gone.contains(&old.no) || gone.contains(&young.no) || kept.contains(&young.no) {
                continue;
            }
            gone.insert(young.no);
            kept.insert(old.no);
            merges.push(Merge { fact: young.no, into: old.no, cosine, by: groups.merged_by(old, young) });
            groups.join(young, old);
            if young.no == fact.no {
                break;
            }
        }
    }
    new.truncate(compared);
    let compared = similar.decide(&new, &proposed, &mut groups, &gone);
    new.truncate(compared);
    Decided { merges, contradictions, similar, compared: new, proposed, before }
}
