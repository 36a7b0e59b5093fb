//! Rows of `okt_system.ai_calls`, `ai_days` and `ai_holds`: what models cost, and what may still be spent.

use std::time::Duration;

use chrono::NaiveDate;
use okt_model::{
    CallId, Cost, ModelCall, Operation, RepositoryId, Result, SourceId, Usage, UsageFilter, UsageGroup,
};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::error::from_sqlx;
use crate::model_answers::{signed, unsigned};

/// Whether money could be set aside.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Hold {
    /// Nobody limits what may be spent.
    Free,
    Held,
    /// With what is set aside for others it would be more than may be spent in a month.
    Exceeded {
        spent: f64,
        limit: f64,
    },
}

/// Writes calls down, and gives back what was set aside for them. Telling one twice is telling it once.
#[tracing::instrument(level = "debug", name = "db.ai_calls.record", skip_all)]
pub async fn record(conn: &mut PgConnection, calls: &[&ModelCall]) -> Result<()> {
    let column = |of: fn(&ModelCall) -> Uuid| calls.iter().map(|call| of(call)).collect::<Vec<_>>();
    let text = |of: fn(&ModelCall) -> &str| calls.iter().map(|call| of(call).to_owned()).collect::<Vec<_>>();
    let number = |of: fn(&ModelCall) -> u64| calls.iter().map(|call| signed(of(call))).collect::<Vec<_>>();
    let sources: Vec<Option<Uuid>> = calls.iter().map(|call| call.source.map(SourceId::uuid)).collect();
    let usd: Vec<f64> = calls.iter().map(|call| call.usd).collect();
    let retries: Vec<i32> =
        calls.iter().map(|call| i32::try_from(call.retries).unwrap_or(i32::MAX)).collect();
    sqlx::query_file!(
        "src/sql/record_ai_calls.sql",
        &column(|call| call.id.uuid()),
        &column(|call| call.repository.uuid()),
        &sources as &[Option<Uuid>],
        &column(|call| call.job.uuid()),
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
    .await
    .map_err(from_sqlx)?;
    Ok(())
}

/// Sets money aside for a call, if the repository may still spend it this month. In a transaction of its own: whoever asks
/// next waits for it.
#[tracing::instrument(level = "debug", name = "db.ai_calls.hold", skip_all)]
pub async fn hold(
    conn: &mut PgConnection,
    repository: RepositoryId,
    call: CallId,
    usd: f64,
    expires: Duration,
) -> Result<Hold> {
    let limit = sqlx::query_scalar!(
        "SELECT monthly_usd FROM okt_system.repository_settings WHERE repository_id = $1 FOR UPDATE",
        repository.uuid(),
    );
    let limit = limit.fetch_optional(&mut *conn).await.map_err(from_sqlx)?.flatten();
    let Some(limit) = limit else { return Ok(Hold::Free) };
    let row = sqlx::query!(
        r#"WITH month AS (
               SELECT (SELECT coalesce(sum(usd), 0) FROM okt_system.ai_days
                        WHERE repository_id = $1
                          AND day >= date_trunc('month', clock_timestamp() AT TIME ZONE 'UTC')::date) AS spent,
                      (SELECT coalesce(sum(usd), 0) FROM okt_system.ai_holds
                        WHERE repository_id = $1 AND expires_at > clock_timestamp()) AS held),
           held AS (
               INSERT INTO okt_system.ai_holds (call_id, repository_id, usd, expires_at)
               SELECT $2, $1, $3, clock_timestamp() + $5 * interval '1 second'
                 FROM month WHERE month.spent + month.held + $3 <= $4
               RETURNING call_id)
           SELECT month.spent AS "spent!", EXISTS (SELECT FROM held) AS "held!" FROM month"#,
        repository.uuid(),
        call.uuid(),
        usd,
        limit,
        expires.as_secs_f64(),
    );
    let row = row.fetch_one(conn).await.map_err(from_sqlx)?;
    Ok(if row.held { Hold::Held } else { Hold::Exceeded { spent: row.spent, limit } })
}

/// Gives back what was set aside for a call that was not answered.
#[tracing::instrument(level = "debug", name = "db.ai_calls.let_go", skip_all)]
pub async fn let_go(conn: &mut PgConnection, call: CallId) -> Result<()> {
    let gone = sqlx::query!("DELETE FROM okt_system.ai_holds WHERE call_id = $1", call.uuid());
    gone.execute(conn).await.map_err(from_sqlx)?;
    Ok(())
}

/// Removes what processes that died have set aside, some of it; returns how many.
#[tracing::instrument(level = "debug", name = "db.ai_calls.delete_expired_holds", skip_all)]
pub async fn delete_expired_holds(conn: &mut PgConnection, limit: i64) -> Result<u64> {
    let gone = sqlx::query!(
        "DELETE FROM okt_system.ai_holds
          WHERE call_id IN (SELECT call_id FROM okt_system.ai_holds WHERE expires_at < clock_timestamp() LIMIT $1)",
        limit,
    );
    Ok(gone.execute(conn).await.map_err(from_sqlx)?.rows_affected())
}

/// What a source has cost so far.
#[tracing::instrument(level = "debug", name = "db.ai_calls.cost_of", skip_all, fields(source.id = %source))]
pub async fn cost_of(conn: &mut PgConnection, repository: RepositoryId, source: SourceId) -> Result<Cost> {
    let row = sqlx::query!(
        r#"SELECT coalesce(sum(tokens_in), 0)::bigint AS "tokens_in!", coalesce(sum(tokens_out), 0)::bigint AS "tokens_out!",
                  coalesce(sum(usd), 0) AS "usd!"
             FROM okt_system.ai_calls WHERE repository_id = $1 AND source_id = $2"#,
        repository.uuid(),
        source.uuid(),
    );
    let row = row.fetch_one(conn).await.map_err(from_sqlx)?;
    Ok(Cost { tokens_in: unsigned(row.tokens_in), tokens_out: unsigned(row.tokens_out), usd: row.usd })
}

/// The day that calls are filed under now.
#[tracing::instrument(level = "debug", name = "db.ai_calls.today", skip_all)]
pub async fn today(conn: &mut PgConnection) -> Result<NaiveDate> {
    let today = sqlx::query_scalar!(r#"SELECT (clock_timestamp() AT TIME ZONE 'UTC')::date AS "today!""#);
    today.fetch_one(conn).await.map_err(from_sqlx)
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
    let rows = sqlx::query_as!(
        Row,
        r#"SELECT CASE $4 WHEN 'day' THEN day::text WHEN 'model' THEN model ELSE operation END AS "key!",
                  sum(calls)::bigint AS "calls!", sum(tokens_in)::bigint AS "tokens_in!",
                  sum(tokens_out)::bigint AS "tokens_out!", sum(usd) AS "usd!", sum(latency_ms)::bigint AS "latency_ms!",
                  sum(retries)::bigint AS "retries!", sum(characters)::bigint AS "characters!"
             FROM okt_system.ai_days
            WHERE ($1::uuid IS NULL OR repository_id = $1) AND day BETWEEN $2 AND $3
              AND ($6::text IS NULL OR operation = $6)
            GROUP BY 1
            ORDER BY CASE WHEN $4 = 'day' THEN 0 ELSE sum(usd) END DESC, 1
            LIMIT $5"#,
        repository.map(RepositoryId::uuid),
        from,
        to,
        group.as_str(),
        limit,
        operation.map(Operation::as_str),
    );
    Ok(rows.fetch_all(conn).await.map_err(from_sqlx)?.into_iter().map(Usage::from).collect())
}

async fn list_usage_by_source(
    conn: &mut PgConnection,
    repository: Option<RepositoryId>,
    from: NaiveDate,
    to: NaiveDate,
    limit: i64,
) -> Result<Vec<Usage>> {
    let rows = sqlx::query_as!(
        Row,
        r#"SELECT source_id::text AS "key!",
                  count(*) AS "calls!", sum(tokens_in)::bigint AS "tokens_in!", sum(tokens_out)::bigint AS "tokens_out!",
                  sum(usd) AS "usd!", sum(latency_ms)::bigint AS "latency_ms!", sum(retries)::bigint AS "retries!",
                  sum(characters)::bigint AS "characters!"
             FROM okt_system.ai_calls
            WHERE ($1::uuid IS NULL OR repository_id = $1) AND source_id IS NOT NULL
              AND at >= $2::date AT TIME ZONE 'UTC' AND at < ($3::date + 1) AT TIME ZONE 'UTC'
            GROUP BY 1
            ORDER BY sum(usd) DESC, 1
            LIMIT $4"#,
        repository.map(RepositoryId::uuid),
        from,
        to,
        limit,
    );
    Ok(rows.fetch_all(conn).await.map_err(from_sqlx)?.into_iter().map(Usage::from).collect())
}

struct Row {
    key: String,
    calls: i64,
    tokens_in: i64,
    tokens_out: i64,
    usd: f64,
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
            usd: row.usd,
            latency_ms: row.latency_ms,
            retries: row.retries,
            characters: row.characters,
        }
    }
}
