//! Rows of `okt_repository.concept_aliases`: other names of concepts. Those of a concept that was merged stay with it, and are
//! read as the other's.

use okt_model::{Alias, AliasBy, ConceptId, Error, RepositoryId, name_key};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::concepts::roots;
use crate::words::word;
use okt_pg::Result;

/// A name that a concept has beside its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAlias {
    pub concept: ConceptId,
    pub text: String,
    pub by: AliasBy,
}

/// Gives concepts other names; returns how many are new. One that is there stays as it is, but for who said so if that is a
/// person now. One that a person took away comes back only if a person says so.
#[tracing::instrument(level = "debug", name = "db.concept_aliases.insert", skip_all)]
pub async fn insert(conn: &mut PgConnection, repository: RepositoryId, aliases: &[NewAlias]) -> Result<u64> {
    let mut rows = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for alias in aliases {
        let key = name_key(&alias.text);
        if !key.is_empty() {
            rows.0.push(alias.concept.uuid());
            rows.1.push(key);
            rows.2.push(alias.text.clone());
            rows.3.push(alias.by.as_str().to_owned());
        }
    }
    // A person who just takes a name away holds the concept. In a statement of its own, so that the next one sees what they did.
    let concepts: Vec<i64> = roots(conn, repository, &rows.0).await?.into_values().collect();
    sqlx::query!(
        "SELECT no FROM okt_repository.concepts WHERE repository_id = $1 AND no = ANY ($2) ORDER BY no FOR KEY SHARE",
        repository.uuid(),
        &concepts,
    )
    .fetch_all(&mut *conn)
    .await?;
    let inserted = sqlx::query_file_scalar!(
        "src/sql/insert_aliases.sql",
        repository.uuid(),
        &rows.0 as &[Uuid],
        &rows.1,
        &rows.2,
        &rows.3,
    );
    Ok(u64::try_from(inserted.fetch_one(conn).await?).map_err(Error::internal)?)
}

/// The other names of a concept, which is given by its number: its aliases, and the names and aliases of those that were merged
/// into it, in the order of letters.
#[tracing::instrument(level = "debug", name = "db.concept_aliases.list", skip_all)]
pub async fn list(
    conn: &mut PgConnection,
    repository: RepositoryId,
    concept: i64,
    limit: i64,
) -> Result<Vec<Alias>> {
    let rows = sqlx::query_file!("src/sql/list_aliases.sql", repository.uuid(), concept, limit);
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        let by = row.added_by.map(|by| word("concept_aliases.added_by", &by)).transpose()?;
        Ok(Alias { text: row.alias, by })
    });
    rows.collect()
}

/// Of these texts those that are aliases, each with the name of a concept that has it, itself or through those that were merged
/// into it.
#[tracing::instrument(level = "debug", name = "db.concept_aliases.list_names", skip_all)]
pub async fn list_names(
    conn: &mut PgConnection,
    repository: RepositoryId,
    texts: &[&str],
) -> Result<Vec<(String, String)>> {
    let keys: Vec<String> = texts.iter().map(|text| name_key(text)).collect();
    let rows = sqlx::query!(
        r#"WITH RECURSIVE led AS (
               SELECT a.alias, c.canonical_name, c.merged_into
                 FROM okt_repository.concept_aliases a
                 JOIN okt_repository.concepts c ON c.repository_id = $1 AND c.no = a.concept_no
                WHERE a.repository_id = $1 AND a.alias_key = ANY ($2)
                UNION
               SELECT l.alias, c.canonical_name, c.merged_into FROM led l
                CROSS JOIN LATERAL (SELECT * FROM okt_repository.concepts o
                                     WHERE o.repository_id = $1 AND o.no = l.merged_into OFFSET 0) AS c)
           SELECT canonical_name AS "canonical_name!", alias AS "alias!" FROM led WHERE merged_into IS NULL"#,
        repository.uuid(),
        &keys,
    );
    let rows = rows.fetch_all(conn).await?;
    Ok(rows.into_iter().map(|row| (row.canonical_name, row.alias)).collect())
}
