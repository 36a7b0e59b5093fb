//! What models were used for, and what it cost.

use chrono::{Days, NaiveDate};
use okt_model::{Error, Savings, Usage, UsageFilter, UsageGroup};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::vocabulary::{read_if_given, schema};

const DEFAULT_DAYS: u64 = 30;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct UsageQuery {
    /// `day` (the default), `model`, `operation` or `source`.
    #[param(value_type = Option<schema::UsageGroup>)]
    pub group_by: Option<String>,
    /// The first day, such as `2026-03-01`; 30 days before `to` unless told.
    pub from: Option<NaiveDate>,
    /// The last day; today unless told. Days are those of UTC.
    pub to: Option<NaiveDate>,
}

/// Calls of models that were answered, and so paid for.
#[derive(Serialize, ToSchema)]
#[schema(as = AiUsage)]
pub struct UsageView {
    #[schema(value_type = schema::UsageGroup)]
    pub group_by: &'static str,
    pub from: NaiveDate,
    pub to: NaiveDate,
    /// Days in their order; otherwise what cost most comes first, and no more than a thousand are shown.
    pub data: Vec<UsageRow>,
    /// The sum of all calls, including those of rows that are not shown.
    pub total: UsageRow,
    /// What imports from registries have saved in this time; null for the whole installation.
    #[schema(required)]
    pub saved: Option<SavedView>,
}

/// What imports from registries have saved: what others were paid for the same.
#[derive(Serialize, ToSchema)]
#[schema(as = RegistrySavings)]
pub struct SavedView {
    /// Sources that were imported.
    pub sources: i64,
    /// Calls of models that were not made, as far as packages tell.
    pub calls: i64,
    pub tokens_in: i64,
    pub tokens_out: i64,
    /// What they cost their producers, in US dollars, as far as packages tell.
    #[schema(example = 0.42)]
    pub usd: f64,
}

impl From<Savings> for SavedView {
    fn from(saved: Savings) -> Self {
        Self {
            sources: saved.sources,
            calls: saved.calls,
            tokens_in: saved.tokens_in,
            tokens_out: saved.tokens_out,
            usd: saved.usd.to_usd(),
        }
    }
}

/// A sum of calls.
#[derive(Serialize, ToSchema)]
pub struct UsageRow {
    /// The day, model, operation or source; `total` for the sum of all.
    #[schema(example = "2026-03-01")]
    pub key: String,
    pub calls: i64,
    #[schema(example = 1_200)]
    pub tokens_in: i64,
    pub tokens_out: i64,
    /// What it cost, in US dollars.
    #[schema(example = 0.0021)]
    pub usd: f64,
    /// The mean of a call.
    pub latency_ms: i64,
    /// Requests that failed before one was answered.
    pub retries: i64,
}

impl UsageQuery {
    pub fn parsed(&self, today: NaiveDate) -> Result<UsageFilter, Error> {
        let group = read_if_given("group_by", self.group_by.as_deref())?.unwrap_or(UsageGroup::Day);
        let to = self.to.unwrap_or(today);
        let before = to.checked_sub_days(Days::new(DEFAULT_DAYS)).unwrap_or(to);
        Ok(UsageFilter { group, from: self.from.unwrap_or(before), to })
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
            usd: usage.usd.to_usd(),
            retries: usage.retries,
        }
    }
}
