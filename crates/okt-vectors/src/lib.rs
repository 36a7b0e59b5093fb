//! Vectors of tenants: points in spaces, and which of them lie nearest. One trait, two stores: Qdrant over gRPC, and
//! pgvector in the repository's own database.
//!
//! It must not know what a point stands for. To add a store: a file here that implements [`VectorStore`], and a line in
//! the contract suite, `okt-testkit/tests/vectors`, which every store has to pass.

mod pgvector;
mod qdrant;
mod store;
mod vectors;

pub use pgvector::{Indexing, LARGE, PgVector};
pub use qdrant::Qdrant;
pub use store::{Near, Point, Space, Tenant, VectorStore, cosine};
pub use vectors::Vectors;
