//! What jobs need beside themselves: the settings, files, the web, models.

use std::sync::Arc;
use std::time::Duration;

use okt_config::Config;
use okt_model::{Error, Result};
use okt_parse::Limits;
use okt_providers::GuardedClient;
use okt_providers::ai::{Model, Models};
use okt_providers::resolution::Resolver;
use okt_store::blobs::Blobs;
use okt_vectors::Vectors;

use crate::ledger::Ledger;
use crate::parsing::Parser;

/// One for a process. Cheap to clone.
#[derive(Clone)]
pub struct Tools(Arc<Inner>);

struct Inner {
    config: Config,
    blobs: Blobs,
    parser: Parser,
    ledger: Ledger,
    /// Missing where facts have none.
    vectors: Option<Vectors>,
    models: Models,
    /// Missing on a machine that trusts nobody.
    web: Option<(GuardedClient, Resolver)>,
}

impl Tools {
    pub fn new(config: &Config, blobs: Blobs, vectors: Option<Vectors>, parser: Parser) -> Result<Self> {
        let client = GuardedClient::new(&config.providers.resolution.fetch.allow_private);
        let (models, web) = match client {
            Ok(client) => {
                (Models::new(config, &client), Some((client.clone(), Resolver::new(config, client)?)))
            }
            // The reason was told when the service started.
            Err(_) => (Models::own(), None),
        };
        let (config, ledger) = (config.clone(), Ledger::default());
        Ok(Self(Arc::new(Inner { config, blobs, parser, ledger, vectors, models, web })))
    }

    pub(crate) fn config(&self) -> &Config {
        &self.0.config
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

    pub(crate) fn ledger(&self) -> &Ledger {
        &self.0.ledger
    }

    pub(crate) fn web(&self) -> Option<&(GuardedClient, Resolver)> {
        self.0.web.as_ref()
    }

    /// A model of the catalogue, or our own.
    pub(crate) fn model(&self, id: &str) -> Result<Model> {
        self.0.models.find(id).ok_or(Error::NotConfigured(match self.0.web {
            Some(_) => "a model is named that is not in providers.ai.models",
            None => "no model can be asked: the certificates of authorities are missing",
        }))
    }

    /// For a call with all its attempts and waits.
    pub(crate) fn longest_call(&self) -> Duration {
        let (retry, ai) = (&self.0.config.providers.llm_retry, &self.0.config.providers.ai);
        let (out, between) = (retry.per_call_timeout.duration(), retry.max_delay.duration());
        let attempt = out.saturating_add(between).saturating_add(ai.rate_limit_wait_timeout.duration());
        attempt.saturating_mul(retry.max_attempts)
    }

    /// What is read out of a file at most.
    pub(crate) fn limits(&self) -> Limits {
        let images = &self.0.config.providers.decomposition.image_extraction;
        let count = if images.enabled { images.max_images_per_source } else { 0 };
        Limits {
            images: count,
            image_bytes: u32::try_from(images.max_image_bytes).unwrap_or(u32::MAX),
            ..Limits::default()
        }
    }
}
