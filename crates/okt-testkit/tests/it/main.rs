//! Every test that needs PostgreSQL or a process of ours; a module per resource.
//!
//! One executable, because linking the product takes longer than compiling any of these modules.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod accounts;
mod answers;
mod bundles;
mod client;
mod concepts;
mod contradictions;
mod curation;
mod dedup;
mod exports;
mod facts;
mod http;
mod investigations;
mod jobs;
mod load;
mod oauth;
mod oauth_tokens;
mod parse;
mod process;
mod registry;
mod reports;
mod repositories;
mod scale;
mod search;
mod soak;
mod sources;
mod storage;
mod summaries;
mod up;
mod upgrade;
mod vectors;
mod webhooks;
