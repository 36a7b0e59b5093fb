//! From bytes to a document: title, text, sentences with their places, images.
//!
//! Whatever comes in is hostile. Nothing here knows the network, the database or async code, and the service never calls
//! [`parse`] in its own process: `okt parse-worker` does, a child that has locked itself in (`worker.rs`), and the two
//! talk by the frames of `frames.rs`.
//!
//! To add a format: a variant of [`Kind`], a file of its name, a line in [`parse`].

mod charset;
mod clean;
mod document;
mod frames;
mod html;
mod language;
pub mod ocr;
mod parse;
pub mod pdf;
pub mod references;
mod report;
pub mod retractions;
pub mod sandbox;
mod sentences;
mod sniff;
mod text;
pub mod worker;

pub use document::{Document, Hint, Image, ImageKind, Kind, Limits, PageSize, ParseError, Rect};
pub use frames::{Frame, read_frame, write_frame};
pub use language::{is_written_in, of as language_of};
use parse::Read;
pub use parse::parse;
pub use report::{ReportSentence, report_sentences};
pub use sentences::{SEGMENTER, segmenter_hash, sentences};
