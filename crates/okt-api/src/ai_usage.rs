//! What models were used for, and what it cost.

use axum::extract::State;
use okt_auth::permissions::AiUsageRead;
use okt_http::{Json, Problem, Query};
use okt_model::{Savings, Usage, UsageFilter};
use okt_wire::ai_usage::{UsageQuery, UsageRow, UsageView};

use crate::Api;
use crate::extract::{Repository, System};

/// What the models of the whole installation were used for.
#[utoipa::path(get, path = "/api/v1/ai/usage", tag = "AI usage",
    operation_id = "getAiUsage", params(UsageQuery),
    responses((status = 200, body = UsageView, description = "From every call that was answered")))]
pub async fn show(
    State(api): State<Api>,
    scope: System<AiUsageRead>,
    Query(query): Query<UsageQuery>,
) -> Result<Json<UsageView>, Problem> {
    let filter = query.parsed(api.app.today().await?)?;
    Ok(Json(view(filter, api.app.system_usage(&scope.0, filter).await?, None)))
}

/// What models were used for by a repository.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/ai/usage", tag = "AI usage",
    operation_id = "getRepositoryAiUsage", params(UsageQuery),
    responses((status = 200, body = UsageView, description = "From every call that was answered")))]
pub async fn show_in(
    State(api): State<Api>,
    repository: Repository<AiUsageRead>,
    Query(query): Query<UsageQuery>,
) -> Result<Json<UsageView>, Problem> {
    let filter = query.parsed(api.app.today().await?)?;
    let usage = api.app.usage(&repository.0, filter).await?;
    let saved = api.app.savings(&repository.0, filter).await?;
    Ok(Json(view(filter, usage, Some(saved))))
}

fn view(filter: UsageFilter, (found, total): (Vec<Usage>, Usage), saved: Option<Savings>) -> UsageView {
    UsageView {
        group_by: filter.group.as_str(),
        from: filter.from,
        to: filter.to,
        data: found.into_iter().map(UsageRow::from).collect(),
        total: total.into(),
        saved: saved.map(Into::into),
    }
}
