//! The functions on concepts and on what relates them, for `isolation.rs`.

use okt_model::{
    AliasBy, ConceptExtraction, ConceptFilter, ConceptId, ConceptMergedBy, Cost, FactFilter, FoundBy, JobId,
    NewConcept, NewConceptMerge, RelationBands, RepositoryId, UserId, content_hash,
};
use okt_store::concept_aliases::{self, NewAlias};
use okt_store::concept_readings::AskedBefore;
use okt_store::concept_relations::{self, Folded, Recomputed};
use okt_store::concepts::{self, ConceptPlace, NewLink};
use okt_store::{
    Connection, concept_graph, concept_merges, concept_readings, concept_twins, concept_vectors, facts,
    source_extractions,
};
use okt_testkit::concepts::{file_concept, link_facts};

use crate::repositories::isolation::Call;

/// Concepts of the other tenant.
#[derive(Clone, Copy)]
pub(crate) struct Concepts {
    /// The one with an alias, that speaks of a fact.
    pub id: ConceptId,
    pub no: i64,
    /// One that speaks of the same fact.
    pub other: ConceptId,
    pub other_no: i64,
    /// One that was merged into the first.
    merged: ConceptId,
    merge: i64,
    /// A fact that speaks of the first one only.
    pub second: i64,
}

/// Concepts with an alias, a merge and a relation, and changes that are not counted yet.
pub(crate) async fn plant(conn: &mut Connection, repository: RepositoryId, fact: i64) -> Concepts {
    let mut made = Vec::new();
    for name in ["Varroosis", "Mite", "Varroatosis"] {
        made.push(file_concept(conn, repository, name, "Plague").await.unwrap());
        link_facts(conn, repository, made[made.len() - 1], &[fact]).await.unwrap();
    }
    concept_aliases::insert(conn, repository, &[alias(made[0], "Varroa disease")]).await.unwrap();
    let undone = concept_merges::insert(conn, repository, &merge(made[1], made[0])).await.unwrap().unwrap();
    concept_merges::undo(conn, repository, undone, Some(UserId::mint())).await.unwrap().unwrap();
    let merge = concept_merges::insert(conn, repository, &merge(made[2], made[0])).await.unwrap().unwrap();
    concept_relations::fold(conn, repository, 100).await.unwrap();
    let all = facts::list(conn, repository, &FactFilter::default(), false, None, 10).await.unwrap();
    let second = all.iter().find(|other| other.no != fact).unwrap().no;
    assert_eq!(link_facts(conn, repository, made[0], &[second]).await.unwrap(), 1);
    let no = concepts::get(conn, repository, made[0]).await.unwrap().unwrap().no;
    let other_no = concepts::get(conn, repository, made[1]).await.unwrap().unwrap().no;
    assert_eq!(concept_relations::find(conn, repository, no, other_no).await.unwrap(), 1);
    Concepts { id: made[0], no, other: made[1], other_no, merged: made[2], merge, second }
}

fn alias(concept: ConceptId, text: &str) -> NewAlias {
    NewAlias { concept, text: text.to_owned(), by: AliasBy::Model }
}

fn merge(concept: ConceptId, into: ConceptId) -> NewConceptMerge {
    let by = ConceptMergedBy::Judge;
    NewConceptMerge { concept, into, by, job: Some(JobId::mint()), person: None, reason: None }
}

pub(crate) const CALLS: &[(&str, Call)] = &[
    ("concepts::file", |conn, repository, _| {
        let new = [NewConcept::new("Varroosis", "Plague")];
        Box::pin(async move { Ok(concepts::file(conn, repository, &new).await.is_ok()) })
    }),
    ("concepts::find", |conn, repository, _| {
        let names = [("Varroosis", "Plague"), ("Varroatosis", "Plague"), ("Varroa disease", "Plague")];
        Box::pin(
            async move { Ok(concepts::find(conn, repository, &names).await?.iter().any(Option::is_some)) },
        )
    }),
    ("concepts::link", |conn, repository, theirs| {
        let (concept, fact) = (theirs.concepts.other, theirs.concepts.second);
        let link = NewLink { concept, fact, found_by: FoundBy::Name };
        Box::pin(async move { Ok(concepts::link(conn, repository, &[link]).await? > 0) })
    }),
    ("concepts::find_single", |conn, repository, _| {
        Box::pin(
            async move { Ok(!concepts::find_single(conn, repository, &["Varroosis"]).await?.is_empty()) },
        )
    }),
    ("concepts::list_taken", |conn, repository, _| {
        Box::pin(async move {
            Ok(!concepts::list_taken(conn, repository, &[("Varroosis", "Plague")]).await?.is_empty())
        })
    }),
    ("concepts::unlink_found", |conn, repository, theirs| {
        Box::pin(
            async move { Ok(concepts::unlink_found(conn, repository, &[theirs.concepts.second]).await? > 0) },
        )
    }),
    ("concept_aliases::list_names", |conn, repository, _| {
        Box::pin(async move {
            Ok(!concept_aliases::list_names(conn, repository, &["Varroa disease"]).await?.is_empty())
        })
    }),
    ("concept_readings::list", |conn, repository, theirs| {
        Box::pin(
            async move { Ok(!concept_readings::list(conn, repository, theirs.source, 7).await?.is_empty()) },
        )
    }),
    ("concept_readings::plan", |conn, repository, theirs| {
        Box::pin(async move {
            let batch = [(theirs.fact_no, theirs.fact_no)];
            Ok(!concept_readings::plan(conn, repository, theirs.source, 7, &batch).await?.is_empty())
        })
    }),
    ("concept_readings::note_questions", |conn, repository, theirs| {
        Box::pin(async move {
            let batch = [(theirs.fact_no, theirs.fact_no)];
            concept_readings::plan(conn, repository, theirs.source, 7, &batch).await?;
            let asked = AskedBefore { question: content_hash("what?"), facts: 1 };
            let question = [(theirs.fact_no, asked)];
            Ok(concept_readings::note_questions(conn, repository, &question).await? > 0)
        })
    }),
    ("concept_readings::finish", |conn, repository, theirs| {
        Box::pin(async move {
            let read =
                concept_readings::finish(conn, repository, theirs.source, 7, &[theirs.fact_no]).await?;
            Ok(!read.is_empty())
        })
    }),
    ("concept_readings::count", |conn, repository, theirs| {
        Box::pin(async move {
            concept_readings::finish(conn, repository, theirs.source, 7, &[theirs.fact_no]).await?;
            Ok(concept_readings::count(conn, repository, theirs.source, 7).await?.0 > 0)
        })
    }),
    ("concept_readings::list_sources", |conn, repository, theirs| {
        Box::pin(async move {
            let found = concept_readings::list_sources(conn, repository, &[theirs.fact_no]).await?;
            Ok(!found.is_empty())
        })
    }),
    ("concept_vectors::list_of_source", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(!concept_vectors::list_of_source(conn, repository, theirs.source).await?.is_empty())
        })
    }),
    ("concept_vectors::list_of", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(!concept_vectors::list_of(conn, repository, &[theirs.concepts.id]).await?.is_empty())
        })
    }),
    ("concept_vectors::list", |conn, repository, _| {
        Box::pin(async move { Ok(!concept_vectors::list(conn, repository, 0, 10).await?.is_empty()) })
    }),
    ("concept_vectors::is_any_missing", |conn, repository, _| {
        Box::pin(async move { concept_vectors::is_any_missing(conn, repository, 1).await })
    }),
    ("concept_vectors::describe", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(!concept_vectors::describe(conn, repository, &[theirs.concepts.no]).await?.is_empty())
        })
    }),
    ("concept_vectors::mark", |conn, repository, theirs| {
        Box::pin(async move {
            let vector = [(theirs.concepts.no, theirs.concepts.id.uuid())];
            Ok(concept_vectors::mark(conn, repository, &vector, 1).await? > 0)
        })
    }),
    ("concept_vectors::claim", |conn, repository, theirs| {
        Box::pin(async move {
            let vector = [(theirs.concepts.no, theirs.concepts.id.uuid())];
            Ok(!concept_vectors::claim(conn, repository, &vector, false).await?.is_empty())
        })
    }),
    ("concept_vectors::unmark", |conn, repository, theirs| {
        Box::pin(async move {
            let vector = theirs.concepts.id.uuid();
            concept_vectors::mark(conn, repository, &[(theirs.concepts.no, vector)], 1).await?;
            Ok(concept_vectors::unmark(conn, repository, &[vector]).await? > 0)
        })
    }),
    ("concept_vectors::list_marked", |conn, repository, theirs| {
        Box::pin(async move {
            let vector = [(theirs.concepts.no, theirs.concepts.id.uuid())];
            concept_vectors::mark(conn, repository, &vector, 1).await?;
            Ok(!concept_vectors::list_marked(conn, repository, 1, 0, 10).await?.is_empty())
        })
    }),
    ("concept_vectors::find", |conn, repository, theirs| {
        Box::pin(async move {
            let vector = theirs.concepts.id.uuid();
            concept_vectors::mark(conn, repository, &[(theirs.concepts.no, vector)], 1).await?;
            Ok(!concept_vectors::find(conn, repository, &[vector]).await?.is_empty())
        })
    }),
    ("concept_twins::list_unrefined", |conn, repository, _| {
        Box::pin(
            async move { Ok(!concept_twins::list_unrefined(conn, repository, None, 10).await?.is_empty()) },
        )
    }),
    ("concept_twins::mark_refined", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(concept_twins::mark_refined(conn, repository, &[theirs.concepts.no]).await? > 0)
        })
    }),
    ("concept_twins::list_namesakes", |conn, repository, _| {
        Box::pin(async move {
            let names = [(0, "varroosis".to_owned())];
            Ok(!concept_twins::list_namesakes(conn, repository, &names).await?.is_empty())
        })
    }),
    ("concept_twins::insert_verdicts", |conn, repository, theirs| {
        Box::pin(async move {
            let Concepts { no, other_no, .. } = *theirs.concepts;
            let verdict = [((no.min(other_no), no.max(other_no)), "unsure")];
            Ok(concept_twins::insert_verdicts(conn, repository, &verdict, 1).await? > 0)
        })
    }),
    ("concept_twins::list_judged", |conn, repository, theirs| {
        Box::pin(async move {
            let Concepts { no, other_no, .. } = *theirs.concepts;
            let pair = (no.min(other_no), no.max(other_no));
            concept_twins::insert_verdicts(conn, repository, &[(pair, "unsure")], 1).await?;
            Ok(!concept_twins::list_judged(conn, repository, &[pair], 1).await?.is_empty())
        })
    }),
    ("source_extractions::note_concepts", |conn, repository, theirs| {
        Box::pin(async move {
            let (none, free) = (ConceptExtraction::default(), Cost::default());
            source_extractions::note_concepts(conn, repository, theirs.source, &none, free).await
        })
    }),
    ("concepts::unlink", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(!concepts::unlink(conn, repository, theirs.concepts.id, &[theirs.fact_no]).await?.is_empty())
        })
    }),
    ("concepts::relink", |conn, repository, theirs| {
        Box::pin(async move {
            let (from, to) = (theirs.concepts.id, theirs.concepts.other);
            Ok(concepts::relink(conn, repository, from, to, &[theirs.concepts.second]).await? > 0)
        })
    }),
    ("concepts::empty", |conn, repository, theirs| {
        Box::pin(async move {
            let emptied = concepts::empty(conn, repository, theirs.context, theirs.target, 10).await;
            Ok(emptied.is_ok_and(|emptied| emptied != concepts::Emptied::default()))
        })
    }),
    ("concepts::update", |conn, repository, theirs| {
        Box::pin(
            async move { concepts::update(conn, repository, theirs.concepts.id, Some("Mine"), None).await },
        )
    }),
    ("concepts::get", |conn, repository, theirs| {
        Box::pin(async move {
            let found = concepts::get(conn, repository, theirs.concepts.id).await?;
            let merged = concepts::get(conn, repository, theirs.concepts.merged).await?;
            Ok(found.is_some() || merged.is_some())
        })
    }),
    ("concepts::list", |conn, repository, theirs| {
        Box::pin(async move {
            for after in [ConceptPlace::MOST_FACTS, ConceptPlace::first_name()] {
                for (q, context_no) in [
                    (None, None),
                    (None, Some(theirs.context)),
                    (Some("varroo"), None),
                    (Some("varroa d"), None),
                ] {
                    let q = q.map(str::to_owned);
                    let filter = ConceptFilter { q, context_no, ..ConceptFilter::default() };
                    let found = concepts::list(conn, repository, &filter, &after, 10).await?;
                    if found.iter().any(|concept| concept.canonical_name == "Varroosis") {
                        return Ok(true);
                    }
                }
            }
            Ok(false)
        })
    }),
    ("concepts::list_contexts", |conn, repository, _| {
        Box::pin(async move {
            Ok(!concepts::list_contexts(conn, repository, &["varroosis".to_owned()], 5).await?.is_empty())
        })
    }),
    ("concepts::list_numbered", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(!concepts::list_numbered(conn, repository, &[theirs.concepts.no]).await?.is_empty())
        })
    }),
    ("concepts::list_shared_facts", |conn, repository, theirs| {
        Box::pin(async move {
            let pair = (theirs.concepts.no, theirs.concepts.other_no);
            Ok(!concepts::list_shared_facts(conn, repository, pair, i64::MAX, 5).await?.is_empty())
        })
    }),
    ("concepts::list_sources", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(!concepts::list_sources(conn, repository, theirs.concepts.no, None, 5).await?.is_empty())
        })
    }),
    ("concepts::count_links", |conn, repository, theirs| {
        Box::pin(async move { Ok(concepts::count_links(conn, repository, theirs.concepts.no, 5).await? > 0) })
    }),
    ("concepts::list_timeline", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(!concepts::list_timeline(conn, repository, theirs.concepts.no, None, 5).await?.is_empty())
        })
    }),
    ("concept_graph::list_neighbours", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(!concept_graph::list_neighbours(conn, repository, &[theirs.concepts.no], 5).await?.is_empty())
        })
    }),
    ("concept_graph::list_among", |conn, repository, theirs| {
        Box::pin(async move {
            let both = [theirs.concepts.no, theirs.concepts.other_no];
            Ok(!concept_graph::list_among(conn, repository, &both).await?.is_empty())
        })
    }),
    ("concepts::list_facts", |conn, repository, theirs| {
        Box::pin(async move {
            let (concept, before) = (theirs.concepts.no, i64::MAX);
            Ok(!concepts::list_facts(conn, repository, concept, before, 5).await?.is_empty())
        })
    }),
    ("concepts::list_strongest_facts", |conn, repository, theirs| {
        Box::pin(async move {
            let facts = concepts::list_strongest_facts(conn, repository, theirs.concepts.no, 5).await?;
            Ok(!facts.is_empty())
        })
    }),
    ("concept_aliases::insert", |conn, repository, theirs| {
        let new = alias(theirs.concepts.id, "Mine");
        Box::pin(async move { Ok(concept_aliases::insert(conn, repository, &[new]).await? > 0) })
    }),
    ("concept_aliases::list", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(!concept_aliases::list(conn, repository, theirs.concepts.no, 5).await?.is_empty())
        })
    }),
    ("concept_merges::insert", |conn, repository, theirs| {
        // A person undid it once, so only a person does it again.
        let by = ConceptMergedBy::Person;
        let new = NewConceptMerge { by, ..merge(theirs.concepts.other, theirs.concepts.id) };
        Box::pin(async move { Ok(concept_merges::insert(conn, repository, &new).await?.is_some()) })
    }),
    ("concept_merges::undo", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(concept_merges::undo(conn, repository, theirs.concepts.merge, None).await?.is_some())
        })
    }),
    ("concept_relations::fold", |conn, repository, _| {
        Box::pin(async move { Ok(concept_relations::fold(conn, repository, 5).await? != Folded::default()) })
    }),
    ("concept_relations::recompute", |conn, repository, theirs| {
        Box::pin(async move {
            // What is wrong is made so by taking away a link of theirs without saying so.
            sqlx::query(
                "DELETE FROM okt_repository.fact_concepts WHERE repository_id = $1 AND concept_no = $2",
            )
            .bind(repository.uuid())
            .bind(theirs.concepts.other_no)
            .execute(&mut *conn)
            .await?;
            Ok(concept_relations::recompute(conn, repository).await? != Recomputed::default())
        })
    }),
    ("concept_relations::count_changes", |conn, repository, _| {
        Box::pin(async move { Ok(concept_relations::count_changes(conn, repository, 10).await? > 0) })
    }),
    ("concept_relations::list", |conn, repository, theirs| {
        Box::pin(async move {
            let bands = RelationBands { weak: 3, stable: 6 };
            let (concept, after) = (theirs.concepts.no, concept_relations::STRONGEST);
            let found = concept_relations::list(conn, repository, concept, bands, (1, 0), after, 5).await?;
            Ok(!found.is_empty())
        })
    }),
    ("concept_relations::find", |conn, repository, theirs| {
        Box::pin(async move {
            let (one, other) = (theirs.concepts.no, theirs.concepts.other_no);
            Ok(concept_relations::find(conn, repository, one, other).await? > 0)
        })
    }),
];
