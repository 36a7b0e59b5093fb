//! What goes over the wire: the bodies of requests and answers, with their conversions from and to the types of the use
//! cases. Shared by all front ends, so that they say the same thing in the same words.
//!
//! It must not know SQL, nor axum. To add one: a type in the file of its resource, with the schema that the OpenAPI
//! document shows; the words of an enumeration come from `vocabulary.rs`.

pub mod admin;
pub mod ai_usage;
pub mod answers;
pub mod api_keys;
pub mod audit;
pub mod auth;
pub mod bundles;
pub mod concepts;
pub mod contexts;
pub mod contradictions;
pub mod curation;
pub mod exports;
pub mod facts;
pub mod graph;
pub mod investigations;
pub mod invitations;
pub mod jobs;
pub mod members;
pub mod presets;
pub mod promptsets;
pub mod registry;
pub mod reports;
pub mod repositories;
pub mod search;
pub mod sessions;
pub mod settings;
pub mod setup;
pub mod source_estimates;
pub mod source_import;
pub mod source_marks;
pub mod source_pages;
pub mod source_providers;
pub mod source_views;
pub mod sources;
pub mod summaries;
pub mod users;
pub mod vocabulary;
pub mod webhooks;
