//! Asks a model about facts that are near each other where nothing says that they differ and no rule that they are the same.
//!
//! Each pair is asked about twice, in both orders and in two calls; the second one only about what the first one took to be the
//! same. Two facts are the same only if both answers say so: whatever is missing, unclear or could not be asked keeps two facts.
//! A pair with a named difference is never asked about.
//!
//! Answers are kept by what was asked. Facts are asked about in the order of their numbers, so a run after a crash asks the same
//! questions, and finds the answers.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use okt_ai::{Asker, BUDGET_RETRY, Billing, RepositoryBudget, SubjectBudget, Unanswered};
use okt_extract::{PAIRS_PER_QUESTION, Question, Verdict, read_verdicts, same_question};
use okt_model::{ContentHash, Cost, Operation, Result, SourceId};
use okt_providers::ai::Model;
use okt_queue::{JobContext, JobError};
use okt_store::facts;
use okt_store::model_answers::ModelAnswer;

use super::groups::UnsurePair;
use crate::Tools;
use crate::asking::RUNS;
use crate::embed_facts::max_cost;
use crate::tools::billing;

/// Calls at once.
const CONCURRENCY: usize = 4;
/// Two facts with more unsure pairs, their duplicates counted, are not asked about: what is said in so many ways is grouped.
const MOST_PAIRS: usize = 20;

/// A new fact and one that may be the same: all pairs that a model has to confirm.
pub(super) struct Doubt {
    /// The number of the new fact.
    pub fact: i64,
    pub pairs: Vec<UnsurePair>,
}

pub(super) struct Judge<'j> {
    ctx: &'j JobContext,
    tools: &'j Tools,
    /// Whose new facts are compared; `None`: all.
    source: Option<SourceId>,
    /// `None` if nothing more is asked.
    model: Option<Model>,
    budget: Arc<RepositoryBudget>,
    /// What was said of pairs so far.
    verdicts: HashMap<(i64, i64), Verdict>,
    /// Sources on which no more may be spent.
    over_max_cost: HashSet<SourceId>,
    /// Why some were not judged: the last reason.
    reason: Option<String>,
}

/// What came of a batch of pairs.
type Ended<'p> = (&'p [UnsurePair], Result<Vec<Verdict>, Unanswered>);

impl<'j> Judge<'j> {
    pub(super) async fn new(
        ctx: &'j JobContext,
        tools: &'j Tools,
        source: Option<SourceId>,
    ) -> Result<Judge<'j>> {
        let model = tools.ai().model(&tools.config().providers.dedup.judge_model);
        let reason = model.as_ref().err().map(ToString::to_string);
        let budget = Arc::new(RepositoryBudget::open(tools.ai(), ctx.repository()).await?);
        Ok(Self {
            ctx,
            tools,
            source,
            model: model.ok(),
            budget,
            verdicts: HashMap::new(),
            over_max_cost: HashSet::new(),
            reason,
        })
    }

    /// All pairs that were ever found to be the same, these included.
    pub(super) async fn confirmed(&mut self, doubts: Vec<Doubt>) -> Result<HashSet<(i64, i64)>, JobError> {
        for (source, pairs) in self.by_source(doubts).await? {
            self.ask_about(source, &pairs).await?;
        }
        let same = self.verdicts.iter().filter(|(_, verdict)| **verdict == Verdict::Same);
        Ok(same.map(|(pair, _)| *pair).collect())
    }

    /// What becomes a part of the job's output.
    pub(super) fn describe(&self, output: &mut serde_json::Value) {
        let count = |judged: bool| {
            self.verdicts.values().filter(|verdict| (**verdict != Verdict::None) == judged).count()
        };
        output["judged"] = count(true).into();
        output["not_judged"] = count(false).into();
        if count(false) > 0 {
            let reason = self.reason.as_deref().unwrap_or("the model gave no usable verdict on them");
            output["not_judged_because"] = reason.into();
            tracing::warn!(
                repository.id = %self.ctx.repository(), pairs = count(false), reason,
                "the model of providers.dedup.judge_model did not judge some pairs of facts; they stay two facts"
            );
        }
    }

    /// Pairs that are asked about for the first time in this run, in their order, by the source that pays for it.
    async fn by_source(
        &mut self,
        doubts: Vec<Doubt>,
    ) -> Result<BTreeMap<SourceId, Vec<UnsurePair>>, JobError> {
        let mut by_source: BTreeMap<SourceId, Vec<UnsurePair>> = BTreeMap::new();
        for Doubt { fact, pairs } in doubts {
            let source = if pairs.len() > MOST_PAIRS { None } else { self.source_of(fact).await? };
            for pair in pairs {
                // Nothing came of it yet.
                if self.verdicts.contains_key(&pair.numbers) {
                    continue;
                }
                self.verdicts.insert(pair.numbers, Verdict::None);
                match source {
                    Some(source) => by_source.entry(source).or_default().push(pair),
                    None => {
                        self.reason = Some("the facts have too many duplicates in other words".to_owned());
                    }
                }
            }
        }
        Ok(by_source)
    }

    /// Whom a question about a fact is charged to: the source that is worked on, else the first that makes the fact.
    async fn source_of(&self, fact: i64) -> Result<Option<SourceId>, JobError> {
        if self.source.is_some() {
            return Ok(self.source);
        }
        let mut tx = self.ctx.read().await?;
        let sources = facts::list_sources(&mut tx, self.ctx.repository(), &[fact], 1).await?;
        tx.commit().await?;
        Ok(sources.first().map(|quoted| quoted.link.source))
    }

    /// Asks about pairs, which are all charged to one source.
    async fn ask_about(&mut self, source: SourceId, pairs: &[UnsurePair]) -> Result<(), JobError> {
        let Some(model) = self.model.clone().filter(|_| !self.over_max_cost.contains(&source)) else {
            return Ok(());
        };
        let batches: Vec<&[UnsurePair]> = pairs.chunks(PAIRS_PER_QUESTION).collect();
        let billing = billing(self.ctx, Some(source));
        let ctx = self.ctx;
        let on_cost = |cost: Cost| ctx.spent(cost);
        let keys: Vec<ContentHash> =
            batches.iter().map(|batch| question(batch, false).key(model.id())).collect();
        let answered = self.tools.ai().answered(&billing, &keys).await?;
        // Now that all that was paid is recorded.
        let limit = max_cost(self.ctx, Some(source)).await?;
        let budget = SubjectBudget::open(self.tools.ai(), &billing, limit).await?;
        let asker = Asker::new(self.tools.ai(), billing.clone(), budget, Arc::clone(&self.budget), &on_cost);
        let asking =
            Asking { tools: self.tools, model, asker, billing, answered, stopped: AtomicBool::new(false) };
        let one = |batch| asking.batch(batch).map(move |ended| (batch, ended)).boxed();
        let calls: Vec<BoxFuture<'_, Ended<'_>>> = batches.into_iter().map(one).collect();
        // Those that are out are waited for, whatever the others met: they are paid for.
        let ended: Vec<Ended<'_>> = stream::iter(calls).buffered(CONCURRENCY).collect().await;
        asking.asker.stored().await?;
        for (batch, ended) in ended {
            match ended {
                Ok(verdicts) => {
                    self.verdicts.extend(batch.iter().map(|pair| pair.numbers).zip(verdicts));
                }
                Err(unanswered) => self.unanswered(source, unanswered)?,
            }
        }
        Ok(())
    }

    /// What becomes of the job if a question was not answered: it is tried again, or the pairs stay two facts.
    fn unanswered(&mut self, source: SourceId, unanswered: Unanswered) -> Result<(), JobError> {
        let reason = match unanswered {
            // Money that is only reserved for other calls comes back at once.
            Unanswered::Wait { why, delay, budget } if budget.is_none() || delay < BUDGET_RETRY => {
                return Err(JobError::Waits { why, delay });
            }
            Unanswered::Retryable(error) if error.retryable() && self.ctx.attempt() < RUNS => {
                return Err(error.into());
            }
            Unanswered::Permanent { code: "max_cost_reached", message, .. } => {
                self.over_max_cost.insert(source);
                message
            }
            Unanswered::Unusable { message, .. } => message,
            stopped => {
                self.model = None;
                match stopped {
                    Unanswered::Wait { .. } => "the monthly budget is spent".to_owned(),
                    Unanswered::Retryable(error) => error.to_string(),
                    Unanswered::Permanent { message, .. } | Unanswered::Unusable { message, .. } => message,
                }
            }
        };
        self.reason = Some(reason);
        Ok(())
    }
}

/// The questions about the pairs of one source.
struct Asking<'a> {
    tools: &'a Tools,
    model: Model,
    asker: Asker<'a>,
    billing: Billing,
    /// Kept answers to the first question about each batch.
    answered: HashMap<ContentHash, ModelAnswer>,
    /// Nothing more is asked.
    stopped: AtomicBool,
}

impl Asking<'_> {
    /// The verdicts on a batch. `None` of those that were not asked about, because of what another batch met.
    async fn batch(&self, pairs: &[UnsurePair]) -> Result<Vec<Verdict>, Unanswered> {
        if self.stopped.load(Ordering::Relaxed) {
            return Ok(vec![Verdict::None; pairs.len()]);
        }
        let ended = self.both_orders(pairs).await;
        if !matches!(ended, Ok(_) | Err(Unanswered::Unusable { .. })) {
            self.stopped.store(true, Ordering::Relaxed);
        }
        ended
    }

    async fn both_orders(&self, pairs: &[UnsurePair]) -> Result<Vec<Verdict>, Unanswered> {
        let first = question(pairs, false);
        let known = self.answered.get(&first.key(self.model.id()));
        let mut verdicts = self.verdicts(&first, pairs.len(), known).await?;
        let same = |(at, verdict): (usize, &Verdict)| (*verdict == Verdict::Same).then_some(at);
        let places: Vec<usize> = verdicts.iter().enumerate().filter_map(same).collect();
        if places.is_empty() {
            return Ok(verdicts);
        }
        let again: Vec<UnsurePair> = places.iter().map(|at| pairs[*at].clone()).collect();
        let second = question(&again, true);
        let key = second.key(self.model.id());
        let answered = self.tools.ai().answered(&self.billing, &[key]).await?;
        let second = self.verdicts(&second, again.len(), answered.get(&key)).await?;
        for (at, verdict) in places.into_iter().zip(second) {
            verdicts[at] = verdict;
        }
        Ok(verdicts)
    }

    async fn verdicts(
        &self,
        question: &Question,
        pairs: usize,
        known: Option<&ModelAnswer>,
    ) -> Result<Vec<Verdict>, Unanswered> {
        let read = |answer: &str| read_verdicts(answer, pairs);
        if let Some(Ok(verdicts)) = known.map(|known| read(&known.answer)) {
            return Ok(verdicts);
        }
        self.asker.ask(&self.model, Operation::FactComparison, question, None, read).await
    }
}

fn question(pairs: &[UnsurePair], swapped: bool) -> Question {
    let shown: Vec<(&str, &str)> = pairs
        .iter()
        .map(|pair| (pair.texts.0.as_str(), pair.texts.1.as_str()))
        .map(|(one, other)| if swapped { (other, one) } else { (one, other) })
        .collect();
    same_question(&shown)
}
