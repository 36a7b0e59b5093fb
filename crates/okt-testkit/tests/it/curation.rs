//! What people decide about concepts and facts: step by step, undone exactly, and respected by machines.

mod machine;
mod races;
mod random;
mod repository;
mod routes;
mod steps;
