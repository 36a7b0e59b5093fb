//! Copying a repository from one named database to another, and removing what lies of it where it does not live.

use futures_util::TryStreamExt;
use okt_model::{Error, RepositoryId};
use sqlx::{AssertSqlSafe, PgConnection, Row as _};

use crate::databases::Databases;
use okt_pg::Result;

/// A table with rows of repositories, and its key after the repository.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    pub schema: &'static str,
    pub name: &'static str,
    key: &'static str,
}

/// All of them, but for that of the write fence. A test compares them with the catalogue.
pub const TABLES: [Table; 59] = [
    knowledge("counters", "name"),
    knowledge("outbox", "job_id"),
    knowledge("contexts", "no"),
    knowledge("concepts", "id"),
    knowledge("concept_aliases", "concept_no, alias_key"),
    knowledge("concept_merges", "no"),
    knowledge("concept_verdicts", "one_no, other_no"),
    knowledge("concept_words", "word_key, concept_no"),
    knowledge("former_names", "context_no, name_key, concept_no"),
    knowledge("parted_concepts", "concept_no, other_no"),
    knowledge("rejected_aliases", "alias_key, concept_no"),
    knowledge("rejected_links", "content_hash, concept_no"),
    knowledge("rejected_facts", "content_hash"),
    knowledge("contradiction_states", "content_hash, other_hash"),
    knowledge("curation", "no"),
    knowledge("curation_keys", "key, curation_no"),
    knowledge("fact_concepts", "concept_no, fact_no"),
    knowledge("concept_readings", "fact_no"),
    knowledge("relation_changes", "no"),
    knowledge("relation_facts", "fact_no"),
    knowledge("concept_relations", "concept_no, other_no"),
    knowledge("summary_states", "concept_no"),
    knowledge("concept_summaries", "concept_no, slice_number"),
    knowledge("summary_facts", "concept_no, fact_no"),
    knowledge("concept_syntheses", "name_key, version"),
    knowledge("sources", "id"),
    knowledge("investigations", "id"),
    knowledge("investigation_sources", "investigation_no, source_no"),
    knowledge("source_texts", "source_id"),
    knowledge("source_images", "source_id, id"),
    knowledge("source_marks", "source_no"),
    knowledge("imports", "no"),
    knowledge("facts", "id"),
    knowledge("fact_sources", "source_no, fact_no"),
    knowledge("fact_merges", "no"),
    knowledge("fact_contradictions", "fact_no, other_no"),
    knowledge("fact_judgements", "fact_no, other_no"),
    knowledge("unchecked_facts", "no"),
    knowledge("model_answers", "key"),
    knowledge("search_units", "kind, no"),
    knowledge("search_lists", "kind, word, block"),
    knowledge("search_totals", "kind"),
    // After facts and marks: while a repository has no reports, nothing is noted for them.
    knowledge("reports", "id"),
    knowledge("report_sentences", "no"),
    knowledge("report_annotations", "no"),
    knowledge("report_words", "word, report_no, sentence_no"),
    knowledge("report_changes", "no"),
    knowledge("report_facts", "no"),
    // As these, after facts, marks and contradictions.
    knowledge("conversations", "id"),
    knowledge("answers", "id"),
    knowledge("answer_events", "answer_no, place"),
    knowledge("answer_sources", "answer_no, source_id"),
    knowledge("answer_facts", "answer_no, fact_no"),
    knowledge("answer_feedback", "answer_no, person, sentence"),
    knowledge("answer_spending", "answer_id"),
    knowledge("answer_days", "person, day"),
    knowledge("webhooks", "id"),
    knowledge("webhook_deliveries", "id"),
    // Where the server has pgvector.
    Table { schema: "okt_vectors", name: "points", key: "space, id" },
];

const fn knowledge(name: &'static str, key: &'static str) -> Table {
    Table { schema: "okt_repository", name, key }
}

impl Table {
    /// As statements name it.
    pub fn path(self) -> String {
        format!("{}.{}", self.schema, self.name)
    }
}

/// Copies the rows of one table, with their numbers; returns how many. Nobody may write to the repository meanwhile, and
/// the table must be empty of it at the other end.
#[tracing::instrument(level = "debug", name = "db.moves.copy", skip_all, fields(repository.id = %repository, table = table.name))]
pub async fn copy(
    databases: &Databases,
    repository: RepositoryId,
    table: Table,
    from: &str,
    to: &str,
) -> Result<u64> {
    let table = &table.path();
    let (mut source, mut target) =
        (databases.begin_unfenced(from, repository).await?, databases.begin_unfenced(to, repository).await?);
    for conn in [&mut source, &mut target] {
        conn.handle_with_care();
        execute(conn, "SET LOCAL statement_timeout = 0").await?;
    }
    let Some(columns) = columns(&mut source, table).await? else { return Ok(0) };
    match self::columns(&mut target, table).await? {
        Some(same) if same == columns => {}
        None if !has_rows(&mut source, repository, table).await? => return Ok(0),
        Some(_) => {
            return Err(Error::Operator(format!(
                "{table} is not the same in {from} and {to}; bring both up to date with `okt migrate`"
            ))
            .into());
        }
        None => {
            return Err(Error::Operator(format!(
                "there is no {table} in {to}; let its server have pgvector as that of {from} has, then run `okt migrate`"
            ))
            .into());
        }
    }
    // Rows can't be copied into a table with row-level security, so they go through one without.
    execute(&mut target, &format!("CREATE TEMPORARY TABLE incoming (LIKE {table}) ON COMMIT DROP")).await?;
    let out = format!(
        "COPY (SELECT {columns} FROM {table} WHERE repository_id = '{}') TO STDOUT (FORMAT binary)",
        repository.uuid()
    );
    let mut rows = source.copy_out_raw(&out).await?;
    let into = format!("COPY incoming ({columns}) FROM STDIN (FORMAT binary)");
    let mut incoming = target.copy_in_raw(&into).await?;
    loop {
        match rows.try_next().await {
            Ok(Some(chunk)) => incoming.send(chunk).await?,
            Ok(None) => break,
            Err(error) => {
                drop(incoming.abort("the other end failed").await);
                return Err(error.into());
            }
        };
    }
    drop(rows);
    // It has nothing more to do, and the other end may take long enough for it to be cut off.
    source.commit().await?;
    let sent = incoming.finish().await?;
    let insert =
        format!("INSERT INTO {table} ({columns}) OVERRIDING SYSTEM VALUE SELECT {columns} FROM incoming");
    execute(&mut target, &insert).await?;
    raise_numbers(&mut target, repository, table).await?;
    target.commit().await?;
    Ok(sent)
}

/// What the rows of a table look like, in a number and a sum: two databases with the same have the same rows.
#[tracing::instrument(level = "debug", name = "db.moves.digest", skip_all, fields(repository.id = %repository, table = table.name))]
pub async fn digest(
    databases: &Databases,
    repository: RepositoryId,
    table: Table,
    database: &str,
) -> Result<(i64, String)> {
    let table = &table.path();
    let mut tx = databases.begin_unfenced(database, repository).await?;
    for setting in ["statement_timeout = 0", "TimeZone = 'UTC'", "DateStyle = 'ISO'"] {
        execute(&mut tx, &format!("SET LOCAL {setting}")).await?;
    }
    let Some(columns) = columns(&mut tx, table).await? else { return Ok((0, "0".to_owned())) };
    let digest = format!(
        "SELECT count(*), coalesce(sum(hashtextextended(ROW ({columns})::text, 0)), 0)::text
           FROM {table} WHERE repository_id = $1"
    );
    let row = sqlx::query(AssertSqlSafe(digest)).bind(repository.uuid()).fetch_one(&mut *tx).await;
    let row = row?;
    tx.commit().await?;
    Ok((row.try_get(0)?, row.try_get(1)?))
}

/// Removes at most `limit` rows of a repository from a table where it has lived; returns how many. Does nothing where the
/// write fence does not say that it lives elsewhere or nowhere.
#[tracing::instrument(level = "debug", name = "db.moves.remove", skip_all, fields(repository.id = %repository, table = table.name))]
pub async fn remove(
    databases: &Databases,
    repository: RepositoryId,
    table: Table,
    database: &str,
    limit: i64,
) -> Result<u64> {
    let mut tx = databases.begin_unfenced(database, repository).await?;
    // As long as this lasts nobody can close the fence for another reason, and nobody can open it.
    let gone = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM okt_repository.closed
                           WHERE repository_id = $1 AND why IN ('moved', 'deleted') FOR SHARE) AS "gone!""#,
        repository.uuid(),
    );
    let gone = gone.fetch_one(&mut *tx).await?;
    let count = if gone { delete(&mut tx, repository, table, limit).await? } else { 0 };
    tx.commit().await?;
    Ok(count)
}

/// Removes what an earlier try to move a repository has left where it is being moved to; returns how many rows.
#[tracing::instrument(level = "debug", name = "db.moves.clear", skip_all, fields(repository.id = %repository, table = table.name))]
pub async fn clear(
    databases: &Databases,
    repository: RepositoryId,
    table: Table,
    database: &str,
    limit: i64,
) -> Result<u64> {
    let mut tx = databases.begin_unfenced(database, repository).await?;
    let count = delete(&mut tx, repository, table, limit).await?;
    tx.commit().await?;
    Ok(count)
}

/// In the order of the key, so that a batch does not wade through what those before it have left.
async fn delete(conn: &mut PgConnection, repository: RepositoryId, table: Table, limit: i64) -> Result<u64> {
    let (path, key) = (table.path(), table.key);
    if columns(conn, &path).await?.is_none() {
        return Ok(0);
    }
    // A repository is in one part of a table that has parts, so the place of a row says which one it is.
    let delete = format!(
        "DELETE FROM {path}
          WHERE repository_id = $1
            AND ctid = ANY (ARRAY(SELECT ctid FROM {path} WHERE repository_id = $1 ORDER BY {key} LIMIT $2))"
    );
    let done = sqlx::query(AssertSqlSafe(delete)).bind(repository.uuid()).bind(limit).execute(conn).await;
    Ok(done?.rows_affected())
}

/// The next number that is given out here comes after those that were brought along.
async fn raise_numbers(conn: &mut PgConnection, repository: RepositoryId, table: &str) -> Result<()> {
    let numbered = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM pg_attribute
                           WHERE attrelid = $1::text::regclass AND attname = 'no' AND NOT attisdropped) AS "is!""#,
        table,
    );
    if !numbered.fetch_one(&mut *conn).await? {
        return Ok(());
    }
    let raise = format!(
        "SELECT setval(s.name, greatest(nextval(s.name), m.no))
           FROM (SELECT pg_get_serial_sequence('{table}', 'no')::regclass AS name) AS s,
                (SELECT max(no) AS no FROM {table} WHERE repository_id = $1) AS m
          WHERE m.no IS NOT NULL"
    );
    sqlx::query(AssertSqlSafe(raise)).bind(repository.uuid()).execute(conn).await?;
    Ok(())
}

/// The columns of a table as a list for a statement; `None` where there is no such table.
async fn columns(conn: &mut PgConnection, table: &str) -> Result<Option<String>> {
    Ok(sqlx::query_scalar!(
        "SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum)
           FROM pg_attribute
          WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped AND attgenerated = ''",
        table,
    )
    .fetch_one(conn)
    .await?)
}

async fn has_rows(conn: &mut PgConnection, repository: RepositoryId, table: &str) -> Result<bool> {
    let look = format!("SELECT EXISTS (SELECT FROM {table} WHERE repository_id = $1)");
    let found = sqlx::query_scalar(AssertSqlSafe(look)).bind(repository.uuid()).fetch_one(conn).await;
    Ok(found?)
}

async fn execute(conn: &mut PgConnection, statement: &str) -> Result<()> {
    sqlx::query(AssertSqlSafe(statement.to_owned())).execute(conn).await?;
    Ok(())
}
