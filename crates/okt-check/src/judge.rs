//! How facts stand to sentences: by rules, or by a model whose answers are believed as far as the words bear them out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use okt_ai::{Ai, Asker, Billing, RepositoryBudget, SubjectBudget, Unanswered};
use okt_config::Config;
use okt_extract::Promptset;
use okt_extract::posture::{self, Judgement};
use okt_model::{Cost, Error, Operation, POSTURE_MODEL, Posture, RepositoryId, Result};
use okt_providers::ai::Model;
use okt_store::{Databases, promptsets};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use crate::turn;

/// So many pairs in a row of which a model says nothing usable, each asked about by itself, and it is not asked about others that way.
const USELESS: u32 = 8;

/// A sentence and a fact.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    pub sentence: &'a str,
    pub fact: &'a str,
    pub cosine: Option<f32>,
    pub language: Option<&'a str>,
}

/// What was said of a pair.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// `None`: they have nothing to do with each other.
    pub posture: Option<Posture>,
    pub confidence: f32,
    /// The model.
    pub by: String,
}

/// What was said of some pairs; nothing of those that a model did not answer for.
pub struct Judgements {
    pub said: Vec<Option<Said>>,
    /// Why not of all.
    pub unanswered: Vec<Unanswered>,
}

/// For whom pairs are judged, and how long that may take.
pub struct Judging<'a> {
    pub ai: &'a Ai,
    pub config: &'a Config,
    pub billing: &'a Billing,
    pub on_cost: &'a (dyn Fn(Cost) + Send + Sync),
    /// What may be spent on it, beside what the repository may.
    pub budget: Option<&'a Arc<SubjectBudget>>,
    /// What a model has not said by then is not said.
    pub deadline: Option<Instant>,
    /// Whoever keeps a core busy while somebody waits takes turns with others.
    pub turns: Option<&'a Arc<Semaphore>>,
}

/// Who judges.
pub enum Judge {
    /// Nobody: whatever is near is related.
    Nobody,
    Rule,
    /// With the instructions of the repository.
    Model {
        model: Model,
        promptset: Box<Promptset>,
        budget: Arc<RepositoryBudget>,
    },
}

impl Judge {
    /// As the settings say; without `paid` no model that costs money is asked.
    pub async fn new(
        ai: &Ai,
        config: &Config,
        databases: &Databases,
        repository: RepositoryId,
        paid: bool,
    ) -> Result<Self> {
        let settings = &config.providers.reports.posture;
        if !settings.enabled || settings.model.is_empty() {
            return Ok(Self::Nobody);
        }
        if !paid {
            return Ok(Self::Rule);
        }
        Self::named(ai, databases, repository, &settings.model).await
    }

    /// By this model, or by rules where it is the one in our own process.
    pub async fn named(
        ai: &Ai,
        databases: &Databases,
        repository: RepositoryId,
        model: &str,
    ) -> Result<Self> {
        if model == POSTURE_MODEL {
            return Ok(Self::Rule);
        }
        let model = ai.model(model)?;
        let mut conn = databases.acquire_system().await?;
        let used = promptsets::find_used(&mut conn, repository).await?;
        drop(conn);
        let promptset = Box::new(Promptset::of(used.as_ref()).map_err(Error::internal)?);
        let budget = Arc::new(RepositoryBudget::open(ai, repository).await?);
        Ok(Self::Model { model, promptset, budget })
    }

    /// What judgements of it are called by.
    pub fn name(&self) -> &str {
        match self {
            Self::Nobody => "none",
            Self::Rule => POSTURE_MODEL,
            Self::Model { model, .. } => model.id(),
        }
    }

    /// Whether a judgement by that name need not be made again.
    pub fn is_own(&self, name: &str) -> bool {
        name == self.name() || matches!(self, Self::Model { model, .. } if name == in_place_of(model))
    }

    /// All names of its own judgements.
    pub fn names(&self) -> Vec<String> {
        let own = self.name().to_owned();
        match self {
            Self::Model { model, .. } => vec![own, in_place_of(model)],
            Self::Nobody | Self::Rule => vec![own],
        }
    }

    /// Judges pairs. What a model gives no usable answer for, asked about it alone, is judged by rules.
    pub async fn judge(&self, judging: &Judging<'_>, pairs: &[Pair<'_>]) -> Result<Judgements> {
        let Self::Model { model, promptset, budget } = self else {
            let said = match self {
                Self::Nobody => pairs.iter().map(|_| Some(self.related())).collect(),
                Self::Rule | Self::Model { .. } => by_rules(judging.turns, pairs).await?,
            };
            return Ok(Judgements { said, unanswered: Vec::new() });
        };
        let settings = &judging.config.providers.reports.posture;
        let number = |number: u32| usize::try_from(number.max(1)).unwrap_or(1);
        // No more than the answer has room for.
        let room = settings.max_tokens / posture::TOKENS_PER_PAIR;
        let most = number(settings.batch_size.min(room)).min(posture::PAIRS_PER_QUESTION);
        let useless = AtomicU32::new(0);
        let asking =
            Asking { judging, model, promptset, budget, max_tokens: settings.max_tokens, useless: &useless };
        let calls: Vec<BoxFuture<'_, _>> = pairs.chunks(most).map(|some| asking.judge(some)).collect();
        // Those that are out are waited for, whatever the others met: they are paid for.
        let answers: Vec<_> = stream::iter(calls).buffered(number(settings.max_concurrent)).collect().await;
        let mut all = Judgements { said: Vec::with_capacity(pairs.len()), unanswered: Vec::new() };
        for answer in answers {
            all.said.extend(answer.said);
            all.unanswered.extend(answer.unanswered);
        }
        Ok(all)
    }

    fn related(&self) -> Said {
        Said { posture: Some(Posture::Related), confidence: 1.0, by: self.name().to_owned() }
    }
}

/// Who has judged what a model gave no usable answer for: it is not asked again.
fn in_place_of(model: &Model) -> String {
    format!("{POSTURE_MODEL} for {}", model.id())
}

async fn by_rules(turns: Option<&Arc<Semaphore>>, pairs: &[Pair<'_>]) -> Result<Vec<Option<Said>>> {
    let owned = |pair: &Pair<'_>| {
        (pair.sentence.to_owned(), pair.fact.to_owned(), pair.cosine, pair.language.map(str::to_owned))
    };
    let pairs: Vec<_> = pairs.iter().map(owned).collect();
    turn(turns, move || {
        let said = pairs.iter().map(|(sentence, fact, cosine, language)| {
            Some(by_rule(&Pair { sentence, fact, cosine: *cosine, language: language.as_deref() }))
        });
        said.collect()
    })
    .await
}

fn by_rule(pair: &Pair<'_>) -> Said {
    said_by(posture::rule(pair.sentence, pair.fact, pair.cosine, pair.language), POSTURE_MODEL)
}

fn said_by(judgement: Judgement, by: &str) -> Said {
    Said { posture: judgement.posture, confidence: judgement.confidence.clamp(0.0, 1.0), by: by.to_owned() }
}

struct Asking<'a> {
    judging: &'a Judging<'a>,
    model: &'a Model,
    promptset: &'a Promptset,
    budget: &'a Arc<RepositoryBudget>,
    max_tokens: u32,
    /// Pairs in a row for which the model gave nothing usable.
    useless: &'a AtomicU32,
}

impl Asking<'_> {
    /// Where an answer can't be used, one pair may have spoilt it: each half is asked about by itself.
    fn judge<'s>(&'s self, pairs: &'s [Pair<'s>]) -> BoxFuture<'s, Judgements> {
        async move {
            let said: Vec<Option<Said>> = match self.ask(pairs).await {
                Ok(judged) => {
                    self.useless.store(0, Ordering::Relaxed);
                    pairs.iter().zip(judged).map(|(pair, judged)| Some(self.said(pair, judged))).collect()
                }
                Err(Unanswered::Unusable { .. }) if pairs.len() > 1 && self.useless() < USELESS => {
                    let (one, other) = pairs.split_at(pairs.len() / 2);
                    let mut both = self.judge(one).await;
                    if both.unanswered.is_empty() {
                        let other = self.judge(other).await;
                        both.said.extend(other.said);
                        both.unanswered.extend(other.unanswered);
                    } else {
                        both.said.extend(other.iter().map(|_| None));
                    }
                    return both;
                }
                Err(Unanswered::Unusable { .. }) => {
                    self.useless.fetch_add(1, Ordering::Relaxed);
                    pairs.iter().map(|pair| Some(self.said(pair, None))).collect()
                }
                Err(other) => {
                    let said = pairs.iter().map(|_| None).collect();
                    return Judgements { said, unanswered: vec![other] };
                }
            };
            Judgements { said, unanswered: Vec::new() }
        }
        .boxed()
    }

    fn useless(&self) -> u32 {
        self.useless.load(Ordering::Relaxed)
    }

    /// What is made of what a model said of a pair.
    fn said(&self, pair: &Pair<'_>, judged: Option<Judgement>) -> Said {
        match judged {
            Some(judged) => {
                let believed = posture::believed(pair.sentence, pair.fact, judged, pair.language);
                said_by(believed, self.model.id())
            }
            None => Said { by: in_place_of(self.model), ..by_rule(pair) },
        }
    }

    /// Answers are kept under the question, so nobody pays twice.
    async fn ask(&self, pairs: &[Pair<'_>]) -> Result<Vec<Option<Judgement>>, Unanswered> {
        let Some(deadline) = self.judging.deadline else { return self.ask_patiently(pairs).await };
        let asked = timeout_at(deadline, self.ask_patiently(pairs)).await;
        asked.unwrap_or_else(|_| Err(Error::Overloaded("the model did not answer in time").into()))
    }

    async fn ask_patiently(&self, pairs: &[Pair<'_>]) -> Result<Vec<Option<Judgement>>, Unanswered> {
        let Judging { ai, billing, on_cost, .. } = self.judging;
        let texts: Vec<(&str, &str)> = pairs.iter().map(|pair| (pair.sentence, pair.fact)).collect();
        let mut question = posture::question_of(self.promptset, &texts);
        question.max_tokens = self.max_tokens;
        let read = |answer: &str| posture::read(answer, pairs.len());
        let key = question.key(self.model.id());
        let answered = ai.answered(billing, &[key]).await?;
        if let Some(Ok(judged)) = answered.get(&key).map(|earlier| read(&earlier.answer)) {
            return Ok(judged);
        }
        let budget = Arc::clone(self.budget);
        let subject = self.judging.budget.cloned().unwrap_or_else(|| Arc::new(SubjectBudget::unlimited()));
        let asker = Asker::new(ai, (*billing).clone(), subject, budget, *on_cost);
        let judged = asker.ask(self.model, Operation::PostureClassification, &question, None, read).await?;
        asker.stored().await?;
        Ok(judged)
    }
}
