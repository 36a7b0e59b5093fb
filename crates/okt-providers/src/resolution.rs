//! How an address or DOI becomes a document: a chain of providers, each asked when those before it could not.
//!
//! 1. `fetch`: plain HTTP, with retries.
//! 2. `open_access`: a free copy elsewhere, for what has a DOI.
//! 3. `tls`: HTTP with a browser's TLS fingerprint.
//! 4. `challenge_solver`: a browser that gets through challenges.
//!
//! Which of them a source may use is said by its repository; what they have tried is told as a list of [`Attempt`]s. To add
//! one: a variant of [`Provider`], its place in that order, and a file here with its way of asking.

mod attempt;
pub mod auto_skip;
mod challenge;
mod hosts;
mod open_access;
mod page;
mod retry;
mod robots;
mod run;
mod solver;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use okt_config::{Config, Resolution as Settings};
use okt_model::{Error, Result};
use url::Url;

pub use attempt::{Attempt, Outcome};
use hosts::Hosts;
pub use okt_config::ResolutionProvider as Provider;
use open_access::OpenAccess;
pub use page::{Page, PageQuality, Taker, Validators};
use robots::RobotsFiles;
use run::Run;
use solver::Solver;

use crate::guarded::{GuardedClient, Profile};

/// Fetches documents. One serves the whole process, since it knows which hosts are busy; cheap to clone.
#[derive(Clone)]
pub struct Resolver(Arc<Inner>);

struct Inner {
    settings: Settings,
    client: GuardedClient,
    hosts: Hosts,
    /// `None`: not heeded.
    robots: Option<RobotsFiles>,
    /// The browser that `tls` looks like; `None`: it is off.
    profile: Option<Profile>,
    open_access: Option<OpenAccess>,
    solver: Option<Solver>,
}

/// What is to be fetched, and by whom.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub url: Url,
    pub doi: Option<String>,
    /// Those that the repository uses.
    pub providers: BTreeSet<Provider>,
    /// Those that are left out for this host for now; see [`auto_skip`].
    pub skipped: BTreeSet<Provider>,
    /// Of the document that we have. With any of them, the answer may be that it is still the same.
    pub validators: Validators,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolution {
    /// In the order in which they were made.
    pub attempts: Vec<Attempt>,
    pub end: End,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The taker has it.
    Taken,
    /// The document that we have is the current one.
    NotModified,
    Failed {
        code: &'static str,
        /// In words for whoever added the source.
        message: String,
        /// Whether it may go better later.
        retryable: bool,
        /// Not before this, if somebody asked us to wait.
        retry_after: Option<Duration>,
    },
}

impl Resolver {
    /// Refuses a setting that it can't follow.
    pub fn new(config: &Config, client: GuardedClient) -> Result<Self> {
        let settings = config.providers.resolution.clone();
        let name = settings.tls.impersonate.as_str();
        let profile = (!name.is_empty()).then(|| Profile::named(name)).transpose();
        let profile = profile
            .map_err(|problem| Error::Operator(format!("providers.resolution.tls.impersonate: {problem}")))?;
        Ok(Self(Arc::new(Inner {
            hosts: Hosts::new(settings.per_host_concurrency, settings.per_host_delay.duration()),
            robots: settings.robots.then(|| RobotsFiles::new(settings.fetch.timeout.duration())),
            open_access: OpenAccess::new(&settings.open_access, &client),
            solver: Solver::new(&settings.challenge_solver, &client),
            profile,
            client,
            settings,
        })))
    }

    /// Asks one provider after the other until the taker has enough. An error is the taker's own; what the outside does
    /// wrong is told in the [`Resolution`].
    pub async fn resolve(&self, wanted: &Wanted, taker: &mut impl Taker) -> Result<Resolution> {
        Run::new(&self.0, wanted, taker).go().await
    }
}
