//! Steps that change what concepts are called.

use okt_model::{
    AliasBy, ConceptId, CuratedAlias, CurationAction, CurationDetails, CurationEffects, CurationId, Decided,
    Error, Renamed, RepositoryId, name_key,
};
use sqlx::PgConnection;

use super::keys::Keys;
use super::{Step, hold, hold_concept, named, record};
use crate::concepts;
use okt_pg::Result;

/// Gives a concept another name, or another context by its number, or both; whoever files the former name in the former context
/// is led on to it. `None` if the concept is not there, the inner one if it is called so already.
///
/// # Errors
///
/// [`Error::AlreadyExists`] if the context has a concept of this name.
#[tracing::instrument(level = "debug", name = "db.curation.rename", skip_all, fields(concept.id = %concept))]
pub async fn rename(
    conn: &mut PgConnection,
    repository: RepositoryId,
    decided: Decided<'_>,
    concept: ConceptId,
    name: Option<&str>,
    context: Option<i64>,
) -> Result<Option<Option<CurationId>>> {
    hold(conn, repository).await?;
    let Some(before) = hold_concept(conn, repository, concept, context).await? else { return Ok(None) };
    let renamed = name.is_some_and(|name| name != before.canonical_name);
    let moved = context.is_some_and(|context| context != before.context_no);
    if !renamed && !moved {
        return Ok(Some(None));
    }
    concepts::update(conn, repository, before.id.into(), name, context).await?;
    let after = named(conn, repository, before.no).await?;
    let found_otherwise = after.name_key != before.name_key || moved;
    let remembered =
        found_otherwise && remember(conn, repository, before.context_no, &before.name_key, before.no).await?;
    let mut keys = Keys::default();
    keys.stands_on(&[before.no]);
    keys.named(before.no);
    keys.name(before.context_no, &before.name_key);
    keys.name(after.context_no, &after.name_key);
    let effects = CurationEffects {
        renamed: Some(Renamed {
            concept: before.no,
            canonical_name: before.canonical_name.clone(),
            name_key: before.name_key.clone(),
            context: before.context_no,
            moved,
            remembered,
        }),
        ..CurationEffects::default()
    };
    let step = Step {
        action: if renamed { CurationAction::Rename } else { CurationAction::Move },
        details: CurationDetails {
            concept: Some(before.into()),
            other: Some(after.into()),
            ..CurationDetails::default()
        },
        effects,
        keys,
    };
    record(conn, repository, decided.into(), &step).await.map(|id| Some(Some(id)))
}

/// Gives a concept another name beside its own, or confirms one that a machine gave it. `None` if the concept is not there.
///
/// # Errors
///
/// [`Error::AlreadyExists`] if a person gave it that name before.
#[tracing::instrument(level = "debug", name = "db.curation.add_alias", skip_all, fields(concept.id = %concept))]
pub async fn add_alias(
    conn: &mut PgConnection,
    repository: RepositoryId,
    decided: Decided<'_>,
    concept: ConceptId,
    text: &str,
) -> Result<Option<CurationId>> {
    hold(conn, repository).await?;
    let Some(held) = hold_concept(conn, repository, concept, None).await? else { return Ok(None) };
    let key = name_key(text);
    if key == held.name_key {
        return Err(Error::Conflict("this is the concept's own name").into());
    }
    let taken = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM okt_repository.concepts
                           WHERE repository_id = $1 AND context_no = $2 AND name_key = $3
                             AND merged_into IS NULL) AS "taken!""#,
        repository.uuid(),
        held.context_no,
        key,
    );
    if taken.fetch_one(&mut *conn).await? {
        return Err(
            Error::Conflict("another concept of this context has that name; merge the two instead").into()
        );
    }
    let before = sqlx::query_scalar!(
        "SELECT added_by FROM okt_repository.concept_aliases
          WHERE repository_id = $1 AND concept_no = $2 AND alias_key = $3
            FOR UPDATE",
        repository.uuid(),
        held.no,
        key,
    );
    let before = before.fetch_optional(&mut *conn).await?;
    if before.as_deref() == Some(AliasBy::Person.as_str()) {
        return Err(Error::AlreadyExists("this alias of the concept").into());
    }
    sqlx::query!(
        "INSERT INTO okt_repository.concept_aliases (repository_id, concept_no, alias_key, alias, added_by)
         VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (repository_id, concept_no, alias_key) DO UPDATE SET added_by = excluded.added_by",
        repository.uuid(),
        held.no,
        key,
        text,
        AliasBy::Person.as_str(),
    )
    .execute(&mut *conn)
    .await?;
    let mut keys = Keys::default();
    keys.stands_on(&[held.no]);
    keys.alias(held.no, &key);
    let mut effects = CurationEffects::default();
    match before {
        Some(by) => effects.confirmed_alias = Some((held.no, key, by)),
        None => effects.added_alias = Some((held.no, key)),
    }
    let step = Step {
        action: CurationAction::AddAlias,
        details: CurationDetails {
            concept: Some(held.into()),
            alias: Some(text.to_owned()),
            ..CurationDetails::default()
        },
        effects,
        keys,
    };
    record(conn, repository, decided.into(), &step).await.map(Some)
}

/// Takes a name away from a concept and from those that were merged into it; no machine gives it back. `None` if none of them
/// has it as an alias.
#[tracing::instrument(level = "debug", name = "db.curation.remove_alias", skip_all, fields(concept.id = %concept))]
pub async fn remove_alias(
    conn: &mut PgConnection,
    repository: RepositoryId,
    decided: Decided<'_>,
    concept: ConceptId,
    text: &str,
) -> Result<Option<CurationId>> {
    hold(conn, repository).await?;
    let Some(held) = hold_concept(conn, repository, concept, None).await? else { return Ok(None) };
    let key = name_key(text);
    let members: Vec<i64> =
        concepts::members(conn, repository, &[held.no]).await?.into_iter().map(|(no, _)| no).collect();
    let gone = sqlx::query!(
        "DELETE FROM okt_repository.concept_aliases
          WHERE repository_id = $1 AND concept_no = ANY ($2) AND alias_key = $3
         RETURNING concept_no, alias, added_by",
        repository.uuid(),
        &members,
        key,
    );
    let removed: Vec<CuratedAlias> = gone
        .fetch_all(&mut *conn)
        .await?
        .into_iter()
        .map(|row| CuratedAlias {
            concept: row.concept_no,
            key: key.clone(),
            text: row.alias,
            added_by: row.added_by,
        })
        .collect();
    let Some(first) = removed.first() else { return Ok(None) };
    let text = first.text.clone();
    let concerned: Vec<i64> =
        removed.iter().map(|alias| alias.concept).chain(std::iter::once(held.no)).collect();
    let rejected = sqlx::query_scalar!(
        "INSERT INTO okt_repository.rejected_aliases (repository_id, alias_key, concept_no)
         SELECT DISTINCT $1::uuid, $3::text, n FROM unnest($2::bigint[]) AS n
         ON CONFLICT (repository_id, alias_key, concept_no) DO NOTHING
         RETURNING concept_no",
        repository.uuid(),
        &concerned,
        key,
    );
    let rejected = rejected.fetch_all(&mut *conn).await?;
    let mut keys = Keys::default();
    keys.stands_on(&concerned);
    for no in &concerned {
        keys.alias(*no, &key);
    }
    let step = Step {
        action: CurationAction::RemoveAlias,
        details: CurationDetails {
            concept: Some(held.into()),
            alias: Some(text),
            ..CurationDetails::default()
        },
        effects: CurationEffects {
            removed_aliases: removed,
            rejected_aliases: rejected.into_iter().map(|no| (no, key.clone())).collect(),
            ..CurationEffects::default()
        },
        keys,
    };
    record(conn, repository, decided.into(), &step).await.map(Some)
}

/// Whether it was not remembered before.
async fn remember(
    conn: &mut PgConnection,
    repository: RepositoryId,
    context: i64,
    key: &str,
    concept: i64,
) -> Result<bool> {
    let done = sqlx::query!(
        "INSERT INTO okt_repository.former_names (repository_id, context_no, name_key, concept_no)
         VALUES ($1, $2, $3, $4)
         ON CONFLICT (repository_id, context_no, name_key, concept_no) DO NOTHING",
        repository.uuid(),
        context,
        key,
        concept,
    );
    Ok(done.execute(conn).await?.rows_affected() == 1)
}
