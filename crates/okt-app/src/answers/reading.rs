//! An answer as it is read: all at once, or event by event as it comes about.

use std::time::Duration;

use okt_auth::permissions::FactRead;
use okt_auth::{RepoAccess, RepoScope};
use okt_model::{
    Answer, AnswerEvent, AnswerId, AnswerStatus, Coverage, Error, EvidenceChange, FactId, Feedback, JobState,
    Result, Subject, SubjectKind,
};
use okt_queue::jobs::{self, TenantFilter};
use okt_store::answers::{self, AnswerEnd};
use okt_store::{ai_calls, answer_events, answer_feedback, repositories};
use tokio::time::Instant;

use crate::App;

/// How often somebody who waits looks.
const PAUSE: Duration = Duration::from_millis(150);
/// How often it is asked whether the job of an answer still lives.
const JOB: Duration = Duration::from_secs(5);
/// Of so many answers that run is looked at the jobs.
const RUNNING: i64 = 100;

/// An answer with what it says.
pub struct SeenAnswer {
    pub answer: Answer,
    pub is_own: bool,
    pub events: Vec<AnswerEvent>,
    /// What became of facts that it cites.
    pub changes: Vec<(FactId, EvidenceChange)>,
    /// What the caller has said of it.
    pub feedback: Vec<Feedback>,
}

/// Somebody who reads an answer while it is written. Holds no connection while nothing happens.
pub struct AnswerWatch {
    app: App,
    scope: RepoScope<FactRead>,
    answer: Answer,
    /// The place of the last event that was told.
    after: i32,
    over: bool,
    job_at: Instant,
    not_before: Instant,
}

impl App {
    pub async fn find_answer(&self, scope: &RepoScope<FactRead>, id: AnswerId) -> Result<SeenAnswer> {
        let answer = self.own_or_shared(scope, id).await?;
        if answer.status == AnswerStatus::Running {
            self.settle(scope, &answer).await?;
        }
        let (repository, person) = (scope.repository(), scope.caller().user());
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let answer = answers::find(&mut tx, repository, id, person).await?.ok_or(MISSING)?;
        let events = answer_events::list(&mut tx, repository, answer.no, 0).await?;
        let mut changes = answers::list_changes(&mut tx, repository, &[answer.no]).await?;
        let feedback = answer_feedback::list(&mut tx, repository, answer.no, person).await?;
        tx.commit().await?;
        Ok(SeenAnswer {
            is_own: answer.asked_by == person,
            changes: changes.remove(&answer.no).unwrap_or_default(),
            events: events.into_iter().map(|(_, event)| event).collect(),
            answer,
            feedback,
        })
    }

    /// The events of an answer from after a place on. `None` when it is over, and the last event was told.
    pub async fn watch_answer(
        &self,
        scope: &RepoScope<FactRead>,
        id: AnswerId,
        after: i32,
    ) -> Result<Option<AnswerWatch>> {
        let answer = self.own_or_shared(scope, id).await?;
        if answer.status.is_final() {
            let repository = scope.repository();
            let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
            let left = answer_events::list(&mut tx, repository, answer.no, after).await?;
            tx.commit().await?;
            if left.is_empty() {
                return Ok(None);
            }
        }
        let now = Instant::now();
        Ok(Some(AnswerWatch {
            app: self.clone(),
            scope: scope.clone(),
            answer,
            after,
            over: false,
            job_at: now + JOB,
            not_before: now,
        }))
    }

    /// Waits until an answer has ended, or for so long.
    pub async fn await_answer(
        &self,
        scope: &RepoScope<FactRead>,
        id: AnswerId,
        patience: Duration,
    ) -> Result<bool> {
        let deadline = Instant::now() + patience;
        loop {
            if self.own_or_shared(scope, id).await?.status.is_final() {
                return Ok(true);
            }
            if Instant::now() >= deadline {
                return Ok(false);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    pub(super) async fn own_or_shared(&self, scope: &RepoAccess, id: AnswerId) -> Result<Answer> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let found = answers::find(&mut tx, repository, id, scope.caller().user()).await?;
        tx.commit().await?;
        found.ok_or(MISSING)
    }

    /// Ends an answer whose job was given up or cancelled, so that nobody waits for it.
    pub(super) async fn settle(&self, scope: &RepoAccess, answer: &Answer) -> Result<()> {
        let Some(job) = answer.job else { return Ok(()) };
        let repository = scope.repository();
        let found = jobs::find(self.databases(), TenantFilter::Repository(repository), job).await?;
        // One that is not there yet is on its way, and one that has completed has ended the answer with its own effect.
        let status = match found.map(|job| job.state) {
            Some(JobState::Cancelled) => AnswerStatus::Cancelled,
            Some(JobState::Discarded) => AnswerStatus::Failed,
            _ => return Ok(()),
        };
        self.end_answer(scope, answer.id, status).await?;
        Ok(())
    }

    /// Ends the answers of a repository whose jobs have ended without them; returns whether there were any.
    pub(super) async fn settle_all(&self, scope: &RepoAccess) -> Result<bool> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let (_, before) = answers::count_running(&mut tx, repository, scope.caller().user()).await?;
        let running = answers::list_running(&mut tx, repository, RUNNING).await?;
        tx.commit().await?;
        for answer in running {
            self.settle(scope, &answer).await?;
        }
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let (_, after) = answers::count_running(&mut tx, repository, scope.caller().user()).await?;
        tx.commit().await?;
        Ok(after < before)
    }

    /// Ends an answer that runs with what it has; false if it does not run.
    pub(super) async fn end_answer(
        &self,
        scope: &RepoAccess,
        id: AnswerId,
        status: AnswerStatus,
    ) -> Result<bool> {
        let repository = scope.repository();
        let subject = Subject::new(SubjectKind::Question, id.uuid());
        let mut conn = self.databases().acquire_system().await?;
        let (cost, calls) = ai_calls::count_of(&mut conn, repository, subject).await?;
        drop(conn);
        let mut tx = self.databases().begin(scope.database(), repository).await?;
        let Some(answer) = answers::hold_running(&mut tx, repository, id).await? else { return Ok(false) };
        let events: Vec<AnswerEvent> = answer_events::list(&mut tx, repository, answer.no, 0)
            .await?
            .into_iter()
            .map(|(_, event)| event)
            .collect();
        let coverage = Coverage::of(&events);
        let mut last = vec![AnswerEvent::Cost { cost, calls }];
        last.push(if status == AnswerStatus::Failed {
            AnswerEvent::Error {
                code: "internal".to_owned(),
                message: "the answer could not be written to its end; ask again".to_owned(),
            }
        } else {
            AnswerEvent::Done {
                status,
                coverage,
                missing: None,
                model: answer.model.clone(),
                cached: false,
                took_ms: 0,
                why_extractive: answer.why_extractive,
            }
        });
        answer_events::append(&mut tx, repository, answer.no, &last).await?;
        let end = AnswerEnd {
            status,
            mode: answer.mode,
            why_extractive: answer.why_extractive,
            cached: false,
            cost,
            calls,
            sentences: coverage.shown,
        };
        let ended = answers::end(&mut tx, repository, answer.no, &end).await?;
        tx.commit().await?;
        Ok(ended)
    }

    /// By which pages of the repository are addressed.
    pub async fn repository_slug(&self, scope: &RepoScope<FactRead>) -> Result<String> {
        let mut conn = self.databases().acquire_system().await?;
        let found = repositories::find(&mut conn, scope.repository()).await?;
        Ok(found.ok_or(Error::NotFound("repository"))?.slug)
    }
}

impl AnswerWatch {
    pub const fn answer(&self) -> &Answer {
        &self.answer
    }

    /// Whether there is nothing more to come.
    pub const fn is_over(&self) -> bool {
        self.over
    }

    /// The next events with their places, when there are any or when so long nothing came.
    pub async fn next(&mut self, patience: Duration) -> Vec<(i32, AnswerEvent)> {
        let deadline = Instant::now() + patience;
        loop {
            tokio::time::sleep_until(self.not_before).await;
            self.not_before = Instant::now() + PAUSE;
            match self.look().await {
                Ok(events) if !events.is_empty() => return events,
                Ok(_) => {}
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::debug!(error, "failed to read an answer for an event stream; will retry");
                }
            }
            if self.over || Instant::now() >= deadline {
                return Vec::new();
            }
        }
    }

    async fn look(&mut self) -> Result<Vec<(i32, AnswerEvent)>> {
        let repository = self.scope.repository();
        let mut tx = self.app.databases().begin_to_read(self.scope.database(), repository).await?;
        let found = answers::find(&mut tx, repository, self.answer.id, self.scope.caller().user()).await?;
        let events = answer_events::list(&mut tx, repository, self.answer.no, self.after).await?;
        tx.commit().await?;
        // It was deleted, or is not shared any more.
        let Some(answer) = found else {
            self.over = true;
            return Ok(Vec::new());
        };
        if let Some((place, event)) = events.last() {
            self.after = *place;
            self.over = event.is_last();
        }
        if answer.status == AnswerStatus::Running && Instant::now() >= self.job_at {
            self.job_at = Instant::now() + JOB;
            self.app.settle(&self.scope, &answer).await?;
        }
        self.answer = answer;
        Ok(events)
    }
}

pub(super) const MISSING: Error = Error::NotFound("answer");
