//! One idea is one fact with all its sources, and a contradiction stays visible.

#![expect(clippy::unwrap_used, reason = "a test that finds nothing has failed")]

mod changing;
mod desk;
mod judged;
mod kills;
mod merging;
mod planted;
mod races;
mod room;
mod routes;
mod undoing;
