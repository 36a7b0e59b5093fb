//! Rows of `okt_system.users`.

use okt_model::{Email, Error, Result, User, UserId};
use sqlx::PgConnection;

use crate::error::from_sqlx;

/// Any number, the same in every process: whoever holds this lock may become the first user.
const FIRST_USER_LOCK: i64 = 0x6f6b_745f_7573_6572;

/// Whether there is anybody.
#[tracing::instrument(level = "debug", name = "db.users.any", skip_all)]
pub async fn any(conn: &mut PgConnection) -> Result<bool> {
    let any = sqlx::query_scalar!(r#"SELECT EXISTS (SELECT FROM okt_system.users) AS "any!""#);
    any.fetch_one(conn).await.map_err(from_sqlx)
}

/// Until the end of the transaction nobody else decides whether they are the first.
#[tracing::instrument(level = "debug", name = "db.users.lock_first", skip_all)]
pub async fn lock_first(conn: &mut PgConnection) -> Result<()> {
    sqlx::query!(r#"SELECT pg_advisory_xact_lock($1) AS "locked: ()""#, FIRST_USER_LOCK)
        .fetch_one(conn)
        .await
        .map_err(from_sqlx)?;
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
           RETURNING id, email, name, created_at"#,
        id.uuid(),
        email.as_str(),
        email.key(),
        name,
        password_hash,
    )
    .fetch_optional(conn)
    .await
    .map_err(from_sqlx)?
    .ok_or(TAKEN)
}

#[tracing::instrument(level = "debug", name = "db.users.find", skip_all, fields(user.id = %id))]
pub async fn find(conn: &mut PgConnection, id: UserId) -> Result<Option<User>> {
    sqlx::query_as!(
        User,
        r#"SELECT id, email, name, created_at FROM okt_system.users WHERE id = $1"#,
        id.uuid(),
    )
    .fetch_optional(conn)
    .await
    .map_err(from_sqlx)
}

/// The user with this address, and the hash of the password.
#[tracing::instrument(level = "debug", name = "db.users.find_by_email", skip_all)]
pub async fn find_by_email(conn: &mut PgConnection, email: &Email) -> Result<Option<(User, String)>> {
    let row = sqlx::query!(
        r#"SELECT id, email, name, created_at, password_hash
             FROM okt_system.users WHERE email_key = $1"#,
        email.key(),
    )
    .fetch_optional(conn)
    .await
    .map_err(from_sqlx)?;
    Ok(row.map(|row| {
        (
            User { id: row.id.into(), email: row.email, name: row.name, created_at: row.created_at },
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
        if taken.fetch_one(&mut *conn).await.map_err(from_sqlx)? {
            return Err(TAKEN);
        }
    }
    sqlx::query_as!(
        User,
        r#"UPDATE okt_system.users
              SET name = coalesce($2, name), email = coalesce($3, email), email_key = coalesce($4, email_key)
            WHERE id = $1
        RETURNING id, email, name, created_at"#,
        id.uuid(),
        name,
        email.map(Email::as_str),
        email.map(Email::key),
    )
    .fetch_optional(conn)
    .await
    .map_err(taken)
}

#[tracing::instrument(level = "debug", name = "db.users.set_password_hash", skip_all, fields(user.id = %id))]
pub async fn set_password_hash(conn: &mut PgConnection, id: UserId, password_hash: &str) -> Result<()> {
    sqlx::query!("UPDATE okt_system.users SET password_hash = $2 WHERE id = $1", id.uuid(), password_hash)
        .execute(conn)
        .await
        .map_err(from_sqlx)?;
    Ok(())
}

/// Everybody, oldest first, from behind `after`.
#[tracing::instrument(level = "debug", name = "db.users.list", skip_all)]
pub async fn list(conn: &mut PgConnection, after: Option<UserId>, limit: i64) -> Result<Vec<User>> {
    sqlx::query_as!(
        User,
        r#"SELECT id, email, name, created_at
             FROM okt_system.users
            WHERE $1::uuid IS NULL OR id > $1
            ORDER BY id
            LIMIT $2"#,
        after.map(UserId::uuid),
        limit,
    )
    .fetch_all(conn)
    .await
    .map_err(from_sqlx)
}

const TAKEN: Error = Error::AlreadyExists("an account with this e-mail address");

fn taken(error: sqlx::Error) -> Error {
    match error.as_database_error().and_then(|error| error.constraint()) {
        Some("users_email_key") => TAKEN,
        _ => from_sqlx(error),
    }
}
