//! The settings of a repository.

use std::collections::BTreeMap;

use axum::extract::State;
use okt_app::{SeenSettings, SettingsChange, UsedPromptset};
use okt_config::{ResolutionProvider, SearchProvider};
use okt_http::{Json, Problem};
use okt_model::{Action, Error, Object, Permission, Stages};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use crate::Api;
use crate::auth::Caught;
use crate::contexts::ContextView;
use crate::repositories::Repository;

pub(crate) const REPOSITORY_MANAGE: Permission = Permission::new(Object::Repository, Action::Manage);

/// What a repository does with its sources.
#[derive(Serialize, ToSchema)]
#[schema(as = RepositorySettings)]
pub struct SettingsView {
    providers: ProvidersView,
    contexts: Vec<ContextView>,
    /// Whether every processed source is given to the registry.
    auto_contribute: bool,
    registry: RegistryView,
    /// Whose decompositions are taken besides those of the built-in promptset; empty takes all.
    accepted_promptset_hashes: Vec<String>,
    /// The promptset that the repository uses; null is the built-in one.
    #[schema(required)]
    promptset_hash: Option<String>,
    budget: BudgetView,
    stages: StagesView,
}

/// Which providers are switched on.
#[derive(Serialize, ToSchema)]
#[schema(as = RepositoryProviders)]
struct ProvidersView {
    search: BTreeMap<&'static str, bool>,
    resolution: BTreeMap<&'static str, bool>,
}

/// The registry that a repository uses.
#[derive(Serialize, ToSchema)]
#[schema(as = RepositoryRegistry)]
struct RegistryView {
    /// Null is the first one of the installation.
    #[schema(required)]
    id: Option<String>,
    /// `facts`, or `concepts` as well.
    #[schema(example = "concepts")]
    push_level: &'static str,
    /// Null is what the installation allows for that registry.
    #[schema(required)]
    allowed_models: Option<Vec<String>>,
}

/// What a repository may spend.
#[derive(Serialize, ToSchema)]
#[schema(as = RepositoryBudget)]
struct BudgetView {
    /// Null is no limit.
    #[schema(required)]
    monthly_usd: Option<f64>,
    /// Jobs wait until there is money again.
    #[schema(example = "pause")]
    on_exceed: &'static str,
}

/// Which optional stages sources go through.
#[derive(Serialize, ToSchema)]
#[schema(as = RepositoryStages)]
#[expect(clippy::struct_excessive_bools, reason = "each is a stage")]
struct StagesView {
    refinement: bool,
    summarization: bool,
    synthesis: bool,
    image_extraction: bool,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProviderSwitch {
    /// `web`, `academic`, `fetch`, `open_access`, `tls` or `challenge_solver`.
    #[schema(example = "web")]
    provider: String,
    enabled: bool,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    enabled: bool,
}

/// All three together: what is left out is as in a new repository.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RegistryChange {
    /// One of the installation's; null is the first one.
    id: Option<String>,
    /// `facts`, or `concepts` as well.
    push_level: Option<String>,
    /// Null is what the installation allows.
    allowed_models: Option<Vec<String>>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PromptsetsChange {
    /// SHA-256, in hexadecimal digits; empty accepts all. Left out: as it is.
    accepted_promptset_hashes: Option<Vec<String>>,
    /// The promptset that sources are taken apart with from now on; null is the built-in one. Left out: as it is.
    #[serde(default, deserialize_with = "used")]
    #[schema(value_type = Option<String>)]
    promptset_hash: UsedPromptset,
}

/// Null is something else than nothing.
fn used<'de, D: Deserializer<'de>>(deserializer: D) -> Result<UsedPromptset, D::Error> {
    let hash: Option<String> = Option::deserialize(deserializer)?;
    Ok(hash.map_or(UsedPromptset::BuiltIn, UsedPromptset::Other))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BudgetChange {
    /// Null is no limit.
    #[serde(deserialize_with = "Option::deserialize")]
    #[schema(required, minimum = 0)]
    monthly_usd: Option<f64>,
    /// What happens then: `pause` is all there is.
    on_exceed: Option<String>,
}

/// What is left out stays as it is.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StagesChange {
    refinement: Option<bool>,
    summarization: Option<bool>,
    synthesis: Option<bool>,
    image_extraction: Option<bool>,
}

/// The settings of a repository.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/settings", tag = "Settings",
    params(("repoID" = String, Path, description = "Its id or its slug")),
    responses((status = 200, body = SettingsView, description = "All of them")))]
pub async fn show(State(api): State<Api>, repository: Repository) -> Result<Json<SettingsView>, Problem> {
    Ok(Json(api.app.settings(&repository.0).await?.into()))
}

/// Switch a provider on or off.
#[utoipa::path(put, path = "/api/v1/repositories/{repoID}/settings/providers", tag = "Settings",
    params(("repoID" = String, Path, description = "Its id or its slug")), request_body = ProviderSwitch,
    responses((status = 200, body = SettingsView, description = "All settings as they are now")))]
pub async fn providers(
    State(api): State<Api>,
    repository: Repository,
    origin: Caught,
    Json(body): Json<ProviderSwitch>,
) -> Result<Json<SettingsView>, Problem> {
    let change = SettingsChange::Provider { id: body.provider, enabled: body.enabled };
    changed(&api, &repository, origin, change).await
}

/// Give every processed source to the registry, or not.
#[utoipa::path(put, path = "/api/v1/repositories/{repoID}/settings/auto-contribute", tag = "Settings",
    params(("repoID" = String, Path, description = "Its id or its slug")), request_body = Switch,
    responses((status = 200, body = SettingsView, description = "All settings as they are now")))]
pub async fn auto_contribute(
    State(api): State<Api>,
    repository: Repository,
    origin: Caught,
    Json(body): Json<Switch>,
) -> Result<Json<SettingsView>, Problem> {
    changed(&api, &repository, origin, SettingsChange::AutoContribute(body.enabled)).await
}

/// Choose a registry, and what is exchanged with it.
#[utoipa::path(put, path = "/api/v1/repositories/{repoID}/settings/registry", tag = "Settings",
    params(("repoID" = String, Path, description = "Its id or its slug")), request_body = RegistryChange,
    responses((status = 200, body = SettingsView, description = "All settings as they are now")))]
pub async fn registry(
    State(api): State<Api>,
    repository: Repository,
    origin: Caught,
    Json(body): Json<RegistryChange>,
) -> Result<Json<SettingsView>, Problem> {
    let RegistryChange { id, push_level, allowed_models } = body;
    changed(&api, &repository, origin, SettingsChange::Registry { id, push_level, allowed_models }).await
}

/// Choose whose decompositions are taken from a registry.
#[utoipa::path(put, path = "/api/v1/repositories/{repoID}/settings/promptsets", tag = "Settings",
    params(("repoID" = String, Path, description = "Its id or its slug")), request_body = PromptsetsChange,
    responses((status = 200, body = SettingsView, description = "All settings as they are now")))]
pub async fn promptsets(
    State(api): State<Api>,
    repository: Repository,
    origin: Caught,
    Json(body): Json<PromptsetsChange>,
) -> Result<Json<SettingsView>, Problem> {
    let PromptsetsChange { accepted_promptset_hashes: accepted, promptset_hash: used } = body;
    let change = SettingsChange::Promptsets { accepted, used };
    changed(&api, &repository, origin, change).await
}

/// Set what the repository may spend on models in a month.
#[utoipa::path(put, path = "/api/v1/repositories/{repoID}/settings/budget", tag = "Settings",
    params(("repoID" = String, Path, description = "Its id or its slug")), request_body = BudgetChange,
    responses((status = 200, body = SettingsView, description = "All settings as they are now")))]
pub async fn budget(
    State(api): State<Api>,
    repository: Repository,
    origin: Caught,
    Json(body): Json<BudgetChange>,
) -> Result<Json<SettingsView>, Problem> {
    if body.on_exceed.is_some_and(|what| what != "pause") {
        return Err(Error::invalid("on_exceed", "must be pause").into());
    }
    changed(&api, &repository, origin, SettingsChange::Budget(body.monthly_usd)).await
}

/// Choose which optional stages sources go through.
#[utoipa::path(put, path = "/api/v1/repositories/{repoID}/settings/stages", tag = "Settings",
    params(("repoID" = String, Path, description = "Its id or its slug")), request_body = StagesChange,
    responses((status = 200, body = SettingsView, description = "All settings as they are now")))]
pub async fn stages(
    State(api): State<Api>,
    repository: Repository,
    origin: Caught,
    Json(body): Json<StagesChange>,
) -> Result<Json<SettingsView>, Problem> {
    let stages = Stages {
        refinement: body.refinement,
        summarization: body.summarization,
        synthesis: body.synthesis,
        image_extraction: body.image_extraction,
    };
    changed(&api, &repository, origin, SettingsChange::Stages(stages)).await
}

async fn changed(
    api: &Api,
    repository: &Repository,
    origin: Caught,
    change: SettingsChange,
) -> Result<Json<SettingsView>, Problem> {
    Ok(Json(api.app.change_settings(&origin.into(), &repository.0, change).await?.into()))
}

impl From<SeenSettings> for SettingsView {
    fn from(seen: SeenSettings) -> Self {
        let SeenSettings { settings, contexts, stages } = seen;
        let on = |list: &[String], id: &'static str| (id, list.iter().any(|one| one == id));
        let search = SearchProvider::ALL.iter().map(|one| on(&settings.search, one.as_str()));
        let resolution = ResolutionProvider::ALL.iter().map(|one| on(&settings.resolution, one.as_str()));
        Self {
            providers: ProvidersView { search: search.collect(), resolution: resolution.collect() },
            contexts: contexts.into_iter().map(ContextView::from).collect(),
            auto_contribute: settings.auto_contribute,
            registry: RegistryView {
                push_level: settings.push_level.as_str(),
                id: settings.registry_id,
                allowed_models: settings.allowed_models,
            },
            accepted_promptset_hashes: settings.accepted_promptset_hashes,
            promptset_hash: settings.promptset_hash.map(|hash| hash.to_string()),
            budget: BudgetView { monthly_usd: settings.monthly_usd, on_exceed: "pause" },
            stages: StagesView {
                refinement: stages.refinement,
                summarization: stages.summarization,
                synthesis: stages.synthesis,
                image_extraction: stages.image_extraction,
            },
        }
    }
}
