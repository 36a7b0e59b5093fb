//! What a caller may ask for: one function per use case.
//!
//! It must not know HTTP, and it runs no job. To add a use case, give its noun a file with an `impl App` block.

mod health;
mod housekeeping;
mod idempotency;
mod seal;

use std::sync::Arc;

use okt_config::Config;
use okt_store::Databases;

use crate::seal::Seal;

pub use health::Check;
pub use idempotency::{Answer, Claimed, Once};

/// The service without its doors. Cheap to clone.
#[derive(Clone)]
pub struct App(Arc<Inner>);

struct Inner {
    config: Config,
    databases: Databases,
    /// For answers that are kept to be given again.
    answers: Seal,
}

impl App {
    /// `secret` is the service's signing secret.
    pub fn new(config: Config, databases: Databases, secret: &[u8]) -> Self {
        let answers = Seal::derive(secret, "okt idempotent answers v1");
        Self(Arc::new(Inner { config, databases, answers }))
    }

    pub fn config(&self) -> &Config {
        &self.0.config
    }

    pub fn databases(&self) -> &Databases {
        &self.0.databases
    }

    fn answers(&self) -> &Seal {
        &self.0.answers
    }
}
