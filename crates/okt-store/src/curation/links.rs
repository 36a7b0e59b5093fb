//! Steps that part facts from concepts.

use std::collections::{BTreeMap, BTreeSet};

use okt_model::{
    ConceptId, ContentHash, CuratedLink, CurationAction, CurationDetails, CurationEffects, CurationId,
    Decided, Error, FactId, FoundBy, RepositoryId, name_key,
};
use sqlx::PgConnection;
use uuid::Uuid;

use super::keys::Keys;
use super::{Named, Step, hold, hold_concept, named, record};
use crate::concepts::{self, COUNTER};
use crate::{concept_relations, counters};
use okt_pg::Result;

/// A step that split a concept, and what was split off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    pub step: CurationId,
    pub made: ConceptId,
}

/// Parts a fact from a concept: with their duplicates, and with what was merged into it. `None` if the fact does not speak of
/// it.
#[tracing::instrument(level = "debug", name = "db.curation.reject_link", skip_all, fields(concept.id = %concept))]
pub async fn reject_link(
    conn: &mut PgConnection,
    repository: RepositoryId,
    decided: Decided<'_>,
    concept: ConceptId,
    fact: FactId,
) -> Result<Option<CurationId>> {
    hold(conn, repository).await?;
    let Some(held) = hold_concept(conn, repository, concept, None).await? else { return Ok(None) };
    let groups = hold_groups(conn, repository, &[fact]).await?;
    let parted = part(conn, repository, held.no, &groups, None).await?;
    if parted.links.is_empty() {
        return Ok(None);
    }
    let mut keys = Keys::default();
    keys.stands_on(&parted.concepts());
    parted.keys(held.no, &mut keys);
    let step = Step {
        action: CurationAction::RejectLink,
        details: CurationDetails {
            concept: Some(held.into()),
            facts: vec![fact],
            ..CurationDetails::default()
        },
        effects: CurationEffects {
            unlinked: parted.links.into_iter().map(|link| link.link).collect(),
            rejected_links: parted.rejected,
            ..CurationEffects::default()
        },
        keys,
    };
    record(conn, repository, decided.into(), &step).await.map(Some)
}

/// Makes a concept of its own of some facts of another one. `None` if that is not there.
///
/// # Errors
///
/// [`Error::AlreadyExists`] if the context, which is given by its number, has a concept of this name, [`Error::Invalid`] if a
/// fact does not speak of the concept.
#[tracing::instrument(level = "debug", name = "db.curation.split", skip_all, fields(concept.id = %concept))]
pub async fn split(
    conn: &mut PgConnection,
    repository: RepositoryId,
    decided: Decided<'_>,
    concept: ConceptId,
    (name, context): (&str, i64),
    facts: &[FactId],
) -> Result<Option<Split>> {
    hold(conn, repository).await?;
    let Some(from) = hold_concept(conn, repository, concept, Some(context)).await? else { return Ok(None) };
    let made = make(conn, repository, name, context).await?;
    let groups = hold_groups(conn, repository, facts).await?;
    let parted = part(conn, repository, from.no, &groups, Some(made.no)).await?;
    let linked: BTreeSet<i64> = parted.links.iter().map(|link| link.canonical).collect();
    for fact in facts {
        if !groups.asked.get(fact).is_some_and(|canonical| linked.contains(canonical)) {
            let message = format!("fact {fact} is not linked to this concept");
            return Err(Error::invalid("fact_ids", message).into());
        }
    }
    let moved: BTreeMap<i64, String> =
        parted.links.iter().map(|link| (link.fact, link.link.hash.clone())).collect();
    let numbers: Vec<i64> = moved.keys().copied().collect();
    sqlx::query!(
        "WITH parted AS (
             INSERT INTO okt_repository.parted_concepts (repository_id, concept_no, other_no)
             VALUES ($1, least($2::bigint, $3::bigint), greatest($2, $3)))
         INSERT INTO okt_repository.fact_concepts (repository_id, concept_no, fact_no, found_by)
         SELECT $1, $3, n, $5 FROM unnest($4::bigint[]) AS n",
        repository.uuid(),
        from.no,
        made.no,
        &numbers,
        FoundBy::Person.number(),
    )
    .execute(&mut *conn)
    .await?;
    let mut keys = Keys::default();
    keys.stands_on(&parted.concepts());
    keys.stands_on(&[from.no]);
    keys.made(made.no);
    keys.name(made.context_no, &made.name_key);
    parted.keys(from.no, &mut keys);
    let linked: Vec<CuratedLink> = moved
        .into_values()
        .map(|hash| CuratedLink { concept: made.no, hash, found_by: FoundBy::Person.number() })
        .collect();
    for link in &linked {
        keys.link(link.concept, &link.hash);
    }
    let (id, split) = (made.id, (made.no, from.no));
    let step = Step {
        action: CurationAction::Split,
        details: CurationDetails {
            concept: Some(from.into()),
            other: Some(made.into()),
            facts: facts.to_vec(),
            ..CurationDetails::default()
        },
        effects: CurationEffects {
            split: Some(split),
            unlinked: parted.links.into_iter().map(|link| link.link).collect(),
            linked,
            rejected_links: parted.rejected,
            ..CurationEffects::default()
        },
        keys,
    };
    let step = record(conn, repository, decided.into(), &step).await?;
    counters::add(conn, repository, COUNTER, 1).await?;
    Ok(Some(Split { step, made: id.into() }))
}

/// A concept in a context, which is held.
async fn make(conn: &mut PgConnection, repository: RepositoryId, name: &str, context: i64) -> Result<Named> {
    let key = name_key(name);
    if key.is_empty() {
        return Err(Error::invalid("name", "must have a visible character").into());
    }
    concepts::check_name(conn, repository, &key, context).await?;
    let no = sqlx::query_scalar!(
        "INSERT INTO okt_repository.concepts (repository_id, id, canonical_name, name_key, context_no)
         VALUES ($1, $2, $3, $4, $5) RETURNING no",
        repository.uuid(),
        ConceptId::mint().uuid(),
        name,
        key,
        context,
    );
    let no = no.fetch_one(&mut *conn).await?;
    concepts::count(conn, repository, &[(context, 1)]).await?;
    concepts::insert_words(conn, repository, &[(no, key)]).await?;
    named(conn, repository, no).await
}

/// Facts with those that say the same.
#[derive(Default, PartialEq, Eq)]
struct Groups {
    /// The canonical facts of those that were asked for.
    asked: BTreeMap<FactId, i64>,
    /// The hash and the canonical fact of every fact that says the same as one of them.
    members: BTreeMap<i64, (String, i64)>,
}

/// Locks facts and all that say the same, in the order of everybody: nobody links them before the end of the transaction.
async fn hold_groups(conn: &mut PgConnection, repository: RepositoryId, facts: &[FactId]) -> Result<Groups> {
    let ids: Vec<Uuid> = facts.iter().copied().map(FactId::uuid).collect();
    let mut last = None;
    for _ in 0..6 {
        let rows = sqlx::query_file!("src/sql/hold_fact_groups.sql", repository.uuid(), &ids);
        let mut groups = Groups::default();
        for row in rows.fetch_all(&mut *conn).await? {
            let canonical = row.merged_into.unwrap_or(row.no);
            let hash = ContentHash::try_from(row.content_hash.as_slice()).map_err(Error::internal)?;
            groups.members.insert(row.no, (hash.to_string(), canonical));
            if ids.contains(&row.id) {
                groups.asked.insert(row.id.into(), canonical);
            }
        }
        // One that was merged while we waited is seen the second time.
        if last.as_ref() == Some(&groups) {
            return Ok(groups);
        }
        last = Some(groups);
    }
    Err(Error::Overloaded("the same facts are just being merged").into())
}

struct PartedLink {
    fact: i64,
    canonical: i64,
    link: CuratedLink,
}

/// Links that were taken away, and those that were not rejected before: concept and hash.
struct Parted {
    links: Vec<PartedLink>,
    rejected: Vec<(i64, String)>,
}

impl Parted {
    fn concepts(&self) -> Vec<i64> {
        self.links.iter().map(|link| link.link.concept).collect()
    }

    fn keys(&self, root: i64, keys: &mut Keys) {
        keys.stands_on(&[root]);
        for link in &self.links {
            keys.link(link.link.concept, &link.link.hash);
        }
        for (concept, hash) in &self.rejected {
            keys.link(*concept, hash);
        }
    }
}

/// Takes facts away from a concept and from all that were merged into it, and remembers that they do not belong there. Not only
/// for each pair that was linked but for both as they are shown, so that it holds for whatever is a part of them.
async fn part(
    conn: &mut PgConnection,
    repository: RepositoryId,
    root: i64,
    groups: &Groups,
    instead: Option<i64>,
) -> Result<Parted> {
    let members: Vec<i64> =
        concepts::members(conn, repository, &[root]).await?.into_iter().map(|(no, _)| no).collect();
    let facts: Vec<i64> = groups.members.keys().copied().collect();
    let gone = sqlx::query!(
        "DELETE FROM okt_repository.fact_concepts
          WHERE repository_id = $1 AND concept_no = ANY ($2) AND fact_no = ANY ($3)
         RETURNING concept_no, fact_no, found_by",
        repository.uuid(),
        &members,
        &facts,
    );
    let mut parted = Parted { links: Vec::new(), rejected: Vec::new() };
    let mut marked = BTreeSet::new();
    // By canonical fact: concepts and hashes.
    let mut pairs: BTreeMap<i64, (BTreeSet<i64>, BTreeSet<String>)> = BTreeMap::new();
    for row in gone.fetch_all(&mut *conn).await? {
        let Some((hash, canonical)) = groups.members.get(&row.fact_no) else { continue };
        marked.insert(row.fact_no);
        let (concepts, hashes) = pairs.entry(*canonical).or_default();
        concepts.extend([root, row.concept_no]);
        hashes.insert(hash.clone());
        hashes.extend(groups.members.get(canonical).map(|(hash, _)| hash.clone()));
        let link = CuratedLink { concept: row.concept_no, hash: hash.clone(), found_by: row.found_by };
        parted.links.push(PartedLink { fact: row.fact_no, canonical: *canonical, link });
    }
    let marked: Vec<i64> = marked.into_iter().collect();
    concept_relations::mark(conn, repository, &marked).await?;
    let mut rows = (Vec::new(), Vec::new());
    for (concepts, hashes) in pairs.values() {
        for concept in concepts {
            for hash in hashes {
                rows.0.push(*concept);
                rows.1.push(bytes(hash)?);
            }
        }
    }
    let rejected = sqlx::query!(
        "INSERT INTO okt_repository.rejected_links (repository_id, content_hash, concept_no, instead_no)
         SELECT $1, n.hash, n.concept, $4 FROM unnest($2::bigint[], $3::bytea[]) AS n (concept, hash)
         ON CONFLICT (repository_id, content_hash, concept_no) DO NOTHING
         RETURNING content_hash, concept_no",
        repository.uuid(),
        &rows.0,
        &rows.1,
        instead,
    );
    for row in rejected.fetch_all(conn).await? {
        let hash = ContentHash::try_from(row.content_hash.as_slice()).map_err(Error::internal)?;
        parted.rejected.push((row.concept_no, hash.to_string()));
    }
    Ok(parted)
}

/// A hash as it is stored.
pub(super) fn bytes(hash: &str) -> Result<Vec<u8>> {
    let ContentHash(bytes) = hash.parse().map_err(Error::internal)?;
    Ok(bytes.to_vec())
}
