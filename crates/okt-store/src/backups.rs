//! Copying whole databases out and in, for backups: every table of our schemas, as one state of each database.
//!
//! The tables come from the catalogue, so that none is ever forgotten. Rows leave and enter as PostgreSQL's own text, which the
//! next major version reads too.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::TryStreamExt as _;
use okt_config::Config;
use okt_model::{Error, RepositoryId};
use okt_pg::{Migrator, Result, connect};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _};
use uuid::Uuid;

use crate::databases::SERVICE_ROLE;
use crate::endpoints::{Endpoint, about, endpoints, schemas_of};
use crate::migrations::{Schema, applicable};
use crate::old_processes;

/// What lies in one database of one schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaState {
    pub schema: String,
    /// Numbers of the migrations that made it.
    pub migrations: Vec<i64>,
    pub tables: Vec<TableState>,
    pub sequences: Vec<SequenceState>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableState {
    pub name: String,
    pub columns: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SequenceState {
    pub name: String,
    pub last: i64,
    pub is_called: bool,
}

/// A database as it is at one moment, for as long as this lives.
pub struct Snapshot {
    name: String,
    conn: PgConnection,
    schemas: Vec<Schema>,
}

/// What makes the text of a row the same wherever it is written.
const SETTINGS: &str = "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; SET lock_timeout = 0; \
     SET DateStyle = 'ISO'; SET IntervalStyle = 'postgres'; SET TimeZone = 'UTC'; SET extra_float_digits = 1; \
     SET bytea_output = 'hex'; SET client_encoding = 'UTF8'";

impl Snapshot {
    /// Of every database of the configuration, taken as close to each other as can be.
    pub async fn take(config: &Config) -> Result<Vec<Self>> {
        let endpoints = endpoints(config)?;
        let taken = endpoints.iter().map(async |(name, endpoint)| {
            let mut conn = endpoint.reach(name).await?;
            let begun = async {
                execute(&mut conn, SETTINGS).await?;
                execute(
                    &mut conn,
                    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT pg_current_snapshot()",
                )
                .await
            };
            begun.await.map_err(|error| about(name, error))?;
            Ok::<_, okt_pg::Error>(Self { name: name.clone(), conn, schemas: endpoint.schemas.clone() })
        });
        futures_util::future::try_join_all(taken).await
    }

    /// The first name of the database in the configuration.
    pub fn database(&self) -> &str {
        &self.name
    }

    /// The moment, as the database's clock says it.
    pub async fn taken_at(&mut self) -> Result<String> {
        let at = r#"SELECT to_char(now(), 'YYYY-MM-DD"T"HH24:MI:SS"Z"')"#;
        Ok(sqlx::query_scalar(at).fetch_one(&mut self.conn).await?)
    }

    /// Nothing of a schema that is not there.
    pub async fn schemas(&mut self) -> Result<Vec<SchemaState>> {
        let mut states = Vec::new();
        for schema in self.schemas.clone() {
            let migrations = migrations(&mut self.conn, schema.name()).await?;
            if migrations.is_empty() {
                continue;
            }
            let missing = schema.files().missing(&mut self.conn).await?;
            if !missing.is_empty() {
                return Err(Error::Operator(format!(
                    "databases.{}: {} is not up to date; run `okt migrate` first, or the okt that made it",
                    self.name,
                    schema.name()
                ))
                .into());
            }
            states.push(SchemaState {
                schema: schema.name().to_owned(),
                migrations,
                tables: tables(&mut self.conn, schema.name()).await?,
                sequences: sequences(&mut self.conn, schema.name()).await?,
            });
        }
        Ok(states)
    }

    /// All repositories that the system knows, if it lives here: those whose rows are asked for where this login sees no others.
    pub async fn repositories(&mut self) -> Result<Vec<RepositoryId>> {
        if !self.schemas.contains(&Schema::System) {
            return Ok(Vec::new());
        }
        let ids: Vec<Uuid> = sqlx::query_scalar("SELECT id FROM okt_system.repositories ORDER BY id")
            .fetch_all(&mut self.conn)
            .await?;
        Ok(ids.into_iter().map(RepositoryId::from).collect())
    }

    /// Hands on all rows of a table as text, a line each; returns how many.
    pub async fn copy_out(
        &mut self,
        schema: &str,
        table: &TableState,
        repositories: &[RepositoryId],
        mut hand_on: impl FnMut(&[u8]) -> std::io::Result<()>,
    ) -> Result<u64> {
        let (path, columns) = (path(schema, &table.name), list(&table.columns));
        let apart: bool = sqlx::query_scalar("SELECT row_security_active($1::text)")
            .bind(&path)
            .fetch_one(&mut self.conn)
            .await?;
        if !apart {
            let copy = format!("COPY (SELECT {columns} FROM {path}) TO STDOUT");
            return self.copy_lines(&copy, &mut hand_on).await;
        }
        let mut rows = 0;
        for repository in repositories {
            let id = repository.uuid();
            sqlx::query("SELECT set_config('okt.repository', $1, true)")
                .bind(id.to_string())
                .execute(&mut self.conn)
                .await?;
            let copy = format!("COPY (SELECT {columns} FROM {path} WHERE repository_id = '{id}') TO STDOUT");
            rows += self.copy_lines(&copy, &mut hand_on).await?;
        }
        Ok(rows)
    }

    async fn copy_lines(
        &mut self,
        copy: &str,
        hand_on: &mut impl FnMut(&[u8]) -> std::io::Result<()>,
    ) -> Result<u64> {
        let (mut lines, mut chunks) = (0, self.conn.copy_out_raw(copy).await?);
        while let Some(chunk) = chunks.try_next().await? {
            // The end of a line within a value is written otherwise.
            lines += chunk.split(|byte| *byte == b'\n').count().saturating_sub(1) as u64;
            hand_on(&chunk).map_err(|error| Error::Operator(format!("can't write the backup: {error}")))?;
        }
        Ok(lines)
    }
}

/// A database that rows are copied into; nothing is there before [`Self::finish`].
pub struct Restore {
    name: String,
    conn: PgConnection,
    /// Tables whose policies and triggers are put back at the end.
    opened: Vec<(String, bool)>,
}

/// Where the rows of a backup go: the first names of the databases, by the schemas and names that the backup has.
pub fn targets(config: &Config) -> Result<BTreeMap<(String, String), String>> {
    let mut targets = BTreeMap::new();
    for (first, endpoint) in endpoints(config)? {
        for name in &endpoint.names {
            for schema in schemas_of(config, name) {
                targets.insert((name.clone(), schema.name().to_owned()), first.clone());
            }
        }
    }
    Ok(targets)
}

/// Which databases have something of ours, each with what is in them in words; an error where a process works with them.
pub async fn occupied(config: &Config) -> Result<Vec<String>> {
    let mut occupied = Vec::new();
    for (name, endpoint) in endpoints(config)? {
        let mut conn = endpoint.reach(&name).await?;
        let working = old_processes::living(&mut conn).await.map_err(|error| about(&name, error))?;
        if !working.is_empty() {
            return Err(Error::Operator(format!(
                "databases.{name}: processes of okt work with it ({}); stop all of them first",
                working.join(", ")
            ))
            .into());
        }
        let schemas = present(&mut conn, &endpoint).await?;
        conn.close().await?;
        if !schemas.is_empty() {
            occupied.push(format!("databases.{name} has {}", schemas.join(", ")));
        }
    }
    Ok(occupied)
}

/// Removes all that is ours.
pub async fn clear(config: &Config) -> Result<()> {
    for (name, endpoint) in endpoints(config)? {
        let mut conn = endpoint.reach(&name).await?;
        for schema in present(&mut conn, &endpoint).await? {
            let drop = format!("DROP SCHEMA {schema} CASCADE");
            execute(&mut conn, &drop).await.map_err(|error| about(&name, error))?;
        }
        conn.close().await?;
    }
    Ok(())
}

async fn present(conn: &mut PgConnection, endpoint: &Endpoint) -> Result<Vec<String>> {
    let names: Vec<&str> = endpoint.schemas.iter().map(|schema| schema.name()).collect();
    Ok(sqlx::query_scalar("SELECT nspname::text FROM pg_namespace WHERE nspname = ANY($1) ORDER BY 1")
        .bind(&names)
        .fetch_all(conn)
        .await?)
}

impl Restore {
    /// Makes the schemas as they were when the backup was made, and begins. `wanted` has the newest migration of each; one that
    /// this server can't have is left out, and is not among those that come back.
    pub async fn begin(
        config: &Config,
        database: &str,
        wanted: &BTreeMap<String, Vec<i64>>,
    ) -> Result<(Self, BTreeSet<String>)> {
        let endpoints = endpoints(config)?;
        let endpoint = endpoints
            .get(database)
            .ok_or_else(|| Error::Operator(format!("no database is named {database}")))?;
        let mut migrator = Migrator::lock(&endpoint.options, "okt restore").await?;
        let schemas = applicable(migrator.connection(), &endpoint.schemas).await?;
        let (mut files, mut made) = (Vec::new(), BTreeSet::new());
        for schema in schemas {
            let Some(applied) = wanted.get(schema.name()) else { continue };
            let known = schema.files();
            if let Some(unknown) = applied.iter().find(|version| !known.has(**version)) {
                return Err(Error::Operator(format!(
                    "the backup is of a later release: {} has the migration {unknown}, which this okt does not know; \
                     restore it with that release or a later one",
                    schema.name()
                ))
                .into());
            }
            files.push(known.up_to(applied.iter().copied().max().unwrap_or_default()));
            made.insert(schema.name().to_owned());
        }
        migrator.run(&files, Some(SERVICE_ROLE)).await.map_err(|error| about(database, error))?;
        let mut conn = connect(&endpoint.options, None).await?;
        execute(&mut conn, SETTINGS).await?;
        execute(&mut conn, "BEGIN").await?;
        Ok((Self { name: database.to_owned(), conn, opened: Vec::new() }, made))
    }

    /// The tables in an order in which each comes after those that it refers to.
    pub async fn order(&mut self, schema: &str, mut tables: Vec<TableState>) -> Result<Vec<TableState>> {
        let pairs: Vec<(String, String)> = sqlx::query_as(
            "SELECT one.relname::text, other.relname::text
               FROM pg_constraint c
               JOIN pg_class one ON one.oid = c.conrelid
               JOIN pg_class other ON other.oid = c.confrelid
              WHERE c.contype = 'f' AND one.relnamespace = $1::text::regnamespace AND c.conrelid <> c.confrelid",
        )
        .bind(schema)
        .fetch_all(&mut self.conn)
        .await?;
        let mut ordered: Vec<TableState> = Vec::new();
        while !tables.is_empty() {
            let is_ready = |table: &TableState| {
                pairs
                    .iter()
                    .all(|(one, other)| *one != table.name || ordered.iter().any(|done| done.name == *other))
            };
            let Some(next) = tables.iter().position(is_ready) else {
                return Err(
                    Error::internal(format!("tables of {schema} refer to each other in a circle")).into()
                );
            };
            ordered.push(tables.remove(next));
        }
        Ok(ordered)
    }

    /// Takes the text of a table, piece by piece; returns how many rows that was.
    pub async fn copy_in(
        &mut self,
        schema: &str,
        table: &TableState,
        mut next: impl FnMut() -> std::io::Result<Option<Vec<u8>>>,
    ) -> Result<u64> {
        let path = path(schema, &table.name);
        self.open(&path).await?;
        let copy = format!("COPY {path} ({}) FROM STDIN", list(&table.columns));
        let mut rows = self.conn.copy_in_raw(&copy).await?;
        loop {
            match next() {
                Ok(Some(piece)) => rows.send(piece).await?,
                Ok(None) => break,
                Err(error) => {
                    drop(rows.abort("the backup can't be read").await);
                    return Err(Error::Operator(format!("can't read the backup: {error}")).into());
                }
            };
        }
        rows.finish().await.map_err(|error| about(&self.name, error.into()))
    }

    /// Rows come in as they were: nothing is derived from them once more, and they are of all repositories. Nobody else sees the
    /// table like this, since all of it is one transaction.
    async fn open(&mut self, path: &str) -> Result<()> {
        let forced: bool =
            sqlx::query_scalar("SELECT relforcerowsecurity FROM pg_class WHERE oid = $1::text::regclass")
                .bind(path)
                .fetch_one(&mut self.conn)
                .await?;
        execute(&mut self.conn, &format!("ALTER TABLE {path} DISABLE TRIGGER USER")).await?;
        if forced {
            execute(&mut self.conn, &format!("ALTER TABLE {path} NO FORCE ROW LEVEL SECURITY")).await?;
        }
        self.opened.push((path.to_owned(), forced));
        // What a migration has put there is in the backup, too.
        execute(&mut self.conn, &format!("DELETE FROM {path}")).await
    }

    /// Numbers go on where they were.
    pub async fn set_sequences(&mut self, schema: &str, sequences: &[SequenceState]) -> Result<()> {
        for sequence in sequences {
            sqlx::query("SELECT setval($1::text::regclass, $2, $3)")
                .bind(path(schema, &sequence.name))
                .bind(sequence.last)
                .bind(sequence.is_called)
                .execute(&mut self.conn)
                .await?;
        }
        Ok(())
    }

    /// From here on it is there.
    pub async fn finish(mut self) -> Result<()> {
        for (path, forced) in std::mem::take(&mut self.opened) {
            execute(&mut self.conn, &format!("ALTER TABLE {path} ENABLE TRIGGER USER")).await?;
            if forced {
                execute(&mut self.conn, &format!("ALTER TABLE {path} FORCE ROW LEVEL SECURITY")).await?;
            }
        }
        execute(&mut self.conn, "COMMIT").await?;
        execute(&mut self.conn, "ANALYZE").await?;
        Ok(self.conn.close().await?)
    }
}

async fn migrations(conn: &mut PgConnection, schema: &str) -> Result<Vec<i64>> {
    let there: bool = sqlx::query_scalar("SELECT to_regclass($1) IS NOT NULL")
        .bind(format!("{schema}.migrations"))
        .fetch_one(&mut *conn)
        .await?;
    if !there {
        return Ok(Vec::new());
    }
    let list = format!("SELECT version FROM {schema}.migrations WHERE success ORDER BY version");
    Ok(sqlx::query_scalar(AssertSqlSafe(list)).fetch_all(conn).await?)
}

/// Every table that rows are written to; what is in a part of one is read from the whole.
async fn tables(conn: &mut PgConnection, schema: &str) -> Result<Vec<TableState>> {
    let rows = sqlx::query(
        "SELECT c.relname::text AS name, array_agg(a.attname::text ORDER BY a.attnum) AS columns
           FROM pg_class c
           JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
          WHERE c.relnamespace = $1::text::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
            AND c.relname <> 'migrations'
          GROUP BY c.relname ORDER BY c.relname",
    )
    .bind(schema)
    .fetch_all(conn)
    .await?;
    rows.into_iter()
        .map(|row| Ok(TableState { name: row.try_get("name")?, columns: row.try_get("columns")? }))
        .collect()
}

/// Read after the rows, or as good as: a number that is given out in between is only passed over.
async fn sequences(conn: &mut PgConnection, schema: &str) -> Result<Vec<SequenceState>> {
    let names: Vec<String> = sqlx::query_scalar(
        "SELECT relname::text FROM pg_class WHERE relnamespace = $1::text::regnamespace AND relkind = 'S' ORDER BY 1",
    )
    .bind(schema)
    .fetch_all(&mut *conn)
    .await?;
    let mut states = Vec::new();
    for name in names {
        let read = format!("SELECT last_value, is_called FROM {}", path(schema, &name));
        let (last, is_called) = sqlx::query_as(AssertSqlSafe(read)).fetch_one(&mut *conn).await?;
        states.push(SequenceState { name, last, is_called });
    }
    Ok(states)
}

fn path(schema: &str, name: &str) -> String {
    format!("{}.{}", quoted(schema), quoted(name))
}

fn list(columns: &[String]) -> String {
    columns.iter().map(|column| quoted(column)).collect::<Vec<_>>().join(", ")
}

/// Names come from a file as well as from the catalogue.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[expect(
    clippy::disallowed_methods,
    reason = "several statements at once, and of names only that are quoted"
)]
async fn execute(conn: &mut PgConnection, statement: &str) -> Result<()> {
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(conn).await?;
    Ok(())
}
