//! Looking for sources, and with what they are found and fetched.

use std::collections::HashSet;

use chrono::NaiveDate;
use okt_auth::permissions::{SourceProviderExecute, SourceProviderRead, SourceRead};
use okt_auth::{Needed, Refused, RepoAccess, RepoScope, SystemScope};
use okt_config::{ResolutionProvider, SearchProvider};
use okt_model::{Domain, Error, Locator, RepositoryId, Result};
use okt_store::sources;

use crate::App;

/// A way to find or to fetch sources.
#[derive(Clone, Copy, Debug)]
pub struct ProviderInfo {
    pub id: &'static str,
    /// Whether it can be used as this installation is set up.
    pub configured: bool,
}

/// Some of what was found.
pub struct FoundSources {
    pub found: Vec<FoundSource>,
    pub next_cursor: Option<String>,
}

pub struct FoundSource {
    pub title: String,
    pub url: String,
    pub snippet: String,
    pub doi: Option<String>,
    pub published_at: Option<NaiveDate>,
    /// Whether the repository that was asked about has it.
    pub already_exists: Option<bool>,
}

impl App {
    pub fn search_providers(&self, _: &SystemScope<SourceProviderRead>) -> Vec<ProviderInfo> {
        let search = self.0.web.as_ref().map(|(_, search)| search);
        let info = |provider: SearchProvider| ProviderInfo {
            id: provider.as_str(),
            configured: search.is_some_and(|search| search.is_configured(provider)),
        };
        SearchProvider::ALL.into_iter().map(info).collect()
    }

    pub fn resolution_providers(&self, _: &SystemScope<SourceProviderRead>) -> Vec<ProviderInfo> {
        let settings = &self.config().providers.resolution;
        let solver = &settings.challenge_solver;
        let info = |provider: ResolutionProvider| ProviderInfo {
            id: provider.as_str(),
            configured: self.0.web.is_some()
                && match provider {
                    ResolutionProvider::Fetch => settings.fetch.enabled,
                    ResolutionProvider::OpenAccess => !settings.open_access.email.is_empty(),
                    ResolutionProvider::Tls => !settings.tls.impersonate.is_empty(),
                    ResolutionProvider::ChallengeSolver => {
                        solver.url.is_some() || !solver.endpoints.is_empty()
                    }
                },
        };
        ResolutionProvider::ALL.into_iter().map(info).collect()
    }

    /// Looks for sources; with a repository, also says which of them it has.
    pub async fn search_sources(
        &self,
        _: &SystemScope<SourceProviderExecute>,
        provider: &str,
        query: &str,
        limit: usize,
        cursor: Option<&str>,
        repository: Option<&RepoScope<SourceRead>>,
    ) -> Result<FoundSources> {
        let provider = SearchProvider::ALL.into_iter().find(|known| known.as_str() == provider);
        let provider = provider.ok_or(Error::NotFound("search provider"))?;
        let Some((_, search)) = &self.0.web else {
            return Err(Error::NotConfigured(
                "no search service can be reached: no root CA certificates are installed",
            ));
        };
        let page = search.search(provider, query, limit, cursor).await?;
        let names: Vec<Option<Locator>> = page
            .hits
            .iter()
            .map(|hit| Locator::parse(hit.doi.as_deref().unwrap_or(hit.url.as_str())).ok())
            .collect();
        let known = match repository {
            Some(scope) => Some(self.known(scope, names.iter().flatten()).await?),
            None => None,
        };
        let found = page.hits.into_iter().zip(names).map(|(hit, name)| FoundSource {
            title: hit.title,
            url: hit.url.into(),
            snippet: hit.snippet,
            doi: hit.doi,
            published_at: hit.published_at,
            already_exists: known
                .as_ref()
                .map(|known| name.is_some_and(|name| known.contains(&name.normalized))),
        });
        Ok(FoundSources { found: found.collect(), next_cursor: page.next_cursor })
    }

    async fn known(
        &self,
        scope: &RepoAccess,
        names: impl Iterator<Item = &Locator>,
    ) -> Result<HashSet<String>> {
        let names: Vec<String> = names.map(|name| name.normalized.clone()).collect();
        let mut tx = self.databases().begin_to_read(scope.database(), scope.repository()).await?;
        let known = sources::list_known(&mut tx, scope.repository(), &names).await?;
        tx.commit().await?;
        Ok(known.into_iter().collect())
    }

    /// Lets somebody who looks for sources in to the repository that they named in the body, if they may do `P` there: it
    /// depends on the route whether that is reading or adding.
    pub async fn let_in<P: Needed>(
        &self,
        scope: &SystemScope<SourceProviderExecute>,
        repository: RepositoryId,
    ) -> Result<RepoScope<P>> {
        let missing = || Error::invalid("repository_id", "no repository that you can see has this id");
        let located = self.auth().locate(&repository.to_string()).await?.ok_or_else(missing)?;
        match scope.caller().let_in(Domain::Repository(located.id), P::PERMISSION) {
            Ok(proof) => proof.into_repository(located),
            Err(Refused::Invisible) => Err(missing()),
            Err(Refused::Forbidden) => Err(Error::Forbidden("the permission is missing in this repository")),
        }
    }
}
