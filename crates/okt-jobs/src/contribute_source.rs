//! Gives a registry what was made of a source, or of all sources of the repository, a job each.
//!
//! It fails soft: a source is what it is whether a registry has it or not. Only what a chat model made is given away, and not what
//! came from a registry; files that somebody uploaded never are.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use okt_extract::extractive;
use okt_interchange::package::{CostData, EmbeddingData, Package, SCHEMA_VERSION, SourceData};
use okt_model::{
    ContributeSource, EmbeddingSpace, Error, JobId, Progress, RepositorySettings, Result, SourceId,
    SourceStatus, Waiting,
};
use okt_providers::registry::{Names, Registry, RegistryError, RegistrySource};
use okt_queue::{Finished, JobCommit, JobContext, JobError};
use okt_store::outbox::{self, When};
use okt_store::packages::{self, Shareable};
use okt_store::{ai_calls, repository_settings};
use okt_vectors::Tenant;
use uuid::Uuid;

use crate::Tools;
use crate::asking::RUNS;
use crate::embed_facts::{current, or_wait};

const PAGE: i64 = 500;
const AGAIN: Duration = Duration::from_mins(2);
const SOON: Duration = Duration::from_secs(1);
/// By so much those are apart that wait for the same.
const APART: Duration = Duration::from_mins(10);
const BY: &str = concat!("okt ", env!("CARGO_PKG_VERSION"));

/// Has a source given away that is done, where the repository does so by itself.
pub(crate) async fn push(tx: &mut JobCommit, tools: &Tools, source: SourceId) -> Result<(), JobError> {
    if tools.registries().is_some_and(|registries| registries.get(None).is_some()) {
        tx.push(&ContributeSource { source: Some(source), automatic: true }, When::default()).await?;
    }
    Ok(())
}

async fn settings(ctx: &JobContext) -> Result<RepositorySettings> {
    let mut conn = ctx.databases().acquire_system().await?;
    Ok(repository_settings::find(&mut conn, ctx.repository()).await?.unwrap_or_default())
}

pub(crate) async fn run(
    payload: ContributeSource,
    ctx: JobContext,
    tools: Tools,
) -> Result<Finished, JobError> {
    let Some(source) = payload.source else { return all(&ctx).await };
    let settings = settings(&ctx).await?;
    if payload.automatic && !settings.auto_contribute {
        return ctx.begin().await?.commit(None).await;
    }
    let registry = tools.registries().and_then(|registries| registries.get(settings.registry_id.as_deref()));
    let Some(registry) = registry else { return skip(&ctx, "no registry is configured").await };
    let mut tx = ctx.checkpoint().await?;
    let shared = packages::read(&mut tx, ctx.repository(), source).await?;
    tx.commit().await?;
    let Some(shared) = shared else { return skip(&ctx, "the source is gone").await };
    if let Some(why) = why_not(&shared) {
        return skip(&ctx, why).await;
    }
    if let Some(url) = &shared.url
        && let Some(why) = registry.is_not_told_of(url).await
    {
        return skip(&ctx, why).await;
    }
    // Before what it would not take is put together.
    if let Some(after) = registry.pushes_wait() {
        return Err(wait(after));
    }
    let about = RegistrySource {
        source_id: String::new(),
        names: Names { url: shared.url.clone(), doi: shared.doi.clone(), sha256: None },
        title: cut(shared.title.as_deref(), 500),
        author: cut(shared.author.as_deref(), 500),
        kind: cut(shared.kind.as_deref(), 50),
        language: cut(shared.language.as_deref(), 50),
        published_at: shared.published_at.map(|day| day.to_string()),
    };
    let package = package(&ctx, &tools, source, shared).await?.at(settings.push_level);
    let model = package.model_id.clone();
    let (facts, concepts) = (package.facts.len(), package.concepts.len());
    let most = tools.config().server.limits.package_bytes;
    let written = tokio::task::spawn_blocking(move || package.write(most)).await.map_err(Error::internal)?;
    let body = match written {
        Ok(body) => body,
        Err(refused) => return skip(&ctx, &format!("its package can't be sent: {refused}")).await,
    };
    ctx.progress(Progress { stage: "push".to_owned(), ..Progress::default() });
    send(&ctx, registry, &about, &model, &body, (facts, concepts)).await
}

async fn send(
    ctx: &JobContext,
    registry: &Registry,
    about: &RegistrySource,
    model: &str,
    body: &[u8],
    (facts, concepts): (usize, usize),
) -> Result<Finished, JobError> {
    let mut output = serde_json::json!({
        "registry": registry.id(), "model": model, "facts": facts, "concepts": concepts, "bytes": body.len(),
        "signed": registry.signing_key_id().is_some(),
    });
    let pushed = registry.push(about, model, body).await;
    // However long that is: nobody waits for a contribution, and what is given up is never given.
    if let Err(RegistryError::Busy { after, .. }) = &pushed {
        return Err(wait(*after));
    }
    match pushed {
        Ok(pushed) => {
            output["pushed"] = true.into();
            output["source_id"] = pushed.source_id.into();
            output["facts_new"] = pushed.facts_new.into();
            output["facts_linked"] = pushed.facts_linked.into();
        }
        Err(error) if error.is_passing() && ctx.attempt() < RUNS => {
            let error = Error::Unavailable { service: "the registry", cause: error.into() };
            return Err(JobError::RetryAfter { error, after: AGAIN });
        }
        Err(error) => {
            tracing::warn!(
                registry = registry.id(),
                error = &error as &dyn std::error::Error,
                "failed to contribute a source to the registry"
            );
            output["pushed"] = false.into();
            output["reason"] = error.to_string().into();
        }
    }
    ctx.begin().await?.commit(Some(output)).await
}

/// So long and up to ten minutes more, or up to twice as long if that is less.
fn wait(after: Duration) -> JobError {
    let after = after.max(SOON);
    // A fresh one has keys of its own, which is all the chance that is needed here.
    let chance = RandomState::new().hash_one(0_u8) % 1_000;
    let delay = after + after.min(APART) * u32::try_from(chance).unwrap_or_default() / 1_000;
    JobError::Waits { why: Waiting::RateLimit, delay }
}

/// A job for every source that can be given away.
async fn all(ctx: &JobContext) -> Result<Finished, JobError> {
    let (mut after, mut count) = (None, 0_u64);
    loop {
        let mut tx = ctx.checkpoint().await?;
        let page = packages::list_shareable(&mut tx, ctx.repository(), after, PAGE).await?;
        for source in &page {
            let payload = ContributeSource { source: Some(*source), automatic: false };
            outbox::push(
                &mut tx,
                ctx.repository(),
                JobId::mint(),
                &payload,
                When { priority: 10, ..When::default() },
            )
            .await?;
        }
        tx.commit().await?;
        let Some(last) = page.last() else { break };
        after = Some(*last);
        count += page.len() as u64;
        ctx.progress(Progress { stage: "sources".to_owned(), done: count, total: None, message: None });
    }
    ctx.begin().await?.commit(Some(serde_json::json!({ "sources": count }))).await
}

async fn skip(ctx: &JobContext, why: &str) -> Result<Finished, JobError> {
    ctx.begin().await?.commit(Some(serde_json::json!({ "pushed": false, "reason": why }))).await
}

fn why_not(shared: &Shareable) -> Option<&'static str> {
    let Some(extraction) = &shared.extraction else { return Some("the source was not taken apart") };
    if shared.status != SourceStatus::Processed {
        Some("the source is not processed")
    } else if shared.url.is_none() {
        Some("uploaded files are not contributed")
    } else if extraction.registry.is_some() {
        Some("the source came from a registry")
    } else if extraction.model == extractive::MODEL || extraction.model.is_empty() {
        Some("no chat model was asked about the source")
    } else if shared.facts.is_empty() {
        Some("the source has no facts")
    } else {
        None
    }
}

/// As much of a text as a registry takes.
fn cut(text: Option<&str>, most: usize) -> Option<String> {
    text.map(|text| text.chars().take(most).collect())
}

/// What a repository may have more of, or longer, than a package.
fn fit(shared: &mut Shareable) {
    for concept in &mut shared.concepts {
        concept.aliases.truncate(1_000);
        concept.context = concept.context.chars().take(100).collect();
    }
    for fact in &mut shared.facts {
        let text = &mut fact.source_text;
        if let Some((end, _)) = text.char_indices().nth(100_000) {
            // Whole sentences: each is one line.
            let end = text[..end].rfind('\n').unwrap_or(0);
            text.truncate(end);
        }
    }
}

async fn package(
    ctx: &JobContext,
    tools: &Tools,
    source: SourceId,
    mut shared: Shareable,
) -> Result<Package, JobError> {
    fit(&mut shared);
    let mut conn = ctx.databases().acquire_system().await?;
    let (cost, calls) = ai_calls::cost_and_calls_of(&mut conn, ctx.repository(), source.into()).await?;
    drop(conn);
    let (mut embeddings, mut concept_embeddings) = (None, None);
    if let Some((space, vectors)) = current(tools).await? {
        let tenant = Tenant::new(ctx.repository(), ctx.database());
        let facts: Vec<Uuid> = shared.facts.iter().map(|fact| fact.id).collect();
        let found = vectors.store().find(&tenant, &vectors.space(&space), &facts).await.map_err(or_wait)?;
        embeddings = data(&space, found.into_iter().map(|point| (point.id, point.vector)));
        let concept_of: BTreeMap<Uuid, Uuid> = (shared.vectors.iter())
            .filter(|(.., of)| *of == space.no)
            .map(|(concept, vector, _)| (*vector, *concept))
            .collect();
        let ids: Vec<Uuid> = concept_of.keys().copied().collect();
        let found =
            vectors.store().find(&tenant, &vectors.concept_space(&space), &ids).await.map_err(or_wait)?;
        let named = found.into_iter().filter_map(|point| Some((*concept_of.get(&point.id)?, point.vector)));
        concept_embeddings = data(&space, named);
    }
    let extraction = shared.extraction.unwrap_or_default();
    Ok(Package {
        schema_version: SCHEMA_VERSION,
        model_id: extraction.model,
        decomposed_by: Some(BY.to_owned()),
        decomposed_at: shared.processed_at.unwrap_or_default().to_rfc3339(),
        promptset_hash: extraction.promptset_hash,
        facts: shared.facts,
        concepts: shared.concepts,
        summaries: Some(shared.summaries).filter(|all| !all.is_empty()),
        embeddings,
        concept_embeddings,
        cost: Some(CostData {
            calls,
            tokens_in: cost.tokens_in,
            tokens_out: cost.tokens_out,
            usd: cost.usd.to_usd(),
        }),
        source: Some(SourceData { url: shared.url, doi: shared.doi }),
    })
}

fn data(space: &EmbeddingSpace, vectors: impl Iterator<Item = (Uuid, Vec<f32>)>) -> Option<EmbeddingData> {
    let vectors: BTreeMap<Uuid, Vec<f32>> = vectors.collect();
    let data = EmbeddingData { model: space.model.clone(), dimensions: space.dimensions, vectors };
    Some(data).filter(|data| !data.vectors.is_empty())
}
