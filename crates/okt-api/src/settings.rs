//! The settings of a repository.

use axum::extract::State;
use okt_app::SettingsChange;
use okt_auth::permissions::RepositoryManage;
use okt_http::{Json, Problem};
use okt_model::{Stages, UnmappedContexts};
use okt_wire::settings::{
    AskSettingsChange, BudgetChange, BudgetView, PromptsetsChange, ProviderSwitch, RegistryChange,
    SettingsView, StagesChange, Switch, UnmappedContextsChange,
};
use okt_wire::vocabulary::{OnExceed, read, read_if_given};

use crate::Api;
use crate::extract::{Repository, RequestOrigin};

/// The settings of a repository.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/settings", tag = "Settings",
    operation_id = "getSettings",
    responses((status = 200, body = SettingsView, description = "All of them")))]
pub async fn show(
    State(api): State<Api>,
    repository: Repository<RepositoryManage>,
) -> Result<Json<SettingsView>, Problem> {
    Ok(Json(api.app.settings(&repository.0).await?.into()))
}

/// Switch a provider on or off.
#[utoipa::path(put, path = "/api/v1/repositories/{repoID}/settings/providers", tag = "Settings",
    operation_id = "setProvider", request_body = ProviderSwitch,
    responses((status = 200, body = SettingsView, description = "All settings as they are now")))]
pub async fn providers(
    State(api): State<Api>,
    repository: Repository<RepositoryManage>,
    origin: RequestOrigin,
    Json(body): Json<ProviderSwitch>,
) -> Result<Json<SettingsView>, Problem> {
    let change = SettingsChange::Provider { id: body.provider, enabled: body.enabled };
    changed(&api, &repository, origin, change).await
}

/// Choose whether every processed source is contributed to the registry.
#[utoipa::path(put, path = "/api/v1/repositories/{repoID}/settings/auto-contribute", tag = "Settings",
    operation_id = "setAutoContribute", request_body = Switch,
    responses((status = 200, body = SettingsView, description = "All settings as they are now")))]
pub async fn auto_contribute(
    State(api): State<Api>,
    repository: Repository<RepositoryManage>,
    origin: RequestOrigin,
    Json(body): Json<Switch>,
) -> Result<Json<SettingsView>, Problem> {
    changed(&api, &repository, origin, SettingsChange::AutoContribute(body.enabled)).await
}

/// Choose a registry, and what is exchanged with it.
#[utoipa::path(put, path = "/api/v1/repositories/{repoID}/settings/registry", tag = "Settings",
    operation_id = "setRegistry", request_body = RegistryChange,
    responses((status = 200, body = SettingsView, description = "All settings as they are now")))]
pub async fn registry(
    State(api): State<Api>,
    repository: Repository<RepositoryManage>,
    origin: RequestOrigin,
    Json(body): Json<RegistryChange>,
) -> Result<Json<SettingsView>, Problem> {
    let RegistryChange { id, push_level, allowed_models, trust, trusted_keys } = body;
    let trust = read_if_given("trust", trust.as_deref())?;
    let change = SettingsChange::Registry { id, push_level, allowed_models, trust, trusted_keys };
    changed(&api, &repository, origin, change).await
}

/// Choose the promptset, and whose decompositions are accepted from a registry.
#[utoipa::path(put, path = "/api/v1/repositories/{repoID}/settings/promptsets", tag = "Settings",
    operation_id = "setPromptsets", request_body = PromptsetsChange,
    responses((status = 200, body = SettingsView, description = "All settings as they are now")))]
pub async fn promptsets(
    State(api): State<Api>,
    repository: Repository<RepositoryManage>,
    origin: RequestOrigin,
    Json(body): Json<PromptsetsChange>,
) -> Result<Json<SettingsView>, Problem> {
    let PromptsetsChange { accepted_promptset_hashes: accepted, promptset_hash: used } = body;
    let change = SettingsChange::Promptsets { accepted, used };
    changed(&api, &repository, origin, change).await
}

/// Set what the repository may spend on models in a month.
#[utoipa::path(put, path = "/api/v1/repositories/{repoID}/settings/budget", tag = "Settings",
    operation_id = "setBudget", request_body = BudgetChange,
    responses((status = 200, body = BudgetView, description = "The budget as it is now")))]
pub async fn budget(
    State(api): State<Api>,
    repository: Repository<RepositoryManage>,
    origin: RequestOrigin,
    Json(body): Json<BudgetChange>,
) -> Result<Json<BudgetView>, Problem> {
    read_if_given::<OnExceed>("on_exceed", body.on_exceed.as_deref())?;
    let change = SettingsChange::Budget(body.monthly_usd);
    let seen = api.app.change_settings(&origin.into(), &repository.0, change).await?;
    Ok(Json(seen.budget.into()))
}

/// Choose which optional stages sources go through.
#[utoipa::path(put, path = "/api/v1/repositories/{repoID}/settings/stages", tag = "Settings",
    operation_id = "setStages", request_body = StagesChange,
    responses((status = 200, body = SettingsView, description = "All settings as they are now")))]
pub async fn stages(
    State(api): State<Api>,
    repository: Repository<RepositoryManage>,
    origin: RequestOrigin,
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

/// Choose what becomes of concepts whose context the repository does not have.
#[utoipa::path(put, path = "/api/v1/repositories/{repoID}/settings/contexts", tag = "Settings",
    operation_id = "setUnmappedContexts", request_body = UnmappedContextsChange,
    responses((status = 200, body = SettingsView, description = "All settings as they are now")))]
pub async fn contexts(
    State(api): State<Api>,
    repository: Repository<RepositoryManage>,
    origin: RequestOrigin,
    Json(body): Json<UnmappedContextsChange>,
) -> Result<Json<SettingsView>, Problem> {
    let chosen = read::<UnmappedContexts>("unmapped_contexts", &body.unmapped_contexts)?;
    changed(&api, &repository, origin, SettingsChange::UnmappedContexts(chosen)).await
}

/// Choose who may have a model answer questions, and what each person may spend on that in a day.
#[utoipa::path(put, path = "/api/v1/repositories/{repoID}/settings/ask", tag = "Settings",
    operation_id = "setAsk", request_body = AskSettingsChange,
    responses((status = 200, body = SettingsView, description = "All settings as they are now")))]
pub async fn ask(
    State(api): State<Api>,
    repository: Repository<RepositoryManage>,
    origin: RequestOrigin,
    Json(body): Json<AskSettingsChange>,
) -> Result<Json<SettingsView>, Problem> {
    let change =
        SettingsChange::Ask { viewers: body.viewers, per_person_per_day_usd: body.per_person_per_day_usd };
    changed(&api, &repository, origin, change).await
}

async fn changed(
    api: &Api,
    repository: &Repository<RepositoryManage>,
    origin: RequestOrigin,
    change: SettingsChange,
) -> Result<Json<SettingsView>, Problem> {
    Ok(Json(api.app.change_settings(&origin.into(), &repository.0, change).await?.into()))
}
