//! Rows of `okt_system.ai_turns`: when the next call to a model is due, where its provider allows so many in a minute.

use std::time::Duration;

use sqlx::PgConnection;

use okt_pg::Result;

/// Takes the next turn; how long to wait for it. `None` when that would be longer than `longest`, and then none is taken.
#[tracing::instrument(level = "debug", name = "db.ai_turns.take", skip_all)]
pub async fn take(
    conn: &mut PgConnection,
    model: &str,
    per_minute: u32,
    longest: Duration,
) -> Result<Option<Duration>> {
    let wait = sqlx::query_scalar!(
        r#"INSERT INTO okt_system.ai_turns AS t (model, next_at)
           VALUES ($1, clock_timestamp() + $2::float8 * interval '1 second')
           ON CONFLICT (model) DO UPDATE
              SET next_at = greatest(t.next_at, clock_timestamp()) + $2::float8 * interval '1 second'
            WHERE t.next_at <= clock_timestamp() + $3::float8 * interval '1 second'
           RETURNING extract(epoch FROM next_at - clock_timestamp())::float8 - $2::float8 AS "wait!""#,
        model,
        60.0 / f64::from(per_minute.max(1)),
        longest.as_secs_f64(),
    );
    let wait = wait.fetch_optional(conn).await?;
    Ok(wait.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default()))
}
