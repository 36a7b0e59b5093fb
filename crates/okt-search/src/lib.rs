//! Search without a database: words and their lexemes, queries, lists of the texts that have a word, ranking,
//! fusion, the hop over concepts, and the metrics that say whether any of it helps.
//!
//! Pure: texts and numbers in, texts and numbers out. Nothing here knows SQL, the network, files, a clock or
//! async code, nor who embeds a text. The lexemes of [`words`] are the only ones: a database's own
//! dictionaries are never used, so a text and a question about it always meet.
//!
//! To add a language: a line of codes, stemmer and stop words in `language.rs`. To add a field that a query
//! can filter by: a variant of [`Field`].

mod bm25;
mod fits;
mod fold;
mod fuse;
mod highlight;
mod hop;
mod language;
mod metrics;
mod names;
mod postings;
mod query;
mod random;
mod rank;
mod rerank;
mod words;

#[cfg(test)]
mod tests;

pub use bm25::{Bm25, Statistics, Weight};
pub use fits::fits;
pub use fuse::{by_score, reciprocal, scaled};
pub use highlight::highlights;
pub use hop::{ANCHOR, Graph, Hop, Hopped, anchors, named};
pub use language::{language_code, language_of};
pub use metrics::{Interval, hits_at, mean, ndcg_at, paired_interval, recall_at, reciprocal_rank};
pub use names::{names, title_name};
pub use postings::{Posting, block, decode, encode, first_of};
pub use query::{Field, Filter, Phrase, Prefix, Query, Term, Years};
pub use rank::{KeptList, TermLists, all_of, rank};
pub use rerank::reranked;
pub use words::{WORDS_VERSION, Word, words};
