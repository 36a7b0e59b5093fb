//! The functions of exports, for `isolation.rs`.

use chrono::{DateTime, Utc};
use okt_store::exports;

use crate::repositories::isolation::Call;

/// Later than all that there is.
fn late() -> DateTime<Utc> {
    "2100-01-01T00:00:00Z".parse().unwrap()
}

pub(crate) const CALLS: &[(&str, Call)] = &[
    ("exports::list_concepts", |conn, repository, _| {
        Box::pin(
            async move { Ok(!exports::list_concepts(conn, repository, late(), 0, 10).await?.is_empty()) },
        )
    }),
    ("exports::list_facts", |conn, repository, _| {
        Box::pin(async move { Ok(!exports::list_facts(conn, repository, late(), 0, 10).await?.is_empty()) })
    }),
    ("exports::list_links", |conn, repository, theirs| {
        Box::pin(async move {
            let facts = [theirs.fact_no];
            Ok(!exports::list_links(conn, repository, &facts, true, (0, 0), 10).await?.is_empty())
        })
    }),
    ("exports::list_relations", |conn, repository, _| {
        Box::pin(async move {
            Ok(!exports::list_relations(conn, repository, late(), (0, 0), 10).await?.is_empty())
        })
    }),
];
