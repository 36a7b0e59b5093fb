//! Rows of `okt_repository.source_texts`: what was read out of sources.

use okt_model::{RepositoryId, Result, SourceId, SourceText};
use sqlx::PgConnection;

use crate::error::from_sqlx;

/// Writes it, in place of what was there.
#[tracing::instrument(level = "debug", name = "db.source_texts.put", skip_all, fields(source.id = %source))]
pub async fn put(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: SourceId,
    text: &SourceText,
) -> Result<()> {
    let sentences: Vec<i32> = text.sentences.iter().flat_map(|(start, end)| [*start, *end]).collect();
    sqlx::query!(
        "INSERT INTO okt_repository.source_texts AS t
                (repository_id, source_id, text, markdown, sentences, boxes, segmenter, segmenter_hash)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
         ON CONFLICT (repository_id, source_id) DO UPDATE
            SET text = excluded.text, markdown = excluded.markdown, sentences = excluded.sentences,
                boxes = excluded.boxes, segmenter = excluded.segmenter, segmenter_hash = excluded.segmenter_hash",
        repository.uuid(),
        source.uuid(),
        text.text,
        text.markdown,
        &sentences,
        text.boxes,
        text.segmenter,
        text.segmenter_hash,
    )
    .execute(conn)
    .await
    .map_err(from_sqlx)?;
    Ok(())
}

#[tracing::instrument(level = "debug", name = "db.source_texts.find", skip_all, fields(source.id = %source))]
pub async fn find(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: SourceId,
) -> Result<Option<SourceText>> {
    let row = sqlx::query!(
        "SELECT text, markdown, sentences, boxes, segmenter, segmenter_hash
           FROM okt_repository.source_texts WHERE repository_id = $1 AND source_id = $2",
        repository.uuid(),
        source.uuid(),
    )
    .fetch_optional(conn)
    .await
    .map_err(from_sqlx)?;
    Ok(row.map(|row| SourceText {
        text: row.text,
        markdown: row.markdown,
        sentences: row.sentences.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect(),
        boxes: row.boxes,
        segmenter: row.segmenter,
        segmenter_hash: row.segmenter_hash,
    }))
}

/// Whether there is one.
#[tracing::instrument(level = "debug", name = "db.source_texts.is_there", skip_all, fields(source.id = %source))]
pub async fn is_there(conn: &mut PgConnection, repository: RepositoryId, source: SourceId) -> Result<bool> {
    sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM okt_repository.source_texts
                           WHERE repository_id = $1 AND source_id = $2) AS "there!""#,
        repository.uuid(),
        source.uuid(),
    )
    .fetch_one(conn)
    .await
    .map_err(from_sqlx)
}
