//! Concepts: what facts are about.

use crate::permission::words;

/// Stands where the name of a model would, where concepts are found by rules and no model is asked. Another name when its
/// rules change.
pub const CONCEPT_MODEL: &str = "builtin-concepts-1";

/// The context that takes what no other fits.
pub const CATCH_ALL_CONTEXT: &str = "Concept";

words! {
    /// How a concept was found in a fact. Names and titles lead a search from one fact to the next; common phrases do not.
    FoundBy {
        /// A proper name in the words of the fact.
        Name = "name",
        /// The title of the source that states the fact.
        Title = "title",
        /// A common noun or a phrase of them.
        Phrase = "phrase",
        /// A model said so, and the words of the fact bear it out.
        Model = "model",
    }
}
