//! Facts: from the text of a source to statements that rest on its sentences, with and without a model.

#![expect(clippy::unwrap_used, reason = "a test that finds nothing has failed")]

mod budget;
mod desk;
mod estimates;
mod extraction;
mod extractive;
mod faults;
mod injections;
mod limits;
mod promptsets;
mod routes;
mod together;
