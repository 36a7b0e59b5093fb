//! Rows of `okt_repository.relation_changes`, `relation_facts` and `concept_relations`: how many facts two concepts share.
//!
//! Whoever changes which concepts a fact speaks of, or which facts and concepts are one, writes the facts to the log in the same
//! transaction. [`fold`] takes a few of them, compares what is counted for each with what should be, and adds the differences
//! to the relations and to the counts of the concepts. Only [`fold`] and [`recompute`] write these counts, one of them at a time
//! in each repository. Between a change and the next fold the counts are those of before. Whatever changes a concept's facts comes
//! by here, so the concepts that are summed up are marked here too.

use std::collections::{BTreeMap, BTreeSet};

use okt_model::{ConceptId, Error, Relation, RelationBands, RepositoryId};
use sqlx::PgConnection;

use crate::repository_locks::{self, RepositoryLock};
use crate::{fact_judgements, summary_states};
use okt_pg::Result;

/// What a step did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Folded {
    /// Entries of the log that were taken: none when it was empty.
    pub changes: u64,
    /// Facts for which other concepts are counted now.
    pub facts: u64,
}

/// What was not as it should be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recomputed {
    pub facts: i64,
    /// Each from both sides.
    pub relations: i64,
    pub concepts: i64,
}

/// How far a list of relations has come: what the last one shared, and its number.
pub type RelationPlace = (i64, i64);

/// Before the strongest relation.
pub const STRONGEST: RelationPlace = (i64::MAX, i64::MAX);

/// Counts anew for the facts of at most `limit` entries of the log.
#[tracing::instrument(level = "debug", name = "db.concept_relations.fold", skip_all)]
pub async fn fold(conn: &mut PgConnection, repository: RepositoryId, limit: i64) -> Result<Folded> {
    hold(conn, repository).await?;
    // What these entries speak of was committed with them. It is read by a later statement, which sees it; what comes later
    // has an entry of its own, which stays.
    let taken = sqlx::query_scalar!(
        "DELETE FROM okt_repository.relation_changes
          WHERE repository_id = $1
            AND no = ANY (ARRAY(SELECT no FROM okt_repository.relation_changes
                                 WHERE repository_id = $1 ORDER BY no LIMIT $2))
         RETURNING fact_no",
        repository.uuid(),
        limit,
    );
    let taken = taken.fetch_all(&mut *conn).await?;
    let facts: BTreeSet<i64> = taken.iter().copied().collect();
    let facts: Vec<i64> = facts.into_iter().collect();
    let mut folded = Folded { changes: u64::try_from(taken.len()).map_err(Error::internal)?, facts: 0 };
    if facts.is_empty() {
        return Ok(folded);
    }
    let changed = sqlx::query_file!("src/sql/changed_relation_facts.sql", repository.uuid(), &facts);
    let mut change = Change::default();
    for row in changed.fetch_all(&mut *conn).await? {
        folded.facts += 1;
        change.add(row.no, &row.counted, &row.wanted);
    }
    change.write(conn, repository).await?;
    Ok(folded)
}

/// Counts everything from the links on, and empties the log; returns what was wrong. Takes as long as it takes.
#[tracing::instrument(level = "debug", name = "db.concept_relations.recompute", skip_all)]
pub async fn recompute(conn: &mut PgConnection, repository: RepositoryId) -> Result<Recomputed> {
    sqlx::query!("SET LOCAL statement_timeout = 0").execute(&mut *conn).await?;
    hold(conn, repository).await?;
    sqlx::query!("DELETE FROM okt_repository.relation_changes WHERE repository_id = $1", repository.uuid())
        .execute(&mut *conn)
        .await?;
    let facts = sqlx::query_file_scalar!("src/sql/recompute_relation_facts.sql", repository.uuid());
    let facts = facts.fetch_one(&mut *conn).await?;
    // By statements of their own: they see what the one before has written.
    let relations = sqlx::query_file_scalar!("src/sql/recompute_relations.sql", repository.uuid());
    let relations = relations.fetch_one(&mut *conn).await?;
    let concepts = sqlx::query!(
        "UPDATE okt_repository.concepts c SET fact_count = w.fact_count
           FROM (SELECT o.no, count(n.no) AS fact_count
                   FROM okt_repository.concepts o
                   LEFT JOIN (SELECT unnest(r.concepts) AS no FROM okt_repository.relation_facts r
                               WHERE r.repository_id = $1) AS n ON n.no = o.no
                  WHERE o.repository_id = $1
                  GROUP BY o.no) AS w
          WHERE c.repository_id = $1 AND c.no = w.no AND c.fact_count <> w.fact_count",
        repository.uuid(),
    );
    let concepts = concepts.execute(&mut *conn).await?.rows_affected();
    if facts > 0 {
        summary_states::mark(conn, repository, None).await?;
    }
    Ok(Recomputed { facts, relations, concepts: i64::try_from(concepts).map_err(Error::internal)? })
}

/// How many entries the log has, up to `most`.
#[tracing::instrument(level = "debug", name = "db.concept_relations.count_changes", skip_all)]
pub async fn count_changes(conn: &mut PgConnection, repository: RepositoryId, most: i64) -> Result<i64> {
    Ok(sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!"
             FROM (SELECT FROM okt_repository.relation_changes WHERE repository_id = $1 LIMIT $2) AS c"#,
        repository.uuid(),
        most,
    )
    .fetch_one(conn)
    .await?)
}

/// What shares at least `min_shared` facts with a concept, which is given by its number, and has at least `min_facts` itself:
/// from after a place on, the strongest first.
#[tracing::instrument(level = "debug", name = "db.concept_relations.list", skip_all)]
pub async fn list(
    conn: &mut PgConnection,
    repository: RepositoryId,
    concept: i64,
    bands: RelationBands,
    (min_shared, min_facts): (i64, i64),
    after: RelationPlace,
    limit: i64,
) -> Result<Vec<Relation>> {
    let mut rows = Vec::new();
    if after.0 > 1 {
        let found = sqlx::query_file_as!(
            Row,
            "src/sql/list_relations.sql",
            repository.uuid(),
            concept,
            after.0,
            after.1,
            min_shared,
            min_facts,
            limit,
        );
        rows = found.fetch_all(&mut *conn).await?;
    }
    let left = limit - i64::try_from(rows.len()).map_err(Error::internal)?;
    if left > 0 && min_shared <= 1 {
        let before = if after.0 > 1 { i64::MAX } else { after.1 };
        let found = sqlx::query_file_as!(
            Row,
            "src/sql/list_single_relations.sql",
            repository.uuid(),
            concept,
            before,
            min_facts,
            left,
        );
        rows.extend(found.fetch_all(conn).await?);
    }
    Ok(rows.into_iter().map(|row| row.relation(bands)).collect())
}

/// How many facts two concepts share, which are given by their numbers.
#[tracing::instrument(level = "debug", name = "db.concept_relations.find", skip_all)]
pub async fn find(conn: &mut PgConnection, repository: RepositoryId, one: i64, other: i64) -> Result<i64> {
    let shared = sqlx::query_scalar!(
        "SELECT shared_fact_count FROM okt_repository.concept_relations
          WHERE repository_id = $1 AND concept_no = $2 AND other_no = $3",
        repository.uuid(),
        one,
        other,
    );
    Ok(shared.fetch_optional(conn).await?.unwrap_or(0))
}

/// Writes facts to the log.
pub(crate) async fn mark(conn: &mut PgConnection, repository: RepositoryId, facts: &[i64]) -> Result<()> {
    if facts.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "INSERT INTO okt_repository.relation_changes (repository_id, fact_no)
         SELECT $1, n FROM unnest($2::bigint[]) AS n",
        repository.uuid(),
        facts,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Writes those facts to the log that speak of a concept themselves, or for which some are counted. That is enough where facts
/// go: what their duplicates speak of is counted for them, or the duplicates are in the log.
pub(crate) async fn mark_if_linked(
    conn: &mut PgConnection,
    repository: RepositoryId,
    facts: &[i64],
) -> Result<()> {
    if facts.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "INSERT INTO okt_repository.relation_changes (repository_id, fact_no)
         SELECT $1, n.no FROM unnest($2::bigint[]) AS n (no)
          WHERE EXISTS (SELECT FROM okt_repository.fact_concepts l WHERE l.repository_id = $1 AND l.fact_no = n.no)
             OR EXISTS (SELECT FROM okt_repository.relation_facts r WHERE r.repository_id = $1 AND r.fact_no = n.no)",
        repository.uuid(),
        facts,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Writes the facts of concepts, and of those that were merged into them, to the log.
pub(crate) async fn mark_concepts(
    conn: &mut PgConnection,
    repository: RepositoryId,
    concepts: &[i64],
) -> Result<()> {
    if concepts.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "WITH RECURSIVE members AS (
             SELECT n AS no FROM unnest($2::bigint[]) AS n
              UNION
             SELECT c.no FROM members m
              CROSS JOIN LATERAL (SELECT * FROM okt_repository.concepts o
                                   WHERE o.repository_id = $1 AND o.merged_into = m.no OFFSET 0) AS c)
         INSERT INTO okt_repository.relation_changes (repository_id, fact_no)
         SELECT DISTINCT $1::uuid, l.fact_no FROM members m
           JOIN okt_repository.fact_concepts l ON l.repository_id = $1 AND l.concept_no = m.no",
        repository.uuid(),
        concepts,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Nobody else counts in the repository until the end of the transaction.
pub(crate) async fn hold(conn: &mut PgConnection, repository: RepositoryId) -> Result<()> {
    repository_locks::hold(conn, repository, RepositoryLock::Relations).await
}

/// What has to be added to the counts.
#[derive(Debug, Default)]
struct Change {
    /// For which nothing is counted any more.
    emptied: Vec<i64>,
    /// That speak of a concept that they did not speak of.
    gaining: Vec<i64>,
    /// Facts and their concepts, one pair after the other.
    counted: (Vec<i64>, Vec<i64>),
    concepts: BTreeMap<i64, i64>,
    /// Concepts that a fact came to or left; their number of facts may be the same.
    touched: BTreeSet<i64>,
    /// By the lower and the higher number.
    pairs: BTreeMap<(i64, i64), i64>,
}

impl Change {
    /// A fact spoke of these concepts, and speaks of those. Both are ascending.
    fn add(&mut self, fact: i64, before: &[i64], now: &[i64]) {
        if now.is_empty() {
            self.emptied.push(fact);
        }
        if now.iter().any(|no| before.binary_search(no).is_err()) {
            self.gaining.push(fact);
        }
        self.counted.0.extend(now.iter().map(|_| fact));
        self.counted.1.extend(now);
        self.differ(before, now, -1);
        self.differ(now, before, 1);
    }

    /// The concepts that only the first list has, and their pairs with all of it.
    fn differ(&mut self, these: &[i64], others: &[i64], delta: i64) {
        let only: Vec<bool> = these.iter().map(|no| others.binary_search(no).is_err()).collect();
        for (at, one) in these.iter().enumerate() {
            if only[at] {
                *self.concepts.entry(*one).or_default() += delta;
                self.touched.insert(*one);
            }
            for (later, other) in these.iter().enumerate().skip(at + 1) {
                if only[at] || only[later] {
                    *self.pairs.entry((*one, *other)).or_default() += delta;
                }
            }
        }
    }

    async fn write(self, conn: &mut PgConnection, repository: RepositoryId) -> Result<()> {
        fact_judgements::note(conn, repository, &self.gaining).await?;
        sqlx::query!(
            "WITH gone AS (DELETE FROM okt_repository.relation_facts WHERE repository_id = $1 AND fact_no = ANY ($2))
             INSERT INTO okt_repository.relation_facts (repository_id, fact_no, concepts)
             SELECT $1, n.fact, array_agg(n.concept ORDER BY n.concept)
               FROM unnest($3::bigint[], $4::bigint[]) AS n (fact, concept)
              GROUP BY n.fact
             ON CONFLICT (repository_id, fact_no) DO UPDATE SET concepts = excluded.concepts",
            repository.uuid(),
            &self.emptied,
            &self.counted.0,
            &self.counted.1,
        )
        .execute(&mut *conn)
        .await?;
        let (concepts, deltas): (Vec<i64>, Vec<i64>) =
            self.concepts.into_iter().filter(|(_, delta)| *delta != 0).unzip();
        // In the order in which everybody else holds them; an update takes them as its plan comes by.
        sqlx::query!(
            "SELECT FROM okt_repository.concepts WHERE repository_id = $1 AND no = ANY ($2) ORDER BY no FOR NO KEY UPDATE",
            repository.uuid(),
            &concepts,
        )
        .execute(&mut *conn)
        .await?;
        sqlx::query!(
            "UPDATE okt_repository.concepts c SET fact_count = c.fact_count + n.delta
               FROM unnest($2::bigint[], $3::bigint[]) AS n (no, delta)
              WHERE c.repository_id = $1 AND c.no = n.no",
            repository.uuid(),
            &concepts,
            &deltas,
        )
        .execute(&mut *conn)
        .await?;
        let touched: Vec<i64> = self.touched.into_iter().collect();
        summary_states::mark(conn, repository, Some(&touched)).await?;
        let (more, less): (Vec<_>, Vec<_>) =
            self.pairs.into_iter().filter(|(_, delta)| *delta != 0).partition(|(_, delta)| *delta > 0);
        if !more.is_empty() {
            let (ones, others, deltas) = both_sides(&more);
            sqlx::query!(
                "INSERT INTO okt_repository.concept_relations AS r (repository_id, concept_no, other_no, shared_fact_count)
                 SELECT $1, n.one, n.other, n.delta
                   FROM unnest($2::bigint[], $3::bigint[], $4::bigint[]) AS n (one, other, delta)
                 ON CONFLICT (repository_id, concept_no, other_no)
                 DO UPDATE SET shared_fact_count = r.shared_fact_count + excluded.shared_fact_count",
                repository.uuid(),
                &ones,
                &others,
                &deltas,
            )
            .execute(&mut *conn)
            .await?;
        }
        if !less.is_empty() {
            let (ones, others, deltas) = both_sides(&less);
            sqlx::query!(
                "WITH less AS MATERIALIZED (
                     SELECT * FROM unnest($2::bigint[], $3::bigint[], $4::bigint[]) AS n (one, other, delta)),
                 gone AS (
                     DELETE FROM okt_repository.concept_relations r USING less n
                      WHERE r.repository_id = $1 AND r.concept_no = n.one AND r.other_no = n.other
                        AND r.shared_fact_count <= -n.delta)
                 UPDATE okt_repository.concept_relations r SET shared_fact_count = r.shared_fact_count + n.delta
                   FROM less n
                  WHERE r.repository_id = $1 AND r.concept_no = n.one AND r.other_no = n.other
                    AND r.shared_fact_count > -n.delta",
                repository.uuid(),
                &ones,
                &others,
                &deltas,
            )
            .execute(&mut *conn)
            .await?;
        }
        Ok(())
    }
}

/// In the order of the key, so that what is written lies side by side.
fn both_sides(pairs: &[((i64, i64), i64)]) -> (Vec<i64>, Vec<i64>, Vec<i64>) {
    let mut rows: Vec<(i64, i64, i64)> = pairs
        .iter()
        .flat_map(|((one, other), delta)| [(*one, *other, *delta), (*other, *one, *delta)])
        .collect();
    rows.sort_unstable();
    let mut columns = (Vec::new(), Vec::new(), Vec::new());
    for (one, other, delta) in rows {
        columns.0.push(one);
        columns.1.push(other);
        columns.2.push(delta);
    }
    columns
}

struct Row {
    id: uuid::Uuid,
    no: i64,
    canonical_name: String,
    label: String,
    fact_count: i64,
    shared_fact_count: i64,
}

impl Row {
    fn relation(self, bands: RelationBands) -> Relation {
        Relation {
            id: ConceptId::from(self.id),
            no: self.no,
            canonical_name: self.canonical_name,
            context: self.label,
            fact_count: self.fact_count,
            shared_fact_count: self.shared_fact_count,
            strength: bands.strength(self.shared_fact_count),
        }
    }
}
