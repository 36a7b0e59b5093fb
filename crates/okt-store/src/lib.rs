//! What stays: PostgreSQL rows, named databases, migrations, files.
//!
//! It must not know HTTP, providers or what a job does. Functions take the caller's connection, and so its
//! transaction. To add a table: a migration under `migrations/<schema>/`, a file here named after the table, and for
//! a repository table the three row-level-security statements that `tests/storage` looks for.

pub mod ai_calls;
pub mod ai_turns;
pub mod api_keys;
pub mod audit;
pub mod audit_outbox;
pub mod blobs;
pub mod concept_aliases;
pub mod concept_graph;
pub mod concept_merges;
pub mod concept_readings;
pub mod concept_relations;
pub mod concept_summaries;
pub mod concept_syntheses;
pub mod concept_twins;
pub mod concept_vectors;
pub mod concepts;
pub mod contexts;
pub mod counters;
pub mod curation;
mod databases;
pub mod embedding_spaces;
mod endpoints;
pub mod fact_contradictions;
pub mod fact_groups;
pub mod fact_merges;
pub mod fact_vectors;
pub mod facts;
pub mod host_providers;
pub mod idempotency;
pub mod investigations;
pub mod invitations;
mod migrations;
pub mod model_answers;
pub mod moves;
pub mod oauth_clients;
pub mod oauth_grants;
pub mod oauth_requests;
mod old_processes;
mod opening;
pub mod outbox;
pub mod passage_vectors;
mod probes;
pub mod promptsets;
pub mod repositories;
pub mod repository_settings;
pub mod roles;
pub mod search_filters;
pub mod search_hits;
pub mod search_units;
pub mod sessions;
pub mod source_extractions;
pub mod source_images;
pub mod source_marks;
pub mod source_texts;
pub mod sources;
pub mod summary_states;
pub mod user_usage;
pub mod users;
mod words;
pub mod write_fence;

pub use blobs::Blobs;
pub use databases::{Connection, Databases, Inspected, Purpose};
pub use endpoints::connect_options;
pub use migrations::{Report, Schema};
pub use okt_pg::{Error, Listener, Pooled, Tx, Usage, planned_anew};
pub use probes::Probed;
