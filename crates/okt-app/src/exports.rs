//! Exports: a whole repository, and the sources of an investigation as references. Read page by page, so that neither memory nor
//! a connection is held for as long as somebody reads.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use okt_auth::RepoScope;
use okt_auth::permissions::{GraphExport as MayExport, InvestigationRead};
use okt_model::{
    Context, Error, ExportedConcept, ExportedFact, ExportedLink, ExportedRelation, GraphFormat,
    InvestigationId, RepositoryId, Result, Source, SourceFilter, SourceId,
};
use okt_store::exports::{LinkPlace, PairPlace};
use okt_store::{Connection, contexts, exports, investigations, repositories, source_marks, sources};

use crate::audit::{Actor, record_in};
use crate::{App, Origin};

/// Rows that are read at once. A page and what is written of it are in memory.
const SOURCES: i64 = 50;
const CONCEPTS: i64 = 20;
const FACTS: i64 = 50;
const LINKS: i64 = 200;
const RELATIONS: i64 = 1_000;

/// A repository on its way out.
pub struct GraphExport {
    pub format: GraphFormat,
    pub repository: RepositoryId,
    pub name: String,
    pub slug: String,
    /// What was added later is left out.
    pub as_of: DateTime<Utc>,
    /// Those that have concepts.
    pub contexts: Vec<Context>,
    /// How many facts two concepts share at least to belong together.
    pub related_from: i64,
    next: Next,
}

/// What is read next.
enum Next {
    Sources(Option<SourceId>),
    Concepts(i64),
    Facts(i64),
    Links(Arc<Vec<ExportedFact>>, LinkPlace),
    Relations(PairPlace),
    End,
}

/// Rows of one kind. Each kind comes before those that refer to it.
pub enum ExportPage {
    Sources(Vec<Source>),
    Concepts(Vec<ExportedConcept>),
    Facts(Arc<Vec<ExportedFact>>),
    /// Of the facts of the page before, which are here again.
    Links(Arc<Vec<ExportedFact>>, Vec<ExportedLink>),
    Relations(Vec<ExportedRelation>),
}

impl App {
    /// Begins to export a repository; it is recorded before anything leaves.
    pub async fn begin_export(
        &self,
        origin: &Origin,
        scope: &RepoScope<MayExport>,
        format: GraphFormat,
    ) -> Result<GraphExport> {
        let repository = scope.repository();
        let mut conn = self.databases().acquire_system().await?;
        let found = repositories::find(&mut conn, repository).await?.ok_or(Error::NotFound("repository"))?;
        let actor = Actor::caller(scope.caller());
        record_in(&mut conn, origin, actor, "repository.exported", format.as_str(), Some(repository)).await?;
        drop(conn);
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let as_of = repositories::now(&mut tx).await?;
        let mut contexts = contexts::list(&mut tx, repository).await?;
        tx.commit().await?;
        contexts.retain(|context| context.concept_count > 0);
        // A table has a row for each fact and source, and nothing of its own for the others.
        let next = if format == GraphFormat::Csv { Next::Facts(0) } else { Next::Sources(None) };
        let (name, slug, related_from) = (found.name, found.slug, self.bands().weak);
        Ok(GraphExport { format, repository, name, slug, as_of, contexts, related_from, next })
    }

    /// The next rows; `None` at the end.
    pub async fn read_export(
        &self,
        scope: &RepoScope<MayExport>,
        export: &mut GraphExport,
    ) -> Result<Option<ExportPage>> {
        if matches!(export.next, Next::End) {
            return Ok(None);
        }
        let mut tx = self.databases().begin_to_read(scope.database(), scope.repository()).await?;
        let page = export.read(&mut tx).await?;
        tx.commit().await?;
        Ok(page)
    }

    /// The sources of an investigation with their marks, the newest first.
    pub async fn read_investigation_sources(
        &self,
        scope: &RepoScope<InvestigationRead>,
        id: InvestigationId,
        before: Option<SourceId>,
    ) -> Result<Vec<Source>> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        investigations::find(&mut tx, repository, id).await?.ok_or(Error::NotFound("investigation"))?;
        let among = investigations::list_sources(&mut tx, repository, id).await?;
        let among = Some(among.into_iter().map(|(no, _)| no).collect());
        let filter = SourceFilter { among, ..SourceFilter::default() };
        let mut found = sources::list(&mut tx, repository, &filter, false, before, SOURCES).await?;
        mark(&mut tx, repository, &mut found).await?;
        tx.commit().await?;
        Ok(found)
    }
}

impl GraphExport {
    async fn read(&mut self, conn: &mut Connection) -> Result<Option<ExportPage>> {
        let (repository, as_of) = (self.repository, self.as_of);
        loop {
            match std::mem::replace(&mut self.next, Next::End) {
                Next::Sources(after) => {
                    let all = SourceFilter::default();
                    let mut found = sources::list(conn, repository, &all, true, after, SOURCES).await?;
                    self.next = found.last().map_or(Next::Concepts(0), |last| Next::Sources(Some(last.id)));
                    found.retain(|source| source.created_at <= as_of);
                    mark(conn, repository, &mut found).await?;
                    if !found.is_empty() {
                        return Ok(Some(ExportPage::Sources(found)));
                    }
                }
                Next::Concepts(after) => {
                    let found = exports::list_concepts(conn, repository, as_of, after, CONCEPTS).await?;
                    self.next = found.last().map_or(Next::Facts(0), |last| Next::Concepts(last.concept.no));
                    if !found.is_empty() {
                        return Ok(Some(ExportPage::Concepts(found)));
                    }
                }
                Next::Facts(after) => {
                    let found = Arc::new(exports::list_facts(conn, repository, as_of, after, FACTS).await?);
                    if found.is_empty() {
                        let has_more = self.format != GraphFormat::Csv;
                        self.next = if has_more { Next::Relations((0, 0)) } else { Next::End };
                        continue;
                    }
                    self.next = Next::Links(Arc::clone(&found), (0, 0));
                    return Ok(Some(ExportPage::Facts(found)));
                }
                Next::Links(facts, after) => {
                    let numbers: Vec<i64> = facts.iter().map(|fact| fact.fact.no).collect();
                    let quotes = self.format != GraphFormat::Graphml;
                    let found = exports::list_links(conn, repository, &numbers, quotes, after, LINKS).await?;
                    let is_full = i64::try_from(found.len()).is_ok_and(|count| count >= LINKS);
                    self.next = match found.last().filter(|_| is_full) {
                        Some((place, _)) => Next::Links(Arc::clone(&facts), *place),
                        None => Next::Facts(numbers.last().copied().unwrap_or_default()),
                    };
                    let links = found.into_iter().map(|(_, link)| link);
                    let links: Vec<_> = links.filter(|link| link.created_at <= as_of).collect();
                    if !links.is_empty() {
                        return Ok(Some(ExportPage::Links(facts, links)));
                    }
                }
                Next::Relations(after) => {
                    let found = exports::list_relations(conn, repository, as_of, after, RELATIONS).await?;
                    self.next = found.last().map_or(Next::End, |(place, _)| Next::Relations(*place));
                    let relations: Vec<_> = found.into_iter().filter_map(|(_, relation)| relation).collect();
                    if !relations.is_empty() {
                        return Ok(Some(ExportPage::Relations(relations)));
                    }
                }
                Next::End => return Ok(None),
            }
        }
    }
}

pub(crate) async fn mark(
    conn: &mut Connection,
    repository: RepositoryId,
    found: &mut [Source],
) -> Result<()> {
    let ids: Vec<SourceId> = found.iter().map(|source| source.id).collect();
    let mut marks = source_marks::get(conn, repository, &ids).await?;
    for source in found {
        source.mark = marks.remove(&source.id);
    }
    Ok(())
}
