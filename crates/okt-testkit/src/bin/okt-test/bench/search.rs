//! What a search takes in a large repository, over HTTP, by the clock; and what lists of words add to the cost of writing
//! facts. Rows are made here the way the service makes them, but all at once: the service would take hours.
//!
//! Arguments: how many facts (1,000,000), of which one repository has 57 %, how many questions in each mode (300), and a folder
//! where the facts of that repository and the answers are kept, for another engine to be asked the same (`-`: none, and all kinds of
//! rows are looked for). A fourth one is a command
//! that is run on this repository, with the address of the service, an e-mail address, a password and the slug behind it:
//! `node web/tests/speed.mjs` measures the web UI.

pub mod fill;
pub mod text;

use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use futures_util::TryStreamExt as _;
use okt_model::{FactKind, FactStatus, NewFact, RepositoryId, SourceId, UnitKind, content_hash};
use okt_store::facts::{self, Made};
use okt_store::search_units::{self, NewUnit};
use okt_store::{Databases, Purpose};
use okt_testkit::accounts::PASSWORD;
use okt_testkit::app::TestApp;
use okt_testkit::soak::{Dice, percentile};
use okt_vectors::{PgVector, Tenant};
use serde_json::{Value, json};
use uuid::Uuid;

use fill::Fill;

/// Milliseconds at the 95th percentile, by mode; and of writing with lists against writing without.
const LIMITS: [(&str, f64); 3] = [("lexical", 200.0), ("hybrid", 300.0), ("deep", 300.0)];
const WRITING: f64 = 1.3;
/// Repositories beside the large one.
const OTHERS: i64 = 20;
/// Facts of a source.
const EACH: i64 = 50;

pub async fn run(arguments: &[String]) -> anyhow::Result<()> {
    let facts: i64 = arguments.first().map_or(Ok(1_000_000), |text| text.parse())?;
    let questions: usize = arguments.get(1).map_or(Ok(300), |text| text.parse())?;
    let mut app =
        TestApp::builder().vectors().settings(&[("SVC__RATE_LIMITS__API_PER_MINUTE", "0")]).start().await;
    // It prepares the store of vectors.
    app.work().await;
    let began = Instant::now();
    let large = facts * 57 / 100;
    let mut fill = Fill::new(app.connect().await);
    fill.repository(app.repository, large, true).await?;
    for _ in 0..OTHERS {
        fill.repository(RepositoryId::mint(), (facts - large) / OTHERS, false).await?;
    }
    fill.finish().await?;
    println!("{facts} facts, {large} in one repository, filled in {:.0} s", began.elapsed().as_secs_f64());
    let began = Instant::now();
    let databases = Databases::open(app.service.api.app.config(), &[Purpose::Worker]).await?.remove(0);
    let space = fill::space(&mut app.connect().await).await?;
    PgVector::new(databases.clone()).index_large(&Tenant::new(app.repository, "default"), &space).await?;
    println!("index of vectors in {:.0} s", began.elapsed().as_secs_f64());
    let kept = arguments.get(2).filter(|folder| *folder != "-").map(Path::new);
    if let Some(folder) = kept {
        keep_facts(&app, &folder.join("facts.jsonl")).await?;
    }
    let mut missed = Vec::new();
    for (mode, limit) in LIMITS {
        let answers = kept.map(|folder| folder.join(format!("{mode}.jsonl")));
        let slow = asked(&app, mode, questions, answers.as_deref()).await?;
        if slow > limit {
            missed.push(format!("{mode}: p95 {slow:.0} ms, limit {limit}"));
        }
    }
    if let Some(command) = arguments.get(3) {
        let slug = app.read("").await["slug"].as_str().context("a slug")?.to_owned();
        let (url, email) = (&app.service.url, &app.owner.email);
        let done = tokio::process::Command::new("sh")
            .args(["-c", &format!("{command} {url} {email} '{PASSWORD}' {slug}")])
            .status()
            .await?;
        if !done.success() {
            missed.push(format!("{command}: {done}"));
        }
    }
    let writing = writing(&app, &databases).await?;
    println!("writing facts with lists of words: {writing:.2} times without (limit {WRITING})");
    if writing > WRITING {
        missed.push(format!("writing: {writing:.2}, limit {WRITING}"));
    }
    ensure!(missed.is_empty(), "{}", missed.join("; "));
    Ok(())
}

/// Asks questions of two to six words of a text, names among them; returns the 95th percentile in milliseconds.
async fn asked(app: &TestApp, mode: &str, questions: usize, kept: Option<&Path>) -> anyhow::Result<f64> {
    let mut kept = kept.map(|path| std::fs::File::create(path).map(BufWriter::new)).transpose()?;
    let mut dice = Dice::new(77);
    let (mut times, mut rows) = (Vec::new(), 0);
    // Another engine has nothing but the facts.
    let types = if kept.is_some() { "&types=facts" } else { "" };
    // The first ones warm caches and connections.
    for at in 0..questions + 20 {
        let question = text::question(&mut dice);
        let q: String = url::form_urlencoded::byte_serialize(question.as_bytes()).collect();
        let began = Instant::now();
        let answer = app.get(&format!("/search?q={q}&mode={mode}{types}")).await;
        let took = began.elapsed().as_secs_f64() * 1e3;
        ensure!(answer.status == 200, "{question}: {answer:?}");
        let found = answer.json();
        ensure!(found["search_mode"] == mode, "{question}: {}", found["search_mode"]);
        // Without vectors `deep` would be called deep all the same, and be quick.
        let degraded = &found["degraded_reason"];
        ensure!(degraded.is_null(), "{question}: {degraded}");
        if at >= 20 {
            times.push(took);
            rows += found["data"].as_array().map_or(0, Vec::len);
            if let Some(file) = &mut kept {
                let facts: Vec<&Value> =
                    found["data"].as_array().into_iter().flatten().map(|row| &row["id"]).take(10).collect();
                writeln!(file, "{}", json!({"question": question, "ms": took, "facts": facts}))?;
            }
        }
    }
    let (middle, slow) = (percentile(&mut times, 0.5), percentile(&mut times, 0.95));
    let most = times.last().copied().context("nothing was asked")?;
    println!(
        "{mode}: p50 {middle:.0} ms, p95 {slow:.0} ms, max {most:.0} ms; {} rows an answer",
        rows / questions.max(1)
    );
    Ok(slow)
}

/// One line a fact: its id, its text and the title of its source.
async fn keep_facts(app: &TestApp, path: &Path) -> anyhow::Result<()> {
    let mut file = BufWriter::new(std::fs::File::create(path)?);
    let mut conn = app.connect().await;
    let mut rows = sqlx::query_as::<_, (Uuid, String, String)>(
        "SELECT f.id, f.text, s.title FROM okt_repository.facts f
           JOIN okt_repository.fact_sources l ON l.repository_id = f.repository_id AND l.fact_no = f.no
           JOIN okt_repository.sources s ON s.repository_id = f.repository_id AND s.no = l.source_no
          WHERE f.repository_id = $1",
    )
    .bind(app.repository.uuid())
    .fetch(&mut conn);
    while let Some((id, text, title)) = rows.try_next().await? {
        writeln!(file, "{}", json!({"id": id, "text": text, "title": title}))?;
    }
    Ok(())
}

/// How much longer it takes to write facts of sources and their lists than to write the facts.
async fn writing(app: &TestApp, databases: &Databases) -> anyhow::Result<f64> {
    const SOURCES: usize = 40;
    let (mut with, mut without) = (0.0, 0.0);
    let mut dice = Dice::new(99);
    for at in 0..SOURCES * 2 {
        let source = SourceId::mint();
        let new: Vec<NewFact> = (0..EACH).map(|_| new_fact(text::fact(&mut dice, at % 512))).collect();
        let made = Made { promptset: None, status: FactStatus::Stable };
        let mut tx = databases.begin("default", app.repository).await?;
        fill::insert_source(&mut tx, app.repository, source).await?;
        let began = Instant::now();
        facts::replace(&mut tx, app.repository, source, &new, false, made).await?;
        if at % 2 == 1 {
            let indexable = search_units::read_source(&mut tx, app.repository, source).await?;
            let indexable = indexable.context("a source")?;
            let units: Vec<NewUnit> = indexable
                .facts
                .iter()
                .map(|(no, text)| NewUnit {
                    kind: UnitKind::Fact,
                    no: *no,
                    sentences: None,
                    words: text::counted(text),
                })
                .collect();
            search_units::put(&mut tx, app.repository, indexable.no, &units, Some("en")).await?;
        }
        tx.commit().await?;
        let took = began.elapsed().as_secs_f64();
        *(if at % 2 == 1 { &mut with } else { &mut without }) += took;
    }
    Ok(with / without)
}

fn new_fact(text: String) -> NewFact {
    NewFact {
        hash: content_hash(&text),
        text,
        kind: FactKind::Text,
        model: "generated".to_owned(),
        chunk: Some(0),
        sentences: vec![0],
        image: None,
    }
}
