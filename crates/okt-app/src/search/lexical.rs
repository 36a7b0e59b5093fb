//! Texts by their words.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use okt_auth::RepoAccess;
use okt_model::{Error, RepositoryId, Result, SearchType, UnitKind};
use okt_search::{Bm25, KeptList, Query, Statistics, Term, TermLists, rank, scaled};
use okt_store::Connection;
use okt_store::search_units::{self, Listed, Range, Totals};

use super::filters::Narrow;
use super::{CANDIDATES, Id, WHOLE, type_of};
use crate::App;

/// So many entries of lists are read for a kind of text. Words that more texts have only add to the score of what rarer ones have found.
const MOST_ENTRIES: u64 = 3_000_000;
/// So many entries may be read beside them to add to scores. Words that are more frequent than that are left out.
const MOST_FOLLOWING: u64 = 3_000_000;
/// So many words may begin as the last one of the question does.
const MOST_BEGINNINGS: i64 = 50;
/// Texts that a list can have at most.
const IN_BLOCK: u64 = 4_096;

/// What words have found.
#[derive(Default)]
pub(super) struct Ranked {
    /// The best first.
    pub scores: Vec<(Id, f64)>,
    /// The source of each.
    pub sources: HashMap<Id, i64>,
}

/// The lists of the words of a question, as they are kept.
#[derive(Default)]
pub(super) struct Lists(BTreeMap<UnitKind, (Statistics, Vec<TermLists>)>);

impl Lists {
    /// Of the words of a question, for texts of these types; with few texts to look among, only the lists that these are in.
    pub async fn read(
        conn: &mut Connection,
        repository: RepositoryId,
        query: &Query,
        totals: &Totals,
        types: &[SearchType],
        narrow: Option<&Narrow>,
    ) -> Result<Self> {
        let mut lists = BTreeMap::new();
        for kind in UnitKind::ALL {
            // Whole sources count for their facts and passages too.
            let wanted = kind == UnitKind::Source || types.contains(&type_of(kind));
            let Some(statistics) = totals.statistics.get(&kind).filter(|_| wanted) else { continue };
            let blocks = narrow.map(|narrow| narrow.blocks(kind));
            let terms = read(conn, repository, kind, query, blocks.as_deref()).await?;
            lists.insert(kind, (*statistics, terms));
        }
        Ok(Self(lists))
    }

    /// The best texts of each kind.
    fn rank(&self, narrow: Option<&Narrow>) -> Option<BTreeMap<UnitKind, Vec<(i64, f64)>>> {
        let mut ranked = BTreeMap::new();
        for (kind, (statistics, terms)) in &self.0 {
            let is_asked_for = |no| narrow.is_none_or(|narrow| narrow.has(*kind, no));
            let best = rank(terms, *statistics, measure(*kind), CANDIDATES, is_asked_for)?;
            // What is not in a list that is not full has none of the words.
            let floor = if best.len() < CANDIDATES { Some(0.0) } else { None };
            ranked.insert(*kind, scaled(&best, floor));
        }
        Some(ranked)
    }
}

impl App {
    /// The texts of these types that have words of a question.
    pub(super) async fn ranked(
        &self,
        scope: &RepoAccess,
        lists: Lists,
        types: &[SearchType],
        narrow: Option<Narrow>,
    ) -> Result<Ranked> {
        let lists = self
            .ranking(move || lists.rank(narrow.as_ref()))
            .await?
            .ok_or_else(|| Error::internal("a list of texts can't be read"))?;
        let facts: Vec<i64> = lists.get(&UnitKind::Fact).into_iter().flatten().map(|(no, _)| *no).collect();
        let mut tx = self.databases().begin_to_read(scope.database(), scope.repository()).await?;
        let owners = search_units::get(&mut tx, scope.repository(), UnitKind::Fact, &facts).await?;
        tx.commit().await?;
        let owners: HashMap<i64, i64> = owners.into_iter().map(|unit| (unit.no, unit.source_no)).collect();
        Ok(Ranked::mixed(&lists, &owners, types))
    }

    /// Goes through lists on a thread of its own, when it is this search's turn: no more at once than there are cores, so that
    /// other requests do not wait for them.
    pub(super) async fn ranking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        let turn = self.turns_to_rank().clone().acquire_owned().await.map_err(Error::internal)?;
        let work = move || {
            let done = work();
            drop(turn);
            done
        };
        tokio::task::spawn_blocking(work).await.map_err(Error::internal)
    }
}

fn measure(kind: UnitKind) -> Bm25 {
    match kind {
        UnitKind::Fact => Bm25::FACTS,
        UnitKind::Passage | UnitKind::Source => Bm25::PASSAGES,
    }
}

impl Ranked {
    /// Each text with its own score and that of its source; a source with that of the best of its texts.
    fn mixed(
        lists: &BTreeMap<UnitKind, Vec<(i64, f64)>>,
        owners: &HashMap<i64, i64>,
        types: &[SearchType],
    ) -> Self {
        let whole: HashMap<i64, f64> = lists.get(&UnitKind::Source).into_iter().flatten().copied().collect();
        let mut best: HashMap<i64, f64> = HashMap::new();
        let (mut scores, mut sources) = (Vec::new(), HashMap::new());
        for (kind, list) in lists.iter().filter(|(kind, _)| **kind != UnitKind::Source) {
            for (no, score) in list {
                let source = match kind {
                    UnitKind::Fact => owners.get(no).copied(),
                    UnitKind::Passage | UnitKind::Source => Some(no / 256),
                };
                // It is gone meanwhile.
                let Some(source) = source else { continue };
                let most = best.entry(source).or_default();
                *most = most.max(*score);
                let id = (type_of(*kind), *no);
                let of_source = whole.get(&source).copied().unwrap_or_default();
                scores.push((id, WHOLE * of_source + (1.0 - WHOLE) * score));
                sources.insert(id, source);
            }
        }
        if types.contains(&SearchType::Sources) {
            for (no, score) in &whole {
                let of_text = best.get(no).copied().unwrap_or_default();
                scores.push(((SearchType::Sources, *no), WHOLE * score + (1.0 - WHOLE) * of_text));
                sources.insert((SearchType::Sources, *no), *no);
            }
        }
        Self { scores: scaled(&scores, Some(0.0)), sources }
    }
}

/// The words that a term stands for, in texts of a kind.
pub(super) async fn spellings(
    conn: &mut Connection,
    repository: RepositoryId,
    kind: UnitKind,
    term: &Term,
) -> Result<Vec<String>> {
    let mut words: BTreeSet<String> = term.alternatives.iter().cloned().collect();
    if term.prefix {
        for beginning in &term.alternatives {
            let more =
                search_units::list_beginning(conn, repository, kind, beginning, MOST_BEGINNINGS).await?;
            words.extend(more);
        }
    }
    Ok(words.into_iter().collect())
}

/// A term, and how much there is to read for it.
pub(super) struct Counted {
    pub words: Vec<String>,
    pub listed: Listed,
}

/// What the terms stand for, and how much there is to read for each; without those that no text has.
pub(super) async fn counted(
    conn: &mut Connection,
    repository: RepositoryId,
    kind: UnitKind,
    terms: Vec<Vec<String>>,
) -> Result<Vec<Counted>> {
    let all: BTreeSet<&String> = terms.iter().flatten().collect();
    let all: Vec<String> = all.into_iter().cloned().collect();
    let counts = search_units::count(conn, repository, kind, &all).await?;
    let sum = |words: &[String]| {
        words.iter().filter_map(|word| counts.get(word)).fold(Listed::default(), |sum, more| Listed {
            documents: sum.documents + more.documents,
            blocks: sum.blocks + more.blocks,
        })
    };
    let counted = terms.into_iter().map(|words| Counted { listed: sum(&words), words });
    Ok(counted.filter(|term| term.listed.documents > 0).collect())
}

/// The lists of the terms of a question: of rare ones all, of frequent ones those of the texts that rare ones are in.
async fn read(
    conn: &mut Connection,
    repository: RepositoryId,
    kind: UnitKind,
    query: &Query,
    blocks: Option<&[i64]>,
) -> Result<Vec<TermLists>> {
    let mut terms = Vec::new();
    for term in query.ranking() {
        terms.push(spellings(conn, repository, kind, term).await?);
    }
    let mut terms = counted(conn, repository, kind, terms).await?;
    terms.sort_by_key(|term| term.listed.documents);
    // Of few blocks no more can be read than is in them.
    let most = blocks
        .map_or(u64::MAX, |blocks| u64::try_from(blocks.len()).unwrap_or(u64::MAX).saturating_mul(IN_BLOCK));
    let work = |term: &Counted| term.listed.documents.min(most);
    let (leading, following) = planned(&terms.iter().map(work).collect::<Vec<u64>>());
    // A word that half of a very large repository has is looked for in the newest texts.
    let each = terms.first().filter(|term| work(term) > MOST_ENTRIES).map(|term| {
        let part = u128::from(term.listed.blocks) * u128::from(MOST_ENTRIES) / u128::from(work(term));
        i64::try_from(part).unwrap_or(i64::MAX).max(1)
    });
    let mut lists = Vec::new();
    let first = words(&terms[..leading]);
    let found =
        search_units::read(conn, repository, kind, &first, Range { blocks, each, ..Range::default() })
            .await?;
    let led: BTreeSet<i64> = found.values().flatten().map(|list| list.block).collect();
    let led: Vec<i64> = led.into_iter().collect();
    lists.extend(terms[..leading].iter().map(|term| of_term(term, &found, false)));
    let second = words(&terms[leading..leading + following]);
    if !second.is_empty() {
        let range = Range { blocks: Some(&led), ..Range::default() };
        let found = search_units::read(conn, repository, kind, &second, range).await?;
        lists.extend(terms[leading..leading + following].iter().map(|term| of_term(term, &found, true)));
    }
    Ok(lists)
}

/// Each once.
pub(super) fn words(terms: &[Counted]) -> Vec<String> {
    let words: BTreeSet<&String> = terms.iter().flat_map(|term| &term.words).collect();
    words.into_iter().cloned().collect()
}

pub(super) fn of_term(term: &Counted, found: &HashMap<String, Vec<KeptList>>, follows: bool) -> TermLists {
    let lists = term.words.iter().filter_map(|word| found.get(word)).flatten().cloned().collect();
    TermLists { documents: term.listed.documents, lists, follows }
}

/// How many of the first terms lead and how many of those behind them follow, from how much there is to read for each, the least
/// first.
fn planned(work: &[u64]) -> (usize, usize) {
    let within = |work: &[u64], most: u64| {
        let mut sum = 0_u64;
        work.iter()
            .take_while(|more| {
                sum = sum.saturating_add(**more);
                sum <= most
            })
            .count()
    };
    let leading = within(work, MOST_ENTRIES).max(usize::from(!work.is_empty()));
    (leading, within(&work[leading..], MOST_FOLLOWING))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_bounded_and_rare_words_come_first() {
        assert_eq!(planned(&[]), (0, 0));
        assert_eq!(planned(&[5, 900, 2_000_000]), (3, 0));
        assert_eq!(planned(&[5, 1_500_000, 2_000_000, 2_500_000]), (2, 1));
        assert_eq!(planned(&[900_000_000, 900_000_000]), (1, 0));
        assert_eq!(planned(&[u64::MAX, u64::MAX]), (1, 0));
    }

    #[test]
    fn a_text_counts_with_its_source() {
        // The second source is about it; the first one has a sentence that is a little more like the question.
        let lists = BTreeMap::from([
            (UnitKind::Fact, vec![(10, 1.0), (20, 0.9)]),
            (UnitKind::Passage, vec![(512, 0.5)]),
            (UnitKind::Source, vec![(2, 1.0), (1, 0.2)]),
        ]);
        let owners = HashMap::from([(10, 1), (20, 2)]);
        let all = [SearchType::Facts, SearchType::Passages, SearchType::Sources];
        let ranked = Ranked::mixed(&lists, &owners, &all);
        let order: Vec<Id> = ranked.scores.iter().map(|(id, _)| *id).collect();
        assert_eq!(
            order,
            [
                (SearchType::Facts, 20),
                (SearchType::Sources, 2),
                (SearchType::Passages, 512),
                (SearchType::Facts, 10),
                (SearchType::Sources, 1)
            ]
        );
        assert_eq!(ranked.sources[&(SearchType::Passages, 512)], 2);
        let only = Ranked::mixed(&lists, &HashMap::new(), &[SearchType::Facts]);
        assert!(
            only.sources.keys().all(|(kind, _)| *kind != SearchType::Sources),
            "nobody asked for sources"
        );
    }
}
