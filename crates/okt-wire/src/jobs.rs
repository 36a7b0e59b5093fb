//! Background jobs: what runs, what waits and why, and what became of the rest.

use chrono::{DateTime, Utc};
use okt_app::{JobStats, KindStats};
use okt_model::{Error, Job, JobFilter, JobState, RepositoryId, Subject, SubjectKind};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::vocabulary::{read_if_given, schema};

/// A background job.
#[derive(Serialize, ToSchema)]
#[schema(as = Job)]
pub struct JobView {
    pub id: Uuid,
    #[schema(example = "retrieve_source")]
    pub kind: String,
    /// The queue of the job: the same as its kind.
    #[schema(example = "retrieve_source")]
    pub queue: String,
    /// `scheduled`, `available`, `running`, `retryable`, or for good `completed`, `cancelled`, `discarded`.
    #[schema(value_type = schema::JobState)]
    pub state: &'static str,
    /// How often it has been tried.
    pub attempt: i32,
    /// How often it is tried before it is given up.
    #[schema(example = 10)]
    pub max_attempts: i32,
    /// Smaller is sooner.
    #[schema(example = 0)]
    pub priority: i16,
    /// The repository of the job; null for jobs of the installation.
    #[schema(required)]
    pub repository_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub investigation_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report_id: Option<Uuid>,
    /// The progress of the job; null until it has reported some.
    #[schema(required)]
    pub progress: Option<ProgressView>,
    pub cost: CostView,
    /// The latest failures, oldest first.
    pub errors: Vec<FailureView>,
    /// Why it does not run: `relay` (on its way to the queue), `schedule` (its time has not come), `retry` (it failed, and
    /// will be tried again), `slot` (all places for its kind are taken), `worker` (no living process runs its kind, or
    /// understands what a newer one wrote), `rate_limit`, `budget` or `dependency`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Waiting>)]
    pub waiting_for: Option<&'static str>,
    pub created_at: DateTime<Utc>,
    /// The job does not run before this time.
    pub scheduled_at: DateTime<Utc>,
    #[schema(required)]
    pub started_at: Option<DateTime<Utc>>,
    /// The last heartbeat of the worker that runs the job.
    #[schema(required)]
    pub heartbeat_at: Option<DateTime<Utc>>,
    #[schema(required)]
    pub finished_at: Option<DateTime<Utc>>,
    /// The result of the job, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = json!({"status": "fetched"}))]
    pub output: Option<serde_json::Value>,
    /// The jobs that it asked for when it ended: `retrieve_source` asks for `source_decomposition`, and that for
    /// `embed_facts`.
    pub successors: Vec<Uuid>,
}

/// The progress of a job.
#[derive(Serialize, ToSchema)]
#[schema(as = JobProgress)]
pub struct ProgressView {
    /// The current stage.
    #[schema(example = "parse")]
    pub stage: String,
    pub done: u64,
    /// Null while the total is not known.
    #[schema(required)]
    pub total: Option<u64>,
    #[schema(required)]
    pub message: Option<String>,
}

/// What a job has spent on models.
#[derive(Serialize, ToSchema)]
#[schema(as = JobCost)]
pub struct CostView {
    pub tokens_in: u64,
    pub tokens_out: u64,
    pub usd: f64,
}

/// A failed attempt of a job.
#[derive(Serialize, ToSchema)]
#[schema(as = JobFailure)]
pub struct FailureView {
    pub at: DateTime<Utc>,
    pub attempt: i32,
    #[schema(example = "the server did not answer within 30 s")]
    pub message: String,
}

/// How many jobs there are by kind and state.
#[derive(Serialize, ToSchema)]
#[schema(as = JobStats)]
pub struct StatsView {
    pub data: Vec<KindView>,
    /// False when there are more than are counted: then these are the least that there are.
    pub complete: bool,
}

/// How many jobs of a kind there are.
#[derive(Serialize, ToSchema)]
#[schema(as = JobKindStats)]
pub struct KindView {
    #[schema(example = "retrieve_source")]
    pub kind: String,
    /// Processes that live and run this kind.
    pub workers: i64,
    pub scheduled: i64,
    pub available: i64,
    pub running: i64,
    pub retryable: i64,
    /// Null for the whole installation: they are too many to be counted.
    #[schema(required)]
    pub completed: Option<i64>,
    pub cancelled: i64,
    pub discarded: i64,
}

/// How many jobs of dead workers were released.
#[derive(Serialize, ToSchema)]
pub struct Rescued {
    /// How many jobs were released.
    pub rescued: u64,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct JobQuery {
    /// `scheduled`, `available`, `running`, `retryable`, `completed`, `cancelled` or `discarded`.
    #[param(value_type = Option<schema::JobState>)]
    pub state: Option<String>,
    /// Only jobs of this kind, such as `retrieve_source`.
    pub kind: Option<String>,
    /// Only jobs about this source.
    pub source_id: Option<Uuid>,
    /// Only jobs about this investigation.
    pub investigation_id: Option<Uuid>,
    /// Only jobs about this report.
    pub report_id: Option<Uuid>,
}

impl JobQuery {
    pub fn filter(self) -> Result<JobFilter, Error> {
        let state = read_if_given("state", self.state.as_deref())?;
        let given = [
            (SubjectKind::Source, self.source_id),
            (SubjectKind::Investigation, self.investigation_id),
            (SubjectKind::Report, self.report_id),
        ];
        let mut given = given.into_iter().filter_map(|(kind, id)| Some(Subject::new(kind, id?)));
        let subject = given.next();
        if let Some(other) = given.next() {
            let field = format!("{}_id", other.kind.as_str());
            return Err(Error::invalid(
                field,
                "a job is about one thing, so only one of them can be asked for",
            ));
        }
        Ok(JobFilter { state, kind: self.kind, subject })
    }
}

impl From<Job> for JobView {
    fn from(job: Job) -> Self {
        let about = |kind| job.subject.and_then(|subject| subject.id_of(kind));
        Self {
            id: job.id.uuid(),
            queue: job.kind.clone(),
            kind: job.kind,
            state: job.state.as_str(),
            attempt: job.attempt,
            max_attempts: job.max_attempts,
            priority: job.priority,
            repository_id: job.repository.map(RepositoryId::uuid),
            source_id: about(SubjectKind::Source),
            investigation_id: about(SubjectKind::Investigation),
            report_id: about(SubjectKind::Report),
            progress: job.progress.map(|progress| ProgressView {
                stage: progress.stage,
                done: progress.done,
                total: progress.total,
                message: progress.message,
            }),
            cost: CostView {
                tokens_in: job.cost.tokens_in,
                tokens_out: job.cost.tokens_out,
                usd: job.cost.usd.to_usd(),
            },
            errors: job
                .failures
                .into_iter()
                .map(|failure| FailureView {
                    at: failure.at,
                    attempt: failure.attempt,
                    message: failure.message,
                })
                .collect(),
            waiting_for: job.waiting_for.map(okt_model::Waiting::as_str),
            created_at: job.created_at,
            scheduled_at: job.scheduled_at,
            started_at: job.started_at,
            heartbeat_at: job.heartbeat_at,
            finished_at: job.finished_at,
            output: job.output,
            successors: job.successors.into_iter().map(okt_model::JobId::uuid).collect(),
        }
    }
}

impl StatsView {
    pub fn new(stats: JobStats, of_a_repository: bool) -> Self {
        let view = |kind: KindStats| KindView {
            workers: kind.workers,
            scheduled: kind.count(JobState::Scheduled),
            available: kind.count(JobState::Available),
            running: kind.count(JobState::Running),
            retryable: kind.count(JobState::Retryable),
            completed: of_a_repository.then(|| kind.count(JobState::Completed)),
            cancelled: kind.count(JobState::Cancelled),
            discarded: kind.count(JobState::Discarded),
            kind: kind.kind,
        };
        Self { data: stats.kinds.into_iter().map(view).collect(), complete: stats.complete }
    }
}
