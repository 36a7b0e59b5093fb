//! Rows of `okt_repository.curation` and of what keeps decisions of people: `curation_keys`, `rejected_links`,
//! `rejected_aliases`, `rejected_facts`, `parted_concepts`, `former_names`,
//! `contradiction_states`.
//!
//! Each step writes down the rows that it changed as they were, and keys of what it changed or stands on. Steps whose keys
//! differ do not touch each other's rows, so a step is undone exactly unless a later one that is in force shares a key with
//! what it changed; then that one has to be undone first. People are few, so one step at a time is taken in a repository. What
//! a step locks it locks in the order of everybody: contexts, concepts, facts.

mod contradictions;
mod facts;
mod keys;
mod links;
mod names;
mod undoing;

use chrono::{DateTime, Utc};
use okt_model::{
    ConceptId, CuratedConcept, CurationAction, CurationDetails, CurationEffects, CurationId, CurationStep,
    Decided, Error, JobId, NewConceptMerge, RepositoryId, UserId,
};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::repository_locks::{self, RepositoryLock};
use crate::words::word;
use crate::{concept_merges, concepts};
use keys::Keys;
use okt_pg::Result;

pub use contradictions::mark_contradiction;
pub use facts::mark_fact;
pub use links::{Split, reject_link, split};
pub use names::{add_alias, remove_alias, rename};
pub use undoing::{Undone, undo};

/// Merges a concept, or the one that it is part of, into another. `None` if one of them is not there, both are one already, or a
/// person parted them and it is none who says so now.
#[tracing::instrument(level = "debug", name = "db.curation.merge", skip_all)]
pub async fn merge(
    conn: &mut PgConnection,
    repository: RepositoryId,
    merge: &NewConceptMerge,
) -> Result<Option<CurationId>> {
    hold(conn, repository).await?;
    let Some(no) = concept_merges::insert(conn, repository, merge).await? else { return Ok(None) };
    let merged = sqlx::query!(
        "SELECT concept_no, into_no FROM okt_repository.concept_merges WHERE repository_id = $1 AND no = $2",
        repository.uuid(),
        no,
    );
    let merged = merged.fetch_one(&mut *conn).await?;
    let concept = named(conn, repository, merged.concept_no).await?;
    let into = named(conn, repository, merged.into_no).await?;
    let mut keys = Keys::default();
    keys.stands_on(&[concept.no, into.no]);
    keys.tree(concept.no);
    keys.name(concept.context_no, &concept.name_key);
    let step = Step {
        action: CurationAction::Merge,
        details: CurationDetails {
            concept: Some(concept.into()),
            other: Some(into.into()),
            ..CurationDetails::default()
        },
        effects: CurationEffects { merge: Some(no), ..CurationEffects::default() },
        keys,
    };
    let who = Who { person: merge.person, job: merge.job, reason: merge.reason.as_deref() };
    Ok(Some(record(conn, repository, who, &step).await?))
}

/// Steps of a repository, or those that concern a concept or one that was merged into it, from before a number on: `i64::MAX`
/// to begin with. The newest first.
#[tracing::instrument(level = "debug", name = "db.curation.list", skip_all)]
pub async fn list(
    conn: &mut PgConnection,
    repository: RepositoryId,
    concept: Option<ConceptId>,
    before: i64,
    limit: i64,
) -> Result<Vec<CurationStep>> {
    let rows = if let Some(concept) = concept {
        let Some(root) =
            concepts::roots(conn, repository, &[concept.uuid()]).await?.get(&concept.uuid()).copied()
        else {
            return Ok(Vec::new());
        };
        let members = concepts::members(conn, repository, &[root]).await?;
        let keys: Vec<String> = members.iter().map(|(no, _)| keys::concept(*no)).collect();
        sqlx::query_as!(
            Row,
            r#"SELECT c.no, c.id, c.action, c.details::text AS "details!", c.person, c.job_id, c.reason, c.created_at,
                      c.undone_at, c.undone_by
                 FROM (SELECT DISTINCT k.curation_no FROM okt_repository.curation_keys k
                        WHERE k.repository_id = $1 AND k.key = ANY ($2) AND k.curation_no < $3
                        ORDER BY k.curation_no DESC LIMIT $4) AS k
                 JOIN okt_repository.curation c ON c.repository_id = $1 AND c.no = k.curation_no
                ORDER BY c.no DESC"#,
            repository.uuid(),
            &keys,
            before,
            limit,
        )
        .fetch_all(conn)
        .await?
    } else {
        sqlx::query_as!(
            Row,
            r#"SELECT no, id, action, details::text AS "details!", person, job_id, reason, created_at, undone_at, undone_by
                 FROM okt_repository.curation
                WHERE repository_id = $1 AND no < $2
                ORDER BY no DESC
                LIMIT $3"#,
            repository.uuid(),
            before,
            limit,
        )
        .fetch_all(conn)
        .await?
    };
    rows.into_iter().map(CurationStep::try_from).collect()
}

#[tracing::instrument(level = "debug", name = "db.curation.find", skip_all, fields(curation.id = %id))]
pub async fn find(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: CurationId,
) -> Result<Option<CurationStep>> {
    let row = sqlx::query_as!(
        Row,
        r#"SELECT no, id, action, details::text AS "details!", person, job_id, reason, created_at, undone_at, undone_by
             FROM okt_repository.curation
            WHERE repository_id = $1 AND id = $2"#,
        repository.uuid(),
        id.uuid(),
    );
    row.fetch_optional(conn).await?.map(CurationStep::try_from).transpose()
}

/// A step that was taken, to be written down.
struct Step {
    action: CurationAction,
    details: CurationDetails,
    effects: CurationEffects,
    keys: Keys,
}

struct Who<'a> {
    person: Option<UserId>,
    job: Option<JobId>,
    reason: Option<&'a str>,
}

impl<'a> From<Decided<'a>> for Who<'a> {
    fn from(decided: Decided<'a>) -> Self {
        Self { person: Some(decided.person), job: None, reason: decided.reason }
    }
}

async fn record(
    conn: &mut PgConnection,
    repository: RepositoryId,
    who: Who<'_>,
    step: &Step,
) -> Result<CurationId> {
    let id = CurationId::mint();
    let details = serde_json::to_string(&step.details).map_err(Error::internal)?;
    let effects = serde_json::to_string(&step.effects).map_err(Error::internal)?;
    let (keys, changed) = step.keys.columns();
    sqlx::query!(
        "WITH step AS (
             INSERT INTO okt_repository.curation (repository_id, id, action, details, effects, person, job_id, reason)
             VALUES ($1, $2, $3, $4::text::jsonb, $5::text::jsonb, $6, $7, $8)
             RETURNING no)
         INSERT INTO okt_repository.curation_keys (repository_id, key, curation_no, changed)
         SELECT $1, n.key, s.no, n.changed FROM step s, unnest($9::text[], $10::boolean[]) AS n (key, changed)",
        repository.uuid(),
        id.uuid(),
        step.action.as_str(),
        details,
        effects,
        who.person.map(UserId::uuid),
        who.job.map(JobId::uuid),
        who.reason.filter(|reason| !reason.is_empty()),
        &keys,
        &changed,
    )
    .execute(conn)
    .await?;
    Ok(id)
}

/// Nobody else takes or undoes a step in the repository until the end of the transaction.
async fn hold(conn: &mut PgConnection, repository: RepositoryId) -> Result<()> {
    repository_locks::hold(conn, repository, RepositoryLock::Curation).await
}

/// A concept with all that a step writes down of it.
struct Named {
    id: Uuid,
    no: i64,
    canonical_name: String,
    name_key: String,
    context_no: i64,
    label: String,
}

impl From<Named> for CuratedConcept {
    fn from(named: Named) -> Self {
        Self { id: named.id.into(), canonical_name: named.canonical_name, context: named.label }
    }
}

async fn named(conn: &mut PgConnection, repository: RepositoryId, no: i64) -> Result<Named> {
    let row = sqlx::query_as!(
        Named,
        "SELECT c.id, c.no, c.canonical_name, c.name_key, c.context_no, x.label
           FROM okt_repository.concepts c
           JOIN okt_repository.contexts x ON x.repository_id = c.repository_id AND x.no = c.context_no
          WHERE c.repository_id = $1 AND c.no = $2",
        repository.uuid(),
        no,
    );
    Ok(row.fetch_optional(conn).await?.ok_or(Error::NotFound("concept"))?)
}

/// The concept of this id, or the one that it is part of now, locked until the end of the transaction, with another context if
/// one is named. `None` if it is not there.
async fn hold_concept(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: ConceptId,
    context: Option<i64>,
) -> Result<Option<Named>> {
    for _ in 0..5 {
        let root = concepts::roots(conn, repository, &[id.uuid()]).await?.get(&id.uuid()).copied();
        let Some(root) = root else { return Ok(None) };
        let held = concepts::hold(conn, repository, &[root], context).await?;
        if held.is_some_and(|held| held.iter().all(|held| held.merged_into.is_none())) {
            return named(conn, repository, root).await.map(Some);
        }
    }
    Err(Error::Overloaded("the same concept is just being changed").into())
}

struct Row {
    no: i64,
    id: Uuid,
    action: String,
    details: String,
    person: Option<Uuid>,
    job_id: Option<Uuid>,
    reason: Option<String>,
    created_at: DateTime<Utc>,
    undone_at: Option<DateTime<Utc>>,
    undone_by: Option<Uuid>,
}

impl TryFrom<Row> for CurationStep {
    type Error = okt_pg::Error;

    fn try_from(row: Row) -> Result<Self> {
        Ok(Self {
            id: row.id.into(),
            no: row.no,
            action: word("curation.action", &row.action)?,
            details: serde_json::from_str(&row.details).map_err(Error::internal)?,
            person: row.person.map(Into::into),
            job: row.job_id.map(Into::into),
            reason: row.reason,
            created_at: row.created_at,
            undone_at: row.undone_at,
            undone_by: row.undone_by.map(Into::into),
        })
    }
}
