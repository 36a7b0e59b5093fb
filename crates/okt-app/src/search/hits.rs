//! What was found, as it is shown.

use std::collections::{HashMap, HashSet};

use okt_auth::RepoAccess;
use okt_model::{
    ConceptFilter, FoundThrough, RepositoryId, Result, SearchMode, SearchType, SourceId, UnitKind,
};
use okt_search::{Query, fits, highlights, language_of, words};
use okt_store::concepts::{self, ConceptPlace};
use okt_store::report_words::{self, ReportHit};
use okt_store::search_hits::{self, FactHit, SourceHit};
use okt_store::{Connection, search_units, source_marks};

use super::{Candidate, Ranks, SearchHit, SearchPlace};
use crate::App;

/// Read together.
const BATCH: usize = 100;
/// Characters of a source that are shown.
const SHOWN: usize = 300;
/// Characters of a passage that are shown.
const PASSAGE: usize = 2_000;
/// Concepts whose names are like the question.
const CONCEPTS: i64 = 10;

/// Leaves the first of those that are one fact or, if they are to be grouped, of one group of similar facts, and no fact that may
/// not be seen. Before a page is cut off, so that no page repeats what another has.
pub(super) async fn leave_one_of_each(
    conn: &mut Connection,
    repository: RepositoryId,
    candidates: &mut Vec<Candidate>,
    grouped: bool,
) -> Result<()> {
    let facts = candidates.iter().filter(|candidate| candidate.kind == SearchType::Facts);
    let facts: Vec<i64> = facts.map(|candidate| candidate.no).collect();
    let known = search_hits::list_groups(conn, repository, &facts).await?;
    let mut seen = HashSet::new();
    candidates.retain(|candidate| {
        if candidate.kind != SearchType::Facts {
            return seen.insert((candidate.kind, candidate.no));
        }
        let Some((canonical, group)) = known.get(&candidate.no) else { return false };
        seen.insert((candidate.kind, group.filter(|_| grouped).unwrap_or(*canonical)))
    });
    Ok(())
}

/// The first of candidates that can be shown.
pub(super) async fn read(
    conn: &mut Connection,
    repository: RepositoryId,
    query: &Query,
    candidates: &[Candidate],
    mode: SearchMode,
    limit: usize,
) -> Result<Vec<SearchHit>> {
    // A question that needs several texts quotes what one of them has.
    let phrases_required = mode != SearchMode::Deep;
    let mut hits = Vec::new();
    for batch in candidates.chunks(BATCH) {
        let texts = Texts::read(conn, repository, batch).await?;
        hits.extend(batch.iter().filter_map(|candidate| texts.hit(candidate, query, phrases_required)));
        if hits.len() >= limit {
            break;
        }
    }
    hits.truncate(limit);
    Ok(hits)
}

impl App {
    /// Concepts whose names have the words of a question, those with the most facts first.
    pub(super) async fn concept_candidates(
        &self,
        conn: &mut Connection,
        scope: &RepoAccess,
        query: &Query,
    ) -> Result<Vec<Candidate>> {
        let q: String = query.text.chars().take(100).collect();
        if q.trim().is_empty() {
            return Ok(Vec::new());
        }
        let floor = i64::from(self.config().concepts.min_concept_fact_count);
        let filter = ConceptFilter { q: Some(q), min_fact_count: floor, ..ConceptFilter::default() };
        let place = ConceptPlace::MOST_FACTS;
        let mut found = concepts::list(conn, scope.repository(), &filter, &place, CONCEPTS).await?;
        // As in lists: where the floor would hide everything, it is lifted.
        if found.is_empty() {
            let filter = ConceptFilter { min_fact_count: 0, ..filter };
            found = concepts::list(conn, scope.repository(), &filter, &place, CONCEPTS).await?;
        }
        // A name that is the question comes before all texts, others after the best ones.
        let mut worth = 1.0;
        let named = found.into_iter().map(|concept| {
            let exact = concept.canonical_name.to_lowercase() == query.text.to_lowercase();
            worth *= 0.9;
            Candidate {
                kind: SearchType::Concepts,
                no: concept.no,
                source: 0,
                score: if exact { 2.0 } else { worth },
                found_by: vec![FoundThrough::Lexical],
                via: None,
                ranks: Ranks::default(),
            }
        });
        Ok(named.collect())
    }
}

/// What candidates say.
struct Texts {
    facts: HashMap<i64, FactHit>,
    passages: HashMap<i64, String>,
    sources: HashMap<i64, SourceHit>,
    beginnings: HashMap<i64, String>,
    concepts: HashMap<i64, okt_model::Concept>,
    reports: HashMap<i64, ReportHit>,
    /// By the numbers that candidates have.
    retracted_facts: HashSet<i64>,
    retracted_sources: HashSet<i64>,
}

impl Texts {
    async fn read(conn: &mut Connection, repository: RepositoryId, batch: &[Candidate]) -> Result<Self> {
        let of = |kind: SearchType| -> Vec<i64> {
            batch.iter().filter(|candidate| candidate.kind == kind).map(|candidate| candidate.no).collect()
        };
        let facts = search_hits::get_facts(conn, repository, &of(SearchType::Facts)).await?;
        let units = search_units::get(conn, repository, UnitKind::Passage, &of(SearchType::Passages)).await?;
        let places: Vec<(i64, i64, (i32, i32))> =
            units.iter().filter_map(|unit| Some((unit.no, unit.source_no, unit.sentences?))).collect();
        let passages = search_hits::get_passages(conn, repository, &places).await?;
        let wanted = of(SearchType::Sources);
        let beginnings: Vec<(i64, i64, (i32, i32))> = wanted.iter().map(|no| (*no, *no, (0, 0))).collect();
        let beginnings = search_hits::get_passages(conn, repository, &beginnings).await?;
        let written = batch.iter().filter(|candidate| candidate.kind == SearchType::Reports);
        let written: Vec<(i64, i64)> = written.map(|candidate| (candidate.no, candidate.source)).collect();
        let reports = report_words::get(conn, repository, &written).await?;
        let texts = batch.iter().filter(|candidate| candidate.kind != SearchType::Reports);
        let mut sources: HashSet<i64> = texts.map(|candidate| candidate.source).collect();
        sources.extend(facts.values().flat_map(|fact| &fact.sources));
        let sources: Vec<i64> = sources.into_iter().collect();
        let sources = search_hits::get_sources(conn, repository, &sources).await?;
        let concepts = concepts::list_numbered(conn, repository, &of(SearchType::Concepts)).await?;
        let concepts = concepts.into_iter().map(|concept| (concept.no, concept)).collect();
        let numbers: Vec<i64> = facts.keys().copied().collect();
        let retracted_facts = source_marks::list_retracted_facts(conn, repository, &numbers).await?;
        let numbers: Vec<i64> = sources.keys().copied().collect();
        let retracted_sources = source_marks::list_retracted_sources(conn, repository, &numbers).await?;
        Ok(Self {
            facts,
            passages,
            sources,
            beginnings,
            concepts,
            reports,
            retracted_facts,
            retracted_sources,
        })
    }

    /// `None` for what is gone, or is not what was asked for.
    fn hit(&self, candidate: &Candidate, query: &Query, phrases_required: bool) -> Option<SearchHit> {
        let place = SearchPlace { score: candidate.score, kind: candidate.kind, no: candidate.no };
        let first = || self.facts.get(&candidate.no).and_then(|fact| fact.sources.first());
        // A fact that nobody had to look for is shown with the first of its sources.
        let of = if candidate.kind == SearchType::Facts && candidate.source == 0 { first() } else { None };
        let is_report = candidate.kind == SearchType::Reports;
        let source = self.sources.get(of.unwrap_or(&candidate.source)).filter(|_| !is_report);
        let written = self.reports.get(&candidate.no).filter(|_| is_report);
        let known = source.and_then(|source| source.language.as_deref());
        let known = known.or_else(|| written.and_then(|report| report.language.as_deref()));
        let (id, title, text, sources) = match candidate.kind {
            SearchType::Facts => {
                let fact = self.facts.get(&candidate.no)?;
                let ids: Vec<SourceId> =
                    fact.sources.iter().filter_map(|no| Some(self.sources.get(no)?.id)).collect();
                (fact.id.uuid(), source?.title.clone(), fact.text.clone(), ids)
            }
            SearchType::Passages => {
                let text = self.passages.get(&candidate.no)?.clone();
                (source?.id.uuid(), source?.title.clone(), text, vec![source?.id])
            }
            SearchType::Sources => {
                let text = self.beginnings.get(&candidate.no).cloned().unwrap_or_default();
                let text = text.chars().take(SHOWN).collect();
                (source?.id.uuid(), source?.title.clone(), text, vec![source?.id])
            }
            SearchType::Concepts => {
                let concept = self.concepts.get(&candidate.no)?;
                let name = concept.canonical_name.clone();
                (concept.id.uuid(), Some(concept.context.clone()), name, Vec::new())
            }
            SearchType::Reports => {
                let report = self.reports.get(&candidate.no)?;
                let text = report.sentence.clone().unwrap_or_else(|| report.title.clone());
                (report.id.uuid(), Some(report.title.clone()), text, Vec::new())
            }
        };
        let retracted = match candidate.kind {
            SearchType::Facts => self.retracted_facts.contains(&candidate.no),
            SearchType::Passages | SearchType::Sources => self.retracted_sources.contains(&candidate.source),
            SearchType::Concepts | SearchType::Reports => false,
        };
        let language = language_of(known, &text);
        // Of a whole source only the beginning is here.
        let looked_at = !matches!(candidate.kind, SearchType::Sources | SearchType::Concepts);
        if looked_at && query.asks_for_a_look(phrases_required) {
            let whole = format!("{}. {text}", title.as_deref().unwrap_or_default());
            if !fits(query, &words(&whole, language), phrases_required) {
                return None;
            }
        }
        let text: String =
            if candidate.kind == SearchType::Passages { text.chars().take(PASSAGE).collect() } else { text };
        let marked = highlights(&text, language, query);
        let point = |at: usize| text[..at].chars().count();
        let marked = marked.into_iter().map(|range| (point(range.start), point(range.end))).collect();
        Some(SearchHit {
            place,
            id,
            title,
            highlights: marked,
            text,
            found_by: candidate.found_by.clone(),
            via: candidate.via.clone(),
            sources,
            retracted,
            ranks: candidate.ranks,
        })
    }
}
