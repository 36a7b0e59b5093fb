//! The furniture of HTTP, through a real listener and a real database.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod documents;
mod idempotency;
mod limits;
mod paging;
mod refusals;
mod routes;
mod statements;
