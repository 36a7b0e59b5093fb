//! The HTTP front end: the route table, handlers, the OpenAPI document and the page that shows it.
//!
//! It must not know SQL, nor run a job. To add a route: a handler with `#[utoipa::path]` in the file of its resource that
//! asks for the proof of its permission (`extract.rs`), and a line with its guard in `table.rs`.

mod admin;
mod ai_usage;
mod answers;
mod api;
mod api_keys;
mod audit;
mod auth;
mod bundles;
mod concepts;
mod contexts;
mod contradictions;
mod curation;
mod docs;
mod evidence;
mod exports;
mod extract;
mod facts;
mod graph;
mod health;
mod idempotency;
mod investigations;
mod invitations;
mod jobs;
mod mcp;
mod members;
mod metrics;
mod oauth;
mod openapi;
mod presets;
mod promptsets;
mod registry;
mod reports;
mod repositories;
mod search;
mod sessions;
mod settings;
mod setup;
mod sign_in;
mod source_estimates;
mod source_files;
mod source_import;
mod source_marks;
mod source_pages;
mod source_providers;
mod source_texts;
mod sources;
mod streams;
mod summaries;
mod table;
mod users;
mod web;
mod webhooks;

pub use api::Api;
pub use docs::errors_page;
pub use idempotency::once;
pub use openapi::{document, finish};
pub use table::{metrics_probes, probes, table};
