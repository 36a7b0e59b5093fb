//! What a model is asked about a source, and what of its answers is believed.
//!
//! Pure: texts in, texts out. Who is asked, what it costs and where facts are kept is decided elsewhere; nothing here knows
//! the network, the database, a clock or async code. Sources and answers are both written by others: a source can't pass
//! for our numbers, and an answer is believed only as far as the source bears it out.
//!
//! To add a phase: a variant of [`Phase`], a text in `prompts/`, a file with its question and how its answer is read.

mod answer;
pub mod answers;
mod atomic;
mod chunks;
mod closed;
pub mod concepts;
pub mod extractive;
mod facts;
mod ground;
mod guard;
mod images;
mod judge;
mod line;
pub mod posture;
mod promptset;
mod question;
mod reason;
pub mod same;
pub mod summaries;
mod tokens;

pub use answer::{Coarse, Misfit, Weighed};
pub use chunks::{Chunk, SPLITS, Text, chunks};
pub use closed::Closed;
pub use facts::{Extracted, Grounded, fact_questions, read_facts, weigh_facts};
pub use guard::{Sameness, compare};
pub use images::{image_questions, read_image_facts};
pub use judge::{PAIRS_PER_QUESTION, Verdict, read_verdicts, same_question};
pub use promptset::{Phase, Promptset};
pub use question::Question;
pub use reason::{Dropped, Reason};
pub use same::{PermittedDifference, same_fact};
pub use tokens::estimate;
