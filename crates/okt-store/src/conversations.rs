//! Rows of `okt_repository.conversations`: questions of a person that follow on each other.

use chrono::{DateTime, Utc};
use okt_model::{Conversation, ConversationId, RepositoryId, UserId};
use sqlx::PgConnection;
use uuid::Uuid;

use okt_pg::Result;

#[tracing::instrument(level = "debug", name = "db.conversations.insert", skip_all, fields(conversation.id = %id))]
pub async fn insert(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: ConversationId,
    person: UserId,
    title: Option<&str>,
) -> Result<()> {
    sqlx::query!(
        "INSERT INTO okt_repository.conversations (repository_id, id, asked_by, title) VALUES ($1, $2, $3, $4)",
        repository.uuid(),
        id.uuid(),
        person.uuid(),
        title,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The conversations of a person, the newest first, from before one on; or one of them.
#[tracing::instrument(level = "debug", name = "db.conversations.list", skip_all)]
pub async fn list(
    conn: &mut PgConnection,
    repository: RepositoryId,
    person: UserId,
    id: Option<ConversationId>,
    before: Option<ConversationId>,
    limit: i64,
) -> Result<Vec<Conversation>> {
    let rows = sqlx::query_as!(
        Row,
        r#"SELECT c.id, c.no, c.asked_by, c.created_at, c.updated_at,
                  coalesce(c.title, left((SELECT a.question FROM okt_repository.answers a
                                           WHERE a.repository_id = $1 AND a.conversation_no = c.no
                                           ORDER BY a.id LIMIT 1), 300)) AS title,
                  (SELECT count(*) FROM okt_repository.answers a
                    WHERE a.repository_id = $1 AND a.conversation_no = c.no) AS "answer_count!"
             FROM okt_repository.conversations c
            WHERE c.repository_id = $1 AND c.asked_by = $2 AND ($3::uuid IS NULL OR c.id = $3)
              AND c.id < coalesce($4::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
            ORDER BY c.id DESC LIMIT $5"#,
        repository.uuid(),
        person.uuid(),
        id.map(ConversationId::uuid),
        before.map(ConversationId::uuid),
        limit,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(Conversation::from).collect())
}

/// The number of a conversation of a person. It is not deleted before the end of the transaction.
#[tracing::instrument(level = "debug", name = "db.conversations.hold", skip_all, fields(conversation.id = %id))]
pub async fn hold(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: ConversationId,
    person: UserId,
) -> Result<Option<i64>> {
    let no = sqlx::query_scalar!(
        "UPDATE okt_repository.conversations SET updated_at = clock_timestamp()
          WHERE repository_id = $1 AND id = $2 AND asked_by = $3 RETURNING no",
        repository.uuid(),
        id.uuid(),
        person.uuid(),
    );
    Ok(no.fetch_optional(conn).await?)
}

/// Removes the row; its answers are removed before.
#[tracing::instrument(level = "debug", name = "db.conversations.delete", skip_all)]
pub async fn delete(conn: &mut PgConnection, repository: RepositoryId, conversation: i64) -> Result<()> {
    sqlx::query!(
        "DELETE FROM okt_repository.conversations WHERE repository_id = $1 AND no = $2",
        repository.uuid(),
        conversation,
    )
    .execute(conn)
    .await?;
    Ok(())
}

struct Row {
    id: Uuid,
    no: i64,
    asked_by: Uuid,
    title: Option<String>,
    answer_count: i64,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

impl From<Row> for Conversation {
    fn from(row: Row) -> Self {
        Self {
            id: row.id.into(),
            no: row.no,
            asked_by: row.asked_by.into(),
            title: row.title,
            answer_count: row.answer_count,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}
