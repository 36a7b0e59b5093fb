//! Sources: from an address or a file to text with sentences, and the files that are kept of them.

#![expect(clippy::unwrap_used, reason = "a test that finds nothing has failed")]

mod blobs;
mod disk;
mod files;
mod hostile;
mod intake;
mod kills;
mod library;
mod retrieval;
