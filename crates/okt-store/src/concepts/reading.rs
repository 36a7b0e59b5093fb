//! Concepts as they are shown.

use chrono::{DateTime, Utc};
use okt_model::{Concept, ConceptFilter, ConceptId, Fact, RepositoryId, name_key};
use sqlx::PgConnection;
use uuid::Uuid;

use super::roots;
use crate::facts;
use okt_pg::{Result, planned_anew};

/// After every name, in the order of bytes.
const LAST: &str = "\u{10ffff}";

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

/// The concepts of one name, one for each context, those with the most facts first.
#[tracing::instrument(level = "debug", name = "db.concepts.list_named", skip_all)]
pub async fn list_named(
    conn: &mut PgConnection,
    repository: RepositoryId,
    name: &str,
    limit: i64,
) -> Result<Vec<Concept>> {
    let rows = sqlx::query_as!(
        Row,
        "SELECT c.id, c.no, c.canonical_name, c.name_key, c.context_no, x.label, x.ontology_class, c.description,
                c.unmapped_label, c.fact_count, c.created_at
           FROM okt_repository.concepts c
           JOIN okt_repository.contexts x ON x.repository_id = c.repository_id AND x.no = c.context_no
          WHERE c.repository_id = $1 AND c.name_key = $2 AND c.merged_into IS NULL
          ORDER BY c.fact_count DESC, c.no
          LIMIT $3",
        repository.uuid(),
        name_key(name),
        limit,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(Into::into).collect())
}

/// From after a place on.
#[tracing::instrument(level = "debug", name = "db.concepts.list", skip_all)]
pub async fn list(
    conn: &mut PgConnection,
    repository: RepositoryId,
    filter: &ConceptFilter,
    after: &ConceptPlace,
    limit: i64,
) -> Result<Vec<Concept>> {
    let prefix = filter.prefix.as_deref().map(name_key);
    let q = filter.q.as_deref().map(name_key);
    // A few are found by name and put in order, many by walking along the order: that depends on how they begin.
    if prefix.is_some() && matches!(after, ConceptPlace::Facts(..)) {
        planned_anew(conn).await?;
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
                prefix,
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
                prefix,
                q,
                limit,
                context,
            )
            .fetch_all(conn)
            .await?
        }
        (ConceptPlace::Name(name, last), context) => {
            let prefix = prefix.unwrap_or_default();
            let end = format!("{prefix}{LAST}");
            let (name, last) = (name.as_str(), *last).max((prefix.as_str(), 0));
            sqlx::query_file_as!(
                Row,
                "src/sql/list_concepts_by_name.sql",
                repository.uuid(),
                name,
                last,
                filter.min_fact_count,
                end,
                q,
                limit,
                context,
            )
            .fetch_all(conn)
            .await?
        }
    };
    Ok(rows.into_iter().map(Into::into).collect())
}

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
    let rows = sqlx::query_file!("src/sql/list_concept_facts.sql", repository.uuid(), concept, before, limit);
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
        Ok((row.place, Fact::try_from(fact)?))
    });
    rows.collect()
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
