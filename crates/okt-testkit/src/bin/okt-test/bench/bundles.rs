//! What it takes to import and to export a repository as a bundle, beside copying the same rows in and out of its tables; and the
//! memory of the service meanwhile.
//!
//! Arguments: how many facts (300,000), and `vectors` if each fact has one. A million with vectors is a document of five gigabytes.

use std::fs::File;
use std::io::{BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use futures_util::TryStreamExt as _;
use okt_interchange::bundle::{
    ConceptRow, FactConceptRow, FactRow, FactSourceRow, Metadata, ReferenceRow, Row, Section, SourceRow,
    Spool, Writer,
};
use okt_model::{EMBEDDING_DIMENSIONS, EMBEDDING_MODEL, content_hash};
use okt_testkit::accounts::api_key_in;
use okt_testkit::app::TestApp;
use okt_testkit::db::run as execute;
use okt_testkit::jobs::program;
use okt_testkit::soak::Dice;
use sqlx::PgConnection;
use tokio::process::Command;

use super::search::text;

/// Facts of a source, and facts for each concept.
const EACH: u32 = 50;
/// The tables that hold nearly all rows of a bundle, and that of the vectors.
const TABLES: [&str; 5] = [
    "okt_repository.sources",
    "okt_repository.facts",
    "okt_repository.fact_sources",
    "okt_repository.concepts",
    "okt_repository.fact_concepts",
];
const VECTORS: &str = "okt_vectors.points";
/// What an export and an import should reach at least, beside copying.
const EXPORT_GOAL: f64 = 0.8;
const IMPORT_GOAL: f64 = 0.85;
/// Most resident memory that an import or an export may add, in MiB.
const MEMORY: u64 = 128;

pub async fn run(arguments: &[String]) -> anyhow::Result<()> {
    let facts: u32 = arguments.first().map_or(Ok(300_000), |text| text.parse())?;
    let vectors = arguments.get(1).is_some_and(|word| word == "vectors");
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("made.okt.json.gz");
    let began = Instant::now();
    let plain = generate(&file, facts, vectors)?;
    println!(
        "{facts} facts, {} MB gzipped, {} MB of JSON, made in {:.0} s",
        megabytes(&file)?,
        plain >> 20,
        began.elapsed().as_secs_f64()
    );
    // Without vectors in the bundle, a job would embed all facts beside what is measured.
    let builder = TestApp::builder();
    let mut app = if vectors { builder.vectors() } else { builder }.start().await;
    app.work().await;
    let okt = Okt::new(&app).await;
    let mut missed = Vec::new();
    let mut measured = async |what: &str, arguments: &[&str]| -> anyhow::Result<f64> {
        let (seconds, memory) = okt.run(arguments).await?;
        println!("{what}: {seconds:.1} s, {memory} MiB more memory at most (limit {MEMORY})");
        if memory > MEMORY {
            missed.push(format!("{what}: {memory} MiB"));
        }
        Ok(seconds)
    };
    let path = file.display().to_string();
    let first = measured("import", &["import", &path]).await?;
    let again = measured("import again", &["import", &path]).await?;
    println!("again against first: {:.2} (goal 0.4)", again / first);
    let out = folder.path().join("out.okt.json.gz").display().to_string();
    let export = measured("export", &["export", &out]).await?;
    println!("{} MB gzipped", megabytes(Path::new(&out))?);
    let mut conn = app.connect().await;
    let rows = app.count("SELECT count(*) FROM okt_repository.facts").await;
    ensure!(rows == i64::from(facts), "{rows} facts of {facts} are there");
    let (bare_out, files) = copied_out(&mut conn, folder.path(), vectors).await?;
    println!(
        "export: {:.2} of the speed of COPY TO and gzip, which took {bare_out:.1} s (goal {EXPORT_GOAL})",
        bare_out / export
    );
    let bare_in = copied_in(&mut conn, &files).await?;
    println!(
        "import: {:.2} of the speed of COPY FROM, which took {bare_in:.1} s (goal {IMPORT_GOAL})",
        bare_in / first
    );
    ensure!(missed.is_empty(), "{}", missed.join("; "));
    Ok(())
}

/// The program, for the repository of an app.
struct Okt {
    url: String,
    key: String,
    repository: String,
}

impl Okt {
    async fn new(app: &TestApp) -> Self {
        let permissions = ["graph:export", "graph:write", "job:read"];
        let (_, key) = api_key_in(&app.service, &app.owner, &permissions, app.repository.uuid()).await;
        Self { url: app.service.url.clone(), key, repository: app.repository.to_string() }
    }

    /// How long `okt bundle` takes, in seconds, and what the memory of this process, which is the service, grows by.
    async fn run(&self, arguments: &[&str]) -> anyhow::Result<(f64, u64)> {
        // From now on, what is resident now counts as the most.
        std::fs::write("/proc/self/clear_refs", "5")?;
        let before = memory("VmRSS:")?;
        let began = Instant::now();
        let mut command = Command::new(program());
        command.arg("bundle").args(arguments).args(["--repository", &self.repository]);
        let done =
            command.env_clear().env("OKT_URL", &self.url).env("OKT_API_KEY", &self.key).output().await?;
        ensure!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
        let seconds = began.elapsed().as_secs_f64();
        let grown = memory("VmHWM:")?.saturating_sub(before);
        // What follows from it is not part of the next one.
        tokio::time::sleep(Duration::from_secs(5)).await;
        Ok((seconds, grown))
    }
}

/// Of this process, in MiB.
fn memory(name: &str) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)).context("a size")?;
    Ok(line.split_whitespace().next().context("a size")?.parse::<u64>()? / 1024)
}

fn megabytes(path: &Path) -> anyhow::Result<u64> {
    Ok(std::fs::metadata(path)?.len() >> 20)
}

/// Writes a bundle of sources with fifty facts each and four to five concepts for a fact; returns the bytes of its JSON.
fn generate(path: &Path, facts: u32, vectors: bool) -> anyhow::Result<u64> {
    let mut dice = Dice::new(21);
    let sources = facts / EACH;
    let concepts = (facts / 30).max(10);
    let mut metadata = Metadata {
        name: "Generated".to_owned(),
        source_count: sources.into(),
        fact_count: facts.into(),
        concept_count: concepts.into(),
        exported_at: "2026-01-01T00:00:00Z".to_owned(),
        ..Metadata::default()
    };
    if vectors {
        EMBEDDING_MODEL.clone_into(&mut metadata.embedding_model);
        metadata.embedding_dimensions = EMBEDDING_DIMENSIONS;
    }
    let mut spool = Spool::new(tempfile::tempfile()?, &metadata);
    rows(&mut spool, &mut dice, (sources, facts, concepts))?;
    let mut spooled = spool.finish()?;
    metadata.sha256.clone_from(&spooled.sha256);
    let mut writer = Writer::new(BufWriter::new(File::create(path)?), &metadata)?;
    for section in Section::ALL {
        if !matches!(section, Section::Images | Section::Bodies | Section::Embeddings) {
            writer.section(section, &mut spooled)?;
        }
    }
    if vectors {
        writer.begin_vectors(EMBEDDING_MODEL, EMBEDDING_DIMENSIONS)?;
        for idx in 0..facts {
            let vector: Vec<f32> = (0..EMBEDDING_DIMENSIONS).map(|_| coordinate(&mut dice)).collect();
            writer.vector(idx, &vector)?;
        }
        writer.begin_concept_vectors()?;
        writer.end_vectors()?;
    }
    writer.finish()?.flush()?;
    Ok(std::io::copy(&mut GzDecoder::new(File::open(path)?), &mut std::io::sink())?)
}

fn rows(
    spool: &mut Spool<File>,
    dice: &mut Dice,
    (sources, facts, concepts): (u32, u32, u32),
) -> anyhow::Result<()> {
    let fact = |idx: u32| {
        let mut dice = Dice::new(u64::from(idx) + 1_000);
        format!("{} Record {idx}.", text::fact(&mut dice, (idx / EACH) as usize % 512))
    };
    for idx in 0..sources {
        let (mut whole, mut offsets, mut at) = (String::new(), Vec::new(), 0);
        for one in idx * EACH..(idx + 1) * EACH {
            let sentence = fact(one);
            let length = i32::try_from(sentence.chars().count())?;
            whole.push_str(&sentence);
            whole.push(' ');
            offsets.push((at, at + length));
            at += length + 1;
        }
        spool.put(&Row::Source(&SourceRow {
            idx,
            url: format!("https://example.org/{idx}"),
            kind: "web".to_owned(),
            status: "processed".to_owned(),
            parsed_title: text::title(dice, idx as usize % 512),
            parsed_text: whole,
            sentence_offsets: offsets,
            segmenter: "generated".to_owned(),
            language: "en".to_owned(),
            ..SourceRow::default()
        }))?;
    }
    for idx in 0..facts {
        let text = fact(idx);
        spool.put(&Row::Fact(&FactRow {
            idx,
            content_hash: content_hash(&text).to_string(),
            text,
            fact_kind: "text".to_owned(),
            status: "stable".to_owned(),
            source_image_idx: -1,
            ..FactRow::default()
        }))?;
    }
    for idx in 0..sources * EACH {
        let row = FactSourceRow { fact_idx: idx, source_idx: idx / EACH, chunk_index: 0 };
        spool.put(&Row::FactSource(&row))?;
    }
    for idx in 0..sources * EACH {
        let sentence_index = i32::try_from(idx % EACH)?;
        let row = ReferenceRow { fact_idx: idx, source_idx: idx / EACH, sentence_index };
        spool.put(&Row::Reference(&row))?;
    }
    for idx in 0..concepts {
        let canonical_name = format!("{} {idx}", text::title(dice, idx as usize % 512));
        spool.put(&Row::Concept(&ConceptRow {
            idx,
            canonical_name,
            context: "General".to_owned(),
            ..ConceptRow::default()
        }))?;
    }
    for fact_idx in 0..facts {
        let mut linked = std::collections::BTreeSet::new();
        for _ in 0..5 {
            // Few concepts are in many facts.
            let below = u64::from(concepts);
            let most = dice.below(below) + 1;
            linked.insert(u32::try_from(dice.below(most))?);
        }
        for concept_idx in linked {
            spool.put(&Row::FactConcept(&FactConceptRow {
                fact_idx,
                concept_idx,
                ..FactConceptRow::default()
            }))?;
        }
    }
    Ok(())
}

fn coordinate(dice: &mut Dice) -> f32 {
    #[expect(clippy::cast_precision_loss, reason = "any number will do")]
    let part = dice.below(20_001) as f32;
    part / 10_000.0 - 1.0
}

/// The rows of the tables into gzipped files, and without that into others; how long the first takes, in seconds.
async fn copied_out(
    conn: &mut PgConnection,
    folder: &Path,
    vectors: bool,
) -> anyhow::Result<(f64, Vec<(&'static str, PathBuf)>)> {
    let tables: Vec<&'static str> = TABLES.into_iter().chain(vectors.then_some(VECTORS)).collect();
    let copy = |table: &str| format!("COPY (SELECT * FROM {table}) TO STDOUT");
    let began = Instant::now();
    let mut out = GzEncoder::new(File::create(folder.join("bare.gz"))?, Compression::new(6));
    for table in &tables {
        let mut rows = conn.copy_out_raw(&copy(table)).await?;
        while let Some(piece) = rows.try_next().await? {
            out.write_all(&piece)?;
        }
    }
    out.finish()?.flush()?;
    let seconds = began.elapsed().as_secs_f64();
    let mut files = Vec::new();
    for table in tables {
        let path = folder.join(table);
        let mut file = BufWriter::new(File::create(&path)?);
        let mut rows = conn.copy_out_raw(&copy(table)).await?;
        while let Some(piece) = rows.try_next().await? {
            file.write_all(&piece)?;
        }
        file.flush()?;
        files.push((table, path));
    }
    Ok((seconds, files))
}

/// How long it takes to copy the rows into tables of the same columns and indexes, in seconds.
async fn copied_in(conn: &mut PgConnection, files: &[(&'static str, PathBuf)]) -> anyhow::Result<f64> {
    execute(conn, "CREATE SCHEMA bare").await;
    let bare = |table: &str| format!("bare.{}", table.rsplit('.').next().unwrap_or(table));
    for (table, _) in files {
        // Columns that are computed are in the files as well.
        let like = format!(
            "CREATE TABLE {} (LIKE {table} INCLUDING ALL EXCLUDING GENERATED EXCLUDING STATISTICS)",
            bare(table)
        );
        execute(conn, &like).await;
    }
    let began = Instant::now();
    for (table, path) in files {
        let mut copy = conn.copy_in_raw(&format!("COPY {} FROM STDIN", bare(table))).await?;
        let mut file = File::open(path)?;
        let mut piece = vec![0; 1 << 20];
        loop {
            let read = file.read(&mut piece)?;
            if read == 0 {
                break;
            }
            copy.send(&piece[..read]).await?;
        }
        copy.finish().await?;
    }
    Ok(began.elapsed().as_secs_f64())
}
