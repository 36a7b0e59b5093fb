//! Rows of `okt_repository.facts` and `okt_repository.fact_sources`: what sources say, and where.
//!
//! A fact is there once, whoever makes it. Whoever writes facts adds new ones in the order of their hashes, then holds the
//! others that are concerned in that order, and takes the counter of the repository last, so that two sources that say the same
//! do not wait for each other in a circle.

mod writing;

use std::collections::{BTreeSet, HashMap};

use chrono::{DateTime, Utc};
use okt_model::{
    ConceptId, ContentHash, Error, Fact, FactConcept, FactFilter, FactId, FactKind, FactSource, FactStatus,
    ImportOrigin, MarkedSources, RepositoryId, SourceId,
};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::imports::OriginRow;
use crate::words::word;
use crate::{concept_relations, concepts, fact_groups};
use okt_pg::{Result, planned_anew};

pub use writing::{Made, forget_links, forget_source, replace};

/// A place in an order of facts: how many sources the last one had, and its number.
pub type FactPlace = (i32, i64);

/// A source of a fact with what it says in its own words.
#[derive(Clone, Debug)]
pub struct Quoted {
    pub link: FactSource,
    /// For each of the sentences.
    pub quotes: Vec<Option<String>>,
    /// For PDFs, from 1.
    pub pages: Vec<Option<i32>>,
    /// Where it came from, if nobody here found that the source says so.
    pub origin: Option<ImportOrigin>,
}

/// A fact that rests on sentences of a source.
#[derive(Clone, Debug)]
pub struct Resting {
    pub id: FactId,
    pub text: String,
    pub model: String,
    pub sentences: Vec<i32>,
}

/// How many facts only this source makes.
#[tracing::instrument(level = "debug", name = "db.facts.count_alone", skip_all, fields(source.id = %source))]
pub async fn count_alone(conn: &mut PgConnection, repository: RepositoryId, source: SourceId) -> Result<i64> {
    Ok(sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM okt_repository.fact_sources l
             JOIN okt_repository.sources s ON s.repository_id = l.repository_id AND s.no = l.source_no
             JOIN okt_repository.facts f ON f.repository_id = l.repository_id AND f.no = l.fact_no
            WHERE l.repository_id = $1 AND s.id = $2 AND f.source_count = 1"#,
        repository.uuid(),
        source.uuid(),
    )
    .fetch_one(conn)
    .await?)
}

/// How many facts a source is listed with: two that say the same are one.
#[tracing::instrument(level = "debug", name = "db.facts.count_listed", skip_all, fields(source.id = %source))]
pub async fn count_listed(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: SourceId,
) -> Result<i64> {
    Ok(sqlx::query_scalar!(
        r#"SELECT count(DISTINCT coalesce(f.merged_into, f.no)) AS "count!"
             FROM okt_repository.sources s
             JOIN okt_repository.fact_sources l ON l.repository_id = s.repository_id AND l.source_no = s.no
             JOIN okt_repository.facts f ON f.repository_id = l.repository_id AND f.no = l.fact_no
            WHERE s.repository_id = $1 AND s.id = $2"#,
        repository.uuid(),
        source.uuid(),
    )
    .fetch_one(conn)
    .await?)
}

#[tracing::instrument(level = "debug", name = "db.facts.find", skip_all, fields(fact.id = %id))]
pub async fn find(conn: &mut PgConnection, repository: RepositoryId, id: FactId) -> Result<Option<Fact>> {
    let row = sqlx::query_as!(
        Row,
        "SELECT id, no, text, content_hash, kind, status, model, promptset_hash, source_count, created_at, similar_to
           FROM okt_repository.facts WHERE repository_id = $1 AND id = $2",
        repository.uuid(),
        id.uuid(),
    )
    .fetch_optional(conn)
    .await?;
    row.map(Fact::try_from).transpose()
}

/// Those of these that are there to be seen, by their ids.
#[tracing::instrument(level = "debug", name = "db.facts.get", skip_all)]
pub async fn get(
    conn: &mut PgConnection,
    repository: RepositoryId,
    ids: &[FactId],
) -> Result<HashMap<FactId, Fact>> {
    let ids: Vec<Uuid> = ids.iter().copied().map(FactId::uuid).collect();
    let rows = sqlx::query_as!(
        Row,
        "SELECT f.id, f.no, f.text, f.content_hash, f.kind, f.status, f.model, f.promptset_hash, f.source_count, f.created_at, f.similar_to
           FROM unnest($2::uuid[]) AS n (id)
           JOIN okt_repository.facts f ON f.repository_id = $1 AND f.id = n.id
          WHERE f.status IN ('new', 'stable')",
        repository.uuid(),
        &ids,
    );
    let rows = rows.fetch_all(conn).await?;
    rows.into_iter().map(|row| Fact::try_from(row).map(|fact| (fact.id, fact))).collect()
}

/// From after a place on: the newest first, or those with the most sources.
#[tracing::instrument(level = "debug", name = "db.facts.list", skip_all)]
pub async fn list(
    conn: &mut PgConnection,
    repository: RepositoryId,
    filter: &FactFilter,
    by_sources: bool,
    after: Option<FactPlace>,
    limit: i64,
) -> Result<Vec<Fact>> {
    let (count, no) = after.unzip();
    // They have an index of their own, and are few.
    if filter.status == Some(FactStatus::New) {
        planned_anew(conn).await?;
    }
    let status = filter.status.map(FactStatus::as_str);
    let kind = filter.kind.map(FactKind::as_str);
    let among = filter.among.as_deref();
    let rows = if filter.source.is_some() || !filter.concepts.is_empty() || among.is_some() {
        // A name that leads nowhere has no facts.
        let Some((source, concepts)) = links(conn, repository, filter).await? else { return Ok(Vec::new()) };
        let roots: BTreeSet<i64> = concepts.iter().map(|(_, root)| *root).collect();
        let needed = roots.len() + usize::from(source.is_some()) + usize::from(among.is_some());
        let needed = i64::try_from(needed).map_err(Error::internal)?;
        let (members, roots): (Vec<i64>, Vec<i64>) = concepts.into_iter().unzip();
        let count = if by_sources { count } else { count.map(|_| 0) };
        let rows = sqlx::query_file_as!(
            Row,
            "src/sql/list_facts_among.sql",
            repository.uuid(),
            no,
            status,
            kind,
            among,
            limit,
            count,
            source,
            &members,
            needed,
            by_sources,
            filter.grouped,
            &roots,
        );
        rows.fetch_all(conn).await
    } else if by_sources {
        let rows = sqlx::query_file_as!(
            Row,
            "src/sql/list_facts_by_sources.sql",
            repository.uuid(),
            no,
            status,
            kind,
            limit,
            count,
            filter.grouped,
        );
        rows.fetch_all(conn).await
    } else {
        let rows = sqlx::query_file_as!(
            Row,
            "src/sql/list_facts_newest.sql",
            repository.uuid(),
            no,
            status,
            kind,
            limit,
            filter.grouped,
        );
        rows.fetch_all(conn).await
    };
    rows?.into_iter().map(Fact::try_from).collect()
}

/// The sources that make a fact, which is given with its duplicates, the first ones first.
#[tracing::instrument(level = "debug", name = "db.facts.list_sources", skip_all)]
pub async fn list_sources(
    conn: &mut PgConnection,
    repository: RepositoryId,
    facts: &[i64],
    limit: i64,
) -> Result<Vec<Quoted>> {
    let rows = sqlx::query_file!("src/sql/list_fact_sources.sql", repository.uuid(), facts, limit);
    let rows = rows.fetch_all(conn).await?;
    let quoted = rows.into_iter().map(|row| {
        let origin = OriginRow {
            kind: row.import_kind,
            registry: row.registry,
            key_id: row.key_id,
            pushed_by: row.pushed_by,
            sha256: row.sha256,
            imported_at: row.imported_at,
            withdrawn_at: row.withdrawn_at,
            withdrawn_why: row.withdrawn_why,
        };
        Ok(Quoted {
            origin: origin.read()?,
            link: FactSource {
                source: row.id.into(),
                title: row.title,
                url: row.url,
                mark: None,
                chunk: row.chunk_no,
                sentences: row.sentences,
                image: row.image_id.map(Into::into),
            },
            quotes: row.quotes,
            pages: row.pages,
        })
    });
    quoted.collect()
}

/// The concepts that a fact mentions, which is given with its duplicates, by name.
#[tracing::instrument(level = "debug", name = "db.facts.list_concepts", skip_all)]
pub async fn list_concepts(
    conn: &mut PgConnection,
    repository: RepositoryId,
    facts: &[i64],
) -> Result<Vec<FactConcept>> {
    let rows = sqlx::query!(
        r#"WITH RECURSIVE led AS (
               SELECT c.id, c.no, c.canonical_name, c.name_key, c.context_no, c.merged_into
                 FROM okt_repository.concepts c
                WHERE c.repository_id = $1
                  AND c.no IN (SELECT l.concept_no FROM okt_repository.fact_concepts l
                                WHERE l.repository_id = $1 AND l.fact_no = ANY ($2))
                UNION
               SELECT c.id, c.no, c.canonical_name, c.name_key, c.context_no, c.merged_into
                 FROM led l
                 CROSS JOIN LATERAL (SELECT * FROM okt_repository.concepts o
                                      WHERE o.repository_id = $1 AND o.no = l.merged_into OFFSET 0) AS c)
           SELECT c.id AS "id!", c.canonical_name AS "canonical_name!", x.label
             FROM led c
             JOIN okt_repository.contexts x ON x.repository_id = $1 AND x.no = c.context_no
            WHERE c.merged_into IS NULL
            ORDER BY c.name_key, c.no
            LIMIT 1000"#,
        repository.uuid(),
        facts,
    )
    .fetch_all(conn)
    .await?;
    let concepts = rows.into_iter().map(|row| FactConcept {
        id: row.id.into(),
        canonical_name: row.canonical_name,
        context: row.label,
    });
    Ok(concepts.collect())
}

/// The facts that rest on any of these sentences of a source.
#[tracing::instrument(level = "debug", name = "db.facts.list_resting", skip_all, fields(source.id = %source))]
pub async fn list_resting(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: SourceId,
    sentences: &[i32],
) -> Result<Vec<Resting>> {
    let rows = sqlx::query!(
        "SELECT f.id, f.text, f.model, l.sentences
           FROM okt_repository.sources s
           JOIN okt_repository.fact_sources l ON l.repository_id = s.repository_id AND l.source_no = s.no
           JOIN okt_repository.facts f ON f.repository_id = l.repository_id AND f.no = l.fact_no
          WHERE s.repository_id = $1 AND s.id = $2 AND l.sentences && $3
          ORDER BY f.no",
        repository.uuid(),
        source.uuid(),
        sentences,
    )
    .fetch_all(conn)
    .await?;
    let resting = rows.into_iter().map(|row| Resting {
        id: row.id.into(),
        text: row.text,
        model: row.model,
        sentences: row.sentences,
    });
    Ok(resting.collect())
}

/// The sentences of a source that some fact rests on.
#[tracing::instrument(level = "debug", name = "db.facts.list_cited", skip_all, fields(source.id = %source))]
pub async fn list_cited(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: SourceId,
) -> Result<BTreeSet<i32>> {
    let rows = sqlx::query_scalar!(
        r#"SELECT DISTINCT unnest(l.sentences) AS "sentence!"
             FROM okt_repository.sources s
             JOIN okt_repository.fact_sources l ON l.repository_id = s.repository_id AND l.source_no = s.no
            WHERE s.repository_id = $1 AND s.id = $2"#,
        repository.uuid(),
        source.uuid(),
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().collect())
}

/// Changes the status of a fact; false if its status is none of `from`.
#[tracing::instrument(level = "debug", name = "db.facts.mark", skip_all, fields(fact.id = %id, status = next.as_str()))]
pub async fn mark(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: FactId,
    from: &[FactStatus],
    next: FactStatus,
) -> Result<bool> {
    let from: Vec<String> = from.iter().map(|status| status.as_str().to_owned()).collect();
    fact_groups::hold(conn, repository, id).await?;
    let marked = sqlx::query_scalar!(
        "UPDATE okt_repository.facts SET status = $4, embedded_in = NULL
          WHERE repository_id = $1 AND id = $2 AND status = ANY ($3)
         RETURNING no",
        repository.uuid(),
        id.uuid(),
        &from,
        next.as_str(),
    );
    let Some(no) = marked.fetch_optional(&mut *conn).await? else { return Ok(false) };
    if next == FactStatus::Rejected {
        fact_groups::leave(conn, repository, &[no]).await?;
    }
    // Only what is there to be seen is counted.
    concept_relations::mark(conn, repository, &[no]).await?;
    Ok(true)
}

async fn number(conn: &mut PgConnection, repository: RepositoryId, source: SourceId) -> Result<i64> {
    let no = sqlx::query_scalar!(
        "SELECT no FROM okt_repository.sources WHERE repository_id = $1 AND id = $2",
        repository.uuid(),
        source.uuid(),
    );
    Ok(no.fetch_optional(conn).await?.ok_or(Error::NotFound("source"))?)
}

/// The numbers of what a filter names, concepts with those that were merged into them; `None` when one of them is not there.
async fn links(
    conn: &mut PgConnection,
    repository: RepositoryId,
    filter: &FactFilter,
) -> Result<Option<(Option<i64>, Vec<(i64, i64)>)>> {
    let source = match filter.source {
        Some(source) => match number(conn, repository, source).await {
            Err(okt_pg::Error(Error::NotFound(_))) => return Ok(None),
            number => Some(number?),
        },
        None => None,
    };
    if filter.concepts.is_empty() {
        return Ok(Some((source, Vec::new())));
    }
    let ids: BTreeSet<Uuid> = filter.concepts.iter().copied().map(ConceptId::uuid).collect();
    let ids: Vec<Uuid> = ids.into_iter().collect();
    let roots = concepts::roots(conn, repository, &ids).await?;
    if roots.len() < ids.len() {
        return Ok(None);
    }
    let roots: BTreeSet<i64> = roots.into_values().collect();
    let roots: Vec<i64> = roots.into_iter().collect();
    Ok(Some((source, concepts::members(conn, repository, &roots).await?)))
}

pub(crate) struct Row {
    pub id: Uuid,
    pub no: i64,
    pub text: String,
    pub content_hash: Vec<u8>,
    pub kind: String,
    pub status: String,
    pub model: String,
    pub promptset_hash: Option<Vec<u8>>,
    pub source_count: i32,
    pub created_at: DateTime<Utc>,
    pub similar_to: Option<i64>,
}

impl TryFrom<Row> for Fact {
    type Error = okt_pg::Error;

    fn try_from(row: Row) -> Result<Self> {
        Ok(Self {
            id: row.id.into(),
            no: row.no,
            text: row.text,
            hash: hash(&row.content_hash)?,
            kind: word("facts.kind", &row.kind)?,
            status: word("facts.status", &row.status)?,
            model: row.model,
            promptset_hash: row.promptset_hash.as_deref().map(hash).transpose()?,
            source_count: row.source_count,
            created_at: row.created_at,
            similar_to: row.similar_to,
            duplicate_of: None,
            group: None,
            marked: MarkedSources::default(),
        })
    }
}

pub(crate) fn hash(bytes: &[u8]) -> Result<ContentHash> {
    Ok(ContentHash::try_from(bytes).map_err(Error::internal)?)
}
