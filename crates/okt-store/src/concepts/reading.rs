//! Concepts as they are shown.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use okt_model::{Concept, ConceptContext, ConceptFilter, ConceptId, RepositoryId, name_key, word_key};
use sqlx::PgConnection;
use uuid::Uuid;

use super::roots;
use okt_pg::Result;

/// After every name, in the order of bytes.
const LAST: &str = "\u{10ffff}";
/// Words that begin alike up to which concepts are found by them, and then put in order. Where there are more, the list is walked
/// along until a page is full.
const FEW: i64 = 2_000;

/// Where a page ended, and so the order of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConceptPlace {
    /// Those with the most facts first: how many the last one had, and its number.
    Facts(i64, i64),
    /// By name: that of the last one, as it is compared, and the number of its context.
    Name(String, i64),
}

impl ConceptPlace {
    /// Before the one with the most facts.
    pub const MOST_FACTS: Self = Self::Facts(i64::MAX, i64::MAX);

    /// Before the first name.
    pub const fn first_name() -> Self {
        Self::Name(String::new(), 0)
    }

    /// The place of a concept in the same order.
    #[must_use]
    pub fn of(&self, concept: &Concept) -> Self {
        match self {
            Self::Facts(..) => Self::Facts(concept.fact_count, concept.no),
            Self::Name(..) => Self::Name(concept.name_key.clone(), concept.context_no),
        }
    }
}

/// The concept of this id, or the one that it is part of now.
#[tracing::instrument(level = "debug", name = "db.concepts.get", skip_all, fields(concept.id = %id))]
pub async fn get(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: ConceptId,
) -> Result<Option<Concept>> {
    let Some(no) = roots(conn, repository, &[id.uuid()]).await?.get(&id.uuid()).copied() else {
        return Ok(None);
    };
    let row = sqlx::query_as!(
        Row,
        "SELECT c.id, c.no, c.canonical_name, c.name_key, c.context_no, x.label, x.ontology_class, c.description,
                c.unmapped_label, c.fact_count, c.created_at
           FROM okt_repository.concepts c
           JOIN okt_repository.contexts x ON x.repository_id = c.repository_id AND x.no = c.context_no
          WHERE c.repository_id = $1 AND c.no = $2",
        repository.uuid(),
        no,
    );
    Ok(row.fetch_optional(conn).await?.map(Into::into))
}

/// Those of these numbers that are not merged into another one.
#[tracing::instrument(level = "debug", name = "db.concepts.list_numbered", skip_all)]
pub async fn list_numbered(
    conn: &mut PgConnection,
    repository: RepositoryId,
    numbers: &[i64],
) -> Result<Vec<Concept>> {
    let rows = sqlx::query_as!(
        Row,
        "SELECT c.id, c.no, c.canonical_name, c.name_key, c.context_no, x.label, x.ontology_class, c.description,
                c.unmapped_label, c.fact_count, c.created_at
           FROM unnest($2::bigint[]) AS n (no)
           JOIN okt_repository.concepts c ON c.repository_id = $1 AND c.no = n.no
           JOIN okt_repository.contexts x ON x.repository_id = $1 AND x.no = c.context_no
          WHERE c.merged_into IS NULL",
        repository.uuid(),
        numbers,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(Into::into).collect())
}

/// The contexts in which there are concepts of these names, which are given as they are compared: for each name those with the
/// most facts first, so many of each.
#[tracing::instrument(level = "debug", name = "db.concepts.list_contexts", skip_all)]
pub async fn list_contexts(
    conn: &mut PgConnection,
    repository: RepositoryId,
    names: &[String],
    each: i64,
) -> Result<HashMap<String, Vec<ConceptContext>>> {
    let rows = sqlx::query!(
        r#"SELECT n.key AS "key!", c.id, c.fact_count, x.label
             FROM (SELECT DISTINCT unnest($2::text[]) AS key) AS n
            CROSS JOIN LATERAL (SELECT * FROM okt_repository.concepts o
                                 WHERE o.repository_id = $1 AND o.name_key = n.key AND o.merged_into IS NULL
                                 ORDER BY o.fact_count DESC, o.no LIMIT $3) AS c
             JOIN okt_repository.contexts x ON x.repository_id = $1 AND x.no = c.context_no
            ORDER BY c.fact_count DESC, c.no"#,
        repository.uuid(),
        names,
        each,
    );
    let mut found: HashMap<String, Vec<ConceptContext>> = HashMap::new();
    for row in rows.fetch_all(conn).await? {
        let context = ConceptContext { id: row.id.into(), context: row.label, fact_count: row.fact_count };
        found.entry(row.key).or_default().push(context);
    }
    Ok(found)
}

/// From after a place on. What many names have a word for that begins so is found by names alone, not by aliases; and in the order
/// of names only by how these begin, because others are anywhere in it.
#[tracing::instrument(level = "debug", name = "db.concepts.list", skip_all)]
pub async fn list(
    conn: &mut PgConnection,
    repository: RepositoryId,
    filter: &ConceptFilter,
    after: &ConceptPlace,
    limit: i64,
) -> Result<Vec<Concept>> {
    let q = filter.q.as_deref().map(word_key).filter(|q| !q.is_empty());
    if let (Some(text), Some(q)) = (&filter.q, &q)
        && is_rare(conn, repository, q).await?
    {
        return list_found(conn, repository, filter, (&name_key(text), q), after, limit).await;
    }
    let rows = match (after, filter.context_no) {
        (ConceptPlace::Facts(count, no), None) => {
            sqlx::query_file_as!(
                Row,
                "src/sql/list_concepts_by_facts.sql",
                repository.uuid(),
                count,
                no,
                filter.min_fact_count,
                q,
                limit,
            )
            .fetch_all(conn)
            .await?
        }
        (ConceptPlace::Facts(count, no), Some(context)) => {
            sqlx::query_file_as!(
                Row,
                "src/sql/list_concepts_of_context.sql",
                repository.uuid(),
                count,
                no,
                filter.min_fact_count,
                q,
                limit,
                context,
            )
            .fetch_all(conn)
            .await?
        }
        (ConceptPlace::Name(name, last), context) => {
            let prefix =
                if q.is_some() { filter.q.as_deref().map(name_key) } else { None }.unwrap_or_default();
            let (name, last) = (name.as_str(), *last).max((prefix.as_str(), 0));
            sqlx::query_file_as!(
                Row,
                "src/sql/list_concepts_by_name.sql",
                repository.uuid(),
                name,
                last,
                filter.min_fact_count,
                format!("{prefix}{LAST}"),
                limit,
                context,
            )
            .fetch_all(conn)
            .await?
        }
    };
    Ok(rows.into_iter().map(Into::into).collect())
}

/// Whether no more than a few words begin so.
async fn is_rare(conn: &mut PgConnection, repository: RepositoryId, q: &str) -> Result<bool> {
    let count = sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!"
             FROM (SELECT FROM okt_repository.concept_words
                    WHERE repository_id = $1 AND word_key >= $2::text AND word_key < $3::text
                    LIMIT $4) AS w"#,
        repository.uuid(),
        q,
        format!("{q}{LAST}"),
        FEW + 1,
    );
    Ok(count.fetch_one(conn).await? <= FEW)
}

/// By what aliases begin with, and by what words begin with.
async fn list_found(
    conn: &mut PgConnection,
    repository: RepositoryId,
    filter: &ConceptFilter,
    (alias, word): (&str, &str),
    after: &ConceptPlace,
    limit: i64,
) -> Result<Vec<Concept>> {
    let (mut name, mut facts) = (("", 0), (0, 0));
    match after {
        ConceptPlace::Name(key, context) => name = (key, *context),
        ConceptPlace::Facts(count, no) => facts = (*count, *no),
    }
    let rows = sqlx::query_file_as!(
        Row,
        "src/sql/list_concepts_found.sql",
        repository.uuid(),
        word,
        format!("{word}{LAST}"),
        alias,
        format!("{alias}{LAST}"),
        filter.min_fact_count,
        filter.context_no,
        matches!(after, ConceptPlace::Name(..)),
        name.0,
        name.1,
        facts.0,
        facts.1,
        limit,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(Into::into).collect())
}

struct Row {
    id: Uuid,
    no: i64,
    canonical_name: String,
    name_key: String,
    context_no: i64,
    label: String,
    ontology_class: Option<String>,
    description: Option<String>,
    unmapped_label: Option<String>,
    fact_count: i64,
    created_at: DateTime<Utc>,
}

impl From<Row> for Concept {
    fn from(row: Row) -> Self {
        Self {
            id: row.id.into(),
            no: row.no,
            canonical_name: row.canonical_name,
            name_key: row.name_key,
            context_no: row.context_no,
            context: row.label,
            ontology_class: row.ontology_class,
            description: row.description,
            unmapped_label: row.unmapped_label,
            fact_count: row.fact_count,
            created_at: row.created_at,
        }
    }
}
