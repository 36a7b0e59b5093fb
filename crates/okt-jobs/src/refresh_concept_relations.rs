//! Counts the facts that concepts share, for the facts that have changed since: a few at a time, or everything where that is
//! less work. Harmless to repeat.

use okt_model::{Progress, RefreshConceptRelations};
use okt_queue::{Finished, JobContext, JobError};
use okt_store::{concept_relations, counters};

/// Changes in one transaction. Nobody else counts meanwhile.
const BATCH: i64 = 500;
/// So many changes may be more work one by one than all at once.
const MANY: i64 = 100_000;

pub(crate) async fn run(_: RefreshConceptRelations, ctx: JobContext) -> Result<Finished, JobError> {
    let repository = ctx.repository();
    let mut tx = ctx.checkpoint().await?;
    let counts = counters::list(&mut tx, repository).await?;
    let facts = counts.iter().find(|(name, _)| name == "facts").map_or(0, |(_, facts)| *facts);
    let many = MANY.max(facts / 2);
    if concept_relations::count_changes(&mut tx, repository, many).await? >= many {
        let recomputed = concept_relations::recompute(&mut tx, repository).await?;
        tx.commit().await?;
        let output = serde_json::json!({ "recomputed": true, "facts": recomputed.facts });
        return ctx.begin().await?.commit(Some(output)).await;
    }
    tx.commit().await?;
    let (mut done, mut changed) = (0, 0);
    loop {
        let mut tx = ctx.checkpoint().await?;
        let folded = concept_relations::fold(&mut tx, repository, BATCH).await?;
        tx.commit().await?;
        if folded.changes == 0 {
            break;
        }
        done += folded.changes;
        changed += folded.facts;
        ctx.progress(Progress { stage: "relations".to_owned(), done, total: None, message: None });
    }
    ctx.begin().await?.commit(Some(serde_json::json!({ "recomputed": false, "facts": changed }))).await
}
