//! Rows of `okt_repository.reports`. Their sentences, what was said of these, and how that changed are in `report_sentences`,
//! `report_annotations` and `report_changes`.

use chrono::{DateTime, Utc};
use okt_model::{Report, ReportId, ReportStatus, RepositoryId};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::words::word;
use okt_pg::Result;

/// A report as somebody wrote it.
#[derive(Clone, Copy, Debug)]
pub struct NewReport<'a> {
    pub title: &'a str,
    pub topic: Option<&'a str>,
    pub body: &'a str,
    pub parent: Option<i64>,
    pub language: Option<&'a str>,
}

/// What somebody changes of a report; what is missing stays.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReportUpdate<'a> {
    pub title: Option<&'a str>,
    /// An empty one removes it.
    pub topic: Option<&'a str>,
    /// With the language of it.
    pub body: Option<(&'a str, Option<&'a str>)>,
    pub parent: Option<Option<i64>>,
}

#[tracing::instrument(level = "debug", name = "db.reports.insert", skip_all, fields(report.id = %id))]
pub async fn insert(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: ReportId,
    new: NewReport<'_>,
) -> Result<i64> {
    let no = sqlx::query_scalar!(
        "INSERT INTO okt_repository.reports
             (repository_id, id, title, topic, body, parent_no, language, status, sentence_count, claim_count)
         VALUES ($1, $2, $3, $4, $5, $6, $7, 'pending', 0, 0)
         RETURNING no",
        repository.uuid(),
        id.uuid(),
        new.title,
        new.topic,
        new.body,
        new.parent,
        new.language,
    );
    Ok(no.fetch_one(conn).await?)
}

#[tracing::instrument(level = "debug", name = "db.reports.find", skip_all, fields(report.id = %id))]
pub async fn find(conn: &mut PgConnection, repository: RepositoryId, id: ReportId) -> Result<Option<Report>> {
    let row = sqlx::query_as!(
        Row,
        r#"SELECT r.id, r.no, r.title, r.topic, p.id AS "parent?", r.language, r.status, r.failure, r.sentence_count,
                  r.claim_count, r.checked_at, r.created_at, r.updated_at
             FROM okt_repository.reports r
             LEFT JOIN okt_repository.reports p ON p.repository_id = $1 AND p.no = r.parent_no
            WHERE r.repository_id = $1 AND r.id = $2"#,
        repository.uuid(),
        id.uuid(),
    );
    row.fetch_optional(conn).await?.map(Report::try_from).transpose()
}

/// The text of a report.
#[tracing::instrument(level = "debug", name = "db.reports.get_body", skip_all)]
pub async fn get_body(conn: &mut PgConnection, repository: RepositoryId, no: i64) -> Result<String> {
    let body = sqlx::query_scalar!(
        "SELECT body FROM okt_repository.reports WHERE repository_id = $1 AND no = $2",
        repository.uuid(),
        no,
    );
    Ok(body.fetch_optional(conn).await?.unwrap_or_default())
}

/// Its number; until the end of the transaction nobody else changes its sentences.
#[tracing::instrument(level = "debug", name = "db.reports.hold", skip_all, fields(report.id = %id))]
pub async fn hold(conn: &mut PgConnection, repository: RepositoryId, id: ReportId) -> Result<Option<i64>> {
    let no = sqlx::query_scalar!(
        "SELECT no FROM okt_repository.reports WHERE repository_id = $1 AND id = $2 FOR UPDATE",
        repository.uuid(),
        id.uuid(),
    );
    Ok(no.fetch_optional(conn).await?)
}

/// The newest first, from before `before`; only the parts of one, if that is given.
#[tracing::instrument(level = "debug", name = "db.reports.list", skip_all)]
pub async fn list(
    conn: &mut PgConnection,
    repository: RepositoryId,
    parent: Option<i64>,
    before: Option<ReportId>,
    limit: i64,
) -> Result<Vec<Report>> {
    let rows = sqlx::query_as!(
        Row,
        r#"SELECT r.id, r.no, r.title, r.topic, p.id AS "parent?", r.language, r.status, r.failure, r.sentence_count,
                  r.claim_count, r.checked_at, r.created_at, r.updated_at
             FROM okt_repository.reports r
             LEFT JOIN okt_repository.reports p ON p.repository_id = $1 AND p.no = r.parent_no
            WHERE r.repository_id = $1 AND r.id < coalesce($2::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
              AND ($3::bigint IS NULL OR r.parent_no = $3)
            ORDER BY r.id DESC
            LIMIT $4"#,
        repository.uuid(),
        before.map(ReportId::uuid),
        parent,
        limit,
    );
    rows.fetch_all(conn).await?.into_iter().map(Report::try_from).collect()
}

#[tracing::instrument(level = "debug", name = "db.reports.update", skip_all)]
pub async fn update(
    conn: &mut PgConnection,
    repository: RepositoryId,
    no: i64,
    update: ReportUpdate<'_>,
) -> Result<()> {
    sqlx::query!(
        "UPDATE okt_repository.reports
            SET title = coalesce($3, title),
                topic = CASE WHEN $4::text IS NULL THEN topic ELSE nullif($4, '') END,
                body = coalesce($5, body),
                language = CASE WHEN $5 IS NULL THEN language ELSE $6 END,
                parent_no = CASE WHEN $7 THEN $8 ELSE parent_no END,
                updated_at = clock_timestamp()
          WHERE repository_id = $1 AND no = $2",
        repository.uuid(),
        no,
        update.title,
        update.topic,
        update.body.map(|(body, _)| body),
        update.body.and_then(|(_, language)| language),
        update.parent.is_some(),
        update.parent.flatten(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Whether a report is another one, or a part of it, itself or through those between them.
#[tracing::instrument(level = "debug", name = "db.reports.is_within", skip_all)]
pub async fn is_within(
    conn: &mut PgConnection,
    repository: RepositoryId,
    no: i64,
    other: i64,
) -> Result<bool> {
    let found = sqlx::query_scalar!(
        r#"WITH RECURSIVE above AS (
               SELECT $2::bigint AS no
                UNION
               SELECT p.parent_no FROM above a
                CROSS JOIN LATERAL (SELECT r.parent_no FROM okt_repository.reports r
                                     WHERE r.repository_id = $1 AND r.no = a.no AND r.parent_no IS NOT NULL OFFSET 0) AS p)
           SELECT EXISTS (SELECT FROM above WHERE no = $3) AS "is!""#,
        repository.uuid(),
        no,
        other,
    );
    Ok(found.fetch_one(conn).await?)
}

/// Says where a report stands; with that all was checked, the time of it.
#[tracing::instrument(level = "debug", name = "db.reports.mark", skip_all)]
pub async fn mark(
    conn: &mut PgConnection,
    repository: RepositoryId,
    no: i64,
    status: ReportStatus,
    failure: Option<(&str, &str)>,
) -> Result<()> {
    let failure = failure.map(|(code, message)| serde_json::json!({ "code": code, "message": message }));
    sqlx::query!(
        "UPDATE okt_repository.reports
            SET status = $3, failure = $4,
                checked_at = CASE WHEN $3 = 'annotated' THEN clock_timestamp() ELSE checked_at END
          WHERE repository_id = $1 AND no = $2",
        repository.uuid(),
        no,
        status.as_str(),
        failure,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Claims of these reports wait again, so what was said of them as a whole no longer holds.
#[tracing::instrument(level = "debug", name = "db.reports.reopen", skip_all)]
pub async fn reopen(conn: &mut PgConnection, repository: RepositoryId, reports: &[i64]) -> Result<()> {
    sqlx::query!(
        "UPDATE okt_repository.reports SET status = 'annotating', failure = NULL
          WHERE repository_id = $1 AND no = ANY ($2) AND status IN ('annotated', 'failed')",
        repository.uuid(),
        reports,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// How many claims of a report came to stand otherwise since listeners were told the last time; now they are.
#[tracing::instrument(level = "debug", name = "db.reports.tell", skip_all)]
pub async fn tell(conn: &mut PgConnection, repository: RepositoryId, no: i64) -> Result<i64> {
    let changed = sqlx::query_scalar!(
        r#"WITH news AS (
               SELECT max(c.no) AS last, count(DISTINCT c.sentence_no) FILTER (WHERE c.before <> c.after) AS changed
                 FROM okt_repository.report_changes c
                 JOIN okt_repository.reports r ON r.repository_id = $1 AND r.no = $2
                WHERE c.repository_id = $1 AND c.report_no = $2 AND c.no > r.told_no),
               told AS (UPDATE okt_repository.reports r SET told_no = n.last FROM news n
                         WHERE r.repository_id = $1 AND r.no = $2 AND n.last IS NOT NULL)
           SELECT changed AS "changed!" FROM news"#,
        repository.uuid(),
        no,
    );
    Ok(changed.fetch_one(conn).await?)
}

/// Removes a report with all that was said of it; its parts stay, and belong to none.
#[tracing::instrument(level = "debug", name = "db.reports.delete", skip_all, fields(report.id = %id))]
pub async fn delete(conn: &mut PgConnection, repository: RepositoryId, id: ReportId) -> Result<bool> {
    let Some(no) = hold(conn, repository, id).await? else { return Ok(false) };
    sqlx::query!(
        "WITH annotations AS (DELETE FROM okt_repository.report_annotations WHERE repository_id = $1 AND report_no = $2),
              words AS (DELETE FROM okt_repository.report_words WHERE repository_id = $1 AND report_no = $2),
              changes AS (DELETE FROM okt_repository.report_changes WHERE repository_id = $1 AND report_no = $2),
              sentences AS (DELETE FROM okt_repository.report_sentences WHERE repository_id = $1 AND report_no = $2),
              answers AS (DELETE FROM okt_repository.model_answers
                           WHERE repository_id = $1 AND subject_kind = 'report' AND subject_id = $3),
              parts AS (UPDATE okt_repository.reports SET parent_no = NULL WHERE repository_id = $1 AND parent_no = $2)
         DELETE FROM okt_repository.reports WHERE repository_id = $1 AND no = $2",
        repository.uuid(),
        no,
        id.uuid(),
    )
    .execute(conn)
    .await?;
    Ok(true)
}

/// The reports of these numbers.
#[tracing::instrument(level = "debug", name = "db.reports.identify", skip_all)]
pub async fn identify(
    conn: &mut PgConnection,
    repository: RepositoryId,
    numbers: &[i64],
) -> Result<Vec<ReportId>> {
    let rows = sqlx::query_scalar!(
        "SELECT id FROM okt_repository.reports WHERE repository_id = $1 AND no = ANY ($2) ORDER BY id",
        repository.uuid(),
        numbers,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(Into::into).collect())
}

struct Row {
    id: Uuid,
    no: i64,
    title: String,
    topic: Option<String>,
    parent: Option<Uuid>,
    language: Option<String>,
    status: String,
    failure: Option<serde_json::Value>,
    sentence_count: i32,
    claim_count: i32,
    checked_at: Option<DateTime<Utc>>,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

impl TryFrom<Row> for Report {
    type Error = okt_pg::Error;

    fn try_from(row: Row) -> Result<Self> {
        let failure = row.failure.map(|failure| {
            let part = |name: &str| failure[name].as_str().unwrap_or_default().to_owned();
            (part("code"), part("message"))
        });
        Ok(Self {
            id: row.id.into(),
            no: row.no,
            title: row.title,
            topic: row.topic,
            parent: row.parent.map(Into::into),
            language: row.language,
            status: word("reports.status", &row.status)?,
            failure,
            sentence_count: row.sentence_count,
            claim_count: row.claim_count,
            checked_at: row.checked_at,
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    }
}
