//! Taking a question in: who may ask how, what it may cost, and whether it has been answered.

use okt_auth::permissions::{FactRead, ReportWrite};
use okt_auth::{RepoAccess, RepoScope};
use okt_extract::Phase;
use okt_model::{
    ASK_VERSION, Answer, AnswerEvent, AnswerId, AnswerMode, AnswerQuestion, AnswerStatus, AskSettings,
    ConversationId, Cost, Coverage, Error, Evidence, FactId, JobId, Money, NamedConcept, Result,
    WhyExtractive,
};
use okt_store::answers::{self, AnswerEnd, NewAnswer};
use okt_store::outbox::{self, When};
use okt_store::{Tx, answer_events, conversations, counters, repository_settings};

use super::gather::Gathered;
use super::request::{AskRequest, Print, check_filters, checked_language, checked_question, fingerprint};
use crate::App;

const COUNTER: &str = "answers";
/// Questions of a conversation that a follow-up is understood by.
pub(super) const EARLIER: i64 = 3;

/// What came of a question.
pub enum Asked {
    New(Answer),
    /// The key was used for it before.
    Again(Answer),
    /// The key was used for another question.
    Mismatch,
}

/// Who may ask a model, and what they may spend on it.
pub(super) struct Means {
    pub mode: AnswerMode,
    pub why: Option<WhyExtractive>,
    /// What is left for today; `None` is no limit.
    pub left: Option<Money>,
}

/// The part of a conversation that a follow-up needs.
#[derive(Default)]
struct Before {
    questions: Vec<String>,
    concepts: Vec<NamedConcept>,
}

impl App {
    /// Finds evidence and has the answer written, by the job; one that was given to the same question from the same evidence is given
    /// again.
    pub async fn ask_question(&self, scope: &RepoScope<FactRead>, request: &AskRequest) -> Result<Asked> {
        match self.ask_question_once(scope, request).await {
            // Some of those that count may have lost their jobs.
            Err(error @ (Error::TooManyAnswers(_) | Error::AskLimit(_))) => {
                if !self.settle_all(scope).await? {
                    return Err(error);
                }
                self.ask_question_once(scope, request).await
            }
            asked => asked,
        }
    }

    async fn ask_question_once(&self, scope: &RepoScope<FactRead>, request: &AskRequest) -> Result<Asked> {
        if let Some(asked) = self.answered_before(scope, request).await? {
            return Ok(asked);
        }
        let question = checked_question(&request.question)?;
        check_filters(&request.filters)?;
        let language = request.language.as_deref().map(checked_language).transpose()?;
        let max_cost = self.max_cost(request.max_cost_usd)?;
        let asked = request.mode.unwrap_or(AnswerMode::Auto);
        let settings = self.ask_settings(scope).await?;
        // Before anything is looked for: who may not ask a model hears it at once.
        let means = self.means(scope, asked, settings, None)?;
        if means.mode == AnswerMode::Model {
            self.settle_spending(scope).await?;
        }
        // Of a checker that is told something else the verdicts may be others.
        let checker_prompt = if means.mode == AnswerMode::Model {
            self.chosen(scope).await?.0.text(Phase::Posture).to_owned()
        } else {
            String::new()
        };
        self.check_today_first(scope).await?;
        let before = self.before(scope, request.conversation).await?;
        let gathered = self.gather(scope, &question, &request.filters, &before.concepts).await?;

        let (repository, person) = (scope.repository(), scope.caller().user());
        let mut tx = self.databases().begin(scope.database(), repository).await?;
        // Two that ask at once are counted one after the other.
        counters::add(&mut tx, repository, COUNTER, 1).await?;
        let once = request.hashes()?;
        if let Some((key, hash)) = once
            && let Some(asked) = requested(&mut tx, scope, key, hash).await?
        {
            return Ok(asked);
        }
        self.check_today(&mut tx, scope).await?;
        let conversation = match request.conversation {
            Some(id) => Some(
                conversations::hold(&mut tx, repository, id, person)
                    .await?
                    .ok_or_else(unknown_conversation)?,
            ),
            None => None,
        };
        let means = if means.mode == AnswerMode::Model {
            let spent = answers::spent_today(&mut tx, repository, person).await?;
            self.means(scope, asked, settings, Some(spent))?
        } else {
            means
        };
        let max_cost = means.left.map_or(max_cost, |left| left.min(max_cost));
        let ask = &self.config().ask;
        let by_model = means.mode == AnswerMode::Model;
        let model = by_model.then_some(ask.model.as_str());
        let check_model = if by_model { ask.checker() } else { okt_model::POSTURE_MODEL };
        let fingerprint = fingerprint(&Print {
            question: &question,
            earlier: &before.questions,
            language: language.as_deref(),
            filters: &request.filters,
            models: [model.unwrap_or_default(), check_model],
            checker_prompt: &checker_prompt,
            sentences: ask.max_sentences,
            choose: ask.choose,
            gathered: &gathered,
        })?;
        let same = answers::find_same(&mut tx, repository, person, fingerprint).await?;
        let same = match same {
            // What it rests on may not be what it was.
            Some(same) if answers::list_changes(&mut tx, repository, &[same.no]).await?.is_empty() => {
                Some(same)
            }
            _ => None,
        };
        let needs_job = same.is_none() && !gathered.near_only;
        if needs_job {
            self.check_running(&mut tx, scope).await?;
        }
        let id = AnswerId::mint();
        let job = needs_job.then(JobId::mint);
        let new = NewAnswer {
            id,
            asked_by: person,
            conversation,
            job,
            question: &question,
            searched: &gathered.searched,
            filters: &request.filters,
            language: language.as_deref(),
            mode_asked: asked,
            mode: means.mode,
            why_extractive: means.why,
            model,
            check_model: Some(check_model),
            ask_version: ASK_VERSION,
            fingerprint,
            request: once,
            shared: request.shared,
            max_cost: if by_model { max_cost } else { Money::ZERO },
        };
        let answer = begin(&mut tx, scope, &new, &gathered, same.as_ref()).await?;
        tx.commit().await?;
        Ok(Asked::New(answer))
    }

    /// What came of the same request before, without looking for anything.
    async fn answered_before(&self, scope: &RepoAccess, request: &AskRequest) -> Result<Option<Asked>> {
        let Some((key, hash)) = request.hashes()? else { return Ok(None) };
        let mut tx = self.databases().begin(scope.database(), scope.repository()).await?;
        let found = requested(&mut tx, scope, key, hash).await?;
        tx.commit().await?;
        Ok(found)
    }

    /// Whether a model is asked, and if not, why. `spent` is what the person has spent today, where that is known.
    pub(super) fn means(
        &self,
        scope: &RepoAccess,
        asked: AnswerMode,
        settings: AskSettings,
        spent: Option<Money>,
    ) -> Result<Means> {
        let extractive = |why| Ok(Means { mode: AnswerMode::Extractive, why: Some(why), left: None });
        let must = asked == AnswerMode::Model;
        if asked == AnswerMode::Extractive {
            return extractive(WhyExtractive::Asked);
        }
        if self.config().ask.model.is_empty() {
            return if must {
                Err(Error::NotConfigured("no model writes answers here; an operator has to set ask.model"))
            } else {
                extractive(WhyExtractive::NoModel)
            };
        }
        if !settings.viewers && scope.also::<ReportWrite>().is_err() {
            return if must {
                Err(Error::Forbidden(
                    "asking a model needs report:write in this repository, or settings/ask with viewers: true",
                ))
            } else {
                extractive(WhyExtractive::NotPermitted)
            };
        }
        let limit = self.daily_limit(settings);
        let left = limit.map(|limit| {
            let spent = spent.unwrap_or_default();
            if spent < limit { limit - spent } else { Money::ZERO }
        });
        if left.is_some_and(Money::is_zero) {
            return if must {
                Err(Error::AskLimit(format!(
                    "you have spent what you may spend on answers in this repository in a day, {} US dollars",
                    limit.unwrap_or_default().to_usd()
                )))
            } else {
                extractive(WhyExtractive::DailyLimit)
            };
        }
        Ok(Means { mode: AnswerMode::Model, why: None, left })
    }

    /// What a person may spend in a day; `None` is no limit.
    pub(crate) fn daily_limit(&self, settings: AskSettings) -> Option<Money> {
        let installation = Money::from_usd(self.config().ask.per_person_per_day_usd);
        match settings.per_person_per_day {
            // A repository that says nothing may be spent says so.
            Some(chosen) => Some(chosen),
            None => installation.filter(|limit| !limit.is_zero()),
        }
    }

    pub(super) async fn ask_settings(&self, scope: &RepoAccess) -> Result<AskSettings> {
        let mut conn = self.databases().acquire_system().await?;
        let settings = repository_settings::find(&mut conn, scope.repository()).await?;
        Ok(settings.ok_or(Error::NotFound("repository"))?.ask)
    }

    fn max_cost(&self, asked: Option<f64>) -> Result<Money> {
        let usd = asked.unwrap_or(self.config().ask.max_cost_usd);
        let within = |money: &Money| asked.is_none() || !money.is_zero();
        let money = Money::from_usd(usd).filter(within);
        money.ok_or_else(|| {
            Error::invalid("max_cost_usd", "must be a number of US dollars that is more than 0")
        })
    }

    /// Refuses what would be more than may be on their way.
    async fn check_running(&self, tx: &mut Tx, scope: &RepoAccess) -> Result<()> {
        let ask = &self.config().ask;
        let (own, all) = answers::count_running(tx, scope.repository(), scope.caller().user()).await?;
        let (most_own, most) = (i64::from(ask.running_per_person), i64::from(ask.running_per_repository));
        if own >= most_own {
            return Err(Error::TooManyAnswers(format!(
                "{own} of your questions are being answered in this repository; {most_own} at once may be (ask.running_per_person)"
            )));
        }
        if all >= most {
            return Err(Error::TooManyAnswers(format!(
                "{all} questions are being answered in this repository; {most} at once may be (ask.running_per_repository)"
            )));
        }
        Ok(())
    }

    /// Refuses one more than a person may have of a day, also if it costs nothing.
    async fn check_today(&self, tx: &mut Tx, scope: &RepoAccess) -> Result<()> {
        let limit = self.config().ask.answers_per_person_per_day;
        let (repository, person) = (scope.repository(), scope.caller().user());
        let today = answers::count_today(tx, repository, person).await?;
        let used = u64::try_from(today).unwrap_or(0);
        Error::check_quota(
            ("you have", "answers of today in this repository"),
            (used, 1),
            ("ask.answers_per_person_per_day", limit.into()),
        )
    }

    /// Before anything is looked for; for certain it is known only in turn.
    async fn check_today_first(&self, scope: &RepoAccess) -> Result<()> {
        let mut tx = self.databases().begin_to_read(scope.database(), scope.repository()).await?;
        self.check_today(&mut tx, scope).await?;
        Ok(tx.commit().await?)
    }

    /// What was asked and named before in a conversation.
    async fn before(&self, scope: &RepoAccess, conversation: Option<ConversationId>) -> Result<Before> {
        let Some(id) = conversation else { return Ok(Before::default()) };
        let (repository, person) = (scope.repository(), scope.caller().user());
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let found = conversations::list(&mut tx, repository, person, Some(id), None, 1).await?;
        let no = found.first().ok_or_else(unknown_conversation)?.no;
        let filter = answers::AnswerFilter { shared: Some(false), conversation: Some(no) };
        let latest = answers::list(&mut tx, repository, person, filter, None, EARLIER).await?;
        let mut concepts = Vec::new();
        if let Some(last) = latest.first() {
            let events = answer_events::list(&mut tx, repository, last.no, 0).await?;
            concepts = spoken_of(events.into_iter().map(|(_, event)| event));
        }
        tx.commit().await?;
        let questions = latest.into_iter().rev().map(|answer| answer.question).collect();
        Ok(Before { questions, concepts })
    }
}

async fn requested(tx: &mut Tx, scope: &RepoAccess, key: [u8; 32], hash: [u8; 32]) -> Result<Option<Asked>> {
    let (repository, person) = (scope.repository(), scope.caller().user());
    let Some((id, known)) = answers::find_requested(tx, repository, person, key).await? else {
        return Ok(None);
    };
    if known != hash {
        return Ok(Some(Asked::Mismatch));
    }
    let answer = answers::find(tx, repository, id, person).await?.ok_or(Error::NotFound("answer"))?;
    Ok(Some(Asked::Again(answer)))
}

/// Keeps a question with its evidence, and has it answered: by what was said before, by the job, or by nobody.
async fn begin(
    tx: &mut Tx,
    scope: &RepoAccess,
    new: &NewAnswer<'_>,
    gathered: &Gathered,
    same: Option<&Answer>,
) -> Result<Answer> {
    let repository = scope.repository();
    let no = answers::insert(tx, repository, new).await?;
    let mut begun = vec![AnswerEvent::Understood {
        searched: gathered.searched.clone(),
        mode: new.mode,
        why_extractive: new.why_extractive,
        concepts: gathered.concepts.clone(),
    }];
    // What is said again cites by the keys of the evidence that it was made from.
    if same.is_none() {
        begun.push(AnswerEvent::Evidence {
            facts: gathered.evidence.clone(),
            near_only: gathered.near_only,
            degraded: gathered.degraded.map(str::to_owned),
        });
    }
    answer_events::append(tx, repository, no, &begun).await?;
    match (same, new.job) {
        (Some(same), _) => repeat(tx, scope, no, same).await?,
        (None, Some(job)) => {
            outbox::push(tx, repository, job, &AnswerQuestion { answer: new.id }, When::default()).await?;
        }
        (None, None) => abstain(tx, scope, no, new, gathered.degraded).await?,
    }
    let found = answers::find(tx, repository, new.id, new.asked_by).await?;
    found.ok_or(Error::NotFound("answer"))
}

/// What an answer was about: what its question named, then what the facts that it cites speak of first.
fn spoken_of(events: impl Iterator<Item = AnswerEvent>) -> Vec<NamedConcept> {
    let (mut concepts, mut evidence, mut cited): (Vec<NamedConcept>, Vec<Evidence>, Vec<FactId>) =
        (Vec::new(), Vec::new(), Vec::new());
    for event in events {
        match event {
            AnswerEvent::Understood { concepts: named, .. } => concepts = named,
            AnswerEvent::Evidence { facts, .. } => evidence = facts,
            AnswerEvent::Sentence(sentence) => cited.extend(sentence.facts),
            _ => {}
        }
    }
    let of_cited = evidence.into_iter().filter(|one| one.fact.is_some_and(|fact| cited.contains(&fact)));
    for concept in of_cited.filter_map(|one| one.concepts.into_iter().next()) {
        if !concepts.contains(&concept) {
            concepts.push(concept);
        }
    }
    concepts
}

/// Says once more what was said before, for nothing.
async fn repeat(tx: &mut Tx, scope: &RepoAccess, no: i64, same: &Answer) -> Result<()> {
    let repository = scope.repository();
    let before = answer_events::list(tx, repository, same.no, 0).await?;
    let (mut events, mut cited, mut beside) = (Vec::new(), Vec::new(), Vec::new());
    let mut numbers: Vec<(FactId, i64)> = Vec::new();
    for (_, event) in before {
        match event {
            AnswerEvent::Evidence { ref facts, .. } => {
                numbers = facts.iter().filter_map(|one| one.fact.zip(one.fact_no)).collect();
            }
            AnswerEvent::Understood { .. } | AnswerEvent::Cost { .. } => continue,
            AnswerEvent::Done { status, coverage, missing, model, why_extractive, .. } => {
                events.push(AnswerEvent::Cost { cost: Cost::default(), calls: 0 });
                events.push(AnswerEvent::Done {
                    status,
                    coverage,
                    missing,
                    model,
                    cached: true,
                    took_ms: 0,
                    why_extractive,
                });
                continue;
            }
            AnswerEvent::Sentence(ref sentence) => {
                let of = |fact: &FactId| numbers.iter().find(|(id, _)| id == fact).map(|(id, no)| (*no, *id));
                cited.extend(sentence.facts.iter().filter_map(of));
            }
            AnswerEvent::Disagreeing { ref facts, .. } => {
                beside.extend(facts.iter().filter_map(|one| one.evidence.fact_no.zip(one.evidence.fact)));
            }
            _ => {}
        }
        events.push(event);
    }
    answer_events::append(tx, repository, no, &events).await?;
    answers::add_facts(tx, repository, no, &cited, true).await?;
    answers::add_facts(tx, repository, no, &beside, false).await?;
    let end = AnswerEnd {
        status: same.status,
        mode: same.mode,
        why_extractive: same.why_extractive,
        cached: true,
        cost: Cost::default(),
        calls: 0,
        sentences: u32::try_from(same.sentence_count).unwrap_or(0),
        whole: true,
    };
    answers::end(tx, repository, no, &end).await?;
    Ok(())
}

/// Nothing was found that has to do with the question: nobody is asked.
async fn abstain(
    tx: &mut Tx,
    scope: &RepoAccess,
    no: i64,
    new: &NewAnswer<'_>,
    degraded: Option<&str>,
) -> Result<()> {
    let repository = scope.repository();
    let missing = if degraded.is_some() {
        "no fact here has the words of the question, and search could not look by meaning"
    } else {
        "no fact here has to do with the question"
    };
    let done = AnswerEvent::Done {
        status: AnswerStatus::Abstained,
        coverage: Coverage::default(),
        missing: Some(missing.to_owned()),
        model: None,
        cached: false,
        took_ms: 0,
        why_extractive: new.why_extractive,
    };
    let cost = AnswerEvent::Cost { cost: Cost::default(), calls: 0 };
    answer_events::append(tx, repository, no, &[cost, done]).await?;
    let end = AnswerEnd {
        status: AnswerStatus::Abstained,
        mode: new.mode,
        why_extractive: new.why_extractive,
        cached: false,
        cost: Cost::default(),
        calls: 0,
        sentences: 0,
        // Another time may find more, but where there are no vectors at all.
        whole: !matches!(degraded, Some("vectors_away" | "budget")),
    };
    answers::end(tx, repository, no, &end).await?;
    Ok(())
}

pub(super) fn unknown_conversation() -> Error {
    Error::invalid("conversation_id", "you have no such conversation in this repository")
}
