//! Migrations per schema, one migrator at a time.

use std::time::Duration;

use okt_model::{Error, Result};
use sqlx::migrate::{Migrate, MigrateError, Migrator};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection};

use crate::databases::SERVICE_ROLE;
use crate::error::from_sqlx;

/// What lives together and may live apart from the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Schema {
    /// Users, roles, settings, keys: one per installation.
    System,
    /// The knowledge of repositories: in every database that may hold one.
    Repository,
    /// The job queue.
    Tasks,
}

/// What was found or done in one schema of one database.
#[derive(Debug, PartialEq, Eq)]
pub struct Report {
    pub database: String,
    pub schema: &'static str,
    /// Migrations that were applied now, or with [`pending`] would be.
    pub migrations: Vec<String>,
}

impl Schema {
    pub const fn name(self) -> &'static str {
        match self {
            Self::System => "okt_system",
            Self::Repository => "okt_repository",
            Self::Tasks => "okt_tasks",
        }
    }

    fn migrator(self) -> Migrator {
        let mut migrator = match self {
            Self::System => sqlx::migrate!("migrations/system"),
            Self::Repository => sqlx::migrate!("migrations/repository"),
            Self::Tasks => sqlx::migrate!("migrations/tasks"),
        };
        migrator.dangerous_set_table_name(format!("{}.migrations", self.name()));
        migrator.create_schema(self.name());
        // During a rolling deployment an older process boots on a newer schema; that must work.
        migrator.set_ignore_missing(true);
        // The lock is taken once around all schemas of a database, see `migrate`.
        migrator.set_locking(false);
        migrator
    }
}

/// Any number, the same in every process: whoever holds this lock migrates, the others wait and find it done.
const LOCK: i64 = 0x6f6b_745f_6d69_6772;

/// A statement that waits longer than this for a table lock gives up and is tried again, so that a migration never
/// queues the whole service behind itself.
const LOCK_TIMEOUT: &str = "3s";
const ATTEMPTS: u32 = 20;

/// Applies what is missing in one database.
pub async fn migrate(name: &str, options: &PgConnectOptions, schemas: &[Schema]) -> Result<Vec<Report>> {
    let mut conn = options.connect().await.map_err(from_sqlx)?;
    // Waiting for the other migrator is right, however long it takes.
    execute(&mut conn, "SET lock_timeout = 0").await?;
    execute(&mut conn, &format!("SELECT pg_advisory_lock({LOCK})")).await?;
    execute(&mut conn, &format!("SET lock_timeout = '{LOCK_TIMEOUT}'")).await?;

    let mut reports = Vec::new();
    for schema in schemas {
        let migrations = missing(&mut conn, *schema).await?;
        if !migrations.is_empty() {
            apply(&mut conn, *schema).await?;
        }
        reports.push(Report { database: name.to_owned(), schema: schema.name(), migrations });
    }
    let changed = reports.iter().any(|report| !report.migrations.is_empty());
    prepare_service_role(&mut conn, schemas, changed).await?;
    // Closing the session gives the lock back too; waiting for it makes the order visible to the next one.
    conn.close().await.map_err(from_sqlx)?;
    Ok(reports)
}

/// What [`migrate`] would apply; changes nothing.
pub async fn pending(name: &str, options: &PgConnectOptions, schemas: &[Schema]) -> Result<Vec<Report>> {
    let mut conn = options.connect().await.map_err(from_sqlx)?;
    let mut reports = Vec::new();
    for schema in schemas {
        let migrations = missing(&mut conn, *schema).await?;
        reports.push(Report { database: name.to_owned(), schema: schema.name(), migrations });
    }
    Ok(reports)
}

async fn missing(conn: &mut PgConnection, schema: Schema) -> Result<Vec<String>> {
    let migrator = schema.migrator();
    let ledger = format!("{}.migrations", schema.name());
    let known: bool = sqlx::query_scalar("SELECT to_regclass($1) IS NOT NULL")
        .bind(&ledger)
        .fetch_one(&mut *conn)
        .await
        .map_err(from_sqlx)?;
    let applied =
        if known { conn.list_applied_migrations(&ledger).await.map_err(from_migrate)? } else { Vec::new() };
    for migration in migrator.iter() {
        let found = applied.iter().find(|a| a.version == migration.version);
        if found.is_some_and(|a| a.checksum != migration.checksum) {
            return Err(Error::internal(format!(
                "migration {} of {} was changed after it had been applied; restore its file and add a new one",
                migration.version,
                schema.name(),
            )));
        }
    }
    Ok(migrator
        .iter()
        .filter(|migration| !applied.iter().any(|a| a.version == migration.version))
        .map(|migration| format!("{:04} {}", migration.version, migration.description))
        .collect())
}

async fn apply(conn: &mut PgConnection, schema: Schema) -> Result<()> {
    let migrator = schema.migrator();
    let mut attempt = 1;
    loop {
        match migrator.run_direct(None, conn, false).await {
            Ok(()) => return Ok(()),
            Err(error) if attempt < ATTEMPTS && is_lock_timeout(&error) => {
                tracing::warn!(
                    schema = schema.name(),
                    attempt,
                    "a table is in use, trying the migration again"
                );
                tokio::time::sleep(Duration::from_millis(500)).await;
                attempt += 1;
            }
            Err(error) => return Err(from_migrate(error)),
        }
    }
}

/// PostgreSQL lets superusers past row-level security. When we log in as one, the service works as a role that can't
/// pass; this makes the role and gives it the rows, not the tables. An ordinary owner needs no second role, because
/// the policies are forced on owners.
async fn prepare_service_role(conn: &mut PgConnection, schemas: &[Schema], changed: bool) -> Result<()> {
    let (passes, exists): (bool, bool) = sqlx::query_as(
        "SELECT rolsuper OR rolbypassrls, EXISTS (SELECT FROM pg_roles WHERE rolname = $1)
           FROM pg_roles WHERE rolname = current_user",
    )
    .bind(SERVICE_ROLE)
    .fetch_one(&mut *conn)
    .await
    .map_err(from_sqlx)?;
    if !passes {
        return Ok(());
    }
    if !exists {
        // Roles belong to the whole server: another database's migrator may be making the same one right now.
        execute(
            conn,
            &format!(
                "DO $$ BEGIN CREATE ROLE {SERVICE_ROLE} NOLOGIN;
                 EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
            ),
        )
        .await?;
    }
    for schema in schemas {
        let schema = schema.name();
        let granted: bool = sqlx::query_scalar("SELECT has_schema_privilege($1, $2, 'USAGE')")
            .bind(SERVICE_ROLE)
            .bind(schema)
            .fetch_one(&mut *conn)
            .await
            .map_err(from_sqlx)?;
        if granted && !changed {
            continue;
        }
        let statements = [
            format!("GRANT USAGE ON SCHEMA {schema} TO {SERVICE_ROLE}"),
            format!(
                "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {SERVICE_ROLE}"
            ),
            format!("REVOKE INSERT, UPDATE, DELETE ON {schema}.migrations FROM {SERVICE_ROLE}"),
            format!("GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {SERVICE_ROLE}"),
        ];
        execute(conn, &statements.join("; ")).await?;
    }
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "session settings and grants can't be prepared; no input is in them"
)]
async fn execute(conn: &mut PgConnection, statement: &str) -> Result<()> {
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(conn).await.map_err(from_sqlx)?;
    Ok(())
}

fn is_lock_timeout(error: &MigrateError) -> bool {
    let (MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _)) = error else {
        return false;
    };
    error.as_database_error().and_then(sqlx::error::DatabaseError::code).is_some_and(|code| code == "55P03")
}

fn from_migrate(error: MigrateError) -> Error {
    match error {
        MigrateError::Execute(error) => from_sqlx(error),
        other => Error::Internal(Box::new(other)),
    }
}
