//! Rows of `okt_system.users`.

use okt_model::{Email, Error, User, UserId};
use sqlx::PgConnection;

use okt_pg::Result;

/// Any number, the same in every process: whoever holds this lock may become the first user.
const FIRST_USER_LOCK: i64 = 0x6f6b_745f_7573_6572;

/// Whether there is anybody.
#[tracing::instrument(level = "debug", name = "db.users.any", skip_all)]
pub async fn any(conn: &mut PgConnection) -> Result<bool> {
    let any = sqlx::query_scalar!(r#"SELECT EXISTS (SELECT FROM okt_system.users) AS "any!""#);
    Ok(any.fetch_one(conn).await?)
}

/// Until the end of the transaction nobody else decides whether they are the first.
#[tracing::instrument(level = "debug", name = "db.users.lock_first", skip_all)]
pub async fn lock_first(conn: &mut PgConnection) -> Result<()> {
    sqlx::query!(r#"SELECT pg_advisory_xact_lock($1) AS "locked: ()""#, FIRST_USER_LOCK)
        .fetch_one(conn)
        .await?;
    Ok(())
}

#[tracing::instrument(level = "debug", name = "db.users.insert", skip_all)]
pub async fn insert(
    conn: &mut PgConnection,
    id: UserId,
    email: &Email,
    name: &str,
    password_hash: &str,
) -> Result<User> {
    sqlx::query_as!(
        User,
        r#"INSERT INTO okt_system.users (id, email, email_key, name, password_hash)
           VALUES ($1, $2, $3, $4, $5)
           ON CONFLICT (email_key) DO NOTHING
           RETURNING id, email, name, created_at, disabled_at"#,
        id.uuid(),
        email.as_str(),
        email.key(),
        name,
        password_hash,
    )
    .fetch_optional(conn)
    .await?
    .ok_or(TAKEN)
}

#[tracing::instrument(level = "debug", name = "db.users.find", skip_all, fields(user.id = %id))]
pub async fn find(conn: &mut PgConnection, id: UserId) -> Result<Option<User>> {
    Ok(sqlx::query_as!(
        User,
        r#"SELECT id, email, name, created_at, disabled_at FROM okt_system.users WHERE id = $1"#,
        id.uuid(),
    )
    .fetch_optional(conn)
    .await?)
}

/// The user with this address, and the hash of the password.
#[tracing::instrument(level = "debug", name = "db.users.find_by_email", skip_all)]
pub async fn find_by_email(conn: &mut PgConnection, email: &Email) -> Result<Option<(User, String)>> {
    let row = sqlx::query!(
        r#"SELECT id, email, name, created_at, disabled_at, password_hash
             FROM okt_system.users WHERE email_key = $1"#,
        email.key(),
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| {
        (
            User {
                id: row.id.into(),
                email: row.email,
                name: row.name,
                created_at: row.created_at,
                disabled_at: row.disabled_at,
            },
            row.password_hash,
        )
    }))
}

/// Changes what is given; `None` when there is no such user.
#[tracing::instrument(level = "debug", name = "db.users.update", skip_all, fields(user.id = %id))]
pub async fn update(
    conn: &mut PgConnection,
    id: UserId,
    name: Option<&str>,
    email: Option<&Email>,
) -> Result<Option<User>> {
    if let Some(email) = email {
        let taken = sqlx::query_scalar!(
            r#"SELECT EXISTS (SELECT FROM okt_system.users WHERE email_key = $1 AND id <> $2) AS "taken!""#,
            email.key(),
            id.uuid(),
        );
        // Asked first, because a constraint that is broken writes the address into the server's log.
        if taken.fetch_one(&mut *conn).await? {
            return Err(TAKEN);
        }
    }
    sqlx::query_as!(
        User,
        r#"UPDATE okt_system.users
              SET name = coalesce($2, name), email = coalesce($3, email), email_key = coalesce($4, email_key)
            WHERE id = $1
        RETURNING id, email, name, created_at, disabled_at"#,
        id.uuid(),
        name,
        email.map(Email::as_str),
        email.map(Email::key),
    )
    .fetch_optional(conn)
    .await
    .map_err(taken)
}

/// Puts another hash in the place of `before`; false when that is not the one any more. Unconditional, a sign-in that
/// renews an old hash could bring back a password that was changed meanwhile.
#[tracing::instrument(level = "debug", name = "db.users.replace_password_hash", skip_all, fields(user.id = %id))]
pub async fn replace_password_hash(
    conn: &mut PgConnection,
    id: UserId,
    before: &str,
    hash: &str,
) -> Result<bool> {
    let done = sqlx::query!(
        "UPDATE okt_system.users SET password_hash = $3 WHERE id = $1 AND password_hash = $2",
        id.uuid(),
        before,
        hash,
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Whether this is still the hash of the password of an account that can be used. If so it stays like that until the end
/// of the transaction, so that what begins in it is seen by whoever changes either and ends everything.
#[tracing::instrument(level = "debug", name = "db.users.hold_password", skip_all, fields(user.id = %id))]
pub async fn hold_password(conn: &mut PgConnection, id: UserId, hash: &str) -> Result<bool> {
    let held = sqlx::query!(
        "SELECT id FROM okt_system.users
          WHERE id = $1 AND password_hash = $2 AND disabled_at IS NULL
            FOR SHARE",
        id.uuid(),
        hash,
    )
    .fetch_optional(conn)
    .await?;
    Ok(held.is_some())
}

/// Lets an account be used, or not any more. Whether that is another state than before; `None` when there is no such user.
#[tracing::instrument(level = "debug", name = "db.users.set_disabled", skip_all, fields(user.id = %id))]
pub async fn set_disabled(conn: &mut PgConnection, id: UserId, disabled: bool) -> Result<Option<bool>> {
    let before = sqlx::query!(
        r#"SELECT disabled_at IS NOT NULL AS "disabled!" FROM okt_system.users WHERE id = $1 FOR NO KEY UPDATE"#,
        id.uuid(),
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some(before) = before else { return Ok(None) };
    if before.disabled == disabled {
        return Ok(Some(false));
    }
    sqlx::query!(
        "UPDATE okt_system.users SET disabled_at = CASE WHEN $2 THEN clock_timestamp() END WHERE id = $1",
        id.uuid(),
        disabled,
    )
    .execute(conn)
    .await?;
    Ok(Some(true))
}

/// Everybody, oldest first, from behind `after`.
#[tracing::instrument(level = "debug", name = "db.users.list", skip_all)]
pub async fn list(conn: &mut PgConnection, after: Option<UserId>, limit: i64) -> Result<Vec<User>> {
    Ok(sqlx::query_as!(
        User,
        r#"SELECT id, email, name, created_at, disabled_at
             FROM okt_system.users
            WHERE id > coalesce($1::uuid, '00000000-0000-0000-0000-000000000000')
            ORDER BY id
            LIMIT $2"#,
        after.map(UserId::uuid),
        limit,
    )
    .fetch_all(conn)
    .await?)
}

const TAKEN: okt_pg::Error = okt_pg::Error(Error::AlreadyExists("an account with this e-mail address"));

fn taken(error: sqlx::Error) -> okt_pg::Error {
    match error.as_database_error().and_then(|error| error.constraint()) {
        Some("users_email_key") => TAKEN,
        _ => error.into(),
    }
}
