//! Rows of `okt_system.oauth_clients`.

use std::time::Duration;

use chrono::{DateTime, Utc};
use okt_model::{OAuthClient, Scope};
use sqlx::PgConnection;

use okt_pg::Result;

/// What a client is made of.
pub struct NewClient<'a> {
    pub id: &'a str,
    pub name: &'a str,
    pub uri: Option<&'a str>,
    pub redirect_uris: &'a [String],
    pub grant_types: &'a [String],
    pub scope: Option<&'a [String]>,
    pub auth_method: &'a str,
    pub secret: Option<&'a [u8; 32]>,
    pub registration: Option<&'a [u8; 32]>,
    /// For how long what a document says may be believed.
    pub fresh_for: Option<Duration>,
}

/// A client with what it proves itself by.
#[derive(Clone, Debug)]
pub struct Found {
    pub client: OAuthClient,
    pub secret: Option<Vec<u8>>,
    pub registration: Option<Vec<u8>>,
    /// Whether its document has to be read again.
    pub stale: bool,
}

/// Inserts a client, or puts what its document says now in the place of what it said before.
#[tracing::instrument(level = "debug", name = "db.oauth_clients.put", skip_all)]
pub async fn put(conn: &mut PgConnection, new: &NewClient<'_>) -> Result<OAuthClient> {
    let row = sqlx::query_as!(
        Row,
        r#"INSERT INTO okt_system.oauth_clients (id, name, uri, redirect_uris, grant_types, scope, auth_method,
                                                secret_hash, registration_hash, stale_at)
           VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, clock_timestamp() + make_interval(secs => $10))
           ON CONFLICT (id) DO UPDATE
              SET name = excluded.name, uri = excluded.uri, redirect_uris = excluded.redirect_uris,
                  grant_types = excluded.grant_types, scope = excluded.scope, auth_method = excluded.auth_method,
                  stale_at = excluded.stale_at
        RETURNING id, name, uri, redirect_uris, grant_types, scope, auth_method, secret_hash, registration_hash,
                  created_at, coalesce(stale_at < clock_timestamp(), false) AS "stale!""#,
        new.id,
        new.name,
        new.uri,
        new.redirect_uris,
        new.grant_types,
        new.scope,
        new.auth_method,
        new.secret.map(<[u8; 32]>::as_slice),
        new.registration.map(<[u8; 32]>::as_slice),
        new.fresh_for.map(|time| time.as_secs_f64()),
    )
    .fetch_one(conn)
    .await?;
    Ok(Found::from(row).client)
}

#[tracing::instrument(level = "debug", name = "db.oauth_clients.find", skip_all)]
pub async fn find(conn: &mut PgConnection, id: &str) -> Result<Option<Found>> {
    let row = sqlx::query_as!(
        Row,
        r#"SELECT id, name, uri, redirect_uris, grant_types, scope, auth_method, secret_hash, registration_hash,
                  created_at, coalesce(stale_at < clock_timestamp(), false) AS "stale!"
             FROM okt_system.oauth_clients WHERE id = $1"#,
        id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(Found::from))
}

/// Changes a registration, if `registration` is still what it is managed by; `None` otherwise. From now on it is
/// managed by `new.registration`.
#[tracing::instrument(level = "debug", name = "db.oauth_clients.update", skip_all)]
pub async fn update(
    conn: &mut PgConnection,
    registration: &[u8; 32],
    new: &NewClient<'_>,
) -> Result<Option<OAuthClient>> {
    let row = sqlx::query_as!(
        Row,
        r#"UPDATE okt_system.oauth_clients
              SET name = $3, uri = $4, redirect_uris = $5, grant_types = $6, scope = $7, registration_hash = $8
            WHERE id = $1 AND registration_hash = $2
        RETURNING id, name, uri, redirect_uris, grant_types, scope, auth_method, secret_hash, registration_hash,
                  created_at, coalesce(stale_at < clock_timestamp(), false) AS "stale!""#,
        new.id,
        registration,
        new.name,
        new.uri,
        new.redirect_uris,
        new.grant_types,
        new.scope,
        new.registration.map(<[u8; 32]>::as_slice),
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| Found::from(row).client))
}

/// Deletes a registration and ends all that came of it, if `registration` is what it is managed by.
#[tracing::instrument(level = "debug", name = "db.oauth_clients.delete", skip_all)]
pub async fn delete(conn: &mut PgConnection, id: &str, registration: &[u8; 32]) -> Result<bool> {
    let done = sqlx::query!(
        "WITH gone AS (
             SELECT id FROM okt_system.oauth_clients WHERE id = $1 AND registration_hash = $2 FOR UPDATE),
              ended AS (
             DELETE FROM okt_system.sessions
              WHERE id IN (SELECT g.id FROM okt_system.oauth_grants g JOIN gone ON gone.id = g.client_id))
         DELETE FROM okt_system.oauth_clients WHERE id IN (SELECT id FROM gone)",
        id,
        registration,
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Deletes at most `limit` clients that nobody let in within a day of their coming, or that nobody has let in for 30
/// days and that hold nothing any more; returns how many.
#[tracing::instrument(level = "debug", name = "db.oauth_clients.delete_unused", skip_all)]
pub async fn delete_unused(conn: &mut PgConnection, limit: i64) -> Result<u64> {
    let done = sqlx::query!(
        "DELETE FROM okt_system.oauth_clients
          WHERE id IN (SELECT c.id FROM okt_system.oauth_clients c
                        WHERE (c.authorized_at IS NULL AND c.created_at < statement_timestamp() - interval '1 day'
                               OR c.authorized_at < statement_timestamp() - interval '30 days')
                          AND NOT EXISTS (SELECT FROM okt_system.oauth_grants g
                                            JOIN okt_system.sessions s ON s.id = g.id
                                           WHERE g.client_id = c.id AND s.revoked_at IS NULL
                                             AND s.expires_at > clock_timestamp())
                        LIMIT $1 FOR UPDATE SKIP LOCKED)",
        limit,
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected())
}

struct Row {
    id: String,
    name: String,
    uri: Option<String>,
    redirect_uris: Vec<String>,
    grant_types: Vec<String>,
    scope: Option<Vec<String>>,
    auth_method: String,
    secret_hash: Option<Vec<u8>>,
    registration_hash: Option<Vec<u8>>,
    created_at: DateTime<Utc>,
    stale: bool,
}

impl From<Row> for Found {
    fn from(row: Row) -> Self {
        Self {
            client: OAuthClient {
                id: row.id,
                name: row.name,
                uri: row.uri,
                redirect_uris: row.redirect_uris,
                grant_types: row.grant_types,
                scope: row.scope.map(|words| Scope::kept(&words)),
                auth_method: row.auth_method,
                created_at: row.created_at,
            },
            secret: row.secret_hash,
            registration: row.registration_hash,
            stale: row.stale,
        }
    }
}
