//! Facts: seeing them with where they come from, and judging them.

use okt_auth::RepoScope;
use okt_model::{
    Contradiction, Difference, EmbedFacts, Error, Fact, FactConcept, FactFilter, FactId, FactStatus, JobId,
    Result, SourceId,
};
use okt_store::fact_contradictions::{self, NewContradiction};
use okt_store::fact_merges::Undone;
use okt_store::facts::{self, FactPlace, Quoted};
use okt_store::outbox::{self, When};
use okt_store::{Connection, embedding_spaces, fact_merges, sources};
use okt_vectors::Tenant;

use crate::{App, Origin};

/// Sources that a fact is shown with; the rest is counted.
const SOURCES: i64 = 100;
/// Facts that it stands for, and that may contradict it.
const OTHERS: i64 = 100;

/// A fact with all that is known of it.
pub struct SeenFact {
    pub fact: Fact,
    pub sources: Vec<Quoted>,
    pub concepts: Vec<FactConcept>,
    /// The facts that it stands for.
    pub duplicates: Vec<FactId>,
    /// What sounds like it and does not say the same.
    pub contradictions: Vec<Contradiction>,
}

/// A fact that says something alike.
pub struct SimilarFact {
    pub fact: Fact,
    pub cosine: f32,
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
        let duplicates = fact_merges::list(&mut tx, repository, fact.no, OTHERS).await?;
        let contradictions = fact_contradictions::list(&mut tx, repository, fact.no, OTHERS).await?;
        tx.commit().await?;
        Ok(SeenFact { fact, sources, concepts, duplicates, contradictions })
    }

    /// The facts that are nearest to one by their vectors, and the model that made these. Empty for a fact that has none yet.
    pub async fn list_similar_facts(
        &self,
        scope: &RepoScope,
        id: FactId,
        limit: u32,
    ) -> Result<(String, Vec<SimilarFact>)> {
        let off = || {
            Error::NotConfigured(
                "facts have no vectors here; an operator has to set providers.embedding.model",
            )
        };
        let vectors = self.vectors().ok_or_else(off)?;
        let repository = scope.repository();
        let mut conn = self.databases().acquire_system().await?;
        let space = embedding_spaces::find_current(&mut conn).await?.ok_or_else(off)?;
        conn.done();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        facts::find(&mut tx, repository, id).await?.ok_or(Error::NotFound("fact"))?;
        tx.commit().await?;
        let (tenant, place) = (Tenant::new(repository, scope.database()), vectors.space(&space));
        let own = vectors.store().find(&tenant, &place, &[id.uuid()]).await?;
        let queries: Vec<Vec<f32>> = own.into_iter().map(|point| point.vector).collect();
        // One more, for it is the nearest to itself.
        let near = vectors.store().nearest(&tenant, &place, &queries, limit.saturating_add(1), -1.0).await?;
        let near: Vec<_> = near.into_iter().flatten().filter(|near| near.id != id.uuid()).collect();
        let ids: Vec<FactId> = near.iter().map(|near| near.id.into()).collect();
        // What the store says is looked up here, so nothing is shown that is not this repository's.
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let mut found = facts::get(&mut tx, repository, &ids).await?;
        tx.commit().await?;
        let similar = near.iter().filter_map(|near| {
            let fact = found.remove(&near.id.into())?;
            Some(SimilarFact { fact, cosine: near.cosine })
        });
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        Ok((space.model, similar.take(most).collect()))
    }

    /// Rejects a fact, or takes that back; takes a duplicate out of the fact that stands for it.
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
        if fact.status == FactStatus::Duplicate && !rejected {
            drop(tx);
            return self.part_fact(origin, scope, id).await;
        }
        let changed = facts::mark(&mut tx, repository, id, from, next).await?;
        if changed && !rejected {
            self.ask_for_vector(&mut tx, scope, fact.no).await?;
        }
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

    /// Takes the merge of a fact back. The two are not merged again.
    async fn part_fact(&self, origin: &Origin, scope: &RepoScope, id: FactId) -> Result<SeenFact> {
        let repository = scope.repository();
        let mut tx = self.databases().begin(scope.database(), repository).await?;
        let by = scope.caller().user();
        if let Some(Undone { fact, from, cosine }) =
            fact_merges::undo(&mut tx, repository, id, Some(by)).await?
        {
            if let Some(other) = from {
                let apart = NewContradiction { facts: (fact, other), difference: Difference::Judged, cosine };
                fact_contradictions::insert(&mut tx, repository, &[apart]).await?;
            }
            self.ask_for_vector(&mut tx, scope, fact).await?;
            tx.commit().await?;
            self.record_after(origin, scope, "fact.parted", &id.to_string()).await?;
        }
        self.find_fact(scope, id).await
    }

    /// For a fact that is to be found by its vector again.
    async fn ask_for_vector(&self, conn: &mut Connection, scope: &RepoScope, fact: i64) -> Result<()> {
        if self.vectors().is_none() {
            return Ok(());
        }
        let sources = facts::list_sources(conn, scope.repository(), fact, 1).await?;
        let payload = EmbedFacts { source: sources.first().map(|quoted| quoted.link.source) };
        outbox::push(conn, scope.repository(), JobId::mint(), &payload, When::default()).await
    }
}
