//! Asks the registry for every source of the repository that could not be had, and takes what it has. Nothing is fetched.

use std::time::Duration;

use okt_model::{Error, Progress, PullAllFromRegistry, Source};
use okt_providers::registry::RegistryError;
use okt_queue::{Finished, JobContext, JobError};
use okt_store::{packages, registry_trust, repository_settings, sources};

use crate::Tools;
use crate::retrieve_source::registry::{Asking, Hit, import_failed};

const AGAIN: Duration = Duration::from_mins(2);
/// Waits for one answer: then something else is wrong than that there is much to ask for.
const WAITS: usize = 100;

pub(crate) async fn run(
    payload: PullAllFromRegistry,
    ctx: JobContext,
    tools: Tools,
) -> Result<Finished, JobError> {
    // Two would ask for the same.
    ctx.one_at_a_time().await?;
    let mut conn = ctx.databases().acquire_system().await?;
    let settings = repository_settings::find(&mut conn, ctx.repository()).await?.unwrap_or_default();
    let revoked = registry_trust::list_revoked(&mut conn).await?;
    drop(conn);
    let registries = tools.registries();
    let per_page = registries.map_or(1, |registries| i64::from(registries.per_page()));
    let registry = registries.and_then(|registries| registries.get(settings.registry_id.as_deref()));
    let Some(registry) = registry else {
        return Err(Error::NotConfigured("this installation has no connection to a registry").into());
    };
    let asking = Asking { registry, settings: &settings, revoked: &revoked };
    let (mut after, mut asked, mut found, mut imported, mut refused) = (None, 0_u64, 0_u64, 0_u64, 0_u64);
    loop {
        let mut tx = ctx.checkpoint().await?;
        let page = packages::list_missing(&mut tx, ctx.repository(), after, per_page).await?;
        tx.commit().await?;
        let Some(last) = page.last() else { break };
        after = Some(*last);
        for id in page {
            let mut tx = ctx.checkpoint().await?;
            let source = sources::find(&mut tx, ctx.repository(), id).await?;
            tx.commit().await?;
            let Some(source) = source else { continue };
            asked += 1;
            match patiently(&asking, &tools, &source).await {
                Ok(None) => {}
                Ok(Some(_)) if payload.dry_run => found += 1,
                Ok(Some(hit)) => {
                    found += 1;
                    imported += u64::from(import_failed(&ctx, &tools, &source, &hit).await?);
                }
                Err(error) if error.is_passing() => {
                    let error = Error::Unavailable { service: "the registry", cause: error.into() };
                    return Err(JobError::RetryAfter { error, after: AGAIN });
                }
                Err(RegistryError::Unwanted { .. }) => refused += 1,
                Err(error) => {
                    tracing::warn!(
                        registry = registry.id(),
                        error = &error as &dyn std::error::Error,
                        "a package of the registry can't be used"
                    );
                    refused += 1;
                }
            }
            ctx.progress(Progress { stage: "sources".to_owned(), done: asked, total: None, message: None });
        }
    }
    let output = serde_json::json!({
        "dry_run": payload.dry_run, "registry": registry.id(), "asked": asked, "found": found,
        "imported": imported, "refused": refused,
    });
    ctx.begin().await?.commit(Some(output)).await
}

/// Waits where it stands while the registry is asked too often: another run would begin at the first source again.
async fn patiently(
    asking: &Asking<'_>,
    tools: &Tools,
    source: &Source,
) -> Result<Option<Hit>, RegistryError> {
    for _ in 0..WAITS {
        match asking.ask(tools, source).await {
            Err(error) => match error.wait() {
                Some(after) => tokio::time::sleep(after).await,
                None => return Err(error),
            },
            found => return found,
        }
    }
    asking.ask(tools, source).await
}
