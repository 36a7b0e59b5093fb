//! The readers on whole files.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod fixtures;
mod gold;
mod locked_in;
mod pdf;
mod references;
