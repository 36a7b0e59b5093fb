//! Hearing of jobs as they change.
//!
//! What is told is the present state and not a log: whoever was away hears of every job that ended meanwhile, and sees
//! those that have not as they are now. A job may be told twice; none that ended is left out. What was told is
//! remembered by the client, as the id of its last event, and here only as far as it saves repetitions.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::str::FromStr;
use std::time::Duration;

use okt_auth::permissions::JobRead;
use okt_auth::{RepoAccess, RepoScope};
use okt_model::{Error, Job, JobId, RepositoryId, Result};
use okt_queue::jobs::{self, Position, Snapshot, TenantFilter};
use okt_queue::{Change, Subscription};
use tokio::time::Instant;

use crate::App;
use crate::jobs::Family;

/// A watcher looks no more often than this, however much happens.
const PAUSE: Duration = Duration::from_millis(250);
/// How soon after a change the order of ends is read, so that the ids of events move on.
const PASS: Duration = Duration::from_secs(5);
/// After a look that failed.
const AGAIN: Duration = Duration::from_secs(1);
/// How many jobs are read at once, how many ids of them, and how many that have not ended are shown at all.
const BATCH: usize = 50;
const PAGE: i64 = 200;
const UNENDED: i64 = 200;
/// How many changed jobs are remembered by name until the next look.
const NAMES: usize = 200;
/// How many jobs are remembered as they were told.
const TOLD: usize = 256;

/// One thing to tell.
pub struct JobEvent {
    /// Where to go on after this.
    pub id: String,
    /// Missing where there is nothing to tell but the place.
    pub job: Option<Job>,
}

/// Somebody who wants to hear of jobs. Holds no connection while nothing happens.
pub struct JobWatch {
    app: App,
    repository: RepositoryId,
    changes: Subscription,
    what: What,
    /// What changed since the last look.
    names: Vec<JobId>,
    everything: bool,
    not_before: Instant,
}

enum What {
    All(All),
    One(One),
}

struct All {
    /// All ends that were to be seen in this moment have been told.
    seen: Snapshot,
    /// Up to where they have been told while a pass goes on.
    mark: Mark,
    pass: Option<Pass>,
    /// When the next pass is due; none while nothing happens.
    pass_at: Option<Instant>,
    /// Jobs to be read and told, with the moment of their end where it is their turn in the order of ends.
    queue: VecDeque<(JobId, Option<Position>)>,
    told: Told,
}

/// A job and all that came of it.
struct One {
    id: JobId,
    /// What was read before the first look.
    first: Option<Family>,
    /// How each of them was told.
    told: BTreeMap<JobId, u64>,
    /// See [`Family::is_known`].
    is_known: bool,
    over: bool,
}

/// A walk over what ended since `All::seen`, in order.
struct Pass {
    /// What there is to see when it began; missing until then.
    now: Option<Snapshot>,
    after: Option<(Position, JobId)>,
    /// The last page has been read.
    read: bool,
    /// Afterwards, what has not ended.
    unended: bool,
}

/// A place in the order of ends, as the id of an event: everything before it has been told, and of what ended in its
/// moment everything up to the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    position: Position,
    job: Option<JobId>,
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.position.0)?;
        match self.job {
            Some(job) => write!(f, "-{}", job.uuid().simple()),
            None => Ok(()),
        }
    }
}

impl FromStr for Mark {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (position, job) = text.split_once('-').map_or((text, None), |(at, job)| (at, Some(job)));
        let position = position.parse().ok().filter(|number| *number > 0).map(Position).ok_or(())?;
        Ok(Self { position, job: job.map(str::parse).transpose().map_err(|_| ())? })
    }
}

/// The latest jobs as they were told: so many and no more, so that one that was pushed out may be told once more.
#[derive(Default)]
struct Told(VecDeque<(JobId, u64)>);

impl Told {
    /// Whether it has to be told, and from now on has been.
    fn is_news(&mut self, job: &Job) -> bool {
        let news = fingerprint(job);
        if let Some((_, told)) = self.0.iter_mut().find(|(id, _)| *id == job.id) {
            return std::mem::replace(told, news) != news;
        }
        if self.0.len() == TOLD {
            self.0.pop_front();
        }
        self.0.push_back((job.id, news));
        true
    }
}

/// Of a job and what is worth telling of it; that it still lives is not.
fn fingerprint(job: &Job) -> u64 {
    let mut hasher = DefaultHasher::new();
    (job.id, job.state, job.attempt, job.crashes, job.waiting_for, job.failures.len()).hash(&mut hasher);
    (job.scheduled_at, job.started_at, job.finished_at, &job.successors).hash(&mut hasher);
    if let Some(progress) = &job.progress {
        (&progress.stage, progress.done, progress.total, &progress.message).hash(&mut hasher);
    }
    (job.cost.tokens_in, job.cost.tokens_out, job.cost.usd).hash(&mut hasher);
    hasher.finish()
}

impl App {
    /// Hears of changes to jobs from all processes, for whoever watches here. Runs until dropped.
    pub async fn hear_of_jobs(&self) {
        self.changes().listen(self.databases()).await;
    }

    /// All jobs of a repository, from after the event with the id `last`. An id that can't be understood counts as none;
    /// after one that belongs to a future of this database nothing has ended, which comes to the same.
    pub async fn watch_jobs(&self, scope: &RepoScope<JobRead>, last: Option<&str>) -> Result<JobWatch> {
        // First of all, so that nothing can happen between looking and listening.
        let changes = self.changes().subscribe(scope.repository());
        let mut conn = self.databases().acquire_tasks().await?;
        let now = jobs::snapshot(&mut conn).await?;
        let (seen, mark) = match last.and_then(|text| text.parse::<Mark>().ok()) {
            Some(mark) => (Snapshot::before(mark.position), mark),
            None => (now.clone(), Mark { position: now.horizon(), job: None }),
        };
        let (queue, told) = (VecDeque::new(), Told::default());
        let all = All { seen, mark, pass: None, pass_at: None, queue, told };
        Ok(JobWatch::new(self, scope, changes, What::All(all)))
    }

    /// One job and all that came of it, as they are now and until the last of them has ended. `None` when it has, and the event
    /// with the id `last` said so.
    pub async fn watch_job(
        &self,
        scope: &RepoScope<JobRead>,
        id: JobId,
        last: Option<&str>,
    ) -> Result<Option<JobWatch>> {
        let changes = self.changes().subscribe(scope.repository());
        let family = self.look_for_family(scope.repository(), id).await?;
        if family.jobs.is_empty() {
            return Err(Error::NotFound("job"));
        }
        let now: BTreeMap<JobId, u64> = family.jobs.iter().map(|job| (job.id, fingerprint(job))).collect();
        if family.has_ended() && last == Some(&id_of(&now)) {
            return Ok(None);
        }
        let one = One { id, first: Some(family), told: BTreeMap::new(), is_known: true, over: false };
        Ok(Some(JobWatch::new(self, scope, changes, What::One(one))))
    }
}

impl JobWatch {
    fn new(app: &App, scope: &RepoAccess, changes: Subscription, what: What) -> Self {
        Self {
            app: app.clone(),
            repository: scope.repository(),
            changes,
            what,
            names: Vec::new(),
            everything: true,
            not_before: Instant::now(),
        }
    }

    pub const fn repository(&self) -> RepositoryId {
        self.repository
    }

    /// Whether there is nothing more to come.
    pub const fn is_over(&self) -> bool {
        matches!(&self.what, What::One(one) if one.over)
    }

    /// Waits until it is time to look. Nothing is lost when it is dropped and called again.
    pub async fn changed(&mut self) {
        loop {
            let due = self.due();
            let time = async {
                match due {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = time => return,
                change = self.changes.next() => self.note(&change),
            }
        }
    }

    fn due(&self) -> Option<Instant> {
        let unfinished = matches!(&self.what, What::All(all) if all.is_busy());
        if unfinished || self.everything || !self.names.is_empty() {
            return Some(self.not_before);
        }
        match &self.what {
            What::All(all) => all.pass_at,
            What::One(_) => None,
        }
    }

    fn note(&mut self, change: &Change) {
        match (&mut self.what, change) {
            // What comes next is asked for by one of these, and found when that one has ended.
            (What::One(one), Change::Jobs(jobs)) => {
                self.everything |= jobs.iter().any(|job| *job == one.id || one.told.contains_key(job));
            }
            (What::All(all), Change::Jobs(jobs)) => {
                all.pass_at.get_or_insert_with(|| Instant::now() + PASS);
                self.names
                    .extend(jobs.iter().filter(|job| !self.names.contains(job)).copied().collect::<Vec<_>>());
                if self.names.len() > NAMES {
                    self.names.clear();
                    self.everything = true;
                }
            }
            (_, Change::Many) => self.everything = true,
        }
    }

    /// What is to be told now, in this order; may be nothing. A look that fails is repeated in a while.
    pub async fn poll(&mut self) -> Vec<JobEvent> {
        let looked = match &mut self.what {
            What::One(one) => {
                let looked = one.poll(&self.app, self.repository).await;
                // Nobody says when the database answers again.
                self.everything = !one.is_known;
                looked
            }
            What::All(all) => {
                if !all.is_busy() {
                    all.plan(std::mem::take(&mut self.names), std::mem::take(&mut self.everything));
                }
                all.poll(&self.app, self.repository).await
            }
        };
        let pause = match (&self.what, &looked) {
            (_, Err(error)) => {
                tracing::debug!(
                    error = error as &dyn std::error::Error,
                    "failed to read jobs for an event stream; will retry"
                );
                AGAIN
            }
            (What::One(one), _) if !one.is_known => AGAIN,
            (What::All(all), _) if all.is_busy() => Duration::ZERO,
            _ => PAUSE,
        };
        self.not_before = Instant::now() + pause;
        looked.unwrap_or_else(|_| {
            if let What::All(all) = &mut self.what {
                all.queue.clear();
                all.pass = None;
            }
            self.everything = true;
            Vec::new()
        })
    }
}

impl One {
    async fn poll(&mut self, app: &App, repository: RepositoryId) -> Result<Vec<JobEvent>> {
        let family = match self.first.take() {
            Some(family) => family,
            None => app.look_for_family(repository, self.id).await?,
        };
        // Also when there are none: they ended so long ago that they were forgotten.
        (self.over, self.is_known) = (family.has_ended(), family.is_known);
        let mut events = Vec::new();
        for job in family.jobs {
            let is = fingerprint(&job);
            if self.told.insert(job.id, is) != Some(is) {
                events.push(JobEvent { id: id_of(&self.told), job: Some(job) });
            }
        }
        Ok(events)
    }
}

/// What was told so far, as the id of an event.
fn id_of(told: &BTreeMap<JobId, u64>) -> String {
    let mut hasher = DefaultHasher::new();
    told.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

impl All {
    /// Whether there is something to be read or told of what is known already.
    fn is_busy(&self) -> bool {
        self.pass.is_some() || !self.queue.is_empty()
    }

    fn plan(&mut self, names: Vec<JobId>, everything: bool) {
        self.queue.extend(names.into_iter().map(|id| (id, None)));
        let due = self.pass_at.is_some_and(|at| at <= Instant::now());
        if everything || due {
            self.pass_at = None;
            let after = self.mark.job.map(|job| (self.mark.position, job));
            self.pass = Some(Pass { now: None, after, read: false, unended: everything });
        }
    }

    /// The next few.
    async fn poll(&mut self, app: &App, repository: RepositoryId) -> Result<Vec<JobEvent>> {
        let mut events = Vec::new();
        if self.queue.is_empty() {
            events.extend(self.go_on(app, repository).await?);
        }
        let next: Vec<_> = self.queue.drain(..self.queue.len().min(BATCH)).collect();
        if next.is_empty() {
            return Ok(events);
        }
        let ids: Vec<JobId> = next.iter().map(|(id, _)| *id).collect();
        let found = jobs::get(app.databases(), TenantFilter::Repository(repository), &ids).await?;
        let mut found: HashMap<JobId, Job> = found.into_iter().map(|job| (job.id, job)).collect();
        let safe = self.pass.as_ref().and_then(|pass| pass.now.as_ref()).map(Snapshot::horizon);
        for (id, ended) in next {
            // From the horizon on, somebody may still come in before this one.
            if let (Some(position), Some(horizon)) = (ended, safe)
                && position < horizon
            {
                self.mark = Mark { position, job: Some(id) };
            }
            if let Some(job) = found.remove(&id)
                && self.told.is_news(&job)
            {
                events.push(JobEvent { id: self.mark.to_string(), job: Some(job) });
            }
        }
        Ok(events)
    }

    /// Takes the next step of a pass: reads a page of what ended, and then of what has not.
    async fn go_on(&mut self, app: &App, repository: RepositoryId) -> Result<Option<JobEvent>> {
        let Some(pass) = &mut self.pass else { return Ok(None) };
        let mut conn = app.databases().acquire_tasks().await?;
        if pass.now.is_none() {
            pass.now = Some(jobs::snapshot(&mut conn).await?);
        }
        if !pass.read {
            let page = jobs::ended_since(&mut conn, repository, &self.seen, pass.after, PAGE).await?;
            pass.read = i64::try_from(page.len()).is_ok_and(|read| read < PAGE);
            pass.after = page.last().copied().or(pass.after);
            self.queue.extend(page.into_iter().map(|(position, id)| (id, Some(position))));
            return Ok(None);
        }
        if pass.unended {
            let ids = jobs::list_active(&mut conn, repository, UNENDED).await?;
            self.queue.extend(ids.into_iter().map(|id| (id, None)));
        }
        // Everything that was there when the pass began has been told.
        let Some(now) = self.pass.take().and_then(|pass| pass.now) else { return Ok(None) };
        self.mark = Mark { position: now.horizon(), job: None };
        self.seen = now;
        Ok(Some(JobEvent { id: self.mark.to_string(), job: None }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_reads_back_as_written_and_nothing_else_is_one() {
        for job in [None, Some(JobId::mint())] {
            let mark = Mark { position: Position(7_235), job };
            assert_eq!(mark.to_string().parse(), Ok(mark));
        }
        for text in ["", "0", "-1", "x", "12-", "12-34", "1.5", "99999999999999999999", "12 "] {
            assert_eq!(text.parse::<Mark>(), Err(()), "{text:?}");
        }
    }
}
