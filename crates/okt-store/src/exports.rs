//! Rows for exports, page by page in the order of their numbers. An export is longer than a transaction, so it has a time: what
//! was added later is left out of every page.

use chrono::{DateTime, Utc};
use okt_model::{
    Concept, ExportedConcept, ExportedFact, ExportedLink, ExportedRelation, Fact, QuotedSentence,
    RepositoryId,
};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::words::word;
use crate::{concept_syntheses, facts, source_marks};
use okt_pg::Result;

/// How far a list of the sources of facts has come: the numbers of the fact and of the source.
pub type LinkPlace = (i64, i64);

/// How far a list of relations has come: the numbers of the two concepts.
pub type PairPlace = (i64, i64);

/// Concepts that are not merged into others.
#[tracing::instrument(level = "debug", name = "db.exports.list_concepts", skip_all)]
pub async fn list_concepts(
    conn: &mut PgConnection,
    repository: RepositoryId,
    as_of: DateTime<Utc>,
    after: i64,
    limit: i64,
) -> Result<Vec<ExportedConcept>> {
    let rows =
        sqlx::query_file!("src/sql/list_exported_concepts.sql", repository.uuid(), after, as_of, limit);
    let rows = rows.fetch_all(&mut *conn).await?;
    let names: Vec<String> = rows.iter().map(|row| row.name_key.clone()).collect();
    let definitions = concept_syntheses::list_latest(conn, repository, &names).await?;
    let concepts = rows.into_iter().map(|row| ExportedConcept {
        definition: definitions.get(&row.name_key).cloned(),
        aliases: row.aliases,
        concept: Concept {
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
        },
    });
    Ok(concepts.collect())
}

/// Facts that are neither duplicates nor rejected, with how many of their sources are marked.
#[tracing::instrument(level = "debug", name = "db.exports.list_facts", skip_all)]
pub async fn list_facts(
    conn: &mut PgConnection,
    repository: RepositoryId,
    as_of: DateTime<Utc>,
    after: i64,
    limit: i64,
) -> Result<Vec<ExportedFact>> {
    let rows = sqlx::query_file!("src/sql/list_exported_facts.sql", repository.uuid(), after, as_of, limit);
    let (mut found, mut concepts) = (Vec::new(), Vec::new());
    for row in rows.fetch_all(&mut *conn).await? {
        let ids = row.concept_ids.into_iter().map(Into::into);
        concepts.push(ids.zip(row.concept_names).collect());
        found.push(Fact::try_from(facts::Row {
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
        })?);
    }
    source_marks::describe(conn, repository, &mut found).await?;
    let facts = found.into_iter().zip(concepts).map(|(fact, concepts)| ExportedFact { fact, concepts });
    Ok(facts.collect())
}

/// The sources of these facts, each with its place. What the sentences say is read only where it is asked for.
#[tracing::instrument(level = "debug", name = "db.exports.list_links", skip_all)]
pub async fn list_links(
    conn: &mut PgConnection,
    repository: RepositoryId,
    facts: &[i64],
    quotes: bool,
    after: LinkPlace,
    limit: i64,
) -> Result<Vec<(LinkPlace, ExportedLink)>> {
    let rows = sqlx::query_file!(
        "src/sql/list_exported_links.sql",
        repository.uuid(),
        facts,
        after.0,
        after.1,
        limit,
        quotes,
    );
    let links = rows.fetch_all(conn).await?.into_iter().map(|row| {
        let mut texts = row.quotes.into_iter();
        let places = row.starts.into_iter().zip(row.ends);
        // A sentence that its text does not have any more is left out.
        let sentences = places.filter_map(|(start, end)| {
            let text = texts.next().flatten().unwrap_or_default();
            Some(QuotedSentence { start: start?, end: end?, text })
        });
        let link = ExportedLink {
            fact: row.fact_id.into(),
            source: row.id.into(),
            title: row.title,
            author: row.author,
            site_name: row.site_name,
            url: row.url,
            doi: row.doi,
            published_at: row.published_at,
            mark: row.mark.as_deref().map(|kind| word("source_marks.kind", kind)).transpose()?,
            sentences: sentences.collect(),
            created_at: row.created_at,
        };
        Ok(((row.fact_no, row.source_no), link))
    });
    links.collect()
}

/// Concepts that share facts, each pair once, with its place.
#[tracing::instrument(level = "debug", name = "db.exports.list_relations", skip_all)]
pub async fn list_relations(
    conn: &mut PgConnection,
    repository: RepositoryId,
    as_of: DateTime<Utc>,
    after: PairPlace,
    limit: i64,
) -> Result<Vec<(PairPlace, Option<ExportedRelation>)>> {
    let rows = sqlx::query!(
        r#"SELECT r.concept_no, r.other_no, r.shared_fact_count, c.id AS "one?", o.id AS "other?"
             FROM (SELECT * FROM okt_repository.concept_relations n
                    WHERE n.repository_id = $1 AND (n.concept_no, n.other_no) > ($2, $3) AND n.concept_no < n.other_no
                    ORDER BY n.concept_no, n.other_no LIMIT $5) AS r
             LEFT JOIN LATERAL (SELECT n.id FROM okt_repository.concepts n
                                 WHERE n.repository_id = $1 AND n.no = r.concept_no AND n.merged_into IS NULL AND n.created_at <= $4 OFFSET 0) AS c ON true
             LEFT JOIN LATERAL (SELECT n.id FROM okt_repository.concepts n
                                 WHERE n.repository_id = $1 AND n.no = r.other_no AND n.merged_into IS NULL AND n.created_at <= $4 OFFSET 0) AS o ON true
            ORDER BY r.concept_no, r.other_no"#,
        repository.uuid(),
        after.0,
        after.1,
        as_of,
        limit,
    );
    let pairs = rows.fetch_all(conn).await?.into_iter().map(|row| {
        let ids: Option<(Uuid, Uuid)> = row.one.zip(row.other);
        let relation = ids.map(|(one, other)| ExportedRelation {
            one: one.into(),
            other: other.into(),
            shared_fact_count: row.shared_fact_count,
        });
        ((row.concept_no, row.other_no), relation)
    });
    Ok(pairs.collect())
}
