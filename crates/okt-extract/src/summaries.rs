//! What is known about a concept, as a text of which every sentence cites the facts that it rests on.
//!
//! A model is shown numbered facts and answers with sentences and numbers; it never sees or writes an id. What it says is
//! data: a sentence is kept if it cites a fact that was given and has no number and no name that its facts do not have, and it
//! is written as plain text. So the Markdown that comes of it holds no HTML, no links but citations, and no images but those
//! offered.
//!
//! Slices are short texts about some facts of a concept, syntheses one text over its slices in all contexts. Without a model,
//! [`outline`] picks the facts that say most.
//!
//! The form of citations is in `citations.rs`, what of an answer is kept in `kept.rs` and `support.rs`.

mod citations;
pub(crate) mod claims;
mod cut;
mod kept;
pub(crate) mod markdown;
mod outline;
mod picker;
mod slice;
pub(crate) mod support;
mod synthesis;

use okt_model::FactId;

pub use citations::{Citation, citations, cite};
pub use claims::{Claim, claims};
pub use cut::{only_citing, only_showing};
pub use markdown::escaped;
pub use outline::{Outlined, outline, outline_text};
pub use picker::{Candidate, picker_question, read_picked};
pub use slice::{Topic, read_slice, slice_question};
pub use synthesis::{
    InContext, Material, Offered, Related, RelatedSynthesis, one_sided, read_synthesis, synthesis_question,
};

/// A fact that a text may cite. It is shown with its place in the list, from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known<'f> {
    pub id: FactId,
    pub text: &'f str,
    /// How many sources state it.
    pub sources: u32,
}

/// Which answer to a question is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// It may be complained about: what does not resolve is a misfit.
    First,
    /// The answer to the complaint, a part of a truncated answer, or an answer that was stored because it was taken before:
    /// what does not resolve is left out and counted.
    Last,
}

/// A text that may be stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Markdown: sentences with their citations, and images.
    pub content: String,
    /// The places of the facts that it cites, in the list that was given, ascending.
    pub cited: Vec<usize>,
    /// The places of the images that it shows, in the order of the text.
    pub images: Vec<usize>,
    /// Numbers that are those of no fact given.
    pub dropped_citations: u32,
    /// Sentences that cite no fact given, or say what their facts do not bear out.
    pub dropped_sentences: u32,
    /// The answer was truncated; its complete sentences are here.
    pub truncated: bool,
}

#[cfg(test)]
mod tests;
