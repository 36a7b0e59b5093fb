//! The kinds of job that a process knows, each with what it does.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use okt_model::Payload;

use crate::context::{Finished, Held, JobContext, JobError, SystemContext};

pub(crate) type Outcome = Result<Finished, JobError>;
type Handler = Arc<dyn Fn(Held) -> BoxFuture<'static, Outcome> + Send + Sync>;

/// What to do for each kind. A kind that no process knows is left waiting, and says so: the one who knows it may be
/// about to be started.
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

    /// A job of the installation. It has no note to take away, so it must be harmless to repeat.
    #[must_use]
    pub fn system<P, F, R>(self, run: F) -> Self
    where
        P: Payload + 'static,
        F: Fn(P, SystemContext) -> R + Send + Sync + 'static,
        R: Future<Output = Outcome> + Send + 'static,
    {
        self.add(|held| Ok(SystemContext::new(held)), run)
    }

    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.keys().copied()
    }

    fn add<P, C, F, R>(mut self, context: fn(Held) -> Result<C, JobError>, run: F) -> Self
    where
        P: Payload + 'static,
        C: Send + 'static,
        F: Fn(P, C) -> R + Send + Sync + 'static,
        R: Future<Output = Outcome> + Send + 'static,
    {
        let run = Arc::new(run);
        let handler = move |held: Held| -> BoxFuture<'static, Outcome> {
            let run = Arc::clone(&run);
            Box::pin(async move {
                let payload = held.payload::<P>()?;
                run(payload, context(held)?).await
            })
        };
        self.0.insert(P::KIND, Arc::new(handler));
        self
    }

    pub(crate) fn run(&self, held: Held) -> Option<BoxFuture<'static, Outcome>> {
        self.0.get(held.kind()).map(|handler| handler(held))
    }
}
