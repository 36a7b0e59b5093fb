//! Rows of `okt_system.oauth_grants` and `okt_system.oauth_codes`. A grant lives and ends as the session of its id.

use std::time::Duration;

use okt_model::{GrantId, OAuthGrant, RepositoryId, UserId};
use sqlx::PgConnection;
use uuid::Uuid;

use okt_pg::Result;

/// What a grant is made of, beside its session.
pub struct NewGrant<'a> {
    pub id: GrantId,
    pub client_id: &'a str,
    pub scope: &'a [String],
    pub resource: &'a str,
    pub repositories: Option<&'a [RepositoryId]>,
}

/// A grant that may be used right now.
#[derive(Clone, Debug)]
pub struct LiveGrant {
    pub user: UserId,
    pub client_id: String,
    pub repositories: Option<Vec<RepositoryId>>,
    pub roles_version: Uuid,
}

/// A code and the grant that it stands for.
#[derive(Clone, Debug)]
pub struct Code {
    pub grant: GrantId,
    pub user: UserId,
    pub client_id: String,
    pub scope: Vec<String>,
    pub resource: String,
    pub redirect_uri: String,
    pub code_challenge: String,
}

/// What a grant is good for.
#[derive(Clone, Debug)]
pub struct Terms {
    pub client_id: String,
    pub scope: Vec<String>,
    pub resource: String,
}

/// Writes the grant, and that the client was let in.
#[tracing::instrument(level = "debug", name = "db.oauth_grants.insert", skip_all)]
pub async fn insert(conn: &mut PgConnection, new: &NewGrant<'_>) -> Result<()> {
    let repositories = new.repositories.map(|ids| ids.iter().map(|id| id.uuid()).collect::<Vec<_>>());
    sqlx::query!(
        "WITH let_in AS (
             UPDATE okt_system.oauth_clients SET authorized_at = clock_timestamp() WHERE id = $2)
         INSERT INTO okt_system.oauth_grants (id, client_id, scope, resource, repositories)
         VALUES ($1, $2, $3, $4, $5)",
        new.id.uuid(),
        new.client_id,
        new.scope,
        new.resource,
        repositories.as_deref(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

#[tracing::instrument(level = "debug", name = "db.oauth_codes.insert", skip_all)]
pub async fn insert_code(
    conn: &mut PgConnection,
    hash: &[u8; 32],
    grant: GrantId,
    redirect_uri: &str,
    code_challenge: &str,
    ttl: Duration,
) -> Result<()> {
    sqlx::query!(
        "INSERT INTO okt_system.oauth_codes (hash, grant_id, redirect_uri, code_challenge, expires_at)
         VALUES ($1, $2, $3, $4, clock_timestamp() + make_interval(secs => $5))",
        hash,
        grant.uuid(),
        redirect_uri,
        code_challenge,
        ttl.as_secs_f64(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// What the code stands for, whether or not it still works.
#[tracing::instrument(level = "debug", name = "db.oauth_codes.find", skip_all)]
pub async fn find_code(conn: &mut PgConnection, hash: &[u8; 32]) -> Result<Option<Code>> {
    Ok(sqlx::query_as!(
        Code,
        r#"SELECT c.grant_id AS "grant", s.user_id AS "user", g.client_id, g.scope, g.resource, c.redirect_uri,
                  c.code_challenge
             FROM okt_system.oauth_codes c
             JOIN okt_system.oauth_grants g ON g.id = c.grant_id
             JOIN okt_system.sessions s ON s.id = g.id
            WHERE c.hash = $1"#,
        hash,
    )
    .fetch_optional(conn)
    .await?)
}

/// Uses the code up, for whoever is first: in the transaction that issues what it is exchanged for. How things stood:
/// `Some(true)` when it was used up now, `Some(false)` when it had been before, `None` when its time or its grant is
/// over, and the transaction is to be rolled back.
#[tracing::instrument(level = "debug", name = "db.oauth_codes.consume", skip_all)]
pub async fn consume_code(
    conn: &mut PgConnection,
    hash: &[u8; 32],
    grant: GrantId,
    ttl: Duration,
) -> Result<Option<bool>> {
    // The grant before the code, as whoever ends the grant does: two who lock in opposite orders wait for ever.
    sqlx::query!("SELECT id FROM okt_system.sessions WHERE id = $1 FOR UPDATE", grant.uuid())
        .fetch_optional(&mut *conn)
        .await?;
    let now = sqlx::query!(
        r#"WITH used AS (
               UPDATE okt_system.oauth_codes SET used_at = clock_timestamp()
                WHERE hash = $1 AND used_at IS NULL AND expires_at > clock_timestamp()
            RETURNING grant_id),
                alive AS (
               UPDATE okt_system.sessions s
                  SET expires_at = least(clock_timestamp() + make_interval(secs => $3), s.created_at + interval '90 days')
                 FROM used
                WHERE s.id = used.grant_id AND s.id = $2 AND s.revoked_at IS NULL
            RETURNING s.id)
           SELECT EXISTS (SELECT FROM used) AS "used!", EXISTS (SELECT FROM alive) AS "alive!""#,
        hash,
        grant.uuid(),
        ttl.as_secs_f64(),
    )
    .fetch_one(&mut *conn)
    .await?;
    if now.used {
        return Ok(now.alive.then_some(true));
    }
    let used = sqlx::query_scalar!(
        r#"SELECT used_at IS NOT NULL AS "used!" FROM okt_system.oauth_codes WHERE hash = $1"#,
        hash,
    )
    .fetch_optional(conn)
    .await?;
    Ok(used.filter(|used| *used).map(|_| false))
}

/// What a grant is good for.
#[tracing::instrument(level = "debug", name = "db.oauth_grants.find_terms", skip_all)]
pub async fn find_terms(conn: &mut PgConnection, id: GrantId) -> Result<Option<Terms>> {
    Ok(sqlx::query_as!(
        Terms,
        "SELECT client_id, scope, resource FROM okt_system.oauth_grants WHERE id = $1",
        id.uuid(),
    )
    .fetch_optional(conn)
    .await?)
}

/// The grant, unless it is over or its person's account is disabled. Notes that it was used, at most once a minute.
#[tracing::instrument(level = "debug", name = "db.oauth_grants.find_live", skip_all)]
pub async fn find_live(conn: &mut PgConnection, id: GrantId) -> Result<Option<LiveGrant>> {
    let row = sqlx::query!(
        r#"WITH found AS (
               SELECT g.id, s.user_id, g.client_id, g.repositories, u.roles_version
                 FROM okt_system.oauth_grants g
                 JOIN okt_system.sessions s ON s.id = g.id
                 JOIN okt_system.users u ON u.id = s.user_id
                WHERE g.id = $1 AND s.revoked_at IS NULL AND s.expires_at > clock_timestamp()
                  AND u.disabled_at IS NULL),
           noted AS (
               UPDATE okt_system.oauth_grants g SET last_used_at = clock_timestamp()
                 FROM found f
                WHERE g.id = f.id
                  AND (g.last_used_at IS NULL OR g.last_used_at < clock_timestamp() - interval '1 minute'))
           SELECT user_id, client_id, repositories, roles_version FROM found"#,
        id.uuid(),
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| LiveGrant {
        user: row.user_id.into(),
        client_id: row.client_id,
        repositories: row.repositories.map(|ids| ids.into_iter().map(RepositoryId::from).collect()),
        roles_version: row.roles_version,
    }))
}

/// What a user gave and has not taken back, oldest first, from behind `after`.
#[tracing::instrument(level = "debug", name = "db.oauth_grants.list", skip_all)]
pub async fn list(
    conn: &mut PgConnection,
    user: UserId,
    after: Option<GrantId>,
    limit: i64,
) -> Result<Vec<OAuthGrant>> {
    let rows = sqlx::query!(
        "SELECT g.id, g.client_id, c.name AS client_name, g.scope, g.resource, g.repositories, s.created_at,
                g.last_used_at, s.expires_at
           FROM okt_system.sessions s
           JOIN okt_system.oauth_grants g ON g.id = s.id
           JOIN okt_system.oauth_clients c ON c.id = g.client_id
          WHERE s.user_id = $1 AND s.revoked_at IS NULL AND s.expires_at > clock_timestamp()
            AND ($2::uuid IS NULL OR s.id > $2)
          ORDER BY s.id
          LIMIT $3",
        user.uuid(),
        after.map(GrantId::uuid),
        limit,
    )
    .fetch_all(conn)
    .await?;
    let grants = rows.into_iter().map(|row| OAuthGrant {
        id: row.id.into(),
        client_id: row.client_id,
        client_name: row.client_name,
        scope: row.scope,
        resource: row.resource,
        repositories: row.repositories.map(|ids| ids.into_iter().map(RepositoryId::from).collect()),
        created_at: row.created_at,
        last_used_at: row.last_used_at,
        expires_at: row.expires_at,
    });
    Ok(grants.collect())
}

/// Whether this user lets this client in at present.
#[tracing::instrument(level = "debug", name = "db.oauth_grants.any_for", skip_all)]
pub async fn any_for(conn: &mut PgConnection, user: UserId, client_id: &str) -> Result<bool> {
    let any = sqlx::query_scalar!(
        r#"SELECT EXISTS (
               SELECT FROM okt_system.sessions s JOIN okt_system.oauth_grants g ON g.id = s.id
                WHERE s.user_id = $1 AND g.client_id = $2 AND s.revoked_at IS NULL
                  AND s.expires_at > clock_timestamp()) AS "any!""#,
        user.uuid(),
        client_id,
    );
    Ok(any.fetch_one(conn).await?)
}

/// Ends a grant of this user; false when there is none that is alive.
#[tracing::instrument(level = "debug", name = "db.oauth_grants.revoke", skip_all)]
pub async fn revoke(conn: &mut PgConnection, user: UserId, id: GrantId) -> Result<bool> {
    let done = sqlx::query!(
        "UPDATE okt_system.sessions s SET revoked_at = clock_timestamp()
           FROM okt_system.oauth_grants g
          WHERE g.id = s.id AND s.id = $2 AND s.user_id = $1
            AND s.revoked_at IS NULL AND s.expires_at > clock_timestamp()",
        user.uuid(),
        id.uuid(),
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}
