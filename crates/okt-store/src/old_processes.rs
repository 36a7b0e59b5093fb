//! Migrations that the release before can't work beside, such as those that rename a column. They begin with a line of their
//! own, and are refused while a process of that release lives.

use std::collections::BTreeMap;

use okt_config::Config;
use okt_model::Error;
use okt_pg::{Result, connect};
use sqlx::{Connection, PgConnection};

use crate::endpoints::{Endpoint, about};
use crate::migrations::missing_that_stop;

/// Refused while a worker lives that is not of this release. Only the databases that everything needs are looked at: they are
/// migrated first, so whoever migrates another one later is of the new release. Those that do not answer say so themselves.
pub(crate) async fn refuse(config: &Config, endpoints: &BTreeMap<String, Endpoint>) -> Result<()> {
    let mut pending = Vec::new();
    for (name, endpoint) in endpoints.iter().filter(|(_, endpoint)| endpoint.is_required(config)) {
        let Ok(mut conn) = connect(&endpoint.options, None).await else { continue };
        pending.extend(
            missing_that_stop(&mut conn, &endpoint.schemas).await.map_err(|error| about(name, error))?,
        );
        conn.close().await?;
    }
    if pending.is_empty() {
        return Ok(());
    }
    let queue = endpoints.iter().find(|(_, endpoint)| endpoint.names.contains(&config.task.database));
    let Some((name, endpoint)) = queue else { return Ok(()) };
    let mut conn = connect(&endpoint.options, None).await.map_err(|error| about(name, error))?;
    let living = living(&mut conn).await.map_err(|error| about(name, error))?;
    conn.close().await?;
    if living.is_empty() {
        return Ok(());
    }
    Err(Error::Operator(format!(
        "processes of the release before are running (workers: {}), and can't work beside these migrations: {}. Stop all okt \
         processes of that release, also those that only serve, run `okt migrate`, and start the new ones",
        living.join(", "),
        pending.join(", "),
    ))
    .into())
}

/// The names of workers that hold the lock on their id.
pub(crate) async fn living(conn: &mut PgConnection) -> Result<Vec<String>> {
    let known: bool = sqlx::query_scalar("SELECT to_regclass('okt_tasks.workers') IS NOT NULL")
        .fetch_one(&mut *conn)
        .await?;
    if !known {
        return Ok(Vec::new());
    }
    Ok(sqlx::query_scalar(
        "SELECT w.name FROM okt_tasks.workers w
          WHERE EXISTS (SELECT FROM pg_locks l
                         WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted
                           AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
                           AND (l.classid::bigint << 32 | l.objid::bigint) = w.id)
          ORDER BY w.name",
    )
    .fetch_all(conn)
    .await?)
}
