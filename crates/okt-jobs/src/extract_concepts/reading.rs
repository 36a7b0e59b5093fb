//! Asks a model about the facts of a source, a few in each question, several questions at once.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use okt_ai::{Asker, RepositoryBudget, SubjectBudget, Unanswered};
use okt_extract::Question;
use okt_extract::concepts::{Named, concept_question, read_concepts};
use okt_model::{ContentHash, Cost, Operation, Progress, Result};
use okt_providers::ai::Model;
use okt_queue::{JobContext, JobError};
use okt_store::concept_aliases;
use okt_store::concept_readings::{self, AskedBefore, ReadingState};
use okt_store::model_answers::ModelAnswer;

use super::{Finding, Findings, Work};
use crate::Tools;
use crate::asking::{Patience, Stopped};
use crate::tools::billing;

/// The longest alias that is looked up, in words.
const ALIAS_WORDS: usize = 4;

/// Facts that are asked about together, by their places in the list of all.
struct Asked {
    facts: Vec<usize>,
    question: Question,
    /// What an earlier run asked about them, if it was put otherwise.
    earlier: Option<ContentHash>,
}

/// What came of a question; nothing where it was not asked because of what another one met.
type Ended<'r> = (&'r Asked, Option<Result<Named, Unanswered>>);

pub(super) struct Reading<'w> {
    ctx: &'w JobContext,
    work: &'w Work,
    model: Model,
    asker: Asker<'w>,
    concurrency: usize,
    asked: Vec<Asked>,
    answered: HashMap<ContentHash, ModelAnswer>,
    patience: Patience,
    done: AtomicU64,
}

impl<'w> Reading<'w> {
    pub(super) async fn new(
        ctx: &'w JobContext,
        tools: &'w Tools,
        work: &'w Work,
        on_cost: &'w (dyn Fn(Cost) + Send + Sync),
    ) -> Result<Reading<'w>, JobError> {
        let settings = &tools.config().providers.decomposition.concept_extraction;
        let size = usize::try_from(settings.fact_batch_size.max(1)).unwrap_or(1);
        let asked: Vec<Asked> = plan(ctx, work, size)
            .await?
            .into_iter()
            .map(|facts| {
                let question = concept_question(&work.reader.promptset, &texts(work, &facts), &work.contexts);
                let before = facts.first().and_then(|at| match work.facts[*at].state {
                    ReadingState::Planned { asked, .. } => asked,
                    ReadingState::Open | ReadingState::Settled => None,
                });
                let earlier =
                    before.filter(|before| before.facts == count(facts.len())).map(|before| before.question);
                Asked { facts, question, earlier }
            })
            .collect();
        let model = tools.ai().model(&work.reader.model)?;
        let keys: Vec<ContentHash> = asked
            .iter()
            .flat_map(|asked| [Some(asked.question.key(model.id())), asked.earlier])
            .flatten()
            .collect();
        let billing = billing(ctx, Some(work.source.id));
        let answered = tools.ai().answered(&billing, &keys).await?;
        note_questions(ctx, work, &asked, &model, &answered).await?;
        // Now that all that was paid is recorded.
        let budget = SubjectBudget::open(tools.ai(), &billing, work.source.max_cost_usd).await?;
        let repository_budget = Arc::new(RepositoryBudget::open(tools.ai(), ctx.repository()).await?);
        Ok(Self {
            ctx,
            work,
            model,
            asker: Asker::new(tools.ai(), billing, budget, repository_budget, on_cost),
            concurrency: usize::try_from(settings.concurrency.max(1)).unwrap_or(1),
            asked,
            answered,
            patience: Patience::default(),
            done: AtomicU64::new(0),
        })
    }

    pub(super) async fn run(&self) -> Result<Findings, JobError> {
        self.tell_progress(0);
        let calls: Vec<BoxFuture<'_, Ended<'_>>> =
            self.asked.iter().map(|asked| self.unless_over(asked).boxed()).collect();
        // Those that are out are waited for, whatever the others met: they are paid for.
        let ended: Vec<Ended<'_>> = stream::iter(calls).buffered(self.concurrency).collect().await;
        self.asker.stored().await?;
        let mut findings = Findings::default();
        for (asked, ended) in ended {
            findings.take(asked, ended);
        }
        Ok(findings)
    }

    async fn unless_over<'r>(&'r self, asked: &'r Asked) -> Ended<'r> {
        if self.patience.is_over() {
            return (asked, None);
        }
        let ended = self.one(asked).await;
        self.patience.hear(&ended);
        self.tell_progress(u64::try_from(asked.facts.len()).unwrap_or(0));
        (asked, Some(ended))
    }

    async fn one(&self, asked: &Asked) -> Result<Named, Unanswered> {
        let texts = texts(self.work, &asked.facts);
        let known = self.known(&texts).await?;
        let known: Vec<(&str, &str)> =
            known.iter().map(|(name, alias)| (name.as_str(), alias.as_str())).collect();
        let read = |answer: &str| read_concepts(answer, &texts, &self.work.contexts, &known);
        let earlier = asked.earlier.and_then(|earlier| self.answered.get(&earlier));
        let earlier = earlier.or_else(|| self.answered.get(&asked.question.key(self.model.id())));
        if let Some(Ok(named)) = earlier.map(|earlier| read(&earlier.answer)) {
            return Ok(named);
        }
        self.asker.ask(&self.model, Operation::ConceptExtraction, &asked.question, None, read).await
    }

    /// Names of concepts of the repository, each with an alias that stands in one of these texts.
    async fn known(&self, texts: &[&str]) -> Result<Vec<(String, String)>, Unanswered> {
        let runs: BTreeSet<String> = texts.iter().flat_map(|text| runs(text)).collect();
        let runs: Vec<&str> = runs.iter().map(String::as_str).collect();
        let mut tx = self.ctx.databases().begin_to_read(self.ctx.database(), self.ctx.repository()).await?;
        let known = concept_aliases::list_names(&mut tx, self.ctx.repository(), &runs).await?;
        tx.commit().await?;
        Ok(known)
    }

    fn tell_progress(&self, more: u64) {
        let done = self.done.fetch_add(more, Ordering::Relaxed) + more;
        let total = u64::try_from(self.asked.iter().map(|asked| asked.facts.len()).sum::<usize>()).ok();
        self.ctx.progress(Progress { stage: "concepts".to_owned(), done, total, message: None });
    }
}

impl Findings {
    fn take(&mut self, asked: &Asked, ended: Option<Result<Named, Unanswered>>) {
        match ended {
            Some(Ok(named)) => {
                for skipped in named.skipped {
                    let count = u32::try_from(skipped.count).unwrap_or(u32::MAX);
                    *self.skipped.entry(skipped.reason.as_str().to_owned()).or_default() += count;
                }
                let batch = asked.facts.first().copied().unwrap_or_default();
                let found = asked.facts.iter().zip(named.concepts);
                self.found.extend(found.map(|(fact, concepts)| Finding { fact: *fact, batch, concepts }));
            }
            Some(Err(unanswered)) => match Stopped::keep(&mut self.stopped, unanswered) {
                Some((code, message)) => self.fail(asked.facts.len(), code, &message),
                None => self.put_off(asked),
            },
            None => self.put_off(asked),
        }
    }

    fn put_off(&mut self, asked: &Asked) {
        self.unanswered += u32::try_from(asked.facts.len()).unwrap_or(u32::MAX);
    }
}

/// Writes down what is going to be asked: contexts may change before the answers are used.
async fn note_questions(
    ctx: &JobContext,
    work: &Work,
    asked: &[Asked],
    model: &Model,
    answered: &HashMap<ContentHash, ModelAnswer>,
) -> Result<(), JobError> {
    let mut questions = Vec::new();
    for asked in asked {
        let question = asked.question.key(model.id());
        let is_noted = asked.earlier.is_some_and(|noted| noted == question || answered.contains_key(&noted));
        if !is_noted {
            let noted = AskedBefore { question, facts: count(asked.facts.len()) };
            questions.extend(asked.facts.iter().map(|at| (work.facts[*at].no, noted)));
        }
    }
    if questions.is_empty() {
        return Ok(());
    }
    let mut tx = ctx.checkpoint().await?;
    concept_readings::note_questions(&mut tx, ctx.repository(), &questions).await?;
    Ok(tx.commit().await?)
}

/// Which facts are asked about together. What an earlier run has decided stays.
async fn plan(ctx: &JobContext, work: &Work, size: usize) -> Result<Vec<Vec<usize>>, JobError> {
    let mut batches: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
    let mut open = Vec::new();
    for (at, fact) in work.facts.iter().enumerate() {
        match fact.state {
            ReadingState::Planned { batch, .. } => batches.entry(batch).or_default().push(at),
            ReadingState::Open => open.push(at),
            ReadingState::Settled => {}
        }
    }
    if open.is_empty() {
        return Ok(batches.into_values().collect());
    }
    let number = |at: &usize| work.facts[*at].no;
    let planned = open.chunks(size).flat_map(|facts| facts.iter().map(|at| (number(at), number(&facts[0]))));
    let planned: Vec<(i64, i64)> = planned.collect();
    let mut tx = ctx.checkpoint().await?;
    let ours =
        concept_readings::plan(&mut tx, ctx.repository(), work.source.id, work.reader.number, &planned)
            .await?;
    tx.commit().await?;
    // The job of another source that makes the same facts may have been quicker; it asks about them.
    let ours: HashSet<i64> = ours.into_iter().collect();
    for (at, (fact, batch)) in open.into_iter().zip(planned) {
        if ours.contains(&fact) {
            batches.entry(batch).or_default().push(at);
        }
    }
    Ok(batches.into_values().collect())
}

fn count(facts: usize) -> i32 {
    i32::try_from(facts).unwrap_or(i32::MAX)
}

fn texts<'w>(work: &'w Work, facts: &[usize]) -> Vec<&'w str> {
    facts.iter().map(|at| work.facts[*at].text.as_str()).collect()
}

/// All runs of up to [`ALIAS_WORDS`] words.
fn runs(text: &str) -> Vec<String> {
    let word = |word: &'_ str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_owned();
    let words: Vec<String> = text.split_whitespace().map(word).filter(|word| !word.is_empty()).collect();
    (1..=ALIAS_WORDS).flat_map(|length| words.windows(length).map(|run| run.join(" "))).collect()
}

#[cfg(test)]
mod tests {
    use super::runs;

    #[test]
    fn an_alias_may_be_any_run_of_words() {
        assert_eq!(runs("The (DNA) test."), ["The", "DNA", "test", "The DNA", "DNA test", "The DNA test"]);
    }
}
