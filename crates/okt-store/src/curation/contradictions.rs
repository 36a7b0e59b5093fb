//! Steps that say whether two facts contradict each other.

use okt_model::{
    ContentHash, ContradictionState, CuratedContradiction, CuratedState, CurationAction, CurationDetails,
    CurationEffects, CurationId, Decided, Error, FactId, RepositoryId, UserId,
};
use sqlx::PgConnection;

use super::keys::Keys;
use super::links::bytes;
use super::{Step, hold, record};
use okt_pg::Result;

/// Says of two facts that may contradict each other whether they do, or opens the question again. It holds for the duplicates of
/// both as well, in place of what was said of them. The reason is kept as the note. `None` if that was said already.
///
/// # Errors
///
/// [`Error::NotFound`] if one of the facts is not there, or nothing says that they may contradict each other.
#[tracing::instrument(level = "debug", name = "db.curation.mark_contradiction", skip_all)]
pub async fn mark_contradiction(
    conn: &mut PgConnection,
    repository: RepositoryId,
    decided: Decided<'_>,
    facts: (FactId, FactId),
    state: ContradictionState,
) -> Result<Option<CurationId>> {
    hold(conn, repository).await?;
    let missing = || Error::NotFound("contradiction");
    let found = sqlx::query!(
        r#"SELECT f.id AS "one_id!", f.content_hash AS "one!", o.id AS "other_id!", o.content_hash AS "other!",
                  f.no AS "one_no!", o.no AS "other_no!"
             FROM okt_repository.facts a
             JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = coalesce(a.merged_into, a.no)
            CROSS JOIN okt_repository.facts b
             JOIN okt_repository.facts o ON o.repository_id = $1 AND o.no = coalesce(b.merged_into, b.no)
            WHERE a.repository_id = $1 AND a.id = $2 AND b.repository_id = $1 AND b.id = $3 AND f.no <> o.no
              AND EXISTS (SELECT FROM okt_repository.contradictions_between($1, f.no, o.no))"#,
        repository.uuid(),
        facts.0.uuid(),
        facts.1.uuid(),
    );
    let found = found.fetch_optional(&mut *conn).await?.ok_or_else(missing)?;
    let (one, other) =
        if found.one < found.other { (found.one, found.other) } else { (found.other, found.one) };
    let said = sqlx::query!(
        r#"SELECT content_hash AS "content_hash!", other_hash AS "other_hash!", state AS "state!", note, person,
                  decided_at AS "decided_at!"
             FROM okt_repository.contradiction_states_between($1, $2, $3)
            ORDER BY decided_at DESC, content_hash, other_hash"#,
        repository.uuid(),
        found.one_no,
        found.other_no,
    );
    let said = said.fetch_all(&mut *conn).await?;
    let note = decided.reason.filter(|note| !note.is_empty());
    let last = said.first().map(|last| (last.state.as_str(), last.note.as_deref()));
    let wanted = (state != ContradictionState::Open).then_some((state.as_str(), note));
    if last == wanted {
        return Ok(None);
    }
    let mut keys = Keys::default();
    let pair = (named(&one)?, named(&other)?);
    keys.contradiction(&pair.0, &pair.1);
    let mut before = Vec::new();
    for row in said {
        let facts = (named(&row.content_hash)?, named(&row.other_hash)?);
        keys.contradiction(&facts.0, &facts.1);
        sqlx::query!(
            "DELETE FROM okt_repository.contradiction_states
              WHERE repository_id = $1 AND content_hash = $2 AND other_hash = $3",
            repository.uuid(),
            row.content_hash,
            row.other_hash,
        )
        .execute(&mut *conn)
        .await?;
        let (state, note, person) = (row.state, row.note, row.person.map(UserId::from));
        before.push(CuratedState { facts, state, note, person, decided_at: row.decided_at });
    }
    if wanted.is_some() {
        sqlx::query!(
            "INSERT INTO okt_repository.contradiction_states (repository_id, content_hash, other_hash, state, note, person)
             VALUES ($1, $2, $3, $4, $5, $6)",
            repository.uuid(),
            one,
            other,
            state.as_str(),
            note,
            decided.person.uuid(),
        )
        .execute(&mut *conn)
        .await?;
    }
    let step = Step {
        action: CurationAction::MarkContradiction,
        details: CurationDetails {
            facts: vec![found.one_id.into(), found.other_id.into()],
            contradiction: Some(state.as_str().to_owned()),
            ..CurationDetails::default()
        },
        effects: CurationEffects {
            contradiction: Some(CuratedContradiction { facts: pair, before }),
            ..CurationEffects::default()
        },
        keys,
    };
    record(conn, repository, decided.into(), &step).await.map(Some)
}

/// What was said before holds again.
pub(super) async fn unmark(
    conn: &mut PgConnection,
    repository: RepositoryId,
    contradiction: &CuratedContradiction,
) -> Result<()> {
    let (one, other) = &contradiction.facts;
    sqlx::query!(
        "DELETE FROM okt_repository.contradiction_states
          WHERE repository_id = $1 AND content_hash = $2 AND other_hash = $3",
        repository.uuid(),
        bytes(one)?,
        bytes(other)?,
    )
    .execute(&mut *conn)
    .await?;
    for before in &contradiction.before {
        sqlx::query!(
            "INSERT INTO okt_repository.contradiction_states
                 (repository_id, content_hash, other_hash, state, note, person, decided_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
            repository.uuid(),
            bytes(&before.facts.0)?,
            bytes(&before.facts.1)?,
            before.state,
            before.note,
            before.person.map(UserId::uuid),
            before.decided_at,
        )
        .execute(&mut *conn)
        .await?;
    }
    Ok(())
}

fn named(hash: &[u8]) -> Result<String> {
    Ok(ContentHash::try_from(hash).map_err(Error::internal)?.to_string())
}
