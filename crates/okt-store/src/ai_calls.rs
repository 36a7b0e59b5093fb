//! Rows of `okt_system.ai_calls`, `ai_days`, `ai_months` and `ai_holds`: what models cost, and what may still be spent.

use std::time::Duration;

use chrono::NaiveDate;
use okt_model::{
    BudgetOf, CallId, Cost, JobId, ModelCall, Money, Operation, RepositoryId, SpendingLimits, Subject, Usage,
    UsageFilter, UsageGroup,
};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::model_answers::{signed, unsigned};
use okt_pg::{Result, planned_anew};

/// Whether money could be set aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetReservation {
    /// Nobody limits what may be spent.
    Free,
    Reserved,
    /// With what is set aside for others it would be more than may be spent in a month.
    Exceeded {
        budget: BudgetOf,
        spent: Money,
        limit: Money,
    },
}

/// Writes calls down, and gives back what was set aside for them. Telling one twice is telling it once.
#[tracing::instrument(level = "debug", name = "db.ai_calls.record", skip_all)]
pub async fn record(conn: &mut PgConnection, calls: &[&ModelCall]) -> Result<()> {
    let column = |of: fn(&ModelCall) -> Uuid| calls.iter().map(|call| of(call)).collect::<Vec<_>>();
    let text = |of: fn(&ModelCall) -> &str| calls.iter().map(|call| of(call).to_owned()).collect::<Vec<_>>();
    let number = |of: fn(&ModelCall) -> u64| calls.iter().map(|call| signed(of(call))).collect::<Vec<_>>();
    let subject_kinds: Vec<Option<String>> =
        calls.iter().map(|call| call.subject.map(|subject| subject.kind.as_str().to_owned())).collect();
    let subjects: Vec<Option<Uuid>> =
        calls.iter().map(|call| call.subject.map(|subject| subject.id)).collect();
    let jobs: Vec<Option<Uuid>> = calls.iter().map(|call| call.job.map(JobId::uuid)).collect();
    let usd: Vec<i64> = calls.iter().map(|call| call.usd.micros()).collect();
    let retries: Vec<i32> =
        calls.iter().map(|call| i32::try_from(call.retries).unwrap_or(i32::MAX)).collect();
    sqlx::query_file!(
        "src/sql/record_ai_calls.sql",
        &column(|call| call.id.uuid()),
        &column(|call| call.repository.uuid()),
        &subject_kinds as &[Option<String>],
        &subjects as &[Option<Uuid>],
        &jobs as &[Option<Uuid>],
        &text(|call| call.operation.as_str()),
        &text(|call| &call.model),
        &text(|call| call.outcome.as_str()),
        &number(|call| call.tokens_in),
        &number(|call| call.tokens_out),
        &usd,
        &number(|call| call.latency_ms),
        &retries,
        &number(|call| call.characters),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Sets money aside for a call, if the repository and the installation may still spend it this month. In a transaction of its
/// own: whoever asks next waits for it.
#[tracing::instrument(level = "debug", name = "db.ai_calls.reserve", skip_all)]
pub async fn reserve(
    conn: &mut PgConnection,
    limits: &SpendingLimits,
    repository: RepositoryId,
    call: CallId,
    most: Money,
    expires: Duration,
) -> Result<BudgetReservation> {
    let chosen = sqlx::query_scalar!(
        "SELECT monthly_micro_usd FROM okt_system.repository_settings WHERE repository_id = $1 FOR UPDATE",
        repository.uuid(),
    );
    let chosen = chosen.fetch_optional(&mut *conn).await?.flatten();
    let own = limits.of_repository(chosen.map(Money::from_micros));
    if own.is_none() && limits.installation.is_none() {
        return Ok(BudgetReservation::Free);
    }
    // Always in this order, so that two never wait for each other.
    for (budget, limit) in [(BudgetOf::Repository, own), (BudgetOf::Installation, limits.installation)] {
        let Some(limit) = limit else { continue };
        let (spent, held) = match budget {
            BudgetOf::Repository => of_repository(conn, repository).await?,
            BudgetOf::Installation => of_installation(conn).await?,
        };
        if spent + held + most > limit {
            return Ok(BudgetReservation::Exceeded { budget, spent, limit });
        }
    }
    sqlx::query!(
        "INSERT INTO okt_system.ai_holds (call_id, repository_id, micro_usd, expires_at)
         VALUES ($1, $2, $3, clock_timestamp() + $4 * interval '1 second')",
        call.uuid(),
        repository.uuid(),
        most.micros(),
        expires.as_secs_f64(),
    )
    .execute(conn)
    .await?;
    Ok(BudgetReservation::Reserved)
}

/// What a repository has spent this month, and what is set aside for calls that are out. Under the lock of its settings, or
/// it may be old news.
#[tracing::instrument(level = "debug", name = "db.ai_calls.of_repository", skip_all)]
pub async fn of_repository(conn: &mut PgConnection, repository: RepositoryId) -> Result<(Money, Money)> {
    let row = sqlx::query!(
        r#"SELECT (SELECT coalesce(sum(micro_usd), 0) FROM okt_system.ai_days
                    WHERE repository_id = $1
                      AND day >= date_trunc('month', clock_timestamp() AT TIME ZONE 'UTC')::date)::bigint AS "spent!",
                  (SELECT coalesce(sum(micro_usd), 0) FROM okt_system.ai_holds
                    WHERE repository_id = $1 AND expires_at > clock_timestamp())::bigint AS "held!""#,
        repository.uuid(),
    );
    let row = row.fetch_one(conn).await?;
    Ok((Money::from_micros(row.spent), Money::from_micros(row.held)))
}

/// As [`of_repository`], for all repositories. The row of the month is the lock: from here to the end of the transaction
/// nobody else sets anything aside or writes a call down, so the second statement sees what belongs to the first.
async fn of_installation(conn: &mut PgConnection) -> Result<(Money, Money)> {
    let spent = sqlx::query_scalar!(
        "INSERT INTO okt_system.ai_months AS m (month, micro_usd)
         VALUES (date_trunc('month', clock_timestamp() AT TIME ZONE 'UTC')::date, 0)
         ON CONFLICT (month) DO UPDATE SET micro_usd = m.micro_usd
         RETURNING micro_usd",
    );
    let spent = spent.fetch_one(&mut *conn).await?;
    let held = sqlx::query_scalar!(
        r#"SELECT coalesce(sum(micro_usd), 0)::bigint AS "held!" FROM okt_system.ai_holds
            WHERE expires_at > clock_timestamp()"#,
    );
    let held = held.fetch_one(conn).await?;
    Ok((Money::from_micros(spent), Money::from_micros(held)))
}

/// Gives back what was set aside for a call that was not answered.
#[tracing::instrument(level = "debug", name = "db.ai_calls.let_go", skip_all)]
pub async fn let_go(conn: &mut PgConnection, call: CallId) -> Result<()> {
    let gone = sqlx::query!("DELETE FROM okt_system.ai_holds WHERE call_id = $1", call.uuid());
    gone.execute(conn).await?;
    Ok(())
}

/// Removes what processes that died have set aside, some of it; returns how many.
#[tracing::instrument(level = "debug", name = "db.ai_calls.delete_expired_reservations", skip_all)]
pub async fn delete_expired_reservations(conn: &mut PgConnection, limit: i64) -> Result<u64> {
    let gone = sqlx::query!(
        "DELETE FROM okt_system.ai_holds
          WHERE call_id IN (SELECT call_id FROM okt_system.ai_holds WHERE expires_at < clock_timestamp() LIMIT $1)",
        limit,
    );
    Ok(gone.execute(conn).await?.rows_affected())
}

/// What a subject has cost so far, and how many calls it took.
#[tracing::instrument(level = "debug", name = "db.ai_calls.cost_of", skip_all, fields(subject.id = %subject.id))]
pub async fn cost_and_calls_of(
    conn: &mut PgConnection,
    repository: RepositoryId,
    subject: Subject,
) -> Result<(Cost, u32)> {
    let row = sqlx::query!(
        r#"SELECT coalesce(sum(tokens_in), 0)::bigint AS "tokens_in!", coalesce(sum(tokens_out), 0)::bigint AS "tokens_out!",
                  coalesce(sum(micro_usd), 0)::bigint AS "micro_usd!", count(*) AS "calls!"
             FROM okt_system.ai_calls WHERE repository_id = $1 AND subject_id = $2 AND subject_kind = $3"#,
        repository.uuid(),
        subject.id,
        subject.kind.as_str(),
    );
    let row = row.fetch_one(conn).await?;
    let cost = Cost {
        tokens_in: unsigned(row.tokens_in),
        tokens_out: unsigned(row.tokens_out),
        usd: Money::from_micros(row.micro_usd),
    };
    Ok((cost, u32::try_from(row.calls).unwrap_or(u32::MAX)))
}

/// As [`cost_and_calls_of`], what it has cost.
pub async fn cost_of(conn: &mut PgConnection, repository: RepositoryId, subject: Subject) -> Result<Cost> {
    Ok(cost_and_calls_of(conn, repository, subject).await?.0)
}

/// The day that calls are filed under now.
#[tracing::instrument(level = "debug", name = "db.ai_calls.today", skip_all)]
pub async fn today(conn: &mut PgConnection) -> Result<NaiveDate> {
    let today = sqlx::query_scalar!(r#"SELECT (clock_timestamp() AT TIME ZONE 'UTC')::date AS "today!""#);
    Ok(today.fetch_one(conn).await?)
}

/// Sums of calls, of one repository or of all, by what was asked for. The largest sums of money first, days in their order.
#[tracing::instrument(level = "debug", name = "db.ai_calls.list_usage", skip_all)]
pub async fn list_usage(
    conn: &mut PgConnection,
    repository: Option<RepositoryId>,
    filter: UsageFilter,
    limit: i64,
) -> Result<Vec<Usage>> {
    let UsageFilter { group, from, to } = filter;
    if group == UsageGroup::Source {
        return list_usage_by_source(conn, repository, from, to, limit).await;
    }
    list_sums(conn, repository, filter, None, limit).await
}

/// As [`list_usage`] but for sources, which have no sums of their own; for one operation or for all.
#[tracing::instrument(level = "debug", name = "db.ai_calls.list_sums", skip_all)]
pub async fn list_sums(
    conn: &mut PgConnection,
    repository: Option<RepositoryId>,
    filter: UsageFilter,
    operation: Option<Operation>,
    limit: i64,
) -> Result<Vec<Usage>> {
    let UsageFilter { group, from, to } = filter;
    planned_anew(conn).await?;
    let rows = sqlx::query_as!(
        Row,
        r#"SELECT CASE $4 WHEN 'day' THEN day::text WHEN 'model' THEN model ELSE operation END AS "key!",
                  sum(calls)::bigint AS "calls!", sum(tokens_in)::bigint AS "tokens_in!",
                  sum(tokens_out)::bigint AS "tokens_out!", sum(micro_usd)::bigint AS "micro_usd!", sum(latency_ms)::bigint AS "latency_ms!",
                  sum(retries)::bigint AS "retries!", sum(characters)::bigint AS "characters!"
             FROM okt_system.ai_days
            WHERE ($1::uuid IS NULL OR repository_id = $1) AND day BETWEEN $2 AND $3
              AND ($6::text IS NULL OR operation = $6)
            GROUP BY 1
            ORDER BY CASE WHEN $4 = 'day' THEN 0 ELSE sum(micro_usd) END DESC, 1
            LIMIT $5"#,
        repository.map(RepositoryId::uuid),
        from,
        to,
        group.as_str(),
        limit,
        operation.map(Operation::as_str),
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(Usage::from).collect())
}

async fn list_usage_by_source(
    conn: &mut PgConnection,
    repository: Option<RepositoryId>,
    from: NaiveDate,
    to: NaiveDate,
    limit: i64,
) -> Result<Vec<Usage>> {
    planned_anew(conn).await?;
    let rows = sqlx::query_as!(
        Row,
        r#"SELECT subject_id::text AS "key!",
                  count(*) AS "calls!", sum(tokens_in)::bigint AS "tokens_in!", sum(tokens_out)::bigint AS "tokens_out!",
                  sum(micro_usd)::bigint AS "micro_usd!", sum(latency_ms)::bigint AS "latency_ms!", sum(retries)::bigint AS "retries!",
                  sum(characters)::bigint AS "characters!"
             FROM okt_system.ai_calls
            WHERE ($1::uuid IS NULL OR repository_id = $1) AND subject_kind = 'source' AND subject_id IS NOT NULL
              AND at >= $2::date AT TIME ZONE 'UTC' AND at < ($3::date + 1) AT TIME ZONE 'UTC'
            GROUP BY 1
            ORDER BY sum(micro_usd) DESC, 1
            LIMIT $4"#,
        repository.map(RepositoryId::uuid),
        from,
        to,
        limit,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(Usage::from).collect())
}

struct Row {
    key: String,
    calls: i64,
    tokens_in: i64,
    tokens_out: i64,
    micro_usd: i64,
    latency_ms: i64,
    retries: i64,
    characters: i64,
}

impl From<Row> for Usage {
    fn from(row: Row) -> Self {
        Self {
            key: row.key,
            calls: row.calls,
            tokens_in: row.tokens_in,
            tokens_out: row.tokens_out,
            usd: Money::from_micros(row.micro_usd),
            latency_ms: row.latency_ms,
            retries: row.retries,
            characters: row.characters,
        }
    }
}
