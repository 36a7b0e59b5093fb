//! How far work is that goes on in the background, and waiting for it.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use http::header;
use okt_app::JobScope;
use okt_auth::Needed;
use okt_auth::permissions::{JobRead, ReportRead, SourceRead};
use okt_http::Problem;
use okt_model::{Error, JobFilter, JobId, ReportId, SourceId, Subject, SubjectKind};
use okt_wire::jobs::JobView;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{READ, Tool};
use crate::mcp::call::{Call, Outcome, Place};
use crate::mcp::rpc::{Reply, refused, told};
use crate::mcp::schema::{input, output};

/// How often is looked while somebody waits.
const PAUSE: Duration = Duration::from_millis(500);
const LONGEST_WAIT: u32 = 50;
/// When it is worth asking again.
const POLL_AFTER_S: u32 = 5;

pub(super) const GET: Tool = Tool {
    name: "get_progress",
    title: "Get progress",
    description: "How far the work on a source, a report or a single job is, and what it waits for. Give `source_id` after add_source: \
                  that covers all its jobs. `wait_s` waits for the end.",
    hints: READ,
    needs: |arguments| {
        let also = [("source_id", SourceRead::PERMISSION), ("report_id", ReportRead::PERMISSION)];
        let also = also.into_iter().filter(|(field, _)| !arguments[*field].is_null());
        [JobRead::PERMISSION].into_iter().chain(also.map(|(_, permission)| permission)).collect()
    },
    pages: false,
    creates: false,
    input: input::<Arguments>,
    output: output::<Progress>,
    run: |call| Box::pin(get(call)),
};

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Id or slug; may be left out if you can see only one.
    repository: Option<String>,
    job_id: Option<Uuid>,
    source_id: Option<Uuid>,
    report_id: Option<Uuid>,
    /// Seconds to wait for the end, 0 to 50, 0 by default.
    #[schema(maximum = 50)]
    wait_s: Option<u32>,
}

#[derive(Clone, Serialize, ToSchema, PartialEq)]
pub(super) struct Progress {
    /// `waiting`, `running`, `done` or `failed`.
    state: &'static str,
    /// The status of the source or the report; the state of the job.
    status: String,
    stage: Option<String>,
    done: Option<u64>,
    total: Option<u64>,
    waiting_for: Option<String>,
    error: Option<String>,
    cost_usd: f64,
    /// When to ask again; null at the end.
    poll_after_s: Option<u32>,
    url: Option<String>,
}

impl Progress {
    fn is_over(&self) -> bool {
        self.poll_after_s.is_none()
    }
}

/// How long somebody wants to wait, if at all.
pub(super) fn patience(wait_s: Option<u32>) -> Result<Option<Duration>, Problem> {
    match wait_s.unwrap_or(0) {
        0 => Ok(None),
        wait @ 1..=LONGEST_WAIT => Ok(Some(Duration::from_secs(wait.into()))),
        _ => Err(Error::invalid("wait_s", "must be a whole number from 0 to 50").into()),
    }
}

enum Watched {
    Job(JobId),
    Source(Place<SourceRead>, SourceId),
    Report(Place<ReportRead>, ReportId),
}

/// Something that is waited for.
pub(crate) struct Watch {
    place: Place<JobRead>,
    watched: Watched,
    until: Instant,
    /// What else the result says; without it the result is the progress itself.
    known: Option<Value>,
}

impl Watch {
    /// A source of which something is known already; its progress is a field of that.
    pub(super) fn source(
        place: Place<JobRead>,
        of: Place<SourceRead>,
        source: SourceId,
        wait: Duration,
        known: Value,
    ) -> Self {
        Self { place, watched: Watched::Source(of, source), until: Instant::now() + wait, known: Some(known) }
    }

    /// What the result says beside the progress.
    pub(in crate::mcp) const fn known(&self) -> Option<&Value> {
        self.known.as_ref()
    }

    async fn look(&self, call: &Call) -> Result<Progress, Problem> {
        let app = &call.server.api.app;
        // Who may look may change while somebody waits.
        call.place::<JobRead>(&self.place.slug).await?;
        let (place, subject) = match &self.watched {
            Watched::Job(id) => {
                let job = app.find_job(&JobScope::from(self.place.scope.clone()), *id).await?;
                return Ok(of_job(&job.into()));
            }
            Watched::Source(place, id) => (place.url("sources", id), Subject::from(*id)),
            Watched::Report(place, id) => {
                (place.url("reports", id), Subject::new(SubjectKind::Report, id.uuid()))
            }
        };
        let filter = JobFilter { state: None, kind: None, subject: Some(subject) };
        let jobs = app.list_jobs(&JobScope::from(self.place.scope.clone()), &filter, None, 20).await?;
        let jobs: Vec<JobView> = jobs.into_iter().map(JobView::from).collect();
        let open: Vec<&JobView> = jobs.iter().filter(|job| job.finished_at.is_none()).collect();
        let busy = open.iter().find(|job| job.state == "running").or(open.first());
        let mut seen = Progress {
            state: if busy.is_some_and(|job| job.state == "running") { "running" } else { "waiting" },
            status: String::new(),
            stage: busy
                .map(|job| job.progress.as_ref().map_or_else(|| job.kind.clone(), |at| at.stage.clone())),
            done: busy.and_then(|job| job.progress.as_ref()).map(|at| at.done),
            total: busy.and_then(|job| job.progress.as_ref()).and_then(|at| at.total),
            waiting_for: busy.and_then(|job| job.waiting_for).map(str::to_owned),
            error: None,
            cost_usd: jobs.iter().map(|job| job.cost.usd).sum(),
            poll_after_s: Some(POLL_AFTER_S),
            url: Some(place),
        };
        let (status, end) = match &self.watched {
            Watched::Source(place, id) => {
                let source = super::sources::view(call, place, *id).await?.row;
                seen.waiting_for = seen.waiting_for.or(source.waiting_for);
                seen.cost_usd = source.cost.usd;
                seen.error = source.failure.map(|failure| format!("{}: {}", failure.code, failure.message));
                let end = [("processed", "done"), ("failed", "failed")]
                    .into_iter()
                    .find(|(at, _)| *at == source.status);
                (source.status, end)
            }
            Watched::Report(place, id) => {
                let report = app.find_report(&place.scope, *id, false).await?.report;
                seen.error = report.failure.map(|(code, message)| format!("{code}: {message}"));
                let status = report.status.as_str();
                let end =
                    [("annotated", "done"), ("failed", "failed")].into_iter().find(|(at, _)| *at == status);
                // Its sentences may have been changed a moment ago.
                (status, end.filter(|_| open.is_empty()))
            }
            Watched::Job(_) => return Err(Error::internal("a job was looked at above").into()),
        };
        status.clone_into(&mut seen.status);
        if let Some((_, state)) = end {
            (seen.state, seen.poll_after_s) = (state, None);
        }
        Ok(seen)
    }

    fn result(&self, progress: &Progress) -> Result<Value, Problem> {
        let progress = serde_json::to_value(progress).map_err(Error::internal)?;
        Ok(match &self.known {
            Some(known) => {
                let mut known = known.clone();
                known["progress"] = progress;
                known
            }
            None => progress,
        })
    }
}

fn of_job(job: &JobView) -> Progress {
    let over = job.finished_at.is_some();
    let state = match job.state {
        "completed" => "done",
        _ if over => "failed",
        "running" => "running",
        _ => "waiting",
    };
    Progress {
        state,
        status: job.state.to_owned(),
        stage: job.progress.as_ref().map(|at| at.stage.clone()),
        done: job.progress.as_ref().map(|at| at.done),
        total: job.progress.as_ref().and_then(|at| at.total),
        waiting_for: job.waiting_for.map(str::to_owned),
        error: job.errors.last().filter(|_| state != "done").map(|failure| failure.message.clone()),
        cost_usd: job.cost.usd,
        poll_after_s: (!over).then_some(POLL_AFTER_S),
        url: None,
    }
}

async fn get(call: &Call) -> Result<Outcome, Problem> {
    let arguments: Arguments = call.arguments().await?;
    let wait = patience(arguments.wait_s)?;
    let place: Place<JobRead> = call.repository(arguments.repository.as_deref()).await?;
    let watched = match (arguments.job_id, arguments.source_id, arguments.report_id) {
        (Some(id), None, None) => Watched::Job(id.into()),
        (None, Some(id), None) => Watched::Source(place.also()?, id.into()),
        (None, None, Some(id)) => Watched::Report(place.also()?, id.into()),
        _ => return Err(Error::invalid("source_id", "give one of source_id, report_id and job_id").into()),
    };
    let watch = Watch { place, watched, until: Instant::now() + wait.unwrap_or_default(), known: None };
    // Looked at once in any case: what is not there can't be waited for.
    let seen = watch.look(call).await?;
    match wait {
        Some(_) if !seen.is_over() => Ok(Outcome::Wait(Box::new(watch))),
        _ => Ok(Outcome::Done(watch.result(&seen)?)),
    }
}

/// The state of an answer that waits.
struct Waiting {
    call: Arc<Call>,
    watch: Box<Watch>,
    reply: Reply,
    token: Option<Value>,
    last: Option<Progress>,
    told: u64,
}

/// Answers when it is over or the time is, and tells of changes meanwhile if the client gave a token for that. Whoever hangs up
/// is not waited for; the work goes on.
pub(in crate::mcp) fn stream(call: Arc<Call>, watch: Box<Watch>, reply: Reply, token: &Value) -> Response {
    let token = (token.is_string() || token.is_i64() || token.is_u64()).then(|| token.clone());
    let waiting = Waiting { call, watch, reply, token, last: None, told: 0 };
    let events = stream::unfold(Some(waiting), |waiting| async move {
        let mut waiting = waiting?;
        let (event, over) = Box::pin(waiting.next()).await;
        let text = format!("event: message\ndata: {event}\n\n");
        Some((Ok::<_, Infallible>(text), (!over).then_some(waiting)))
    });
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(events)).into_response()
}

impl Waiting {
    /// The next message, and whether it is the last one.
    async fn next(&mut self) -> (Value, bool) {
        loop {
            if self.last.is_some() {
                tokio::time::sleep(PAUSE).await;
            }
            let seen = match self.watch.look(&self.call).await {
                Ok(seen) => seen,
                // What was done is told in any case; only how far it is can't be said.
                Err(problem) => {
                    let told = self.watch.known.as_ref().map(|known| {
                        problem.log();
                        told(known)
                    });
                    return (self.reply.message(told.unwrap_or_else(|| refused(&problem))), true);
                }
            };
            if seen.is_over() || Instant::now() >= self.watch.until {
                let result = self.watch.result(&seen);
                let result = result.map_or_else(|problem| refused(&problem), |result| told(&result));
                return (self.reply.message(result), true);
            }
            let changed = self.last.as_ref() != Some(&seen);
            let message =
                self.token.clone().filter(|_| changed).map(|token| self.notification(&token, &seen));
            self.last = Some(seen);
            if let Some(message) = message {
                return (message, false);
            }
        }
    }

    /// How far it is differs from stage to stage, and the protocol wants a number that only grows.
    fn notification(&mut self, token: &Value, seen: &Progress) -> Value {
        self.told += 1;
        let stage = seen.stage.as_deref().unwrap_or(&seen.status);
        let message = match (seen.done, seen.total) {
            (Some(done), Some(total)) => format!("{stage}: {done} of {total}"),
            _ => stage.to_owned(),
        };
        let params = json!({"progressToken": token, "progress": self.told, "message": message});
        json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
    }
}
