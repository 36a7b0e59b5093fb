//! The functions on facts and on what models answered, for `isolation.rs`.

use okt_model::{
    ContentHash, Cost, Difference, Extraction, FactFilter, FactId, FactKind, FactStatus, ImageId, JobId,
    NewFact, RepositoryId, SourceId, Waiting, content_hash,
};
use okt_store::fact_contradictions::NewContradiction;
use okt_store::fact_merges::Merge;
use okt_store::facts::Made;
use okt_store::{
    Connection, fact_contradictions, fact_merges, fact_vectors, facts, model_answers, source_extractions,
};
use okt_testkit::answers::answer;

use crate::isolation::Call;

const KEY: ContentHash = ContentHash([9; 32]);
const MADE: Made = Made { promptset: Some(KEY), status: FactStatus::New };
const SPACE: i16 = 7;

/// Facts of their source, one of which stands for another, and what a model said about it. The id and number of that one,
/// and the id of the other.
pub(crate) async fn plant(
    conn: &mut Connection,
    repository: RepositoryId,
    source: SourceId,
) -> (FactId, i64, FactId) {
    let planted = ["Bees dance on the comb.", "Varroa mites feed on bees.", "Mites of Varroa feed on bees."];
    let planted = planted.map(fact);
    facts::replace(conn, repository, source, &planted, false, MADE).await.unwrap();
    model_answers::insert(conn, repository, &[&answer(repository, source, KEY)]).await.unwrap();
    let found = facts::list(conn, repository, &FactFilter::default(), false, None, 3).await.unwrap();
    // Who plants twice finds the one that stands for another.
    if let [one, other, third] = &found[..] {
        let merge = Merge { fact: other.no, into: one.no, cosine: 0.97 };
        fact_merges::merge(conn, repository, &[merge], JobId::mint()).await.unwrap();
        fact_contradictions::insert(conn, repository, &[apart(one.no, third.no)]).await.unwrap();
    }
    for fact in found {
        if let Some(duplicate) = fact_merges::list(conn, repository, fact.no, 1).await.unwrap().first() {
            return (fact.id, fact.no, *duplicate);
        }
    }
    panic!("none of the facts stands for another");
}

fn fact(text: &str) -> NewFact {
    NewFact {
        text: text.to_owned(),
        hash: content_hash(text),
        kind: FactKind::Text,
        model: "model".to_owned(),
        chunk: Some(0),
        sentences: vec![0],
        image: Some(ImageId::mint()),
    }
}

fn apart(one: i64, other: i64) -> NewContradiction {
    NewContradiction { facts: (one, other), difference: Difference::Judged, cosine: 0.97 }
}

/// Those that write what is one's own, or say nothing of what they did.
pub(crate) const WRITES: [&str; 5] = [
    "facts::forget_source",
    "fact_merges::merge",
    "fact_contradictions::insert",
    "model_answers::insert",
    "model_answers::forget_source",
];

pub(crate) const CALLS: &[(&str, Call)] = &[
    ("facts::replace", |conn, repository, theirs| {
        Box::pin(async move {
            let mine = [fact("Mine.")];
            Ok(facts::replace(conn, repository, theirs.source, &mine, true, MADE).await.is_ok_and(|n| n > 0))
        })
    }),
    ("facts::count_alone", |conn, repository, theirs| {
        Box::pin(async move { Ok(facts::count_alone(conn, repository, theirs.source).await? > 0) })
    }),
    ("facts::find", |conn, repository, theirs| {
        Box::pin(async move { Ok(facts::find(conn, repository, theirs.fact).await?.is_some()) })
    }),
    ("facts::list", |conn, repository, theirs| {
        Box::pin(async move {
            let mut found = false;
            let filters = [
                FactFilter::default(),
                FactFilter { source: Some(theirs.source), ..FactFilter::default() },
                FactFilter { concepts: vec![theirs.concept], ..FactFilter::default() },
            ];
            for filter in filters {
                for by_sources in [false, true] {
                    let rows = facts::list(conn, repository, &filter, by_sources, None, 100).await?;
                    found |= rows.iter().any(|row| row.id == theirs.fact);
                }
            }
            Ok(found)
        })
    }),
    ("facts::list_sources", |conn, repository, theirs| {
        Box::pin(
            async move { Ok(!facts::list_sources(conn, repository, theirs.fact_no, 10).await?.is_empty()) },
        )
    }),
    ("facts::list_concepts", |conn, repository, theirs| {
        Box::pin(async move {
            // Whatever the numbers of facts are, the concept has links to the first three.
            let mut found = false;
            for no in [1, 2, 3] {
                let rows = facts::list_concepts(conn, repository, no).await?;
                found |= rows.iter().any(|row| row.id == theirs.concept);
            }
            Ok(found)
        })
    }),
    ("facts::list_resting", |conn, repository, theirs| {
        Box::pin(
            async move { Ok(!facts::list_resting(conn, repository, theirs.source, &[0]).await?.is_empty()) },
        )
    }),
    ("facts::list_cited", |conn, repository, theirs| {
        Box::pin(async move { Ok(!facts::list_cited(conn, repository, theirs.source).await?.is_empty()) })
    }),
    ("facts::mark", |conn, repository, theirs| {
        Box::pin(async move {
            facts::mark(conn, repository, theirs.fact, FactStatus::ALL, FactStatus::Rejected).await
        })
    }),
    ("facts::get", |conn, repository, theirs| {
        Box::pin(async move { Ok(!facts::get(conn, repository, &[theirs.fact]).await?.is_empty()) })
    }),
    ("fact_vectors::list_missing", |conn, repository, theirs| {
        Box::pin(async move {
            let all = fact_vectors::list_missing(conn, repository, None, SPACE, 0, 100).await?;
            let of_one =
                fact_vectors::list_missing(conn, repository, Some(theirs.source), SPACE, 0, 100).await?;
            Ok(all.iter().chain(&of_one).any(|fact| fact.id == theirs.fact))
        })
    }),
    ("fact_vectors::mark", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(fact_vectors::mark(conn, repository, &[theirs.fact_no], Some(SPACE)).await? > 0)
        })
    }),
    ("fact_vectors::list_embedded", |conn, repository, theirs| {
        Box::pin(async move {
            fact_vectors::mark(conn, repository, &[theirs.fact_no], Some(SPACE)).await?;
            let found = fact_vectors::list_embedded(conn, repository, SPACE, 0, 100).await?;
            Ok(found.iter().any(|fact| fact.id == theirs.fact))
        })
    }),
    ("fact_vectors::list_live", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(!fact_vectors::list_live(conn, repository, &[theirs.fact.uuid()]).await?.is_empty())
        })
    }),
    ("fact_merges::list_new", |conn, repository, theirs| {
        Box::pin(async move {
            let all = fact_merges::list_new(conn, repository, None, 0, 100).await?;
            let of_one = fact_merges::list_new(conn, repository, Some(theirs.source), 0, 100).await?;
            Ok(all.iter().chain(&of_one).any(|fact| fact.id == theirs.fact))
        })
    }),
    ("fact_merges::list_comparable", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(!fact_merges::list_comparable(conn, repository, &[theirs.fact.uuid()]).await?.is_empty())
        })
    }),
    ("fact_merges::hold", |conn, repository, theirs| {
        Box::pin(async move { Ok(!fact_merges::hold(conn, repository, &[theirs.fact_no]).await?.is_empty()) })
    }),
    ("fact_merges::settle", |conn, repository, theirs| {
        Box::pin(async move { Ok(fact_merges::settle(conn, repository, &[theirs.fact_no]).await? > 0) })
    }),
    ("fact_merges::settle_old", |conn, repository, theirs| {
        Box::pin(async move {
            // Only whose own it is has any that are new.
            let _ = theirs.fact;
            Ok(fact_merges::settle_old(conn, repository, std::time::Duration::ZERO).await? > 0)
        })
    }),
    ("fact_merges::list_members", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(!fact_merges::list_members(conn, repository, &[theirs.fact_no]).await?.is_empty())
        })
    }),
    ("fact_merges::list", |conn, repository, theirs| {
        Box::pin(
            async move { Ok(!fact_merges::list(conn, repository, theirs.fact_no, 10).await?.is_empty()) },
        )
    }),
    ("fact_merges::undo", |conn, repository, theirs| {
        Box::pin(
            async move { Ok(fact_merges::undo(conn, repository, theirs.duplicate, None).await?.is_some()) },
        )
    }),
    ("fact_merges::merge", |conn, repository, theirs| {
        Box::pin(async move {
            let merge = Merge { fact: theirs.fact_no, into: theirs.fact_no + 1_000, cosine: 0.97 };
            fact_merges::merge(conn, repository, &[merge], JobId::mint()).await?;
            Ok(false)
        })
    }),
    ("fact_contradictions::list", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(!fact_contradictions::list(conn, repository, theirs.fact_no, 10).await?.is_empty())
        })
    }),
    ("fact_contradictions::list_judged", |conn, repository, theirs| {
        Box::pin(async move {
            // Whatever the number of the other one is.
            let numbers: Vec<i64> = (theirs.fact_no - 10..theirs.fact_no + 10).collect();
            Ok(!fact_contradictions::list_judged(conn, repository, &numbers).await?.is_empty())
        })
    }),
    ("fact_contradictions::insert", |conn, repository, theirs| {
        Box::pin(async move {
            let found = apart(theirs.fact_no, theirs.fact_no + 1_000);
            fact_contradictions::insert(conn, repository, &[found]).await?;
            Ok(false)
        })
    }),
    ("source_extractions::settle", |conn, repository, theirs| {
        Box::pin(async move {
            let (found, job) = (Extraction::default(), theirs.job);
            let marked = okt_store::sources::mark(
                conn,
                repository,
                theirs.source,
                job,
                okt_model::SourceStatus::Processing,
            );
            // So that it could be settled, where it is one's own.
            drop(marked.await);
            let failure =
                okt_model::SourceFailure::new(okt_model::SourceStage::Decomposition, "x", "y", true);
            source_extractions::settle(conn, repository, theirs.source, job, &found, Some(&failure), None)
                .await
        })
    }),
    ("source_extractions::note", |conn, repository, theirs| {
        Box::pin(async move {
            let (cost, why) = (Cost { usd: 1.0, ..Cost::default() }, Some(Waiting::Budget));
            source_extractions::note(conn, repository, theirs.source, theirs.job, cost, why).await
        })
    }),
    ("model_answers::list", |conn, repository, _| {
        Box::pin(async move { Ok(!model_answers::list(conn, repository, &[KEY]).await?.is_empty()) })
    }),
    ("model_answers::insert", |conn, repository, theirs| {
        Box::pin(async move {
            model_answers::insert(conn, repository, &[&answer(repository, theirs.source, KEY)]).await?;
            Ok(false)
        })
    }),
    ("model_answers::forget_source", |conn, repository, theirs| {
        Box::pin(async move {
            model_answers::forget_source(conn, repository, theirs.source).await?;
            Ok(false)
        })
    }),
    ("facts::forget_source", |conn, repository, theirs| {
        Box::pin(async move {
            drop(facts::forget_source(conn, repository, theirs.source).await);
            Ok(false)
        })
    }),
];
