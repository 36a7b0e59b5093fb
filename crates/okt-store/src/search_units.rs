//! Rows of `okt_repository.search_units`, `search_lists` and `search_totals`: texts that are found by their words, for each word
//! the texts that have it, and how many there are. Here is what reads them; `writing.rs` writes them.

mod writing;

use std::collections::{BTreeMap, HashMap};

use okt_model::{Error, RepositoryId, SourceId, UnitKind};
use okt_search::{KeptList, Statistics, WORDS_VERSION};
use sqlx::PgConnection;

use okt_pg::Result;

pub use writing::{give_up, list_existing, note_unread, put, try_hold};

/// Among the words of a whole source, a name that it has begins so; no word does.
pub const NAME: char = '=';
/// How often a source has the name that is its title; others it has once.
pub const TITLE: u32 = 2;

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
    /// Names are no words of the text beside those that they are made of.
    fn length(&self) -> u32 {
        let words = self.words.iter().filter(|(word, _)| !word.starts_with(NAME));
        words.fold(0, |sum, (_, count)| sum.saturating_add(*count))
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

/// The texts of a source that can be found, by their kinds and numbers, from after one on.
#[tracing::instrument(level = "debug", name = "db.search_units.list_of_source", skip_all)]
pub async fn list_of_source(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source_no: i64,
    after: Option<(UnitKind, i64)>,
    limit: i64,
) -> Result<Vec<(UnitKind, i64)>> {
    let (after_kind, after_no) = after.map_or((0, 0), |(kind, no)| (kind.number(), no));
    let rows = sqlx::query!(
        "SELECT kind, no FROM okt_repository.search_units
          WHERE repository_id = $1 AND source_no = $2 AND (kind, no) > ($3::smallint, $4::bigint)
          ORDER BY kind, no LIMIT $5",
        repository.uuid(),
        source_no,
        after_kind,
        after_no,
        limit,
    );
    rows.fetch_all(conn).await?.into_iter().map(|row| Ok((kind(row.kind)?, row.no))).collect()
}

/// Looks at so many sources from after a number on: those that have a text and were not read by the words as they are now, and the
/// number to go on after. `None` if there are no more.
#[tracing::instrument(level = "debug", name = "db.search_units.list_unread", skip_all)]
pub async fn list_unread(
    conn: &mut PgConnection,
    repository: RepositoryId,
    after: i64,
    looked_at: i64,
) -> Result<(Vec<SourceId>, Option<i64>)> {
    let rows = sqlx::query!(
        r#"SELECT s.id, s.no, t.there IS NOT NULL AND u.version IS DISTINCT FROM $5 AS "unread!"
             FROM (SELECT id, no FROM okt_repository.sources
                    WHERE repository_id = $1 AND no > $2 ORDER BY no LIMIT $3) AS s
             LEFT JOIN LATERAL (SELECT true AS there FROM okt_repository.source_texts o
                                 WHERE o.repository_id = $1 AND o.source_id = s.id LIMIT 1) AS t ON true
             LEFT JOIN LATERAL (SELECT o.version FROM okt_repository.search_units o
                                 WHERE o.repository_id = $1 AND o.kind = $4 AND o.no = s.no LIMIT 1) AS u ON true
            ORDER BY s.no"#,
        repository.uuid(),
        after,
        looked_at,
        UnitKind::Source.number(),
        WORDS_VERSION,
    );
    let rows = rows.fetch_all(conn).await?;
    let next = rows.last().map(|row| row.no);
    Ok((rows.into_iter().filter(|row| row.unread).map(|row| row.id.into()).collect(), next))
}

/// How many texts have a word, and in how many rows they are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    pub documents: u64,
    pub blocks: u64,
}

/// How many texts of a kind have each of these words; what is missing has none.
#[tracing::instrument(level = "debug", name = "db.search_units.count", skip_all)]
pub async fn count(
    conn: &mut PgConnection,
    repository: RepositoryId,
    of: UnitKind,
    words: &[String],
) -> Result<HashMap<String, Listed>> {
    let rows = sqlx::query!(
        r#"SELECT word, sum(documents) AS "documents!", count(*) AS "blocks!" FROM okt_repository.search_lists
            WHERE repository_id = $1 AND kind = $2 AND word = ANY ($3) GROUP BY word"#,
        repository.uuid(),
        of.number(),
        words,
    );
    let number = |number: i64| u64::try_from(number).unwrap_or(0);
    let rows = rows.fetch_all(conn).await?.into_iter();
    let listed =
        rows.map(|row| (row.word, Listed { documents: number(row.documents), blocks: number(row.blocks) }));
    Ok(listed.collect())
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

/// Which lists of words are read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Range<'a> {
    /// Only these blocks.
    pub blocks: Option<&'a [i64]>,
    /// Only this block and those before it.
    pub up_to: Option<i64>,
    /// Of each word the last so many.
    pub each: Option<i64>,
}

/// The lists of texts of a kind that have these words, as they are kept; the last blocks first.
#[tracing::instrument(level = "debug", name = "db.search_units.read", skip_all)]
pub async fn read(
    conn: &mut PgConnection,
    repository: RepositoryId,
    of: UnitKind,
    words: &[String],
    range: Range<'_>,
) -> Result<HashMap<String, Vec<KeptList>>> {
    let mut lists: HashMap<String, Vec<KeptList>> = HashMap::new();
    let rows = sqlx::query!(
        r#"SELECT n.word AS "word!", l.block, l.entries
             FROM unnest($3::text[]) AS n (word)
            CROSS JOIN LATERAL (SELECT o.block, o.entries FROM okt_repository.search_lists o
                                 WHERE o.repository_id = $1 AND o.kind = $2 AND o.word = n.word
                                   AND ($4::bigint[] IS NULL OR o.block = ANY ($4))
                                   AND o.block <= $5
                                 ORDER BY o.block DESC LIMIT $6) AS l"#,
        repository.uuid(),
        of.number(),
        words,
        range.blocks,
        range.up_to.unwrap_or(i64::MAX),
        range.each,
    );
    for row in rows.fetch_all(conn).await? {
        lists.entry(row.word).or_default().push(KeptList { block: row.block, entries: row.entries });
    }
    Ok(lists)
}

/// The names that sources have, as they stand among the words.
#[tracing::instrument(level = "debug", name = "db.search_units.list_names", skip_all)]
pub async fn list_names(
    conn: &mut PgConnection,
    repository: RepositoryId,
    sources: &[i64],
) -> Result<Vec<(i64, String)>> {
    let rows = sqlx::query!(
        r#"SELECT u.no, w.word AS "word!"
             FROM okt_repository.search_units u
            CROSS JOIN LATERAL unnest(u.words) AS w (word)
            WHERE u.repository_id = $1 AND u.kind = $3 AND u.no = ANY ($2) AND starts_with(w.word, $4)"#,
        repository.uuid(),
        sources,
        UnitKind::Source.number(),
        String::from(NAME),
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(|row| (row.no, row.word)).collect())
}

/// Of each of these sources the first facts that are found with it.
#[tracing::instrument(level = "debug", name = "db.search_units.list_first_facts", skip_all)]
pub async fn list_first_facts(
    conn: &mut PgConnection,
    repository: RepositoryId,
    sources: &[i64],
    each: i64,
) -> Result<Vec<(i64, i64)>> {
    let rows = sqlx::query!(
        r#"SELECT n.no AS "source_no!", u.no AS "no!"
             FROM unnest($2::bigint[]) AS n (no)
            CROSS JOIN LATERAL (SELECT o.no FROM okt_repository.search_units o
                                 WHERE o.repository_id = $1 AND o.source_no = n.no AND o.kind = $3
                                 ORDER BY o.no LIMIT $4) AS u"#,
        repository.uuid(),
        sources,
        UnitKind::Fact.number(),
        each,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(|row| (row.source_no, row.no)).collect())
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
