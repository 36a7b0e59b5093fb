//! Repositories: making, seeing, changing and deleting them.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use futures_util::future::join_all;
use okt_auth::permissions::{
    RepositoryDelete, RepositoryManage, RepositoryRead, RepositoryUpdate, RepositoryWrite,
};
use okt_auth::{Caller, Needed as _, RepoAccess, RepoScope, SystemScope, Visible};
use okt_config::{Contexts, Preset, ontology};
use okt_model::{
    CleanupRepository, Counts, Domain, Error, Repository, RepositoryId, Result, Role, Slug, Tier, UserId,
    checked_name,
};
use okt_queue::jobs;
use okt_store::contexts::{self, NewContext};
use okt_store::repositories::{self, NewRepository};
use okt_store::{Tx, api_keys, counters, repository_settings, roles, user_usage};

use crate::audit::{Actor, record_in};
use crate::{App, Origin};

/// For how long a list waits for the numbers beside it.
const COUNTS: Duration = Duration::from_secs(1);
/// How many roles and keys go with a repository at once.
const PEOPLE: i64 = 1_000;
const NAME_LIMIT: usize = 200;
const DESCRIPTION_LIMIT: usize = 5_000;

/// What somebody wants a new repository to be.
#[derive(Clone, Debug, Default)]
pub struct RepositoryRequest {
    pub name: String,
    pub slug: Option<String>,
    pub description: Option<String>,
    pub database: Option<String>,
    pub tier: Option<String>,
    pub preset: Option<String>,
}

/// A repository, as a caller sees it.
pub struct SeenRepository {
    pub repository: Repository,
    /// The caller's own.
    pub roles: Vec<Role>,
    /// `None` while its database does not answer.
    pub counts: Option<Counts>,
}

impl App {
    /// Makes a repository whose administrator is the caller.
    pub async fn create_repository(
        &self,
        origin: &Origin,
        scope: &SystemScope<RepositoryWrite>,
        request: &RepositoryRequest,
    ) -> Result<SeenRepository> {
        let caller = scope.caller();
        let database = self.database_for(caller, request.database.as_deref())?;
        let draft = self.draft(request, database)?;
        let slug = request.slug.as_deref().map(Slug::parse).transpose()?;
        let id = RepositoryId::mint();
        let mut tx = self.databases().begin_system().await?;
        self.reserve(&mut tx, id, &draft, slug.as_ref(), Some(caller.user())).await?;
        // With the new one, which nobody sees unless this is committed. After it, as whoever deletes one does: two who wait
        // for a slug and for a number in turns would wait for each other.
        let used = user_usage::lock(&mut tx, caller.user()).await?.repositories.saturating_sub(1);
        let limit = self.config().limits.repositories_per_user.into();
        Error::check_quota(("you have", "repositories"), (used, 1), ("limits.repositories_per_user", limit))?;
        tx.commit().await?;
        let repository = self.furnish(origin, Actor::caller(caller), id, &draft).await?;
        Ok(SeenRepository { repository, roles: vec![Role::Repoadmin], counts: Some(Counts::default()) })
    }

    /// Makes the first repository of an installation, once. Whoever is there first has it.
    pub(crate) async fn create_starter_repository(&self, owner: Option<UserId>) -> Result<()> {
        let request = RepositoryRequest {
            name: "Starter".to_owned(),
            description: Some("A place to begin; rename it or delete it as you like.".to_owned()),
            ..RepositoryRequest::default()
        };
        let draft = self.draft(&request, self.config().isolation.default_database.clone())?;
        let id = RepositoryId::mint();
        let mut tx = self.databases().begin_system().await?;
        if !repositories::lock_first(&mut tx).await? {
            return Ok(());
        }
        self.reserve(&mut tx, id, &draft, None, owner).await?;
        tx.commit().await?;
        self.furnish(&Origin::service("bootstrap"), Actor::SERVICE, id, &draft).await?;
        tracing::info!(repository.id = %id, "created the starter repository");
        Ok(())
    }

    /// Those that the credential may read, newest first, from before `before`. Also says from before which one to go on.
    pub async fn list_repositories(
        &self,
        caller: &Caller,
        before: Option<RepositoryId>,
        limit: i64,
    ) -> Result<(Vec<SeenRepository>, Option<RepositoryId>)> {
        let rows = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut conn = self.databases().acquire_system().await?;
        let (found, next) = match caller.visible() {
            Visible::All => {
                let mut found = repositories::list(&mut conn, before, limit + 1).await?;
                let more = found.len() > rows;
                found.truncate(rows);
                let next = found.last().filter(|_| more).map(|repository| repository.id);
                (found, next)
            }
            Visible::These(ids) => {
                let from = before.map_or(0, |before| ids.partition_point(|id| *id >= before));
                let page: Vec<_> = ids[from..].iter().copied().take(rows).collect();
                let next = page.last().copied().filter(|_| ids.len() > from + page.len());
                // One that was deleted a moment ago is missing, and the page is shorter.
                (repositories::get(&mut conn, &page).await?, next)
            }
        };
        drop(conn);
        let counts = self.counts_of(&found).await;
        let seen = found.into_iter().map(|repository| SeenRepository {
            roles: caller.roles(Domain::Repository(repository.id)),
            counts: counts.get(&repository.id).copied(),
            repository,
        });
        Ok((seen.collect(), next))
    }

    pub async fn find_repository(&self, scope: &RepoScope<RepositoryRead>) -> Result<SeenRepository> {
        self.load_repository(scope).await
    }

    /// What [`Self::delete_repository`] would take away; `None` while its database does not answer.
    pub async fn repository_contents(&self, scope: &RepoScope<RepositoryDelete>) -> Result<Option<Counts>> {
        Ok(self.load_repository(scope).await?.counts)
    }

    async fn load_repository(&self, scope: &RepoAccess) -> Result<SeenRepository> {
        let mut conn = self.databases().acquire_system().await?;
        let found = repositories::find(&mut conn, scope.repository()).await?;
        drop(conn);
        self.seen(scope, found.ok_or(Error::NotFound("repository"))?).await
    }

    pub async fn update_repository(
        &self,
        origin: &Origin,
        scope: &RepoScope<RepositoryUpdate>,
        name: Option<&str>,
        description: Option<&str>,
    ) -> Result<SeenRepository> {
        let name = name.map(|name| checked_name("name", name, 1, NAME_LIMIT)).transpose()?;
        let description = description.map(checked_description).transpose()?;
        let mut tx = self.databases().begin_system().await?;
        let found = repositories::update(&mut tx, scope.repository(), name.as_deref(), description).await?;
        let found = found.ok_or(Error::NotFound("repository"))?;
        self.record_change(&mut tx, origin, scope, "repository.updated", &found.id.to_string()).await?;
        tx.commit().await?;
        self.seen(scope, found).await
    }

    /// Hides a repository at once and for good; what lies in it is removed in the background.
    pub async fn delete_repository(
        &self,
        origin: &Origin,
        scope: &RepoScope<RepositoryDelete>,
    ) -> Result<()> {
        let id = scope.repository();
        let mut tx = self.databases().begin_system().await?;
        if !repositories::mark_deleted(&mut tx, id).await? {
            let there = repositories::find(&mut tx, id).await?.is_some();
            return Err(if there { Error::Moving } else { Error::NotFound("repository") });
        }
        // Those of a repository of usual size, so that nobody reads of it any more; of a large one the rest follows.
        roles::remove_some(&mut tx, id, PEOPLE).await?;
        api_keys::revoke_some(&mut tx, id, PEOPLE).await?;
        self.record_change(&mut tx, origin, scope, "repository.deleted", &id.to_string()).await?;
        tx.commit().await?;
        self.auth().forget_located(id);
        self.ask_to_clean_up(id, Duration::ZERO).await;
        Ok(())
    }

    /// Where this fails, whoever looks for untidy repositories now and then asks again.
    pub(crate) async fn ask_to_clean_up(&self, repository: RepositoryId, delay: Duration) {
        if let Err(error) = jobs::push(self.databases(), &CleanupRepository { repository }, delay).await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(repository.id = %repository, error, "failed to enqueue the clean-up of a repository; the periodic clean-up will do it");
        }
    }

    /// In the transaction of the change.
    pub(crate) async fn record_change(
        &self,
        tx: &mut Tx,
        origin: &Origin,
        scope: &RepoAccess,
        action: &'static str,
        object: &str,
    ) -> Result<()> {
        record_in(tx, origin, Actor::caller(scope.caller()), action, object, Some(scope.repository())).await
    }

    /// Who may not pick a database gets the default one, whatever they asked for.
    fn database_for(&self, caller: &Caller, asked: Option<&str>) -> Result<String> {
        let isolation = &self.config().isolation;
        let default = &isolation.default_database;
        match asked.filter(|_| caller.may(Domain::System, RepositoryManage::PERMISSION)) {
            Some(name) if name != default && !isolation.allowed_databases.iter().any(|one| one == name) => {
                Err(Error::invalid(
                    "database",
                    "can't be picked; isolation.allowed_databases names those that can",
                ))
            }
            Some(name) => Ok(name.to_owned()),
            None => Ok(default.clone()),
        }
    }

    fn draft<'a>(&'a self, request: &'a RepositoryRequest, database: String) -> Result<Draft<'a>> {
        let config = self.config();
        let preset_id = request.preset.as_deref().unwrap_or(&config.default_repository_preset);
        let preset = config.repository_presets.get(preset_id).ok_or_else(|| {
            let known: Vec<&str> = config.repository_presets.keys().map(String::as_str).collect();
            Error::invalid("preset", format!("must be one of {}", known.join(", ")))
        })?;
        Ok(Draft {
            name: checked_name("name", &request.name, 1, NAME_LIMIT)?,
            description: checked_description(request.description.as_deref().unwrap_or_default())?,
            tier: request.tier.as_deref().map_or(Ok(Tier::Shared), Tier::parse)?,
            database,
            preset_id,
            preset,
        })
    }

    /// The row that makes id and slug its own. Nobody sees it yet.
    async fn reserve(
        &self,
        tx: &mut Tx,
        id: RepositoryId,
        draft: &Draft<'_>,
        slug: Option<&Slug>,
        owner: Option<UserId>,
    ) -> Result<()> {
        let made = Slug::of_name(&draft.name);
        let new = |slug| NewRepository {
            id,
            name: &draft.name,
            slug,
            description: draft.description,
            database: &draft.database,
            tier: draft.tier,
            preset: draft.preset_id,
            owner,
        };
        let wanted = slug.unwrap_or(&made);
        let mut reserved = repositories::insert(tx, &new(wanted)).await?;
        if !reserved && repositories::abandon_stale(tx, wanted).await? {
            reserved = repositories::insert(tx, &new(wanted)).await?;
        }
        // One that was not asked for by name can be another.
        if !reserved && slug.is_none() {
            reserved = repositories::insert(tx, &new(&wanted.told_apart(id))).await?;
        }
        if !reserved {
            return Err(Error::AlreadyExists("a repository with this slug"));
        }
        let (search, resolution) = draft.providers();
        Ok(repository_settings::insert(tx, id, &search, &resolution).await?)
    }

    /// Writes what a repository starts with to its database, and shows it. The two are in different databases; a repository
    /// that does not get this far is never seen, and is cleaned up like one that was deleted.
    async fn furnish(
        &self,
        origin: &Origin,
        actor: Actor,
        id: RepositoryId,
        draft: &Draft<'_>,
    ) -> Result<Repository> {
        let furnished = async {
            let mut tx = self.databases().begin(&draft.database, id).await?;
            contexts::insert(&mut tx, id, &draft.contexts()).await?;
            tx.commit().await?;
            let mut tx = self.databases().begin_system().await?;
            let active = repositories::activate(&mut tx, id).await?;
            let active = active.ok_or_else(|| {
                Error::internal(format!("repository {id} was removed while it was being created"))
            })?;
            if let Some(owner) = active.owner {
                roles::assign(&mut tx, owner, Domain::Repository(id), Role::Repoadmin).await?;
            }
            record_in(&mut tx, origin, actor, "repository.created", &id.to_string(), Some(id)).await?;
            tx.commit().await?;
            Ok(active)
        };
        let furnished = furnished.await;
        if furnished.is_err()
            && let Ok(mut conn) = self.databases().acquire_system().await
        {
            // So that its slug is free for the next try.
            drop(repositories::abandon(&mut conn, id).await);
        }
        furnished
    }

    async fn seen(&self, scope: &RepoAccess, repository: Repository) -> Result<SeenRepository> {
        let roles = scope.caller().roles(Domain::Repository(repository.id));
        let counts = self.counts_of(std::slice::from_ref(&repository)).await.get(&repository.id).copied();
        Ok(SeenRepository { repository, roles, counts })
    }

    /// Asks each database once. One that does not answer says nothing, and holds up nobody's list for long.
    async fn counts_of(&self, repositories: &[Repository]) -> HashMap<RepositoryId, Counts> {
        let mut shards: BTreeMap<&str, Vec<RepositoryId>> = BTreeMap::new();
        for repository in repositories {
            shards.entry(&repository.database).or_default().push(repository.id);
        }
        let asked = shards.into_iter().map(|(database, ids)| async move {
            let counted = counters::list_of(self.databases(), database, &ids);
            let error: Error = match tokio::time::timeout(COUNTS, counted).await {
                Ok(Ok(counters)) => return Some((ids, counters)),
                Ok(Err(error)) => error.into(),
                Err(elapsed) => Error::Unavailable { service: "the database", cause: elapsed.into() },
            };
            let error = &error as &dyn std::error::Error;
            tracing::warn!(
                database,
                error,
                "listing repositories without their counts: their database does not answer"
            );
            None
        });
        let mut counts: HashMap<RepositoryId, Counts> = HashMap::new();
        for (ids, counters) in join_all(asked).await.into_iter().flatten() {
            counts.extend(ids.into_iter().map(|id| (id, Counts::default())));
            for (id, name, value) in counters {
                let counts = counts.entry(id).or_default();
                match name.as_str() {
                    "sources" => counts.sources = value,
                    "facts" => counts.facts = value,
                    "concepts" => counts.concepts = value,
                    "reports" => counts.reports = value,
                    "investigations" => counts.investigations = value,
                    _ => {}
                }
            }
        }
        counts
    }
}

/// A new repository, checked.
struct Draft<'a> {
    name: String,
    description: &'a str,
    tier: Tier,
    database: String,
    preset_id: &'a str,
    preset: &'a Preset,
}

impl Draft<'_> {
    fn providers(&self) -> (Vec<String>, Vec<String>) {
        let providers = &self.preset.providers;
        let search = providers.search.iter().map(|provider| provider.as_str().to_owned());
        let resolution = providers.resolution.iter().map(|provider| provider.as_str().to_owned());
        (search.collect(), resolution.collect())
    }

    /// The classes of the ontology that the preset allows, and its own.
    fn contexts(&self) -> Vec<NewContext> {
        let classes: Vec<_> = match &self.preset.contexts {
            Contexts::All => ontology::classes().collect(),
            Contexts::Labels(labels) => labels.iter().filter_map(|label| ontology::find(label)).collect(),
        };
        let built_in = classes.into_iter().map(|class| NewContext {
            label: class.label.to_owned(),
            description: class.description.to_owned(),
            ontology_class: Some(class.identifier.to_owned()),
        });
        let own = self.preset.custom_contexts.iter().map(|context| NewContext {
            label: context.label.clone(),
            description: context.description.clone(),
            ontology_class: None,
        });
        built_in.chain(own).collect()
    }
}

fn checked_description(text: &str) -> Result<&str> {
    if text.chars().count() > DESCRIPTION_LIMIT || text.contains('\0') {
        return Err(Error::invalid("description", "must be at most 5000 characters of text"));
    }
    Ok(text)
}
