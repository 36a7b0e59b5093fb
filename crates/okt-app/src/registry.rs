//! What a repository shares with its registry, and what it finds there.

use okt_auth::permissions::{GraphWrite, RepositoryManage, SourceWrite};
use okt_auth::{RepoAccess, RepoScope};
use okt_config::{AuthMode, RegistryEntry};
use okt_extract::Promptset;
use okt_model::{
    ContributeSource, Error, JobId, Locator, Payload, PullAllFromRegistry, RepositorySettings, Result,
};
use okt_providers::registry::{
    Admission, Decomposition, GraphPage, Names, Registry, RegistryError, RegistrySource,
};
use okt_store::outbox::{self, When};
use okt_store::{registry_trust, repository_settings};

use crate::{App, Origin};

const NONE: Error = Error::NotConfigured(
    "this installation has no connection to a registry; an operator can set one up under providers.registry",
);

/// A registry that an operator has set up.
pub struct RegistryChoice {
    pub id: String,
    pub url: String,
    pub auth_mode: AuthMode,
    pub allowed_models: Vec<String>,
}

/// What a registry has of a source.
pub struct SeenFound {
    pub registry: String,
    pub source: Option<RegistrySource>,
    /// Each with why the repository would not take it.
    pub decompositions: Vec<(Decomposition, Option<&'static str>)>,
}

impl App {
    /// The registries of this installation.
    pub(crate) fn registry_choices(&self) -> Vec<RegistryChoice> {
        let providers = &self.config().providers;
        let listed = |entry: &RegistryEntry| RegistryChoice {
            id: entry.id.clone(),
            url: entry.url.to_string(),
            auth_mode: entry.auth_mode,
            allowed_models: entry.allowed_models.clone(),
        };
        let mut choices: Vec<RegistryChoice> = providers.registries.iter().map(listed).collect();
        let single = &providers.registry;
        if let Some(url) = single.url.as_ref().filter(|_| choices.is_empty()) {
            choices.push(RegistryChoice {
                id: "default".to_owned(),
                url: url.to_string(),
                auth_mode: single.auth_mode,
                allowed_models: single.allowed_models.clone(),
            });
        }
        choices
    }

    /// With what this installation signs what it contributes.
    pub(crate) fn signing_key_id(&self) -> Option<String> {
        let registries = self.registries()?;
        registries.iter().find_map(|registry| registry.signing_key_id().map(str::to_owned))
    }

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
        let registry = self.registry_id(scope, None).await?;
        let job = JobId::mint();
        let mut tx = self.databases().begin(scope.database(), scope.repository()).await?;
        outbox::push(&mut tx, scope.repository(), job, payload, When::default()).await?;
        self.commit_recorded(tx, origin, scope, action, &registry).await?;
        Ok(job)
    }

    /// What the registry has of a source, and whether the repository would take it. Nothing is taken.
    pub async fn search_registry(
        &self,
        scope: &RepoScope<SourceWrite>,
        named: &Locator,
    ) -> Result<SeenFound> {
        let settings = self.registry_settings(scope).await?;
        let registry = self.registry(settings.registry_id.as_deref())?;
        if let Some(why) = registry.is_not_told_of(&named.url).await {
            return Err(Error::invalid("url", format!("a registry is not asked about this source: {why}")));
        }
        let known_as = Names { url: Some(named.url.clone()), doi: named.doi.clone(), sha256: None };
        let found = registry.find(&known_as).await.map_err(away)?;
        let mut conn = self.databases().acquire_system().await?;
        let revoked = registry_trust::list_revoked(&mut conn).await?;
        drop(conn);
        let default = Promptset::builtin().registry_hash().to_string();
        let admission = Admission::new(&registry, &settings, &default, &revoked);
        let decompositions = found.decompositions.into_iter().map(|one| {
            let refused = admission.refuses_listed(&one);
            (one, refused)
        });
        Ok(SeenFound {
            registry: registry.id().to_owned(),
            decompositions: decompositions.collect(),
            source: found.source,
        })
    }

    /// Bundles that a registry has: the one that is named, or that of the repository.
    pub async fn list_registry_graphs(
        &self,
        scope: &RepoScope<GraphWrite>,
        registry: Option<&str>,
        (text, tag): (Option<&str>, Option<&str>),
        cursor: Option<&str>,
    ) -> Result<GraphPage> {
        let id = self.registry_id(scope, registry).await?;
        self.registry(Some(&id))?.graphs(text, tag, cursor).await.map_err(away)
    }

    fn registry(&self, id: Option<&str>) -> Result<Registry> {
        self.registries().and_then(|registries| registries.get(id)).cloned().ok_or(NONE)
    }

    async fn registry_settings(&self, scope: &RepoAccess) -> Result<RepositorySettings> {
        let mut conn = self.databases().acquire_system().await?;
        let settings = repository_settings::find(&mut conn, scope.repository()).await?;
        settings.ok_or(Error::NotFound("repository"))
    }

    /// The id of a registry: the one that is named, or that of the repository, or else the first.
    pub(crate) async fn registry_id(&self, scope: &RepoAccess, named: Option<&str>) -> Result<String> {
        let mut ids = self.registry_choices().into_iter().map(|choice| choice.id);
        if let Some(named) = named {
            let unknown = || Error::invalid("registry_id", "no registry of this installation has this id");
            return ids.find(|id| id == named).ok_or_else(unknown);
        }
        let used = match self.registry_settings(scope).await?.registry_id {
            Some(chosen) => ids.find(|id| *id == chosen),
            None => ids.next(),
        };
        used.ok_or(NONE)
    }
}

/// It is nobody's mistake who asks.
fn away(error: RegistryError) -> Error {
    Error::Unavailable { service: "the registry", cause: error.into() }
}
