//! What a registry has of a source, taken in place of fetching the source and of asking a model.
//!
//! A source never fails for a registry: whatever is wrong with one or with its package is logged, and the source is fetched.

mod places;
mod quotes;
mod vectors;

use std::time::{Duration, Instant};

use okt_extract::Promptset;
use okt_interchange::package::Package;
use okt_model::{
    CleanupFacts, ContentHash, EmbedConcepts, EmbedFacts, Error, ExtractConcepts, FactStatus, IndexSource,
    JobId, Locator, Payload, Progress, RefreshConceptRelations, RegistryOrigin, RepositorySettings, Result,
    Source, SourceStatus, Waiting,
};
use okt_providers::registry::{Admission, Decomposition, Names, Registry, RegistryError, RegistrySource};
use okt_queue::{Finished, JobContext, JobError};
use okt_store::outbox::{self, When};
use okt_store::packages::{self, Import};
use okt_store::{Connection, registry_trust, repository_settings, search_units, sources};
use tokio::sync::OwnedSemaphorePermit;

use crate::Tools;
use crate::asking::RUNS;
use crate::deduplicate_facts::CLEANUP_MS;
use crate::registries::{self, storable};
use places::Places;
use vectors::{Kept, keep};

/// A package that is right, and is admitted.
pub(crate) struct Hit {
    package: Package,
    about: RegistrySource,
    origin: RegistryOrigin,
    /// In memory, until it is imported.
    _room: OwnedSemaphorePermit,
}

/// Packages of a source that are tried after each other.
const TRIES: usize = 3;
/// A source waits no longer for a registry that is asked too often, so that none stands in its way.
const PATIENCE: Duration = Duration::from_hours(1);

/// Asks the registry that the repository uses.
pub(super) async fn look_up(
    ctx: &JobContext,
    tools: &Tools,
    source: &Source,
) -> Result<Option<Hit>, JobError> {
    let Some(registries) = tools.registries() else { return Ok(None) };
    let mut conn = ctx.databases().acquire_system().await?;
    let settings = repository_settings::find(&mut conn, ctx.repository()).await?.unwrap_or_default();
    let revoked = registry_trust::list_revoked(&mut conn).await?;
    drop(conn);
    let Some(registry) = registries.get(settings.registry_id.as_deref()) else { return Ok(None) };
    ctx.progress(Progress { stage: "registry".to_owned(), ..Progress::default() });
    let asking = Asking { registry, settings: &settings, revoked: &revoked };
    match asking.ask(tools, source).await {
        Ok(hit) => Ok(hit),
        Err(error) => {
            // What it has would have to be paid for otherwise.
            if let Some(delay) = error.wait() {
                // Since the job was asked for: a source that is retried later waits as well, as that is a job of its own. A job
                // that is retried itself is as old as it was, and does not wait.
                let mut tx = ctx.checkpoint().await?;
                let waits = outbox::is_younger(&mut tx, ctx.repository(), ctx.id(), PATIENCE).await?;
                tx.commit().await?;
                if waits {
                    return Err(JobError::Waits { why: Waiting::RateLimit, delay });
                }
            }
            let is_resting = matches!(error, RegistryError::Resting { .. } | RegistryError::Unwanted { .. });
            let (registry, error) = (registry.id(), &error as &dyn std::error::Error);
            if is_resting {
                tracing::debug!(registry, error, "the registry is not asked; the source is fetched");
            } else {
                tracing::warn!(registry, error, "failed to use the registry; the source is fetched");
            }
            Ok(None)
        }
    }
}

/// Who is asked, and for whom.
pub(crate) struct Asking<'a> {
    pub registry: &'a Registry,
    pub settings: &'a RepositorySettings,
    pub revoked: &'a [String],
}

impl Asking<'_> {
    pub(crate) async fn ask(&self, tools: &Tools, source: &Source) -> Result<Option<Hit>, RegistryError> {
        let registry = self.registry;
        if let Some(reason) = registry.is_not_told_of(&source.url).await {
            tracing::debug!(registry = registry.id(), source.id = %source.id, reason, "the registry is not asked");
            return Ok(None);
        }
        let names = names(source);
        let default = Promptset::builtin().registry_hash().to_string();
        let admission = Admission::new(registry, self.settings, &default, self.revoked);
        let model = tools.ai().current_space(okt_model::SpaceKind::Facts).await.ok().flatten();
        let model = model.map(|space| space.model);
        let mut left = registry.timeout();
        let begun = Instant::now();
        let found = registry.find(&names).await?;
        left = left.saturating_sub(begun.elapsed());
        let Some(about) = found.source.as_ref().filter(|_| found.found) else { return Ok(None) };
        let mut ended = Ok(None);
        for chosen in admission.ranked(&found, model.as_deref()).into_iter().take(TRIES) {
            ended = self.take(admission, &names, about, chosen, &mut left).await.map(Some);
            // Anybody can push one that is worth nothing: the next one may be.
            let is_next = matches!(
                &ended,
                Err(RegistryError::Unwanted { .. }
                    | RegistryError::Package { .. }
                    | RegistryError::Signature { .. })
            );
            if !is_next {
                break;
            }
        }
        ended
    }

    async fn take(
        &self,
        admission: Admission<'_>,
        names: &Names,
        about: &RegistrySource,
        chosen: &Decomposition,
        left: &mut Duration,
    ) -> Result<Hit, RegistryError> {
        let registry = self.registry;
        let pulled = registry.pull(about, chosen, left).await?;
        let unwanted = |reason| RegistryError::Unwanted { registry: registry.id().to_owned(), reason };
        let refused = |refused| RegistryError::Package { registry: registry.id().to_owned(), refused };
        let body = pulled.body;
        let parsed = tokio::task::spawn_blocking(move || Package::parse(&body)).await;
        let package = parsed
            .map_err(|error| RegistryError::Failed {
                registry: registry.id().to_owned(),
                cause: error.into(),
            })?
            .map_err(refused)?;
        let keys = (pulled.key_id.as_deref(), pulled.pushed_by.as_deref());
        if let Some(reason) = admission.refuses_package(&package, names, keys) {
            return Err(unwanted(reason));
        }
        // Whatever the list says of it.
        if package.facts.is_empty() {
            return Err(unwanted("it has no facts"));
        }
        let origin = RegistryOrigin {
            registry: registry.id().to_owned(),
            source_id: storable(&about.source_id),
            decomposed_by: package.decomposed_by.clone(),
            decomposed_at: package.decomposed_at.clone(),
            package_sha256: ContentHash(pulled.sha256).to_string(),
            key_id: pulled.key_id,
            pushed_by: pulled.pushed_by.as_deref().map(storable),
            has_concepts: !package.concepts.is_empty(),
        };
        Ok(Hit { package, about: about.clone(), origin, _room: pulled.room })
    }
}

impl Hit {
    fn keys(&self) -> (Option<&str>, Option<&str>) {
        (self.origin.key_id.as_deref(), self.origin.pushed_by.as_deref())
    }

    /// Whether the repository still takes it, after the time that it took to come here.
    async fn is_wanted(&self, ctx: &JobContext, tools: &Tools, source: &Source) -> Result<bool> {
        let mut conn = ctx.databases().acquire_system().await?;
        let settings = repository_settings::find(&mut conn, ctx.repository()).await?.unwrap_or_default();
        let revoked = registry_trust::list_revoked(&mut conn).await?;
        drop(conn);
        let registry = registries::named(tools, &self.origin.registry)?;
        let default = Promptset::builtin().registry_hash().to_string();
        let admission = Admission::new(registry, &settings, &default, &revoked);
        Ok(admission.refuses_package(&self.package, &names(source), self.keys()).is_none())
    }
}

/// The names that it was added by. Not the DOI that a page claims to have: anybody can write that of another paper into theirs, and the
/// page would say what the paper says.
fn names(source: &Source) -> Names {
    let doi = Locator::parse(&source.url).ok().and_then(|named| named.doi);
    Names { url: Some(source.url.clone()), doi, sha256: None }
}

/// Takes it in. `None` where the source is to be fetched after all: also where the database refuses the package, and where it can't be
/// taken in for so long that something else is wrong with it.
pub(super) async fn import(
    ctx: &JobContext,
    tools: &Tools,
    source: &Source,
    hit: &Hit,
) -> Result<Option<Finished>, JobError> {
    match take_in(ctx, tools, source, hit).await {
        Err(JobError::Failed(error)) if !error.retryable() || ctx.attempt() >= RUNS => {
            not_taken(hit, &error);
            Ok(None)
        }
        ended => ended,
    }
}

fn not_taken(hit: &Hit, error: &Error) {
    tracing::warn!(
        registry = hit.origin.registry,
        package = hit.origin.package_sha256,
        error = error as &dyn std::error::Error,
        "failed to import a package"
    );
}

async fn take_in(
    ctx: &JobContext,
    tools: &Tools,
    source: &Source,
    hit: &Hit,
) -> Result<Option<Finished>, JobError> {
    let ready = Ready::of(ctx, tools, source, hit).await?;
    if !hit.is_wanted(ctx, tools, source).await? {
        return Ok(None);
    }
    let mut tx = ctx.begin().await?;
    let Some(output) = ready.apply(&mut tx, ctx, tools, hit).await? else {
        drop(tx);
        return Ok(None);
    };
    let finished = tx.commit(Some(output)).await?;
    registries::take_out_revoked(ctx, hit.keys()).await?;
    Ok(Some(finished))
}

/// Takes it in for a source that another job has given up, or that waits for a budget; false if the source is being worked on, or gone,
/// or the database refuses the package.
pub(crate) async fn import_failed(
    ctx: &JobContext,
    tools: &Tools,
    source: &Source,
    hit: &Hit,
) -> Result<bool, JobError> {
    match take_in_failed(ctx, tools, source, hit).await {
        // Tried again a few times, it is one that can't be taken in: those behind it are to be asked for, too.
        Err(JobError::Failed(error)) if !error.retryable() || ctx.attempt() >= RUNS => {
            not_taken(hit, &error);
            Ok(false)
        }
        ended => ended,
    }
}

async fn take_in_failed(
    ctx: &JobContext,
    tools: &Tools,
    source: &Source,
    hit: &Hit,
) -> Result<bool, JobError> {
    let ready = Ready::of(ctx, tools, source, hit).await?;
    if !hit.is_wanted(ctx, tools, source).await? {
        return Ok(false);
    }
    let mut tx = ctx.checkpoint().await?;
    sources::hold(&mut tx, ctx.repository(), source.id).await?;
    let next = match sources::find(&mut tx, ctx.repository(), source.id).await? {
        Some(held) if held.status == SourceStatus::Failed => SourceStatus::Fetching,
        // The job that waits finds that the source is not its own any more.
        Some(held) if held.waiting_for.as_deref() == Some(Waiting::Budget.as_str()) => {
            SourceStatus::Processing
        }
        _ => return Ok(false),
    };
    if !sources::hand_over(&mut tx, ctx.repository(), source.id, ctx.id(), next).await?
        || ready.apply(&mut tx, ctx, tools, hit).await?.is_none()
    {
        return Ok(false);
    }
    tx.commit().await?;
    registries::take_out_revoked(ctx, hit.keys()).await?;
    Ok(true)
}

/// A package whose vectors are stored, and whose rows can be.
struct Ready {
    import: Import,
    vectors: Kept,
}

impl Ready {
    async fn of(ctx: &JobContext, tools: &Tools, source: &Source, hit: &Hit) -> Result<Self, JobError> {
        let places = Places::read(ctx, tools, source, &hit.package).await?;
        let mut import = places.import(ctx, source, hit);
        import.status = if tools.vectors().is_some() { FactStatus::New } else { FactStatus::Stable };
        let vectors = keep(ctx, &places, &hit.package, &mut import).await;
        Ok(Self { import, vectors })
    }

    /// The rows, and the jobs that go on with them; what came of it. `None` if the source is not ours.
    async fn apply(
        &self,
        conn: &mut Connection,
        ctx: &JobContext,
        tools: &Tools,
        hit: &Hit,
    ) -> Result<Option<serde_json::Value>, JobError> {
        let (repository, id, vectors) = (ctx.repository(), self.import.source, &self.vectors);
        let Some(imported) = packages::import(conn, repository, &self.import).await? else { return Ok(None) };
        search_units::note_unread(conn, repository, id).await?;
        push(conn, ctx, &IndexSource::of(id), 0).await?;
        if tools.vectors().is_some() {
            // It finds the vectors that came along, and asks for the others.
            push(conn, ctx, &EmbedFacts { source: Some(id) }, 0).await?;
            push(conn, ctx, &CleanupFacts { soon: false }, CLEANUP_MS).await?;
        } else if !hit.origin.has_concepts
            && tools.config().providers.decomposition.concept_extraction.is_on()
        {
            push(conn, ctx, &ExtractConcepts { source: id }, 0).await?;
        }
        if hit.origin.has_concepts {
            push(conn, ctx, &RefreshConceptRelations {}, 0).await?;
            if tools.vectors().is_some() && !vectors.all_concepts {
                push(conn, ctx, &EmbedConcepts { source: Some(id), concepts: Vec::new() }, 0).await?;
            }
        }
        Ok(Some(serde_json::json!({
            "status": "processed", "registry": hit.origin.registry, "model": hit.package.model_id,
            "facts": imported.facts_new, "facts_linked": imported.facts_linked, "concepts": imported.concepts_new,
            "links": imported.links, "summaries": imported.summaries,
            "vectors": { "facts": vectors.facts, "concepts": vectors.concepts },
        })))
    }
}

async fn push<P: Payload>(
    conn: &mut Connection,
    ctx: &JobContext,
    payload: &P,
    delay_ms: i64,
) -> Result<(), JobError> {
    let when = When { delay_ms, ..When::default() };
    outbox::push_after(conn, ctx.repository(), JobId::mint(), payload, when, Some(ctx.id())).await?;
    Ok(())
}
