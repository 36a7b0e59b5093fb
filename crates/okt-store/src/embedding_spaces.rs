//! Rows of `okt_system.embedding_spaces`: which model's vectors are searched, and which are being made.

use okt_model::{EmbeddingSpace, Error, SpaceKind, SpaceState};
use sqlx::PgConnection;

use crate::words::word;
use okt_pg::Result;

/// All of them, the oldest first.
#[tracing::instrument(level = "debug", name = "db.embedding_spaces.list", skip_all)]
pub async fn list(conn: &mut PgConnection) -> Result<Vec<EmbeddingSpace>> {
    let rows = sqlx::query_as!(
        Row,
        "SELECT no, kind, model, dimensions, passage_prefix, state FROM okt_system.embedding_spaces ORDER BY no"
    );
    rows.fetch_all(conn).await?.into_iter().map(EmbeddingSpace::try_from).collect()
}

/// The one that is searched for things of this kind.
#[tracing::instrument(level = "debug", name = "db.embedding_spaces.find_current", skip_all)]
pub async fn find_current(conn: &mut PgConnection, kind: SpaceKind) -> Result<Option<EmbeddingSpace>> {
    let row = sqlx::query_as!(
        Row,
        "SELECT no, kind, model, dimensions, passage_prefix, state FROM okt_system.embedding_spaces WHERE kind = $1 AND state = 'current'",
        kind.as_str(),
    );
    row.fetch_optional(conn).await?.map(EmbeddingSpace::try_from).transpose()
}

/// False when there is one of this kind in this state already.
#[tracing::instrument(level = "debug", name = "db.embedding_spaces.insert", skip_all)]
pub async fn insert(
    conn: &mut PgConnection,
    kind: SpaceKind,
    (model, dimensions, passage_prefix): (&str, u32, &str),
    state: SpaceState,
) -> Result<bool> {
    let done = sqlx::query!(
        "INSERT INTO okt_system.embedding_spaces (kind, model, dimensions, passage_prefix, state)
         VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT DO NOTHING",
        kind.as_str(),
        model,
        i32::try_from(dimensions).map_err(Error::internal)?,
        passage_prefix,
        state.as_str(),
    );
    Ok(done.execute(conn).await?.rows_affected() == 1)
}

/// From now on this one is searched. In a transaction: two statements.
#[tracing::instrument(level = "debug", name = "db.embedding_spaces.make_current", skip_all)]
pub async fn make_current(conn: &mut PgConnection, no: i16) -> Result<()> {
    let before = sqlx::query!(
        "UPDATE okt_system.embedding_spaces SET state = 'retired'
          WHERE state = 'current' AND no <> $1
            AND kind = (SELECT s.kind FROM okt_system.embedding_spaces s WHERE s.no = $1)",
        no
    );
    before.execute(&mut *conn).await?;
    let now = sqlx::query!("UPDATE okt_system.embedding_spaces SET state = 'current' WHERE no = $1", no);
    now.execute(conn).await?;
    Ok(())
}

/// Not the one that is searched.
#[tracing::instrument(level = "debug", name = "db.embedding_spaces.delete", skip_all)]
pub async fn delete(conn: &mut PgConnection, no: i16) -> Result<()> {
    let gone =
        sqlx::query!("DELETE FROM okt_system.embedding_spaces WHERE no = $1 AND state <> 'current'", no);
    gone.execute(conn).await?;
    Ok(())
}

struct Row {
    no: i16,
    kind: String,
    model: String,
    dimensions: i32,
    passage_prefix: String,
    state: String,
}

impl TryFrom<Row> for EmbeddingSpace {
    type Error = okt_pg::Error;

    fn try_from(row: Row) -> Result<Self> {
        Ok(Self {
            no: row.no,
            kind: word("embedding_spaces.kind", &row.kind)?,
            model: row.model,
            dimensions: u32::try_from(row.dimensions).map_err(Error::internal)?,
            passage_prefix: row.passage_prefix,
            state: word("embedding_spaces.state", &row.state)?,
        })
    }
}
