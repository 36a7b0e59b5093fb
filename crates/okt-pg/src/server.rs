//! What a server says about itself.

use sqlx::Connection as _;
use sqlx::postgres::PgConnectOptions;

use crate::connect::connect;
use crate::error::Result;

/// What tells a database from all others, whatever the address that leads to it: the server, and the database there.
pub type Identity = (i64, i64);

pub async fn identity(options: &PgConnectOptions) -> Result<Identity> {
    let mut conn = connect(options, None).await?;
    let row = sqlx::query!(
        r#"SELECT (SELECT system_identifier FROM pg_control_system()) AS "server!", d.oid::bigint AS "database!"
             FROM pg_database d WHERE d.datname = current_database()"#
    )
    .fetch_one(&mut conn)
    .await?;
    conn.close().await?;
    Ok((row.server, row.database))
}

/// How many connections the server gives to ordinary users, all of them together.
pub async fn ordinary_connections(options: &PgConnectOptions) -> Result<u32> {
    let mut conn = connect(options, None).await?;
    let free = sqlx::query_scalar!(
        r#"SELECT current_setting('max_connections')::int
               - current_setting('superuser_reserved_connections')::int
               - coalesce(current_setting('reserved_connections', true), '0')::int AS "free!""#
    )
    .fetch_one(&mut conn)
    .await?;
    conn.close().await?;
    Ok(u32::try_from(free).unwrap_or(0))
}
