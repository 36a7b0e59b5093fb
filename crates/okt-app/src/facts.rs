//! Facts: seeing them with where they come from, and judging them.

use okt_auth::RepoScope;
use okt_model::{Error, Fact, FactConcept, FactFilter, FactId, FactStatus, Result, SourceId};
use okt_store::facts::{self, FactPlace, Quoted};
use okt_store::sources;

use crate::{App, Origin};

/// Sources that a fact is shown with; the rest is counted.
const SOURCES: i64 = 100;

/// A fact with all that is known of it.
pub struct SeenFact {
    pub fact: Fact,
    pub sources: Vec<Quoted>,
    pub concepts: Vec<FactConcept>,
}

impl App {
    /// From after a place on: the newest first, or those with the most sources.
    pub async fn list_facts(
        &self,
        scope: &RepoScope,
        filter: &FactFilter,
        by_sources: bool,
        after: Option<FactPlace>,
        limit: i64,
    ) -> Result<Vec<Fact>> {
        let mut tx = self.databases().begin_to_read(scope.database(), scope.repository()).await?;
        let found = facts::list(&mut tx, scope.repository(), filter, by_sources, after, limit).await?;
        tx.commit().await?;
        Ok(found)
    }

    /// Those that a source makes, the newest first.
    pub async fn list_source_facts(
        &self,
        scope: &RepoScope,
        source: SourceId,
        after: Option<FactPlace>,
        limit: i64,
    ) -> Result<Vec<Fact>> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        sources::find(&mut tx, repository, source).await?.ok_or(Error::NotFound("source"))?;
        let filter = FactFilter { source: Some(source), ..FactFilter::default() };
        let found = facts::list(&mut tx, repository, &filter, false, after, limit).await?;
        tx.commit().await?;
        Ok(found)
    }

    pub async fn find_fact(&self, scope: &RepoScope, id: FactId) -> Result<SeenFact> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let fact = facts::find(&mut tx, repository, id).await?.ok_or(Error::NotFound("fact"))?;
        let sources = facts::list_sources(&mut tx, repository, fact.no, SOURCES).await?;
        let concepts = facts::list_concepts(&mut tx, repository, fact.no).await?;
        tx.commit().await?;
        Ok(SeenFact { fact, sources, concepts })
    }

    /// Rejects a fact, or takes that back.
    pub async fn judge_fact(
        &self,
        origin: &Origin,
        scope: &RepoScope,
        id: FactId,
        rejected: bool,
    ) -> Result<SeenFact> {
        let (from, next, action): (&[FactStatus], FactStatus, &'static str) = if rejected {
            (&[FactStatus::New, FactStatus::Stable], FactStatus::Rejected, "fact.rejected")
        } else {
            (&[FactStatus::Rejected], FactStatus::Stable, "fact.restored")
        };
        let repository = scope.repository();
        let mut tx = self.databases().begin(scope.database(), repository).await?;
        let fact = facts::find(&mut tx, repository, id).await?.ok_or(Error::NotFound("fact"))?;
        let changed = facts::mark(&mut tx, repository, id, from, next).await?;
        tx.commit().await?;
        if changed {
            self.record_after(origin, scope, action, &id.to_string()).await?;
        } else if fact.status != next {
            return Err(Error::Conflict(
                "only a fact that is new or stable can be rejected, and only a rejected one restored",
            ));
        }
        self.find_fact(scope, id).await
    }
}
