//! Which passages have a vector, and of what it is made. The vectors themselves are elsewhere, in a place beside those of facts.
//!
//! A row that somebody is writing anew is passed over: whoever writes it asks for its vector then.

use okt_model::{RepositoryId, SourceId, UnitKind, content_hash};
use okt_search::WORDS_VERSION;
use sqlx::PgConnection;
use uuid::Uuid;

use okt_pg::Result;

/// Numbers of passages that belong to one source.
const EACH: i64 = 256;

/// A source with its passages.
#[derive(Clone, Debug)]
pub struct PassageSource {
    pub no: i64,
    pub title: Option<String>,
    pub text: String,
    /// First and last code point of each sentence.
    pub sentences: Vec<(i32, i32)>,
    pub passages: Vec<Passage>,
}

#[derive(Clone, Copy, Debug)]
pub struct Passage {
    pub no: i64,
    /// The first and the last one.
    pub sentences: (i32, i32),
    pub vector: Option<Uuid>,
    /// The space of its vector; below zero where the model gave none that can be used.
    pub embedded_in: Option<i16>,
}

/// What the vector of a passage is called that is made of this text. It ends with the number of the passage.
pub fn vector_id(repository: RepositoryId, no: i64, text: &str) -> Uuid {
    let hash = content_hash(&format!("{repository}\n{text}")).0;
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&hash[..8]);
    bytes[8..].copy_from_slice(&no.to_be_bytes());
    Uuid::from_bytes(bytes)
}

/// The number of the passage that a vector is called by.
fn number(vector: Uuid) -> i64 {
    vector.as_u64_pair().1.cast_signed()
}

/// A source and its passages as they are to be embedded. `None` if it is not there, or is to be read anew first.
#[tracing::instrument(level = "debug", name = "db.passage_vectors.read_source", skip_all, fields(source.id = %source))]
pub async fn read_source(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: SourceId,
) -> Result<Option<PassageSource>> {
    let row = sqlx::query!(
        "SELECT s.no, s.title, t.text, t.sentences
           FROM okt_repository.sources s
           JOIN okt_repository.source_texts t ON t.repository_id = $1 AND t.source_id = s.id
           JOIN okt_repository.search_units u
             ON u.repository_id = $1 AND u.kind = $3 AND u.no = s.no AND u.version = $4
          WHERE s.repository_id = $1 AND s.id = $2",
        repository.uuid(),
        source.uuid(),
        UnitKind::Source.number(),
        WORDS_VERSION,
    );
    let Some(row) = row.fetch_optional(&mut *conn).await? else { return Ok(None) };
    let passages = sqlx::query!(
        r#"SELECT no, first_sentence AS "first!", last_sentence AS "last!", vector_id, embedded_in
             FROM okt_repository.search_units
            WHERE repository_id = $1 AND kind = $2 AND no >= $3 AND no < $3 + $4::bigint ORDER BY no"#,
        repository.uuid(),
        UnitKind::Passage.number(),
        row.no * EACH,
        EACH,
    );
    let passages = passages.fetch_all(conn).await?.into_iter().map(|passage| Passage {
        no: passage.no,
        sentences: (passage.first, passage.last),
        vector: passage.vector_id,
        embedded_in: passage.embedded_in,
    });
    Ok(Some(PassageSource {
        no: row.no,
        title: row.title,
        text: row.text,
        sentences: row.sentences.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect(),
        passages: passages.collect(),
    }))
}

/// Looks at so many sources from after a number on: those that can be found by their words and whose passages were not all given a
/// vector in a space, and the number to go on after. `None` if there are no more.
#[tracing::instrument(level = "debug", name = "db.passage_vectors.list_missing", skip_all)]
pub async fn list_missing(
    conn: &mut PgConnection,
    repository: RepositoryId,
    space: i16,
    after: i64,
    looked_at: i64,
) -> Result<(Vec<SourceId>, Option<i64>)> {
    let rows = sqlx::query!(
        r#"SELECT s.id, s.no, t.there IS NOT NULL AND u.there IS NOT NULL AS "missing!"
             FROM (SELECT id, no FROM okt_repository.sources
                    WHERE repository_id = $1 AND no > $2 ORDER BY no LIMIT $3) AS s
             LEFT JOIN LATERAL (SELECT true AS there FROM okt_repository.source_texts o
                                 WHERE o.repository_id = $1 AND o.source_id = s.id LIMIT 1) AS t ON true
             LEFT JOIN LATERAL (SELECT true AS there FROM okt_repository.search_units o
                                 WHERE o.repository_id = $1 AND o.kind = $4 AND o.no = s.no AND o.version = $5
                                   AND abs(o.embedded_in) IS DISTINCT FROM $6::smallint LIMIT 1) AS u ON true
            ORDER BY s.no"#,
        repository.uuid(),
        after,
        looked_at,
        UnitKind::Source.number(),
        WORDS_VERSION,
        space,
    );
    let rows = rows.fetch_all(conn).await?;
    let next = rows.last().map(|row| row.no);
    Ok((rows.into_iter().filter(|row| row.missing).map(|row| row.id.into()).collect(), next))
}

/// The vectors of the first so many passages of each of these sources, with the numbers of the passages; no more than a limit.
#[tracing::instrument(level = "debug", name = "db.passage_vectors.list", skip_all)]
pub async fn list(
    conn: &mut PgConnection,
    repository: RepositoryId,
    sources: &[i64],
    each: i64,
    limit: i64,
) -> Result<Vec<(Uuid, i64)>> {
    let rows = sqlx::query!(
        r#"SELECT u.no AS "no!", u.vector_id AS "vector_id!"
             FROM unnest($2::bigint[]) AS n (no)
            CROSS JOIN LATERAL (SELECT o.no, o.vector_id FROM okt_repository.search_units o
                                 WHERE o.repository_id = $1 AND o.kind = $3
                                   AND o.no >= n.no * $4::bigint AND o.no < n.no * $4::bigint + least($5::bigint, $4)
                                   AND o.vector_id IS NOT NULL) AS u
            LIMIT $6"#,
        repository.uuid(),
        sources,
        UnitKind::Passage.number(),
        EACH,
        each,
        limit,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(|row| (row.vector_id, row.no)).collect())
}

/// The passages that these vectors are of, with their vectors; none for a vector that is nobody's any more.
#[tracing::instrument(level = "debug", name = "db.passage_vectors.find", skip_all)]
pub async fn find(
    conn: &mut PgConnection,
    repository: RepositoryId,
    vectors: &[Uuid],
) -> Result<Vec<(Uuid, i64)>> {
    let numbers: Vec<i64> = vectors.iter().map(|vector| number(*vector)).collect();
    let rows = sqlx::query!(
        r#"SELECT u.no, u.vector_id AS "vector_id!"
             FROM unnest($2::uuid[], $3::bigint[]) AS n (vector_id, no)
             JOIN okt_repository.search_units u
               ON u.repository_id = $1 AND u.kind = $4 AND u.no = n.no AND u.vector_id = n.vector_id"#,
        repository.uuid(),
        vectors,
        &numbers,
        UnitKind::Passage.number(),
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(|row| (row.vector_id, row.no)).collect())
}

/// Writes down which vectors passages are going to have, before they are made; returns those that are there.
#[tracing::instrument(level = "debug", name = "db.passage_vectors.claim", skip_all)]
pub async fn claim(conn: &mut PgConnection, repository: RepositoryId, vectors: &[Uuid]) -> Result<Vec<Uuid>> {
    let numbers: Vec<i64> = vectors.iter().map(|vector| number(*vector)).collect();
    let claimed = sqlx::query_scalar!(
        r#"UPDATE okt_repository.search_units u SET vector_id = n.vector_id, embedded_in = NULL
             FROM (SELECT v.vector_id, o.no
                     FROM unnest($2::uuid[], $3::bigint[]) AS v (vector_id, no)
                     JOIN okt_repository.search_units o
                       ON o.repository_id = $1 AND o.kind = $4 AND o.no = v.no
                    ORDER BY o.no
                      FOR NO KEY UPDATE OF o SKIP LOCKED) AS n
            WHERE u.repository_id = $1 AND u.kind = $4 AND u.no = n.no
           RETURNING u.vector_id AS "vector_id!""#,
        repository.uuid(),
        vectors,
        &numbers,
        UnitKind::Passage.number(),
    );
    Ok(claimed.fetch_all(conn).await?)
}

/// Passages that are still to have these vectors have them in a space now, or none that can be used where it is below zero.
#[tracing::instrument(level = "debug", name = "db.passage_vectors.mark", skip_all)]
pub async fn mark(
    conn: &mut PgConnection,
    repository: RepositoryId,
    vectors: &[Uuid],
    space: i16,
) -> Result<u64> {
    let numbers: Vec<i64> = vectors.iter().map(|vector| number(*vector)).collect();
    let done = sqlx::query!(
        "UPDATE okt_repository.search_units u SET embedded_in = $5
           FROM (SELECT o.no
                   FROM unnest($2::uuid[], $3::bigint[]) AS v (vector_id, no)
                   JOIN okt_repository.search_units o
                     ON o.repository_id = $1 AND o.kind = $4 AND o.no = v.no AND o.vector_id = v.vector_id
                  ORDER BY o.no
                    FOR NO KEY UPDATE OF o SKIP LOCKED) AS n
          WHERE u.repository_id = $1 AND u.kind = $4 AND u.no = n.no",
        repository.uuid(),
        vectors,
        &numbers,
        UnitKind::Passage.number(),
        space,
    );
    Ok(done.execute(conn).await?.rows_affected())
}

/// Passages that are said to have a vector in a space, from after a number on, with their vectors.
#[tracing::instrument(level = "debug", name = "db.passage_vectors.list_marked", skip_all)]
pub async fn list_marked(
    conn: &mut PgConnection,
    repository: RepositoryId,
    space: i16,
    after: i64,
    limit: i64,
) -> Result<Vec<(i64, Uuid)>> {
    let rows = sqlx::query!(
        r#"SELECT no, vector_id AS "vector_id!" FROM okt_repository.search_units
            WHERE repository_id = $1 AND kind = $2 AND no > $3 AND embedded_in = $4 AND vector_id IS NOT NULL
            ORDER BY no LIMIT $5"#,
        repository.uuid(),
        UnitKind::Passage.number(),
        after,
        space,
        limit,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(|row| (row.no, row.vector_id)).collect())
}

/// The passages of these vectors have none after all. Their sources are looked at again.
#[tracing::instrument(level = "debug", name = "db.passage_vectors.unmark", skip_all)]
pub async fn unmark(conn: &mut PgConnection, repository: RepositoryId, vectors: &[Uuid]) -> Result<u64> {
    let numbers: Vec<i64> = vectors.iter().map(|vector| number(*vector)).collect();
    let sources: Vec<i64> = numbers.iter().map(|no| no / EACH).collect();
    let noted = sqlx::query!(
        "UPDATE okt_repository.search_units u SET embedded_in = NULL
           FROM (SELECT no FROM okt_repository.search_units
                  WHERE repository_id = $1 AND kind = $3 AND no = ANY ($2) ORDER BY no FOR NO KEY UPDATE) AS n
          WHERE u.repository_id = $1 AND u.kind = $3 AND u.no = n.no",
        repository.uuid(),
        &sources,
        UnitKind::Source.number(),
    );
    noted.execute(&mut *conn).await?;
    let done = sqlx::query!(
        "UPDATE okt_repository.search_units u SET vector_id = NULL, embedded_in = NULL
           FROM (SELECT o.no
                   FROM unnest($2::uuid[], $3::bigint[]) AS v (vector_id, no)
                   JOIN okt_repository.search_units o
                     ON o.repository_id = $1 AND o.kind = $4 AND o.no = v.no AND o.vector_id = v.vector_id
                  ORDER BY o.no
                    FOR NO KEY UPDATE OF o SKIP LOCKED) AS n
          WHERE u.repository_id = $1 AND u.kind = $4 AND u.no = n.no",
        repository.uuid(),
        vectors,
        &numbers,
        UnitKind::Passage.number(),
    );
    Ok(done.execute(conn).await?.rows_affected())
}

/// All passages of a source have a vector in a space, if that is so. True if it is.
#[tracing::instrument(level = "debug", name = "db.passage_vectors.finish", skip_all)]
pub async fn finish(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source_no: i64,
    space: i16,
) -> Result<bool> {
    let done = sqlx::query!(
        "UPDATE okt_repository.search_units SET embedded_in = $4
          WHERE repository_id = $1 AND kind = $2 AND no = $3
            AND NOT EXISTS (SELECT FROM okt_repository.search_units o
                             WHERE o.repository_id = $1 AND o.kind = $5
                               AND o.no >= $3 * $6::bigint AND o.no < ($3 + 1) * $6::bigint
                               AND abs(o.embedded_in) IS DISTINCT FROM $4::smallint)",
        repository.uuid(),
        UnitKind::Source.number(),
        source_no,
        space,
        UnitKind::Passage.number(),
        EACH,
    );
    Ok(done.execute(conn).await?.rows_affected() == 1)
}

/// Has a source looked at again for passages without a vector; with a space, not in that one, for they may cost no more.
#[tracing::instrument(level = "debug", name = "db.passage_vectors.note", skip_all)]
pub async fn note(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source_no: i64,
    given_up_in: Option<i16>,
) -> Result<bool> {
    let done = sqlx::query!(
        "UPDATE okt_repository.search_units SET embedded_in = -$4::smallint
          WHERE repository_id = $1 AND kind = $2 AND no = $3 AND embedded_in IS DISTINCT FROM -$4::smallint",
        repository.uuid(),
        UnitKind::Source.number(),
        source_no,
        given_up_in,
    );
    Ok(done.execute(conn).await?.rows_affected() == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_says_which_passage_it_is_of_and_of_which_text() {
        let (one, other) = (RepositoryId::mint(), RepositoryId::mint());
        let id = vector_id(one, 7 * EACH + 3, "Tides. The Moon.");
        assert_eq!((number(id), vector_id(one, 7 * EACH + 3, "Tides. The Moon.")), (7 * EACH + 3, id));
        let others = [
            vector_id(one, 7 * EACH + 3, "Tides. The Sun."),
            vector_id(one, 7 * EACH + 4, "Tides. The Moon."),
            vector_id(other, 7 * EACH + 3, "Tides. The Moon."),
        ];
        assert!(!others.contains(&id));
        assert_eq!(number(vector_id(one, i64::MAX, "")), i64::MAX);
    }
}
