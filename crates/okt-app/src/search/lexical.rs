//! Texts by their words.

use std::collections::{BTreeMap, HashMap};

use okt_auth::RepoAccess;
use okt_model::{Error, Result, SearchType, UnitKind};
use okt_search::{Bm25, Posting, Query, TermPostings, block, merged, rank, scaled};
use okt_store::Connection;
use okt_store::search_units::{self, Totals};

use super::{CANDIDATES, Id, WHOLE, type_of};
use crate::App;

/// So many entries of lists are read. Words that more texts have only add to the score of what rarer ones have found.
const MOST_ENTRIES: u64 = 3_000_000;
/// So many words may begin as the last one of the question does.
const MOST_BEGINNINGS: i64 = 50;

/// What words have found.
#[derive(Default)]
pub(super) struct Ranked {
    /// The best first.
    pub scores: Vec<(Id, f64)>,
    /// The source of each.
    pub sources: HashMap<Id, i64>,
}

impl App {
    /// The texts of these types that have words of a question.
    pub(super) async fn ranked(
        &self,
        scope: &RepoAccess,
        query: &Query,
        totals: &Totals,
        types: &[SearchType],
    ) -> Result<Ranked> {
        let mut tx = self.databases().begin_to_read(scope.database(), scope.repository()).await?;
        let mut lists: BTreeMap<UnitKind, Vec<(i64, f64)>> = BTreeMap::new();
        for kind in UnitKind::ALL {
            // Whole sources count for their facts and passages too.
            let wanted = kind == UnitKind::Source || types.contains(&type_of(kind));
            let Some(statistics) = totals.statistics.get(&kind).filter(|_| wanted) else { continue };
            let terms = read(&mut tx, scope, kind, query).await?;
            let (statistics, measure) = (*statistics, measure(kind));
            let ranking = move || rank(&terms, statistics, measure, CANDIDATES);
            let ranked = tokio::task::spawn_blocking(ranking).await.map_err(Error::internal)?;
            // What is not in a list that is not full has none of the words.
            let floor = if ranked.len() < CANDIDATES { Some(0.0) } else { None };
            lists.insert(kind, scaled(&ranked, floor));
        }
        let facts: Vec<i64> = lists.get(&UnitKind::Fact).into_iter().flatten().map(|(no, _)| *no).collect();
        let owners = search_units::get(&mut tx, scope.repository(), UnitKind::Fact, &facts).await?;
        tx.commit().await?;
        let owners: HashMap<i64, i64> = owners.into_iter().map(|unit| (unit.no, unit.source_no)).collect();
        Ok(Ranked::mixed(&lists, &owners, types))
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

/// The lists of the terms of a question: of rare ones all, of frequent ones those of the texts that rare ones are in.
async fn read(
    conn: &mut Connection,
    scope: &RepoAccess,
    kind: UnitKind,
    query: &Query,
) -> Result<Vec<TermPostings>> {
    let repository = scope.repository();
    let mut terms: Vec<Vec<String>> = Vec::new();
    for term in query.ranking() {
        let mut words = term.alternatives.clone();
        if term.prefix {
            for beginning in &term.alternatives {
                let more =
                    search_units::list_beginning(conn, repository, kind, beginning, MOST_BEGINNINGS).await?;
                words.extend(more);
            }
            words.sort_unstable();
            words.dedup();
        }
        terms.push(words);
    }
    let all: Vec<String> = terms.iter().flatten().cloned().collect();
    let counts = search_units::count(conn, repository, kind, &all).await?;
    let documents = |words: &[String]| words.iter().filter_map(|word| counts.get(word)).sum::<u64>();
    terms.retain(|words| documents(words) > 0);
    terms.sort_by_key(|words| documents(words));
    let (mut lists, mut sum, mut blocks) = (Vec::new(), 0, Vec::new());
    for words in &terms {
        let count = documents(words);
        let follows = !lists.is_empty() && sum + count > MOST_ENTRIES;
        sum += count;
        if follows && blocks.is_empty() {
            blocks = lists
                .iter()
                .flat_map(|list: &TermPostings| list.postings.iter().map(|posting| block(posting.unit)))
                .collect();
            blocks.sort_unstable();
            blocks.dedup();
        }
        let within = follows.then_some(blocks.as_slice());
        let found = search_units::read(conn, repository, kind, words, within).await?;
        let found: Vec<Vec<Posting>> = found.into_values().flatten().collect();
        lists.push(TermPostings { documents: count, postings: merged(found), follows });
    }
    Ok(lists)
}

#[cfg(test)]
mod tests {
    use super::*;

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
