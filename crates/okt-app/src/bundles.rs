//! Graph Bundles of a repository: asking for one, handing it out, and taking one in.

use okt_auth::RepoScope;
use okt_auth::permissions::{GraphExport, GraphWrite};
use okt_model::{Blob, Error, ExportGraph, ImportGraph, JobId, RegistryGraph, Result, checked_name};
use okt_store::blobs::{BundleOf, Incoming, Reading, StoredBundle};
use okt_store::outbox::{self, When};
use okt_store::repositories;
use uuid::Uuid;

use crate::{App, Origin};

/// Uploads of a repository that wait to be imported.
const MOST_UPLOADS: usize = 10;
const MOST_TAGS: usize = 100;

/// What somebody wants a bundle to be.
#[derive(Clone, Debug, Default)]
pub struct GraphExportRequest {
    /// That of the repository, if it is not given.
    pub name: Option<String>,
    pub description: Option<String>,
    pub tags: Vec<String>,
    pub include_bodies: bool,
    pub include_images: bool,
    /// Whether it is given to a registry, and to which one if that is said.
    pub registry: Option<Option<String>>,
}

/// Which bundle is taken in.
#[derive(Clone, Debug)]
pub enum GraphOf {
    Upload(Uuid),
    /// Of a registry, the one that is named or else that of the repository.
    Registry {
        registry: Option<String>,
        graph: String,
    },
}

impl App {
    /// Asks for a bundle of the repository as it is when the job runs.
    pub async fn export_graph(
        &self,
        origin: &Origin,
        scope: &RepoScope<GraphExport>,
        request: GraphExportRequest,
    ) -> Result<JobId> {
        let repository = scope.repository();
        let name = if let Some(name) = request.name.as_deref() {
            checked_name("name", name, 1, 300)?
        } else {
            let mut conn = self.databases().acquire_system().await?;
            repositories::find(&mut conn, repository).await?.ok_or(Error::NotFound("repository"))?.name
        };
        let description = request.description.unwrap_or_default();
        if description.chars().count() > 10_000 || description.contains('\0') {
            return Err(Error::invalid("description", "must have at most 10000 characters"));
        }
        if request.tags.len() > MOST_TAGS {
            return Err(Error::invalid("tags", "must be at most 100"));
        }
        let tags = request.tags.iter().map(|tag| checked_name("tags", tag, 1, 100));
        let registry = match &request.registry {
            Some(named) => Some(self.registry_id(scope, named.as_deref()).await?),
            None => None,
        };
        let payload = ExportGraph {
            registry,
            name,
            description,
            tags: tags.collect::<Result<_>>()?,
            include_bodies: request.include_bodies,
            include_images: request.include_images,
        };
        let job = JobId::mint();
        let mut tx = self.databases().begin(scope.database(), repository).await?;
        outbox::push(&mut tx, repository, job, &payload, When::default()).await?;
        self.commit_recorded(tx, origin, scope, "graph.exported", &payload.name).await?;
        Ok(job)
    }

    /// The bundle that a job has made.
    pub async fn find_exported_graph(
        &self,
        scope: &RepoScope<GraphExport>,
        job: JobId,
    ) -> Result<StoredBundle> {
        let found = self.blobs().find_bundle(scope.repository(), BundleOf::Export(job)).await?;
        found.ok_or(Error::NotFound("exported bundle"))
    }

    /// Reads it, or a part of it.
    pub async fn read_exported_graph(
        &self,
        _: &RepoScope<GraphExport>,
        bundle: &StoredBundle,
        range: Option<std::ops::Range<u64>>,
    ) -> Result<Reading> {
        self.blobs().read_bundle(bundle, range).await?.ok_or(Error::NotFound("exported bundle"))
    }

    /// Begins to take a bundle. Once it is here, [`Self::import_graph`] takes it in.
    pub async fn begin_graph_upload(&self, scope: &RepoScope<GraphWrite>) -> Result<(Uuid, Incoming)> {
        if self.blobs().count_uploads(scope.repository()).await? >= MOST_UPLOADS {
            return Err(Error::Conflict(
                "the repository has ten uploaded bundles that nobody has imported; import one of them, or wait until they are two days old",
            ));
        }
        let id = JobId::mint().uuid();
        Ok((id, self.blobs().begin_bundle(scope.repository(), BundleOf::Upload(id))))
    }

    /// Leaves nothing behind of a bundle that was refused.
    pub async fn give_up_graph_upload(&self, scope: &RepoScope<GraphWrite>, id: Uuid) {
        // What can't be removed now goes when it is old.
        drop(self.blobs().remove_bundle(scope.repository(), BundleOf::Upload(id)).await);
    }

    /// Asks for a bundle to be taken in; with `dry_run`, only for what would become of it.
    pub async fn import_graph(
        &self,
        origin: &Origin,
        scope: &RepoScope<GraphWrite>,
        of: GraphOf,
        dry_run: bool,
    ) -> Result<JobId> {
        let repository = scope.repository();
        let (payload, named) = match of {
            GraphOf::Upload(upload) => {
                let found = self.blobs().find_bundle(repository, BundleOf::Upload(upload)).await?;
                let unknown = || {
                    Error::invalid(
                        "upload_id",
                        "the repository has no upload of this id; uploads are kept for two days",
                    )
                };
                let blob: Blob = found.ok_or_else(unknown)?.blob;
                (ImportGraph { upload: Some(upload), registry: None, dry_run }, blob.hash.to_string())
            }
            GraphOf::Registry { registry, graph } => {
                let graph = checked_name("registry_graph_id", &graph, 1, 200)?;
                let registry = self.registry_id(scope, registry.as_deref()).await?;
                let named = format!("{registry}:{graph}");
                let registry = Some(RegistryGraph { registry, graph });
                (ImportGraph { upload: None, registry, dry_run }, named)
            }
        };
        let job = JobId::mint();
        let mut tx = self.databases().begin(scope.database(), repository).await?;
        outbox::push(&mut tx, repository, job, &payload, When::default()).await?;
        let action = if dry_run { "graph.import_tried" } else { "graph.imported" };
        self.commit_recorded(tx, origin, scope, action, &named).await?;
        Ok(job)
    }
}
