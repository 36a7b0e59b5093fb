//! Bundles that are given to registries, and taken from them.

use std::fs::File;
use std::io::{self, Write as _};
use std::time::Duration;

use futures_util::stream::{self, TryStreamExt as _};
use okt_extract::Promptset;
use okt_interchange::bundle::{Metadata, SCHEMA_VERSION};
use okt_model::{Blob, ContentHash, Error, Progress, RegistryGraph, Result};
use okt_providers::Pieces;
use okt_providers::registry::{Admission, Graph, NewGraph, PulledGraph, Registry, RegistryError};
use okt_queue::{JobContext, JobError};
use okt_store::blobs::{BundleOf, scratch_error};
use okt_store::bundles::BundleOrigin;
use okt_store::{imports, registry_trust, repository_settings};
use sha2::{Digest as _, Sha256};

use crate::Tools;
use crate::asking::RUNS;

const AGAIN: Duration = Duration::from_mins(2);

/// The registry that the configuration calls so.
pub(crate) fn named<'t>(tools: &'t Tools, id: &str) -> Result<&'t Registry> {
    let registry = tools.registries().and_then(|registries| registries.get(Some(id)));
    registry.ok_or(Error::NotConfigured("the configuration does not name this registry any more"))
}

/// Somebody waits for it, so they are told what was wrong.
fn told(ctx: &JobContext, error: RegistryError) -> JobError {
    if error.is_passing() && ctx.attempt() < RUNS {
        let error = Error::Unavailable { service: "the registry", cause: error.into() };
        return JobError::RetryAfter { error, after: AGAIN };
    }
    let mut words = error.to_string();
    if let Some(cause) = std::error::Error::source(&error) {
        words = format!("{words}: {cause}");
    }
    Error::invalid("registry", words).into()
}

/// Gives a bundle that was exported to a registry; what came of it.
pub(crate) async fn give(
    ctx: &JobContext,
    tools: &Tools,
    registry: &Registry,
    metadata: &Metadata,
    blob: Blob,
) -> Result<serde_json::Value, JobError> {
    let gone = || Error::internal("the bundle that was just exported is gone");
    let found = tools.blobs().find_bundle(ctx.repository(), BundleOf::Export(ctx.id())).await?;
    let (blobs, bundle) = (tools.blobs().clone(), found.ok_or_else(gone)?);
    let sha256: ContentHash = metadata.sha256.parse().map_err(Error::internal)?;
    let graph = NewGraph {
        name: metadata.name.clone(),
        description: metadata.description.clone(),
        tags: metadata.tags.clone(),
        sha256: sha256.0,
        schema_version: SCHEMA_VERSION,
        sources: metadata.source_count,
        facts: metadata.fact_count,
        concepts: metadata.concept_count,
        file_sha256: blob.hash.0,
    };
    let read = move || -> Pieces {
        let (blobs, bundle) = (blobs.clone(), bundle.clone());
        let reading = async move {
            let reading = blobs.read_bundle(&bundle, None).await.map_err(io::Error::other)?;
            let reading = reading.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
            Ok::<_, io::Error>(reading.bytes.map_err(io::Error::other))
        };
        Box::pin(stream::once(reading).try_flatten())
    };
    let pushed = registry.push_graph(&graph, read).await.map_err(|error| told(ctx, error))?;
    Ok(serde_json::json!({
        "id": registry.id(), "graph_id": pushed.graph_id, "new": pushed.new,
        "signed": registry.signing_key_id().is_some(),
    }))
}

/// A bundle that was downloaded, with what its registry says of it. Nothing of that is believed yet.
pub(crate) struct Pulled {
    graph: RegistryGraph,
    told: Graph,
    file: PulledGraph,
    /// Of the file.
    sha256: [u8; 32],
}

/// Downloads a bundle.
pub(crate) async fn pull(
    ctx: &JobContext,
    tools: &Tools,
    graph: &RegistryGraph,
) -> Result<(File, Pulled), JobError> {
    let registry = named(tools, &graph.registry)?;
    let limit = tools.config().server.limits.bundle_bytes;
    let about = registry.graph(&graph.graph).await.map_err(|error| told(ctx, error))?;
    let mut pulled = registry.pull_graph(&graph.graph, limit).await.map_err(|error| told(ctx, error))?;
    let mut file = tools.blobs().scratch()?;
    let (mut done, mut hash) = (0, Sha256::new());
    while let Some(bytes) = pulled.chunk().await.map_err(|error| told(ctx, error))? {
        done += bytes.len() as u64;
        hash.update(&bytes);
        let written = tokio::task::spawn_blocking(move || file.write_all(&bytes).map(|()| file));
        file = written.await.map_err(Error::internal)?.map_err(scratch_error)?;
        let total = Some(about.bytes).filter(|total| *total >= done);
        ctx.progress(Progress { stage: "pull".to_owned(), done, total, message: None });
    }
    Ok((file, Pulled { graph: graph.clone(), told: about, file: pulled, sha256: hash.finalize().into() }))
}

impl Pulled {
    /// Where a bundle whose graph has this hash came from. An error if it is not the one that the registry speaks of, or is of somebody
    /// whose bundles the repository does not take.
    pub(crate) async fn origin(
        self,
        ctx: &JobContext,
        tools: &Tools,
        sha256: ContentHash,
    ) -> Result<BundleOrigin, JobError> {
        if !self.told.sha256.eq_ignore_ascii_case(&sha256.to_string()) {
            let wrong = "the bundle is another one than the registry says: its hash differs";
            return Err(Error::invalid("registry", wrong).into());
        }
        let key_id = self.file.signed_by(&self.sha256).map_err(|error| told(ctx, error))?;
        let owner = self.told.owner.map(|owner| storable(&owner));
        let registry = Some((self.graph.registry, storable(&self.graph.graph)));
        let origin = BundleOrigin { registry, sha256, key_id, pushed_by: owner };
        check_origin(ctx, tools, &origin).await?;
        Ok(origin)
    }
}

/// Whether the repository takes bundles from there, as people say now.
pub(crate) async fn check_origin(ctx: &JobContext, tools: &Tools, origin: &BundleOrigin) -> Result<()> {
    let Some((id, _)) = &origin.registry else { return Ok(()) };
    let mut conn = ctx.databases().acquire_system().await?;
    let settings = repository_settings::find(&mut conn, ctx.repository()).await?.unwrap_or_default();
    let revoked = registry_trust::list_revoked(&mut conn).await?;
    drop(conn);
    let default = Promptset::builtin().registry_hash().to_string();
    let admission = Admission::new(named(tools, id)?, &settings, &default, &revoked);
    match admission.refuses_origin(origin.key_id.as_deref(), origin.pushed_by.as_deref()) {
        None => Ok(()),
        Some(reason) => {
            let unwanted = RegistryError::Unwanted { registry: id.clone(), reason };
            Err(Error::invalid("registry", unwanted.to_string()))
        }
    }
}

/// Takes out again what was just taken in, if its origin was revoked meanwhile. Whoever revokes a key says so first and looks for what
/// came from it then: either they see what was taken in, or we see what they said.
pub(crate) async fn take_out_revoked(
    ctx: &JobContext,
    (key, pushed_by): (Option<&str>, Option<&str>),
) -> Result<()> {
    let mut conn = ctx.databases().acquire_system().await?;
    let revoked = registry_trust::list_revoked(&mut conn).await?;
    drop(conn);
    for key in [key, pushed_by].into_iter().flatten() {
        if revoked.iter().any(|revoked| revoked == key) {
            imports::revoke_all(ctx.databases(), ctx.database(), ctx.repository(), key).await?;
        }
    }
    Ok(())
}

/// What a registry calls something, as far as it can be stored.
pub(crate) fn storable(name: &str) -> String {
    name.chars().filter(|c| *c != '\0').take(300).collect()
}
