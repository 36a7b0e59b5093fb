//! Has the relations of concepts refreshed, concepts summed up, and reports checked, wherever changes wait that nobody
//! came for. Whoever makes a
//! change asks for that himself; this is for what was missed, and for what came in before an operator turned summaries on.
//! Deletes what models have answered to questions that nobody keeps, when it is old.

use std::collections::BTreeSet;

use okt_model::{
    CheckContradictions, CheckReports, Error, Payload, RefreshConceptRelations, Repository, Result,
    SummarizeConcepts,
};
use okt_queue::{Finished, JobError, SystemContext};
use okt_store::{
    Databases, concept_relations, fact_judgements, model_answers, report_facts, report_sentences,
};
use serde::{Deserialize, Serialize};

use crate::spaces::{next, push};
use crate::{Tools, summarize_concepts};

/// What a model has answered to a question that nobody keeps is kept so many days, for whoever asks it again.
const ANSWERS_DAYS: i32 = 7;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepConceptRelations {}

impl Payload for SweepConceptRelations {
    const KIND: &'static str = "sweep_concept_relations";
    const INTERNAL: bool = true;

    fn unique_key(&self) -> Option<String> {
        Some(String::new())
    }
}

pub(crate) async fn run(
    _: SweepConceptRelations,
    ctx: SystemContext,
    tools: Tools,
) -> Result<Finished, JobError> {
    let (mut before, mut asked, mut away) = (None, 0_u64, BTreeSet::new());
    while let Some(repository) = next(ctx.databases(), &mut before).await? {
        // One that is away is waited for once; the next tick comes for it again.
        if away.contains(&repository.database) {
            continue;
        }
        match look(ctx.databases(), &tools, &repository).await {
            Ok(waiting) => asked += u64::from(waiting),
            // It was deleted meanwhile, or is on its way to another database.
            Err(Error::NotFound(_) | Error::Moving) => {}
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(
                    repository.id = %repository.id, database = repository.database, error,
                    "failed to look for relations of concepts that wait to be counted; will retry at the next run"
                );
                away.insert(repository.database);
            }
        }
    }
    Ok(ctx.finish(Some(serde_json::json!({ "repositories": asked, "databases_away": away }))))
}

/// Whether changes wait, which are then asked to be counted.
async fn look(databases: &Databases, tools: &Tools, repository: &Repository) -> Result<bool> {
    let space = crate::embed_facts::current(tools).await?.map(|(space, _)| space.no);
    let mut tx = databases.begin_to_read(&repository.database, repository.id).await?;
    let waiting = concept_relations::count_changes(&mut tx, repository.id, 1).await?;
    let mut changed = report_facts::is_any(&mut tx, repository.id).await?;
    // Vectors were made anew, by another model.
    if let Some(space) = space.filter(|_| !changed) {
        changed = report_sentences::is_outdated(&mut tx, repository.id, space).await?;
    }
    // Reports were switched on again, or the model that judges them was named.
    if tools.config().providers.reports.enabled && !changed {
        changed = report_sentences::is_any_left(&mut tx, repository.id).await?;
    }
    let unjudged = fact_judgements::is_any(&mut tx, repository.id).await?;
    let old = model_answers::is_any_old(&mut tx, repository.id, ANSWERS_DAYS).await?;
    tx.commit().await?;
    if old {
        let mut tx = databases.begin(&repository.database, repository.id).await?;
        model_answers::delete_old(&mut tx, repository.id, ANSWERS_DAYS).await?;
        tx.commit().await?;
    }
    if changed {
        push(databases, repository, &CheckReports {}).await?;
    }
    if unjudged {
        push(databases, repository, &CheckContradictions {}).await?;
    }
    if waiting > 0 {
        push(databases, repository, &RefreshConceptRelations {}).await?;
    } else if summarize_concepts::is_wanted(databases, tools, repository).await? {
        push(databases, repository, &SummarizeConcepts {}).await?;
    }
    Ok(waiting > 0)
}
