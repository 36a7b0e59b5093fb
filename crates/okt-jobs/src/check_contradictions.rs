//! Finds facts that contradict each other. Reads the facts that speak of new concepts since the last run, leaves them compared with those
//! near them that share a concept, and every pair judged once.
//!
//! First it is written down which pairs are to be judged; then they are judged a few at a time, in the order in which they were written
//! down. So a run that comes after one that died asks the same questions, which are answered already. A pair for which a model has not
//! answered goes on waiting.

use std::collections::HashMap;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use okt_ai::{Billing, Unanswered};
use okt_check::{Judge, Pair};
use okt_extract::posture::PAIRS_PER_QUESTION;
use okt_extract::{Sameness, compare};
use okt_model::{
    CheckContradictions, Cost, Difference, FactId, Posture, Progress, RepositoryId, Subject, SubjectKind,
};
use okt_queue::{Finished, JobCommit, JobContext, JobError};
use okt_store::fact_judgements::{self, JudgedPair, NearFact, WaitingPair};
use okt_store::outbox::When;
use okt_store::{fact_contradictions, model_answers};
use okt_vectors::{Near, Tenant};
use uuid::Uuid;

use crate::Tools;
use crate::asking::Stopped;
use crate::embed_facts::{current, or_wait};

/// Facts that are compared with their neighbours at once.
const FACTS: i64 = 128;
/// So many of the nearest are looked at for each one that may be judged: the others share no concept.
const OVER_FETCH: u32 = 3;
/// So many questions' pairs are read at once.
const QUESTIONS: usize = 8;

/// Has facts compared, if any are to be.
pub(crate) async fn push(tx: &mut JobCommit, repository: RepositoryId) -> Result<(), JobError> {
    if fact_judgements::is_any(tx, repository).await? {
        tx.push(&CheckContradictions {}, When::default()).await?;
    }
    Ok(())
}

pub(crate) async fn run(_: CheckContradictions, ctx: JobContext, tools: Tools) -> Result<Finished, JobError> {
    // Two would ask about the same pairs.
    ctx.one_at_a_time().await?;
    let judge = Judge::new(tools.ai(), tools.config(), ctx.databases(), ctx.repository(), true).await?;
    let (facts, pairs) = plan(&ctx, &tools, &judge).await?;
    let subject = Subject::new(SubjectKind::Repository, ctx.repository().uuid());
    let billing = Billing {
        repository: ctx.repository(),
        database: ctx.database().to_owned(),
        subject: Some(subject),
        job: Some(ctx.id()),
    };
    let judging = Judging { ctx: &ctx, tools: &tools, judge, billing };
    let (mut judged, mut found, mut stopped) = (0, 0, None);
    if !matches!(judging.judge, Judge::Nobody) {
        (judged, found, stopped) = judging.run().await?;
    }
    let failure = stopped.map(|stopped| stopped.or_again(&ctx, "pairs", judged)).transpose()?;
    let output = serde_json::json!({
        "facts": facts, "pairs": pairs, "judged": judged, "contradictions": found, "judged_by": judging.judge.name(),
    });
    if let Some((_, failure)) = failure {
        let tx = ctx.begin_discardable().await?;
        return tx.discard(failure, Some(output)).await;
    }
    let mut tx = ctx.begin().await?;
    fact_judgements::forget_gone(&mut tx, ctx.repository()).await?;
    // Nobody asks about these pairs again.
    model_answers::forget(&mut tx, ctx.repository(), subject).await?;
    tx.commit(Some(output)).await
}

/// Notes which pairs are to be judged; returns how many facts were looked at, and how many pairs there are. Without vectors or a judge there
/// are none, and nothing is kept for the day when there are.
async fn plan(ctx: &JobContext, tools: &Tools, judge: &Judge) -> Result<(usize, u64), JobError> {
    let settings = &tools.config().providers.contradictions;
    let is_on = settings.enabled && !matches!(judge, Judge::Nobody);
    let names = judge.names();
    let (mut compared, mut pairs) = (0, 0);
    loop {
        let mut tx = ctx.read().await?;
        let (facts, entries) = fact_judgements::list_unchecked(&mut tx, ctx.repository(), FACTS).await?;
        tx.commit().await?;
        if entries.is_empty() {
            return Ok((compared, pairs));
        }
        let near = if is_on { near(ctx, tools, &facts).await? } else { Vec::new() };
        let mut tx = ctx.checkpoint().await?;
        let most = i64::from(settings.max_candidates);
        pairs += fact_judgements::plan(&mut tx, ctx.repository(), &near, most, &names).await?;
        fact_judgements::forget_unchecked(&mut tx, ctx.repository(), &entries).await?;
        tx.commit().await?;
        compared += facts.len();
    }
}

/// What is near facts, by their vectors.
async fn near(ctx: &JobContext, tools: &Tools, facts: &[(i64, FactId)]) -> Result<Vec<NearFact>, JobError> {
    let Some((space, vectors)) = current(tools).await? else { return Ok(Vec::new()) };
    let settings = &tools.config().providers.contradictions;
    let (tenant, place) = (Tenant::new(ctx.repository(), ctx.database()), vectors.space(&space));
    let ids: Vec<Uuid> = facts.iter().map(|(_, id)| id.uuid()).collect();
    let points = vectors.store().find(&tenant, &place, &ids).await.map_err(or_wait)?;
    let (ids, queries): (Vec<Uuid>, Vec<Vec<f32>>) =
        points.into_iter().map(|point| (point.id, point.vector)).unzip();
    #[expect(clippy::cast_possible_truncation, reason = "cosines have no more digits than that")]
    let threshold = settings.similarity_threshold as f32;
    let limit = settings.max_candidates.saturating_mul(OVER_FETCH);
    let found =
        vectors.store().nearest(&tenant, &place, &queries, limit, threshold).await.map_err(or_wait)?;
    let number = |id: Uuid| facts.iter().find(|(_, fact)| fact.uuid() == id).map(|(no, _)| *no);
    let near = ids.into_iter().zip(found).filter_map(|(id, near)| Some((number(id)?, id, near)));
    let near = near.flat_map(|(fact, own, near)| {
        let others = near.into_iter().filter(move |other| other.id != own);
        others.map(move |Near { id, cosine }| NearFact { fact, other: id.into(), cosine })
    });
    Ok(near.collect())
}

struct Judging<'a> {
    ctx: &'a JobContext,
    tools: &'a Tools,
    judge: Judge,
    billing: Billing,
}

impl Judging<'_> {
    /// Judges whatever waits; returns how many pairs were judged, how many of them contradict each other, and why not all.
    async fn run(&self) -> Result<(u64, u64, Option<Stopped>), JobError> {
        let settings = &self.tools.config().providers.reports.posture;
        let number = |number: u32| usize::try_from(number.max(1)).unwrap_or(1);
        // What is asked about together is judged and kept together, or waits together.
        let unit = number(settings.batch_size).min(PAIRS_PER_QUESTION);
        let page = i64::try_from(unit * QUESTIONS).unwrap_or(i64::MAX);
        let (mut after, mut judged, mut found) = (0, 0, 0);
        loop {
            let mut tx = self.ctx.read().await?;
            let waiting = fact_judgements::list_waiting(&mut tx, self.ctx.repository(), after, page).await?;
            tx.commit().await?;
            let Some(last) = waiting.last() else { return Ok((judged, found, None)) };
            after = last.no;
            let units: Vec<BoxFuture<'_, _>> =
                waiting.chunks(unit).map(|pairs| self.ask(pairs).boxed()).collect();
            let ended: Vec<_> = stream::iter(units).buffered(number(settings.max_concurrent)).collect().await;
            let (mut answers, mut stopped) = (Vec::new(), None);
            for one in ended {
                match one {
                    Ok(pairs) => answers.extend(pairs),
                    Err(unanswered) => drop(Stopped::keep(&mut stopped, unanswered)),
                }
            }
            let kept = self.keep(waiting, answers).await?;
            judged += kept.0;
            found += kept.1;
            if stopped.is_some() {
                return Ok((judged, found, stopped));
            }
            let stage = "pairs".to_owned();
            self.ctx.progress(Progress { stage, done: judged, total: None, message: None });
        }
    }

    /// What is said of pairs that are asked about together. The other way round only those that have something to do with each other and
    /// do not contradict each other already.
    async fn ask(&self, pairs: &[WaitingPair]) -> Result<Vec<JudgedPair>, Unanswered> {
        let straight: Vec<Pair<'_>> = pairs.iter().map(|pair| shown(pair, false)).collect();
        let mut said = self.say(&straight).await?;
        let again: Vec<usize> = said
            .iter()
            .enumerate()
            .filter(|(_, one)| one.0.is_some_and(|posture| posture != Posture::Contradicts))
            .map(|(at, _)| at)
            .collect();
        let turned: Vec<Pair<'_>> = again.iter().map(|at| shown(&pairs[*at], true)).collect();
        for (at, other) in again.into_iter().zip(self.say(&turned).await?) {
            if other.0 == Some(Posture::Contradicts) {
                said[at] = other;
            }
        }
        let judged = pairs.iter().zip(said).map(|(pair, (posture, confidence, judged_by))| JudgedPair {
            facts: pair.facts,
            cosine: pair.cosine,
            posture,
            confidence,
            judged_by,
        });
        Ok(judged.collect())
    }

    async fn say(&self, pairs: &[Pair<'_>]) -> Result<Vec<(Option<Posture>, f32, String)>, Unanswered> {
        if pairs.is_empty() {
            return Ok(Vec::new());
        }
        let on_cost = |cost: Cost| self.ctx.spent(cost);
        let judging = okt_check::Judging {
            ai: self.tools.ai(),
            config: self.tools.config(),
            billing: &self.billing,
            on_cost: &on_cost,
            budget: None,
            deadline: None,
            turns: None,
        };
        let mut judged = self.judge.judge(&judging, pairs).await?;
        if let Some(unanswered) = judged.unanswered.pop() {
            return Err(unanswered);
        }
        let said = judged.said.into_iter().flatten();
        Ok(said.map(|one| (one.posture, one.confidence, one.by)).collect())
    }

    /// Keeps what was said of pairs whose facts both still stand by themselves.
    async fn keep(&self, waiting: Vec<WaitingPair>, judged: Vec<JudgedPair>) -> Result<(u64, u64), JobError> {
        let repository = self.ctx.repository();
        let texts: HashMap<(i64, i64), (String, String)> =
            waiting.into_iter().map(|pair| (pair.facts, pair.texts)).collect();
        let numbers: Vec<i64> = judged.iter().flat_map(|pair| [pair.facts.0, pair.facts.1]).collect();
        let mut tx = self.ctx.checkpoint().await?;
        let there = fact_judgements::hold(&mut tx, repository, &numbers).await?;
        let of_those = |pair: &JudgedPair| there.contains(&pair.facts.0) && there.contains(&pair.facts.1);
        let judged: Vec<JudgedPair> = judged.into_iter().filter(of_those).collect();
        let kept = fact_judgements::settle(&mut tx, repository, &judged).await?;
        let kept = judged.into_iter().filter(|pair| kept.contains(&pair.facts));
        let (against, others): (Vec<JudgedPair>, Vec<JudgedPair>) =
            kept.partition(|pair| pair.posture == Some(Posture::Contradicts));
        let count = |some: &[JudgedPair]| u64::try_from(some.len()).unwrap_or(u64::MAX);
        let counts = (count(&against) + count(&others), count(&against));
        let against: Vec<(JudgedPair, Difference)> = against
            .into_iter()
            .map(|pair| {
                let (one, other) = &texts[&pair.facts];
                let difference = match compare(one, other) {
                    Sameness::Differs(difference) => difference,
                    Sameness::Same => Difference::Wording,
                };
                (pair, difference)
            })
            .collect();
        fact_contradictions::insert_judged(&mut tx, repository, &against).await?;
        let others: Vec<(i64, i64)> = others.iter().map(|pair| pair.facts).collect();
        fact_contradictions::forget_judged(&mut tx, repository, &others).await?;
        tx.commit().await?;
        Ok(counts)
    }
}

/// The younger fact held against the older one, or the other way round.
fn shown(pair: &WaitingPair, turned: bool) -> Pair<'_> {
    let (older, younger) = (&pair.texts.0, &pair.texts.1);
    let (sentence, fact) = if turned { (older, younger) } else { (younger, older) };
    Pair { sentence, fact, cosine: Some(pair.cosine), language: pair.language.as_deref() }
}
