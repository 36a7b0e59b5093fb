//! Looking for sources, and with what they are found and fetched.

use std::collections::HashMap;

use chrono::NaiveDate;
use okt_auth::permissions::{SourceProviderExecute, SourceProviderRead, SourceRead, SourceWrite};
use okt_auth::{Needed, Refused, RepoAccess, RepoScope, SystemScope};
use okt_config::{ResolutionProvider, SearchProvider};
use okt_model::{Domain, Error, Locator, RepositoryId, Result, SourceId};
use okt_providers::search::{Hit, Search};
use okt_store::{repository_settings, source_marks, sources};

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
    /// The service says that it was retracted.
    pub retracted: bool,
    /// Whether the repository that was asked about has it, and which source it is.
    pub already_exists: Option<bool>,
    pub source: Option<SourceId>,
}

/// What is looked for.
pub struct SourceQuestion<'a> {
    pub query: &'a str,
    pub limit: usize,
    pub cursor: Option<&'a str>,
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
        question: &SourceQuestion<'_>,
        repository: Option<&RepoScope<SourceRead>>,
    ) -> Result<FoundSources> {
        let provider = SearchProvider::ALL.into_iter().find(|known| known.as_str() == provider);
        let provider = provider.ok_or(Error::NotFound("search provider"))?;
        self.look_for(provider, question, repository.map(|scope| &**scope)).await
    }

    /// Looks for sources that could be added to a repository, with a provider that is switched on there: the one that is named,
    /// or the first that is configured.
    pub async fn search_candidates(
        &self,
        scope: &RepoScope<SourceWrite>,
        provider: Option<SearchProvider>,
        question: &SourceQuestion<'_>,
    ) -> Result<FoundSources> {
        let mut conn = self.databases().acquire_system().await?;
        let settings = repository_settings::find(&mut conn, scope.repository()).await?;
        drop(conn);
        let settings = settings.ok_or(Error::NotFound("repository"))?;
        let is_on = |provider: SearchProvider| settings.search.iter().any(|on| on == provider.as_str());
        let provider = match provider {
            Some(provider) if is_on(provider) => provider,
            Some(_) => {
                return Err(Error::Conflict(
                    "the search provider is switched off in this repository; its settings switch it on",
                ));
            }
            None => {
                let search = self.search_services()?;
                let mut usable = SearchProvider::ALL.into_iter().filter(|known| search.is_configured(*known));
                usable.find(|known| is_on(*known)).ok_or(Error::NotConfigured(
                    "no search provider is both configured and switched on in this repository",
                ))?
            }
        };
        let found = self.look_for(provider, question, Some(scope)).await?;
        self.mark_retracted(scope, &found).await?;
        Ok(found)
    }

    /// Marks the sources of a repository of which a search service says that they were retracted. What a person says of them stays.
    async fn mark_retracted(&self, scope: &RepoScope<SourceWrite>, found: &FoundSources) -> Result<()> {
        let retracted = found.found.iter().filter(|hit| hit.retracted);
        let dois: Vec<String> = retracted.filter_map(|hit| hit.doi.clone()).collect();
        if dois.is_empty() {
            return Ok(());
        }
        let repository = scope.repository();
        let mut tx = self.databases().begin(scope.database(), repository).await?;
        if source_marks::mark_listed(&mut tx, repository, &dois).await? > 0 {
            self.ask_for_reports(&mut tx, scope).await?;
        }
        tx.commit().await?;
        Ok(())
    }

    fn search_services(&self) -> Result<&Search> {
        let search = self.0.web.as_ref().map(|(_, search)| search);
        search.ok_or(Error::NotConfigured(
            "no search service can be reached: no root CA certificates are installed",
        ))
    }

    async fn look_for(
        &self,
        provider: SearchProvider,
        question: &SourceQuestion<'_>,
        repository: Option<&RepoAccess>,
    ) -> Result<FoundSources> {
        let page =
            self.search_services()?.search(provider, question.query, question.limit, question.cursor).await?;
        let names: Vec<Vec<String>> = page.hits.iter().map(names).collect();
        let known = match repository {
            Some(scope) => Some(self.known(scope, names.iter().flatten()).await?),
            None => None,
        };
        let found = page.hits.into_iter().zip(names).map(|(hit, names)| {
            let known = known.as_ref().map(|known| names.iter().find_map(|name| known.get(name)));
            FoundSource {
                title: hit.title,
                url: hit.url.into(),
                snippet: hit.snippet,
                doi: hit.doi,
                published_at: hit.published_at,
                retracted: hit.retracted,
                already_exists: known.map(|source| source.is_some()),
                source: known.flatten().copied(),
            }
        });
        Ok(FoundSources { found: found.collect(), next_cursor: page.next_cursor })
    }

    async fn known(
        &self,
        scope: &RepoAccess,
        names: impl Iterator<Item = &String>,
    ) -> Result<HashMap<String, SourceId>> {
        let names: Vec<String> = names.cloned().collect();
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

/// The names that a source of it could have, as they are compared.
fn names(hit: &Hit) -> Vec<String> {
    let texts = hit.doi.as_deref().into_iter().chain([hit.url.as_str()]);
    texts.filter_map(|text| Locator::parse(text).ok()).map(|name| name.normalized).collect()
}
