//! The functions on vectors of passages, for `isolation.rs`.

use std::collections::BTreeMap;

use okt_model::{RepositoryId, SourceId, UnitKind};
use okt_store::search_units::{self, NewUnit};
use okt_store::{Connection, passage_vectors as vectors};
use uuid::Uuid;

use crate::repositories::isolation::Call;

/// A passage of a source that only the other tenant has; returns the number of the source, and the vector of the passage.
pub(crate) async fn plant(conn: &mut Connection, repository: RepositoryId, source: SourceId) -> (i64, Uuid) {
    let no = search_units::read_source(conn, repository, source).await.unwrap().unwrap().no;
    let unit = |kind, no, sentences| NewUnit {
        kind,
        no,
        sentences,
        words: BTreeMap::from([("mite".to_owned(), 1)]),
    };
    let units = [unit(UnitKind::Passage, no * 256, Some((0, 0))), unit(UnitKind::Source, no, None)];
    search_units::put(conn, repository, no, &units, None).await.unwrap();
    let vector = vectors::vector_id(repository, no * 256, "Mites.");
    assert_eq!(vectors::claim(conn, repository, &[vector]).await.unwrap(), [vector]);
    (no, vector)
}

pub(crate) const CALLS: &[(&str, Call)] = &[
    ("passage_vectors::read_source", |conn, repository, theirs| {
        Box::pin(async move { Ok(vectors::read_source(conn, repository, theirs.source).await?.is_some()) })
    }),
    ("passage_vectors::list_missing", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(vectors::list_missing(conn, repository, 1, 0, 1_000).await?.0.contains(&theirs.source))
        })
    }),
    ("passage_vectors::list", |conn, repository, theirs| {
        Box::pin(
            async move { Ok(!vectors::list(conn, repository, &[theirs.source_no], 4, 10).await?.is_empty()) },
        )
    }),
    ("passage_vectors::find", |conn, repository, theirs| {
        Box::pin(async move { Ok(!vectors::find(conn, repository, &[theirs.passage]).await?.is_empty()) })
    }),
    ("passage_vectors::claim", |conn, repository, theirs| {
        Box::pin(async move { Ok(!vectors::claim(conn, repository, &[theirs.passage]).await?.is_empty()) })
    }),
    ("passage_vectors::mark", |conn, repository, theirs| {
        Box::pin(async move { Ok(vectors::mark(conn, repository, &[theirs.passage], 1).await? > 0) })
    }),
    ("passage_vectors::list_marked", |conn, repository, theirs| {
        Box::pin(async move {
            vectors::mark(conn, repository, &[theirs.passage], 1).await?;
            Ok(!vectors::list_marked(conn, repository, 1, 0, 10).await?.is_empty())
        })
    }),
    ("passage_vectors::unmark", |conn, repository, theirs| {
        Box::pin(async move { Ok(vectors::unmark(conn, repository, &[theirs.passage]).await? > 0) })
    }),
    ("passage_vectors::finish", |conn, repository, theirs| {
        Box::pin(async move {
            vectors::mark(conn, repository, &[theirs.passage], 1).await?;
            vectors::finish(conn, repository, theirs.source_no, 1).await
        })
    }),
    ("passage_vectors::note", |conn, repository, theirs| {
        Box::pin(async move { vectors::note(conn, repository, theirs.source_no, Some(1)).await })
    }),
];
