//! Repositories: who gets one, where it lives, who sees it, and how it ends.

#![expect(clippy::unwrap_used, reason = "a test that finds nothing has failed")]

mod cleanup;
mod contexts;
mod creation;
mod house;
mod isolation;
mod isolation_facts;
mod isolation_sources;
mod members;
mod merging;
mod moves;
mod settings;
mod sources;
mod starter;
mod visibility;
