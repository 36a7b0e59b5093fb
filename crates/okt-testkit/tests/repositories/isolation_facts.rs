//! The functions on facts and on what models answered, for `isolation.rs`.

use okt_model::{
    CallId, CallOutcome, ContentHash, Cost, Extraction, FactFilter, FactId, FactKind, FactStatus, ImageId,
    JobId, ModelCall, NewFact, Operation, RepositoryId, SourceId, Waiting, content_hash,
};
use okt_store::model_answers::ModelAnswer;
use okt_store::{Connection, facts, model_answers, source_extractions};

use crate::isolation::Call;

const KEY: ContentHash = ContentHash([9; 32]);

/// Facts of their source, and what a model said about it. The id and number of one fact.
pub(crate) async fn plant(
    conn: &mut Connection,
    repository: RepositoryId,
    source: SourceId,
) -> (FactId, i64) {
    let planted = [fact("Bees dance on the comb."), fact("Varroa mites feed on bees.")];
    facts::replace(conn, repository, source, &planted, false, Some(KEY)).await.unwrap();
    model_answers::insert(conn, repository, &[&answer(repository, source)]).await.unwrap();
    let found = facts::list(conn, repository, &FactFilter::default(), false, None, 1).await.unwrap();
    (found[0].id, found[0].no)
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

fn answer(repository: RepositoryId, source: SourceId) -> ModelAnswer {
    let call = ModelCall {
        id: CallId::mint(),
        repository,
        source: Some(source),
        job: JobId::mint(),
        operation: Operation::FactExtraction,
        model: "model".to_owned(),
        outcome: CallOutcome::Ok,
        tokens_in: 1,
        tokens_out: 1,
        usd: 0.0,
        latency_ms: 1,
        retries: 0,
        characters: 4,
    };
    ModelAnswer { key: KEY, answer: "{}".to_owned(), call }
}

/// Those that write what is one's own, or say nothing of what they did.
pub(crate) const WRITES: [&str; 3] =
    ["facts::forget_source", "model_answers::insert", "model_answers::forget_source"];

pub(crate) const CALLS: &[(&str, Call)] = &[
    ("facts::replace", |conn, repository, theirs| {
        Box::pin(async move {
            let mine = [fact("Mine.")];
            Ok(facts::replace(conn, repository, theirs.source, &mine, true, None).await.is_ok_and(|n| n > 0))
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
            source_extractions::settle(conn, repository, theirs.source, job, &found, Some(&failure), 7).await
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
            model_answers::insert(conn, repository, &[&answer(repository, theirs.source)]).await?;
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
