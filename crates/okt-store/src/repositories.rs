//! Rows of `okt_system.repositories`. Only an active one is ever found; the others are the business of whoever tidies up.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use okt_model::{Repository, RepositoryId, Slug, Tier, UserId};
use sqlx::PgConnection;
use uuid::Uuid;

use okt_pg::Result;

/// Any number, the same in every process: whoever holds this lock may make the first repository.
const FIRST_LOCK: i64 = 0x6f6b_745f_7265_706f;

/// Which repository is meant, and where it lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    pub id: RepositoryId,
    pub database: Arc<str>,
}

/// A repository that is to be.
pub struct NewRepository<'a> {
    pub id: RepositoryId,
    pub name: &'a str,
    pub slug: &'a Slug,
    pub description: &'a str,
    pub database: &'a str,
    pub tier: Tier,
    pub preset: &'a str,
    pub owner: Option<UserId>,
}

/// One of which rows may lie where they do not belong.
#[derive(Clone, Debug)]
pub struct Untidy {
    pub id: RepositoryId,
    /// Where it lives, or lived.
    pub database: String,
    pub deleted: bool,
    pub moving_to: Option<String>,
    pub since: DateTime<Utc>,
    /// In seconds.
    pub age: f64,
}

/// Until the end of the transaction nobody else decides whether theirs is the first; says whether it would be. One that
/// somebody is just making counts, one that was never finished does not.
#[tracing::instrument(level = "debug", name = "db.repositories.lock_first", skip_all)]
pub async fn lock_first(conn: &mut PgConnection) -> Result<bool> {
    sqlx::query!(r#"SELECT pg_advisory_xact_lock($1) AS "locked: ()""#, FIRST_LOCK)
        .fetch_one(&mut *conn)
        .await?;
    let none = sqlx::query_scalar!(
        r#"SELECT NOT EXISTS (
               SELECT FROM okt_system.repositories
                WHERE state IN ('active', 'deleted')
                   OR state = 'creating' AND untidy_since > clock_timestamp() - interval '2 minutes') AS "none!""#
    );
    Ok(none.fetch_one(conn).await?)
}

/// Reserves its id and its slug; nobody sees it before [`activate`]. False when the slug is taken.
#[tracing::instrument(level = "debug", name = "db.repositories.insert", skip_all, fields(repository.id = %new.id))]
pub async fn insert(conn: &mut PgConnection, new: &NewRepository<'_>) -> Result<bool> {
    let done = sqlx::query!(
        "INSERT INTO okt_system.repositories
                (id, name, slug, description, database, tier, preset, owner_id, state, untidy_since)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'creating', clock_timestamp())
         ON CONFLICT (slug) WHERE state IN ('creating', 'active') DO NOTHING",
        new.id.uuid(),
        new.name,
        new.slug.as_str(),
        new.description,
        new.database,
        new.tier.as_str(),
        new.preset,
        new.owner.map(UserId::uuid),
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Its database has what belongs there: it can be seen. `None` when somebody gave it up meanwhile.
#[tracing::instrument(level = "debug", name = "db.repositories.activate", skip_all, fields(repository.id = %id))]
pub async fn activate(conn: &mut PgConnection, id: RepositoryId) -> Result<Option<Repository>> {
    let row = sqlx::query_as!(
        Row,
        r#"UPDATE okt_system.repositories SET state = 'active', untidy_since = NULL
            WHERE id = $1 AND state = 'creating'
        RETURNING id, name, slug, description, database, tier, preset, owner_id, created_at, updated_at"#,
        id.uuid(),
    )
    .fetch_optional(conn)
    .await?;
    row.map(Repository::try_from).transpose()
}

/// Gives up what was begun under this slug and never finished; false when there is nothing of that kind.
#[tracing::instrument(level = "debug", name = "db.repositories.abandon_stale", skip_all)]
pub async fn abandon_stale(conn: &mut PgConnection, slug: &Slug) -> Result<bool> {
    let done = sqlx::query!(
        "UPDATE okt_system.repositories SET state = 'abandoned'
          WHERE slug = $1 AND state = 'creating' AND untidy_since < clock_timestamp() - interval '2 minutes'",
        slug.as_str(),
    );
    Ok(done.execute(conn).await?.rows_affected() == 1)
}

/// Gives up one that could not be finished, so that its slug is free.
#[tracing::instrument(level = "debug", name = "db.repositories.abandon", skip_all, fields(repository.id = %id))]
pub async fn abandon(conn: &mut PgConnection, id: RepositoryId) -> Result<()> {
    let done = sqlx::query!(
        "UPDATE okt_system.repositories SET state = 'abandoned' WHERE id = $1 AND state = 'creating'",
        id.uuid(),
    );
    done.execute(conn).await?;
    Ok(())
}

#[tracing::instrument(level = "debug", name = "db.repositories.find", skip_all, fields(repository.id = %id))]
pub async fn find(conn: &mut PgConnection, id: RepositoryId) -> Result<Option<Repository>> {
    let row = sqlx::query_as!(
        Row,
        "SELECT id, name, slug, description, database, tier, preset, owner_id, created_at, updated_at
           FROM okt_system.repositories WHERE id = $1 AND state = 'active'",
        id.uuid(),
    )
    .fetch_optional(conn)
    .await?;
    row.map(Repository::try_from).transpose()
}

/// By its id or by its slug.
#[tracing::instrument(level = "debug", name = "db.repositories.locate", skip_all)]
pub async fn locate(conn: &mut PgConnection, named: &str) -> Result<Option<Located>> {
    let id = named.parse::<Uuid>().ok();
    let row = sqlx::query!(
        "SELECT id, database FROM okt_system.repositories
          WHERE id = coalesce($1, (SELECT s.id FROM okt_system.repositories s WHERE s.slug = $2 AND s.state IN ('creating', 'active')))
            AND state = 'active'",
        id,
        if id.is_none() { Some(named) } else { None },
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| Located { id: row.id.into(), database: row.database.into() }))
}

/// Those of these that there are, newest first.
#[tracing::instrument(level = "debug", name = "db.repositories.get", skip_all)]
pub async fn get(conn: &mut PgConnection, ids: &[RepositoryId]) -> Result<Vec<Repository>> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.uuid()).collect();
    let rows = sqlx::query_as!(
        Row,
        "SELECT id, name, slug, description, database, tier, preset, owner_id, created_at, updated_at
           FROM okt_system.repositories WHERE id = ANY ($1) AND state = 'active' ORDER BY id DESC",
        &ids,
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(Repository::try_from).collect()
}

/// Everybody's, newest first, from before `before`.
#[tracing::instrument(level = "debug", name = "db.repositories.list", skip_all)]
pub async fn list(
    conn: &mut PgConnection,
    before: Option<RepositoryId>,
    limit: i64,
) -> Result<Vec<Repository>> {
    let rows = sqlx::query_as!(
        Row,
        "SELECT id, name, slug, description, database, tier, preset, owner_id, created_at, updated_at
           FROM okt_system.repositories
          WHERE state = 'active' AND id < coalesce($1, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
          ORDER BY id DESC LIMIT $2",
        before.map(RepositoryId::uuid),
        limit,
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(Repository::try_from).collect()
}

/// Every one there is or was, with the name of its database, from after `after`; for whoever has to go round all of them.
#[tracing::instrument(level = "debug", name = "db.repositories.list_shards", skip_all)]
pub async fn list_shards(
    conn: &mut PgConnection,
    after: Option<RepositoryId>,
    limit: i64,
) -> Result<Vec<(RepositoryId, String)>> {
    let rows = sqlx::query!(
        "SELECT id, database FROM okt_system.repositories
          WHERE id > coalesce($1, '00000000-0000-0000-0000-000000000000'::uuid) ORDER BY id LIMIT $2",
        after.map(RepositoryId::uuid),
        limit,
    );
    let rows = rows.fetch_all(conn).await?;
    Ok(rows.into_iter().map(|row| (row.id.into(), row.database)).collect())
}

/// Changes what is given; `None` when there is no such repository.
#[tracing::instrument(level = "debug", name = "db.repositories.update", skip_all, fields(repository.id = %id))]
pub async fn update(
    conn: &mut PgConnection,
    id: RepositoryId,
    name: Option<&str>,
    description: Option<&str>,
) -> Result<Option<Repository>> {
    let row = sqlx::query_as!(
        Row,
        "UPDATE okt_system.repositories
            SET name = coalesce($2, name), description = coalesce($3, description), updated_at = clock_timestamp()
          WHERE id = $1 AND state = 'active'
         RETURNING id, name, slug, description, database, tier, preset, owner_id, created_at, updated_at",
        id.uuid(),
        name,
        description,
    )
    .fetch_optional(conn)
    .await?;
    row.map(Repository::try_from).transpose()
}

/// Makes somebody the owner of the repository that has none, if there is one; returns it.
#[tracing::instrument(level = "debug", name = "db.repositories.give_ownerless", skip_all)]
pub async fn give_ownerless(conn: &mut PgConnection, owner: UserId) -> Result<Option<RepositoryId>> {
    let row = sqlx::query!(
        "UPDATE okt_system.repositories SET owner_id = $1
          WHERE id = (SELECT id FROM okt_system.repositories WHERE owner_id IS NULL AND state IN ('creating', 'active') LIMIT 1)
         RETURNING id",
        owner.uuid(),
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| row.id.into()))
}

/// Hides it for good, and frees its slug. False when there is no such repository, or somebody is moving it.
#[tracing::instrument(level = "debug", name = "db.repositories.mark_deleted", skip_all, fields(repository.id = %id))]
pub async fn mark_deleted(conn: &mut PgConnection, id: RepositoryId) -> Result<bool> {
    let done = sqlx::query!(
        "UPDATE okt_system.repositories
            SET state = 'deleted', untidy_since = clock_timestamp(), updated_at = clock_timestamp()
          WHERE id = $1 AND state = 'active' AND moving_to IS NULL",
        id.uuid(),
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Somebody begins to move it, or goes on; returns where it lives. `None` when there is none, or another move is under way.
#[tracing::instrument(level = "debug", name = "db.repositories.mark_moving", skip_all, fields(repository.id = %id))]
pub async fn mark_moving(conn: &mut PgConnection, id: RepositoryId, to: &str) -> Result<Option<String>> {
    let row = sqlx::query!(
        "UPDATE okt_system.repositories SET moving_to = $2
          WHERE id = $1 AND state = 'active' AND $2 IN (coalesce(moving_to, $2), database)
         RETURNING database",
        id.uuid(),
        to,
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| row.database))
}

/// Those that somebody is moving, or was.
#[tracing::instrument(level = "debug", name = "db.repositories.list_moving", skip_all)]
pub async fn list_moving(conn: &mut PgConnection, limit: i64) -> Result<Vec<RepositoryId>> {
    let rows = sqlx::query_scalar!(
        "SELECT id FROM okt_system.repositories WHERE moving_to IS NOT NULL ORDER BY id LIMIT $1",
        limit,
    );
    let rows = rows.fetch_all(conn).await?;
    Ok(rows.into_iter().map(Into::into).collect())
}

/// The move ends where the repository lives, and [`mark_moved`] is refused from now on; returns where that is. `None` when
/// nobody moves it.
#[tracing::instrument(level = "debug", name = "db.repositories.give_up_moving", skip_all, fields(repository.id = %id))]
pub async fn give_up_moving(conn: &mut PgConnection, id: RepositoryId) -> Result<Option<String>> {
    let row = sqlx::query_scalar!(
        "UPDATE okt_system.repositories SET moving_to = database
          WHERE id = $1 AND moving_to IS NOT NULL
         RETURNING database",
        id.uuid(),
    );
    Ok(row.fetch_optional(conn).await?)
}

/// Somebody has to open it again where it lives, unless they are about to.
#[tracing::instrument(level = "debug", name = "db.repositories.mark_unsettled", skip_all, fields(repository.id = %id))]
pub async fn mark_unsettled(conn: &mut PgConnection, id: RepositoryId) -> Result<()> {
    sqlx::query!(
        "UPDATE okt_system.repositories SET moving_to = database
          WHERE id = $1 AND state = 'active' AND moving_to IS NULL",
        id.uuid(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// It lives there now, and what is left elsewhere may go.
#[tracing::instrument(level = "debug", name = "db.repositories.mark_moved", skip_all, fields(repository.id = %id))]
pub async fn mark_moved(conn: &mut PgConnection, id: RepositoryId, to: &str) -> Result<bool> {
    let done = sqlx::query!(
        "UPDATE okt_system.repositories
            SET database = $2, untidy_since = clock_timestamp(), updated_at = clock_timestamp()
          WHERE id = $1 AND state = 'active' AND moving_to = $2",
        id.uuid(),
        to,
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// The move is over, wherever it ended; what was copied may lie about.
#[tracing::instrument(level = "debug", name = "db.repositories.mark_settled", skip_all, fields(repository.id = %id))]
pub async fn mark_settled(conn: &mut PgConnection, id: RepositoryId) -> Result<()> {
    sqlx::query!(
        "UPDATE okt_system.repositories
            SET moving_to = NULL, untidy_since = coalesce(untidy_since, clock_timestamp())
          WHERE id = $1",
        id.uuid(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Those that were untidy for longer than `age_s` seconds, the longest first. What is not finished by then is given up.
#[tracing::instrument(level = "debug", name = "db.repositories.list_untidy", skip_all)]
pub async fn list_untidy(conn: &mut PgConnection, age_s: f64, limit: i64) -> Result<Vec<RepositoryId>> {
    sqlx::query!(
        "UPDATE okt_system.repositories SET state = 'abandoned'
          WHERE state = 'creating' AND untidy_since < clock_timestamp() - $1::float8 * interval '1 second'",
        age_s,
    )
    .execute(&mut *conn)
    .await?;
    let rows = sqlx::query!(
        "SELECT id FROM okt_system.repositories
          WHERE untidy_since < clock_timestamp() - $1::float8 * interval '1 second' AND state <> 'creating'
          ORDER BY untidy_since LIMIT $2",
        age_s,
        limit,
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| row.id.into()).collect())
}

/// What is to be tidied up of a repository; `None` when it is tidy, or still being made.
#[tracing::instrument(level = "debug", name = "db.repositories.find_untidy", skip_all, fields(repository.id = %id))]
pub async fn find_untidy(conn: &mut PgConnection, id: RepositoryId) -> Result<Option<Untidy>> {
    let row = sqlx::query!(
        r#"SELECT database, state <> 'active' AS "deleted!", moving_to, untidy_since AS "since!",
                  extract(epoch FROM clock_timestamp() - untidy_since)::float8 AS "age!"
             FROM okt_system.repositories
            WHERE id = $1 AND untidy_since IS NOT NULL AND state <> 'creating'"#,
        id.uuid(),
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| Untidy {
        id,
        database: row.database,
        deleted: row.deleted,
        moving_to: row.moving_to,
        since: row.since,
        age: row.age,
    }))
}

/// Nothing of it lies where it does not belong, unless something happened since it was looked at. Of one that was deleted
/// the words go as well, and of one that was never finished everything.
#[tracing::instrument(level = "debug", name = "db.repositories.mark_tidy", skip_all, fields(repository.id = %untidy.id))]
pub async fn mark_tidy(conn: &mut PgConnection, untidy: &Untidy) -> Result<()> {
    sqlx::query!(
        "WITH abandoned AS (
             DELETE FROM okt_system.repositories WHERE id = $1 AND state = 'abandoned' AND untidy_since = $2),
         settings AS (
             DELETE FROM okt_system.repository_settings s
              USING okt_system.repositories r
              WHERE s.repository_id = $1 AND r.id = $1 AND r.state = 'deleted')
         UPDATE okt_system.repositories
            SET untidy_since = NULL,
                name = CASE WHEN state = 'deleted' THEN '' ELSE name END,
                slug = CASE WHEN state = 'deleted' THEN '' ELSE slug END,
                description = CASE WHEN state = 'deleted' THEN '' ELSE description END,
                owner_id = CASE WHEN state = 'deleted' THEN NULL ELSE owner_id END
          WHERE id = $1 AND moving_to IS NULL AND untidy_since = $2 AND state IN ('active', 'deleted')",
        untidy.id.uuid(),
        untidy.since,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// A row as it lies there.
struct Row {
    id: Uuid,
    name: String,
    slug: String,
    description: String,
    database: String,
    tier: String,
    preset: String,
    owner_id: Option<Uuid>,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

impl TryFrom<Row> for Repository {
    type Error = okt_pg::Error;

    fn try_from(row: Row) -> Result<Self> {
        Ok(Self {
            id: row.id.into(),
            name: row.name,
            slug: row.slug,
            description: row.description,
            database: row.database,
            tier: Tier::parse(&row.tier)?,
            preset: row.preset,
            owner: row.owner_id.map(UserId::from),
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    }
}

/// What time it is for all processes.
#[tracing::instrument(level = "debug", name = "db.now", skip_all)]
pub async fn now(conn: &mut PgConnection) -> Result<DateTime<Utc>> {
    Ok(sqlx::query_scalar!(r#"SELECT clock_timestamp() AS "now!""#).fetch_one(conn).await?)
}

/// Whether there was one, and it was deleted.
#[tracing::instrument(level = "debug", name = "db.repositories.was_deleted", skip_all, fields(repository.id = %id))]
pub async fn was_deleted(conn: &mut PgConnection, id: RepositoryId) -> Result<bool> {
    Ok(sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM okt_system.repositories WHERE id = $1 AND state = 'deleted') AS "gone!""#,
        id.uuid(),
    )
    .fetch_one(conn)
    .await?)
}
