//! What every HTTP service shares, through a real listener and a real database.
mod bodies;
mod documents;
mod files;
mod idempotency;
mod limits;
mod mcp;
mod mounted;
mod openapi;
mod paging;
mod queries;
mod refusals;
mod routes;
mod statements;
mod streams;
