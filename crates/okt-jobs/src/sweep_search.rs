//! Has sources read that can't be found by their words as these are now: those that were there before there were lists of words,
//! those that were read by other words (`okt_search::WORDS_VERSION`), and those whose job was given up. Where passages have vectors,
//! it asks for those that are missing too.

use std::collections::BTreeSet;

use okt_model::{EmbedPassages, Error, IndexSource, JobId, Payload, Repository, Result, SpaceState};
use okt_queue::{Finished, JobError, SystemContext};
use okt_store::outbox::{self, When};
use okt_store::{Databases, embedding_spaces, passage_vectors, search_units};
use serde::{Deserialize, Serialize};

use crate::embed_facts::current;
use crate::spaces::next;
use crate::{Tools, embed_passages};

/// Sources looked at in one statement.
const LOOKED_AT: i64 = 1_000;
/// Asked for in one repository at a time; the next tick goes on.
const MOST: usize = 5_000;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepSearch {}

impl Payload for SweepSearch {
    const KIND: &'static str = "sweep_search";
    const INTERNAL: bool = true;

    fn unique_key(&self) -> Option<String> {
        Some(String::new())
    }
}

/// What sources may lack.
#[derive(Clone, Copy)]
enum Lacking {
    Words,
    /// Of passages, in this space.
    Vectors(i16),
}

pub(crate) async fn run(_: SweepSearch, ctx: SystemContext, tools: Tools) -> Result<Finished, JobError> {
    // While others are being filled, passages that have their new vectors lack the old ones.
    let wanted = embed_passages::is_on(&tools) && !is_any_filling(ctx.databases()).await?;
    let space = if wanted { current(&tools).await? } else { None };
    let lacking = [Some(Lacking::Words), space.map(|(space, _)| Lacking::Vectors(space.no))];
    let (mut before, mut asked, mut away) = (None, 0, BTreeSet::new());
    while let Some(repository) = next(ctx.databases(), &mut before).await? {
        // One that is away is waited for once; the next tick comes for it again.
        if away.contains(&repository.database) {
            continue;
        }
        let looked = async {
            let mut asked = 0;
            for lacking in lacking.into_iter().flatten() {
                asked += look(ctx.databases(), &repository, lacking).await?;
            }
            Ok(asked)
        };
        match looked.await {
            Ok(sources) => asked += sources,
            // It was deleted meanwhile, or is on its way to another database.
            Err(Error::NotFound(_) | Error::Moving) => {}
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(
                    repository.id = %repository.id, database = repository.database, error,
                    "failed to look for sources that can't be found by their words; will retry at the next run"
                );
                away.insert(repository.database);
            }
        }
    }
    Ok(ctx.finish(Some(serde_json::json!({ "sources": asked, "databases_away": away }))))
}

async fn is_any_filling(databases: &Databases) -> Result<bool> {
    let mut conn = databases.acquire_system().await?;
    let spaces = embedding_spaces::list(&mut conn).await?;
    Ok(spaces.iter().any(|space| space.state == SpaceState::Filling))
}

/// How many sources were asked to be read, or to get vectors.
async fn look(databases: &Databases, repository: &Repository, lacking: Lacking) -> Result<usize> {
    let (mut after, mut asked) = (0, 0);
    while asked < MOST {
        let mut tx = databases.begin_to_read(&repository.database, repository.id).await?;
        let (sources, last) = match lacking {
            Lacking::Words => search_units::list_unread(&mut tx, repository.id, after, LOOKED_AT).await?,
            Lacking::Vectors(space) => {
                passage_vectors::list_missing(&mut tx, repository.id, space, after, LOOKED_AT).await?
            }
        };
        tx.commit().await?;
        if !sources.is_empty() {
            let mut tx = databases.begin(&repository.database, repository.id).await?;
            for source in &sources {
                let (id, job, when) = (repository.id, JobId::mint(), When::default());
                match lacking {
                    Lacking::Words => outbox::push(&mut tx, id, job, &IndexSource::of(*source), when).await?,
                    Lacking::Vectors(_) => {
                        outbox::push(&mut tx, id, job, &EmbedPassages { source: *source }, when).await?;
                    }
                }
            }
            tx.commit().await?;
        }
        asked += sources.len();
        let Some(last) = last else { break };
        after = last;
    }
    Ok(asked)
}
