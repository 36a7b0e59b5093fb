//! Which facts are near a sentence: by vectors and by words.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use okt_config::Config;
use okt_model::{EmbeddingSpace, Error, FactId, RepositoryId, Result, UnitKind};
use okt_search::{Bm25, Query, TermLists, rank};
use okt_store::search_hits::{self, FactHit, SourceHit};
use okt_store::search_units::{self, Range, Totals};
use okt_store::{Databases, Tx, source_marks};
use okt_vectors::{Near, Space, Tenant, Vectors};
use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::turn;
use crate::words::{NEAR, SharedWords};

/// So many of the nearest are looked at for each fact that a sentence may be shown with.
const OVER_FETCH: u32 = 6;
/// As many facts are found by words; then those that share too few of them are left out.
const BY_WORDS: usize = 64;
/// So many entries of the lists of its words are read for a sentence, of the rarest words first.
const MOST_ENTRIES: u64 = 200_000;
/// The lists of so many sentences are held at once.
const LISTED: usize = 8;

/// What of a sentence becomes a vector: as much as every model takes, and more than a claim needs.
const EMBEDDED: usize = 1_000;

/// What of a sentence becomes a vector. Words are compared of the whole.
pub fn embedded(text: &str) -> &str {
    text.char_indices().nth(EMBEDDED).map_or(text, |(end, _)| &text[..end])
}

/// A sentence, and its vector if it has one.
#[derive(Clone, Copy, Debug)]
pub struct Sentence<'a> {
    pub text: &'a str,
    pub vector: Option<&'a [f32]>,
}

/// A fact that is near a sentence.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbour {
    pub no: i64,
    pub id: FactId,
    pub text: String,
    /// ISO 639, that of its first source.
    pub language: Option<String>,
    /// The first sources that state it, by their numbers.
    pub sources: Vec<i64>,
    /// The cosine of the two vectors, where both have one.
    pub cosine: Option<f32>,
    /// What facts are ordered by: the cosine, or how many words are shared if that is more.
    pub score: f32,
}

/// What facts of a repository are looked for with.
pub struct Searching<'a> {
    pub config: &'a Config,
    pub databases: &'a Databases,
    pub repository: RepositoryId,
    pub database: &'a str,
    /// Where the vectors of facts are; without them only words are compared.
    pub vectors: Option<(&'a Vectors, &'a EmbeddingSpace)>,
    pub language: Option<&'a str>,
    /// Whoever keeps a core busy while somebody waits takes turns with others.
    pub turns: Option<&'a Arc<Semaphore>>,
}

/// What was found for a sentence before it is looked at: facts by their numbers, with the cosines that are known.
pub type Candidates = BTreeMap<i64, Option<f32>>;

/// Whether a fact is near a sentence, from what they have in common.
pub fn is_near(config: &Config, cosine: Option<f32>, shared: f32) -> bool {
    is_over(threshold(config), cosine, shared)
}

fn is_over(threshold: f32, cosine: Option<f32>, shared: f32) -> bool {
    cosine.is_some_and(|cosine| cosine >= threshold) || shared >= NEAR
}

fn threshold(config: &Config) -> f32 {
    #[expect(clippy::cast_possible_truncation, reason = "cosines have no more digits than that")]
    let threshold = config.providers.reports.similarity_threshold as f32;
    threshold
}

impl Searching<'_> {
    /// The facts that are near each of these sentences, the nearest first; no more for each than one may be shown with.
    pub async fn find(&self, sentences: &[Sentence<'_>]) -> Result<Vec<Vec<Neighbour>>> {
        let mut found = self.by_vectors(sentences).await?;
        self.by_words(sentences, &mut found).await?;
        self.near(sentences, found).await
    }

    /// Those of these candidates that are near. Facts that rest on retracted sources alone count for nothing, so they take the place of
    /// no other.
    pub async fn near(
        &self,
        sentences: &[Sentence<'_>],
        found: Vec<Candidates>,
    ) -> Result<Vec<Vec<Neighbour>>> {
        let mut tx = self.databases.begin_to_read(self.database, self.repository).await?;
        let numbers: BTreeSet<i64> = found.iter().flat_map(BTreeMap::keys).copied().collect();
        let numbers: Vec<i64> = numbers.into_iter().collect();
        let facts = search_hits::get_facts(&mut tx, self.repository, &numbers).await?;
        let sources: BTreeSet<i64> =
            facts.values().filter_map(|fact| fact.sources.first()).copied().collect();
        let sources: Vec<i64> = sources.into_iter().collect();
        let sources = search_hits::get_sources(&mut tx, self.repository, &sources).await?;
        tx.commit().await?;
        let texts: Vec<String> = sentences.iter().map(|sentence| sentence.text.to_owned()).collect();
        let threshold = threshold(self.config);
        let mut near = turn(self.turns, move || {
            let pairs = texts.iter().zip(found);
            pairs.map(|(text, found)| compared(text, found, &facts, &sources, threshold)).collect::<Vec<_>>()
        })
        .await?;
        let numbers: BTreeSet<i64> = near.iter().flatten().map(|fact| fact.no).collect();
        let numbers: Vec<i64> = numbers.into_iter().collect();
        let mut tx = self.databases.begin_to_read(self.database, self.repository).await?;
        let retracted = source_marks::list_retracted_facts(&mut tx, self.repository, &numbers).await?;
        tx.commit().await?;
        let most =
            usize::try_from(self.config.providers.reports.max_facts_per_sentence).unwrap_or(usize::MAX);
        for near in &mut near {
            let mut kept = [0, 0];
            near.retain(|fact| {
                let kept = &mut kept[usize::from(retracted.contains(&fact.no))];
                *kept += 1;
                *kept <= most
            });
        }
        Ok(near)
    }

    /// The facts that are near each sentence by their vectors. One without a direction is near nothing.
    pub async fn by_vectors(&self, sentences: &[Sentence<'_>]) -> Result<Vec<Candidates>> {
        let mut found = vec![Candidates::new(); sentences.len()];
        let Some((vectors, space)) = self.vectors else { return Ok(found) };
        let (places, queries): (Vec<usize>, Vec<Vec<f32>>) = sentences
            .iter()
            .enumerate()
            .filter_map(|(at, sentence)| {
                Some((at, sentence.vector.filter(|vector| Space::has_direction(vector))?))
            })
            .map(|(at, vector)| (at, vector.to_vec()))
            .unzip();
        if queries.is_empty() {
            return Ok(found);
        }
        let reports = &self.config.providers.reports;
        let limit = reports.max_facts_per_sentence.saturating_mul(OVER_FETCH);
        let tenant = Tenant::new(self.repository, self.database);
        let near = vectors
            .store()
            .nearest(&tenant, &vectors.space(space), &queries, limit, threshold(self.config))
            .await?;
        let ids: BTreeSet<Uuid> = near.iter().flatten().map(|near| near.id).collect();
        let ids: Vec<Uuid> = ids.into_iter().collect();
        let mut tx = self.databases.begin_to_read(self.database, self.repository).await?;
        let numbers = search_hits::number_facts(&mut tx, self.repository, &ids).await?;
        tx.commit().await?;
        for (at, near) in places.into_iter().zip(near) {
            let known =
                near.into_iter().filter_map(|Near { id, cosine }| Some((numbers.get(&id)?.0, Some(cosine))));
            found[at].extend(known);
        }
        Ok(found)
    }

    /// Adds the facts that have the most of the rare words of each sentence. Whoever stops waiting has those that were found by then.
    pub async fn by_words(&self, sentences: &[Sentence<'_>], found: &mut [Candidates]) -> Result<()> {
        for (sentences, found) in sentences.chunks(LISTED).zip(found.chunks_mut(LISTED)) {
            let mut tx = self.databases.begin_to_read(self.database, self.repository).await?;
            let totals = search_units::totals(&mut tx, self.repository).await?;
            let Some(statistics) = totals.statistics.get(&UnitKind::Fact).copied() else { return Ok(()) };
            let mut lists = Vec::new();
            for sentence in sentences {
                lists.push(self.lists(&mut tx, &totals, sentence.text).await?);
            }
            tx.commit().await?;
            let best = turn(self.turns, move || {
                let best = lists.iter().map(|lists| rank(lists, statistics, Bm25::FACTS, BY_WORDS, |_| true));
                best.collect::<Option<Vec<_>>>()
            });
            let best = best.await?.ok_or_else(|| Error::internal("a list of texts can't be read"))?;
            for (found, best) in found.iter_mut().zip(best) {
                for (no, _) in best {
                    found.entry(no).or_insert(None);
                }
            }
        }
        Ok(())
    }

    /// The lists of the rare words of a sentence.
    async fn lists(&self, tx: &mut Tx, totals: &Totals, text: &str) -> Result<Vec<TermLists>> {
        let mut languages: Vec<&str> = totals.languages.iter().map(String::as_str).collect();
        languages.extend(self.language);
        let query = Query::plain(text, &languages);
        let all: BTreeSet<&String> = query.terms.iter().flat_map(|term| &term.alternatives).collect();
        let all: Vec<String> = all.into_iter().cloned().collect();
        let counts = search_units::count(tx, self.repository, UnitKind::Fact, &all).await?;
        let documents = |alternatives: &[String]| -> u64 {
            alternatives.iter().filter_map(|word| counts.get(word)).map(|listed| listed.documents).sum()
        };
        let mut terms: Vec<(u64, &[String])> = query
            .terms
            .iter()
            .map(|term| (documents(&term.alternatives), term.alternatives.as_slice()))
            .filter(|(documents, _)| *documents > 0)
            .collect();
        terms.sort_by_key(|(documents, _)| *documents);
        let mut entries = 0;
        let few = terms.iter().take_while(|(documents, _)| {
            entries += documents;
            entries <= MOST_ENTRIES
        });
        let few = few.count();
        terms.truncate(few);
        let words: BTreeSet<&String> = terms.iter().flat_map(|(_, alternatives)| *alternatives).collect();
        let words: Vec<String> = words.into_iter().cloned().collect();
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let lists = search_units::read(tx, self.repository, UnitKind::Fact, &words, Range::default()).await?;
        let lists = terms.into_iter().map(|(documents, alternatives)| TermLists {
            documents,
            lists: of(alternatives, &lists),
            follows: false,
        });
        Ok(lists.collect())
    }
}

/// Those of the candidates of a sentence that are near it, the nearest first.
fn compared(
    text: &str,
    found: Candidates,
    facts: &HashMap<i64, FactHit>,
    sources: &HashMap<i64, SourceHit>,
    threshold: f32,
) -> Vec<Neighbour> {
    let mut words = SharedWords::default();
    let mut near: BTreeMap<i64, Neighbour> = BTreeMap::new();
    for (asked, cosine) in found {
        let Some(fact) = facts.get(&asked) else { continue };
        let source = fact.sources.first().and_then(|no| sources.get(no));
        let language = source.and_then(|source| source.language.clone());
        let shared = words.with(text, &fact.text, language.as_deref());
        // A duplicate that words have found is not its canonical fact, which has a vector of its own.
        let cosine = cosine.filter(|_| fact.no == asked);
        if !is_over(threshold, cosine, shared) {
            continue;
        }
        let neighbour = Neighbour {
            no: fact.no,
            id: fact.id,
            text: fact.text.clone(),
            language,
            sources: fact.sources.clone(),
            cosine,
            score: cosine.map_or(shared, |cosine| cosine.max(shared)),
        };
        let known = near.entry(fact.no).or_insert_with(|| neighbour.clone());
        if known.cosine.is_none() && (cosine.is_some() || known.score < neighbour.score) {
            *known = neighbour;
        }
    }
    let mut near: Vec<Neighbour> = near.into_values().collect();
    near.sort_by(|one, other| other.score.total_cmp(&one.score).then(one.no.cmp(&other.no)));
    near
}

fn of(words: &[String], lists: &HashMap<String, Vec<okt_search::KeptList>>) -> Vec<okt_search::KeptList> {
    words.iter().filter_map(|word| lists.get(word)).flatten().cloned().collect()
}
