//! What jobs need beside themselves: the settings, files, the web, models.

use std::sync::Arc;

use okt_ai::{Ai, Billing, Unanswered};
use okt_auth::webhooks::WebhookSecrets;
use okt_config::Config;
use okt_model::{Cost, Error, Result, SourceId};
use okt_parse::Limits;
use okt_providers::GuardedClient;
use okt_providers::registry::Registries;
use okt_providers::resolution::Resolver;
use okt_providers::search::Search;
use okt_providers::webhooks::Receivers;
use okt_queue::{JobContext, JobError};
use okt_store::blobs::Blobs;
use okt_store::{Databases, ai_calls};
use okt_vectors::Vectors;

use crate::list_turns::ListTurns;
use crate::parsing::Parser;

/// One for a process. Cheap to clone.
#[derive(Clone)]
pub struct Tools(Arc<Inner>);

struct Inner {
    config: Config,
    blobs: Blobs,
    parser: Parser,
    ai: Ai,
    /// Missing where facts have none.
    vectors: Option<Vectors>,
    /// `None` if no root CA certificates are installed.
    web: Option<(GuardedClient, Resolver)>,
    search: Option<Search>,
    receivers: Option<Receivers>,
    webhook_secrets: WebhookSecrets,
    registries: Option<Registries>,
    list_turns: ListTurns,
}

impl Tools {
    /// `secret` is the service's signing secret.
    pub fn new(
        config: &Config,
        databases: &Databases,
        blobs: Blobs,
        vectors: Option<Vectors>,
        parser: Parser,
        secret: &[u8],
    ) -> Result<Self> {
        // The reason for having none was logged when the service started.
        let client = GuardedClient::of(&config.providers).ok();
        let ai = Ai::new(config, databases, client.as_ref());
        let search = client.as_ref().map(|client| Search::new(config, client));
        let receivers = client.as_ref().map(|client| Receivers::new(config, client));
        let registries = client.as_ref().map(|client| Registries::new(config, client));
        let web = match client {
            Some(client) => Some((client.clone(), Resolver::new(config, client)?)),
            None => None,
        };
        Ok(Self(Arc::new(Inner {
            config: config.clone(),
            blobs,
            parser,
            ai,
            vectors,
            web,
            search,
            receivers,
            webhook_secrets: WebhookSecrets::new(config, secret),
            registries,
            list_turns: ListTurns::default(),
        })))
    }

    pub(crate) fn config(&self) -> &Config {
        &self.0.config
    }

    pub(crate) fn list_turns(&self) -> &ListTurns {
        &self.0.list_turns
    }

    pub(crate) fn blobs(&self) -> &Blobs {
        &self.0.blobs
    }

    pub(crate) fn vectors(&self) -> Option<&Vectors> {
        self.0.vectors.as_ref()
    }

    pub(crate) fn parser(&self) -> &Parser {
        &self.0.parser
    }

    pub(crate) fn ai(&self) -> &Ai {
        &self.0.ai
    }

    pub(crate) fn web(&self) -> Option<&(GuardedClient, Resolver)> {
        self.0.web.as_ref()
    }

    pub(crate) fn search(&self) -> Option<&Search> {
        self.0.search.as_ref()
    }

    pub(crate) fn receivers(&self) -> Option<&Receivers> {
        self.0.receivers.as_ref()
    }

    pub(crate) fn webhook_secrets(&self) -> &WebhookSecrets {
        &self.0.webhook_secrets
    }

    pub(crate) fn registries(&self) -> Option<&Registries> {
        self.0.registries.as_ref()
    }

    /// What is read out of a file at most.
    pub(crate) fn limits(&self) -> Limits {
        let images = &self.0.config.providers.decomposition.image_extraction;
        let count = if images.enabled { images.max_images_per_source } else { 0 };
        Limits {
            images: count,
            page_images: self.0.config.providers.parsing.max_page_images,
            image_bytes: u32::try_from(images.max_image_bytes).unwrap_or(u32::MAX),
            ..Limits::default()
        }
    }
}

/// A job's calls are charged to its repository, and counted with the source that it is about.
pub(crate) fn billing(ctx: &JobContext, source: Option<SourceId>) -> Billing {
    Billing {
        repository: ctx.repository(),
        database: ctx.database().to_owned(),
        subject: source.map(Into::into),
        job: Some(ctx.id()),
    }
}

/// All that was ever paid for a source.
pub(crate) async fn paid(ctx: &JobContext, source: SourceId) -> Result<Cost> {
    let mut conn = ctx.databases().acquire_system().await?;
    Ok(ai_calls::cost_of(&mut conn, ctx.repository(), source.into()).await?)
}

/// What a job makes of a call without an answer, where no part of its work can go on without it.
pub(crate) fn or_retry(unanswered: Unanswered) -> JobError {
    match unanswered {
        Unanswered::Wait { why, delay, .. } => JobError::Waits { why, delay },
        Unanswered::Retryable(error) => error.into(),
        Unanswered::Unusable { message, .. } | Unanswered::Permanent { message, .. } => {
            Error::Operator(message).into()
        }
    }
}
