//! Rows of `okt_repository.source_images`: the images of sources.

use okt_model::{ImageId, RepositoryId, SourceId, SourceImage};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::sources::{blob, columns};
use okt_pg::Result;

/// Writes the images of a source, in place of those that were there.
#[tracing::instrument(level = "debug", name = "db.source_images.replace", skip_all, fields(source.id = %source))]
pub async fn replace(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: SourceId,
    images: &[SourceImage],
) -> Result<()> {
    sqlx::query!(
        "DELETE FROM okt_repository.source_images WHERE repository_id = $1 AND source_id = $2",
        repository.uuid(),
        source.uuid(),
    )
    .execute(&mut *conn)
    .await?;
    // A few dozen at most.
    for image in images {
        let (hash, size) = columns(image.blob);
        sqlx::query!(
            "INSERT INTO okt_repository.source_images
                    (repository_id, source_id, id, kind, page_number, position, url, width, height, alt_text,
                     content_type, sha256, size)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
            repository.uuid(),
            source.uuid(),
            image.id.uuid(),
            image.kind,
            image.page_number,
            image.position,
            image.url,
            image.width,
            image.height,
            image.alt_text,
            image.content_type,
            hash,
            size,
        )
        .execute(&mut *conn)
        .await?;
    }
    Ok(())
}

/// Those of a source, in the order of the document.
#[tracing::instrument(level = "debug", name = "db.source_images.list", skip_all, fields(source.id = %source))]
pub async fn list(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: SourceId,
) -> Result<Vec<SourceImage>> {
    let rows = sqlx::query_as!(
        Row,
        "SELECT id, kind, page_number, position, url, width, height, alt_text, content_type, sha256, size
           FROM okt_repository.source_images WHERE repository_id = $1 AND source_id = $2
          ORDER BY kind, position, id",
        repository.uuid(),
        source.uuid(),
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(SourceImage::try_from).collect()
}

#[tracing::instrument(level = "debug", name = "db.source_images.find", skip_all, fields(source.id = %source))]
pub async fn find(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: SourceId,
    id: ImageId,
) -> Result<Option<SourceImage>> {
    let row = sqlx::query_as!(
        Row,
        "SELECT id, kind, page_number, position, url, width, height, alt_text, content_type, sha256, size
           FROM okt_repository.source_images WHERE repository_id = $1 AND source_id = $2 AND id = $3",
        repository.uuid(),
        source.uuid(),
        id.uuid(),
    )
    .fetch_optional(conn)
    .await?;
    row.map(SourceImage::try_from).transpose()
}

struct Row {
    id: Uuid,
    kind: String,
    page_number: Option<i32>,
    position: i32,
    url: Option<String>,
    width: Option<i32>,
    height: Option<i32>,
    alt_text: Option<String>,
    content_type: Option<String>,
    sha256: Option<Vec<u8>>,
    size: Option<i64>,
}

impl TryFrom<Row> for SourceImage {
    type Error = okt_pg::Error;

    fn try_from(row: Row) -> Result<Self> {
        Ok(Self {
            id: row.id.into(),
            kind: row.kind,
            page_number: row.page_number,
            position: row.position,
            url: row.url,
            width: row.width,
            height: row.height,
            alt_text: row.alt_text,
            content_type: row.content_type,
            blob: blob(row.sha256.as_deref(), row.size)?,
        })
    }
}
