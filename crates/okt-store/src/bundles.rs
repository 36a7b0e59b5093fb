//! A repository as the rows of a Graph Bundle: read in one snapshot ([`Snapshot`]), and taken in in one transaction
//! ([`Intake`]).
//!
//! Both number rows in temporary tables of their transaction, which no query can be checked against when it is compiled.

mod citations;
mod copying;
mod export;
mod import;
mod import_rows;

pub use export::{ImageFile, Snapshot, SnapshotCounts};
pub use import::{
    BundleOrigin, Intake, Kind, Taken, TakenIn, derived, find_new_concepts, find_new_facts, find_sources,
    mark_facts,
};
pub use import_rows::SourceNames;
