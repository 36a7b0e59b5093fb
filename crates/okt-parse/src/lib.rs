//! From bytes to a document: title, text, sentences with their places, images.
//!
//! Whatever comes in is hostile. Nothing here knows the network, the database or async code, and the service never calls
//! [`parse`] in its own process: `okt parse-worker` does, a child that has locked itself in (`worker.rs`), and the two
//! talk by the frames of `frames.rs`.
//!
//! To add a format: a variant of [`Kind`], a file of its name, a line in [`parse`].

mod document;
mod frames;
pub mod pdf;
pub mod sandbox;
pub mod worker;

pub use document::{Document, Hint, Image, ImageKind, Kind, Limits, ParseError, Piece, Rect};
pub use frames::{Frame, read_frame, write_frame};
