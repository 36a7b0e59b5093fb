//! The outside: whatever okt asks of other services goes through here.
//!
//! Addresses come from strangers: from clients that register, from pages that redirect, from imported bundles. So every
//! request is made by the one [`GuardedClient`], which connects to nothing but public addresses and reads nothing
//! without a limit. This crate does not know PostgreSQL, nor who asks.
//!
//! To add a service: a module of its own that takes a `&GuardedClient`. No other HTTP client is made; `clippy.toml`
//! refuses it.

pub mod ai;
mod guarded;
pub mod registry;
pub mod resolution;
mod retry_after;
pub mod search;
mod text;
pub mod webhooks;

pub use guarded::{
    FetchError, GuardedClient, Pieces, Profile, Request, Response, Rule, Service, Timeouts, Wait,
};
pub use retry_after::retry_after;
