//! A long report in a repository with many facts: how long it takes to check, what memory that takes, and what one more fact asks.
//!
//! Arguments: how many facts (100,000) and how many sentences (10,000). Facts are made as for `bench search`; a model judges, which
//! answers at once, so that its questions can be counted.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use okt_testkit::app::{MODEL, TestApp};
use okt_testkit::llm::Behaviour;
use okt_testkit::soak::Dice;
use serde_json::{Value, json};

use super::search::fill::Fill;
use super::search::text;

const LONGEST: Duration = Duration::from_mins(40);
/// Most resident memory that the check of the report may add, in MiB.
const MEMORY: u64 = 64;

pub async fn run(arguments: &[String]) -> anyhow::Result<()> {
    let facts: i64 = arguments.first().map_or(Ok(100_000), |text| text.parse())?;
    let sentences: usize = arguments.get(1).map_or(Ok(10_000), |text| text.parse())?;
    let behaviour = Behaviour {
        posture: |one, other| if one == other { "supports" } else { "related" },
        ..Behaviour::default()
    };
    let settings = [
        ("SVC__RATE_LIMITS__API_PER_MINUTE", "0"),
        ("SVC__PROVIDERS__REPORTS__POSTURE__MODEL", MODEL),
        ("SVC__PROVIDERS__DECOMPOSITION__FACT_EXTRACTION__MODEL", okt_model::EXTRACTIVE_MODEL),
    ];
    let mut app = TestApp::builder().vectors().models(behaviour, "").settings(&settings).start().await;
    app.work().await;
    let mut fill = Fill::new(app.connect().await);
    fill.repository(app.repository, facts, true).await?;
    fill.finish().await?;
    println!("{facts} facts");
    // Every other sentence is a fact word for word.
    let texts: Vec<String> = sqlx::query_scalar("SELECT text FROM okt_repository.facts ORDER BY no LIMIT $1")
        .bind(i64::try_from(sentences / 2)?)
        .fetch_all(&mut app.connect().await)
        .await?;
    let mut dice = Dice::new(5);
    let mut body = String::new();
    for at in 0..sentences {
        let other = text::fact(&mut dice, at % 512);
        let sentence = texts.get(at / 2).filter(|_| at % 2 == 0).unwrap_or(&other);
        let _ = write!(body, "{sentence}\n\n");
    }
    let before = memory()?;
    let began = Instant::now();
    let made = app.post("/reports", &json!({"title": "Long", "body_markdown": body})).await;
    ensure!(made.status == 201, "{made:?}");
    let report = made.json()["id"].as_str().context("an id")?.to_owned();
    let (first, highest) = checked(&app, &report).await?;
    let calls = asked(&app).await;
    println!(
        "{} claims checked in {:.0} s, {calls} questions; resident memory {before} MiB before, {highest} MiB at most",
        first["claim_count"],
        began.elapsed().as_secs_f64()
    );
    println!("{}", first["counts"]);
    let began = Instant::now();
    let id = app.add_text("one.txt", &text::fact(&mut dice, 7)).await;
    app.settled(&id).await;
    let (second, _) = checked(&app, &report).await?;
    let one_more = asked(&app).await - calls;
    let grown = highest.saturating_sub(before);
    println!(
        "one more fact: {:.1} s, {one_more} questions (limit {}); {}",
        began.elapsed().as_secs_f64(),
        calls / 10,
        second["counts"]
    );
    println!("{grown} MiB more memory at most (limit {MEMORY})");
    let made = app.post("/reports", &json!({"title": "Again", "body_markdown": body})).await;
    ensure!(made.status == 201, "{made:?}");
    let again = made.json()["id"].as_str().context("an id")?.to_owned();
    let (whole, _) = checked(&app, &again).await?;
    let differing = app
        .count(
            "WITH said AS (
                 SELECT r.no AS report, s.place, a.fact_no, a.posture
                   FROM okt_repository.reports r
                   JOIN okt_repository.report_sentences s ON s.report_no = r.no
                   JOIN okt_repository.report_annotations a ON a.sentence_no = s.no AND a.is_near)
             SELECT count(*) FROM (SELECT place, fact_no, posture FROM said GROUP BY 1, 2, 3 HAVING count(*) <> 2) AS d",
        )
        .await;
    println!("checked at once: {}; pairs that differ: {differing}", whole["counts"]);
    ensure!(differing == 0 && second["counts"] == whole["counts"], "bit by bit is not as at once");
    ensure!(one_more * 10 <= calls, "one more fact asked {one_more} questions, and all asked {calls}");
    ensure!(grown <= MEMORY, "{grown} MiB more memory");
    Ok(())
}

/// A report when nothing of it waits any more, and the most memory seen meanwhile.
async fn checked(app: &TestApp, report: &str) -> anyhow::Result<(Value, u64)> {
    let (began, mut highest) = (Instant::now(), 0);
    let mut quiet = 0;
    loop {
        highest = highest.max(memory()?);
        let seen = app.read(&format!("/reports/{report}")).await;
        let done = seen["status"] == "annotated" && seen["counts"]["waiting"] == 0;
        // What was just added may still be on its way.
        quiet = if done { quiet + 1 } else { 0 };
        if quiet > 20 {
            return Ok((seen, highest));
        }
        ensure!(began.elapsed() < LONGEST, "{seen:#}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Of reports: facts are compared with each other by the same model.
async fn asked(app: &TestApp) -> i64 {
    app.count(
        "SELECT count(*) FROM okt_system.ai_calls WHERE operation = 'posture_classification' AND subject_kind = 'report'",
    )
    .await
}

/// Of this process, which is the service and its worker, in MiB.
fn memory() -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("a size")?;
    Ok(line.split_whitespace().next().context("a size")?.parse::<u64>()? / 1024)
}
