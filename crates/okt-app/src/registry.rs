//! What a repository shares with its registry.

use okt_auth::RepoScope;
use okt_auth::permissions::RepositoryManage;
use okt_model::{ContributeSource, Error, JobId, Payload, PullAllFromRegistry, Result};
use okt_store::outbox::{self, When};
use okt_store::repository_settings;

use crate::{App, Origin};

impl App {
    /// Asks for everything to be contributed that was made here.
    pub async fn contribute_all(
        &self,
        origin: &Origin,
        scope: &RepoScope<RepositoryManage>,
    ) -> Result<JobId> {
        let payload = ContributeSource { source: None, automatic: false };
        self.share(origin, scope, &payload, "registry.contributed").await
    }

    /// Asks for what the registry has for sources that could not be had; with `dry_run`, only for how much that is.
    pub async fn pull_all(
        &self,
        origin: &Origin,
        scope: &RepoScope<RepositoryManage>,
        dry_run: bool,
    ) -> Result<JobId> {
        self.share(origin, scope, &PullAllFromRegistry { dry_run }, "registry.pulled").await
    }

    async fn share<P: Payload>(
        &self,
        origin: &Origin,
        scope: &RepoScope<RepositoryManage>,
        payload: &P,
        action: &'static str,
    ) -> Result<JobId> {
        let registry = self.registry_of(scope).await?;
        let job = JobId::mint();
        let mut tx = self.databases().begin(scope.database(), scope.repository()).await?;
        outbox::push(&mut tx, scope.repository(), job, payload, When::default()).await?;
        self.commit_recorded(tx, origin, scope, action, &registry).await?;
        Ok(job)
    }

    /// The id of the registry that the repository uses.
    async fn registry_of(&self, scope: &RepoScope<RepositoryManage>) -> Result<String> {
        let providers = &self.config().providers;
        let mut ids: Vec<&str> = providers.registries.iter().map(|entry| entry.id.as_str()).collect();
        if ids.is_empty() && providers.registry.url.is_some() {
            ids.push("default");
        }
        let mut conn = self.databases().acquire_system().await?;
        let settings = repository_settings::find(&mut conn, scope.repository()).await?;
        let chosen = settings.ok_or(Error::NotFound("repository"))?.registry_id;
        let used = match &chosen {
            Some(chosen) => ids.into_iter().find(|id| *id == chosen.as_str()),
            None => ids.first().copied(),
        };
        used.map(str::to_owned).ok_or(Error::NotConfigured(
            "this installation has no connection to a registry; an operator can set one up under providers.registry",
        ))
    }
}
