//! The facts and sources of a list that have all the words of its `q`.

use std::collections::BTreeSet;

use okt_auth::RepoAccess;
use okt_model::{Error, Result, UnitKind};
use okt_search::{Prefix, Query, Term, TermLists, all_of, block, first_of};
use okt_store::search_units::{self, Range};

use super::lexical::{counted, of_term, spellings, words};
use crate::App;

/// So many are handed on at once.
const MOST: usize = 10_000;
/// Lists that are read at once, of all words together: about three million entries.
const LISTS: usize = 750;

/// Texts that have all the words of a question.
#[derive(Debug, Default)]
pub(crate) struct Having {
    /// The last ones first.
    pub numbers: Vec<i64>,
    /// There may be more before this number.
    pub next: Option<i64>,
}

impl App {
    /// The last texts of a kind, before a number, that have all the words of a question. The last word may still be growing.
    pub(crate) async fn having(
        &self,
        scope: &RepoAccess,
        kind: UnitKind,
        q: &str,
        before: Option<i64>,
    ) -> Result<Having> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let totals = search_units::totals(&mut tx, repository).await?;
        let languages: Vec<&str> = totals.languages.iter().map(String::as_str).collect();
        // There are no operators here.
        let plain = q.replace([':', '-', '"', '„', '“', '”'], " ");
        let query = Query::parse(&plain, &languages, Prefix::LastWord);
        let mut terms = Vec::new();
        for term in needed(&query) {
            terms.push(spellings(&mut tx, repository, kind, term).await?);
        }
        let count = terms.len();
        let mut terms = counted(&mut tx, repository, kind, terms).await?;
        terms.sort_by_key(|term| term.listed.documents);
        let Some((rarest, others)) = terms.split_first().filter(|_| terms.len() == count) else {
            return Ok(Having::default());
        };
        let spelled: usize = terms.iter().map(|term| term.words.len()).sum();
        let each = (LISTS / spelled.max(1)).max(1);
        let range = Range {
            up_to: before.map(|no| block(no - 1)),
            each: Some(i64::try_from(each).map_err(Error::internal)?),
            ..Range::default()
        };
        let found = search_units::read(&mut tx, repository, kind, &rarest.words, range).await?;
        // Where not all lists of a spelling were read, others are not gone through further than that either.
        let full = found.values().filter(|lists| lists.len() == each);
        let end = full.filter_map(|lists| lists.last()).map(|list| list.block).max();
        let blocks: BTreeSet<i64> = found.values().flatten().map(|list| list.block).collect();
        let blocks: Vec<i64> =
            blocks.into_iter().filter(|block| end.is_none_or(|end| *block >= end)).collect();
        let mut lists: Vec<TermLists> = vec![of_term(rarest, &found, false)];
        lists[0].lists.retain(|list| blocks.binary_search(&list.block).is_ok());
        let range = Range { blocks: Some(&blocks), ..Range::default() };
        let found = search_units::read(&mut tx, repository, kind, &words(others), range).await?;
        tx.commit().await?;
        lists.extend(others.iter().map(|term| of_term(term, &found, false)));
        let numbers = self.ranking(move || all_of(&lists)).await?;
        let mut numbers = numbers.ok_or_else(|| Error::internal("a list of texts can't be read"))?;
        numbers.retain(|no| before.is_none_or(|before| *no < before));
        let mut next = end.map(first_of);
        if numbers.len() > MOST {
            numbers.truncate(MOST);
            next = numbers.last().copied();
        }
        Ok(Having { numbers, next })
    }
}

/// The terms that a text has to have. One that texts in some language lack is asked for only if there is no other.
fn needed(query: &Query) -> Vec<&Term> {
    let all = query.ranking();
    let certain: Vec<&Term> = all.iter().copied().filter(|term| !term.optional).collect();
    if certain.is_empty() { all } else { certain }
}
