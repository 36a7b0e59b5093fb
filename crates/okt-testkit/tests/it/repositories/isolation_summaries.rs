//! The functions on what is written of concepts, for `isolation.rs`.

use std::time::Duration;

use okt_model::{ContentHash, FactId, JobId, RepositoryId};
use okt_store::concept_summaries::{self as slices, SliceChanges, SliceState, SliceText};
use okt_store::concept_syntheses::{self as syntheses, NewSynthesis, TornSynthesis};
use okt_store::summary_states::{self as states, HeldConcept};
use okt_store::{Connection, concepts, fact_contradictions};

use crate::repositories::isolation::{Call, Theirs};
use crate::repositories::isolation_concepts::Concepts;

const KEY: ContentHash = ContentHash([5; 32]);
/// A name that only the other tenant has a definition of, and no concept.
const NAME: &str = "planted";
const HOUR: Duration = Duration::from_hours(1);

/// A written slice and one that is not, the concept held by a job, and a definition that cites a fact which is gone.
pub(crate) async fn plant(
    conn: &mut Connection,
    repository: RepositoryId,
    concepts: (i64, i64),
    facts: (FactId, i64, i64),
    job: JobId,
) {
    states::take_in(conn, repository, 0).await.unwrap();
    states::claim(conn, repository, job, HOUR, (100, false)).await.unwrap();
    states::forget(conn, repository, job, concepts.1).await.unwrap();
    let slice = |number, is_open| SliceState { number, is_open, fact_count: 1 };
    let changes = SliceChanges {
        added: vec![(facts.1, 1), (facts.2, 2)],
        changed: vec![slice(1, false), slice(2, true)],
        ..SliceChanges::default()
    };
    if slices::coverage(conn, repository, concepts.0).await.unwrap().slices.is_empty() {
        slices::change(conn, repository, concepts.0, &changes).await.unwrap();
    }
    slices::write(conn, repository, concepts.0, text(1)).await.unwrap();
    syntheses::insert(conn, repository, NAME, &synthesis(vec![facts.0, FactId::mint()])).await.unwrap();
}

pub(crate) async fn plant_for(
    conn: &mut Connection,
    repository: RepositoryId,
    concepts: Concepts,
    fact: (FactId, i64),
    job: JobId,
) {
    let facts = (fact.0, fact.1, concepts.second);
    plant(conn, repository, (concepts.no, concepts.other_no), facts, job).await;
}

fn text(number: i32) -> SliceText<'static> {
    SliceText {
        number,
        revision: 1,
        content: "What is known.",
        dropped: 0,
        model: "model",
        promptset_hash: KEY,
        question: KEY,
    }
}

fn synthesis(facts: Vec<FactId>) -> NewSynthesis {
    NewSynthesis {
        name: "Planted".to_owned(),
        content: "What it means.".to_owned(),
        model: "model".to_owned(),
        promptset_hash: KEY,
        question: KEY,
        inputs: KEY,
        dropped: 0,
        summaries: Vec::new(),
        concepts: Vec::new(),
        facts,
        images: Vec::new(),
    }
}

fn held(theirs: Theirs) -> HeldConcept {
    HeldConcept { no: theirs.concepts.no, changed: 1 }
}

/// The name of their concept, for whoever can see it.
async fn name(conn: &mut Connection, repository: RepositoryId, theirs: Theirs) -> okt_pg::Result<String> {
    let concept = concepts::get(conn, repository, theirs.concepts.id).await?;
    Ok(concept.map_or_else(String::new, |concept| concept.name_key))
}

/// The slices of their concept have had more facts once.
async fn tear(conn: &mut Connection, repository: RepositoryId, theirs: Theirs) -> okt_pg::Result<()> {
    let torn = "UPDATE okt_repository.concept_summaries SET fact_count = 9 WHERE repository_id = $1 AND concept_no = $2";
    sqlx::query(torn).bind(repository.uuid()).bind(theirs.concepts.no).execute(conn).await?;
    Ok(())
}

/// What models have answered was about their concept.
async fn answer(conn: &mut Connection, repository: RepositoryId, theirs: Theirs) -> okt_pg::Result<()> {
    let about = "UPDATE okt_repository.model_answers SET subject_kind = 'concept', subject_id = $2 WHERE repository_id = $1";
    sqlx::query(about).bind(repository.uuid()).bind(theirs.concepts.id.uuid()).execute(conn).await?;
    Ok(())
}

/// Those that write what is one's own, or say nothing of what they did.
pub(crate) const WRITES: [&str; 4] = [
    "summary_states::mark_all",
    "concept_summaries::change",
    "concept_syntheses::insert",
    "concept_syntheses::mend",
];

pub(crate) const CALLS: &[(&str, Call)] = &[
    ("summary_states::is_name_held", |conn, repository, _| {
        Box::pin(async move { states::is_name_held(conn, repository, "varroosis", HOUR).await })
    }),
    ("summary_states::take_in", |conn, repository, _| {
        Box::pin(async move { Ok(states::take_in(conn, repository, 0).await? > 0) })
    }),
    ("summary_states::is_any_waiting", |conn, repository, _| {
        Box::pin(async move { states::is_any_waiting(conn, repository, 0, HOUR).await })
    }),
    ("summary_states::claim", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(!states::claim(conn, repository, theirs.job, HOUR, (10, false)).await?.is_empty())
        })
    }),
    ("summary_states::hold", |conn, repository, theirs| {
        Box::pin(async move { states::hold(conn, repository, theirs.job, theirs.concepts.no).await })
    }),
    ("summary_states::finish", |conn, repository, theirs| {
        Box::pin(async move { states::finish(conn, repository, theirs.job, held(theirs)).await })
    }),
    ("summary_states::give_up", |conn, repository, theirs| {
        Box::pin(async move { states::give_up(conn, repository, theirs.job, held(theirs)).await })
    }),
    ("summary_states::is_any_torn", |conn, repository, theirs| {
        Box::pin(async move {
            tear(conn, repository, theirs).await?;
            states::is_any_torn(conn, repository, Duration::ZERO).await
        })
    }),
    ("summary_states::release", |conn, repository, theirs| {
        Box::pin(async move { states::release(conn, repository, theirs.job, theirs.concepts.no).await })
    }),
    ("summary_states::leave", |conn, repository, theirs| {
        Box::pin(async move {
            states::give_up(conn, repository, theirs.job, held(theirs)).await?;
            Ok(states::leave(conn, repository, theirs.job).await? > 0)
        })
    }),
    ("summary_states::resume", |conn, repository, theirs| {
        Box::pin(async move {
            states::give_up(conn, repository, theirs.job, held(theirs)).await?;
            states::leave(conn, repository, theirs.job).await?;
            Ok(states::resume(conn, repository, theirs.job).await? > 0)
        })
    }),
    ("summary_states::resume_all", |conn, repository, theirs| {
        Box::pin(async move {
            slices::fail(conn, repository, theirs.concepts.no, (2, 1), "mine").await?;
            Ok(states::resume_all(conn, repository).await? > 0)
        })
    }),
    ("summary_states::forget", |conn, repository, theirs| {
        Box::pin(async move { states::forget(conn, repository, theirs.job, theirs.concepts.no).await })
    }),
    ("summary_states::mark_all", |conn, repository, _| {
        Box::pin(async move {
            states::mark_all(conn, repository).await?;
            Ok(false)
        })
    }),
    ("concept_summaries::coverage", |conn, repository, theirs| {
        Box::pin(async move {
            let found = slices::coverage(conn, repository, theirs.concepts.no).await?;
            Ok(!found.slices.is_empty() || !found.covered.is_empty() || !found.facts.is_empty())
        })
    }),
    ("concept_summaries::hold_facts", |conn, repository, theirs| {
        Box::pin(
            async move { Ok(!slices::hold_facts(conn, repository, &[theirs.fact_no]).await?.is_empty()) },
        )
    }),
    ("concept_summaries::list_torn", |conn, repository, theirs| {
        Box::pin(async move {
            tear(conn, repository, theirs).await?;
            Ok(!slices::list_torn(conn, repository, theirs.concepts.no).await?.is_empty())
        })
    }),
    ("concept_summaries::mend", |conn, repository, theirs| {
        Box::pin(async move { slices::mend(conn, repository, theirs.concepts.no, (1, "mine")).await })
    }),
    ("concept_summaries::forget_answers", |conn, repository, theirs| {
        Box::pin(async move {
            answer(conn, repository, theirs).await?;
            Ok(slices::forget_answers(conn, repository, theirs.concepts.no).await? > 0)
        })
    }),
    ("concept_summaries::is_named_covered", |conn, repository, theirs| {
        Box::pin(async move {
            let name = name(conn, repository, theirs).await?;
            slices::is_named_covered(conn, repository, &name, true).await
        })
    }),
    ("concept_summaries::change", |conn, repository, theirs| {
        Box::pin(async move {
            let changes = SliceChanges {
                removed: vec![theirs.fact_no],
                emptied: vec![1],
                closed: vec![2],
                ..SliceChanges::default()
            };
            slices::change(conn, repository, theirs.concepts.no, &changes).await?;
            Ok(false)
        })
    }),
    ("concept_summaries::list_unwritten", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(!slices::list_unwritten(conn, repository, theirs.concepts.no, 5).await?.is_empty())
        })
    }),
    ("concept_summaries::write", |conn, repository, theirs| {
        Box::pin(async move { slices::write(conn, repository, theirs.concepts.no, text(2)).await })
    }),
    ("concept_summaries::fail", |conn, repository, theirs| {
        Box::pin(async move { slices::fail(conn, repository, theirs.concepts.no, (2, 1), "mine").await })
    }),
    ("concept_summaries::list", |conn, repository, theirs| {
        Box::pin(
            async move { Ok(!slices::list(conn, repository, theirs.concepts.no, 0, 10).await?.is_empty()) },
        )
    }),
    ("concept_summaries::list_named", |conn, repository, theirs| {
        Box::pin(async move {
            let name = name(conn, repository, theirs).await?;
            Ok(!slices::list_named(conn, repository, &name, 5).await?.is_empty())
        })
    }),
    ("concept_summaries::find_first_named", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(slices::find_first_named(conn, repository, theirs.concepts.no).await?.is_some())
        })
    }),
    ("concept_syntheses::find", |conn, repository, _| {
        Box::pin(async move {
            let found = syntheses::find(conn, repository, NAME, None).await?;
            Ok(found.is_some_and(|found| !found.facts.is_empty()))
        })
    }),
    ("concept_syntheses::list_versions", |conn, repository, _| {
        Box::pin(async move { Ok(!syntheses::list_versions(conn, repository, NAME).await?.is_empty()) })
    }),
    ("concept_syntheses::list_latest", |conn, repository, _| {
        Box::pin(async move {
            Ok(!syntheses::list_latest(conn, repository, &[NAME.to_owned()]).await?.is_empty())
        })
    }),
    ("concept_syntheses::is_stale", |conn, repository, theirs| {
        Box::pin(async move {
            let name = name(conn, repository, theirs).await?;
            syntheses::is_stale(conn, repository, &name, chrono::DateTime::default()).await
        })
    }),
    ("concept_syntheses::note_unchanged", |conn, repository, _| {
        Box::pin(async move { syntheses::note_unchanged(conn, repository, NAME, 1).await })
    }),
    ("concept_syntheses::list_torn", |conn, repository, _| {
        Box::pin(async move { Ok(!syntheses::list_torn(conn, repository, NAME).await?.is_empty()) })
    }),
    ("concept_syntheses::mend", |conn, repository, _| {
        Box::pin(async move {
            let left = TornSynthesis {
                version: 1,
                content: "mine".to_owned(),
                facts: Vec::new(),
                images: Vec::new(),
            };
            syntheses::mend(conn, repository, NAME, &left).await?;
            Ok(false)
        })
    }),
    ("concept_syntheses::list_facts", |conn, repository, theirs| {
        Box::pin(
            async move { Ok(!syntheses::list_facts(conn, repository, &[theirs.fact]).await?.is_empty()) },
        )
    }),
    ("concept_syntheses::forget_answers", |conn, repository, theirs| {
        Box::pin(async move {
            answer(conn, repository, theirs).await?;
            let name = name(conn, repository, theirs).await?;
            Ok(syntheses::forget_answers(conn, repository, &name).await? > 0)
        })
    }),
    ("concept_syntheses::hold_name", |conn, repository, theirs| {
        Box::pin(async move {
            let name = name(conn, repository, theirs).await?;
            syntheses::hold_name(conn, repository, &name).await
        })
    }),
    ("concept_syntheses::hold_cited", |conn, repository, theirs| {
        Box::pin(async move { syntheses::hold_cited(conn, repository, &[theirs.fact]).await })
    }),
    ("concept_syntheses::list_images", |conn, repository, theirs| {
        Box::pin(async move {
            let images = "WITH facts AS (
                     UPDATE okt_repository.facts SET kind = 'image' WHERE repository_id = $1 AND no = $2),
                 links AS (
                     UPDATE okt_repository.fact_sources SET image_id = $3 WHERE repository_id = $1 AND fact_no = $2)
                 UPDATE okt_repository.source_images SET sha256 = sha256('image'), size = 5
                  WHERE repository_id = $1 AND id = $3";
            let planted = sqlx::query(images).bind(repository.uuid()).bind(theirs.fact_no);
            planted.bind(theirs.image.uuid()).execute(&mut *conn).await?;
            Ok(!syntheses::list_images(conn, repository, &[theirs.fact_no], 5).await?.is_empty())
        })
    }),
    ("concept_syntheses::remove_unnamed", |conn, repository, _| {
        Box::pin(async move { Ok(syntheses::remove_unnamed(conn, repository, &[NAME]).await? > 0) })
    }),
    ("concept_syntheses::remove", |conn, repository, _| {
        Box::pin(async move { Ok(syntheses::remove(conn, repository, NAME).await? > 0) })
    }),
    // After those that find what only the other one has under this name.
    ("concept_syntheses::insert", |conn, repository, _| {
        Box::pin(async move {
            syntheses::insert(conn, repository, "mine", &synthesis(Vec::new())).await?;
            Ok(false)
        })
    }),
    ("fact_contradictions::list_among", |conn, repository, theirs| {
        Box::pin(async move {
            let named = "UPDATE okt_repository.fact_contradictions SET difference = 'number' WHERE repository_id = $1";
            sqlx::query(named).bind(repository.uuid()).execute(&mut *conn).await?;
            // Whatever the number of the other one is.
            let numbers: Vec<i64> = (theirs.fact_no - 10..theirs.fact_no + 10).collect();
            Ok(!fact_contradictions::list_among(conn, repository, &numbers).await?.is_empty())
        })
    }),
];
