//! The kinds of job that a process knows, each with what it does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::BoxFuture;
use okt_model::Payload;

use crate::context::{Finished, JobContext, JobError, JobRun, SystemContext};

pub(crate) type Outcome = Result<Finished, JobError>;
type Handler = Arc<dyn Fn(JobRun) -> BoxFuture<'static, Outcome> + Send + Sync>;

/// What to do for each kind. A kind that no process knows is left waiting, and says so: the one who knows it may be
/// about to be started. So is a job of a known kind whose payload can't be read.
#[derive(Clone, Default)]
pub struct Kinds(BTreeMap<&'static str, Handler>);

impl Kinds {
    /// A job on a repository: it ends with the transaction of its effect.
    #[must_use]
    pub fn repository<P, F, R>(self, run: F) -> Self
    where
        P: Payload + 'static,
        F: Fn(P, JobContext) -> R + Send + Sync + 'static,
        R: Future<Output = Outcome> + Send + 'static,
    {
        self.add(JobContext::new, run)
    }

    /// A job of the installation. It has no outbox entry, so it must be harmless to repeat.
    #[must_use]
    pub fn system<P, F, R>(self, run: F) -> Self
    where
        P: Payload + 'static,
        F: Fn(P, SystemContext) -> R + Send + Sync + 'static,
        R: Future<Output = Outcome> + Send + 'static,
    {
        self.add(|job_run| Ok(SystemContext::new(job_run)), run)
    }

    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.keys().copied()
    }

    fn add<P, C, F, R>(mut self, context: fn(JobRun) -> Result<C, JobError>, run: F) -> Self
    where
        P: Payload + 'static,
        C: Send + 'static,
        F: Fn(P, C) -> R + Send + Sync + 'static,
        R: Future<Output = Outcome> + Send + 'static,
    {
        let run = Arc::new(run);
        let logged = AtomicBool::new(false);
        let handler = move |job_run: JobRun| -> BoxFuture<'static, Outcome> {
            let payload = match job_run.payload::<P>() {
                Ok(payload) => payload,
                Err(error) => {
                    // Once: in a deployment there may be thousands of them.
                    if !logged.swap(true, Ordering::Relaxed) {
                        let error = &error as &dyn std::error::Error;
                        tracing::warn!(
                            job.id = %job_run.job.id, job.kind = P::KIND, error,
                            "cannot decode the payload of a job, probably written by a newer version; such jobs wait \
                             (waiting_for: worker) until a worker of that version runs"
                        );
                    }
                    return Box::pin(std::future::ready(Err(job_run.not_understood())));
                }
            };
            let run = Arc::clone(&run);
            Box::pin(async move { run(payload, context(job_run)?).await })
        };
        self.0.insert(P::KIND, Arc::new(handler));
        self
    }

    pub(crate) fn run(&self, job_run: JobRun) -> Option<BoxFuture<'static, Outcome>> {
        self.0.get(job_run.kind()).map(|handler| handler(job_run))
    }
}
