//! Rows of `okt_repository.search_units`, `search_lists` and `search_totals`: texts that are found by their words, for each word
//! the texts that have it, and how many there are.
//!
//! Whoever writes takes the lock of the repository's lists, after all that they change beside it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use okt_model::{Error, IndexSource, JobId, RepositoryId, SourceId, UnitKind};
use okt_search::{Posting, Statistics, block, decode, encode};
use sqlx::PgConnection;

use crate::outbox::{self, When};
use okt_pg::Result;

/// A text that is to be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewUnit {
    pub kind: UnitKind,
    pub no: i64,
    /// Of a passage: its first and its last sentence.
    pub sentences: Option<(i32, i32)>,
    /// How often it has each of its words.
    pub words: BTreeMap<String, u32>,
}

impl NewUnit {
    fn length(&self) -> u32 {
        self.words.values().fold(0, |sum, count| sum.saturating_add(*count))
    }
}

/// A text that can be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    pub kind: UnitKind,
    pub no: i64,
    pub source_no: i64,
    pub sentences: Option<(i32, i32)>,
}

/// How many texts there are, by their kinds.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    pub statistics: HashMap<UnitKind, Statistics>,
    pub languages: Vec<String>,
}

/// What there is to find in a source.
#[derive(Clone, Debug)]
pub struct Indexable {
    pub no: i64,
    pub title: Option<String>,
    pub author: Option<String>,
    pub language: Option<String>,
    pub text: String,
    /// First and last code point of each sentence.
    pub sentences: Vec<(i32, i32)>,
    /// Those that no other source has had found, by their numbers.
    pub facts: Vec<(i64, String)>,
}

/// The texts of a source. `None` if it is not there.
#[tracing::instrument(level = "debug", name = "db.search_units.read_source", skip_all, fields(source.id = %source))]
pub async fn read_source(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: SourceId,
) -> Result<Option<Indexable>> {
    let row = sqlx::query!(
        r#"SELECT s.no, s.title, s.author, s.language, coalesce(t.text, '') AS "text!",
                  coalesce(t.sentences, '{}') AS "sentences!"
             FROM okt_repository.sources s
             LEFT JOIN okt_repository.source_texts t ON t.repository_id = $1 AND t.source_id = s.id
            WHERE s.repository_id = $1 AND s.id = $2"#,
        repository.uuid(),
        source.uuid(),
    );
    let Some(row) = row.fetch_optional(&mut *conn).await? else { return Ok(None) };
    let facts = sqlx::query!(
        "SELECT f.no, f.text
           FROM okt_repository.fact_sources l
           JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = l.fact_no
          WHERE l.repository_id = $1 AND l.source_no = $2
            AND NOT EXISTS (SELECT FROM okt_repository.search_units u
                             WHERE u.repository_id = $1 AND u.kind = 1 AND u.no = f.no AND u.source_no <> $2)
          ORDER BY f.no",
        repository.uuid(),
        row.no,
    );
    let facts = facts.fetch_all(conn).await?.into_iter().map(|fact| (fact.no, fact.text)).collect();
    Ok(Some(Indexable {
        no: row.no,
        title: row.title,
        author: row.author,
        language: row.language,
        text: row.text,
        sentences: row.sentences.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect(),
        facts,
    }))
}

/// The texts of a source that can be found, by their kinds and numbers.
#[tracing::instrument(level = "debug", name = "db.search_units.list_of_source", skip_all)]
pub async fn list_of_source(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source_no: i64,
) -> Result<Vec<(UnitKind, i64)>> {
    let rows = sqlx::query!(
        "SELECT kind, no FROM okt_repository.search_units
          WHERE repository_id = $1 AND source_no = $2 ORDER BY kind, no",
        repository.uuid(),
        source_no,
    );
    rows.fetch_all(conn).await?.into_iter().map(|row| Ok((kind(row.kind)?, row.no))).collect()
}

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
    u64::try_from(new.len()).map_err(|error| Error::internal(error).into())
}

/// Those of the texts of a source that are still its texts: what was read before may be gone by now. Whoever deletes a source or a
/// fact takes the lock of the lists too, so none of them goes before the end of the transaction.
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

/// Has texts found no more.
#[tracing::instrument(level = "debug", name = "db.search_units.remove", skip_all)]
pub async fn remove(
    conn: &mut PgConnection,
    repository: RepositoryId,
    units: &[(UnitKind, i64)],
) -> Result<u64> {
    if units.is_empty() {
        return Ok(0);
    }
    hold(conn, repository).await?;
    take_out(conn, repository, units).await
}

/// Has nothing of a source found any more. Facts that other sources make too are found with those from then on.
#[tracing::instrument(level = "debug", name = "db.search_units.forget_source", skip_all)]
pub async fn forget_source(conn: &mut PgConnection, repository: RepositoryId, source_no: i64) -> Result<u64> {
    hold(conn, repository).await?;
    let units = list_of_source(conn, repository, source_no).await?;
    let removed = take_out(conn, repository, &units).await?;
    ask_others(conn, repository, source_no, &units).await?;
    Ok(removed)
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
    let removed = remove(conn, repository, units).await?;
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
        let payload = IndexSource { source: source.into() };
        outbox::push(conn, repository, JobId::mint(), &payload, When::default()).await?;
    }
    Ok(())
}

/// Takes the lock of the repository's lists until the end of the transaction, if nobody has it.
#[tracing::instrument(level = "debug", name = "db.search_units.try_hold", skip_all)]
pub async fn try_hold(conn: &mut PgConnection, repository: RepositoryId) -> Result<bool> {
    let held = sqlx::query_scalar!(
        r#"SELECT pg_try_advisory_xact_lock(1869771879, hashtext($1::uuid::text)) AS "held!""#,
        repository.uuid(),
    );
    Ok(held.fetch_one(conn).await?)
}

/// How many texts of a kind have each of these words; what is missing has none.
#[tracing::instrument(level = "debug", name = "db.search_units.count", skip_all)]
pub async fn count(
    conn: &mut PgConnection,
    repository: RepositoryId,
    of: UnitKind,
    words: &[String],
) -> Result<HashMap<String, u64>> {
    let rows = sqlx::query!(
        r#"SELECT word, sum(documents) AS "documents!" FROM okt_repository.search_lists
            WHERE repository_id = $1 AND kind = $2 AND word = ANY ($3) GROUP BY word"#,
        repository.uuid(),
        of.number(),
        words,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    Ok(rows.map(|row| (row.word, u64::try_from(row.documents).unwrap_or(0))).collect())
}

/// The words of texts of a kind that begin so, those that most texts have.
#[tracing::instrument(level = "debug", name = "db.search_units.list_beginning", skip_all)]
pub async fn list_beginning(
    conn: &mut PgConnection,
    repository: RepositoryId,
    of: UnitKind,
    beginning: &str,
    limit: i64,
) -> Result<Vec<String>> {
    // The last code point ends the range of all that begin so.
    let end = format!("{beginning}{}", char::MAX);
    let rows = sqlx::query_scalar!(
        r#"SELECT w.word AS "word!"
             FROM (SELECT word, documents FROM okt_repository.search_lists
                    WHERE repository_id = $1 AND kind = $2 AND word >= $3 AND word < $4
                    ORDER BY word LIMIT 50000) AS w
            GROUP BY w.word ORDER BY sum(w.documents) DESC, w.word LIMIT $5"#,
        repository.uuid(),
        of.number(),
        beginning,
        end,
        limit,
    );
    Ok(rows.fetch_all(conn).await?)
}

/// The texts of a kind that have each of these words; with blocks only those in them.
#[tracing::instrument(level = "debug", name = "db.search_units.read", skip_all)]
pub async fn read(
    conn: &mut PgConnection,
    repository: RepositoryId,
    of: UnitKind,
    words: &[String],
    blocks: Option<&[i64]>,
) -> Result<HashMap<String, Vec<Vec<Posting>>>> {
    let mut lists: HashMap<String, Vec<Vec<Posting>>> = HashMap::new();
    let rows = sqlx::query!(
        "SELECT word, block, entries FROM okt_repository.search_lists
          WHERE repository_id = $1 AND kind = $2 AND word = ANY ($3) AND ($4::bigint[] IS NULL OR block = ANY ($4))
          ORDER BY word, block",
        repository.uuid(),
        of.number(),
        words,
        blocks,
    );
    for row in rows.fetch_all(conn).await? {
        lists.entry(row.word).or_default().push(entries(row.block, &row.entries)?);
    }
    Ok(lists)
}

/// Those of these texts of a kind that can still be found.
#[tracing::instrument(level = "debug", name = "db.search_units.get", skip_all)]
pub async fn get(
    conn: &mut PgConnection,
    repository: RepositoryId,
    of: UnitKind,
    numbers: &[i64],
) -> Result<Vec<Unit>> {
    let rows = sqlx::query!(
        "SELECT no, source_no, first_sentence, last_sentence FROM okt_repository.search_units
          WHERE repository_id = $1 AND kind = $2 AND no = ANY ($3)",
        repository.uuid(),
        of.number(),
        numbers,
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| Unit {
        kind: of,
        no: row.no,
        source_no: row.source_no,
        sentences: row.first_sentence.zip(row.last_sentence),
    });
    Ok(rows.collect())
}

/// How many texts there are.
#[tracing::instrument(level = "debug", name = "db.search_units.totals", skip_all)]
pub async fn totals(conn: &mut PgConnection, repository: RepositoryId) -> Result<Totals> {
    let rows = sqlx::query!(
        "SELECT kind, documents, words, languages FROM okt_repository.search_totals WHERE repository_id = $1",
        repository.uuid(),
    );
    let mut totals = Totals::default();
    for row in rows.fetch_all(conn).await? {
        let number = |number: i64| u64::try_from(number).unwrap_or(0);
        let statistics = Statistics { documents: number(row.documents), words: number(row.words) };
        totals.statistics.insert(kind(row.kind)?, statistics);
        totals.languages.extend(row.languages);
    }
    Ok(totals)
}

fn kind(number: i16) -> Result<UnitKind> {
    Ok(UnitKind::from_number(number).ok_or_else(|| Error::internal("a text of an unknown kind"))?)
}

fn entries(of: i64, bytes: &[u8]) -> Result<Vec<Posting>> {
    Ok(decode(of, bytes).ok_or_else(|| Error::internal("a list of texts can't be read"))?)
}

/// Keeps others from writing lists of the repository until the end of the transaction. In a statement of its own, so that the next
/// one sees what was written by whom we waited for.
async fn hold(conn: &mut PgConnection, repository: RepositoryId) -> Result<()> {
    sqlx::query!("SELECT pg_advisory_xact_lock(1869771879, hashtext($1::uuid::text))", repository.uuid())
        .execute(conn)
        .await?;
    Ok(())
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
