//! Makes one context a part of another: concepts change their context, and where the other one has a concept of the same
//! name, that one takes over the links. Since the job was asked for nothing new is filed under the first one; in the end it
//! is gone. Each step is a transaction that does no harm when it is done again.

use okt_model::{Error, MigrateContext, Progress, RefreshConceptRelations};
use okt_queue::{Finished, JobContext, JobError};
use okt_store::concepts::{self, Emptied};
use okt_store::contexts;
use okt_store::outbox::When;

/// Whoever links a fact to one of these waits for the step to end.
const STEP: i64 = 100;

pub(crate) async fn run(payload: MigrateContext, ctx: JobContext) -> Result<Finished, JobError> {
    let MigrateContext { source, target } = payload;
    let repository = ctx.repository();
    let mut total = Emptied::default();
    let mut tx = ctx.read().await?;
    let size = contexts::size(&mut tx, repository, source).await?.map(u64::try_from).and_then(Result::ok);
    tx.commit().await?;
    loop {
        let mut tx = ctx.checkpoint().await?;
        let emptied = concepts::empty(&mut tx, repository, source, target, STEP).await?;
        tx.commit().await?;
        if emptied == Emptied::default() {
            break;
        }
        total.moved += emptied.moved;
        total.merged += emptied.merged;
        ctx.progress(Progress {
            stage: "concepts".to_owned(),
            done: u64::try_from(total.moved + total.merged).unwrap_or(0),
            total: size,
            message: None,
        });
    }
    let mut tx = ctx.begin().await?;
    if !contexts::delete(&mut tx, repository, source).await? {
        return Err(
            Error::Overloaded("concepts were added to the context while it was being migrated").into()
        );
    }
    tx.push(&RefreshConceptRelations {}, When::default()).await?;
    tx.commit(Some(serde_json::json!({ "moved": total.moved, "merged": total.merged }))).await
}
