//! What tests stand on: real databases, private clusters, real processes, and a small service of notes that uses
//! everything that HTTP services share. `app::TestApp` is where most tests begin.
//!
//! Nothing here is shipped. Panics are how a fixture says that a test can't go on.
#![expect(clippy::missing_panics_doc, reason = "a fixture that can't be set up fails its test")]

pub mod accounts;
pub mod answers;
pub mod app;
pub mod client;
pub mod cluster;
pub mod concepts;
pub mod cpu;
pub mod db;
pub mod facts;
pub mod golden;
pub mod jobs;
pub mod llm;
pub mod multipart;
pub mod notes;
pub mod oauth;
pub mod process;
pub mod qdrant;
pub mod receiver;
pub mod registry;
pub mod s3;
pub mod served;
pub mod soak;
pub mod tenants;
pub mod vectors;
pub mod wait;
pub mod web;
