//! Rows of `okt_repository.audit_outbox`: entries of the audit on their way to the system database.
//!
//! An entry is written with what it records. Carrying it is a copy and a deletion in two databases; whoever stops in between
//! leaves an entry that is copied once more, which its id makes harmless. They are not moved with their repository, nor removed
//! with it: they are carried from wherever they were written.

use okt_model::{NewAuditEntry, RepositoryId, UserId};
use sqlx::PgConnection;

use crate::databases::Databases;
use okt_pg::Result;

const BATCH: i64 = 500;

/// Records something in the transaction that does it.
#[tracing::instrument(level = "debug", name = "db.audit_outbox.insert", skip_all, fields(repository.id = %repository))]
pub async fn insert(
    conn: &mut PgConnection,
    repository: RepositoryId,
    entry: &NewAuditEntry<'_>,
) -> Result<()> {
    sqlx::query!(
        "INSERT INTO okt_repository.audit_outbox
                (repository_id, id, actor_id, actor_kind, credential_id, action, object, address, user_agent, via, request_id)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
        repository.uuid(),
        entry.id.uuid(),
        entry.actor.map(UserId::uuid),
        entry.actor_kind,
        entry.credential,
        entry.action,
        entry.object,
        entry.address,
        entry.agent,
        entry.via,
        entry.request_id,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Carries all entries of a database to the audit; returns how many. Harmless to do at the same time as somebody else.
#[tracing::instrument(level = "debug", name = "db.audit_outbox.carry", skip_all, fields(database))]
pub async fn carry(databases: &Databases, database: &str) -> Result<i64> {
    let mut carried = 0;
    loop {
        let mut tx = databases.begin_relay(database).await?;
        let found = sqlx::query!(
            r#"SELECT count(*) AS "count!", coalesce(jsonb_agg(to_jsonb(e)), '[]')::text AS "entries!"
                 FROM (SELECT * FROM okt_repository.audit_outbox ORDER BY repository_id, id LIMIT $1) AS e"#,
            BATCH,
        );
        let found = found.fetch_one(&mut *tx).await?;
        tx.commit().await?;
        if found.count == 0 {
            return Ok(carried);
        }

        let mut conn = databases.acquire_system().await?;
        sqlx::query!(
            "INSERT INTO okt_system.audit
                    (id, at, actor_id, actor_kind, credential_id, action, object, repository_id, address, user_agent, via,
                     request_id)
             SELECT id, at, actor_id, actor_kind, credential_id, action, object, repository_id, address, user_agent, via,
                    request_id
               FROM jsonb_populate_recordset(NULL::okt_system.audit, $1::text::jsonb)
             ON CONFLICT (id) DO NOTHING",
            found.entries,
        )
        .execute(&mut *conn)
        .await?;
        drop(conn);

        let mut tx = databases.begin_relay(database).await?;
        sqlx::query!(
            "DELETE FROM okt_repository.audit_outbox o
              USING jsonb_to_recordset($1::text::jsonb) AS e (repository_id uuid, id uuid)
              WHERE o.repository_id = e.repository_id AND o.id = e.id",
            found.entries,
        )
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        carried += found.count;
    }
}
