//! What a caller may ask for: one function per use case.
//!
//! It must not know HTTP, and it runs no job. To add a use case, give its noun a file with an `impl App` block. It takes
//! the proof that the caller may do it, `&RepoScope<SourceDelete>` or `&SystemScope<UserManage>`; inner functions take
//! `&RepoAccess`, which is no proof.

mod accounts;
mod answers;
mod api_keys;
mod audit;
mod bootstrap;
mod bundles;
mod concepts;
mod contexts;
mod contradictions;
mod curation;
mod estimates;
mod evidence;
mod exports;
mod facts;
mod graph;
mod health;
mod idempotency;
mod investigations;
mod invitations;
mod job_events;
mod jobs;
mod members;
mod moves;
pub mod oauth;
mod passwords;
mod promptsets;
#[cfg(test)]
mod proofs;
mod references;
mod registration;
mod registry;
mod report_exports;
mod reports;
mod repositories;
mod request;
mod revocations;
mod roles;
mod search;
mod sessions;
mod settings;
mod source_marks;
mod source_pages;
mod source_providers;
mod source_texts;
mod sources;
mod summaries;
mod upkeep;
mod usage;
mod webhooks;

use std::num::NonZero;
use std::sync::Arc;

use okt_ai::Ai;
use okt_auth::Auth;
use okt_auth::seal::Seal;
use okt_auth::webhooks::WebhookSecrets;
use okt_config::{Config, Secret};
use okt_providers::GuardedClient;
use okt_providers::registry::Registries;
use okt_providers::search::Search;
use okt_queue::Changes;
use okt_store::{Blobs, Databases};
use okt_vectors::Vectors;
use tokio::sync::Semaphore;

use crate::health::Watch;
use crate::search::{QuestionVectors, Rerankings};

pub use accounts::{Profile, ProfileChange, SessionTokens, SignedIn};
pub use answers::{AnswerListing, AnswerWatch, AskEstimate, AskRequest, Asked, ListedAnswer, SeenAnswer};
pub use api_keys::KeyRequest;
pub use bundles::{GraphExportRequest, GraphOf};
pub use concepts::{
    ConceptListing, Floored, Floors, ListedConcept, OfFacts, SeenConcept, SeenRelation, SharedPlace,
};
pub use contradictions::SeenContradiction;
pub use curation::Curated;
pub use estimates::{Estimate, SourceEstimate};
pub use evidence::{CheckedSentence, Evidence, EvidenceFact};
pub use exports::{ExportPage, GraphExport};
pub use facts::{SeenFact, SimilarFact};
pub use graph::{LeftOut, PathStep, SeenEdge, SeenGraph, SeenPath};
pub use health::{Check, Probe, State};
pub use idempotency::{Answer, Claimed, Once};
pub use investigations::{AddedCandidate, SeenInvestigation};
pub use invitations::Joined;
pub use job_events::{JobEvent, JobWatch};
pub use jobs::{JobScope, JobStats, KindStats};
pub use moves::{LEFT_BEHIND_FOR, Moved};
pub use okt_parse::{ImageKind, Kind as SourceKind};
pub use okt_providers::registry::{Decomposition, Graph, GraphPage, RegistrySource};
pub use okt_queue::{ActiveJobs, Backlog};
pub use okt_search::{Field as SearchField, Filter as SearchFilter, Years};
pub use okt_store::concept_relations::RelationPlace;
pub use okt_store::concept_syntheses::SynthesisVersion;
pub use okt_store::concepts::{ConceptPlace, SourcePlace, TimelinePlace};
pub use okt_store::facts::Resting;
pub use okt_store::investigations::{InvestigationConceptPlace, InvestigationFactPlace};
pub use okt_store::search_hits::SourceHit;
pub use promptsets::SeenPromptset;
pub use references::{ImportOutcome, Imported, is_reference_list};
pub use registration::{NewAccount, Setup};
pub use registry::{RegistryChoice, SeenFound};
pub use report_exports::ReportExport;
pub use reports::{ReportEdit, ReportHealth, ReportText, SeenReport};
pub use repositories::{RepositoryRequest, SeenRepository};
pub use request::Origin;
pub use revocations::RevokedIn;
pub use roles::DomainPermissions;
pub use search::{
    DEGRADED, FacetValue, Facets, Ranks, SearchAfter, SearchHit, SearchPlace, SearchRequest, SearchResults,
};
pub use settings::{SeenBudget, SeenSettings, SettingsChange, UsedPromptset};
pub use source_marks::{ImportedMarks, MarkImport, MarkedSource};
pub use source_pages::{PageText, PlacedSentence};
pub use source_providers::{FoundSource, FoundSources, ProviderInfo, SourceQuestion};
pub use source_texts::{SeenSource, Sentence};
pub use sources::{Accepted, SourceContents, SourceRequest, Upload};
pub use summaries::{Changed, DefinitionDiff, SeenDefinition, SeenSlice, SeenSynthesis, SynthesisEstimate};
pub use webhooks::{MOST_WEBHOOKS, WebhookChange, WebhookRequest};

/// How many documents of clients are read at once.
const DOCUMENTS: usize = 8;

/// The use cases, without HTTP or MCP. Cheap to clone.
#[derive(Clone)]
pub struct App(Arc<Inner>);

struct Inner {
    config: Config,
    databases: Databases,
    blobs: Blobs,
    /// Missing where facts have none.
    vectors: Option<Vectors>,
    /// Embeds questions.
    ai: Ai,
    questions: QuestionVectors,
    /// Turns to go through lists of words.
    turns_to_rank: Arc<Semaphore>,
    rerankings: Rerankings,
    auth: Auth,
    /// The way out, and who looks for sources there; `None` if no root CA certificates are installed.
    web: Option<(GuardedClient, Search)>,
    /// `None` where `web` is.
    registries: Option<Registries>,
    /// Turns to read the document of a client.
    documents: Semaphore,
    /// For answers that are kept to be given again.
    answers: Seal,
    webhook_secrets: WebhookSecrets,
    /// Who wants to hear of jobs in this process.
    changes: Changes,
    /// For the first account, from another machine.
    setup_code: Secret,
    /// What is asked when somebody wants to know whether we are ready, beside the databases.
    watch: Watch,
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
        let webhook_secrets = WebhookSecrets::new(&config, secret);
        let auth = Auth::new(&config, databases.clone(), secret);
        let setup_code = registration::setup_code(&config.bootstrap.setup_code, secret);
        let web = match GuardedClient::of(&config.providers) {
            Ok(web) => Some((web.clone(), Search::new(&config, &web))),
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "outbound HTTP is off: no root CA certificates are installed");
                None
            }
        };
        let registries = web.as_ref().map(|(client, _)| Registries::new(&config, client));
        let ai = Ai::new(&config, &databases, web.as_ref().map(|(client, _)| client));
        let (documents, changes, watch) = (Semaphore::new(DOCUMENTS), Changes::default(), Watch::default());
        let turns_to_rank = std::thread::available_parallelism().map_or(1, NonZero::get);
        let app = Self(Arc::new(Inner {
            config,
            databases,
            blobs,
            vectors,
            ai,
            questions: QuestionVectors::default(),
            turns_to_rank: Arc::new(Semaphore::new(turns_to_rank)),
            rerankings: Rerankings::default(),
            auth,
            web,
            registries,
            documents,
            answers,
            webhook_secrets,
            changes,
            setup_code,
            watch,
        }));
        app.watch_own();
        app
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

    fn ai(&self) -> &Ai {
        &self.0.ai
    }

    fn questions(&self) -> &QuestionVectors {
        &self.0.questions
    }

    fn turns_to_rank(&self) -> &Arc<Semaphore> {
        &self.0.turns_to_rank
    }

    fn rerankings(&self) -> &Rerankings {
        &self.0.rerankings
    }

    fn web(&self) -> Option<&GuardedClient> {
        self.0.web.as_ref().map(|(client, _)| client)
    }

    fn registries(&self) -> Option<&Registries> {
        self.0.registries.as_ref()
    }

    fn documents(&self) -> &Semaphore {
        &self.0.documents
    }

    fn answers(&self) -> &Seal {
        &self.0.answers
    }

    fn webhook_secrets(&self) -> &WebhookSecrets {
        &self.0.webhook_secrets
    }

    fn changes(&self) -> &Changes {
        &self.0.changes
    }
}
