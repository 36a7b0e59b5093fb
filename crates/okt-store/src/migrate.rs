//! Migrations per schema, one migrator at a time.

use std::time::Duration;

use okt_model::{Error, Result};
use sqlx::migrate::{Migrate, MigrateError, Migrator};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::databases::SERVICE_ROLE;
use crate::error::from_sqlx;
use crate::places::connect;

/// What lives together and may live apart from the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Schema {
    /// Users, roles, settings, keys: one per installation.
    System,
    /// The knowledge of repositories: in every database that may hold one.
    Repository,
    /// The job queue.
    Tasks,
    /// Vectors of what repositories know: beside them, where the server has pgvector.
    Vectors,
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
            Self::Vectors => "okt_vectors",
        }
    }

    fn migrator(self) -> Migrator {
        let mut migrator = match self {
            Self::System => sqlx::migrate!("migrations/system"),
            Self::Repository => sqlx::migrate!("migrations/repository"),
            Self::Tasks => sqlx::migrate!("migrations/tasks"),
            Self::Vectors => sqlx::migrate!("migrations/vectors"),
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

/// The oldest pgvector that goes on looking where a filter left too few neighbours.
const PGVECTOR: [i32; 2] = [0, 8];

/// Applies what is missing in one database.
pub(crate) async fn migrate(
    name: &str,
    options: &PgConnectOptions,
    schemas: &[Schema],
) -> Result<Vec<Report>> {
    let mut conn = connect(options).await?;
    execute(&mut conn, &format!("SET statement_timeout = 0; SET lock_timeout = '{LOCK_TIMEOUT}'")).await?;
    // Asked again and again, not waited for: a session that waits inside of a statement holds a snapshot, and an
    // index that is built concurrently by the one who has the lock would wait for it in turn.
    while !take_lock(&mut conn).await? {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }

    let mut reports = Vec::new();
    let schemas = applicable(&mut conn, schemas).await?;
    for schema in &schemas {
        let migrations = missing(&mut conn, *schema).await?;
        if !migrations.is_empty() {
            apply(&mut conn, *schema).await?;
        }
        reports.push(Report { database: name.to_owned(), schema: schema.name(), migrations });
    }
    prepare_service_role(&mut conn, &schemas).await?;
    // Closing the session gives the lock back too; waiting for it makes the order visible to the next one.
    conn.close().await.map_err(from_sqlx)?;
    Ok(reports)
}

/// What [`migrate`] would apply; changes nothing.
pub(crate) async fn pending(
    name: &str,
    options: &PgConnectOptions,
    schemas: &[Schema],
) -> Result<Vec<Report>> {
    let mut conn = connect(options).await?;
    let mut reports = Vec::new();
    for schema in &applicable(&mut conn, schemas).await? {
        let migrations = missing(&mut conn, *schema).await?;
        reports.push(Report { database: name.to_owned(), schema: schema.name(), migrations });
    }
    Ok(reports)
}

/// Those that this server can have. A server without pgvector, with one that is too old, or with one that this login may
/// not switch on, goes without vectors; when that has changed, the next migrator finds out.
async fn applicable(conn: &mut PgConnection, schemas: &[Schema]) -> Result<Vec<Schema>> {
    let mut schemas = schemas.to_vec();
    if schemas.contains(&Schema::Vectors) {
        let able: bool = sqlx::query_scalar(
            r"SELECT coalesce(
                (SELECT string_to_array(substring(extversion FROM '^\d+\.\d+'), '.')::int[] >= $1
                   FROM pg_extension WHERE extname = 'vector'),
                (SELECT string_to_array(substring(v.version FROM '^\d+\.\d+'), '.')::int[] >= $1
                        AND (r.rolsuper OR (v.trusted AND has_database_privilege(current_database(), 'CREATE')))
                   FROM pg_available_extensions e
                   JOIN pg_available_extension_versions v ON v.name = e.name AND v.version = e.default_version
                   JOIN pg_roles r ON r.rolname = current_user
                  WHERE e.name = 'vector'),
                false)",
        )
        .bind(PGVECTOR)
        .fetch_one(conn)
        .await
        .map_err(from_sqlx)?;
        schemas.retain(|schema| able || *schema != Schema::Vectors);
    }
    Ok(schemas)
}

async fn take_lock(conn: &mut PgConnection) -> Result<bool> {
    sqlx::query_scalar("SELECT pg_try_advisory_lock($1)").bind(LOCK).fetch_one(conn).await.map_err(from_sqlx)
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
            return Err(Error::Operator(format!(
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
async fn prepare_service_role(conn: &mut PgConnection, schemas: &[Schema]) -> Result<()> {
    let (superuser, passes, exists): (bool, bool, bool) = sqlx::query_as(
        "SELECT rolsuper, rolsuper OR rolbypassrls, EXISTS (SELECT FROM pg_roles WHERE rolname = $1)
           FROM pg_roles WHERE rolname = current_user",
    )
    .bind(SERVICE_ROLE)
    .fetch_one(&mut *conn)
    .await
    .map_err(from_sqlx)?;
    if !passes {
        return Ok(());
    }
    let taken_on = take_on_role(conn, superuser, exists).await;
    taken_on.map_err(|error| {
        Error::Operator(format!(
            "the login may pass row-level security but not take on the role {SERVICE_ROLE}: let it own the \
             database without BYPASSRLS, or have an administrator create the role and grant it ({})",
            std::error::Error::source(&error).map_or_else(String::new, ToString::to_string),
        ))
    })?;
    for schema in schemas {
        if lacks_grants(conn, schema.name()).await? {
            let schema = schema.name();
            let statements = [
                format!("GRANT USAGE ON SCHEMA {schema} TO {SERVICE_ROLE}"),
                format!(
                    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {SERVICE_ROLE}"
                ),
                format!("REVOKE INSERT, UPDATE, DELETE ON {schema}.migrations FROM {SERVICE_ROLE}"),
                format!("GRANT USAGE, UPDATE ON ALL SEQUENCES IN SCHEMA {schema} TO {SERVICE_ROLE}"),
            ];
            execute(conn, &statements.join("; ")).await?;
        }
    }
    Ok(())
}

async fn take_on_role(conn: &mut PgConnection, superuser: bool, exists: bool) -> Result<()> {
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
    if !superuser {
        execute(conn, &format!("GRANT {SERVICE_ROLE} TO CURRENT_USER")).await?;
    }
    Ok(())
}

/// Asked of the catalogue every time: whoever made a table may have died before granting it.
async fn lacks_grants(conn: &mut PgConnection, schema: &str) -> Result<bool> {
    sqlx::query_scalar(
        "SELECT NOT has_schema_privilege($1, $2, 'USAGE') OR EXISTS (
                SELECT FROM pg_class c
                 WHERE c.relnamespace = $2::regnamespace AND c.relname <> 'migrations'
                   AND CASE c.relkind WHEN 'S' THEN NOT has_sequence_privilege($1, c.oid, 'UPDATE')
                                      WHEN 'r' THEN NOT has_table_privilege($1, c.oid, 'DELETE')
                                      WHEN 'p' THEN NOT has_table_privilege($1, c.oid, 'DELETE')
                                      ELSE false END)",
    )
    .bind(SERVICE_ROLE)
    .bind(schema)
    .fetch_one(conn)
    .await
    .map_err(from_sqlx)
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
