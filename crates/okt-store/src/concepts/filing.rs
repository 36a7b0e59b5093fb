//! Concepts by their names.

use std::collections::{BTreeMap, BTreeSet};

use okt_model::{ConceptId, Error, NewConcept, RepositoryId, name_key, word_keys};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{COUNTER, count};
use crate::counters;
use okt_pg::Result;

/// Concepts that were filed.
#[must_use = "the new ones are to be counted"]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filed {
    /// In the order in which they were named.
    pub concepts: Vec<ConceptId>,
    /// How many of them are new.
    made: i64,
}

impl Filed {
    /// Counts the new ones. At the end of the transaction, as everybody does: until then nobody else counts concepts, and
    /// whoever waits for that may hold concepts already.
    pub async fn count(&self, conn: &mut PgConnection, repository: RepositoryId) -> Result<()> {
        if self.made > 0 {
            counters::add(conn, repository, COUNTER, self.made).await?;
        }
        Ok(())
    }
}

/// The concepts of these names in their contexts; made where [`find`] finds none. In a context that is becoming
/// a part of another one, a new concept is that other one's.
#[tracing::instrument(level = "debug", name = "db.concepts.file", skip_all)]
pub async fn file(
    conn: &mut PgConnection,
    repository: RepositoryId,
    concepts: &[NewConcept],
) -> Result<Filed> {
    let mut made = 0;
    // Once more where somebody else made one of them, or a context began to merge, between two looks.
    for _ in 0..3 {
        let names: Vec<(&str, &str)> =
            concepts.iter().map(|new| (new.name.as_str(), new.context.as_str())).collect();
        let found = find(conn, repository, &names).await?;
        if let Some(concepts) = found.iter().copied().collect() {
            return Ok(Filed { concepts, made });
        }
        let missing = concepts.iter().zip(&found).filter(|(_, found)| found.is_none());
        let missing: Vec<&NewConcept> = missing.map(|(new, _)| new).collect();
        made += insert(conn, repository, &missing).await?;
    }
    Err(Error::Overloaded("the context is being changed; try again in a moment").into())
}

/// The concepts of these names in the contexts of these labels, or in those that they are becoming parts of: by their names,
/// by the names of concepts that were merged into them, or by their aliases. Of several the one with the most facts.
#[tracing::instrument(level = "debug", name = "db.concepts.find", skip_all)]
pub async fn find(
    conn: &mut PgConnection,
    repository: RepositoryId,
    names: &[(&str, &str)],
) -> Result<Vec<Option<ConceptId>>> {
    let (keys, labels): (Vec<String>, Vec<String>) =
        names.iter().map(|(name, context)| (name_key(name), (*context).to_owned())).unzip();
    let rows = sqlx::query_file!("src/sql/find_concepts.sql", repository.uuid(), &keys, &labels);
    let mut found = vec![None; names.len()];
    for row in rows.fetch_all(conn).await? {
        let at = usize::try_from(row.at - 1).map_err(Error::internal)?;
        if let Some(place) = found.get_mut(at) {
            *place = Some(row.id.into());
        }
    }
    Ok(found)
}

/// The one concept of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Single {
    pub canonical_name: String,
    /// The label of its context.
    pub context: String,
    /// A person gave it the name.
    pub given: bool,
}

/// Of these names those that one concept of the repository has and no other, in whatever context, as its name or as an alias
/// that a person gave it: by their keys.
#[tracing::instrument(level = "debug", name = "db.concepts.find_single", skip_all)]
pub async fn find_single(
    conn: &mut PgConnection,
    repository: RepositoryId,
    names: &[&str],
) -> Result<BTreeMap<String, Single>> {
    let keys: Vec<String> = names.iter().map(|name| name_key(name)).collect();
    let rows = sqlx::query!(
        r#"SELECT s.name_key AS "name_key!", s.canonical_name AS "canonical_name!", x.label, s.given AS "given!"
             FROM (SELECT n.name_key, min(n.canonical_name) AS canonical_name, min(n.context_no) AS context_no,
                          bool_or(n.given) AS given
                     FROM (SELECT c.name_key, c.no, c.canonical_name, c.context_no, false AS given
                             FROM okt_repository.concepts c
                            WHERE c.repository_id = $1 AND c.name_key = ANY ($2) AND c.merged_into IS NULL
                            UNION
                           SELECT a.alias_key, c.no, c.canonical_name, c.context_no, true
                             FROM okt_repository.concept_aliases a
                             JOIN okt_repository.concepts c
                               ON c.repository_id = $1 AND c.no = a.concept_no AND c.merged_into IS NULL
                            WHERE a.repository_id = $1 AND a.alias_key = ANY ($2) AND a.added_by = 'person') AS n
                    GROUP BY n.name_key
                   HAVING count(DISTINCT n.no) = 1) AS s
             JOIN okt_repository.contexts x ON x.repository_id = $1 AND x.no = s.context_no"#,
        repository.uuid(),
        &keys,
    );
    let single = rows.fetch_all(conn).await?.into_iter().map(|row| {
        let single = Single { canonical_name: row.canonical_name, context: row.label, given: row.given };
        (row.name_key, single)
    });
    Ok(single.collect())
}

/// Of these names in contexts those that are names of concepts there; not those that only lead on to one.
#[tracing::instrument(level = "debug", name = "db.concepts.list_taken", skip_all)]
pub async fn list_taken(
    conn: &mut PgConnection,
    repository: RepositoryId,
    names: &[(&str, &str)],
) -> Result<BTreeSet<(String, String)>> {
    let (keys, labels): (Vec<String>, Vec<String>) =
        names.iter().map(|(name, context)| (name_key(name), name_key(context))).unzip();
    let rows = sqlx::query!(
        r#"SELECT n.key AS "key!", n.label AS "label!"
             FROM unnest($2::text[], $3::text[]) AS n (key, label)
             JOIN okt_repository.concepts c ON c.repository_id = $1 AND c.name_key = n.key AND c.merged_into IS NULL
             JOIN okt_repository.contexts x
               ON x.repository_id = $1 AND x.no = c.context_no AND lower(x.label) = lower(n.label)"#,
        repository.uuid(),
        &keys,
        &labels,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(|row| (row.key, row.label)).collect())
}

/// Returns how many are new.
async fn insert(conn: &mut PgConnection, repository: RepositoryId, concepts: &[&NewConcept]) -> Result<i64> {
    let labels: BTreeSet<&str> = concepts.iter().map(|new| new.context.as_str()).collect();
    let labels: Vec<String> = labels.into_iter().map(str::to_owned).collect();
    let numbers = sqlx::query!(
        r#"SELECT n.label AS "label!", CASE WHEN c.merging_into IS NULL THEN c.no ELSE c.merging_into END AS "no!"
             FROM unnest($2::text[]) AS n (label)
             JOIN okt_repository.contexts c ON c.repository_id = $1 AND lower(c.label) = lower(n.label)"#,
        repository.uuid(),
        &labels,
    );
    let numbers: BTreeMap<String, i64> =
        numbers.fetch_all(&mut *conn).await?.into_iter().map(|row| (row.label, row.no)).collect();
    if numbers.len() < labels.len() {
        return Err(Error::NotFound("context").into());
    }
    let open = hold(conn, repository, numbers.values().copied().collect()).await?;
    let mut new = (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut seen = BTreeSet::new();
    for concept in concepts {
        let Some(context) = numbers.get(&concept.context).filter(|no| open.contains(no)) else { continue };
        let key = name_key(&concept.name);
        if key.is_empty() {
            return Err(Error::invalid("name", "must have a visible character").into());
        }
        // Two spellings of one name in one batch: the first one stays.
        if seen.insert((key.clone(), *context)) {
            new.0.push(ConceptId::mint().uuid());
            new.1.push(concept.name.clone());
            new.2.push(key);
            new.3.push(*context);
            new.4.push(concept.description.clone());
            new.5.push(concept.unmapped_label.clone());
        }
    }
    let made = sqlx::query!(
        "INSERT INTO okt_repository.concepts
                (repository_id, id, canonical_name, name_key, context_no, description, unmapped_label)
         SELECT $1, n.id, n.name, n.key, n.context_no, n.description, n.unmapped_label
           FROM unnest($2::uuid[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::text[])
                AS n (id, name, key, context_no, description, unmapped_label)
         ON CONFLICT (repository_id, name_key, context_no) WHERE merged_into IS NULL DO NOTHING
         RETURNING no, name_key, context_no",
        repository.uuid(),
        &new.0 as &[Uuid],
        &new.1,
        &new.2,
        &new.3,
        &new.4 as &[Option<String>],
        &new.5 as &[Option<String>],
    );
    let made = made.fetch_all(&mut *conn).await?;
    if made.is_empty() {
        return Ok(0);
    }
    let mut counts: BTreeMap<i64, i64> = BTreeMap::new();
    for row in &made {
        *counts.entry(row.context_no).or_default() += 1;
    }
    let counts: Vec<(i64, i64)> = counts.into_iter().collect();
    count(conn, repository, &counts).await?;
    let names: Vec<(i64, String)> = made.into_iter().map(|row| (row.no, row.name_key)).collect();
    insert_words(conn, repository, &names).await?;
    i64::try_from(names.len()).map_err(|error| Error::internal(error).into())
}

/// Has concepts found by the words of their names, which are given as they are compared.
pub(crate) async fn insert_words(
    conn: &mut PgConnection,
    repository: RepositoryId,
    names: &[(i64, String)],
) -> Result<()> {
    let words = names.iter().flat_map(|(no, key)| word_keys(key).into_iter().map(|word| (word, *no)));
    let (words, concepts): (Vec<String>, Vec<i64>) = words.unzip();
    sqlx::query!(
        "INSERT INTO okt_repository.concept_words (repository_id, word_key, concept_no)
         SELECT $1, n.word, n.concept FROM unnest($2::text[], $3::bigint[]) AS n (word, concept)
         ON CONFLICT (repository_id, word_key, concept_no) DO NOTHING",
        repository.uuid(),
        &words,
        &concepts,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Has a concept found by the words of its new name in place of those of its old one; both as they are compared.
pub(crate) async fn rename_words(
    conn: &mut PgConnection,
    repository: RepositoryId,
    concept: i64,
    old: &str,
    new: &str,
) -> Result<()> {
    if old == new {
        return Ok(());
    }
    sqlx::query!(
        "DELETE FROM okt_repository.concept_words
          WHERE repository_id = $1 AND word_key = ANY ($2) AND concept_no = $3",
        repository.uuid(),
        &word_keys(old),
        concept,
    )
    .execute(&mut *conn)
    .await?;
    insert_words(conn, repository, &[(concept, new.to_owned())]).await
}

/// Holds contexts in the order of everybody until the end of the transaction; those that are not becoming a part of another
/// one. In a statement of its own, so that the next one sees what was filed by whom we waited for.
async fn hold(
    conn: &mut PgConnection,
    repository: RepositoryId,
    contexts: BTreeSet<i64>,
) -> Result<BTreeSet<i64>> {
    let contexts: Vec<i64> = contexts.into_iter().collect();
    let rows = sqlx::query!(
        "SELECT no, merging_into FROM okt_repository.contexts
          WHERE repository_id = $1 AND no = ANY ($2) ORDER BY no FOR NO KEY UPDATE",
        repository.uuid(),
        &contexts,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    Ok(rows.filter(|row| row.merging_into.is_none()).map(|row| row.no).collect())
}
