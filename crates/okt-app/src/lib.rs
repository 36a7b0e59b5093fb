//! What a caller may ask for: one function per use case.
//!
//! It must not know HTTP, and it runs no job. To add a use case, give its noun a file with an `impl App` block.

mod health;
mod housekeeping;
mod idempotency;

use std::sync::Arc;

use okt_config::Config;
use okt_store::Databases;

pub use health::Check;
pub use idempotency::{Claimed, Once};
pub use okt_store::idempotency::Answer;

/// The service without its doors. Cheap to clone.
#[derive(Clone)]
pub struct App(Arc<Inner>);

struct Inner {
    config: Config,
    databases: Databases,
}

impl App {
    pub fn new(config: Config, databases: Databases) -> Self {
        Self(Arc::new(Inner { config, databases }))
    }

    pub fn config(&self) -> &Config {
        &self.0.config
    }

    pub fn databases(&self) -> &Databases {
        &self.0.databases
    }
}
