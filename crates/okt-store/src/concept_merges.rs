//! Rows of `okt_repository.concept_merges`: the journal of concepts that were found to be one thing.
//!
//! A merge sets `concepts.merged_into` and nothing else: links, aliases and what was merged before stay where they are, and
//! are read through the tree. So merges come apart in any order. Whoever changes the tree holds the contexts of the concepts
//! first, as everybody does who files, then the concepts in the order of their numbers.

use std::collections::{BTreeMap, BTreeSet};

use okt_model::{ConceptId, ConceptMergedBy, Error, JobId, NewConceptMerge, RepositoryId, UserId};
use sqlx::PgConnection;

use crate::concepts::{COUNTER, Held, check_name, count, hold, members, roots};
use crate::{concept_relations, concept_syntheses, counters};
use okt_pg::Result;

/// Merges a concept, or the one that it is part of, into another; returns the number of the entry in the journal. `None` if one
/// of them is not there, both are one already, or a person parted them and it is none who says so now.
#[tracing::instrument(level = "debug", name = "db.concept_merges.insert", skip_all)]
pub async fn insert(
    conn: &mut PgConnection,
    repository: RepositoryId,
    merge: &NewConceptMerge,
) -> Result<Option<i64>> {
    let ids = [merge.concept.uuid(), merge.into.uuid()];
    // Once more where one of them was merged, or changed its context, before we held it.
    for _ in 0..5 {
        let roots = roots(conn, repository, &ids).await?;
        let (Some(&concept), Some(&into)) = (roots.get(&ids[0]), roots.get(&ids[1])) else {
            return Ok(None);
        };
        if concept == into {
            return Ok(None);
        }
        let Some(held) = hold(conn, repository, &[concept, into], None).await? else { continue };
        if held.iter().any(|held| held.merged_into.is_some()) {
            continue;
        }
        if merge.by != ConceptMergedBy::Person
            && !parted(conn, repository, &[(concept, into)]).await?.is_empty()
        {
            return Ok(None);
        }
        sqlx::query!(
            "UPDATE okt_repository.concepts SET merged_into = $3 WHERE repository_id = $1 AND no = $2",
            repository.uuid(),
            concept,
            into,
        )
        .execute(&mut *conn)
        .await?;
        let no = sqlx::query_scalar!(
            "INSERT INTO okt_repository.concept_merges
                    (repository_id, concept_no, into_no, merged_by, job_id, person, reason)
             VALUES ($1, $2, $3, $4, $5, $6, $7)
             RETURNING no",
            repository.uuid(),
            concept,
            into,
            merge.by.as_str(),
            merge.job.map(JobId::uuid),
            merge.person.map(UserId::uuid),
            merge.reason,
        );
        let no = no.fetch_one(&mut *conn).await?;
        recount(conn, repository, &held, concept, -1).await?;
        let names: Vec<&str> = held.iter().map(|held| held.name_key.as_str()).collect();
        concept_syntheses::remove_unnamed(conn, repository, &names).await?;
        return Ok(Some(no));
    }
    Err(Error::Overloaded("the same concepts are just being merged").into())
}

/// Undoes a merge of the journal: the concept is there again, with what was merged into it. `None` if there is no such merge in
/// force.
///
/// # Errors
///
/// [`Error::AlreadyExists`] if another concept has its name in its context by now, [`Error::NotFound`] if its context is gone.
#[tracing::instrument(level = "debug", name = "db.concept_merges.undo", skip_all)]
pub async fn undo(
    conn: &mut PgConnection,
    repository: RepositoryId,
    merge: i64,
    by: Option<UserId>,
) -> Result<Option<ConceptId>> {
    for _ in 0..5 {
        let found = sqlx::query_scalar!(
            "SELECT concept_no FROM okt_repository.concept_merges
              WHERE repository_id = $1 AND no = $2 AND undone_at IS NULL",
            repository.uuid(),
            merge,
        );
        let Some(concept) = found.fetch_optional(&mut *conn).await? else { return Ok(None) };
        let Some(held) = hold(conn, repository, &[concept], None).await? else { continue };
        let undone = sqlx::query!(
            "UPDATE okt_repository.concept_merges SET undone_at = clock_timestamp(), undone_by = $3
              WHERE repository_id = $1 AND no = $2 AND undone_at IS NULL",
            repository.uuid(),
            merge,
            by.map(UserId::uuid),
        );
        if undone.execute(&mut *conn).await?.rows_affected() == 0 {
            return Ok(None);
        }
        // Nobody files in its context before the end of the transaction.
        if let Some(held) = held.first() {
            check_name(conn, repository, &held.name_key, held.context_no).await?;
        }
        let id = sqlx::query_scalar!(
            "UPDATE okt_repository.concepts SET merged_into = NULL WHERE repository_id = $1 AND no = $2 RETURNING id",
            repository.uuid(),
            concept,
        );
        let id = id.fetch_one(&mut *conn).await?;
        recount(conn, repository, &held, concept, 1).await?;
        return Ok(Some(id.into()));
    }
    Err(Error::Overloaded("the same concept is just being changed").into())
}

/// Those of these pairs, which are given by the numbers of concepts that are not merged, that a person parted: by a split, or by
/// undoing a merge, of themselves or of what is a part of them. No job merges them.
#[tracing::instrument(level = "debug", name = "db.concept_merges.parted", skip_all)]
pub async fn parted(
    conn: &mut PgConnection,
    repository: RepositoryId,
    pairs: &[(i64, i64)],
) -> Result<BTreeSet<(i64, i64)>> {
    let roots: BTreeSet<i64> = pairs.iter().flat_map(|(one, other)| [*one, *other]).collect();
    let roots: Vec<i64> = roots.into_iter().collect();
    let root_of: BTreeMap<i64, i64> = members(conn, repository, &roots).await?.into_iter().collect();
    let all: Vec<i64> = root_of.keys().copied().collect();
    let rows = sqlx::query!(
        r#"SELECT concept_no AS "one!", other_no AS "other!" FROM okt_repository.parted_concepts
            WHERE repository_id = $1 AND concept_no = ANY ($2) AND other_no = ANY ($2)
            UNION
           SELECT concept_no, into_no FROM okt_repository.concept_merges
            WHERE repository_id = $1 AND into_no = ANY ($2) AND concept_no = ANY ($2) AND undone_by IS NOT NULL"#,
        repository.uuid(),
        &all,
    );
    let mut apart = BTreeSet::new();
    for row in rows.fetch_all(conn).await? {
        if let (Some(one), Some(other)) = (root_of.get(&row.one), root_of.get(&row.other)) {
            apart.extend([(*one, *other), (*other, *one)]);
        }
    }
    Ok(pairs.iter().copied().filter(|pair| apart.contains(pair)).collect())
}

/// A concept came or went, and its facts are read otherwise now.
async fn recount(
    conn: &mut PgConnection,
    repository: RepositoryId,
    held: &[Held],
    concept: i64,
    delta: i64,
) -> Result<()> {
    let context = held.iter().find(|held| held.no == concept).map(|held| held.context_no);
    count(conn, repository, &[(context.unwrap_or_default(), delta)]).await?;
    concept_relations::mark_concepts(conn, repository, &[concept]).await?;
    counters::add(conn, repository, COUNTER, delta).await?;
    Ok(())
}
