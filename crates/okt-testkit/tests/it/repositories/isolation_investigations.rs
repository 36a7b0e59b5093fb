//! The functions on investigations, for `isolation.rs`.

use okt_model::{InvestigationId, RepositoryId, SourceId};
use okt_store::Connection;
use okt_store::investigations::{self, Linked};

use crate::repositories::isolation::Call;

const TITLE: &str = "Their question";

/// An investigation with a source.
pub(crate) async fn plant(
    conn: &mut Connection,
    repository: RepositoryId,
    source: SourceId,
) -> (InvestigationId, i64) {
    let id = InvestigationId::mint();
    let made = investigations::insert(conn, repository, id, TITLE, Some("Why?")).await.unwrap();
    assert_eq!(investigations::link(conn, repository, id, source).await.unwrap(), Linked::Added);
    (id, made.no)
}

/// Writes what is one's own and finds nothing.
pub(crate) const WRITES: [&str; 1] = ["investigations::insert"];

pub(crate) const CALLS: &[(&str, Call)] = &[
    ("investigations::insert", |conn, repository, _| {
        Box::pin(async move {
            investigations::insert(conn, repository, InvestigationId::mint(), "Mine", None).await?;
            Ok(false)
        })
    }),
    ("investigations::find", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(investigations::find(conn, repository, theirs.investigation.0).await?.is_some())
        })
    }),
    ("investigations::list", |conn, repository, _| {
        Box::pin(async move {
            let found = investigations::list(conn, repository, None, 100).await?;
            Ok(found.iter().any(|one| one.title == TITLE))
        })
    }),
    ("investigations::update", |conn, repository, theirs| {
        Box::pin(async move {
            investigations::update(conn, repository, theirs.investigation.0, Some("Mine"), Some("")).await
        })
    }),
    ("investigations::link", |conn, repository, theirs| {
        Box::pin(async move {
            let linked =
                investigations::link(conn, repository, theirs.investigation.0, theirs.source).await?;
            Ok(matches!(linked, Linked::Added | Linked::Already))
        })
    }),
    ("investigations::list_sources", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(!investigations::list_sources(conn, repository, theirs.investigation.0).await?.is_empty())
        })
    }),
    ("investigations::list_next_sources", |conn, repository, theirs| {
        Box::pin(async move {
            let no = theirs.investigation.1;
            Ok(!investigations::list_next_sources(conn, repository, no, i64::MAX, 10).await?.is_empty())
        })
    }),
    ("investigations::list_facts", |conn, repository, theirs| {
        Box::pin(async move {
            let (no, first) = (theirs.investigation.1, (i64::MAX, i64::MAX));
            let found =
                investigations::list_facts(conn, repository, no, &[theirs.source_no], first, 10).await?;
            Ok(!found.is_empty())
        })
    }),
    ("investigations::count_facts", |conn, repository, theirs| {
        Box::pin(async move {
            let (facts, links) =
                investigations::count_facts(conn, repository, theirs.investigation.1, 100).await?;
            Ok(facts > 0 || links > 0)
        })
    }),
    ("investigations::list_concepts", |conn, repository, theirs| {
        Box::pin(async move {
            let no = theirs.investigation.1;
            Ok(!investigations::list_concepts(conn, repository, no, 100, None, 10).await?.is_empty())
        })
    }),
    ("investigations::find_progress", |conn, repository, theirs| {
        Box::pin(async move {
            let no = theirs.investigation.1;
            Ok(investigations::find_progress(conn, repository, no).await?.total() > 0)
        })
    }),
    ("investigations::unlink", |conn, repository, theirs| {
        Box::pin(async move {
            investigations::unlink(conn, repository, theirs.investigation.0, theirs.source).await
        })
    }),
    ("investigations::forget_source", |conn, repository, theirs| {
        Box::pin(
            async move { Ok(investigations::forget_source(conn, repository, theirs.source_no).await? > 0) },
        )
    }),
    ("investigations::delete", |conn, repository, theirs| {
        Box::pin(async move { investigations::delete(conn, repository, theirs.investigation.0).await })
    }),
];
