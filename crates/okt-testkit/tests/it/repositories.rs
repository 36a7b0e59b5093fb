//! Repositories: who gets one, where it lives, who sees it, and how it ends.

mod audit;
mod away;
mod cleanup;
mod contexts;
mod creation;
mod invitations;
mod isolation;
mod isolation_concepts;
mod isolation_curation;
mod isolation_facts;
mod isolation_investigations;
mod isolation_passages;
mod isolation_search;
mod isolation_sources;
mod isolation_summaries;
mod late_movers;
mod members;
mod merging;
mod moves;
mod quotas;
mod settings;
mod sources;
mod starter;
mod two_databases;
mod visibility;
