//! An answer as it is read: all at once, or event by event as it comes about.

use std::time::Duration;

use okt_auth::permissions::{ConceptRead, FactRead, SourceRead};
use okt_auth::{RepoAccess, RepoScope};
use okt_model::{
    Answer, AnswerEvent, AnswerId, AnswerStatus, Cited, Error, Evidence, EvidenceChange, EvidenceKind,
    Feedback, JobId, JobState, Result, Subject, SubjectKind,
};
use okt_queue::jobs::{self, TenantFilter};
use okt_queue::{Change, Subscription};
use okt_store::{ai_calls, answer_events, answer_feedback, answers, repositories};
use tokio::time::Instant;

use crate::App;

/// A watcher looks no more often than this, however much happens.
const PAUSE: Duration = Duration::from_millis(100);
/// And no less often, in case nobody has told it anything.
const LOOK: Duration = Duration::from_secs(3);
/// How often it is asked whether the job of an answer still lives.
const JOB: Duration = Duration::from_secs(5);
/// Of so many answers that run is looked at the jobs.
const RUNNING: i64 = 100;
/// An answer of this age whose job nobody knows has lost it: those that have ended are forgotten after a while.
const LOST: chrono::Duration = chrono::Duration::hours(1);

/// An answer with what it says.
pub struct SeenAnswer {
    pub answer: Answer,
    pub is_own: bool,
    pub events: Vec<AnswerEvent>,
    /// What became of what it cites.
    pub changes: Vec<(Cited, EvidenceChange)>,
    /// What the caller has said of it.
    pub feedback: Vec<Feedback>,
}

/// Somebody who reads an answer while it is written. Holds no connection while nothing happens.
pub struct AnswerWatch {
    app: App,
    scope: RepoScope<FactRead>,
    answer: Answer,
    /// Passages are in its evidence.
    passages: bool,
    /// The place of the last event that was told.
    after: i32,
    over: bool,
    /// The job of the answer tells here when it has said something.
    changes: Subscription,
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
            events: {
                let passages = has_passages(&events);
                events.into_iter().map(|(_, event)| for_reader(scope, passages, event)).collect()
            },
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
        let repository = scope.repository();
        // First of all, so that nothing can happen between looking and listening.
        let changes = self.changes().subscribe(repository);
        let answer = self.own_or_shared(scope, id).await?;
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let last = answer_events::last_place(&mut tx, repository, answer.no).await?;
        // Its evidence is there from its beginning, and concerns only who may not read all of it.
        let passages = scope.also::<SourceRead>().is_err()
            && has_passages(&answer_events::list(&mut tx, repository, answer.no, 0).await?);
        tx.commit().await?;
        // Whoever names an event that there is not has received none.
        let after = if (0..=last).contains(&after) { after } else { 0 };
        if answer.status.is_final() && after == last {
            return Ok(None);
        }
        let now = Instant::now();
        Ok(Some(AnswerWatch {
            app: self.clone(),
            scope: scope.clone(),
            answer,
            passages,
            after,
            over: false,
            changes,
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
        let mut changes = self.changes().subscribe(scope.repository());
        loop {
            let answer = self.own_or_shared(scope, id).await?;
            if answer.status.is_final() {
                return Ok(true);
            }
            let now = Instant::now();
            if now >= deadline {
                return Ok(false);
            }
            told(&mut changes, answer.job, deadline.min(now + LOOK)).await;
            tokio::time::sleep_until(now + PAUSE).await;
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
        let status = match found.map(|job| job.state) {
            Some(JobState::Cancelled) => AnswerStatus::Cancelled,
            // One that has completed has ended the answer with its own effect; then nothing is left to end.
            Some(JobState::Discarded | JobState::Completed) => AnswerStatus::Failed,
            Some(_) => return Ok(()),
            // It is on its way, or so long ago that it was forgotten.
            None => {
                let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
                let age = repositories::now(&mut tx).await? - answer.created_at;
                tx.commit().await?;
                if age < LOST {
                    return Ok(());
                }
                AnswerStatus::Failed
            }
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
        let (cost, calls) = ai_calls::cost_and_calls_of(&mut conn, repository, subject).await?;
        drop(conn);
        let mut tx = self.databases().begin(scope.database(), repository).await?;
        let ended = answers::break_off(&mut tx, repository, id, status, (cost, calls)).await?;
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
            let now = Instant::now();
            if self.over || now >= deadline {
                return Vec::new();
            }
            told(&mut self.changes, self.answer.job, deadline.min(now + LOOK)).await;
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
        let seen =
            events.into_iter().map(|(place, event)| (place, for_reader(&self.scope, self.passages, event)));
        Ok(seen.collect())
    }
}

/// Whether passages are in the evidence of an answer with these events.
fn has_passages(events: &[(i32, AnswerEvent)]) -> bool {
    events.iter().any(|(_, event)| {
        matches!(event, AnswerEvent::Evidence { facts, .. } if facts.iter().any(|one| one.kind == EvidenceKind::Passage))
    })
}

/// An event without what its reader may not read: an answer may be somebody else's who may read more. `passages`: its writer had some.
fn for_reader(scope: &RepoAccess, passages: bool, mut event: AnswerEvent) -> AnswerEvent {
    let (sources, concepts) = (scope.also::<SourceRead>().is_ok(), scope.also::<ConceptRead>().is_ok());
    let hide = |one: &mut Evidence| {
        // Its key and its link stay.
        if !sources && one.kind == EvidenceKind::Passage {
            one.text.clear();
            (one.quote, one.around) = (None, None);
        }
        if !concepts {
            one.concepts.clear();
            one.via = None;
        }
    };
    match &mut event {
        AnswerEvent::Evidence { facts, .. } => facts.iter_mut().for_each(hide),
        AnswerEvent::Disagreeing { facts, .. } => facts.iter_mut().for_each(|one| hide(&mut one.evidence)),
        AnswerEvent::Understood { concepts: named, .. } if !concepts => named.clear(),
        AnswerEvent::Sentence(sentence) => {
            // Each key stands for a fact or a passage.
            if !sources && sentence.keys.len() > sentence.facts.len() {
                sentence.text.clear();
            }
            if !concepts {
                sentence.group = None;
            }
        }
        // Nobody has kept what it cites: it may be the words of a passage.
        AnswerEvent::Dropped(dropped) if !sources => dropped.is_shown = false,
        // A model has written it, who has read them.
        AnswerEvent::Done { missing, .. } if !sources && passages => *missing = None,
        _ => {}
    }
    event
}

/// Waits until a job has told something, or until then.
async fn told(changes: &mut Subscription, job: Option<JobId>, until: Instant) {
    while let Ok(change) = tokio::time::timeout_at(until, changes.next()).await {
        let is_ours = match change {
            Change::Jobs(jobs) => job.is_some_and(|job| jobs.contains(&job)),
            Change::Many => true,
        };
        if is_ours {
            return;
        }
    }
}

pub(super) const MISSING: Error = Error::NotFound("answer");
