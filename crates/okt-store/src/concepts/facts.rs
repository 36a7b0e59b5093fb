//! What is said of a concept, by whom and when: rows of `okt_repository.facts` and `okt_repository.sources` by the links of a concept.

use chrono::{DateTime, NaiveDate, Utc};
use okt_model::{ConceptSource, DateKind, DatedFact, Fact, RepositoryId};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::concept_summaries::SliceFact;
use crate::facts;
use okt_pg::Result;

/// Of a concept with more facts, the newest so many are looked at for its sources and its timeline.
pub const MOST_FACTS_READ: i64 = 10_000;

/// A place among the sources of a concept: how many facts the last one makes, and its number.
pub type SourcePlace = (i64, i64);

/// A place in a timeline: whether nothing says when the last one was published, its date, and the number of the fact.
pub type TimelinePlace = (bool, NaiveDate, i64);

/// The facts of a concept, which is given by its number, each with its place, from before a place on: `i64::MAX` to begin with.
/// The newest first.
#[tracing::instrument(level = "debug", name = "db.concepts.list_facts", skip_all)]
pub async fn list_facts(
    conn: &mut PgConnection,
    repository: RepositoryId,
    concept: i64,
    before: i64,
    limit: i64,
) -> Result<Vec<(i64, Fact)>> {
    let rows = sqlx::query_file_as!(
        Placed,
        "src/sql/list_concept_facts.sql",
        repository.uuid(),
        concept,
        before,
        limit
    );
    rows.fetch_all(conn).await?.into_iter().map(Placed::fact).collect()
}

/// The facts of a concept, which is given by its number, that the most sources state; of these the newest first.
#[tracing::instrument(level = "debug", name = "db.concepts.list_strongest_facts", skip_all)]
pub async fn list_strongest_facts(
    conn: &mut PgConnection,
    repository: RepositoryId,
    concept: i64,
    limit: i64,
) -> Result<Vec<SliceFact>> {
    let rows = sqlx::query!(
        r#"WITH RECURSIVE members AS (
               SELECT $2::bigint AS no
                UNION
               SELECT p.no FROM members m
                CROSS JOIN LATERAL (SELECT * FROM okt_repository.concepts o
                                     WHERE o.repository_id = $1 AND o.merged_into = m.no OFFSET 0) AS p)
           SELECT c.no, c.id, c.text, c.source_count
             FROM (SELECT DISTINCT CASE WHEN f.merged_into IS NULL THEN f.no ELSE f.merged_into END AS no
                     FROM members m
                     JOIN okt_repository.fact_concepts l ON l.repository_id = $1 AND l.concept_no = m.no
                     JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = l.fact_no) AS n
             JOIN okt_repository.facts c
               ON c.repository_id = $1 AND c.no = n.no AND c.status IN ('new', 'stable')
            ORDER BY c.source_count DESC, c.no DESC
            LIMIT $3"#,
        repository.uuid(),
        concept,
        limit,
    );
    let rows = rows.fetch_all(conn).await?;
    Ok(rows
        .into_iter()
        .map(|row| SliceFact {
            no: row.no,
            id: row.id.into(),
            text: row.text,
            source_count: row.source_count,
        })
        .collect())
}

/// Of the facts of one concept those that are facts of the other one as well, as [`list_facts`] has them. Quick if the first one
/// has fewer facts than the other. Both are given by their numbers.
#[tracing::instrument(level = "debug", name = "db.concepts.list_shared_facts", skip_all)]
pub async fn list_shared_facts(
    conn: &mut PgConnection,
    repository: RepositoryId,
    (concept, other): (i64, i64),
    before: i64,
    limit: i64,
) -> Result<Vec<(i64, Fact)>> {
    let rows = sqlx::query_file_as!(
        Placed,
        "src/sql/list_shared_facts.sql",
        repository.uuid(),
        concept,
        other,
        before,
        limit,
    );
    rows.fetch_all(conn).await?.into_iter().map(Placed::fact).collect()
}

/// The sources of the newest [`MOST_FACTS_READ`] facts of a concept, which is given by its number: those that make the most of
/// them first, from after a place on.
#[tracing::instrument(level = "debug", name = "db.concepts.list_sources", skip_all)]
pub async fn list_sources(
    conn: &mut PgConnection,
    repository: RepositoryId,
    concept: i64,
    after: Option<SourcePlace>,
    limit: i64,
) -> Result<Vec<ConceptSource>> {
    let (count, no) = after.unwrap_or((i64::MAX, i64::MAX));
    let rows = sqlx::query_file!(
        "src/sql/list_concept_sources.sql",
        repository.uuid(),
        concept,
        MOST_FACTS_READ,
        count,
        no,
        limit,
    );
    let sources = rows.fetch_all(conn).await?.into_iter().map(|row| ConceptSource {
        id: row.id.into(),
        no: row.no,
        title: row.title,
        url: row.url,
        published_at: row.published_at,
        fact_count: row.fact_count,
        mark: None,
    });
    Ok(sources.collect())
}

/// How many links to facts a concept has, which is given by its number, and those that were merged into it; counted up to a
/// limit.
#[tracing::instrument(level = "debug", name = "db.concepts.count_links", skip_all)]
pub async fn count_links(
    conn: &mut PgConnection,
    repository: RepositoryId,
    concept: i64,
    limit: i64,
) -> Result<i64> {
    let links = sqlx::query_scalar!(
        r#"WITH RECURSIVE members AS (
               SELECT $2::bigint AS no
                UNION
               SELECT p.no FROM members m
                CROSS JOIN LATERAL (SELECT * FROM okt_repository.concepts o
                                     WHERE o.repository_id = $1 AND o.merged_into = m.no OFFSET 0) AS p)
           SELECT count(*) AS "links!"
             FROM (SELECT FROM members m
                    CROSS JOIN LATERAL (SELECT FROM okt_repository.fact_concepts o
                                         WHERE o.repository_id = $1 AND o.concept_no = m.no
                                         LIMIT $3) AS l
                    LIMIT $3) AS l"#,
        repository.uuid(),
        concept,
        limit,
    );
    Ok(links.fetch_one(conn).await?)
}

/// The newest [`MOST_FACTS_READ`] facts of a concept, which is given by its number, by the earliest date that a source of theirs
/// was published. After them those of which no source says that, by when it was fetched.
#[tracing::instrument(level = "debug", name = "db.concepts.list_timeline", skip_all)]
pub async fn list_timeline(
    conn: &mut PgConnection,
    repository: RepositoryId,
    concept: i64,
    after: Option<TimelinePlace>,
    limit: i64,
) -> Result<Vec<DatedFact>> {
    let (late, date, no) = after.unwrap_or((false, NaiveDate::from_ymd_opt(1, 1, 1).unwrap_or_default(), 0));
    let rows = sqlx::query_file!(
        "src/sql/list_concept_timeline.sql",
        repository.uuid(),
        concept,
        MOST_FACTS_READ,
        i32::from(late),
        date,
        no,
        limit,
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        let fact = facts::Row {
            id: row.id,
            no: row.no,
            text: row.text,
            content_hash: row.content_hash,
            kind: row.kind,
            status: row.status,
            model: row.model,
            promptset_hash: row.promptset_hash,
            source_count: row.source_count,
            created_at: row.created_at,
            similar_to: row.similar_to,
        };
        let kind = if row.late == 0 { DateKind::Published } else { DateKind::Fetched };
        Ok(DatedFact { fact: fact.try_into()?, date: row.date, kind, source: row.source_id.into() })
    });
    rows.collect()
}

/// A fact with its place.
struct Placed {
    place: i64,
    id: Uuid,
    no: i64,
    text: String,
    content_hash: Vec<u8>,
    kind: String,
    status: String,
    model: String,
    promptset_hash: Option<Vec<u8>>,
    source_count: i32,
    created_at: DateTime<Utc>,
    similar_to: Option<i64>,
}

impl Placed {
    fn fact(self) -> Result<(i64, Fact)> {
        let fact = facts::Row {
            id: self.id,
            no: self.no,
            text: self.text,
            content_hash: self.content_hash,
            kind: self.kind,
            status: self.status,
            model: self.model,
            promptset_hash: self.promptset_hash,
            source_count: self.source_count,
            created_at: self.created_at,
            similar_to: self.similar_to,
        };
        Ok((self.place, fact.try_into()?))
    }
}
