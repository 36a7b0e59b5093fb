//! Turns the text of a source into facts. Reads `fetched`, `processing` (of an earlier run), `processed` or `failed`, leaves
//! `processed` or `failed`.
//!
//! A stage without a model is off, and so is this one: a source whose text is there is processed then, and has no facts.

use okt_model::{SourceDecomposition, SourceFailure, SourceStage, SourceStatus};
use okt_queue::{Finished, JobContext, JobError};
use okt_store::sources;

pub(crate) async fn run(
    payload: SourceDecomposition,
    ctx: JobContext,
    model: String,
) -> Result<Finished, JobError> {
    let (repository, id) = (ctx.repository(), payload.source);
    let mut effect = ctx.begin().await?;
    // Deleted, or taken on by another job meanwhile.
    if !sources::mark(&mut effect, repository, id, ctx.id(), SourceStatus::Processing).await? {
        return effect.commit(None).await;
    }
    if model.is_empty() {
        sources::mark(&mut effect, repository, id, ctx.id(), SourceStatus::Processed).await?;
        return effect.commit(Some(serde_json::json!({ "status": "processed", "facts": 0 }))).await;
    }
    let failure = SourceFailure::new(
        SourceStage::Decomposition,
        "not_supported",
        "this version can't ask a model for facts; leave providers.decomposition.fact_extraction.model empty",
        false,
    );
    sources::mark_failed(&mut effect, repository, id, ctx.id(), &failure, &[]).await?;
    effect.commit(Some(serde_json::json!({ "status": "failed", "failure": failure }))).await
}
