//! What happens later: one file per kind of job.
//!
//! It must not know HTTP, nor what callers may ask for. To add a kind: a file of its name with a payload and a `run`, a
//! line in [`kinds`], and a place for it in `task.queues`. A job reads what it needs, waits for nobody while it holds a
//! connection, and ends with the one transaction of its effect (`okt_queue::JobContext::begin`). It may run twice, so it
//! looks at how things are instead of relying on how they were.

mod annotate_report;
mod answer_question;
mod asking;
mod check_contradictions;
mod check_reports;
mod cleanup_audit;
mod cleanup_expired;
mod cleanup_facts;
mod cleanup_files;
mod cleanup_repository;
mod contribute_source;
mod deduplicate_facts;
mod deliver_webhook;
mod embed_concepts;
mod embed_facts;
mod embed_passages;
mod export_graph;
mod extract_concepts;
mod import_graph;
mod index_source;
mod list_turns;
mod migrate_context;
mod parsing;
mod pull_all_from_registry;
mod read_withdrawals;
pub mod recheck;
mod refill_vectors;
mod refine_concepts;
mod refresh_concept_relations;
mod registries;
mod retention;
mod retrieve_source;
mod settle_sources;
mod source_decomposition;
pub mod spaces;
mod summarize_concepts;
mod sweep_concept_relations;
mod sweep_search;
mod synthesize_concept;
mod tools;

use std::time::Duration;

use okt_config::Config;
use okt_model::{Error, Result};
use okt_queue::{Kinds, Periodic};

pub use cleanup_audit::CleanupAudit;
pub use cleanup_expired::CleanupExpired;
pub use cleanup_facts::Reconciled;
pub use cleanup_files::{CleanupFiles, cleanup_files};
pub use parsing::{Ocr, Parser, ParserState};
pub use read_withdrawals::ReadWithdrawals;
pub use retention::{Expired, delete_expired};
pub use settle_sources::SettleSources;
pub use sweep_concept_relations::SweepConceptRelations;
pub use sweep_search::SweepSearch;
pub use tools::Tools;

/// Every kind of job, with what it does.
pub fn kinds(tools: &Tools) -> Kinds {
    Kinds::default()
        .system(with(tools, cleanup_audit::run))
        .system(with(tools, cleanup_expired::run))
        .system(with(tools, cleanup_files::run))
        .system(with(tools, cleanup_repository::run))
        .system(with(tools, read_withdrawals::run))
        .system(refill_vectors::run)
        .system(with(tools, settle_sources::run))
        .system(with(tools, sweep_concept_relations::run))
        .system(with(tools, sweep_search::run))
        .repository(with(tools, annotate_report::run))
        .repository(with(tools, answer_question::run))
        .repository(with(tools, check_contradictions::run))
        .repository(with(tools, check_reports::run))
        .repository(with(tools, cleanup_facts::run))
        .repository(with(tools, contribute_source::run))
        .repository(with(tools, deduplicate_facts::run))
        .repository(with(tools, deliver_webhook::run))
        .repository(with(tools, embed_concepts::run))
        .repository(with(tools, embed_facts::run))
        .repository(with(tools, embed_passages::run))
        .repository(with(tools, export_graph::run))
        .repository(with(tools, extract_concepts::run))
        .repository(with(tools, import_graph::run))
        .repository(with(tools, index_source::run))
        .repository(migrate_context::run)
        .repository(with(tools, pull_all_from_registry::run))
        .repository(with(tools, refine_concepts::run))
        .repository(with(tools, refresh_concept_relations::run))
        .repository(with(tools, retrieve_source::run))
        .repository(with(tools, source_decomposition::run))
        .repository(with(tools, summarize_concepts::run))
        .repository(with(tools, synthesize_concept::run))
}

/// What a job does, with the tools that it needs.
fn with<P, C, R, F>(tools: &Tools, run: F) -> impl Fn(P, C) -> R + use<P, C, R, F>
where
    F: Fn(P, C, Tools) -> R,
{
    let tools = tools.clone();
    move |payload, ctx| run(payload, ctx, tools.clone())
}

/// What comes back by itself.
pub fn periodic(config: &Config) -> Result<Vec<Periodic>> {
    let all = [
        Periodic::new(&CleanupAudit {}, Duration::from_hours(24)),
        Periodic::new(&CleanupExpired {}, Duration::from_mins(10)),
        Periodic::new(&CleanupFiles {}, Duration::from_hours(24)),
        Periodic::new(&ReadWithdrawals {}, Duration::from_hours(1)),
        Periodic::new(&SettleSources {}, Duration::from_mins(1)),
        Periodic::new(&SweepConceptRelations {}, config.task.refresh_concept_relations_interval.duration()),
        Periodic::new(&SweepSearch {}, Duration::from_mins(10)),
    ];
    all.into_iter().collect::<Result<_, _>>().map_err(Error::internal)
}
