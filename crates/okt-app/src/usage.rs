//! What models were used for, and what it cost.

use chrono::{Datelike as _, NaiveDate};
use okt_auth::permissions::AiUsageRead;
use okt_auth::{RepoScope, SystemScope};
use okt_model::{Error, RepositoryId, Result, Savings, Usage, UsageFilter, UsageGroup};
use okt_store::{ai_calls, packages};

use crate::App;

/// As many rows as an answer has; sources beyond the most expensive ones are left out.
const ROWS: i64 = 1_000;
/// Days that can be asked for at once.
const DAYS: i64 = 400;

impl App {
    /// Of one repository: the sums, and the sum of all.
    pub async fn usage(
        &self,
        scope: &RepoScope<AiUsageRead>,
        filter: UsageFilter,
    ) -> Result<(Vec<Usage>, Usage)> {
        self.sums(Some(scope.repository()), filter).await
    }

    /// What the repository's imports from registries have saved.
    pub async fn savings(&self, scope: &RepoScope<AiUsageRead>, filter: UsageFilter) -> Result<Savings> {
        let mut tx = self.databases().begin_to_read(scope.database(), scope.repository()).await?;
        let saved = packages::sum_saved(&mut tx, scope.repository(), (filter.from, filter.to)).await?;
        tx.commit().await?;
        Ok(saved)
    }

    /// Of the whole installation.
    pub async fn system_usage(
        &self,
        _: &SystemScope<AiUsageRead>,
        filter: UsageFilter,
    ) -> Result<(Vec<Usage>, Usage)> {
        self.sums(None, filter).await
    }

    async fn sums(
        &self,
        repository: Option<RepositoryId>,
        filter: UsageFilter,
    ) -> Result<(Vec<Usage>, Usage)> {
        let days = i64::from(filter.to.num_days_from_ce()) - i64::from(filter.from.num_days_from_ce());
        if !(0..DAYS).contains(&days) {
            return Err(Error::invalid("from", "must not be after to, nor more than 400 days before it"));
        }
        let mut tx = self.databases().begin_system().await?;
        let found = ai_calls::list_usage(&mut tx, repository, filter, ROWS).await?;
        // Not of the rows: there may be more than are shown.
        let by_operation = UsageFilter { group: UsageGroup::Operation, ..filter };
        let all = ai_calls::list_usage(&mut tx, repository, by_operation, ROWS).await?;
        tx.commit().await?;
        Ok((found, total(&all)))
    }

    /// The day it is for the databases, which is the one that calls are filed under.
    pub async fn today(&self) -> Result<NaiveDate> {
        let mut conn = self.databases().acquire_system().await?;
        let today = ai_calls::today(&mut conn).await?;
        Ok(today)
    }
}

fn total(all: &[Usage]) -> Usage {
    let mut total = Usage { key: "total".to_owned(), ..Usage::default() };
    for usage in all {
        total.calls += usage.calls;
        total.tokens_in += usage.tokens_in;
        total.tokens_out += usage.tokens_out;
        total.usd += usage.usd;
        total.latency_ms += usage.latency_ms;
        total.retries += usage.retries;
        total.characters += usage.characters;
    }
    total
}
