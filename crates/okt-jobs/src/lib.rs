//! What happens later: one file per kind of job.
//!
//! It must not know HTTP, nor what callers may ask for. To add a kind: a file of its name with a payload and a `run`, a
//! line in [`kinds`], and a place for it in `task.queues`. A job reads what it needs, waits for nobody while it holds a
//! connection, and ends with the one transaction of its effect (`okt_queue::JobContext::begin`). It may run twice, so it
//! looks at how things are instead of relying on how they were.

mod asking;
mod cleanup_audit;
mod cleanup_expired;
mod cleanup_facts;
mod cleanup_files;
mod cleanup_repository;
mod deduplicate_facts;
mod embed_facts;
mod embedding;
mod forget;
mod ledger;
mod migrate_context;
mod parsing;
mod retrieve_source;
mod settle_sources;
mod source_decomposition;
pub mod spaces;
mod tools;

use std::time::Duration;

use okt_config::Config;
use okt_model::{Error, Result};
use okt_queue::{Kinds, Periodic};

pub use cleanup_audit::CleanupAudit;
pub use cleanup_expired::CleanupExpired;
pub use cleanup_facts::Reconciled;
pub use cleanup_files::{CleanupFiles, cleanup_files};
pub use forget::{Old, forget};
pub use parsing::Parser;
pub use settle_sources::SettleSources;
pub use tools::Tools;

/// Every kind of job, with what it does.
pub fn kinds(config: &Config, tools: &Tools) -> Kinds {
    let retention_days = config.audit.retention_days;
    let (files, repository) = (tools.clone(), tools.clone());
    let (retrieval, decomposition) = (tools.clone(), tools.clone());
    let (embedding, comparison, tidying) = (tools.clone(), tools.clone(), tools.clone());
    Kinds::default()
        .system(move |_: CleanupAudit, ctx| cleanup_audit::run(ctx, retention_days))
        .system(|_: CleanupExpired, ctx| cleanup_expired::run(ctx))
        .system(move |payload, ctx| cleanup_files::run(payload, ctx, files.clone()))
        .system(move |payload, ctx| cleanup_repository::run(payload, ctx, repository.clone()))
        .system(settle_sources::run)
        .repository(move |payload, ctx| cleanup_facts::run(payload, ctx, tidying.clone()))
        .repository(move |payload, ctx| deduplicate_facts::run(payload, ctx, comparison.clone()))
        .repository(move |payload, ctx| embed_facts::run(payload, ctx, embedding.clone()))
        .repository(migrate_context::run)
        .repository(move |payload, ctx| retrieve_source::run(payload, ctx, retrieval.clone()))
        .repository(move |payload, ctx| source_decomposition::run(payload, ctx, decomposition.clone()))
}

/// What comes back by itself.
pub fn periodic() -> Result<Vec<Periodic>> {
    let all = [
        Periodic::new(&CleanupAudit {}, Duration::from_hours(24)),
        Periodic::new(&CleanupExpired {}, Duration::from_mins(10)),
        Periodic::new(&CleanupFiles {}, Duration::from_hours(24)),
        Periodic::new(&SettleSources {}, Duration::from_mins(1)),
    ];
    all.into_iter().collect::<Result<_, _>>().map_err(Error::internal)
}
