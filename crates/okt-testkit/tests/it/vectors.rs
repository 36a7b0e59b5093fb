//! The contract that every store of vectors keeps: each test of `contract.rs` and `leaks.rs` runs on all of them.
//!
//! Qdrant is its own engine behind its own protocol, `scripts/qdrant-test-server`. With `VECTOR_STORE_HOST` and
//! `VECTOR_STORE_PORT` set it is the full server that they name.

mod contract;
mod faults;
mod large;
mod leaks;
mod stores;
