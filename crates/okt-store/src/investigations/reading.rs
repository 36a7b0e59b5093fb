//! What the sources of an investigation say, and where they stand. Every statement begins with its links, and investigations are
//! given by their numbers.

use okt_model::{Cost, Fact, InvestigationConcept, InvestigationProgress, Money, RepositoryId};
use sqlx::PgConnection;

use crate::facts;
use crate::words::word;
use okt_pg::Result;

/// A place among the facts of an investigation: the numbers of the source of the last one, and of the fact as that source makes
/// it.
pub type InvestigationFactPlace = (i64, i64);

/// A place among the concepts of an investigation: how many of its facts speak of the last one, and its number.
pub type InvestigationConceptPlace = (i64, i64);

/// Outbox entries that have not reached the queue and are looked at.
const MOST_UNSENT: i64 = 10_000;

/// The numbers of the next sources of an investigation, from one on downwards; the newest first.
#[tracing::instrument(level = "debug", name = "db.investigations.list_next_sources", skip_all)]
pub async fn list_next_sources(
    conn: &mut PgConnection,
    repository: RepositoryId,
    investigation: i64,
    from: i64,
    limit: i64,
) -> Result<Vec<i64>> {
    Ok(sqlx::query_scalar!(
        "SELECT source_no FROM okt_repository.investigation_sources
          WHERE repository_id = $1 AND investigation_no = $2 AND source_no <= $3
          ORDER BY source_no DESC
          LIMIT $4",
        repository.uuid(),
        investigation,
        from,
        limit,
    )
    .fetch_all(conn)
    .await?)
}

/// The facts that some sources of an investigation make, each with its place, from after a place on: the newest sources first,
/// and of a source the newest facts. Each is there once, as the canonical fact, with the newest source that makes it.
#[tracing::instrument(level = "debug", name = "db.investigations.list_facts", skip_all)]
pub async fn list_facts(
    conn: &mut PgConnection,
    repository: RepositoryId,
    investigation: i64,
    sources: &[i64],
    after: InvestigationFactPlace,
    limit: i64,
) -> Result<Vec<(InvestigationFactPlace, Fact)>> {
    let rows = sqlx::query_file!(
        "src/sql/list_investigation_facts.sql",
        repository.uuid(),
        investigation,
        sources,
        after.0,
        after.1,
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
        Ok(((row.source_no, row.fact_no), fact.try_into()?))
    });
    rows.collect()
}

/// How many facts an investigation has, and how many links of its sources to facts were looked at to count them: at most `limit`,
/// those of the newest sources.
#[tracing::instrument(level = "debug", name = "db.investigations.count_facts", skip_all)]
pub async fn count_facts(
    conn: &mut PgConnection,
    repository: RepositoryId,
    investigation: i64,
    limit: i64,
) -> Result<(i64, i64)> {
    let row =
        sqlx::query_file!("src/sql/count_investigation_facts.sql", repository.uuid(), investigation, limit);
    let row = row.fetch_one(conn).await?;
    Ok((row.facts, row.links))
}

/// The concepts that the facts of an investigation speak of, those that the most of them speak of first, from after a place on.
/// At most so many links of its sources to facts are looked at, those of the newest sources.
#[tracing::instrument(level = "debug", name = "db.investigations.list_concepts", skip_all)]
pub async fn list_concepts(
    conn: &mut PgConnection,
    repository: RepositoryId,
    investigation: i64,
    links: i64,
    after: Option<InvestigationConceptPlace>,
    limit: i64,
) -> Result<Vec<InvestigationConcept>> {
    let (count, no) = after.unwrap_or((i64::MAX, i64::MAX));
    let rows = sqlx::query_file!(
        "src/sql/list_investigation_concepts.sql",
        repository.uuid(),
        investigation,
        links,
        count,
        no,
        limit,
    );
    let concepts = rows.fetch_all(conn).await?.into_iter().map(|row| InvestigationConcept {
        id: row.id.into(),
        no: row.no,
        canonical_name: row.canonical_name,
        context: row.label,
        fact_count: row.fact_count,
    });
    Ok(concepts.collect())
}

/// Where its sources stand, and what they have cost.
#[tracing::instrument(level = "debug", name = "db.investigations.find_progress", skip_all)]
pub async fn find_progress(
    conn: &mut PgConnection,
    repository: RepositoryId,
    investigation: i64,
) -> Result<InvestigationProgress> {
    let rows = sqlx::query!(
        r#"SELECT s.status AS "status!", count(*) AS "count!", sum(s.tokens_in)::bigint AS "tokens_in!",
                  sum(s.tokens_out)::bigint AS "tokens_out!", sum(s.micro_usd)::bigint AS "micro_usd!",
                  count(*) FILTER (WHERE s.waiting_for = 'budget') AS "budget!",
                  count(*) FILTER (WHERE s.waiting_for = 'rate_limit') AS "rate_limit!"
             FROM okt_repository.investigation_sources l
            CROSS JOIN LATERAL (SELECT * FROM okt_repository.sources o
                                 WHERE o.repository_id = $1 AND o.no = l.source_no OFFSET 0) AS s
            WHERE l.repository_id = $1 AND l.investigation_no = $2
            GROUP BY s.status"#,
        repository.uuid(),
        investigation,
    );
    let mut progress = InvestigationProgress::default();
    let mut micro_usd = 0;
    let Cost { tokens_in, tokens_out, .. } = &mut progress.cost;
    for row in rows.fetch_all(&mut *conn).await? {
        progress.statuses.insert(word("sources.status", &row.status)?, row.count);
        progress.waiting_for_budget += row.budget;
        progress.waiting_for_rate_limit += row.rate_limit;
        *tokens_in += u64::try_from(row.tokens_in).unwrap_or(0);
        *tokens_out += u64::try_from(row.tokens_out).unwrap_or(0);
        micro_usd += row.micro_usd;
    }
    progress.cost.usd = Money::from_micros(micro_usd);
    let unsent = sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!"
             FROM (SELECT subject_id FROM okt_repository.outbox
                    WHERE repository_id = $1 AND arrived_at IS NULL AND subject_kind = 'source'
                    LIMIT $3) AS n
            CROSS JOIN LATERAL (SELECT o.no FROM okt_repository.sources o
                                 WHERE o.repository_id = $1 AND o.id = n.subject_id OFFSET 0) AS s
            WHERE EXISTS (SELECT FROM okt_repository.investigation_sources l
                           WHERE l.repository_id = $1 AND l.investigation_no = $2 AND l.source_no = s.no)"#,
        repository.uuid(),
        investigation,
        MOST_UNSENT,
    );
    progress.unsent_jobs = unsent.fetch_one(conn).await?;
    Ok(progress)
}
