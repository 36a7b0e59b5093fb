//! Background jobs: what is asked for happens, once, and says what it is doing.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod effects;
mod ends;
mod events;
mod listener;
mod queue;
mod routes;
mod shop;
mod tenants;
mod upkeep;
