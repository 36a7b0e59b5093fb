//! Facts that may contradict each other: listing them, and what people say of them.

use okt_auth::permissions::{FactRead, FactUpdate};
use okt_auth::{RepoAccess, RepoScope};
use okt_model::{
    ContradictionSide, ContradictionState, CurationId, Error, Fact, FactId, FoundContradiction, Result,
};
use okt_store::fact_contradictions::{self, ContradictionPlace};
use okt_store::{Connection, curation, facts};

use crate::curation::decided;
use crate::facts::describe;
use crate::{App, Origin};

/// Sources that each side is shown with.
const SHOWN_SOURCES: i64 = 5;

/// Two facts that may contradict each other, and what is known of it.
pub struct SeenContradiction {
    pub found: FoundContradiction,
    pub sides: (ContradictionSide, ContradictionSide),
}

impl App {
    /// Those of which people say this, from before a place on; those of the newest facts first.
    pub async fn list_contradictions(
        &self,
        scope: &RepoScope<FactRead>,
        state: ContradictionState,
        before: Option<ContradictionPlace>,
        limit: i64,
    ) -> Result<Vec<SeenContradiction>> {
        let repository = scope.repository();
        let before = before.unwrap_or((i64::MAX, i64::MAX));
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let found = match state {
            ContradictionState::Open => {
                fact_contradictions::list_open(&mut tx, repository, before, limit).await?
            }
            state => fact_contradictions::list_marked(&mut tx, repository, state, before, limit).await?,
        };
        let seen = see(&mut tx, scope, found).await?;
        tx.commit().await?;
        Ok(seen)
    }

    /// Says of two facts whether they contradict each other; the step of curation, if that was not said already, and the
    /// contradiction as it is now.
    pub async fn mark_contradiction(
        &self,
        origin: &Origin,
        scope: &RepoScope<FactUpdate>,
        pair: (FactId, FactId),
        state: ContradictionState,
        note: Option<&str>,
    ) -> Result<(Option<CurationId>, SeenContradiction)> {
        let repository = scope.repository();
        let decided = decided(scope, note).map_err(|error| match error {
            Error::Invalid(_) => Error::invalid("note", "must be at most 1000 characters of text"),
            error => error,
        })?;
        let missing = || Error::NotFound("contradiction");
        let mut tx = self.databases().begin(scope.database(), repository).await?;
        let step = curation::mark_contradiction(&mut tx, repository, decided, pair, state).await?;
        let found = fact_contradictions::find(&mut tx, repository, (pair.0.uuid(), pair.1.uuid())).await?;
        let found = found.ok_or_else(missing)?;
        let seen = see(&mut tx, scope, vec![found]).await?.pop().ok_or_else(missing)?;
        if step.is_some() {
            let (one, other) = (seen.sides.0.fact.id, seen.sides.1.fact.id);
            self.commit_recorded(tx, origin, scope, "contradiction.marked", &format!("{one}.{other}"))
                .await?;
        }
        Ok((step, seen))
    }
}

/// With both facts. One that went away meanwhile takes its contradictions with it.
async fn see(
    conn: &mut Connection,
    scope: &RepoAccess,
    found: Vec<FoundContradiction>,
) -> Result<Vec<SeenContradiction>> {
    let repository = scope.repository();
    let numbers: Vec<i64> = found.iter().flat_map(|found| [found.facts.0, found.facts.1]).collect();
    let sides = fact_contradictions::list_sides(conn, repository, &numbers).await?;
    let sources = fact_contradictions::list_side_sources(conn, repository, &numbers, SHOWN_SOURCES).await?;
    let ids: Vec<FactId> = sides.values().map(|side| side.id).collect();
    let mut known: Vec<Fact> = facts::get(conn, repository, &ids).await?.into_values().collect();
    describe(conn, scope, &mut known).await?;
    let side = |no: i64| {
        let fact = known.iter().find(|fact| fact.no == no)?.clone();
        let told = sides.get(&no)?;
        let shown = sources.get(&no).cloned().unwrap_or_default();
        Some(ContradictionSide { fact, sources: told.sources, published: told.published, shown })
    };
    let seen = found.into_iter().filter_map(|found| {
        let sides = (side(found.facts.0)?, side(found.facts.1)?);
        Some(SeenContradiction { found, sides })
    });
    Ok(seen.collect())
}
