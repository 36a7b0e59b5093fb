//! What lives in PostgreSQL: databases, migrations, row-level security, rows.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod answers;
mod databases;
mod idempotency;
mod migrations;
mod pool;
mod row_level_security;
