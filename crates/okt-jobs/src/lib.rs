//! What happens later: one file per kind of job.
//!
//! It must not know HTTP, nor what callers may ask for. To add a kind: a file of its name with a payload and a `run`, a
//! line in [`kinds`], and a place for it in `task.queues`. A job reads what it needs, waits for nobody while it holds a
//! connection, and ends with the one transaction of its effect (`okt_queue::JobContext::begin`). It may run twice, so it
//! looks at how things are instead of relying on how they were.

mod cleanup_audit;
mod cleanup_expired;
mod cleanup_repository;
mod forget;
mod migrate_context;

use std::time::Duration;

use okt_config::Config;
use okt_model::{Error, Result};
use okt_queue::{Kinds, Periodic};

pub use cleanup_audit::CleanupAudit;
pub use cleanup_expired::CleanupExpired;
pub use forget::{Old, forget};

/// Every kind of job, with what it does.
pub fn kinds(config: &Config) -> Kinds {
    let retention_days = config.audit.retention_days;
    Kinds::default()
        .system(move |_: CleanupAudit, ctx| cleanup_audit::run(ctx, retention_days))
        .system(|_: CleanupExpired, ctx| cleanup_expired::run(ctx))
        .system(cleanup_repository::run)
        .repository(migrate_context::run)
}

/// What comes back by itself.
pub fn periodic() -> Result<Vec<Periodic>> {
    let all = [
        Periodic::new(&CleanupAudit {}, Duration::from_hours(24)),
        Periodic::new(&CleanupExpired {}, Duration::from_mins(10)),
    ];
    all.into_iter().collect::<Result<_, _>>().map_err(Error::internal)
}
