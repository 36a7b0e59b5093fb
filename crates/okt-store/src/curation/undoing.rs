//! Taking steps back.

use std::collections::BTreeMap;

use okt_model::{
    ConceptId, ContentHash, CuratedAlias, CuratedFact, CuratedLink, CurationEffects, CurationId, Error,
    FactStatus, Renamed, RepositoryId, Subject, SubjectKind, UserId,
};
use sqlx::PgConnection;

use super::contradictions::unmark;
use super::facts::remember;
use super::links::bytes;
use super::{find, hold};
use crate::concepts::{self, COUNTER};
use crate::words::word;
use crate::{concept_merges, concept_relations, concept_syntheses, counters, facts, model_answers};
use okt_pg::Result;

/// Steps that are named where they have to be undone first.
const NAMED: i64 = 20;

/// What is there again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Undone {
    /// The number of a fact that is not rejected any more, and has to be found by its vector again.
    pub restored: Option<i64>,
}

/// Takes a step back. `None` if there is no such step.
///
/// # Errors
///
/// [`Error::UndoFirst`] if later steps stand on it, [`Error::Conflict`] if it was undone already or can't be any more,
/// [`Error::AlreadyExists`] if a name was taken meanwhile.
#[tracing::instrument(level = "debug", name = "db.curation.undo", skip_all, fields(curation.id = %id))]
pub async fn undo(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: CurationId,
    by: UserId,
) -> Result<Option<Undone>> {
    hold(conn, repository).await?;
    let Some(step) = find(conn, repository, id).await? else { return Ok(None) };
    if step.undone_at.is_some() {
        return Err(Error::Conflict("this step was undone already").into());
    }
    let later = list_later(conn, repository, step.no).await?;
    if !later.is_empty() {
        return Err(Error::UndoFirst(later).into());
    }
    let effects = sqlx::query_scalar!(
        r#"UPDATE okt_repository.curation SET undone_at = clock_timestamp(), undone_by = $3
            WHERE repository_id = $1 AND no = $2
           RETURNING effects::text AS "effects!""#,
        repository.uuid(),
        step.no,
        by.uuid(),
    );
    let effects = effects.fetch_one(&mut *conn).await?;
    let effects: CurationEffects = serde_json::from_str(&effects).map_err(Error::internal)?;
    let mut undone = Undone::default();
    if let Some(merge) = effects.merge
        && concept_merges::undo(conn, repository, merge, Some(by)).await?.is_none()
    {
        return Err(Error::Conflict("the merge is not in force any more").into());
    }
    if let Some(renamed) = &effects.renamed {
        name_back(conn, repository, renamed).await?;
    }
    if let Some((made, from)) = effects.split {
        hold_both(conn, repository, made, from).await?;
    }
    forget_rejections(conn, repository, &effects).await?;
    take_links(conn, repository, &effects.linked).await?;
    give_links(conn, repository, &effects.unlinked).await?;
    if let Some((made, from)) = effects.split {
        take_concept(conn, repository, made, from, by).await?;
    }
    take_alias(conn, repository, &effects).await?;
    give_aliases(conn, repository, &effects.removed_aliases).await?;
    if let Some(fact) = &effects.fact {
        undone.restored = mark_back(conn, repository, fact).await?;
    }
    if let Some(contradiction) = &effects.contradiction {
        unmark(conn, repository, contradiction).await?;
    }
    Ok(Some(undone))
}

/// Steps in force that have a hand in what a step changed, the newest first.
async fn list_later(conn: &mut PgConnection, repository: RepositoryId, step: i64) -> Result<Vec<CurationId>> {
    let rows = sqlx::query_scalar!(
        "SELECT c.id FROM okt_repository.curation c
          WHERE c.repository_id = $1 AND c.undone_at IS NULL
            AND c.no IN (SELECT l.curation_no
                           FROM okt_repository.curation_keys k
                           JOIN okt_repository.curation_keys l
                             ON l.repository_id = $1 AND l.key = k.key AND l.curation_no > $2
                          WHERE k.repository_id = $1 AND k.curation_no = $2 AND k.changed)
          ORDER BY c.no DESC
          LIMIT $3",
        repository.uuid(),
        step,
        NAMED,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(Into::into).collect())
}

async fn name_back(conn: &mut PgConnection, repository: RepositoryId, before: &Renamed) -> Result<()> {
    let wanted = before.moved.then_some(before.context);
    for _ in 0..5 {
        let held = concepts::hold(conn, repository, &[before.concept], wanted).await;
        let held = held.map_err(|error| match error {
            okt_pg::Error(Error::NotFound(_)) => Error::Conflict("its former context is gone").into(),
            error => error,
        })?;
        let Some(held) = held.and_then(|held| held.into_iter().next()) else { continue };
        let context = wanted.unwrap_or(held.context_no);
        let free = held.merged_into.is_some();
        if !free && (held.name_key != before.name_key || held.context_no != context) {
            concepts::check_name(conn, repository, &before.name_key, context).await?;
        }
        sqlx::query!(
            "WITH former AS (
                 DELETE FROM okt_repository.former_names
                  WHERE repository_id = $1 AND concept_no = $2 AND name_key = $4 AND context_no IN ($5, $6) AND $7::boolean)
             UPDATE okt_repository.concepts SET canonical_name = $3, name_key = $4, context_no = $5
              WHERE repository_id = $1 AND no = $2",
            repository.uuid(),
            before.concept,
            before.canonical_name,
            before.name_key,
            context,
            before.context,
            before.remembered,
        )
        .execute(&mut *conn)
        .await?;
        concepts::rename_words(conn, repository, before.concept, &held.name_key, &before.name_key).await?;
        concepts::define_anew(conn, repository, before.concept, &held.name_key).await?;
        if !free && context != held.context_no {
            concepts::count(conn, repository, &[(held.context_no, -1), (context, 1)]).await?;
        }
        return Ok(());
    }
    Err(Error::Overloaded("the same concept is just being changed").into())
}

/// The two sides of a split, before their facts.
async fn hold_both(conn: &mut PgConnection, repository: RepositoryId, made: i64, from: i64) -> Result<()> {
    for _ in 0..5 {
        if concepts::hold(conn, repository, &[made, from], None).await?.is_some() {
            return Ok(());
        }
    }
    Err(Error::Overloaded("the same concepts are just being changed").into())
}

/// What a machine may do again.
async fn forget_rejections(
    conn: &mut PgConnection,
    repository: RepositoryId,
    effects: &CurationEffects,
) -> Result<()> {
    let (concepts, hashes) = columns(effects.rejected_links.iter().map(|(no, hash)| (*no, hash.as_str())))?;
    let (of, keys): (Vec<i64>, Vec<String>) = effects.rejected_aliases.iter().cloned().unzip();
    let (made, from) = effects.split.unzip();
    sqlx::query!(
        "WITH links AS (
             DELETE FROM okt_repository.rejected_links r
              USING unnest($2::bigint[], $3::bytea[]) AS n (concept, hash)
              WHERE r.repository_id = $1 AND r.content_hash = n.hash AND r.concept_no = n.concept),
         aliases AS (
             DELETE FROM okt_repository.rejected_aliases r
              USING unnest($4::bigint[], $5::text[]) AS n (concept, key)
              WHERE r.repository_id = $1 AND r.concept_no = n.concept AND r.alias_key = n.key)
         DELETE FROM okt_repository.parted_concepts
          WHERE repository_id = $1 AND concept_no = least($6::bigint, $7::bigint) AND other_no = greatest($6, $7)",
        repository.uuid(),
        &concepts,
        &hashes,
        &of,
        &keys,
        made,
        from,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Links of the step, by concept and hash. Facts that are gone have none.
async fn take_links(conn: &mut PgConnection, repository: RepositoryId, links: &[CuratedLink]) -> Result<()> {
    let numbers = hold_facts(conn, repository, links).await?;
    let links: Vec<(i64, i64)> =
        links.iter().filter_map(|link| Some((link.concept, *numbers.get(&link.hash)?))).collect();
    let (concepts, facts): (Vec<i64>, Vec<i64>) = links.into_iter().unzip();
    if facts.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "DELETE FROM okt_repository.fact_concepts l
          USING unnest($2::bigint[], $3::bigint[]) AS n (concept, fact)
          WHERE l.repository_id = $1 AND l.concept_no = n.concept AND l.fact_no = n.fact",
        repository.uuid(),
        &concepts,
        &facts,
    )
    .execute(&mut *conn)
    .await?;
    concept_relations::mark(conn, repository, &facts).await
}

async fn give_links(conn: &mut PgConnection, repository: RepositoryId, links: &[CuratedLink]) -> Result<()> {
    let numbers = hold_facts(conn, repository, links).await?;
    let mut rows = (Vec::new(), Vec::new(), Vec::new());
    for link in links {
        if let Some(fact) = numbers.get(&link.hash) {
            rows.0.push(link.concept);
            rows.1.push(*fact);
            rows.2.push(link.found_by);
        }
    }
    if rows.0.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "INSERT INTO okt_repository.fact_concepts (repository_id, concept_no, fact_no, found_by)
         SELECT $1, n.concept, n.fact, n.found_by
           FROM unnest($2::bigint[], $3::bigint[], $4::smallint[]) AS n (concept, fact, found_by)
         ON CONFLICT (repository_id, concept_no, fact_no) DO NOTHING",
        repository.uuid(),
        &rows.0,
        &rows.1,
        &rows.2,
    )
    .execute(&mut *conn)
    .await?;
    concept_relations::mark(conn, repository, &rows.1).await
}

/// The numbers that the facts of links have now, by their hashes; they stay until the end of the transaction.
async fn hold_facts(
    conn: &mut PgConnection,
    repository: RepositoryId,
    links: &[CuratedLink],
) -> Result<BTreeMap<String, i64>> {
    if links.is_empty() {
        return Ok(BTreeMap::new());
    }
    let (_, hashes) = columns(links.iter().map(|link| (link.concept, link.hash.as_str())))?;
    let rows = sqlx::query!(
        "SELECT f.no, f.content_hash FROM okt_repository.facts f
          WHERE f.repository_id = $1 AND f.content_hash = ANY ($2)
          ORDER BY f.content_hash
            FOR KEY SHARE OF f",
        repository.uuid(),
        &hashes,
    );
    let mut numbers = BTreeMap::new();
    for row in rows.fetch_all(conn).await? {
        let hash = ContentHash::try_from(row.content_hash.as_slice()).map_err(Error::internal)?;
        numbers.insert(hash.to_string(), row.no);
    }
    Ok(numbers)
}

/// Removes what was split off. What it gained meanwhile belongs to the other one again, so then it becomes a part of that.
async fn take_concept(
    conn: &mut PgConnection,
    repository: RepositoryId,
    made: i64,
    from: i64,
    by: UserId,
) -> Result<()> {
    let row = sqlx::query!(
        r#"SELECT c.id, c.name_key, c.context_no, c.merged_into,
                  EXISTS (SELECT FROM okt_repository.fact_concepts l WHERE l.repository_id = $1 AND l.concept_no = $2)
               OR EXISTS (SELECT FROM okt_repository.concept_aliases a WHERE a.repository_id = $1 AND a.concept_no = $2)
               OR EXISTS (SELECT FROM okt_repository.concepts m WHERE m.repository_id = $1 AND m.merged_into = $2)
                  AS "used!",
                  (SELECT o.id FROM okt_repository.concepts o WHERE o.repository_id = $1 AND o.no = $3) AS "other!"
             FROM okt_repository.concepts c
            WHERE c.repository_id = $1 AND c.no = $2"#,
        repository.uuid(),
        made,
        from,
    );
    let Some(row) = row.fetch_optional(&mut *conn).await? else { return Ok(()) };
    if row.merged_into.is_some() {
        return Ok(());
    }
    if row.used {
        let merge = okt_model::NewConceptMerge {
            concept: ConceptId::from(row.id),
            into: ConceptId::from(row.other),
            by: okt_model::ConceptMergedBy::Person,
            job: None,
            person: Some(by),
            reason: None,
        };
        concept_merges::insert(conn, repository, &merge).await?;
        return Ok(());
    }
    sqlx::query_file!("src/sql/delete_concept.sql", repository.uuid(), made).execute(&mut *conn).await?;
    concept_syntheses::remove_unnamed(conn, repository, &[&row.name_key]).await?;
    let subject = Subject::new(SubjectKind::Concept, row.id);
    model_answers::forget(conn, repository, subject).await?;
    concepts::count(conn, repository, &[(row.context_no, -1)]).await?;
    counters::add(conn, repository, COUNTER, -1).await?;
    Ok(())
}

async fn take_alias(
    conn: &mut PgConnection,
    repository: RepositoryId,
    effects: &CurationEffects,
) -> Result<()> {
    if let Some((concept, key)) = &effects.added_alias {
        sqlx::query!(
            "DELETE FROM okt_repository.concept_aliases
              WHERE repository_id = $1 AND concept_no = $2 AND alias_key = $3",
            repository.uuid(),
            concept,
            key,
        )
        .execute(&mut *conn)
        .await?;
    }
    if let Some((concept, key, by)) = &effects.confirmed_alias {
        sqlx::query!(
            "UPDATE okt_repository.concept_aliases SET added_by = $4
              WHERE repository_id = $1 AND concept_no = $2 AND alias_key = $3",
            repository.uuid(),
            concept,
            key,
            by,
        )
        .execute(conn)
        .await?;
    }
    Ok(())
}

async fn give_aliases(
    conn: &mut PgConnection,
    repository: RepositoryId,
    aliases: &[CuratedAlias],
) -> Result<()> {
    for alias in aliases {
        sqlx::query!(
            "INSERT INTO okt_repository.concept_aliases (repository_id, concept_no, alias_key, alias, added_by)
             VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (repository_id, concept_no, alias_key) DO NOTHING",
            repository.uuid(),
            alias.concept,
            alias.key,
            alias.text,
            alias.added_by,
        )
        .execute(&mut *conn)
        .await?;
    }
    Ok(())
}

/// The number of the fact if it is there to be seen again.
async fn mark_back(
    conn: &mut PgConnection,
    repository: RepositoryId,
    fact: &CuratedFact,
) -> Result<Option<i64>> {
    let (before, after): (FactStatus, FactStatus) =
        (word("curation.effects", &fact.before)?, word("curation.effects", &fact.after)?);
    remember(conn, repository, &fact.hash, before == FactStatus::Rejected).await?;
    let found = sqlx::query!(
        "SELECT no, id FROM okt_repository.facts WHERE repository_id = $1 AND content_hash = $2",
        repository.uuid(),
        bytes(&fact.hash)?,
    );
    // No source says it any more.
    let Some(found) = found.fetch_optional(&mut *conn).await? else { return Ok(None) };
    if !facts::mark(conn, repository, found.id.into(), &[after], before).await? {
        return Err(Error::Conflict("the status of the fact was changed since").into());
    }
    Ok((before != FactStatus::Rejected).then_some(found.no))
}

fn columns<'a>(pairs: impl Iterator<Item = (i64, &'a str)>) -> Result<(Vec<i64>, Vec<Vec<u8>>)> {
    let mut columns = (Vec::new(), Vec::new());
    for (concept, hash) in pairs {
        columns.0.push(concept);
        columns.1.push(bytes(hash)?);
    }
    Ok(columns)
}
