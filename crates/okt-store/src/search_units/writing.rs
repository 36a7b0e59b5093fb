//! Writing texts that are found by their words, and the lists of the words that they have.
//!
//! Whoever writes takes the lock of the repository's lists, after all that they change beside it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use okt_model::{Error, IndexSource, JobId, RepositoryId, SourceId, UnitKind};
use okt_search::{Posting, WORDS_VERSION, block, decode, encode, language_code};
use sqlx::PgConnection;

use super::NewUnit;
use crate::outbox::{self, When};
use crate::repository_locks::{self, RepositoryLock};
use okt_pg::Result;

/// Has texts of a source found, in place of what they were; returns how many are new or other than they were. A fact that another
/// source has had found stays as it is.
#[tracing::instrument(level = "debug", name = "db.search_units.put", skip_all)]
pub async fn put(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source_no: i64,
    units: &[NewUnit],
    language: Option<&str>,
) -> Result<u64> {
    hold(conn, repository).await?;
    let (kinds, numbers): (Vec<i16>, Vec<i64>) =
        units.iter().map(|unit| (unit.kind.number(), unit.no)).unzip();
    let there = sqlx::query!(
        "SELECT u.kind, u.no, u.source_no, u.first_sentence, u.last_sentence, u.length, u.words
             FROM unnest($2::smallint[], $3::bigint[]) AS n (kind, no)
             JOIN okt_repository.search_units u ON u.repository_id = $1 AND u.kind = n.kind AND u.no = n.no",
        repository.uuid(),
        &kinds,
        &numbers,
    );
    let there = there.fetch_all(&mut *conn).await?;
    let there: HashMap<(i16, i64), _> = there.into_iter().map(|row| ((row.kind, row.no), row)).collect();
    let (mut old, mut new) = (Vec::new(), Vec::new());
    for unit in units {
        if let Some(row) = there.get(&(unit.kind.number(), unit.no)) {
            let same =
                u32::try_from(row.length) == Ok(unit.length()) && row.words.iter().eq(unit.words.keys());
            if same || row.source_no != source_no {
                continue;
            }
            old.push((unit.kind, unit.no));
        }
        new.push(unit);
    }
    take_out(conn, repository, &old).await?;
    insert(conn, repository, source_no, &new).await?;
    if let Some(language) = language {
        note_language(conn, repository, language).await?;
    }
    // The whole source comes last: all the rest was read by this version too.
    if units.iter().any(|unit| unit.kind == UnitKind::Source) {
        note_version(conn, repository, source_no, language).await?;
    }
    u64::try_from(new.len()).map_err(|error| Error::internal(error).into())
}

/// Those of the texts of a source that are still its texts: what was read before may be gone by now. What goes while this
/// transaction runs is given up by the job that its end asks for, which waits for the lock of the lists.
#[tracing::instrument(level = "debug", name = "db.search_units.list_existing", skip_all)]
pub async fn list_existing(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source_no: i64,
    units: &[NewUnit],
) -> Result<Vec<NewUnit>> {
    hold(conn, repository).await?;
    let facts: Vec<i64> =
        units.iter().filter(|unit| unit.kind == UnitKind::Fact).map(|unit| unit.no).collect();
    let there = sqlx::query!(
        r#"SELECT EXISTS (SELECT FROM okt_repository.sources WHERE repository_id = $1 AND no = $2) AS "source!",
                  ARRAY(SELECT l.fact_no FROM okt_repository.fact_sources l
                         WHERE l.repository_id = $1 AND l.source_no = $2 AND l.fact_no = ANY ($3)) AS "facts!""#,
        repository.uuid(),
        source_no,
        &facts,
    );
    let there = there.fetch_one(conn).await?;
    let facts: BTreeSet<i64> = there.facts.into_iter().collect();
    let is_there = |unit: &&NewUnit| unit.kind != UnitKind::Fact || facts.contains(&unit.no);
    Ok(units.iter().filter(|_| there.source).filter(is_there).cloned().collect())
}

/// Has those texts of a source found no more that it has no longer. Facts that other sources make too are found with those from
/// then on.
#[tracing::instrument(level = "debug", name = "db.search_units.give_up", skip_all)]
pub async fn give_up(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source_no: i64,
    units: &[(UnitKind, i64)],
) -> Result<u64> {
    if units.is_empty() {
        return Ok(0);
    }
    hold(conn, repository).await?;
    let removed = take_out(conn, repository, units).await?;
    ask_others(conn, repository, source_no, units).await?;
    Ok(removed)
}

/// Asks for facts to be found with another source that makes them.
async fn ask_others(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source_no: i64,
    units: &[(UnitKind, i64)],
) -> Result<()> {
    let facts: Vec<i64> =
        units.iter().filter(|(kind, _)| *kind == UnitKind::Fact).map(|(_, no)| *no).collect();
    let others = sqlx::query_scalar!(
        r#"SELECT DISTINCT s.id
             FROM (SELECT min(l.source_no) AS no FROM okt_repository.fact_sources l
                    WHERE l.repository_id = $1 AND l.fact_no = ANY ($2) AND l.source_no <> $3
                    GROUP BY l.fact_no) AS n
             JOIN okt_repository.sources s ON s.repository_id = $1 AND s.no = n.no"#,
        repository.uuid(),
        &facts,
        source_no,
    );
    for source in others.fetch_all(&mut *conn).await? {
        note_unread(conn, repository, source.into()).await?;
        let payload = IndexSource::of(source.into());
        outbox::push(conn, repository, JobId::mint(), &payload, When::default()).await?;
    }
    Ok(())
}

/// Has it known that a source is to be read anew: a sweep comes for it if the job that does so is given up. True if it was read
/// before.
#[tracing::instrument(level = "debug", name = "db.search_units.note_unread", skip_all, fields(source.id = %source))]
pub async fn note_unread(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: SourceId,
) -> Result<bool> {
    let noted = sqlx::query!(
        "UPDATE okt_repository.search_units SET version = 0
          WHERE repository_id = $1 AND kind = $3 AND version <> 0
            AND no = (SELECT no FROM okt_repository.sources WHERE repository_id = $1 AND id = $2)",
        repository.uuid(),
        source.uuid(),
        UnitKind::Source.number(),
    );
    Ok(noted.execute(conn).await?.rows_affected() > 0)
}

/// Takes the lock of the repository's lists until the end of the transaction, if nobody has it.
#[tracing::instrument(level = "debug", name = "db.search_units.try_hold", skip_all)]
pub async fn try_hold(conn: &mut PgConnection, repository: RepositoryId) -> Result<bool> {
    repository_locks::try_hold(conn, repository, RepositoryLock::Lists).await
}

/// Keeps others from writing lists of the repository until the end of the transaction.
async fn hold(conn: &mut PgConnection, repository: RepositoryId) -> Result<()> {
    repository_locks::hold(conn, repository, RepositoryLock::Lists).await
}

/// A list by its kind, word and block.
type Key = (i16, String, i64);

async fn insert(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source_no: i64,
    units: &[&NewUnit],
) -> Result<()> {
    if units.is_empty() {
        return Ok(());
    }
    let mut rows = (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut postings: BTreeMap<Key, Vec<Posting>> = BTreeMap::new();
    let mut change = Change::default();
    for unit in units {
        let length = unit.length();
        rows.0.push(unit.kind.number());
        rows.1.push(unit.no);
        rows.2.push(unit.sentences.map(|(first, _)| first));
        rows.3.push(unit.sentences.map(|(_, last)| last));
        rows.4.push(i32::try_from(length).map_err(Error::internal)?);
        rows.5.push(serde_json::Value::from(unit.words.keys().cloned().collect::<Vec<_>>()));
        for (word, count) in &unit.words {
            let key = (unit.kind.number(), word.clone(), block(unit.no));
            postings.entry(key).or_default().push(Posting { unit: unit.no, count: *count, length });
        }
        change.add(unit.kind.number(), 1, i64::from(length));
    }
    sqlx::query!(
        "INSERT INTO okt_repository.search_units
                (repository_id, kind, no, source_no, first_sentence, last_sentence, length, words)
         SELECT $1, n.kind, n.no, $2, n.first, n.last, n.length, ARRAY(SELECT jsonb_array_elements_text(n.words))
           FROM unnest($3::smallint[], $4::bigint[], $5::integer[], $6::integer[], $7::integer[], $8::jsonb[])
                AS n (kind, no, first, last, length, words)",
        repository.uuid(),
        source_no,
        &rows.0,
        &rows.1,
        &rows.2 as &[Option<i32>],
        &rows.3 as &[Option<i32>],
        &rows.4,
        &rows.5,
    )
    .execute(&mut *conn)
    .await?;
    let mut lists = read_lists(conn, repository, postings.keys()).await?;
    for (key, new) in postings {
        let list = lists.entry(key).or_default();
        list.extend(new);
        list.sort_by_key(|posting| posting.unit);
    }
    write_lists(conn, repository, lists).await?;
    change.apply(conn, repository).await
}

/// Returns how many were there.
async fn take_out(
    conn: &mut PgConnection,
    repository: RepositoryId,
    units: &[(UnitKind, i64)],
) -> Result<u64> {
    if units.is_empty() {
        return Ok(0);
    }
    let (kinds, numbers): (Vec<i16>, Vec<i64>) = units.iter().map(|(kind, no)| (kind.number(), *no)).unzip();
    let rows = sqlx::query!(
        "DELETE FROM okt_repository.search_units u
          USING unnest($2::smallint[], $3::bigint[]) AS n (kind, no)
          WHERE u.repository_id = $1 AND u.kind = n.kind AND u.no = n.no
         RETURNING u.kind, u.no, u.length, u.words",
        repository.uuid(),
        &kinds,
        &numbers,
    );
    let rows = rows.fetch_all(&mut *conn).await?;
    let mut gone: BTreeMap<Key, BTreeSet<i64>> = BTreeMap::new();
    let mut change = Change::default();
    for row in &rows {
        for word in &row.words {
            gone.entry((row.kind, word.clone(), block(row.no))).or_default().insert(row.no);
        }
        change.add(row.kind, -1, -i64::from(row.length));
    }
    let mut lists = read_lists(conn, repository, gone.keys()).await?;
    for (key, list) in &mut lists {
        list.retain(|posting| !gone[key].contains(&posting.unit));
    }
    write_lists(conn, repository, lists).await?;
    change.apply(conn, repository).await?;
    u64::try_from(rows.len()).map_err(|error| Error::internal(error).into())
}

async fn read_lists(
    conn: &mut PgConnection,
    repository: RepositoryId,
    keys: impl Iterator<Item = &Key>,
) -> Result<BTreeMap<Key, Vec<Posting>>> {
    let mut columns = (Vec::new(), Vec::new(), Vec::new());
    for (kind, word, block) in keys {
        columns.0.push(*kind);
        columns.1.push(word.clone());
        columns.2.push(*block);
    }
    let rows = sqlx::query!(
        "SELECT l.kind, l.word, l.block, l.entries
           FROM unnest($2::smallint[], $3::text[], $4::bigint[]) AS n (kind, word, block)
           JOIN okt_repository.search_lists l
             ON l.repository_id = $1 AND l.kind = n.kind AND l.word = n.word AND l.block = n.block",
        repository.uuid(),
        &columns.0,
        &columns.1,
        &columns.2,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    rows.map(|row| Ok(((row.kind, row.word, row.block), entries(row.block, &row.entries)?))).collect()
}

/// Writes lists, in place of what they were; an empty one goes.
async fn write_lists(
    conn: &mut PgConnection,
    repository: RepositoryId,
    lists: BTreeMap<Key, Vec<Posting>>,
) -> Result<()> {
    let mut kept = (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut empty = (Vec::new(), Vec::new(), Vec::new());
    for ((kind, word, block), list) in lists {
        if list.is_empty() {
            empty.0.push(kind);
            empty.1.push(word);
            empty.2.push(block);
        } else {
            kept.0.push(kind);
            kept.1.push(word);
            kept.2.push(block);
            kept.3.push(i32::try_from(list.len()).map_err(Error::internal)?);
            kept.4.push(encode(&list));
        }
    }
    if !kept.0.is_empty() {
        sqlx::query!(
            "INSERT INTO okt_repository.search_lists (repository_id, kind, word, block, documents, entries)
             SELECT $1, n.kind, n.word, n.block, n.documents, n.entries
               FROM unnest($2::smallint[], $3::text[], $4::bigint[], $5::integer[], $6::bytea[])
                    AS n (kind, word, block, documents, entries)
             ON CONFLICT (repository_id, kind, word, block)
             DO UPDATE SET documents = excluded.documents, entries = excluded.entries",
            repository.uuid(),
            &kept.0,
            &kept.1,
            &kept.2,
            &kept.3,
            &kept.4,
        )
        .execute(&mut *conn)
        .await?;
    }
    if !empty.0.is_empty() {
        sqlx::query!(
            "DELETE FROM okt_repository.search_lists l
              USING unnest($2::smallint[], $3::text[], $4::bigint[]) AS n (kind, word, block)
              WHERE l.repository_id = $1 AND l.kind = n.kind AND l.word = n.word AND l.block = n.block",
            repository.uuid(),
            &empty.0,
            &empty.1,
            &empty.2,
        )
        .execute(conn)
        .await?;
    }
    Ok(())
}

/// What becomes of the totals, by kind.
#[derive(Default)]
struct Change(BTreeMap<i16, (i64, i64)>);

impl Change {
    fn add(&mut self, kind: i16, documents: i64, words: i64) {
        let sum = self.0.entry(kind).or_default();
        sum.0 += documents;
        sum.1 += words;
    }

    async fn apply(self, conn: &mut PgConnection, repository: RepositoryId) -> Result<()> {
        for (kind, (documents, words)) in self.0 {
            sqlx::query!(
                "INSERT INTO okt_repository.search_totals AS t (repository_id, kind, documents, words)
                 VALUES ($1, $2, greatest($3::bigint, 0), greatest($4::bigint, 0))
                 ON CONFLICT (repository_id, kind)
                 DO UPDATE SET documents = t.documents + $3, words = t.words + $4",
                repository.uuid(),
                kind,
                documents,
                words,
            )
            .execute(&mut *conn)
            .await?;
        }
        Ok(())
    }
}

/// A question is read in all languages of sources.
async fn note_language(conn: &mut PgConnection, repository: RepositoryId, language: &str) -> Result<()> {
    sqlx::query!(
        "UPDATE okt_repository.search_totals SET languages = array_append(languages, $3)
          WHERE repository_id = $1 AND kind = $2 AND NOT ($3 = ANY (languages))",
        repository.uuid(),
        UnitKind::Source.number(),
        language,
    )
    .execute(conn)
    .await?;
    Ok(())
}

async fn note_version(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source_no: i64,
    language: Option<&str>,
) -> Result<()> {
    sqlx::query!(
        "UPDATE okt_repository.search_units SET version = $4, language = $5
          WHERE repository_id = $1 AND kind = $2 AND no = $3
            AND (version <> $4 OR language IS DISTINCT FROM $5)",
        repository.uuid(),
        UnitKind::Source.number(),
        source_no,
        WORDS_VERSION,
        language.map(language_code),
    )
    .execute(conn)
    .await?;
    Ok(())
}

fn entries(of: i64, bytes: &[u8]) -> Result<Vec<Posting>> {
    Ok(decode(of, bytes).ok_or_else(|| Error::internal("a list of texts can't be read"))?)
}
