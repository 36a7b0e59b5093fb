//! Migrations per schema, one migrator at a time.
//!
//! A file that begins with `-- no-transaction` runs outside of one and builds its indexes concurrently. A file that begins
//! with `-- stops-old-processes` can't be worked beside by a process of the release before.

use std::time::Duration;

use okt_model::Error;
use sqlx::migrate::{Migrate, MigrateError, Migration};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection, PgConnection};
use tracing::log::LevelFilter;

use crate::connect::connect;
use crate::error::Result;
use crate::role;

/// A schema of a database and the files that make it.
pub struct Schema {
    name: &'static str,
    files: sqlx::migrate::Migrator,
    /// Indexes whose names begin so are built at run time, by somebody who also looks after those that are invalid.
    unmanaged_indexes: Option<&'static str>,
    newest: Option<i64>,
}

/// What was found or done in one schema.
#[derive(Debug, PartialEq, Eq)]
pub struct Report {
    pub schema: &'static str,
    /// Migrations that were applied, by number and name.
    pub migrations: Vec<String>,
}

/// A connection that holds the lock of whoever migrates its database.
pub struct Migrator {
    conn: PgConnection,
    /// What an operator runs to migrate, for errors that ask for it.
    command: &'static str,
}

/// Any number, the same in every process: whoever holds this lock migrates, the others wait and find it done.
const LOCK: i64 = 0x6f6b_745f_6d69_6772;

/// The first line of a file that no process of the release before can work beside.
const STOPS: &str = "-- stops-old-processes\n";

/// A statement that waits longer than this for a table lock gives up and is tried again, so that a migration never
/// queues the whole service behind itself.
const LOCK_TIMEOUT: &str = "3s";
const ATTEMPTS: u32 = 20;

/// What runs outside of a transaction builds indexes concurrently: it waits for all transactions that are older than
/// itself, and nobody who reads or writes waits behind it. Giving up early would only leave an invalid index behind.
const CONCURRENT_LOCK_TIMEOUT: &str = "10min";

impl Schema {
    /// `files` are those of `sqlx::migrate!`. The schema holds the list of what was applied, in a table `migrations`.
    pub fn new(name: &'static str, mut files: sqlx::migrate::Migrator) -> Self {
        files.dangerous_set_table_name(format!("{name}.migrations"));
        files.create_schema(name);
        // During a rolling deployment an older process boots on a newer schema; that must work.
        files.set_ignore_missing(true);
        // The lock is taken once around all schemas of a database, see `Migrator::lock`.
        files.set_locking(false);
        Self { name, files, unmanaged_indexes: None, newest: None }
    }

    /// Nothing that is newer than this migration.
    #[must_use]
    pub fn up_to(self, version: i64) -> Self {
        Self { newest: Some(version), ..self }
    }

    /// Whether there is a file of this number.
    pub fn has(&self, version: i64) -> bool {
        self.files.version_exists(version)
    }

    /// Leaves invalid indexes alone whose names begin with this.
    #[must_use]
    pub fn leaving_indexes(self, prefix: &'static str) -> Self {
        Self { unmanaged_indexes: Some(prefix), ..self }
    }

    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The migrations that a database lacks; changes nothing.
    pub async fn missing(&self, conn: &mut PgConnection) -> Result<Vec<String>> {
        Ok(missing(conn, self).await?.into_iter().map(named).collect())
    }

    /// Those of [`Self::missing`] that no process of the release before can work beside.
    pub async fn missing_that_stop(&self, conn: &mut PgConnection) -> Result<Vec<String>> {
        let missing = missing(conn, self).await?;
        let stopping = missing.into_iter().filter(|migration| migration.sql.as_str().starts_with(STOPS));
        Ok(stopping.map(named).collect())
    }
}

impl Migrator {
    /// Waits until nobody else migrates this database. Errors tell the operator to run `command` again.
    pub async fn lock(options: &PgConnectOptions, command: &'static str) -> Result<Self> {
        // A migration takes as long as it takes; its text would be pages of the log.
        let options = options.clone().log_slow_statements(LevelFilter::Off, Duration::MAX);
        let mut conn = connect(&options, None).await?;
        execute(&mut conn, "SET statement_timeout = 0").await?;
        set_lock_timeout(&mut conn, LOCK_TIMEOUT).await?;
        // Asked again and again, not waited for: a session that waits inside of a statement holds a snapshot, and an
        // index that is built concurrently by the one who has the lock would wait for it in turn.
        while !take_lock(&mut conn).await? {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(Self { conn, command })
    }

    /// For what has to be known before it is decided which schemas there are.
    pub const fn connection(&mut self) -> &mut PgConnection {
        &mut self.conn
    }

    /// Applies what is missing. `role` gets the rows where this login could pass row-level security; a service without
    /// such policies names none.
    pub async fn run(mut self, schemas: &[Schema], role: Option<&'static str>) -> Result<Vec<Report>> {
        let (conn, command) = (&mut self.conn, self.command);
        let mut reports = Vec::new();
        for schema in schemas {
            let migrations = missing(conn, schema).await?;
            for migration in &migrations {
                apply(conn, schema, migration, command).await?;
            }
            let migrations = migrations.into_iter().map(named).collect();
            reports.push(Report { schema: schema.name, migrations });
        }
        for schema in schemas {
            rebuild_invalid_indexes(conn, schema, command).await?;
        }
        if let Some(role) = role {
            role::prepare(conn, schemas, role).await?;
        }
        // Closing the session gives the lock back too; waiting for it makes the order visible to the next one.
        self.conn.close().await?;
        Ok(reports)
    }
}

fn named(migration: &Migration) -> String {
    format!("{:04} {}", migration.version, migration.description)
}

async fn take_lock(conn: &mut PgConnection) -> Result<bool> {
    Ok(sqlx::query_scalar("SELECT pg_try_advisory_lock($1)").bind(LOCK).fetch_one(conn).await?)
}

async fn missing<'a>(conn: &mut PgConnection, schema: &'a Schema) -> Result<Vec<&'a Migration>> {
    let ledger = format!("{}.migrations", schema.name);
    let known: bool =
        sqlx::query_scalar("SELECT to_regclass($1) IS NOT NULL").bind(&ledger).fetch_one(&mut *conn).await?;
    let applied =
        if known { conn.list_applied_migrations(&ledger).await.map_err(from_migrate)? } else { Vec::new() };
    for migration in schema.files.iter() {
        let found = applied.iter().find(|a| a.version == migration.version);
        if found.is_some_and(|a| a.checksum != migration.checksum) {
            return Err(Error::Operator(format!(
                "migration {} of {} was changed after it had been applied; restore its file and add a new one",
                migration.version, schema.name,
            ))
            .into());
        }
    }
    Ok(schema
        .files
        .iter()
        .filter(|migration| schema.newest.is_none_or(|newest| migration.version <= newest))
        .filter(|migration| !applied.iter().any(|a| a.version == migration.version))
        .collect())
}

async fn apply(conn: &mut PgConnection, schema: &Schema, migration: &Migration, command: &str) -> Result<()> {
    if migration.no_tx {
        // `IF NOT EXISTS` takes what an earlier try has left for the index itself.
        rebuild_invalid_indexes(conn, schema, command).await?;
        set_lock_timeout(conn, CONCURRENT_LOCK_TIMEOUT).await?;
    }
    let attempts = if migration.no_tx { 1 } else { ATTEMPTS };
    let mut attempt = 1;
    loop {
        match schema.files.run_direct(Some(migration.version), conn, false).await {
            Ok(()) => break,
            Err(error) if is_lock_timeout(&error) && attempt < attempts => {
                tracing::warn!(
                    schema = schema.name,
                    migration = migration.version,
                    attempt,
                    "a table is in use, trying the migration again"
                );
                tokio::time::sleep(Duration::from_millis(500)).await;
                attempt += 1;
            }
            Err(error) if is_lock_timeout(&error) => {
                return Err(Error::Operator(format!(
                    "migration {} of {} waited too long for transactions on its table; end them (pg_stat_activity \
                     lists them) and run `{command}` again",
                    migration.version, schema.name,
                ))
                .into());
            }
            Err(error) => return Err(from_migrate(error)),
        }
    }
    set_lock_timeout(conn, LOCK_TIMEOUT).await
}

/// Indexes whose concurrent build was cut off are there by name, cost every write, and are used by no query. An error
/// when one can't be rebuilt, because a unique one among them would not keep its promise.
async fn rebuild_invalid_indexes(conn: &mut PgConnection, schema: &Schema, command: &str) -> Result<()> {
    let found = invalid_indexes(conn, schema).await?;
    if found.is_empty() {
        return Ok(());
    }
    set_lock_timeout(conn, CONCURRENT_LOCK_TIMEOUT).await?;
    for (index, leftover) in &found {
        tracing::warn!(index, "an invalid index was found, rebuilding it");
        let statement =
            if *leftover { "DROP INDEX CONCURRENTLY IF EXISTS" } else { "REINDEX INDEX CONCURRENTLY" };
        execute(conn, &format!("{statement} {index}")).await.map_err(|error| {
            let cause = std::error::Error::source(&error).map_or_else(String::new, ToString::to_string);
            invalid_index(index, &cause, command)
        })?;
    }
    set_lock_timeout(conn, LOCK_TIMEOUT).await?;
    match invalid_indexes(conn, schema).await?.first() {
        Some((index, _)) => Err(invalid_index(index, "it is not valid after REINDEX either", command)),
        None => Ok(()),
    }
}

fn invalid_index(index: &str, cause: &str, command: &str) -> crate::Error {
    Error::Operator(format!(
        "the index {index} is invalid and can't be rebuilt: {cause}. Put right what it complains about, then \
         run `{command}` again"
    ))
    .into()
}

/// By name, each with whether a REINDEX that was cut off has left it beside the one that it was to replace. Those that
/// somebody is building right now are no leftovers.
async fn invalid_indexes(conn: &mut PgConnection, schema: &Schema) -> Result<Vec<(String, bool)>> {
    Ok(sqlx::query_as(
        r"SELECT format('%I.%I', n.nspname, c.relname), c.relname ~ '_cc(new|old)\d*$'
            FROM pg_index i
            JOIN pg_class c ON c.oid = i.indexrelid
            JOIN pg_namespace n ON n.oid = c.relnamespace
           WHERE NOT i.indisvalid AND n.nspname = $1
             AND NOT coalesce(starts_with(c.relname, $2), false)
             AND NOT EXISTS (SELECT FROM pg_stat_progress_create_index p
                              WHERE p.datname = current_database()
                                AND (p.index_relid = i.indexrelid
                                     OR (p.command LIKE 'REINDEX%' AND p.relid = i.indrelid)))
           ORDER BY 1",
    )
    .bind(schema.name)
    .bind(schema.unmanaged_indexes)
    .fetch_all(conn)
    .await?)
}

async fn set_lock_timeout(conn: &mut PgConnection, timeout: &str) -> Result<()> {
    execute(conn, &format!("SET lock_timeout = '{timeout}'")).await
}

#[expect(
    clippy::disallowed_methods,
    reason = "session settings and grants can't be prepared; no input is in them"
)]
pub(crate) async fn execute(conn: &mut PgConnection, statement: &str) -> Result<()> {
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(conn).await?;
    Ok(())
}

fn is_lock_timeout(error: &MigrateError) -> bool {
    let (MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _)) = error else {
        return false;
    };
    error.as_database_error().and_then(sqlx::error::DatabaseError::code).is_some_and(|code| code == "55P03")
}

fn from_migrate(error: MigrateError) -> crate::Error {
    match error {
        MigrateError::Execute(error) => error.into(),
        other => Error::Internal(Box::new(other)).into(),
    }
}
