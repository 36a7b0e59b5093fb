//! What a caller may ask for: one function per use case.
//!
//! It must not know HTTP, and it runs no job. To add a use case, give its noun a file with an `impl App` block.

mod accounts;
mod api_keys;
mod audit;
mod bootstrap;
mod contexts;
mod estimates;
mod facts;
mod health;
mod idempotency;
mod job_events;
mod jobs;
mod members;
mod moves;
pub mod oauth;
mod promptsets;
mod references;
mod repositories;
mod request;
mod roles;
mod seal;
mod search;
mod settings;
mod sources;
mod usage;

use std::sync::Arc;

use okt_auth::Auth;
use okt_config::Config;
use okt_providers::GuardedClient;
use okt_providers::search::Search;
use okt_queue::Changes;
use okt_store::{Blobs, Databases};
use okt_vectors::Vectors;
use tokio::sync::Semaphore;

use crate::seal::Seal;

pub use accounts::{Profile, ProfileChange, SessionTokens, SignedIn};
pub use api_keys::KeyRequest;
pub use estimates::{Estimate, SourceEstimate};
pub use facts::{SeenFact, SimilarFact};
pub use health::Check;
pub use idempotency::{Answer, Claimed, Once};
pub use job_events::{JobEvent, JobWatch};
pub use jobs::{JobScope, JobStats, KindStats};
pub use members::Whom;
pub use moves::{LEFT_BEHIND_FOR, Moved};
pub use okt_store::facts::Resting;
pub use promptsets::SeenPromptset;
pub use references::{ImportOutcome, Imported};
pub use repositories::{RepositoryRequest, SeenRepository};
pub use request::Origin;
pub use roles::DomainPermissions;
pub use search::{FoundSource, FoundSources, ProviderInfo};
pub use settings::{SeenSettings, SettingsChange, UsedPromptset};
pub use sources::{Accepted, SeenSource, Sentence, SourceContents, SourceRequest, Upload};

/// How many documents of clients are read at once.
const DOCUMENTS: usize = 8;

/// The service without its doors. Cheap to clone.
#[derive(Clone)]
pub struct App(Arc<Inner>);

struct Inner {
    config: Config,
    databases: Databases,
    blobs: Blobs,
    /// Missing where facts have none.
    vectors: Option<Vectors>,
    auth: Auth,
    /// The way out, and who looks for sources there; missing on a machine that trusts nobody.
    web: Option<(GuardedClient, Search)>,
    /// Turns to read the document of a client.
    documents: Semaphore,
    /// For answers that are kept to be given again.
    answers: Seal,
    /// Who wants to hear of jobs in this process.
    changes: Changes,
}

impl App {
    /// `secret` is the service's signing secret.
    pub fn new(
        config: Config,
        databases: Databases,
        blobs: Blobs,
        vectors: Option<Vectors>,
        secret: &[u8],
    ) -> Self {
        let answers = Seal::derive(secret, "okt idempotent answers v1");
        let auth = Auth::new(&config, databases.clone(), secret);
        let web = match GuardedClient::new(&config.providers.resolution.fetch.allow_private) {
            Ok(web) => Some((web.clone(), Search::new(&config, &web))),
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "nothing can be fetched from the web");
                None
            }
        };
        let (documents, changes) = (Semaphore::new(DOCUMENTS), Changes::default());
        Self(Arc::new(Inner { config, databases, blobs, vectors, auth, web, documents, answers, changes }))
    }

    pub fn config(&self) -> &Config {
        &self.0.config
    }

    pub fn databases(&self) -> &Databases {
        &self.0.databases
    }

    pub fn auth(&self) -> &Auth {
        &self.0.auth
    }

    fn blobs(&self) -> &Blobs {
        &self.0.blobs
    }

    fn vectors(&self) -> Option<&Vectors> {
        self.0.vectors.as_ref()
    }

    fn web(&self) -> Option<&GuardedClient> {
        self.0.web.as_ref().map(|(client, _)| client)
    }

    fn documents(&self) -> &Semaphore {
        &self.0.documents
    }

    fn answers(&self) -> &Seal {
        &self.0.answers
    }

    fn changes(&self) -> &Changes {
        &self.0.changes
    }
}
