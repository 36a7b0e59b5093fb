//! Rows of `okt_repository.concept_readings`: which facts were read for concepts, by whom, and which are asked about together.

use okt_model::{ContentHash, RepositoryId, SourceId};
use sqlx::PgConnection;

use crate::facts::hash;

use okt_pg::Result;

/// A fact of a source, for somebody who reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readable {
    pub no: i64,
    pub text: String,
    pub state: ReadingState,
    /// Somebody else has read it before.
    pub read_before: bool,
}

/// What was asked about a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskedBefore {
    pub question: ContentHash,
    /// About so many facts. If there are fewer by now, the numbers in the answer mean others.
    pub facts: i32,
}

/// What a reader has to do with a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadingState {
    /// To be read, in no batch yet.
    Open,
    /// To be read with those of the same batch, which were perhaps asked about already.
    Planned { batch: i64, asked: Option<AskedBefore> },
    /// Nothing: it was read, another source's job reads it, or it is not a fact of its own (new, rejected, a duplicate).
    Settled,
}

/// All facts that a source makes, in the order of their numbers. Those that are not to be read are listed too: they say what
/// the others speak of.
#[tracing::instrument(level = "debug", name = "db.concept_readings.list", skip_all, fields(source.id = %source))]
pub async fn list(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: SourceId,
    reader: i64,
) -> Result<Vec<Readable>> {
    let rows = sqlx::query!(
        r#"SELECT f.no, f.text, f.status = 'stable' AS "stable!", r.reader AS "reader?", r.done AS "done?",
                  r.batch AS "batch?", r.question, r.asked, r.source_no = s.no AS "ours?"
             FROM okt_repository.sources s
             JOIN okt_repository.fact_sources l ON l.repository_id = s.repository_id AND l.source_no = s.no
             JOIN okt_repository.facts f ON f.repository_id = l.repository_id AND f.no = l.fact_no
             LEFT JOIN okt_repository.concept_readings r ON r.repository_id = f.repository_id AND r.fact_no = f.no
            WHERE s.repository_id = $1 AND s.id = $2
            ORDER BY f.no"#,
        repository.uuid(),
        source.uuid(),
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        let same = row.reader == Some(reader);
        let question = row.question.as_deref().map(hash).transpose()?;
        let asked = question.zip(row.asked).map(|(question, facts)| AskedBefore { question, facts });
        let state = match row.batch {
            Some(batch) if same && row.ours == Some(true) => ReadingState::Planned { batch, asked },
            _ if !same && row.stable => ReadingState::Open,
            _ => ReadingState::Settled,
        };
        Ok(Readable { no: row.no, text: row.text, state, read_before: !same && row.done == Some(true) })
    });
    rows.collect()
}

/// These facts are asked about by these questions, in place of any before; returns how many facts.
#[tracing::instrument(level = "debug", name = "db.concept_readings.note_questions", skip_all)]
pub async fn note_questions(
    conn: &mut PgConnection,
    repository: RepositoryId,
    questions: &[(i64, AskedBefore)],
) -> Result<u64> {
    let mut rows = (Vec::new(), Vec::new(), Vec::new());
    for (fact, asked) in questions {
        rows.0.push(*fact);
        rows.1.push(asked.question.0.to_vec());
        rows.2.push(asked.facts);
    }
    let noted = sqlx::query!(
        "UPDATE okt_repository.concept_readings r SET question = n.question, asked = n.asked
           FROM unnest($2::bigint[], $3::bytea[], $4::integer[]) AS n (fact_no, question, asked)
          WHERE r.repository_id = $1 AND r.fact_no = n.fact_no AND NOT r.done",
        repository.uuid(),
        &rows.0,
        &rows.1,
        &rows.2,
    );
    Ok(noted.execute(conn).await?.rows_affected())
}

/// These are going to be read by the job of a source, each with its batch; returns those. What another source's job has taken
/// on meanwhile stays with it.
#[tracing::instrument(level = "debug", name = "db.concept_readings.plan", skip_all, fields(source.id = %source))]
pub async fn plan(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: SourceId,
    reader: i64,
    batches: &[(i64, i64)],
) -> Result<Vec<i64>> {
    write(conn, repository, source, reader, batches, false).await
}

/// These were read; returns those that nobody had read before.
#[tracing::instrument(level = "debug", name = "db.concept_readings.finish", skip_all, fields(source.id = %source))]
pub async fn finish(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: SourceId,
    reader: i64,
    facts: &[i64],
) -> Result<Vec<i64>> {
    let alone: Vec<(i64, i64)> = facts.iter().map(|fact| (*fact, *fact)).collect();
    write(conn, repository, source, reader, &alone, true).await
}

async fn write(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: SourceId,
    reader: i64,
    facts: &[(i64, i64)],
    done: bool,
) -> Result<Vec<i64>> {
    let (facts, batches): (Vec<i64>, Vec<i64>) = facts.iter().copied().unzip();
    // A fact that is gone by now gets none. Those that are there stay until the end of the transaction.
    let there = sqlx::query_scalar!(
        "SELECT f.no FROM okt_repository.facts f WHERE f.repository_id = $1 AND f.no = ANY ($2)
          ORDER BY f.content_hash
            FOR KEY SHARE OF f",
        repository.uuid(),
        &facts,
    );
    let there = there.fetch_all(&mut *conn).await?;
    let written = sqlx::query_scalar!(
        "INSERT INTO okt_repository.concept_readings AS r (repository_id, fact_no, reader, source_no, batch, done)
         SELECT $1, n.fact_no, $3, CASE WHEN $6 THEN NULL ELSE s.no END, n.batch, $6
           FROM unnest($4::bigint[], $5::bigint[]) AS n (fact_no, batch)
           JOIN okt_repository.sources s ON s.repository_id = $1 AND s.id = $2
          WHERE n.fact_no = ANY ($7)
          ORDER BY n.fact_no
         ON CONFLICT (repository_id, fact_no)
         DO UPDATE SET reader = excluded.reader, source_no = excluded.source_no, done = excluded.done,
                       batch = CASE WHEN excluded.done THEN r.batch ELSE excluded.batch END, question = NULL
          WHERE r.reader <> excluded.reader OR (excluded.done AND NOT r.done)
         RETURNING fact_no",
        repository.uuid(),
        source.uuid(),
        reader,
        &facts,
        &batches,
        done,
        &there,
    );
    Ok(written.fetch_all(conn).await?)
}

/// How many facts of a source were read, by the job of whichever source, and how many concepts they are linked to.
#[tracing::instrument(level = "debug", name = "db.concept_readings.count", skip_all, fields(source.id = %source))]
pub async fn count(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: SourceId,
    reader: i64,
) -> Result<(i64, i64)> {
    let row = sqlx::query!(
        r#"SELECT count(*) AS "facts!", coalesce(sum(n.links), 0)::bigint AS "links!"
             FROM okt_repository.sources s
             JOIN okt_repository.fact_sources l ON l.repository_id = s.repository_id AND l.source_no = s.no
             JOIN okt_repository.concept_readings r
               ON r.repository_id = l.repository_id AND r.fact_no = l.fact_no AND r.reader = $3 AND r.done
            CROSS JOIN LATERAL (SELECT count(*) AS links FROM okt_repository.fact_concepts c
                                 WHERE c.repository_id = $1 AND c.fact_no = l.fact_no) AS n
            WHERE s.repository_id = $1 AND s.id = $2"#,
        repository.uuid(),
        source.uuid(),
        reader,
    );
    let row = row.fetch_one(conn).await?;
    Ok((row.facts, row.links))
}

/// The sources that make any of these facts, the first one of each, in the order of their numbers.
#[tracing::instrument(level = "debug", name = "db.concept_readings.list_sources", skip_all)]
pub async fn list_sources(
    conn: &mut PgConnection,
    repository: RepositoryId,
    facts: &[i64],
) -> Result<Vec<SourceId>> {
    let rows = sqlx::query_scalar!(
        r#"SELECT s.id AS "id!"
             FROM (SELECT DISTINCT l.source_no
                     FROM unnest($2::bigint[]) AS n (no)
                    CROSS JOIN LATERAL (SELECT o.source_no FROM okt_repository.fact_sources o
                                         WHERE o.repository_id = $1 AND o.fact_no = n.no
                                         ORDER BY o.source_no LIMIT 1) AS l) AS d
             JOIN okt_repository.sources s ON s.repository_id = $1 AND s.no = d.source_no
            ORDER BY s.no"#,
        repository.uuid(),
        facts,
    );
    let rows = rows.fetch_all(conn).await?;
    Ok(rows.into_iter().map(Into::into).collect())
}
