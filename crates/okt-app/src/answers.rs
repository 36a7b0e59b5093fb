//! Answers to questions: evidence is found while somebody waits, and a job writes and checks the answer.
//!
//! Answers belong to whoever asked; others see those that are shared.

mod asking;
mod gather;
mod reading;
mod request;
mod spending;

use okt_auth::RepoScope;
use okt_auth::permissions::{FactRead, ReportWrite};
use okt_extract::summaries::{cite, escaped};
use okt_model::{
    Answer, AnswerCosts, AnswerEvent, AnswerId, AnswerMode, AnswerStatus, Conversation, ConversationId,
    Error, Feedback, JobId, Money, Result, Verdict, WhyExtractive, checked_name,
};
use okt_queue::jobs::{self, TenantFilter};
use okt_store::answers::{self as rows, AnswerFilter};
use okt_store::{Tx, answer_feedback, conversations, counters};

use crate::App;
use crate::reports::{ReportText, SeenReport};

pub use asking::Asked;
pub use reading::{AnswerWatch, SeenAnswer};
pub use request::AskRequest;

use asking::unknown_conversation;
use reading::MISSING;

const COUNTER: &str = "answers";
const NOTE: usize = 4_000;
/// Answers that a conversation is shown with.
const SHOWN: i64 = 200;

/// Which answers somebody wants to see.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnswerListing {
    pub shared: Option<bool>,
    pub conversation: Option<ConversationId>,
}

/// An answer in a list, and whether what it rests on has changed.
pub struct ListedAnswer {
    pub answer: Answer,
    pub is_own: bool,
    pub changed: bool,
}

/// What an answer would cost.
pub struct AskEstimate {
    pub mode: AnswerMode,
    pub why_extractive: Option<WhyExtractive>,
    pub model: Option<String>,
    pub costs: AnswerCosts,
    pub max_cost: Money,
    /// `None` is no limit.
    pub left_today: Option<Money>,
}

impl App {
    /// The newest first.
    pub async fn list_answers(
        &self,
        scope: &RepoScope<FactRead>,
        listing: AnswerListing,
        before: Option<AnswerId>,
        limit: i64,
    ) -> Result<Vec<ListedAnswer>> {
        let (repository, person) = (scope.repository(), scope.caller().user());
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let conversation = match listing.conversation {
            Some(id) => {
                let found = conversations::list(&mut tx, repository, person, Some(id), None, 1).await?;
                Some(found.first().ok_or_else(unknown_conversation)?.no)
            }
            None => None,
        };
        let filter = AnswerFilter { shared: listing.shared, conversation };
        let found = rows::list(&mut tx, repository, person, filter, before, limit).await?;
        let listed = listed(&mut tx, scope, found).await?;
        tx.commit().await?;
        Ok(listed)
    }

    pub async fn share_answer(
        &self,
        scope: &RepoScope<FactRead>,
        id: AnswerId,
        shared: bool,
    ) -> Result<SeenAnswer> {
        let repository = scope.repository();
        let mut tx = self.databases().begin(scope.database(), repository).await?;
        if !rows::share(&mut tx, repository, id, scope.caller().user(), shared).await? {
            return Err(MISSING);
        }
        tx.commit().await?;
        self.find_answer(scope, id).await
    }

    /// Removes an answer of the caller; one that is on its way is stopped.
    pub async fn delete_answer(&self, scope: &RepoScope<FactRead>, id: AnswerId) -> Result<()> {
        let repository = scope.repository();
        let mut tx = self.databases().begin(scope.database(), repository).await?;
        counters::add(&mut tx, repository, COUNTER, -1).await?;
        let gone = rows::delete(&mut tx, repository, scope.caller().user(), Some(id), None).await?;
        if gone.is_empty() {
            return Err(MISSING);
        }
        tx.commit().await?;
        self.stop_jobs(scope, gone.into_iter().filter_map(|(_, job)| job)).await;
        Ok(())
    }

    /// Stops an answer of the caller; what is there stays.
    pub async fn cancel_answer(&self, scope: &RepoScope<FactRead>, id: AnswerId) -> Result<SeenAnswer> {
        let answer = self.own_or_shared(scope, id).await?;
        if answer.asked_by != scope.caller().user() {
            return Err(MISSING);
        }
        if !self.end_answer(scope, id, AnswerStatus::Cancelled).await? {
            return Err(Error::Conflict("the answer has ended, so it can't be cancelled"));
        }
        self.stop_jobs(scope, answer.job.into_iter()).await;
        self.find_answer(scope, id).await
    }

    /// The answers have ended, so a job that can't be stopped finds nothing to do.
    async fn stop_jobs(&self, scope: &RepoScope<FactRead>, stopped: impl Iterator<Item = JobId>) {
        for job in stopped {
            let tenant = TenantFilter::Repository(scope.repository());
            if let Err(error) = jobs::cancel(self.databases(), tenant, job).await {
                tracing::warn!(error = &error as &dyn std::error::Error, job.id = %job, "failed to stop the job of an answer");
            }
        }
    }

    /// Keeps what somebody says of an answer.
    pub async fn rate_answer(
        &self,
        scope: &RepoScope<FactRead>,
        id: AnswerId,
        mut feedback: Feedback,
    ) -> Result<()> {
        feedback.note = match feedback.note {
            Some(note) => Some(checked_name("note", &note, 0, NOTE)?).filter(|note| !note.is_empty()),
            None => None,
        };
        let answer = self.own_or_shared(scope, id).await?;
        if feedback.sentence.is_some_and(|at| at < 0 || at >= answer.sentence_count.max(1)) {
            return Err(Error::invalid("sentence", "must be the index of a sentence of the answer"));
        }
        let (repository, person) = (scope.repository(), scope.caller().user());
        let mut tx = self.databases().begin(scope.database(), repository).await?;
        // It may have been deleted meanwhile; then nothing is left behind.
        if !rows::hold(&mut tx, repository, answer.no).await? {
            return Err(MISSING);
        }
        answer_feedback::put(&mut tx, repository, answer.no, person, &feedback).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Writes an answer down as a report, which is checked as every report.
    pub async fn report_answer(
        &self,
        scope: &RepoScope<ReportWrite>,
        id: AnswerId,
        title: Option<&str>,
        topic: Option<&str>,
    ) -> Result<(SeenReport, Option<JobId>)> {
        let seen = self.find_answer(&scope.also::<FactRead>()?, id).await?;
        if !seen.answer.status.is_final() {
            return Err(Error::Conflict("the answer is still being written; write it down when it is done"));
        }
        let body = report_body(&seen);
        if body.is_empty() {
            return Err(Error::Conflict(
                "the answer has no sentence that is supported, so there is nothing to write down",
            ));
        }
        let question: String = seen.answer.question.chars().take(300).collect();
        let text = ReportText { title: title.unwrap_or(&question), topic, body: &body, parent: None };
        self.create_report(scope, text).await
    }

    /// What an answer would cost, from what the last ones have.
    pub async fn estimate_answer(
        &self,
        scope: &RepoScope<FactRead>,
        mode: AnswerMode,
    ) -> Result<AskEstimate> {
        let settings = self.ask_settings(scope).await?;
        self.settle_spending(scope).await?;
        let (repository, person) = (scope.repository(), scope.caller().user());
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let spent = rows::spent_today(&mut tx, repository, person).await?;
        let costs = rows::costs(&mut tx, repository).await?;
        tx.commit().await?;
        let means = self.means(scope, mode, settings, Some(spent))?;
        let ask = &self.config().ask;
        let by_model = means.mode == AnswerMode::Model;
        Ok(AskEstimate {
            mode: means.mode,
            why_extractive: means.why,
            model: by_model.then(|| ask.model.clone()),
            costs,
            max_cost: Money::from_usd(ask.max_cost_usd).unwrap_or_default(),
            left_today: means.left,
        })
    }

    pub async fn create_conversation(
        &self,
        scope: &RepoScope<FactRead>,
        title: Option<&str>,
    ) -> Result<Conversation> {
        let title = title.map(|title| checked_name("title", title, 1, 300)).transpose()?;
        let (repository, person, id) = (scope.repository(), scope.caller().user(), ConversationId::mint());
        let mut tx = self.databases().begin(scope.database(), repository).await?;
        conversations::insert(&mut tx, repository, id, person, title.as_deref()).await?;
        let made = conversations::list(&mut tx, repository, person, Some(id), None, 1).await?.pop();
        tx.commit().await?;
        made.ok_or(Error::NotFound("conversation"))
    }

    /// The caller's own, the newest first.
    pub async fn list_conversations(
        &self,
        scope: &RepoScope<FactRead>,
        before: Option<ConversationId>,
        limit: i64,
    ) -> Result<Vec<Conversation>> {
        let (repository, person) = (scope.repository(), scope.caller().user());
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let found = conversations::list(&mut tx, repository, person, None, before, limit).await?;
        tx.commit().await?;
        Ok(found)
    }

    /// With its answers, the oldest first.
    pub async fn find_conversation(
        &self,
        scope: &RepoScope<FactRead>,
        id: ConversationId,
    ) -> Result<(Conversation, Vec<ListedAnswer>)> {
        let (repository, person) = (scope.repository(), scope.caller().user());
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let found = conversations::list(&mut tx, repository, person, Some(id), None, 1).await?.pop();
        let found = found.ok_or(Error::NotFound("conversation"))?;
        let filter = AnswerFilter { shared: Some(false), conversation: Some(found.no) };
        let mut of = rows::list(&mut tx, repository, person, filter, None, SHOWN).await?;
        of.reverse();
        let listed = listed(&mut tx, scope, of).await?;
        tx.commit().await?;
        Ok((found, listed))
    }

    /// Removes a conversation of the caller with its answers.
    pub async fn delete_conversation(&self, scope: &RepoScope<FactRead>, id: ConversationId) -> Result<()> {
        let (repository, person) = (scope.repository(), scope.caller().user());
        let mut tx = self.databases().begin(scope.database(), repository).await?;
        // As whoever asks: the counter first, then the conversation.
        counters::add(&mut tx, repository, COUNTER, 0).await?;
        let no = conversations::hold(&mut tx, repository, id, person).await?;
        let no = no.ok_or(Error::NotFound("conversation"))?;
        let gone = rows::delete(&mut tx, repository, person, None, Some(no)).await?;
        counters::add(&mut tx, repository, COUNTER, -i64::try_from(gone.len()).unwrap_or(0)).await?;
        conversations::delete(&mut tx, repository, no).await?;
        tx.commit().await?;
        self.stop_jobs(scope, gone.into_iter().filter_map(|(_, job)| job)).await;
        Ok(())
    }
}

async fn listed(tx: &mut Tx, scope: &RepoScope<FactRead>, found: Vec<Answer>) -> Result<Vec<ListedAnswer>> {
    let numbers: Vec<i64> = found.iter().map(|answer| answer.no).collect();
    let changes = rows::list_changes(tx, scope.repository(), &numbers).await?;
    let person = scope.caller().user();
    let listed = found.into_iter().map(|answer| ListedAnswer {
        is_own: answer.asked_by == person,
        changed: changes.contains_key(&answer.no),
        answer,
    });
    Ok(listed.collect())
}

/// The sentences of an answer that are supported, with what they cite, and behind each what says otherwise. What nobody has confirmed, or
/// a cited fact denies, would read as any other claim of a report.
fn report_body(seen: &SeenAnswer) -> String {
    let of = |index: u32| {
        seen.events.iter().flat_map(move |event| match event {
            AnswerEvent::Disagreeing { index: at, facts } if *at == index => facts.as_slice(),
            _ => &[],
        })
    };
    let mut body = Vec::new();
    for event in &seen.events {
        let AnswerEvent::Sentence(sentence) = event else { continue };
        // Of one that cites a passage the caller may not see the words.
        if sentence.verdict != Verdict::Supported || sentence.text.is_empty() {
            continue;
        }
        body.push(if sentence.facts.is_empty() {
            // What rests on a passage has no fact to cite.
            match titles(&seen.events, &sentence.keys) {
                titles if titles.is_empty() => escaped(&sentence.text),
                titles => format!("{} ({})", escaped(&sentence.text), escaped(&titles)),
            }
        } else {
            cite(&sentence.text, &sentence.facts)
        });
        body.extend(of(sentence.index).filter_map(|one| {
            let fact = one.evidence.fact?;
            Some(cite(&format!("In contrast: {}", one.evidence.text), &[fact]))
        }));
    }
    body.join(" ")
}

/// The titles of the sources of some pieces of evidence.
fn titles(events: &[AnswerEvent], keys: &[String]) -> String {
    let evidence = events.iter().flat_map(|event| match event {
        AnswerEvent::Evidence { facts, .. } => facts.as_slice(),
        _ => &[],
    });
    let cited = evidence.filter(|one| keys.contains(&one.key));
    let titles = cited.filter_map(|one| one.source.as_ref()?.title.as_deref());
    titles.collect::<Vec<_>>().join("; ")
}
