//! What models were used for, and what it cost.

use axum::extract::State;
use chrono::{Days, NaiveDate};
use okt_http::{Json, Problem, Query};
use okt_model::{Action, Error, Object, Permission, Usage, UsageFilter, UsageGroup};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::Api;
use crate::admin::Scope;
use crate::repositories::Repository;

pub(crate) const AI_USAGE_READ: Permission = Permission::new(Object::AiUsage, Action::Read);
const DEFAULT_DAYS: u64 = 30;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct UsageQuery {
    /// `day` (the default), `model`, `operation` or `source`.
    group_by: Option<String>,
    /// The first day, such as `2026-03-01`; 30 days before `to` unless told.
    from: Option<NaiveDate>,
    /// The last day; today unless told. Days are those of UTC.
    to: Option<NaiveDate>,
}

/// Calls of models that were answered, and so paid for.
#[derive(Serialize, ToSchema)]
#[schema(as = AiUsage)]
pub struct UsageView {
    #[schema(example = "day")]
    group_by: &'static str,
    from: NaiveDate,
    to: NaiveDate,
    /// Days in their order; otherwise what cost most comes first, and no more than a thousand are shown.
    data: Vec<UsageRow>,
    /// Of all calls, also those of rows that are not shown.
    total: UsageRow,
}

/// A sum of calls.
#[derive(Serialize, ToSchema)]
struct UsageRow {
    /// The day, model, operation or source; `total` for the sum of all.
    #[schema(example = "2026-03-01")]
    key: String,
    calls: i64,
    tokens_in: i64,
    tokens_out: i64,
    usd: f64,
    /// The mean of a call.
    latency_ms: i64,
    /// Requests that failed before one was answered.
    retries: i64,
}

/// What the models of the whole installation were used for.
#[utoipa::path(get, path = "/api/v1/ai/usage", tag = "AI usage", params(UsageQuery),
    responses((status = 200, body = UsageView, description = "From every call that was answered")))]
pub async fn show(
    State(api): State<Api>,
    scope: Scope,
    Query(query): Query<UsageQuery>,
) -> Result<Json<UsageView>, Problem> {
    let filter = query.parsed(api.app.today().await?)?;
    Ok(Json(view(filter, api.app.system_usage(&scope.0, filter).await?)))
}

/// What models were used for by a repository.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/ai/usage", tag = "AI usage",
    params(("repoID" = String, Path, description = "Its id or its slug"), UsageQuery),
    responses((status = 200, body = UsageView, description = "From every call that was answered")))]
pub async fn show_in(
    State(api): State<Api>,
    repository: Repository,
    Query(query): Query<UsageQuery>,
) -> Result<Json<UsageView>, Problem> {
    let filter = query.parsed(api.app.today().await?)?;
    Ok(Json(view(filter, api.app.usage(&repository.0, filter).await?)))
}

impl UsageQuery {
    fn parsed(&self, today: NaiveDate) -> Result<UsageFilter, Error> {
        let named = self.group_by.as_deref().unwrap_or(UsageGroup::Day.as_str());
        let group = UsageGroup::ALL.iter().find(|group| group.as_str() == named).copied();
        let group =
            group.ok_or_else(|| Error::invalid("group_by", "must be day, model, operation or source"))?;
        let to = self.to.unwrap_or(today);
        let before = to.checked_sub_days(Days::new(DEFAULT_DAYS)).unwrap_or(to);
        Ok(UsageFilter { group, from: self.from.unwrap_or(before), to })
    }
}

fn view(filter: UsageFilter, (found, total): (Vec<Usage>, Usage)) -> UsageView {
    UsageView {
        group_by: filter.group.as_str(),
        from: filter.from,
        to: filter.to,
        data: found.into_iter().map(UsageRow::from).collect(),
        total: total.into(),
    }
}

impl From<Usage> for UsageRow {
    fn from(usage: Usage) -> Self {
        Self {
            latency_ms: usage.latency_ms / usage.calls.max(1),
            key: usage.key,
            calls: usage.calls,
            tokens_in: usage.tokens_in,
            tokens_out: usage.tokens_out,
            usd: usage.usd,
            retries: usage.retries,
        }
    }
}
