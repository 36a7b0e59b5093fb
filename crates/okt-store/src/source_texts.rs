//! Rows of `okt_repository.source_texts`: what was read out of sources.

use okt_model::{Error, PartialText, Passage, RepositoryId, SourceId, SourceText, TextFile, TextParts};
use sqlx::PgConnection;

use okt_pg::Result;

/// Writes it, in place of what was there.
#[tracing::instrument(level = "debug", name = "db.source_texts.put", skip_all, fields(source.id = %source))]
pub async fn put(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: SourceId,
    text: &SourceText,
) -> Result<()> {
    let pages = serde_json::to_string(&text.pages).map_err(Error::internal)?;
    let sentences: Vec<i32> = text.sentences.iter().flat_map(|(start, end)| [*start, *end]).collect();
    sqlx::query!(
        "INSERT INTO okt_repository.source_texts AS t
                (repository_id, source_id, text, markdown, sentences, boxes, segmenter, segmenter_hash, pages)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         ON CONFLICT (repository_id, source_id) DO UPDATE
            SET text = excluded.text, markdown = excluded.markdown, sentences = excluded.sentences,
                boxes = excluded.boxes, segmenter = excluded.segmenter, segmenter_hash = excluded.segmenter_hash,
                pages = excluded.pages",
        repository.uuid(),
        source.uuid(),
        text.text,
        text.markdown,
        &sentences,
        text.boxes,
        text.segmenter,
        text.segmenter_hash,
        pages,
    )
    .execute(conn)
    .await?;
    Ok(())
}

#[tracing::instrument(level = "debug", name = "db.source_texts.find", skip_all, fields(source.id = %source))]
pub async fn find(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: SourceId,
) -> Result<Option<SourceText>> {
    let row = sqlx::query!(
        "SELECT text, markdown, sentences, boxes, segmenter, segmenter_hash, pages
           FROM okt_repository.source_texts WHERE repository_id = $1 AND source_id = $2",
        repository.uuid(),
        source.uuid(),
    )
    .fetch_optional(conn)
    .await?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(SourceText {
        pages: serde_json::from_str(&row.pages).map_err(Error::internal)?,
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
    Ok(sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM okt_repository.source_texts
                           WHERE repository_id = $1 AND source_id = $2) AS "there!""#,
        repository.uuid(),
        source.uuid(),
    )
    .fetch_one(conn)
    .await?)
}

/// About how many bytes these parts take, without reading them; `None` where there is no text.
#[tracing::instrument(level = "debug", name = "db.source_texts.weigh", skip_all, fields(source.id = %source))]
pub async fn weigh(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: SourceId,
    parts: TextParts,
) -> Result<Option<usize>> {
    let bytes = sqlx::query_scalar!(
        r#"SELECT (CASE WHEN $3 THEN octet_length(text) ELSE 0 END
                 + CASE WHEN $4 THEN octet_length(markdown) ELSE 0 END
                 -- As text: two numbers with their brackets.
                 + CASE WHEN $5 THEN 10 * cardinality(sentences) ELSE 0 END
                 + CASE WHEN $6 THEN coalesce(octet_length(boxes), 0) ELSE 0 END)::bigint AS "bytes!"
             FROM okt_repository.source_texts WHERE repository_id = $1 AND source_id = $2"#,
        repository.uuid(),
        source.uuid(),
        parts.text,
        parts.markdown,
        parts.sentences,
        parts.boxes,
    )
    .fetch_optional(conn)
    .await?;
    Ok(bytes.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)))
}

/// These parts, and what is small.
#[tracing::instrument(level = "debug", name = "db.source_texts.find_parts", skip_all, fields(source.id = %source))]
pub async fn find_parts(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: SourceId,
    parts: TextParts,
) -> Result<Option<PartialText>> {
    let row = sqlx::query!(
        r#"SELECT CASE WHEN $3 THEN text END AS text, CASE WHEN $4 THEN markdown END AS markdown,
                  CASE WHEN $5 THEN sentences END AS sentences, CASE WHEN $6 THEN boxes END AS boxes,
                  pages, segmenter, encode(sha256(convert_to(text, 'UTF8')), 'hex') AS "sha256!"
             FROM okt_repository.source_texts WHERE repository_id = $1 AND source_id = $2"#,
        repository.uuid(),
        source.uuid(),
        parts.text,
        parts.markdown,
        parts.sentences,
        parts.boxes,
    )
    .fetch_optional(conn)
    .await?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(PartialText {
        pages: serde_json::from_str(&row.pages).map_err(Error::internal)?,
        text: row.text,
        markdown: row.markdown,
        sentences: row.sentences,
        boxes: row.boxes,
        segmenter: row.segmenter,
        sha256: row.sha256,
    }))
}

/// What [`read_piece`] needs to know.
#[tracing::instrument(level = "debug", name = "db.source_texts.find_file", skip_all, fields(source.id = %source))]
pub async fn find_file(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: SourceId,
    markdown: bool,
) -> Result<Option<TextFile>> {
    let row = sqlx::query!(
        r#"SELECT octet_length(t.text)::bigint AS "size!", encode(sha256(convert_to(t.text, 'UTF8')), 'hex') AS "sha256!",
                  t.version AS "version!"
             FROM (SELECT CASE WHEN $3 THEN markdown ELSE text END AS text, xmin::text AS version
                     FROM okt_repository.source_texts WHERE repository_id = $1 AND source_id = $2) AS t"#,
        repository.uuid(),
        source.uuid(),
        markdown,
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| TextFile {
        markdown,
        size: u64::try_from(row.size).unwrap_or(0),
        sha256: row.sha256,
        version: row.version,
    }))
}

/// So many bytes from this one on; `None` when the text is not what it was.
#[tracing::instrument(level = "debug", name = "db.source_texts.read_piece", skip_all, fields(source.id = %source))]
pub async fn read_piece(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: SourceId,
    file: &TextFile,
    from: u64,
    bytes: u32,
) -> Result<Option<Vec<u8>>> {
    Ok(sqlx::query_scalar!(
        r#"SELECT substring(convert_to(CASE WHEN $3 THEN markdown ELSE text END, 'UTF8') FROM $5 FOR $6) AS "piece!"
             FROM okt_repository.source_texts
            WHERE repository_id = $1 AND source_id = $2 AND xmin::text = $4"#,
        repository.uuid(),
        source.uuid(),
        file.markdown,
        file.version,
        i32::try_from(from + 1).unwrap_or(i32::MAX),
        i32::try_from(bytes).unwrap_or(i32::MAX),
    )
    .fetch_optional(conn)
    .await?)
}

/// How many sentences there are.
#[tracing::instrument(level = "debug", name = "db.source_texts.count_sentences", skip_all, fields(source.id = %source))]
pub async fn count_sentences(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: SourceId,
) -> Result<usize> {
    let count = sqlx::query_scalar!(
        r#"SELECT cardinality(sentences) / 2 AS "count!"
             FROM okt_repository.source_texts WHERE repository_id = $1 AND source_id = $2"#,
        repository.uuid(),
        source.uuid(),
    )
    .fetch_optional(conn)
    .await?;
    Ok(count.and_then(|count| usize::try_from(count).ok()).unwrap_or(0))
}

/// The sentences from the first to the last of these, with the text that they stand in and no more of it.
#[tracing::instrument(level = "debug", name = "db.source_texts.find_passage", skip_all, fields(source.id = %source))]
pub async fn find_passage(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: SourceId,
    first: usize,
    last: usize,
) -> Result<Passage> {
    let row = sqlx::query!(
        r#"SELECT substring(t.text FROM t.sentences[2 * $3 + 1] + 1
                             FOR greatest(t.sentences[2 * $4 + 2] - t.sentences[2 * $3 + 1], 0)) AS "text!",
                  t.sentences[2 * $3 + 1 : 2 * $4 + 2] AS "sentences!",
                  CASE WHEN t.boxes IS NOT NULL
                       THEN ARRAY(SELECT (b.boxes -> i ->> 0)::float8::integer
                                    FROM generate_series($3, $4) AS i) END AS "pages: Vec<Option<i32>>"
             FROM okt_repository.source_texts t
             -- Read once, however many sentences.
             CROSS JOIN LATERAL (SELECT t.boxes::jsonb AS boxes OFFSET 0) AS b
            WHERE t.repository_id = $1 AND t.source_id = $2"#,
        repository.uuid(),
        source.uuid(),
        i32::try_from(first).unwrap_or(i32::MAX),
        i32::try_from(last).unwrap_or(i32::MAX),
    )
    .fetch_optional(conn)
    .await?;
    Ok(row
        .map(|row| Passage {
            text: row.text,
            sentences: row.sentences.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect(),
            pages: row.pages.unwrap_or_default(),
        })
        .unwrap_or_default())
}
