//! Our schemas and their files; `okt_pg` applies them.

use okt_pg::{Migrator, Result, connect};
use sqlx::PgConnection;
use sqlx::postgres::PgConnectOptions;

use crate::databases::{Inspected, SERVICE_ROLE};

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

    pub(crate) fn files(self) -> okt_pg::Schema {
        let files = match self {
            Self::System => sqlx::migrate!("migrations/system"),
            Self::Repository => sqlx::migrate!("migrations/repository"),
            Self::Tasks => sqlx::migrate!("migrations/tasks"),
            Self::Vectors => sqlx::migrate!("migrations/vectors"),
        };
        let schema = okt_pg::Schema::new(self.name(), files);
        // Those of single repositories' vectors, which `okt-vectors` builds and mends.
        if self == Self::Vectors { schema.leaving_indexes("hnsw_") } else { schema }
    }
}

/// The oldest pgvector that goes on looking where a filter left too few neighbours.
const PGVECTOR: [i32; 2] = [0, 8];

/// Applies what is missing in one database.
pub(crate) async fn migrate(
    name: &str,
    options: &PgConnectOptions,
    schemas: &[Schema],
) -> Result<Vec<Report>> {
    let mut migrator = Migrator::lock(options, "okt migrate").await?;
    let schemas = applicable(migrator.connection(), schemas).await?;
    let files: Vec<_> = schemas.into_iter().map(Schema::files).collect();
    let reports = migrator.run(&files, Some(SERVICE_ROLE)).await?;
    let named =
        |okt_pg::Report { schema, migrations }| Report { database: name.to_owned(), schema, migrations };
    Ok(reports.into_iter().map(named).collect())
}

/// What [`migrate`] would apply; changes nothing.
pub(crate) async fn pending(
    name: &str,
    options: &PgConnectOptions,
    schemas: &[Schema],
) -> Result<Vec<Report>> {
    let mut conn = connect(options, None).await?;
    let mut reports = Vec::new();
    for schema in applicable(&mut conn, schemas).await? {
        let migrations = schema.files().missing(&mut conn).await?;
        reports.push(Report { database: name.to_owned(), schema: schema.name(), migrations });
    }
    Ok(reports)
}

/// Those that no process of the release before can work beside, of what [`migrate`] would apply.
pub(crate) async fn missing_that_stop(conn: &mut PgConnection, schemas: &[Schema]) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for schema in schemas {
        let missing = schema.files().missing_that_stop(conn).await?;
        names.extend(missing.into_iter().map(|migration| format!("{} {migration}", schema.name())));
    }
    Ok(names)
}

/// What the server is, and what is missing in its database; changes nothing.
pub(crate) async fn inspect(conn: &mut PgConnection, schemas: &[Schema]) -> Result<Inspected> {
    let (version, pgvector, now): (String, Option<String>, f64) = sqlx::query_as(
        "SELECT current_setting('server_version'),
                coalesce((SELECT extversion FROM pg_extension WHERE extname = 'vector'),
                         (SELECT default_version FROM pg_available_extensions WHERE name = 'vector')),
                extract(epoch FROM clock_timestamp())::float8",
    )
    .fetch_one(&mut *conn)
    .await?;
    let applicable = applicable(conn, schemas).await?;
    let mut pending = 0;
    for schema in &applicable {
        pending += schema.files().missing(conn).await?.len();
    }
    let pgvector = pgvector.filter(|_| applicable.contains(&Schema::Vectors));
    Ok(Inspected { version, pgvector, wants_pgvector: schemas.contains(&Schema::Vectors), pending, now })
}

/// Those that this server can have. A server without pgvector, with one that is too old, or with one that this login may
/// not switch on, goes without vectors; when that has changed, the next migrator finds out.
pub(crate) async fn applicable(conn: &mut PgConnection, schemas: &[Schema]) -> Result<Vec<Schema>> {
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
        .await?;
        schemas.retain(|schema| able || *schema != Schema::Vectors);
    }
    Ok(schemas)
}
