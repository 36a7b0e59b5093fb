//! The functions on what people decide, for `isolation.rs`.

use okt_model::{ConceptMergedBy, CurationId, Decided, NewConceptMerge, RepositoryId, UserId};
use okt_store::{Connection, concept_merges, curation};
use uuid::Uuid;

use crate::repositories::isolation::Call;
use crate::repositories::isolation_concepts::Concepts;

/// A step of the other tenant, which can be undone.
pub(crate) async fn plant(conn: &mut Connection, repository: RepositoryId, concepts: Concepts) -> CurationId {
    let decided = decided();
    curation::remove_alias(conn, repository, decided, concepts.id, "Varroa disease").await.unwrap().unwrap();
    curation::add_alias(conn, repository, decided, concepts.id, "Varroa disease").await.unwrap().unwrap()
}

fn decided() -> Decided<'static> {
    Decided { person: UserId::from(Uuid::nil()), reason: Some("why") }
}

pub(crate) const CALLS: &[(&str, Call)] = &[
    ("concept_merges::parted", |conn, repository, theirs| {
        Box::pin(async move {
            let pair = (theirs.concepts.no, theirs.concepts.other_no);
            Ok(!concept_merges::parted(conn, repository, &[pair]).await?.is_empty())
        })
    }),
    ("curation::merge", |conn, repository, theirs| {
        let merge = NewConceptMerge {
            concept: theirs.concepts.other,
            into: theirs.concepts.id,
            by: ConceptMergedBy::Person,
            job: None,
            person: Some(UserId::mint()),
            reason: None,
        };
        Box::pin(async move { Ok(curation::merge(conn, repository, &merge).await?.is_some()) })
    }),
    ("curation::split", |conn, repository, theirs| {
        Box::pin(async move {
            let (concept, named) = (theirs.concepts.id, ("Mine", theirs.target));
            let facts = [theirs.fact];
            Ok(curation::split(conn, repository, decided(), concept, named, &facts).await?.is_some())
        })
    }),
    ("curation::rename", |conn, repository, theirs| {
        Box::pin(async move {
            let (concept, context) = (theirs.concepts.id, Some(theirs.target));
            let renamed = curation::rename(conn, repository, decided(), concept, Some("Mine"), context);
            Ok(renamed.await?.is_some())
        })
    }),
    ("curation::add_alias", |conn, repository, theirs| {
        Box::pin(async move {
            let concept = theirs.concepts.id;
            Ok(curation::add_alias(conn, repository, decided(), concept, "Mine").await?.is_some())
        })
    }),
    ("curation::remove_alias", |conn, repository, theirs| {
        Box::pin(async move {
            let concept = theirs.concepts.id;
            let removed = curation::remove_alias(conn, repository, decided(), concept, "Varroa disease");
            Ok(removed.await?.is_some())
        })
    }),
    ("curation::reject_link", |conn, repository, theirs| {
        Box::pin(async move {
            let (concept, fact) = (theirs.concepts.id, theirs.fact);
            Ok(curation::reject_link(conn, repository, decided(), concept, fact).await?.is_some())
        })
    }),
    ("curation::mark_fact", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(curation::mark_fact(conn, repository, decided(), theirs.fact, true).await?.is_some())
        })
    }),
    ("curation::find", |conn, repository, theirs| {
        Box::pin(async move { Ok(curation::find(conn, repository, theirs.step).await?.is_some()) })
    }),
    ("curation::list", |conn, repository, theirs| {
        Box::pin(async move {
            let all = curation::list(conn, repository, None, i64::MAX, 50).await?;
            let of_it = curation::list(conn, repository, Some(theirs.concepts.id), i64::MAX, 50).await?;
            Ok(!of_it.is_empty() || all.iter().any(|step| step.id == theirs.step))
        })
    }),
    ("curation::undo", |conn, repository, theirs| {
        Box::pin(
            async move { Ok(curation::undo(conn, repository, theirs.step, UserId::mint()).await?.is_some()) },
        )
    }),
];
