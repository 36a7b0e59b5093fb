//! What lives in PostgreSQL: databases, migrations, row-level security, rows.
mod answers;
mod concept_plans;
mod concepts;
mod databases;
mod files;
mod idempotency;
mod migrations;
mod pg;
mod pool;
mod references;
mod relations;
mod row_level_security;
mod search_units;
