//! Has the relations of concepts refreshed, and concepts summed up, wherever changes wait that nobody came for. Whoever makes a
//! change asks for that himself; this is for what was missed, and for what came in before an operator turned summaries on.

use std::collections::BTreeSet;

use okt_model::{Error, Payload, RefreshConceptRelations, Repository, Result, SummarizeConcepts};
use okt_queue::{Finished, JobError, SystemContext};
use okt_store::{Databases, concept_relations};
use serde::{Deserialize, Serialize};

use crate::spaces::{next, push};
use crate::{Tools, summarize_concepts};

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
    let mut tx = databases.begin_to_read(&repository.database, repository.id).await?;
    let waiting = concept_relations::count_changes(&mut tx, repository.id, 1).await?;
    tx.commit().await?;
    if waiting > 0 {
        push(databases, repository, &RefreshConceptRelations {}).await?;
    } else if summarize_concepts::is_wanted(databases, tools, repository).await? {
        push(databases, repository, &SummarizeConcepts {}).await?;
    }
    Ok(waiting > 0)
}
