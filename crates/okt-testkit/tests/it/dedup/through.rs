//! Pairs of sentences that differ, both as facts of the service with the vectors of the built-in model: false merges and groups.
//! They enter as rows, or as documents that a model makes facts of.
//!
//! The short forms take pairs that the project has written. `OKT_DEDUP_PAIRS=FILE`, with lines of JSON as `okt eval dedup` reads
//! them, is the long one.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use okt_model::{EMBEDDING_MODEL, EmbedFacts, content_hash};
use okt_store::outbox::When;
use okt_testkit::app::TestApp;
use okt_testkit::jobs::push;
use okt_testkit::llm::Behaviour;
use okt_testkit::wait::eventually;
use serde_json::Value;

use crate::dedup::stored_facts::StoredFacts;

const OWN: &str = include_str!("../../../../okt-extract/src/same/tests/differ.tsv");
/// Facts of one source; a pair is said by two of them.
const PAGE: usize = 500;
/// Sentences of one document.
const DOCUMENT: usize = 100;

/// What is known of a fact afterwards: its canonical fact, and the representative of its group.
type Became = HashMap<Vec<u8>, (i64, Option<i64>)>;

async fn became(app: &TestApp) -> Became {
    let query =
        "SELECT content_hash, coalesce(merged_into, no), coalesce(similar_to, no) FROM okt_repository.facts";
    let mut conn = app.connect().await;
    let rows: Vec<(Vec<u8>, i64, i64)> = sqlx::query_as(query).fetch_all(&mut conn).await.unwrap();
    let represented: HashMap<i64, i64> = rows.iter().map(|(_, root, group)| (*root, *group)).collect();
    rows.into_iter().map(|(hash, root, _)| (hash, (root, represented.get(&root).copied()))).collect()
}

/// Every text from a source of its side, embedded and compared.
async fn compared(fixture: &mut StoredFacts, texts: &[Vec<String>]) {
    fixture.work().await;
    for side in texts {
        for page in side.chunks(PAGE) {
            let source = fixture.say(page).await;
            push(
                &fixture.databases,
                fixture.repository,
                &EmbedFacts { source: Some(source) },
                When::default(),
            )
            .await;
        }
    }
    settled(fixture).await;
}

/// Waits until nothing is new.
async fn settled(app: &TestApp) {
    eventually(Duration::from_mins(90), "every fact is compared", async || {
        match app.count("SELECT count(*) FROM okt_repository.facts WHERE status = 'new'").await {
            0 => Ok(()),
            new => Err(new),
        }
    })
    .await;
}

/// A text twice in one source would be said twice by it.
fn distinct(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    texts.filter(|text| seen.insert(content_hash(text))).collect()
}

struct Pair {
    kind: String,
    same: bool,
    texts: [String; 2],
}

fn read(file: &str) -> Vec<Pair> {
    let lines = std::fs::read_to_string(file).unwrap();
    let pair = |line: &str| {
        let value: Value = serde_json::from_str(line).unwrap();
        let text = |name: &str| value[name].as_str().unwrap().to_owned();
        Pair { kind: text("kind"), same: value["merge"] == 1, texts: [text("a"), text("b")] }
    };
    lines.lines().filter(|line| !line.trim().is_empty()).map(pair).collect()
}

/// The pairs of the file that is named, or so many of the project's own.
fn pairs(own: usize) -> Vec<Pair> {
    if let Ok(file) = std::env::var("OKT_DEDUP_PAIRS") {
        return read(&file);
    }
    let lines = OWN.lines().filter_map(|line| {
        let mut columns = line.rsplit('\t').map(str::to_owned);
        let (b, a) = (columns.next()?, columns.next()?);
        Some(Pair { kind: "own".to_owned(), same: false, texts: [a, b] })
    });
    let pairs: Vec<Pair> = lines.step_by(3).take(own).collect();
    assert!(pairs.len() * 10 >= own * 9, "{}", pairs.len());
    pairs
}

/// The texts of one side, each once.
fn sides(pairs: &[Pair]) -> [Vec<String>; 2] {
    [0, 1].map(|side| distinct(pairs.iter().map(|pair| pair.texts[side].clone())))
}

#[derive(Default)]
struct Row {
    pairs: usize,
    /// A text of theirs did not become a fact.
    outside: usize,
    equal: usize,
    merged: usize,
    grouped: usize,
}

/// Prints what became of the pairs, and looks at those that differ and were merged. Returns how many became facts.
#[expect(clippy::print_stdout, reason = "whoever measures reads it")]
fn report(pairs: &[Pair], became: &Became) -> usize {
    let (mut rows, mut wrong) = (BTreeMap::<(bool, &str), Row>::new(), Vec::new());
    for pair in pairs {
        let row = rows.entry((pair.same, pair.kind.as_str())).or_default();
        let hashes = pair.texts.each_ref().map(|text| content_hash(text).0.to_vec());
        row.pairs += 1;
        match hashes.each_ref().map(|hash| became.get(hash)) {
            [Some(one), Some(other)] if hashes[0] != hashes[1] => {
                if one.0 == other.0 {
                    row.merged += 1;
                    wrong.extend((!pair.same).then_some(&pair.texts));
                } else if one.1 == other.1 {
                    row.grouped += 1;
                }
            }
            [Some(_), Some(_)] => row.equal += 1,
            _ => row.outside += 1,
        }
    }
    for ((same, kind), Row { pairs, outside, equal, merged, grouped }) in &rows {
        let said = if *same { "same" } else { "differ" };
        println!(
            "{said} {kind}: {pairs} pairs, {outside} not both facts, {equal} equal texts, {merged} merged, {grouped} in one group"
        );
    }
    let differing = pairs.iter().filter(|pair| !pair.same).count();
    println!("{} of {differing} that differ were merged: {wrong:#?}", wrong.len());
    // None of the project's own; of others a label may be wrong.
    let most = if std::env::var("OKT_DEDUP_PAIRS").is_ok() { differing / 200 } else { 0 };
    assert!(wrong.len() <= most, "{wrong:#?}");
    pairs.len() - rows.values().map(|row| row.outside).sum::<usize>()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_pairs_that_differ_none_is_merged_by_the_service() {
    let pairs = pairs(60);
    let mut fixture = StoredFacts::open(&[("SVC__PROVIDERS__EMBEDDING__MODEL", EMBEDDING_MODEL)]).await;
    let begun = Instant::now();
    compared(&mut fixture, &sides(&pairs)).await;
    let became = became(&fixture).await;
    println!("{} facts in {:.0?}", became.len(), begun.elapsed());
    assert_eq!(report(&pairs, &became), pairs.len());
}

/// Each text is a sentence of a document, and the model makes a fact of each sentence. The two of a pair are never in one
/// document. What the service does not take for a fact is counted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_pairs_that_enter_by_a_model_none_that_differs_is_merged() {
    let pairs = pairs(30);
    let behaviour = Behaviour { fewest_words: 1, ..Behaviour::default() };
    let mut app = TestApp::builder().models(behaviour, "").vectors().start().await;
    let begun = Instant::now();
    app.work().await;
    let mut sources = Vec::new();
    for (side, texts) in sides(&pairs).into_iter().enumerate() {
        for (n, page) in texts.chunks(DOCUMENT).enumerate() {
            sources.push(app.add_text(&format!("{side}-{n}.txt"), &page.join("\n\n")).await);
        }
    }
    let mut dropped: BTreeMap<String, u64> = BTreeMap::new();
    for source in &sources {
        let seen = eventually(Duration::from_mins(90), "the source is read", async || {
            let seen = app.source(source).await;
            if ["processed", "failed"].iter().any(|end| seen["status"] == *end) {
                Ok(seen)
            } else {
                Err(seen)
            }
        })
        .await;
        for (reason, count) in seen["extraction"]["dropped"].as_object().into_iter().flatten() {
            *dropped.entry(reason.clone()).or_default() += count.as_u64().unwrap();
        }
        if seen["status"] == "failed" {
            println!("{}", seen["failure"]);
        }
    }
    settled(&app).await;
    let became = became(&app).await;
    println!(
        "{} facts of {} documents in {:.0?}; not taken for facts: {dropped:?}",
        became.len(),
        sources.len(),
        begun.elapsed()
    );
    let entered = report(&pairs, &became);
    assert!(entered * 2 > pairs.len(), "{entered} of {}", pairs.len());
}

/// Unrelated facts in twelve scripts, most of which the built-in model sees as one and the same token.
const SCRIPTS: &str = include_str!("scripts.txt");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unrelated_facts_in_twelve_scripts_are_neither_merged_nor_grouped() {
    let mut fixture = StoredFacts::open(&[("SVC__PROVIDERS__EMBEDDING__MODEL", EMBEDDING_MODEL)]).await;
    let facts: Vec<String> = SCRIPTS
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect();
    assert_eq!(facts.len(), 72);
    // Half of them from a source that is said to be English, half from one of which nothing is known.
    let (known, unknown): (Vec<_>, Vec<_>) =
        facts.iter().cloned().enumerate().partition(|(at, _)| at % 2 == 0);
    let texts = |facts: Vec<(usize, String)>| facts.into_iter().map(|(_, text)| text).collect::<Vec<_>>();
    let (known, unknown) = (texts(known), texts(unknown));
    fixture.say(&unknown).await;
    fixture.sql("UPDATE okt_repository.sources SET language = NULL").await;
    push(&fixture.databases, fixture.repository, &EmbedFacts { source: None }, When::default()).await;
    compared(&mut fixture, &[known]).await;
    let merged =
        fixture.count("SELECT count(*) FROM okt_repository.facts WHERE merged_into IS NOT NULL").await;
    let grouped =
        fixture.count("SELECT count(*) FROM okt_repository.facts WHERE similar_to IS NOT NULL").await;
    assert_eq!((merged, grouped), (0, 0));
    assert_eq!(
        fixture.count("SELECT count(*) FROM okt_repository.facts WHERE embedded_in IS NOT NULL").await,
        72
    );
}
