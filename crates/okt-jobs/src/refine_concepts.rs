//! Finds concepts that are one thing under two names, and merges them. Reads the concepts of a repository that nobody has
//! compared yet, a few in each run, and leaves them compared.
//!
//! What may be the same is found by spelling, by aliases and by vectors, within a context, or where one of the two contexts is
//! the catch-all. Certain spellings and abbreviations are merged at once. Of the others a model is asked, if one is configured;
//! merging two things is worse than keeping one twice, so whatever is missing or unclear keeps both. What a person parted is not
//! merged again, and every merge can be undone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use okt_ai::{Asker, Billing, RepositoryBudget, SubjectBudget, Unanswered};
use okt_extract::concepts::twins::{
    Shown, TwinVerdict, is_abbreviation, is_same_spelling, read_twins, spellings, twin_question,
};
use okt_extract::{Promptset, concepts};
use okt_model::{
    CATCH_ALL_CONTEXT, ConceptMergedBy, Cost, EmbedConcepts, Error, JobId, NewConceptMerge, Operation,
    Progress, RefineConcepts, RefreshConceptRelations, Result, Subject, SubjectKind, name_key,
};
use okt_providers::ai::Model;
use okt_queue::{Finished, JobCommit, JobContext, JobError};
use okt_store::concept_vectors::{self, DescribedConcept};
use okt_store::outbox::{self, When};
use okt_store::{concept_merges, concept_twins, curation, promptsets, repository_settings};
use okt_vectors::Tenant;
use uuid::Uuid;

use crate::Tools;
use crate::asking::{Patience, RUNS, Stopped};
use crate::embed_facts::{current, or_wait};

/// Concepts that one is compared with by a model, at most.
const MOST_OTHERS: usize = 6;
/// The nearest by their vectors, at most, and the least cosine.
const NEAREST: u32 = 5;
const NEAR: f32 = 0.75;

/// Asks for concepts to be compared, where the repository has that done.
pub(crate) async fn push(tx: &mut JobCommit, ctx: &JobContext, tools: &Tools) -> Result<(), JobError> {
    if is_on(ctx, tools).await? {
        tx.push(&RefineConcepts {}, When::default()).await?;
    }
    Ok(())
}

async fn is_on(ctx: &JobContext, tools: &Tools) -> Result<bool, JobError> {
    let mut conn = ctx.databases().acquire_system().await?;
    let settings = repository_settings::find(&mut conn, ctx.repository()).await?.unwrap_or_default();
    Ok(settings.stages.refinement.unwrap_or(tools.config().providers.refinement.enabled))
}

/// Two concepts by their numbers, the smaller one first.
type Pair = (i64, i64);

/// What became of pairs.
#[derive(Default)]
struct Found {
    /// Who says that they are one, and why.
    same: BTreeMap<Pair, (ConceptMergedBy, String)>,
    verdicts: BTreeMap<Pair, &'static str>,
    /// Concepts without a usable answer.
    failed: u64,
}

/// A concept that becomes a part of another one.
struct Merge {
    concept: i64,
    into: i64,
    by: ConceptMergedBy,
    reason: String,
}

pub(crate) async fn run(_: RefineConcepts, ctx: JobContext, tools: Tools) -> Result<Finished, JobError> {
    if !is_on(&ctx, &tools).await? {
        return ctx.begin().await?.commit(None).await;
    }
    // Two would ask about the same pairs.
    ctx.one_at_a_time().await?;
    let judge = Judge::new(&ctx, &tools).await?;
    // A model is asked about what is near, too: what has no vector yet waits for it.
    let space = current(&tools).await?.filter(|_| judge.is_some()).map(|(space, _)| space.no);
    let limit = i64::from(tools.config().providers.refinement.max_candidates_per_run);
    let mut tx = ctx.checkpoint().await?;
    let mut numbers = concept_twins::list_unrefined(&mut tx, ctx.repository(), space, limit + 1).await?;
    tx.commit().await?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = numbers.len() > limit;
    numbers.truncate(limit);
    let work = Work::read(&ctx, &tools, judge, &numbers).await?;
    let mut found = work.by_rule();
    let stopped = match &work.judge {
        Some(judge) => judge.ask(&ctx, &tools, &work, &mut found).await,
        None => None,
    };
    // What was answered is paid for, so it is kept, whatever the other questions met.
    let merged = write(&ctx, &tools, &work, &found).await?;
    if let Some(stopped) = stopped {
        return Err(stopped);
    }
    let mut tx = ctx.begin().await?;
    concept_twins::mark_refined(&mut tx, ctx.repository(), &numbers).await?;
    if more {
        tx.push(&RefineConcepts {}, When::default()).await?;
    }
    let output = serde_json::json!({
        "concepts": numbers.len(), "merged": merged, "judged": found.verdicts.len(), "failed": found.failed,
    });
    tx.commit(Some(output)).await
}

/// Keeps the verdicts, and merges. Each merge in a transaction of its own: it holds contexts that others wait for, and counts.
/// Returns how many there were.
async fn write(ctx: &JobContext, tools: &Tools, work: &Work, found: &Found) -> Result<u64, JobError> {
    let merges = merges(ctx, work, found).await?;
    let parts: BTreeSet<i64> = merges.iter().map(|merge| merge.concept).collect();
    if let Some(judge) = &work.judge {
        // Those of pairs that become one are said by the journal.
        let apart = |(one, other): &Pair| !parts.contains(one) && !parts.contains(other);
        let verdicts: Vec<(Pair, &str)> = found
            .verdicts
            .iter()
            .filter(|(pair, verdict)| **verdict != "same" || apart(pair))
            .map(|(pair, verdict)| (*pair, *verdict))
            .collect();
        let mut tx = ctx.checkpoint().await?;
        concept_twins::insert_verdicts(&mut tx, ctx.repository(), &verdicts, judge.id).await?;
        tx.commit().await?;
    }
    let mut count = 0;
    for Merge { concept, into, by, reason } in merges {
        let (concept, into) = (work.known[&concept].id, work.known[&into].id);
        let merge =
            NewConceptMerge { concept, into, by, job: Some(ctx.id()), person: None, reason: Some(reason) };
        let repository = ctx.repository();
        let mut tx = ctx.checkpoint().await?;
        // One that is missing now was merged or taken away meanwhile, or a person has parted the two.
        if curation::merge(&mut tx, repository, &merge).await?.is_some() {
            count += 1;
            let relations = RefreshConceptRelations {};
            outbox::push(&mut tx, repository, JobId::mint(), &relations, When::default()).await?;
            if tools.vectors().is_some() {
                let vectors = EmbedConcepts { source: None, concepts: vec![into] };
                outbox::push(&mut tx, repository, JobId::mint(), &vectors, When::default()).await?;
            }
        }
        tx.commit().await?;
    }
    Ok(count)
}

/// What becomes a part of what. If A is B and B is C, all three are one, unless somebody said that two of them are not, or they
/// would be of two contexts beside the catch-all: then the later pair stays apart. All of one thing go into the best of them.
async fn merges(ctx: &JobContext, work: &Work, found: &Found) -> Result<Vec<Merge>, JobError> {
    let mut different: BTreeSet<Pair> = found
        .verdicts
        .iter()
        .filter(|(_, verdict)| **verdict == "different")
        .map(|(pair, _)| *pair)
        .collect();
    if let Some(judge) = &work.judge {
        let concerned: BTreeSet<i64> = found.same.keys().flat_map(|(one, other)| [*one, *other]).collect();
        let all = concerned.iter().flat_map(|one| concerned.range(one + 1..).map(|other| (*one, *other)));
        let all: Vec<Pair> = all.collect();
        let mut tx = ctx.checkpoint().await?;
        let judged = concept_twins::list_judged(&mut tx, ctx.repository(), &all, judge.id).await?;
        tx.commit().await?;
        different.extend(judged.into_iter().filter(|(_, different)| *different).map(|(pair, _)| pair));
    }
    // Rules first: they are certain.
    let mut pairs: Vec<(&Pair, &(ConceptMergedBy, String))> = found.same.iter().collect();
    pairs.sort_by_key(|(pair, (by, _))| (*by != ConceptMergedBy::Rule, **pair));
    let mut things: Vec<BTreeSet<i64>> = Vec::new();
    let mut reasons: BTreeMap<i64, (ConceptMergedBy, String)> = BTreeMap::new();
    for (pair, why) in pairs {
        let mut take = |no: i64| match things.iter().position(|thing| thing.contains(&no)) {
            Some(at) => things.swap_remove(at),
            None => BTreeSet::from([no]),
        };
        let one = take(pair.0);
        if one.contains(&pair.1) {
            things.push(one);
            continue;
        }
        let other = take(pair.1);
        let mut across = one.iter().flat_map(|a| other.iter().map(|b| (*a.min(b), *a.max(b))));
        let contexts =
            one.iter().chain(&other).map(|no| &work.known[no]).filter(|known| !is_catch_all(known));
        let contexts: BTreeSet<&str> = contexts.map(|known| known.context.as_str()).collect();
        if contexts.len() > 1 || across.any(|pair| different.contains(&pair)) {
            things.extend([one, other]);
            continue;
        }
        for no in [pair.0, pair.1] {
            reasons.entry(no).or_insert_with(|| why.clone());
        }
        things.push(one.into_iter().chain(other).collect());
    }
    let mut merges = Vec::new();
    for thing in things {
        let best = thing.iter().copied().max_by_key(|no| rank(&work.known[no]));
        for concept in thing {
            let (Some(into), Some((by, reason))) = (best, reasons.remove(&concept)) else { continue };
            if concept != into {
                merges.push(Merge { concept, into, by, reason });
            }
        }
    }
    Ok(merges)
}

/// Which of those that are one thing stays: one that a person named, one that somebody has said the class of, the one with the
/// most facts, the oldest.
fn rank(concept: &DescribedConcept) -> (bool, bool, i64, std::cmp::Reverse<i64>) {
    (concept.renamed, !is_catch_all(concept), concept.fact_count, std::cmp::Reverse(concept.no))
}

/// Concepts to compare, those that they may be the same as, and who decides what no rule does.
struct Work {
    known: BTreeMap<i64, DescribedConcept>,
    /// Pairs that may be one thing, and that nobody has parted or judged.
    pairs: BTreeSet<Pair>,
    /// For names by which two may be one: all other concepts that have that name or alias.
    namesakes: BTreeMap<i64, BTreeSet<i64>>,
    judge: Option<Judge>,
}

impl Work {
    async fn read(
        ctx: &JobContext,
        tools: &Tools,
        judge: Option<Judge>,
        numbers: &[i64],
    ) -> Result<Self, JobError> {
        let repository = ctx.repository();
        let mut tx = ctx.checkpoint().await?;
        let described = concept_vectors::describe(&mut tx, repository, numbers).await?;
        let mut names = BTreeSet::new();
        for concept in &described {
            let mut all = spellings(&name_key(&concept.name));
            all.extend(concept.aliases.iter().map(|alias| name_key(alias)));
            names.extend(all.into_iter().map(|name| (concept.no, name)));
        }
        let names: Vec<(i64, String)> = names.into_iter().collect();
        let mut pairs = concept_twins::list_namesakes(&mut tx, repository, &names).await?;
        tx.commit().await?;
        if judge.is_some() {
            pairs.extend(near(ctx, tools, &described).await?);
        }
        let mut tx = ctx.checkpoint().await?;
        let others: BTreeSet<i64> = pairs.iter().map(|(_, other)| *other).collect();
        let others: Vec<i64> = others.into_iter().filter(|no| !numbers.contains(no)).collect();
        let others = concept_vectors::describe(&mut tx, repository, &others).await?;
        let known: BTreeMap<i64, DescribedConcept> =
            described.into_iter().chain(others).map(|concept| (concept.no, concept)).collect();
        let mut work = Self { known, pairs: BTreeSet::new(), namesakes: BTreeMap::new(), judge };
        let open: BTreeSet<Pair> =
            pairs.into_iter().map(|(one, other)| (one.min(other), one.max(other))).collect();
        let open: Vec<Pair> = open.into_iter().filter(|pair| work.may_be_one(*pair)).collect();
        let parted = concept_merges::parted(&mut tx, repository, &open).await?;
        work.pairs = open.into_iter().filter(|pair| !parted.contains(pair)).collect();
        if let Some(judge) = &work.judge {
            let all: Vec<Pair> = work.pairs.iter().copied().collect();
            for judged in concept_twins::list_judged(&mut tx, repository, &all, judge.id).await?.into_keys() {
                work.pairs.remove(&judged);
            }
        }
        let concerned: BTreeSet<i64> = work.pairs.iter().flat_map(|(one, other)| [*one, *other]).collect();
        let names: Vec<(i64, String)> =
            concerned.into_iter().map(|no| (no, name_key(&work.known[&no].name))).collect();
        for (one, other) in concept_twins::list_namesakes(&mut tx, repository, &names).await? {
            work.namesakes.entry(one).or_default().insert(other);
        }
        tx.commit().await?;
        Ok(work)
    }

    /// Whether both are in one context, or one of them in the catch-all.
    fn may_be_one(&self, (one, other): Pair) -> bool {
        let (Some(one), Some(other)) = (self.known.get(&one), self.known.get(&other)) else { return false };
        one.context == other.context || is_catch_all(one) || is_catch_all(other)
    }

    /// What is certain without asking anybody.
    fn by_rule(&self) -> Found {
        let mut found = Found::default();
        for pair in &self.pairs {
            if let Some(reason) = self.certain(&self.known[&pair.0], &self.known[&pair.1]) {
                found.same.insert(*pair, (ConceptMergedBy::Rule, reason.to_owned()));
            }
        }
        found
    }

    /// Why two concepts are certainly one thing, if they are.
    fn certain(&self, one: &DescribedConcept, other: &DescribedConcept) -> Option<&'static str> {
        let (key, other_key) = (name_key(&one.name), name_key(&other.name));
        // A name that several have may be any of them.
        let only = |named: &DescribedConcept, other: &DescribedConcept| {
            self.namesakes.get(&named.no).is_some_and(|all| *all == BTreeSet::from([other.no]))
        };
        let abbreviates = |short: &DescribedConcept, long: &DescribedConcept| {
            long.aliases.contains(&short.name)
                && is_abbreviation(&short.name, &long.name)
                && only(short, long)
        };
        if one.context != other.context {
            let (caught, known) = if is_catch_all(one) { (one, other) } else { (other, one) };
            if key == other_key {
                return only(caught, known).then_some("the same name, once without a context");
            }
            let spelled_alike = |no: &i64| {
                let name = self.known.get(no).map(|concept| name_key(&concept.name));
                *no != caught.no && name.is_some_and(|name| is_same_spelling(&name, &name_key(&caught.name)))
            };
            let alike = self.pairs.iter().filter(|pair| pair.0 == caught.no || pair.1 == caught.no);
            let alike = alike.flat_map(|(one, other)| [one, other]).filter(|no| spelled_alike(no)).count();
            let has_no_other =
                self.namesakes.get(&caught.no).is_none_or(|all| all.iter().all(|no| *no == known.no));
            if is_same_spelling(&key, &other_key) && alike == 1 && has_no_other {
                return Some("two spellings of one name, once without a context");
            }
        } else if is_same_spelling(&key, &other_key) {
            return Some("two spellings of one name");
        }
        (abbreviates(one, other) || abbreviates(other, one)).then_some("a name and its abbreviation")
    }
}

fn is_catch_all(concept: &DescribedConcept) -> bool {
    concept.context.eq_ignore_ascii_case(CATCH_ALL_CONTEXT)
}

/// Concepts whose vectors are near those of these.
async fn near(
    ctx: &JobContext,
    tools: &Tools,
    concepts: &[DescribedConcept],
) -> Result<BTreeSet<(i64, i64)>, JobError> {
    let Some((space, vectors)) = current(tools).await? else { return Ok(BTreeSet::new()) };
    let (tenant, place) = (Tenant::new(ctx.repository(), ctx.database()), vectors.concept_space(&space));
    let embedded = concepts.iter().filter(|concept| concept.embedded_in == Some(space.no));
    let of: BTreeMap<Uuid, i64> =
        embedded.filter_map(|concept| Some((concept.vector?, concept.no))).collect();
    let ids: Vec<Uuid> = of.keys().copied().collect();
    let points = vectors.store().find(&tenant, &place, &ids).await.map_err(or_wait)?;
    let queries: Vec<Vec<f32>> = points.iter().map(|point| point.vector.clone()).collect();
    // Itself is the nearest.
    let found =
        vectors.store().nearest(&tenant, &place, &queries, NEAREST + 1, NEAR).await.map_err(or_wait)?;
    let ids: BTreeSet<Uuid> = found.iter().flatten().map(|near| near.id).collect();
    let ids: Vec<Uuid> = ids.into_iter().collect();
    let mut tx = ctx.checkpoint().await?;
    let known: BTreeMap<Uuid, i64> =
        concept_vectors::find(&mut tx, ctx.repository(), &ids).await?.into_iter().collect();
    tx.commit().await?;
    let mut pairs = BTreeSet::new();
    for (point, near) in points.iter().zip(found) {
        let others = near.iter().filter_map(|near| known.get(&near.id));
        let Some(one) = of.get(&point.id) else { continue };
        pairs.extend(others.filter(|other| *other != one).map(|other| (*one, *other)));
    }
    Ok(pairs)
}

/// A model that is asked about what no rule decides.
struct Judge {
    model: Model,
    promptset: Promptset,
    /// The model and its instructions as one number.
    id: i64,
    budget: Arc<RepositoryBudget>,
}

/// What came of the question about a concept; nothing where it was not asked because of what another one met.
type Ended = (i64, Vec<i64>, Option<Result<Vec<TwinVerdict>, Unanswered>>);

impl Judge {
    async fn new(ctx: &JobContext, tools: &Tools) -> Result<Option<Self>, JobError> {
        let name = &tools.config().providers.refinement.model;
        if name.is_empty() {
            return Ok(None);
        }
        let model = tools.ai().model(name)?;
        let mut conn = ctx.databases().acquire_system().await?;
        let used = promptsets::find_used(&mut conn, ctx.repository()).await?;
        drop(conn);
        let promptset = Promptset::of(used.as_ref()).map_err(Error::internal)?;
        let id = concepts::reader(name, promptset.registry_hash());
        let budget = Arc::new(RepositoryBudget::open(tools.ai(), ctx.repository()).await?);
        Ok(Some(Self { model, promptset, id, budget }))
    }

    /// Asks about all pairs that no rule decides, for each concept once; returns why not all were answered.
    async fn ask(&self, ctx: &JobContext, tools: &Tools, work: &Work, found: &mut Found) -> Option<JobError> {
        let mut of: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
        for pair in work.pairs.iter().filter(|pair| !found.same.contains_key(pair)) {
            let others = of.entry(pair.1).or_default();
            if others.len() < MOST_OTHERS {
                others.push(pair.0);
            }
        }
        let patience = Patience::default();
        let concurrency =
            usize::try_from(tools.config().providers.refinement.max_concurrency.max(1)).unwrap_or(1);
        let total = u64::try_from(of.len()).ok();
        ctx.progress(Progress { stage: "concepts".to_owned(), done: 0, total, message: None });
        let one = |(concept, others): (i64, Vec<i64>)| {
            let patience = &patience;
            async move {
                if patience.is_over() {
                    return (concept, others, None);
                }
                let ended = self.one(ctx, tools, work, concept, &others).await;
                patience.hear(&ended);
                (concept, others, Some(ended))
            }
            .boxed()
        };
        let calls: Vec<BoxFuture<'_, Ended>> = of.into_iter().map(one).collect();
        // Those that are out are waited for, whatever the others met: they are paid for.
        let ended: Vec<Ended> = stream::iter(calls).buffered(concurrency).collect().await;
        let mut stopped = None;
        for (concept, others, ended) in ended {
            match ended {
                Some(Ok(verdicts)) => found.take(concept, &others, verdicts),
                Some(Err(unanswered)) => {
                    found.failed += u64::from(Stopped::keep(&mut stopped, unanswered).is_some());
                }
                None => {}
            }
        }
        Some(match stopped? {
            Stopped::Wait { why, delay, .. } => JobError::Waits { why, delay },
            Stopped::Retryable(error) if error.retryable() && ctx.attempt() < RUNS => error.into(),
            Stopped::Retryable(error) => Error::Operator(error.to_string()).into(),
            Stopped::Permanent { message, .. } => Error::Operator(message).into(),
        })
    }

    async fn one(
        &self,
        ctx: &JobContext,
        tools: &Tools,
        work: &Work,
        concept: i64,
        others: &[i64],
    ) -> Result<Vec<TwinVerdict>, Unanswered> {
        let concept = &work.known[&concept];
        let others: Vec<Shown<'_>> = others.iter().map(|other| shown(&work.known[other])).collect();
        let mut question = twin_question(&self.promptset, shown(concept), &others);
        question.max_tokens = tools.config().providers.refinement.max_tokens;
        let billing = Billing {
            repository: ctx.repository(),
            database: ctx.database().to_owned(),
            subject: Some(Subject::new(SubjectKind::Concept, concept.id.uuid())),
            job: Some(ctx.id()),
        };
        let read = |answer: &str| read_twins(answer, others.len());
        let key = question.key(self.model.id());
        let answered = tools.ai().answered(&billing, &[key]).await?;
        if let Some(Ok(verdicts)) = answered.get(&key).map(|earlier| read(&earlier.answer)) {
            return Ok(verdicts);
        }
        let on_cost = |cost: Cost| ctx.spent(cost);
        let budget = SubjectBudget::unlimited();
        let asker = Asker::new(tools.ai(), billing, budget, Arc::clone(&self.budget), &on_cost);
        let verdicts = asker.ask(&self.model, Operation::ConceptRefinement, &question, None, read).await?;
        asker.stored().await?;
        Ok(verdicts)
    }
}

fn shown(concept: &DescribedConcept) -> Shown<'_> {
    Shown { name: &concept.name, context: &concept.context, aliases: &concept.aliases, facts: &concept.facts }
}

impl Found {
    fn take(&mut self, concept: i64, others: &[i64], verdicts: Vec<TwinVerdict>) {
        for (other, verdict) in others.iter().zip(verdicts) {
            let pair = (concept.min(*other), concept.max(*other));
            let word = match verdict {
                TwinVerdict::Same(reason) => {
                    let reason = if reason.is_empty() { "a model says so".to_owned() } else { reason };
                    self.same.insert(pair, (ConceptMergedBy::Judge, reason));
                    "same"
                }
                TwinVerdict::Different => "different",
                TwinVerdict::Unsure => "unsure",
            };
            self.verdicts.insert(pair, word);
        }
    }
}
