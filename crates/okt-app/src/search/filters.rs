//! Which texts a question asks for: what stands in it as `field:value`, and what is said beside it.
//!
//! Candidates come first and are looked at then. Where a filter names few texts, of a source or of a concept, the candidates are
//! taken from among these.

use std::collections::{BTreeSet, HashMap, HashSet};

use chrono::Datelike as _;
use okt_model::{
    Concept, ConceptId, PASSAGES_OF_SOURCE, RepositoryId, Result, SearchType, SourceId, UnitKind, name_key,
};
use okt_search::{Field, Filter, Years, block, language_code};
use okt_store::concepts;
use okt_store::search_hits::{self, SourceHit};
use okt_store::{Connection, search_filters};
use uuid::Uuid;

use super::Candidate;

/// A filter that names more facts than this is looked at with the candidates.
const FEW: i64 = 10_000;
/// Concepts of one name, in as many contexts.
const CONTEXTS: i64 = 20;

/// What is asked of texts.
#[derive(Default)]
pub(super) struct Filters {
    /// For each concept that is asked for its numbers.
    concepts: Vec<BTreeSet<i64>>,
    /// In small letters.
    contexts: Vec<String>,
    sources: Vec<SourceTest>,
    languages: Vec<String>,
    years: Vec<Years>,
    kinds: Vec<String>,
    /// Sources with facts that speak of all the concepts; `None` if not all of them are known.
    speaking: Option<HashSet<i64>>,
    pub narrow: Option<Narrow>,
}

enum SourceTest {
    Number(i64),
    /// A part of the title or of the address, in small letters.
    Part(String),
    Nothing,
}

/// The texts that filters leave, where these are few.
#[derive(Clone, Debug, Default)]
pub(super) struct Narrow {
    pub facts: HashSet<i64>,
    pub sources: HashSet<i64>,
}

impl Narrow {
    pub fn has(&self, kind: UnitKind, no: i64) -> bool {
        match kind {
            UnitKind::Fact => self.facts.contains(&no),
            UnitKind::Passage => self.sources.contains(&(no / PASSAGES_OF_SOURCE)),
            UnitKind::Source => self.sources.contains(&no),
        }
    }

    /// The blocks of lists that they are in.
    pub fn blocks(&self, kind: UnitKind) -> Vec<i64> {
        let blocks: BTreeSet<i64> = match kind {
            UnitKind::Fact => self.facts.iter().map(|no| block(*no)).collect(),
            UnitKind::Passage => self.sources.iter().map(|no| block(no * PASSAGES_OF_SOURCE)).collect(),
            UnitKind::Source => self.sources.iter().map(|no| block(*no)).collect(),
        };
        blocks.into_iter().collect()
    }
}

impl Filters {
    pub async fn read<'f>(
        conn: &mut Connection,
        repository: RepositoryId,
        filters: impl Iterator<Item = &'f Filter>,
    ) -> Result<Self> {
        let mut read = Self::default();
        for filter in filters {
            let value = &filter.value;
            match filter.field {
                Field::Concept => read.concepts.push(concept(conn, repository, value).await?),
                Field::Context => read.contexts.push(value.to_lowercase()),
                Field::Source => read.sources.push(source(conn, repository, value).await?),
                Field::Language => read.languages.push(language_code(value)),
                Field::Year => read.years.extend(Years::parse(value)),
                Field::Kind => read.kinds.push(value.to_lowercase()),
            }
        }
        read.narrow(conn, repository).await?;
        Ok(read)
    }

    pub const fn is_empty(&self) -> bool {
        self.concepts.is_empty() && self.contexts.is_empty() && !self.asks_for_sources()
    }

    const fn asks_for_sources(&self) -> bool {
        !(self.sources.is_empty()
            && self.languages.is_empty()
            && self.years.is_empty()
            && self.kinds.is_empty())
    }

    /// Looks for the facts of the concepts and sources that are named, where these are few.
    async fn narrow(&mut self, conn: &mut Connection, repository: RepositoryId) -> Result<()> {
        let mut narrow: Option<Narrow> = None;
        let mut of_concepts: Option<BTreeSet<i64>> = None;
        let mut all_known = true;
        for concept in &self.concepts {
            let numbers: Vec<i64> = concept.iter().copied().collect();
            // Of a concept that more facts speak of the others are looked for among the candidates.
            if let Some(facts) = search_filters::list_of_concepts(conn, repository, &numbers, FEW).await? {
                of_concepts = Some(of_concepts.map_or(facts.clone(), |known| &known & &facts));
            } else {
                all_known = false;
            }
        }
        if let Some(facts) = of_concepts {
            let numbers: Vec<i64> = facts.iter().copied().collect();
            let sources = search_filters::list_sources(conn, repository, &numbers).await?;
            let sources: HashSet<i64> = sources.into_iter().map(|(_, source)| source).collect();
            self.speaking = all_known.then(|| sources.clone());
            narrow = Some(Narrow { facts: facts.into_iter().collect(), sources });
        }
        let named = self.sources.iter().map(|test| match test {
            SourceTest::Number(no) => Some(Some(*no)),
            SourceTest::Nothing => Some(None),
            SourceTest::Part(_) => None,
        });
        let named: Option<Vec<Option<i64>>> = named.collect();
        if let Some(named) = named.filter(|named| !named.is_empty()) {
            let sources: Vec<i64> = named.into_iter().flatten().collect();
            if let Some(facts) = search_filters::list_of_sources(conn, repository, &sources, FEW).await? {
                let of_sources =
                    Narrow { facts: facts.into_iter().collect(), sources: sources.into_iter().collect() };
                narrow = Some(match narrow {
                    Some(known) => Narrow {
                        facts: &known.facts & &of_sources.facts,
                        sources: &known.sources & &of_sources.sources,
                    },
                    None => of_sources,
                });
            }
        }
        self.narrow = narrow;
        Ok(())
    }

    /// Whether a candidate is asked for.
    pub fn fits(&self, candidate: &Candidate, known: &Described) -> bool {
        match candidate.kind {
            SearchType::Concepts => {
                let in_context = |concept: &Concept| {
                    self.contexts.iter().all(|context| concept.context.to_lowercase() == *context)
                };
                !self.asks_for_sources()
                    && self.concepts.iter().all(|numbers| numbers.contains(&candidate.no))
                    && (self.contexts.is_empty() || known.concept(candidate.no).is_some_and(in_context))
            }
            // All filters are about sources and concepts.
            SearchType::Reports => self.is_empty(),
            SearchType::Facts => {
                let spoken_of = known.concepts_of(candidate.no);
                let has_context = |context: &String| {
                    let mut concepts = spoken_of.iter().filter_map(|no| known.concept(*no));
                    concepts.any(|concept| concept.context.to_lowercase() == *context)
                };
                self.concepts.iter().all(|numbers| spoken_of.iter().any(|no| numbers.contains(no)))
                    && self.contexts.iter().all(has_context)
                    && self.fits_sources(known.sources_of(candidate))
            }
            SearchType::Passages | SearchType::Sources => {
                let speaks = || self.speaking.as_ref().is_some_and(|known| known.contains(&candidate.source));
                // Only facts and concepts are in contexts.
                self.contexts.is_empty()
                    && (self.concepts.is_empty() || speaks())
                    && self.fits_sources(known.sources_of(candidate))
            }
        }
    }

    /// Whether one of these sources is asked for.
    fn fits_sources<'s>(&self, mut sources: impl Iterator<Item = &'s SourceHit>) -> bool {
        fn any<T>(asked: &[T], is: impl Fn(&T) -> bool) -> bool {
            asked.is_empty() || asked.iter().any(is)
        }
        !self.asks_for_sources()
            || sources.any(|source| {
                let has = |part: &String| {
                    let title = source.title.as_deref().unwrap_or_default();
                    title.to_lowercase().contains(part) || source.url.to_lowercase().contains(part)
                };
                let language = source.language.as_deref().map(language_code);
                let year = source.published_at.map(|day| day.year());
                any(&self.sources, |test| match test {
                    SourceTest::Number(no) => source.no == *no,
                    SourceTest::Part(part) => has(part),
                    SourceTest::Nothing => false,
                }) && any(&self.languages, |asked| language.as_ref() == Some(asked))
                    && any(&self.years, |asked| year.is_some_and(|year| asked.contains(year)))
                    && any(&self.kinds, |asked| source.kind.as_ref() == Some(asked))
            })
    }
}

/// The numbers of a concept by its id, or of all of a name.
async fn concept(conn: &mut Connection, repository: RepositoryId, value: &str) -> Result<BTreeSet<i64>> {
    let ids: Vec<ConceptId> = if let Ok(id) = value.parse::<Uuid>() {
        vec![id.into()]
    } else {
        let found = concepts::list_contexts(conn, repository, &[name_key(value)], CONTEXTS).await?;
        found.into_values().flatten().map(|concept| concept.id).collect()
    };
    Ok(search_filters::list_members(conn, repository, &ids).await?)
}

async fn source(conn: &mut Connection, repository: RepositoryId, value: &str) -> Result<SourceTest> {
    let Ok(id) = value.parse::<Uuid>() else { return Ok(SourceTest::Part(value.to_lowercase())) };
    let found = search_filters::number_sources(conn, repository, &[SourceId::from(id)]).await?;
    Ok(found.first().map_or(SourceTest::Nothing, |no| SourceTest::Number(*no)))
}

/// What is known of candidates.
#[derive(Default)]
pub(super) struct Described {
    sources: HashMap<i64, SourceHit>,
    of_facts: HashMap<i64, Vec<i64>>,
    spoken_of: HashMap<i64, Vec<i64>>,
    concepts: HashMap<i64, Concept>,
}

impl Described {
    /// All that facets count, or what filters ask for.
    pub async fn read(
        conn: &mut Connection,
        repository: RepositoryId,
        candidates: &[Candidate],
        filters: &Filters,
        facets: bool,
    ) -> Result<Self> {
        let of = |kind: SearchType| -> Vec<i64> {
            candidates
                .iter()
                .filter(|candidate| candidate.kind == kind)
                .map(|candidate| candidate.no)
                .collect()
        };
        let (stated, mut known) = (of(SearchType::Facts), Self::default());
        if facets || filters.asks_for_sources() {
            for (fact, source) in search_filters::list_sources(conn, repository, &stated).await? {
                known.of_facts.entry(fact).or_default().push(source);
            }
            let others = candidates.iter().filter(|candidate| candidate.kind != SearchType::Facts);
            let mut sources: BTreeSet<i64> = others.map(|candidate| candidate.source).collect();
            sources.extend(known.of_facts.values().flatten());
            let sources: Vec<i64> = sources.into_iter().collect();
            known.sources = search_hits::get_sources(conn, repository, &sources).await?;
        }
        if facets || !filters.concepts.is_empty() || !filters.contexts.is_empty() {
            for (fact, concept) in search_filters::list_concepts(conn, repository, &stated).await? {
                known.spoken_of.entry(fact).or_default().push(concept);
            }
        }
        if facets || !filters.contexts.is_empty() {
            let mut numbers: BTreeSet<i64> = known.spoken_of.values().flatten().copied().collect();
            numbers.extend(of(SearchType::Concepts));
            let numbers: Vec<i64> = numbers.into_iter().collect();
            let concepts = concepts::list_numbered(conn, repository, &numbers).await?;
            known.concepts = concepts.into_iter().map(|concept| (concept.no, concept)).collect();
        }
        Ok(known)
    }

    pub fn concept(&self, no: i64) -> Option<&Concept> {
        self.concepts.get(&no)
    }

    /// The concepts that a fact speaks of.
    pub fn concepts_of(&self, fact: i64) -> &[i64] {
        self.spoken_of.get(&fact).map(Vec::as_slice).unwrap_or_default()
    }

    /// The sources of a fact, or that of a passage, or the source itself.
    pub fn sources_of(&self, candidate: &Candidate) -> impl Iterator<Item = &SourceHit> {
        let numbers = match candidate.kind {
            SearchType::Facts => self.of_facts.get(&candidate.no).cloned().unwrap_or_default(),
            SearchType::Passages | SearchType::Sources => vec![candidate.source],
            SearchType::Concepts | SearchType::Reports => Vec::new(),
        };
        numbers.into_iter().filter_map(|no| self.sources.get(&no))
    }
}
