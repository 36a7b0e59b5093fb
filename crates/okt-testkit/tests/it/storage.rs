//! What lives in PostgreSQL: databases, migrations, row-level security, rows.
mod answers;
mod databases;
mod files;
mod idempotency;
mod migrations;
mod pg;
mod pool;
mod references;
mod row_level_security;
