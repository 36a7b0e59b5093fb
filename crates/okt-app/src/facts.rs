//! Facts: reading them with their sources, rejecting and restoring them, and undoing merges.

use std::collections::HashMap;

use okt_auth::permissions::{FactRead, FactUpdate, SourceRead};
use okt_auth::{RepoAccess, RepoScope};
use okt_model::{
    Contradiction, ContradictionFoundBy, CurationId, Difference, EmbedFacts, Error, ExtractConcepts, Fact,
    FactConcept, FactFilter, FactId, FactStatus, JobId, RefreshConceptRelations, Result, SourceId, SpaceKind,
    UnitKind,
};
use okt_store::fact_contradictions::{self, NewContradiction};
use okt_store::fact_merges::Undone;
use okt_store::facts::{self, FactPlace, Quoted};
use okt_store::outbox::{self, When};
use okt_store::{Connection, curation, embedding_spaces, fact_groups, fact_merges, source_marks, sources};
use okt_vectors::Tenant;

use crate::curation::decided;
use crate::{App, Origin};

/// Sources that a fact is shown with; the rest is counted.
const SOURCES: i64 = 100;
/// Facts merged into it whose sources and concepts it is shown with.
const MERGED: i64 = 1_000;
/// Of them those whose ids are shown.
const MERGED_SHOWN: usize = 100;
/// How often a page is looked for among facts that have the words of a list.
const MOST_ROUNDS: usize = 20;
/// Facts that may contradict it.
const CONTRADICTIONS: i64 = 100;

/// A fact with all that is known of it.
pub struct SeenFact {
    pub fact: Fact,
    pub sources: Vec<Quoted>,
    pub concepts: Vec<FactConcept>,
    /// The facts merged into it.
    pub duplicates: Vec<FactId>,
    /// Facts that are similar but say something else.
    pub contradictions: Vec<Contradiction>,
}

/// A fact that says something alike.
pub struct SimilarFact {
    pub fact: Fact,
    pub cosine: f32,
}

impl App {
    /// From after a place on: the newest first, or those with the most sources. If what words find was not gone through to its end,
    /// the place to go on after.
    pub async fn list_facts(
        &self,
        scope: &RepoScope<FactRead>,
        mut filter: FactFilter,
        q: Option<&str>,
        by_sources: bool,
        after: Option<FactPlace>,
        limit: i64,
    ) -> Result<(Vec<Fact>, Option<FactPlace>)> {
        let repository = scope.repository();
        let mut found: Vec<Fact> = Vec::new();
        // The newest come first, so what words find is looked at from where the page begins.
        let mut before = after.filter(|_| !by_sources).map(|(_, no)| no);
        for _ in 0..MOST_ROUNDS {
            let mut next = None;
            if let Some(q) = q {
                let having = self.having(scope, UnitKind::Fact, q, before).await?;
                (filter.among, next) = (Some(having.numbers), having.next);
            }
            let left = limit - i64::try_from(found.len()).map_err(Error::internal)?;
            let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
            let mut more = facts::list(&mut tx, repository, &filter, by_sources, after, left).await?;
            name_canonical(&mut tx, scope, &mut more).await?;
            describe(&mut tx, scope, &mut more).await?;
            tx.commit().await?;
            found.extend(more);
            let full = i64::try_from(found.len()).is_ok_and(|count| count >= limit);
            if full || by_sources || next.is_none() {
                return Ok((found, None));
            }
            before = next;
        }
        Ok((found, before.map(|no| (0, no))))
    }

    /// The facts of the group of similar facts that a fact is in, the oldest first, from after a number on. One that is alone is
    /// listed alone.
    pub async fn list_fact_group(
        &self,
        scope: &RepoScope<FactRead>,
        id: FactId,
        after: Option<i64>,
        limit: i64,
    ) -> Result<Vec<Fact>> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let representative =
            fact_groups::find(&mut tx, repository, id).await?.ok_or(Error::NotFound("fact"))?;
        let mut found =
            fact_groups::list(&mut tx, repository, representative, after.unwrap_or(0), limit).await?;
        describe(&mut tx, scope, &mut found).await?;
        tx.commit().await?;
        Ok(found)
    }

    /// Those that a source makes, the newest first.
    pub async fn list_source_facts(
        &self,
        scope: &RepoScope<SourceRead>,
        source: SourceId,
        after: Option<FactPlace>,
        limit: i64,
    ) -> Result<Vec<Fact>> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        sources::find(&mut tx, repository, source).await?.ok_or(Error::NotFound("source"))?;
        let filter = FactFilter { source: Some(source), ..FactFilter::default() };
        let mut found = facts::list(&mut tx, repository, &filter, false, after, limit).await?;
        describe(&mut tx, scope, &mut found).await?;
        tx.commit().await?;
        Ok(found)
    }

    pub async fn find_fact(&self, scope: &RepoScope<FactRead>, id: FactId) -> Result<SeenFact> {
        self.load_fact(scope, id).await
    }

    async fn load_fact(&self, scope: &RepoAccess, id: FactId) -> Result<SeenFact> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let mut fact = facts::find(&mut tx, repository, id).await?.ok_or(Error::NotFound("fact"))?;
        name_canonical(&mut tx, scope, std::slice::from_mut(&mut fact)).await?;
        describe(&mut tx, scope, std::slice::from_mut(&mut fact)).await?;
        let merged = fact_merges::list(&mut tx, repository, fact.no, MERGED).await?;
        let all: Vec<i64> = std::iter::once(fact.no).chain(merged.iter().map(|(no, _)| *no)).collect();
        let mut sources = facts::list_sources(&mut tx, repository, &all, SOURCES).await?;
        let ids: Vec<SourceId> = sources.iter().map(|quoted| quoted.link.source).collect();
        let marks = source_marks::get(&mut tx, repository, &ids).await?;
        for quoted in &mut sources {
            quoted.link.mark = marks.get(&quoted.link.source).cloned();
        }
        let concepts = facts::list_concepts(&mut tx, repository, &all).await?;
        let mut contradictions =
            fact_contradictions::list(&mut tx, repository, fact.no, &all, CONTRADICTIONS).await?;
        let others: Vec<FactId> = contradictions.iter().map(|other| other.fact).collect();
        let retracted = source_marks::list_retracted(&mut tx, repository, &others).await?;
        for other in &mut contradictions {
            other.retracted = retracted.contains(&other.fact);
        }
        tx.commit().await?;
        let duplicates = merged.into_iter().map(|(_, id)| id).take(MERGED_SHOWN).collect();
        Ok(SeenFact { fact, sources, concepts, duplicates, contradictions })
    }

    /// The facts that are nearest to one by their vectors, and the model that made these. Empty for a fact that has none yet.
    pub async fn list_similar_facts(
        &self,
        scope: &RepoScope<FactRead>,
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
        let space = embedding_spaces::find_current(&mut conn, SpaceKind::Facts).await?.ok_or_else(off)?;
        drop(conn);
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
        let mut found: Vec<Fact> = facts::get(&mut tx, repository, &ids).await?.into_values().collect();
        describe(&mut tx, scope, &mut found).await?;
        tx.commit().await?;
        let mut found: HashMap<FactId, Fact> = found.into_iter().map(|fact| (fact.id, fact)).collect();
        let similar = near.iter().filter_map(|near| {
            let fact = found.remove(&near.id.into())?;
            Some(SimilarFact { fact, cosine: near.cosine })
        });
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        Ok((space.model, similar.take(most).collect()))
    }

    /// Rejects a fact, restores a rejected one, or undoes the merge of a duplicate; the step of curation, if it was one of the
    /// first two and changed anything, and the fact as it is now.
    pub async fn set_fact_status(
        &self,
        origin: &Origin,
        scope: &RepoScope<FactUpdate>,
        id: FactId,
        rejected: bool,
        reason: Option<&str>,
    ) -> Result<(Option<CurationId>, SeenFact)> {
        let (next, action) = if rejected {
            (FactStatus::Rejected, "fact.rejected")
        } else {
            (FactStatus::Stable, "fact.restored")
        };
        let decided = decided(scope, reason)?;
        let repository = scope.repository();
        let mut tx = self.databases().begin(scope.database(), repository).await?;
        let fact = facts::find(&mut tx, repository, id).await?.ok_or(Error::NotFound("fact"))?;
        if fact.status == FactStatus::Duplicate && !rejected {
            drop(tx);
            return Ok((None, self.undo_merge(origin, scope, id).await?));
        }
        let step = curation::mark_fact(&mut tx, repository, decided, id, rejected).await?;
        if step.is_some() && !rejected {
            self.ask_for_vector(&mut tx, scope, fact.no).await?;
        }
        if step.is_some() {
            self.ask_for_relations(&mut tx, scope).await?;
            self.commit_recorded(tx, origin, scope, action, &id.to_string()).await?;
        } else if fact.status != next {
            return Err(Error::Conflict(if rejected {
                "only a fact that is new or stable can be rejected; \
                 to reject a duplicate, set its status to stable first, which undoes its merge"
            } else {
                "only a rejected fact or a duplicate can be made stable; \
                 a new fact becomes stable when it has been compared with the others"
            }));
        }
        Ok((step, self.load_fact(scope, id).await?))
    }

    /// Undoes the merge of a fact. The two are not merged again.
    async fn undo_merge(&self, origin: &Origin, scope: &RepoAccess, id: FactId) -> Result<SeenFact> {
        let repository = scope.repository();
        let mut tx = self.databases().begin(scope.database(), repository).await?;
        let by = scope.caller().user();
        if let Some(Undone { fact, from, cosine }) =
            fact_merges::undo(&mut tx, repository, id, Some(by)).await?
        {
            if let Some(other) = from {
                let apart = NewContradiction {
                    facts: (fact, other),
                    difference: Difference::Judged,
                    cosine,
                    found_by: ContradictionFoundBy::RefusedMerge,
                };
                fact_contradictions::insert(&mut tx, repository, &[apart]).await?;
            }
            self.ask_for_vector(&mut tx, scope, fact).await?;
            self.ask_for_relations(&mut tx, scope).await?;
            self.commit_recorded(tx, origin, scope, "fact.merge_undone", &id.to_string()).await?;
        }
        self.load_fact(scope, id).await
    }

    /// For a fact that is to be found by its vector again, and to be read for concepts if it was not.
    pub(crate) async fn ask_for_vector(
        &self,
        conn: &mut Connection,
        scope: &RepoAccess,
        fact: i64,
    ) -> Result<()> {
        let repository = scope.repository();
        let sources = facts::list_sources(conn, repository, &[fact], 1).await?;
        let source = sources.first().map(|quoted| quoted.link.source);
        if self.vectors().is_some() {
            let payload = EmbedFacts { source };
            outbox::push(conn, repository, JobId::mint(), &payload, When::default()).await?;
        } else if let Some(source) = source {
            let payload = ExtractConcepts { source };
            outbox::push(conn, repository, JobId::mint(), &payload, When::default()).await?;
        }
        Ok(())
    }

    /// Facts have changed: has the relations of concepts counted again, and reports compared with them.
    pub(crate) async fn ask_for_relations(&self, conn: &mut Connection, scope: &RepoAccess) -> Result<()> {
        let payload = RefreshConceptRelations {};
        outbox::push(conn, scope.repository(), JobId::mint(), &payload, When::default()).await?;
        self.ask_for_reports(conn, scope).await
    }
}

/// Adds to facts the groups of similar facts that they are in, and how many of their sources are marked.
pub(crate) async fn describe(conn: &mut Connection, scope: &RepoAccess, found: &mut [Fact]) -> Result<()> {
    fact_groups::describe(conn, scope.repository(), found).await?;
    Ok(source_marks::describe(conn, scope.repository(), found).await?)
}

/// Sets `duplicate_of` of the duplicates among these to their canonical facts.
async fn name_canonical(conn: &mut Connection, scope: &RepoAccess, found: &mut [Fact]) -> Result<()> {
    let duplicates = found.iter().filter(|fact| fact.status == FactStatus::Duplicate);
    let duplicates: Vec<i64> = duplicates.map(|fact| fact.no).collect();
    if duplicates.is_empty() {
        return Ok(());
    }
    let canonical = fact_merges::list_canonical(conn, scope.repository(), &duplicates).await?;
    for fact in found {
        fact.duplicate_of = canonical.get(&fact.no).copied();
    }
    Ok(())
}
