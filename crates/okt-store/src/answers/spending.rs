//! What answers have cost. Rows of `okt_repository.answer_spending` say what they have cost a person in a day, those of `answer_days` how many
//! there were; they outlive the answers, so that nobody gets anything back by stopping or deleting one.

use std::time::Duration;

use okt_model::{AnswerCosts, AnswerId, Money, RepositoryId, UserId};
use sqlx::PgConnection;
use uuid::Uuid;

use okt_pg::Result;

/// Answers that an estimate is made from.
const LATEST: i64 = 50;

/// What a person has spent today (UTC). What still runs, or was stopped and is not settled, counts with the most that it may cost.
#[tracing::instrument(level = "debug", name = "db.answers.spent_today", skip_all)]
pub async fn spent_today(conn: &mut PgConnection, repository: RepositoryId, person: UserId) -> Result<Money> {
    let spent = sqlx::query_scalar!(
        r#"SELECT coalesce(sum(coalesce(micro_usd, max_micro_usd)), 0)::bigint AS "spent!"
             FROM okt_repository.answer_spending
            WHERE repository_id = $1 AND person = $2 AND day = (clock_timestamp() AT TIME ZONE 'UTC')::date"#,
        repository.uuid(),
        person.uuid(),
    );
    Ok(Money::from_micros(spent.fetch_one(conn).await?))
}

/// How many answers a person has asked for today (UTC), also those that are deleted.
#[tracing::instrument(level = "debug", name = "db.answers.count_today", skip_all)]
pub async fn count_today(conn: &mut PgConnection, repository: RepositoryId, person: UserId) -> Result<i64> {
    let count = sqlx::query_scalar!(
        "SELECT count FROM okt_repository.answer_days
          WHERE repository_id = $1 AND person = $2 AND day = (clock_timestamp() AT TIME ZONE 'UTC')::date",
        repository.uuid(),
        person.uuid(),
    );
    Ok(count.fetch_optional(conn).await?.unwrap_or(0))
}

/// Answers of a person that were stopped so long ago that no call of theirs can be told of any more.
#[tracing::instrument(level = "debug", name = "db.answers.list_unsettled", skip_all)]
pub async fn list_unsettled(
    conn: &mut PgConnection,
    repository: RepositoryId,
    person: UserId,
    longest_call: Duration,
) -> Result<Vec<AnswerId>> {
    let rows = sqlx::query_scalar!(
        "SELECT answer_id FROM okt_repository.answer_spending
          WHERE repository_id = $1 AND person = $2 AND micro_usd IS NULL
            AND ended_at < clock_timestamp() - $3 * interval '1 second'
          ORDER BY answer_id",
        repository.uuid(),
        person.uuid(),
        longest_call.as_secs_f64(),
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(AnswerId::from).collect())
}

/// What these answers of a person have cost in the end.
#[tracing::instrument(level = "debug", name = "db.answers.settle", skip_all)]
pub async fn settle(
    conn: &mut PgConnection,
    repository: RepositoryId,
    person: UserId,
    costs: &[(AnswerId, Money)],
) -> Result<()> {
    let (ids, costs): (Vec<Uuid>, Vec<i64>) =
        costs.iter().map(|(id, cost)| (id.uuid(), cost.micros())).unzip();
    sqlx::query!(
        "UPDATE okt_repository.answer_spending s SET micro_usd = c.micro_usd
           FROM unnest($3::uuid[], $4::bigint[]) AS c (id, micro_usd)
          WHERE s.repository_id = $1 AND s.person = $2 AND s.answer_id = c.id AND s.micro_usd IS NULL",
        repository.uuid(),
        person.uuid(),
        &ids,
        &costs,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// What the last answers that a model has been asked for have cost.
#[tracing::instrument(level = "debug", name = "db.answers.costs", skip_all)]
pub async fn costs(conn: &mut PgConnection, repository: RepositoryId) -> Result<AnswerCosts> {
    let row = sqlx::query!(
        r#"SELECT count(*) AS "answers!", percentile_cont(0.5) WITHIN GROUP (ORDER BY calls) AS calls,
                  percentile_cont(0.5) WITHIN GROUP (ORDER BY micro_usd) AS median,
                  percentile_disc(0.95) WITHIN GROUP (ORDER BY micro_usd) AS most
             FROM (SELECT a.calls, a.micro_usd FROM okt_repository.answers a
                    WHERE a.repository_id = $1 AND a.mode = 'model' AND a.status <> 'running' AND a.calls > 0
                    ORDER BY a.no DESC LIMIT $2) AS latest"#,
        repository.uuid(),
        LATEST,
    );
    let row = row.fetch_one(conn).await?;
    #[expect(clippy::cast_possible_truncation, reason = "an amount between two that are stored")]
    let median = row.median.map(|micros| Money::from_micros(micros.round() as i64));
    Ok(AnswerCosts { answers: row.answers, calls: row.calls, median, most: row.most.map(Money::from_micros) })
}
