//! Rows of sources, facts, lists and vectors, as the service would have written them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::Context as _;
use okt_model::{FactId, JobId, RepositoryId, SourceId, UnitKind, content_hash};
use okt_search::{Posting, WORDS_VERSION, block, encode};
use okt_store::search_units::{NAME, TITLE};
use okt_testkit::db::run as execute;
use okt_testkit::soak::Dice;
use okt_vectors::Space;
use sqlx::PgConnection;

use super::EACH;
use super::text::{self, counted};

/// Lines of a copy that are sent at once.
const SENT: usize = 1 << 20;

pub struct Fill {
    owner: PgConnection,
    dice: Dice,
    facts: i64,
    sources: i64,
}

/// What is found of the texts of a repository, by kind and word.
#[derive(Default)]
struct Lists {
    postings: BTreeMap<(i16, String), Vec<Posting>>,
    totals: BTreeMap<i16, (i64, i64)>,
    units: String,
}

impl Fill {
    pub fn new(owner: PgConnection) -> Self {
        Self { owner, dice: Dice::new(11), facts: 0, sources: 0 }
    }

    pub async fn repository(
        &mut self,
        repository: RepositoryId,
        facts: i64,
        vectors: bool,
    ) -> anyhow::Result<()> {
        let mut lists = Lists::default();
        let (mut source_rows, mut fact_rows, mut links) = (String::new(), String::new(), String::new());
        for _ in 0..facts / EACH {
            self.sources += 1;
            let no = self.sources;
            let subject = text::subject(&mut self.dice);
            let title = text::title(&mut self.dice, subject);
            let of_title = counted(&title);
            let _ = writeln!(
                source_rows,
                "{repository}\t{}\t{no}\tfile:{no}\tprocessed\t{}\t{title}\ten\t{EACH}",
                SourceId::mint(),
                JobId::mint(),
            );
            let mut whole = of_title.clone();
            let mut names = BTreeMap::new();
            for _ in 0..EACH {
                self.facts += 1;
                let text = text::fact(&mut self.dice, subject);
                let mut words = counted(&text);
                for (word, count) in &words {
                    *whole.entry(word.clone()).or_default() += count;
                }
                for name in okt_search::names(&text, Some("en")) {
                    names.insert(format!("{NAME}{name}"), 1);
                }
                for (word, count) in &of_title {
                    *words.entry(word.clone()).or_default() += count;
                }
                let _ = writeln!(
                    fact_rows,
                    "{repository}\t{}\t{}\t{text}\t\\\\x{}\ttext\tstable\tgenerated\t1",
                    FactId::mint(),
                    self.facts,
                    content_hash(&format!("{text}{}", self.facts)),
                );
                let _ = writeln!(links, "{repository}\t{no}\t{}\t{{0}}", self.facts);
                lists.add(repository, UnitKind::Fact, self.facts, no, &words);
            }
            names.extend(okt_search::title_name(&title).map(|name| (format!("{NAME}{name}"), TITLE)));
            whole.extend(names.into_iter().take(64));
            lists.add(repository, UnitKind::Source, no, no, &whole);
        }
        self.copy(
            "okt_repository.sources (repository_id, id, no, url, status, job_id, title, language, fact_count)",
            &source_rows,
        )
        .await?;
        self.copy(
            "okt_repository.facts
             (repository_id, id, no, text, content_hash, kind, status, model, source_count)",
            &fact_rows,
        )
        .await?;
        self.copy("okt_repository.fact_sources (repository_id, source_no, fact_no, sentences)", &links)
            .await?;
        self.copy(
            "okt_repository.search_units (repository_id, kind, no, source_no, length, words, version)",
            &lists.units,
        )
        .await?;
        self.lists(repository, lists).await?;
        if vectors {
            self.vectors(repository).await?;
        }
        Ok(())
    }

    async fn lists(&mut self, repository: RepositoryId, lists: Lists) -> anyhow::Result<()> {
        let mut rows = String::new();
        for ((kind, word), postings) in lists.postings {
            for one in postings.chunk_by(|one, other| block(one.unit) == block(other.unit)) {
                let _ = writeln!(
                    rows,
                    "{repository}\t{kind}\t{word}\t{}\t{}\t\\\\x{}",
                    block(one[0].unit),
                    one.len(),
                    hex::encode(encode(one)),
                );
            }
        }
        self.copy(
            "okt_repository.search_lists (repository_id, kind, word, block, documents, entries)",
            &rows,
        )
        .await?;
        for (kind, (documents, words)) in lists.totals {
            let statement = format!(
                "INSERT INTO okt_repository.search_totals (repository_id, kind, documents, words, languages)
                 VALUES ('{repository}', {kind}, {documents}, {words}, '{{en}}')"
            );
            execute(&mut self.owner, &statement).await;
        }
        Ok(())
    }

    /// Around the centre of a heap, one for each of 512 subjects.
    async fn vectors(&mut self, repository: RepositoryId) -> anyhow::Result<()> {
        let Space { name, dimensions } = space(&mut self.owner).await?;
        let statement = format!(
            "CREATE TEMP TABLE centres AS
             SELECT n, (SELECT array_agg(random() - 0.5 + 0 * n * g) FROM generate_series(1, {dimensions}) AS g)::vector AS at
               FROM generate_series(0, 511) AS n;
             INSERT INTO okt_vectors.points (repository_id, space, id, embedding)
             SELECT f.repository_id, '{name}/{dimensions}', f.id,
                    l2_normalize(c.at + (SELECT array_agg((random() - 0.5) * 0.8 + 0 * f.no * g)
                                           FROM generate_series(1, {dimensions}) AS g)::vector)
               FROM okt_repository.facts f JOIN centres c ON c.n = f.no / {EACH} % 512
              WHERE f.repository_id = '{repository}';
             DROP TABLE centres"
        );
        for statement in statement.split(';') {
            execute(&mut self.owner, statement).await;
        }
        Ok(())
    }

    /// Has numbers of the service go on after ours.
    pub async fn finish(mut self) -> anyhow::Result<()> {
        let statements = format!(
            "SELECT setval('okt_repository.facts_no_seq', {});
             ALTER TABLE okt_repository.sources ALTER COLUMN no RESTART WITH {};
             VACUUM ANALYZE",
            self.facts + 1,
            self.sources + 1
        );
        for statement in statements.split(';') {
            execute(&mut self.owner, statement).await;
        }
        Ok(())
    }

    async fn copy(&mut self, table: &str, rows: &str) -> anyhow::Result<()> {
        let mut copy = self.owner.copy_in_raw(&format!("COPY {table} FROM STDIN")).await?;
        for piece in rows.as_bytes().chunks(SENT) {
            copy.send(piece).await?;
        }
        copy.finish().await?;
        Ok(())
    }
}

impl Lists {
    fn add(
        &mut self,
        repository: RepositoryId,
        kind: UnitKind,
        no: i64,
        source: i64,
        words: &BTreeMap<String, u32>,
    ) {
        let length: u32 =
            words.iter().filter(|(word, _)| !word.starts_with(NAME)).map(|(_, count)| count).sum();
        for (word, count) in words {
            let posting = Posting { unit: no, count: *count, length };
            self.postings.entry((kind.number(), word.clone())).or_default().push(posting);
        }
        let sum = self.totals.entry(kind.number()).or_default();
        sum.0 += 1;
        sum.1 += i64::from(length);
        let version = if kind == UnitKind::Source { WORDS_VERSION } else { 0 };
        let all: Vec<&str> = words.keys().map(String::as_str).collect();
        // Names have blanks.
        let all = all.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(",");
        let _ = writeln!(
            self.units,
            "{repository}\t{}\t{no}\t{source}\t{length}\t{{{all}}}\t{version}",
            kind.number()
        );
    }
}

/// The space of facts.
pub async fn space(owner: &mut PgConnection) -> anyhow::Result<Space> {
    let found: Option<(String, i32)> =
        sqlx::query_as("SELECT name, dimensions FROM okt_vectors.spaces ORDER BY name LIMIT 1")
            .fetch_optional(owner)
            .await?;
    let (name, dimensions) = found.context("the service has prepared no space for vectors")?;
    Ok(Space { name, dimensions: u32::try_from(dimensions)? })
}

/// One that facts can be written for.
pub async fn insert_source(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: SourceId,
) -> anyhow::Result<()> {
    sqlx::query(
        "INSERT INTO okt_repository.sources (repository_id, id, url, status, job_id, title, language)
         VALUES ($1, $2, 'file:new', 'processing', $2, 'New', 'en')",
    )
    .bind(repository.uuid())
    .bind(source.uuid())
    .execute(conn)
    .await?;
    Ok(())
}
