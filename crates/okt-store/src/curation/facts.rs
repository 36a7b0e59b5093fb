//! Steps that reject facts and restore them.

use okt_model::{
    CuratedFact, CurationAction, CurationDetails, CurationEffects, CurationId, Decided, FactId, FactStatus,
    RepositoryId,
};
use sqlx::PgConnection;

use super::keys::Keys;
use super::links::bytes;
use super::{Step, hold, record};
use crate::facts;
use okt_pg::Result;

/// Rejects a fact that is new or stable, or makes a rejected one stable. `None` if it is not there or its status is another. A
/// fact that is gone and read anew is as it was left.
#[tracing::instrument(level = "debug", name = "db.curation.mark_fact", skip_all, fields(fact.id = %id))]
pub async fn mark_fact(
    conn: &mut PgConnection,
    repository: RepositoryId,
    decided: Decided<'_>,
    id: FactId,
    rejected: bool,
) -> Result<Option<CurationId>> {
    hold(conn, repository).await?;
    let (from, next, action): (&[FactStatus], _, _) = if rejected {
        (&[FactStatus::New, FactStatus::Stable], FactStatus::Rejected, CurationAction::RejectFact)
    } else {
        (&[FactStatus::Rejected], FactStatus::Stable, CurationAction::RestoreFact)
    };
    // Once more where a job settled it between two looks.
    for _ in 0..3 {
        let Some(fact) = facts::find(conn, repository, id).await? else { return Ok(None) };
        if !from.contains(&fact.status) {
            return Ok(None);
        }
        if !facts::mark(conn, repository, id, &[fact.status], next).await? {
            continue;
        }
        let hash = fact.hash.to_string();
        remember(conn, repository, &hash, rejected).await?;
        let mut keys = Keys::default();
        keys.fact(&hash);
        let (before, after) = (fact.status.as_str().to_owned(), next.as_str().to_owned());
        let step = Step {
            action,
            details: CurationDetails { facts: vec![id], ..CurationDetails::default() },
            effects: CurationEffects {
                fact: Some(CuratedFact { hash, before, after }),
                ..CurationEffects::default()
            },
            keys,
        };
        return record(conn, repository, decided.into(), &step).await.map(Some);
    }
    Ok(None)
}

/// What becomes of it when it is read anew.
pub(super) async fn remember(
    conn: &mut PgConnection,
    repository: RepositoryId,
    hash: &str,
    rejected: bool,
) -> Result<()> {
    let hash = bytes(hash)?;
    if rejected {
        sqlx::query!(
            "INSERT INTO okt_repository.rejected_facts (repository_id, content_hash) VALUES ($1, $2)
             ON CONFLICT (repository_id, content_hash) DO NOTHING",
            repository.uuid(),
            hash,
        )
        .execute(conn)
        .await?;
    } else {
        sqlx::query!(
            "DELETE FROM okt_repository.rejected_facts WHERE repository_id = $1 AND content_hash = $2",
            repository.uuid(),
            hash,
        )
        .execute(conn)
        .await?;
    }
    Ok(())
}
