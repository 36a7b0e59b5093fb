//! Rows of `okt_system.role_assignments`. Triggers count every change in `users.roles_version`.

use okt_model::{Domain, Error, Member, RepositoryId, Role, UserId};
use sqlx::PgConnection;

use okt_pg::Result;

/// The roles of a user with their domains. A word that no release of ours knows is passed over.
#[tracing::instrument(level = "debug", name = "db.role_assignments.list_of", skip_all, fields(user.id = %user))]
pub async fn list_of(conn: &mut PgConnection, user: UserId) -> Result<Vec<(Domain, Role)>> {
    let rows = sqlx::query!(
        "SELECT domain, role FROM okt_system.role_assignments WHERE user_id = $1 ORDER BY domain, role",
        user.uuid(),
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().filter_map(|row| Some((row.domain.parse().ok()?, row.role.parse().ok()?))).collect())
}

/// False when the user has it already.
#[tracing::instrument(level = "debug", name = "db.role_assignments.assign", skip_all, fields(user.id = %user))]
pub async fn assign(conn: &mut PgConnection, user: UserId, domain: Domain, role: Role) -> Result<bool> {
    let done = sqlx::query!(
        "INSERT INTO okt_system.role_assignments (user_id, domain, role) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
        user.uuid(),
        domain.to_string(),
        role.as_str(),
    )
    .execute(conn)
    .await
    .map_err(|error| match error.as_database_error().and_then(|error| error.constraint()) {
        Some("role_assignments_user_id_fkey") => okt_pg::Error(Error::NotFound("user")),
        _ => error.into(),
    })?;
    Ok(done.rows_affected() == 1)
}

/// False when the user does not have it.
#[tracing::instrument(level = "debug", name = "db.role_assignments.remove", skip_all, fields(user.id = %user))]
pub async fn remove(conn: &mut PgConnection, user: UserId, domain: Domain, role: Role) -> Result<bool> {
    let done = sqlx::query!(
        "DELETE FROM okt_system.role_assignments WHERE user_id = $1 AND domain = $2 AND role = $3",
        user.uuid(),
        domain.to_string(),
        role.as_str(),
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// How many hold the role; counted up to two, because all that matters is whether one is the last. The rows stay
/// locked until the end of the transaction, so that two can't leave at once.
#[tracing::instrument(level = "debug", name = "db.role_assignments.lock_two_holders", skip_all)]
pub async fn lock_two_holders(conn: &mut PgConnection, domain: Domain, role: Role) -> Result<usize> {
    let rows = sqlx::query!(
        "SELECT user_id FROM okt_system.role_assignments WHERE domain = $1 AND role = $2
          ORDER BY user_id LIMIT 2 FOR UPDATE",
        domain.to_string(),
        role.as_str(),
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.len())
}

/// Any number, the same in every process: whoever holds this lock may take away from the sysadmins.
const SYSADMINS_LOCK: i64 = 0x6f6b_745f_726f_6f74;

/// Whether somebody else is sysadmin and can use their account. Until the end of the transaction nobody else who asks
/// gets an answer, so that two can't leave at once.
#[tracing::instrument(level = "debug", name = "db.role_assignments.another_sysadmin", skip_all)]
pub async fn another_sysadmin(conn: &mut PgConnection, user: UserId) -> Result<bool> {
    sqlx::query!(r#"SELECT pg_advisory_xact_lock($1) AS "locked: ()""#, SYSADMINS_LOCK)
        .fetch_one(&mut *conn)
        .await?;
    // A statement of its own: only one that begins after the lock was had sees what the one before us did.
    Ok(sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM okt_system.role_assignments a
                            JOIN okt_system.users u ON u.id = a.user_id AND u.disabled_at IS NULL
                           WHERE a.domain = $2 AND a.role = $3 AND a.user_id <> $1) AS "another!""#,
        user.uuid(),
        Domain::System.to_string(),
        Role::Sysadmin.as_str(),
    )
    .fetch_one(conn)
    .await?)
}

/// Who has a role in a repository, in the order of their ids, from behind `after`.
#[tracing::instrument(level = "debug", name = "db.role_assignments.members", skip_all)]
pub async fn members(
    conn: &mut PgConnection,
    repository: RepositoryId,
    after: Option<UserId>,
    limit: i64,
) -> Result<Vec<Member>> {
    let rows = sqlx::query!(
        r#"SELECT a.user_id, u.name, array_agg(a.role) AS "roles!", min(a.created_at) AS "since!"
             FROM okt_system.role_assignments a
             JOIN okt_system.users u ON u.id = a.user_id
            WHERE a.domain = $1 AND a.user_id > coalesce($2, '00000000-0000-0000-0000-000000000000'::uuid)
            GROUP BY a.user_id, u.name
            ORDER BY a.user_id
            LIMIT $3"#,
        repository.to_string(),
        after.map(UserId::uuid),
        limit,
    )
    .fetch_all(conn)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| {
            let mut roles: Vec<Role> = row.roles.iter().filter_map(|role| role.parse().ok()).collect();
            roles.sort_unstable();
            Member { user: row.user_id.into(), name: row.name, roles, since: row.since }
        })
        .collect())
}

/// Takes every role of a user in a domain but this one; returns how many there were.
#[tracing::instrument(level = "debug", name = "db.role_assignments.remove_others", skip_all, fields(user.id = %user))]
pub async fn remove_others(
    conn: &mut PgConnection,
    user: UserId,
    domain: Domain,
    kept: Option<Role>,
) -> Result<u64> {
    let done = sqlx::query!(
        "DELETE FROM okt_system.role_assignments
          WHERE user_id = $1 AND domain = $2 AND role IS DISTINCT FROM $3",
        user.uuid(),
        domain.to_string(),
        kept.map(Role::as_str),
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected())
}

/// Takes the roles of some members of a repository; returns how many. Each changes the row of its user, so a repository with
/// many members is not emptied in one statement.
#[tracing::instrument(level = "debug", name = "db.role_assignments.remove_some", skip_all)]
pub async fn remove_some(conn: &mut PgConnection, repository: RepositoryId, limit: i64) -> Result<u64> {
    let done = sqlx::query!(
        "DELETE FROM okt_system.role_assignments
          WHERE ctid = ANY (ARRAY (SELECT ctid FROM okt_system.role_assignments WHERE domain = $1 LIMIT $2))",
        repository.to_string(),
        limit,
    );
    Ok(done.execute(conn).await?.rows_affected())
}
