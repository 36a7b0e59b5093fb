//! The functions of bundles, for `isolation.rs`.

use okt_store::bundles::{self, SourceNames};
use sha2::{Digest as _, Sha256};

use crate::repositories::isolation::Call;
use crate::repositories::isolation_sources::THEIRS;

pub(crate) const CALLS: &[(&str, Call)] = &[
    ("bundles::find_sources", |conn, repository, _| {
        Box::pin(async move {
            let names = SourceNames {
                locator_hash: Some(Sha256::digest(THEIRS).to_vec()),
                doi_hash: None,
                sha256: None,
            };
            Ok(bundles::find_sources(conn, repository, &[names]).await?.contains(&true))
        })
    }),
    ("bundles::find_new_facts", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(!bundles::find_new_facts(conn, repository, &[theirs.fact.uuid()]).await?.is_empty())
        })
    }),
    ("bundles::mark_facts", |conn, repository, theirs| {
        Box::pin(async move { Ok(bundles::mark_facts(conn, repository, &[theirs.fact_no], 7).await? > 0) })
    }),
    ("bundles::find_new_concepts", |conn, repository, theirs| {
        Box::pin(async move {
            let ids = [theirs.concepts.id.uuid(), theirs.concepts.other.uuid()];
            Ok(!bundles::find_new_concepts(conn, repository, &ids).await?.is_empty())
        })
    }),
];
