//! The functions on texts that are found by their words, for `isolation.rs`.

use std::collections::BTreeMap;

use okt_model::{RepositoryId, UnitKind};
use okt_store::search_units::{self, NewUnit, Range};
use okt_store::{Connection, search_filters as filters, search_hits as hits, search_units as units};

use crate::repositories::isolation::Call;
use crate::repositories::isolation_sources;

/// Stands for the number of a source, under which only the other tenant has texts.
const SOURCE: i64 = 4_242;

fn unit(no: i64) -> NewUnit {
    let words = BTreeMap::from([("varroosi".to_owned(), 2)]);
    NewUnit { kind: UnitKind::Fact, no, sentences: None, words }
}

fn whole(source: i64) -> NewUnit {
    let words = BTreeMap::from([("=varroosi".to_owned(), 1)]);
    NewUnit { kind: UnitKind::Source, no: source, sentences: None, words }
}

/// A text that only the other tenant has.
pub(crate) async fn plant(conn: &mut Connection, repository: RepositoryId, fact: i64) {
    search_units::put(conn, repository, SOURCE, &[unit(fact), whole(SOURCE)], Some("en")).await.unwrap();
}

fn word() -> Vec<String> {
    vec!["varroosi".to_owned()]
}

pub(crate) const CALLS: &[(&str, Call)] = &[
    ("search_units::read_source", |conn, repository, theirs| {
        Box::pin(async move { Ok(units::read_source(conn, repository, theirs.source).await?.is_some()) })
    }),
    ("search_units::list_of_source", |conn, repository, _| {
        Box::pin(
            async move { Ok(!units::list_of_source(conn, repository, SOURCE, None, 10).await?.is_empty()) },
        )
    }),
    ("search_units::list_unread", |conn, repository, theirs| {
        Box::pin(async move {
            units::note_unread(conn, repository, theirs.source).await?;
            Ok(units::list_unread(conn, repository, 0, 1_000).await?.0.contains(&theirs.source))
        })
    }),
    ("search_units::list_existing", |conn, repository, theirs| {
        Box::pin(async move {
            let mut found = false;
            for source in 1..100 {
                let units = [unit(theirs.fact_no)];
                found |= !units::list_existing(conn, repository, source, &units).await?.is_empty();
            }
            Ok(found)
        })
    }),
    ("search_units::count", |conn, repository, _| {
        Box::pin(
            async move { Ok(!units::count(conn, repository, UnitKind::Fact, &word()).await?.is_empty()) },
        )
    }),
    ("search_units::list_beginning", |conn, repository, _| {
        Box::pin(async move {
            Ok(!units::list_beginning(conn, repository, UnitKind::Fact, "varr", 5).await?.is_empty())
        })
    }),
    ("search_units::read", |conn, repository, _| {
        Box::pin(async move {
            Ok(!units::read(conn, repository, UnitKind::Fact, &word(), Range::default()).await?.is_empty())
        })
    }),
    ("search_units::get", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(!units::get(conn, repository, UnitKind::Fact, &[theirs.fact_no]).await?.is_empty())
        })
    }),
    ("search_units::list_names", |conn, repository, _| {
        Box::pin(async move { Ok(!units::list_names(conn, repository, &[SOURCE]).await?.is_empty()) })
    }),
    ("search_units::list_first_facts", |conn, repository, _| {
        Box::pin(
            async move { Ok(!units::list_first_facts(conn, repository, &[SOURCE], 3).await?.is_empty()) },
        )
    }),
    ("search_units::totals", |conn, repository, _| {
        Box::pin(async move { Ok(!units::totals(conn, repository).await?.statistics.is_empty()) })
    }),
    ("search_units::give_up", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(units::give_up(conn, repository, SOURCE, &[(UnitKind::Fact, theirs.fact_no)]).await? > 0)
        })
    }),
    ("search_units::note_unread", |conn, repository, theirs| {
        Box::pin(async move {
            let source = units::read_source(conn, repository, theirs.source).await?;
            let no = source.map_or(SOURCE, |source| source.no);
            units::put(conn, repository, no, &[whole(no)], None).await?;
            units::note_unread(conn, repository, theirs.source).await
        })
    }),
    ("search_units::try_hold", |conn, repository, _| {
        Box::pin(async move {
            units::try_hold(conn, repository).await?;
            Ok(false)
        })
    }),
    ("search_filters::list_members", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(!filters::list_members(conn, repository, &[theirs.concepts.id]).await?.is_empty())
        })
    }),
    ("search_filters::number_sources", |conn, repository, theirs| {
        Box::pin(
            async move { Ok(!filters::number_sources(conn, repository, &[theirs.source]).await?.is_empty()) },
        )
    }),
    ("search_filters::list_of_concepts", |conn, repository, theirs| {
        Box::pin(async move {
            let all: Vec<i64> = (1..1_000).collect();
            let found = filters::list_of_concepts(conn, repository, &all, 1_000).await?;
            Ok(found.is_some_and(|facts| facts.contains(&theirs.fact_no)))
        })
    }),
    ("search_filters::list_of_sources", |conn, repository, theirs| {
        Box::pin(async move {
            let all: Vec<i64> = (1..1_000).collect();
            let found = filters::list_of_sources(conn, repository, &all, 1_000).await?;
            Ok(found.is_some_and(|facts| facts.contains(&theirs.fact_no)))
        })
    }),
    ("search_filters::list_sources", |conn, repository, theirs| {
        Box::pin(
            async move { Ok(!filters::list_sources(conn, repository, &[theirs.fact_no]).await?.is_empty()) },
        )
    }),
    ("search_filters::list_concepts", |conn, repository, theirs| {
        Box::pin(
            async move { Ok(!filters::list_concepts(conn, repository, &[theirs.fact_no]).await?.is_empty()) },
        )
    }),
    ("search_hits::name_concepts", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(!hits::name_concepts(conn, repository, &[theirs.concepts.id]).await?.is_empty())
        })
    }),
    ("search_hits::get_facts", |conn, repository, theirs| {
        Box::pin(async move { Ok(!hits::get_facts(conn, repository, &[theirs.fact_no]).await?.is_empty()) })
    }),
    ("search_hits::list_groups", |conn, repository, theirs| {
        Box::pin(async move { Ok(!hits::list_groups(conn, repository, &[theirs.fact_no]).await?.is_empty()) })
    }),
    ("search_hits::number_facts", |conn, repository, theirs| {
        Box::pin(
            async move { Ok(!hits::number_facts(conn, repository, &[theirs.fact.uuid()]).await?.is_empty()) },
        )
    }),
    ("search_hits::identify_facts", |conn, repository, theirs| {
        Box::pin(
            async move { Ok(!hits::identify_facts(conn, repository, &[theirs.fact_no]).await?.is_empty()) },
        )
    }),
    ("search_hits::get_sources", |conn, repository, _| {
        Box::pin(async move {
            let all: Vec<i64> = (1..100).collect();
            let found = hits::get_sources(conn, repository, &all).await?;
            Ok(found.values().any(|source| source.url.contains(isolation_sources::THEIRS)))
        })
    }),
    ("search_hits::get_passages", |conn, repository, _| {
        Box::pin(async move {
            let all: Vec<(i64, i64, (i32, i32))> = (1..100).map(|no| (no, no, (0, 0))).collect();
            Ok(!hits::get_passages(conn, repository, &all).await?.is_empty())
        })
    }),
    ("search_hits::list_links", |conn, repository, _| {
        Box::pin(async move {
            let all: Vec<i64> = (1..100).collect();
            Ok(!hits::list_links(conn, repository, &all).await?.is_empty())
        })
    }),
    ("search_hits::list_linked", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(!hits::list_linked(conn, repository, &[theirs.concepts.id], 10).await?.is_empty())
        })
    }),
    // The last one, because it leaves a text of one's own under the other's number.
    ("search_units::put", |conn, repository, theirs| {
        Box::pin(async move {
            units::put(conn, repository, 1, &[unit(theirs.fact_no)], None).await?;
            Ok(false)
        })
    }),
];
