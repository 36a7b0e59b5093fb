//! The functions on facts and on what models answered, for `isolation.rs`.

use okt_model::{
    ContentHash, ContradictionState, Cost, Decided, Difference, Extraction, Fact, FactFilter, FactId,
    FactKind, FactStatus, ImageId, JobId, MarkedSources, Money, NewFact, RepositoryId, SourceId, UserId,
    Waiting, content_hash,
};
use okt_store::fact_contradictions::NewContradiction;
use okt_store::fact_merges::Merge;
use okt_store::facts::Made;
use okt_store::{
    Connection, curation, fact_contradictions, fact_groups, fact_merges, fact_vectors, facts, model_answers,
    source_extractions,
};
use okt_testkit::answers::answer;

use crate::repositories::isolation::Call;

const KEY: ContentHash = ContentHash([9; 32]);
const MADE: Made = Made { promptset: Some(KEY), status: FactStatus::New };
const SPACE: i16 = 7;

/// Facts of their source, one of which was merged into another, and what a model said about it. The id and number of that one,
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
    // Planting twice finds the canonical fact.
    if let [one, other, third] = &found[..] {
        let merge = Merge { fact: other.no, into: one.no, cosine: 0.97, by: okt_model::MergedBy::Cosine };
        fact_merges::merge(conn, repository, &[merge], JobId::mint()).await.unwrap();
        fact_contradictions::insert(conn, repository, &[apart(one.no, third.no)]).await.unwrap();
        fact_groups::join(conn, repository, &[(third.no, one.no)]).await.unwrap();
    }
    for fact in found {
        if let Some(duplicate) = fact_merges::list(conn, repository, fact.no, 1).await.unwrap().first() {
            return (fact.id, fact.no, duplicate.1);
        }
    }
    panic!("none of the facts has a duplicate");
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

/// A fact that somebody knows by its number.
pub(crate) fn named(id: FactId, no: i64) -> Fact {
    Fact {
        id,
        no,
        text: String::new(),
        hash: KEY,
        kind: FactKind::Text,
        status: FactStatus::Stable,
        model: String::new(),
        promptset_hash: None,
        source_count: 1,
        created_at: chrono::DateTime::default(),
        similar_to: None,
        duplicate_of: None,
        group: None,
        marked: MarkedSources::default(),
    }
}

fn apart(one: i64, other: i64) -> NewContradiction {
    NewContradiction {
        facts: (one, other),
        difference: Difference::Judged,
        cosine: 0.97,
        found_by: okt_model::ContradictionFoundBy::RefusedMerge,
    }
}

const LAST: (i64, i64) = (i64::MAX, i64::MAX);

/// Their facts differ in a number, and nobody has said so.
async fn name_them(conn: &mut Connection, repository: RepositoryId) -> okt_pg::Result<()> {
    let named =
        "UPDATE okt_repository.fact_contradictions SET difference = 'number' WHERE repository_id = $1";
    sqlx::query(named).bind(repository.uuid()).execute(conn).await?;
    Ok(())
}

/// Two facts that may contradict each other, as far as they can be seen.
async fn their_pair(conn: &mut Connection, fact: FactId) -> okt_pg::Result<(FactId, FactId)> {
    let other = "SELECT o.id FROM okt_repository.facts f JOIN okt_repository.facts o USING (repository_id)
                  WHERE f.id = $1 AND o.no <> f.no AND o.merged_into IS NULL";
    let other: Option<uuid::Uuid> = sqlx::query_scalar(other).bind(fact.uuid()).fetch_optional(conn).await?;
    Ok((fact, other.map_or(fact, FactId::from)))
}

async fn mark(
    conn: &mut Connection,
    repository: RepositoryId,
    pair: (FactId, FactId),
) -> okt_pg::Result<bool> {
    let decided = Decided { person: UserId::from(uuid::Uuid::nil()), reason: None };
    match curation::mark_contradiction(conn, repository, decided, pair, ContradictionState::Real).await {
        Err(okt_pg::Error(okt_model::Error::NotFound(_))) => Ok(false),
        marked => Ok(marked?.is_some()),
    }
}

/// Those that write what is one's own, or say nothing of what they did.
pub(crate) const WRITES: [&str; 9] = [
    "facts::forget_source",
    "fact_groups::join",
    "fact_merges::merge",
    "fact_merges::renew",
    "fact_contradictions::insert",
    "model_answers::insert",
    "model_answers::forget",
    // Theirs is about a source.
    "model_answers::is_any_old",
    "model_answers::delete_old",
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
                FactFilter { concepts: vec![theirs.concepts.id], ..FactFilter::default() },
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
        Box::pin(async move {
            Ok(!facts::list_sources(conn, repository, &[theirs.fact_no], 10).await?.is_empty())
        })
    }),
    ("facts::list_concepts", |conn, repository, theirs| {
        Box::pin(async move {
            let rows = facts::list_concepts(conn, repository, &[theirs.fact_no]).await?;
            Ok(rows.iter().any(|row| row.id == theirs.concepts.id))
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
    ("fact_vectors::mark_without", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(fact_vectors::mark_without(conn, repository, &[theirs.fact_no], SPACE).await? > 0)
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
            Ok(!fact_merges::settle_old(conn, repository, std::time::Duration::ZERO).await?.is_empty())
        })
    }),
    ("fact_merges::list_canonical", |conn, repository, theirs| {
        Box::pin(async move {
            // Its duplicate was planted beside it.
            let near: Vec<i64> = (theirs.fact_no - 3..=theirs.fact_no + 3).collect();
            Ok(!fact_merges::list_canonical(conn, repository, &near).await?.is_empty())
        })
    }),
    ("facts::count_listed", |conn, repository, theirs| {
        Box::pin(async move { Ok(facts::count_listed(conn, repository, theirs.source).await? > 0) })
    }),
    ("fact_merges::list_members", |conn, repository, theirs| {
        Box::pin(async move {
            let (duplicates, similar) =
                fact_merges::list_members(conn, repository, &[theirs.fact_no]).await?;
            Ok(!duplicates.is_empty() || !similar.is_empty())
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
            let (fact, into) = (theirs.fact_no, theirs.fact_no + 1_000);
            let merge = Merge { fact, into, cosine: 0.97, by: okt_model::MergedBy::Cosine };
            fact_merges::merge(conn, repository, &[merge], JobId::mint()).await?;
            Ok(false)
        })
    }),
    ("fact_merges::renew", |conn, repository, theirs| {
        Box::pin(async move {
            fact_merges::renew(conn, repository, theirs.fact_no).await?;
            Ok(false)
        })
    }),
    ("fact_merges::list_with_duplicates", |conn, repository, theirs| {
        Box::pin(async move {
            let standing =
                fact_merges::list_with_duplicates(conn, repository, theirs.fact_no - 1, 10).await?;
            Ok(standing.contains(&theirs.fact_no))
        })
    }),
    ("fact_merges::list_journal", |conn, repository, theirs| {
        Box::pin(async move {
            let journal = fact_merges::list_journal(conn, repository, &[theirs.fact_no]).await?;
            Ok(journal != fact_merges::Journal::default())
        })
    }),
    ("fact_groups::find", |conn, repository, theirs| {
        Box::pin(async move { Ok(fact_groups::find(conn, repository, theirs.fact).await?.is_some()) })
    }),
    ("fact_groups::list", |conn, repository, theirs| {
        Box::pin(
            async move { Ok(!fact_groups::list(conn, repository, theirs.fact_no, 0, 10).await?.is_empty()) },
        )
    }),
    ("fact_groups::describe", |conn, repository, theirs| {
        Box::pin(async move {
            let mut facts = [named(theirs.fact, theirs.fact_no)];
            fact_groups::describe(conn, repository, &mut facts).await?;
            Ok(facts[0].group.is_some())
        })
    }),
    ("fact_groups::join", |conn, repository, theirs| {
        Box::pin(async move {
            fact_groups::join(conn, repository, &[(theirs.fact_no, theirs.fact_no + 1_000)]).await?;
            Ok(false)
        })
    }),
    ("fact_contradictions::list", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(!fact_contradictions::list(conn, repository, theirs.fact_no, &[theirs.fact_no], 10)
                .await?
                .is_empty())
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
    ("fact_contradictions::list_open", |conn, repository, _| {
        Box::pin(async move {
            name_them(conn, repository).await?;
            Ok(!fact_contradictions::list_open(conn, repository, LAST, 10).await?.is_empty())
        })
    }),
    ("fact_contradictions::find", |conn, repository, theirs| {
        Box::pin(async move {
            name_them(conn, repository).await?;
            let (one, other) = their_pair(conn, theirs.fact).await?;
            Ok(fact_contradictions::find(conn, repository, (one.uuid(), other.uuid())).await?.is_some())
        })
    }),
    ("curation::mark_contradiction", |conn, repository, theirs| {
        Box::pin(async move {
            name_them(conn, repository).await?;
            let pair = their_pair(conn, theirs.fact).await?;
            mark(conn, repository, pair).await
        })
    }),
    ("fact_contradictions::list_marked", |conn, repository, theirs| {
        Box::pin(async move {
            name_them(conn, repository).await?;
            let pair = their_pair(conn, theirs.fact).await?;
            // Where it is one's own there is one to be found.
            drop(mark(conn, repository, pair).await);
            let real = ContradictionState::Real;
            Ok(!fact_contradictions::list_marked(conn, repository, real, LAST, 10).await?.is_empty())
        })
    }),
    ("fact_contradictions::list_sides", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(!fact_contradictions::list_sides(conn, repository, &[theirs.fact_no]).await?.is_empty())
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
            let (cost, why) =
                (Cost { usd: Money::from_micros(1), ..Cost::default() }, Some((Waiting::Budget, None)));
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
    ("model_answers::forget", |conn, repository, theirs| {
        Box::pin(async move {
            model_answers::forget(conn, repository, theirs.source.into()).await?;
            Ok(false)
        })
    }),
    ("model_answers::is_any_old", |conn, repository, _| {
        Box::pin(async move { model_answers::is_any_old(conn, repository, 0).await })
    }),
    ("model_answers::delete_old", |conn, repository, _| {
        Box::pin(async move { Ok(model_answers::delete_old(conn, repository, 0).await? > 0) })
    }),
    ("facts::forget_source", |conn, repository, theirs| {
        Box::pin(async move {
            drop(facts::forget_source(conn, repository, theirs.source).await);
            Ok(false)
        })
    }),
];
