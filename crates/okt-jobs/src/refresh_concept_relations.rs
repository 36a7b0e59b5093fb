//! Counts the facts that concepts share, for the facts that have changed since: a few at a time, or everything where that is
//! less work. Harmless to repeat.

use okt_model::{Progress, RefreshConceptRelations};
use okt_queue::{Finished, JobContext, JobError};
use okt_store::{concept_relations, counters};

use crate::{Tools, check_contradictions, summarize_concepts};

/// Changes in one transaction. Nobody else counts meanwhile.
const BATCH: i64 = 500;
/// So many changes may be more work one by one than all at once.
const MANY: i64 = 100_000;

pub(crate) async fn run(
    _: RefreshConceptRelations,
    ctx: JobContext,
    tools: Tools,
) -> Result<Finished, JobError> {
    let repository = ctx.repository();
    let mut tx = ctx.checkpoint().await?;
    let counts = counters::list(&mut tx, repository).await?;
    let facts = counts.iter().find(|(name, _)| name == "facts").map_or(0, |(_, facts)| *facts);
    let many = MANY.max(facts / 2);
    if concept_relations::count_changes(&mut tx, repository, many).await? >= many {
        let recomputed = concept_relations::recompute(&mut tx, repository).await?;
        tx.commit().await?;
        let output = serde_json::json!({ "recomputed": true, "facts": recomputed.facts });
        return finish(&ctx, &tools, output).await;
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
    finish(&ctx, &tools, serde_json::json!({ "recomputed": false, "facts": changed })).await
}

/// Has the concepts summed up whose facts have changed.
async fn finish(ctx: &JobContext, tools: &Tools, output: serde_json::Value) -> Result<Finished, JobError> {
    let on = summarize_concepts::is_on(ctx.databases(), tools, ctx.repository()).await?;
    let mut tx = ctx.begin().await?;
    summarize_concepts::push(&mut tx, ctx.repository(), tools, on).await?;
    check_contradictions::push(&mut tx, ctx.repository()).await?;
    tx.commit(Some(output)).await
}
