//! What the pipeline costs beyond a bare loop of the same calls to a model: calls a second with a hundred and with four
//! hundred out at once, on a good day and on a bad one. Built and run in release: `cargo xtask bench`.
//!
//! The model is a process of its own with a lognormal latency of 300 ms in the median. The arms take turns (bare, ours, ours,
//! bare). Ours is a worker on a database of its own with sources of twenty chunks that have been fetched.
//! `okt-test bench pipeline SECONDS ROUNDS IN_FLIGHT FACTS` runs only those with so many out at once (0 for all), and a model that
//! tells so many facts of a chunk.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use okt_extract::{Promptset, Text, chunks, fact_questions};
use okt_model::{JobId, RepositoryId, SourceDecomposition, SourceId, SourceStatus, SourceText};
use okt_store::outbox::{self, When};
use okt_store::sources::{Fetched, NewSource};
use okt_store::{Databases, Purpose, source_texts, sources};
use okt_testkit::cluster::Cluster;
use okt_testkit::cpu;
use okt_testkit::db::{FILE, config};
use okt_testkit::jobs;
use okt_testkit::llm::{Fate, Stats};
use okt_testkit::soak::percentile;
use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection};

/// What has to be reached: of the bare calls a second, on a good day and on a bad one.
const GOOD_DAY: f64 = 0.95;
const BAD_DAY: f64 = 0.90;
/// Tokens sent for each of the source's own.
const AMPLIFICATION: f64 = 3.0;
/// That a model tells of a chunk. Sources of three chunks and ten facts are what the service is reckoned for; ask for ten a
/// chunk to see how a dense text does.
const FACTS: usize = 4;
const TENANTS: usize = 8;
const WARM_UP: Duration = Duration::from_secs(4);
/// Of the pool that jobs have.
const CONNECTIONS: u32 = 20;
/// Of those who look after jobs: a small pool of their own, and what they listen on.
const OTHERS: i64 = 8;

pub async fn run(arguments: &[String]) -> anyhow::Result<()> {
    let seconds = arguments.first().map_or(Ok(15), |text| text.parse())?;
    let rounds: usize = arguments.get(1).map_or(Ok(2), |text| text.parse())?;
    let only: u32 = arguments.get(2).map_or(Ok(0), |text| text.parse())?;
    let facts = arguments.get(3).map_or(Ok(FACTS), |text| text.parse())?;
    let mut missed = Vec::new();
    for (in_flight, faults, limit) in [
        (100, "", GOOD_DAY),
        (400, "", GOOD_DAY),
        (100, "rate=0.05,hang=0.02", BAD_DAY),
        (400, "rate=0.05,hang=0.02", BAD_DAY),
    ] {
        if only != 0 && only != in_flight {
            continue;
        }
        let run = Run { in_flight, faults, facts, measured: Duration::from_secs(seconds) };
        let mut ratios = Vec::new();
        for _ in 0..rounds {
            let arms = [run.bare().await?, run.ours().await?, run.ours().await?, run.bare().await?];
            ratios.extend([arms[1].rate / arms[0].rate, arms[2].rate / arms[3].rate]);
            println!("{in_flight} out at once, faults {faults:?}: {arms:.2?}");
            for ours in &arms[1..3] {
                let Some(more) = &ours.ours else { continue };
                ensure!(
                    more.connections <= i64::from(CONNECTIONS) + OTHERS,
                    "more connections than the pools have: {more:?}"
                );
                ensure!(more.amplification <= AMPLIFICATION, "more tokens than may be sent: {more:?}");
            }
        }
        let ratio = percentile(&mut ratios, 0.5);
        println!("=> {in_flight} out at once, faults {faults:?}: {ratio:.3} of bare (limit {limit})");
        if ratio < limit {
            missed.push(format!("{in_flight} {faults}: {ratio:.3}"));
        }
    }
    ensure!(missed.is_empty(), "worse than the limit: {}", missed.join("; "));
    Ok(())
}

struct Run {
    in_flight: u32,
    faults: &'static str,
    facts: usize,
    measured: Duration,
}

/// Good answers a second, and how many calls were out in the mean.
#[derive(Debug)]
struct Arm {
    rate: f64,
    ours: Option<Ours>,
}

#[derive(Debug)]
#[expect(dead_code, reason = "shown with the figures")]
struct Ours {
    connections: i64,
    amplification: f64,
    /// Of this process, for each call.
    cpu_ms: f64,
    /// Of PostgreSQL.
    database_cpu_ms: f64,
    most_in_flight: u64,
}

impl Run {
    /// As many loops as calls may be out: ask, read, ask again.
    async fn bare(&self) -> anyhow::Result<Arm> {
        let model = Model::start(self.faults, self.facts)?;
        let bodies: Arc<Vec<String>> = Arc::new((0..400).map(body).collect());
        #[expect(clippy::disallowed_methods, reason = "the bare arm")]
        let client = reqwest::Client::builder().no_proxy().timeout(TIMEOUT).build()?;
        let (stop, next) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let loops: Vec<_> = (0..self.in_flight)
            .map(|_| {
                let (client, bodies, stop, next) =
                    (client.clone(), bodies.clone(), stop.clone(), next.clone());
                let url = format!("{}/chat/completions", model.url);
                tokio::spawn(async move {
                    while !stop.load(Ordering::Relaxed) {
                        let body = bodies[next.fetch_add(1, Ordering::Relaxed) % bodies.len()].clone();
                        let request = client.post(&url).header("content-type", "application/json").body(body);
                        if let Ok(answer) = request.send().await
                            && let Ok(bytes) = answer.bytes().await
                        {
                            let _: Result<Value, _> = serde_json::from_slice(&bytes);
                        }
                    }
                })
            })
            .collect();
        let rate = model.rate(self.measured).await?;
        stop.store(true, Ordering::Relaxed);
        for one in loops {
            one.abort();
        }
        Ok(Arm { rate: rate.0, ours: None })
    }

    async fn ours(&self) -> anyhow::Result<Arm> {
        let (model, cluster) = (Model::start(self.faults, self.facts)?, Cluster::start());
        let (url, database) = (model.url.clone(), cluster.url());
        let catalogue = format!(
            "providers.embedding.model = \"\"\n[[providers.ai.models]]\nid = \"m\"\nprovider = \"local\"\nmax_in_flight = {}\n\
             input_cost_per_1m = 0.15\noutput_cost_per_1m = 0.6\n",
            self.in_flight
        );
        // Enough sources at once for the last chunks of some not to leave calls unmade.
        let (places, connections) = ((self.in_flight * 2 / 4).to_string(), CONNECTIONS.to_string());
        let settings = [
            ("SVC__DATABASES__DEFAULT__URL", database.as_str()),
            ("SVC__DATABASES__DEFAULT__MAX_CONNS", &connections),
            ("LLM_LOCAL_BASE_URL", &url),
            (FILE, &catalogue),
            ("SVC__PROVIDERS__DECOMPOSITION__FACT_EXTRACTION__MODEL", "m"),
            ("SVC__TASK__QUEUES__SOURCE_DECOMPOSITION", &places),
            ("SVC__PROVIDERS__LLM_RETRY__BASE_DELAY", "100ms"),
            ("SVC__PROVIDERS__LLM_RETRY__MAX_DELAY", "2s"),
            ("SVC__PROVIDERS__LLM_RETRY__PER_CALL_TIMEOUT", "3s"),
        ];
        let config = config(&settings);
        Databases::migrate(&config).await?;
        let all = WARM_UP + self.measured;
        let calls = f64::from(self.in_flight) / 0.3 * all.as_secs_f64() * 1.2;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few thousand")]
        let wanted = calls as usize / CHUNKS + 2 * self.in_flight as usize / 4;
        plant(&config, wanted).await?;
        let worker = jobs::worker(&config, jobs::kinds(&config).await, Vec::new(), |_| {}).await;
        let (database, watching) = (database.clone(), Arc::new(AtomicBool::new(true)));
        let watched = watching.clone();
        let watch = tokio::spawn(async move { most_connections(&database, &watched).await });
        let before = (cpu::seconds(std::process::id()), cluster.cpu_seconds());
        let (rate, stats) = model.rate(self.measured).await?;
        let spent = (cpu::seconds(std::process::id()) - before.0, cluster.cpu_seconds() - before.1);
        watching.store(false, Ordering::Relaxed);
        let connections = watch.await??;
        worker.stop().await;
        let good = stats.good_answers();
        ensure!(stats.good.values().all(|times| times.len() == 1), "something was paid for twice");
        #[expect(clippy::cast_precision_loss, reason = "figures for people")]
        let ours = Ours {
            connections,
            amplification: stats.tokens_in as f64
                / (good as f64 * okt_testkit::llm::tokens(&essay(1)) as f64 / CHUNKS as f64),
            cpu_ms: spent.0 * 1_000.0 / good as f64,
            database_cpu_ms: spent.1 * 1_000.0 / good as f64,
            most_in_flight: stats.most_in_flight,
        };
        Ok(Arm { rate, ours: Some(ours) })
    }
}

const TIMEOUT: Duration = Duration::from_secs(3);

/// The model in a process of its own, ended with the value.
struct Model {
    child: Child,
    url: String,
}

impl Model {
    fn start(faults: &str, facts: usize) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args([
                "model",
                "--latency-ms",
                "300",
                "--sigma",
                "0.5",
                "--retry-after-secs",
                "0",
                "--faults",
                faults,
            ])
            .args(["--most-facts", &facts.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .context("can't start the model in a process of its own")?;
        let mut url = String::new();
        BufReader::new(child.stdout.take().context("a pipe")?).read_line(&mut url)?;
        Ok(Self { child, url: url.trim().to_owned() })
    }

    async fn stats(&self) -> anyhow::Result<Stats> {
        #[expect(clippy::disallowed_methods, reason = "the server of this program")]
        let client = reqwest::Client::builder().no_proxy().build()?;
        let url = self.url.replace("/v1", "/stats");
        Ok(client.get(url).send().await?.json().await?)
    }

    /// Good answers a second after the warm-up.
    async fn rate(&self, measured: Duration) -> anyhow::Result<(f64, Stats)> {
        tokio::time::sleep(WARM_UP).await;
        let (begun, before) = (Instant::now(), self.stats().await?.fate(Fate::Good));
        tokio::time::sleep(measured).await;
        let (took, after) = (begun.elapsed(), self.stats().await?);
        #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
        let answers = (after.fate(Fate::Good) - before) as f64;
        Ok((answers / took.as_secs_f64(), after))
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Chunks of a source.
const CHUNKS: usize = 20;

fn essay(n: usize) -> String {
    let sentences = (0..CHUNKS * 15).map(|at| {
        format!(
            "In week {at} of the survey the keepers of apiary {n} counted {} bees at the entrance of the hive near the river, {}. ",
            n * 1_000 + at,
            ["which was more than before", "as they had done in spring", "although it rained"][at % 3]
        )
    });
    sentences.collect()
}

fn text(n: usize) -> SourceText {
    let text = essay(n);
    let mut sentences = Vec::new();
    let mut start = 0;
    for sentence in text.split_inclusive(". ") {
        let length = i32::try_from(sentence.chars().count()).unwrap_or(0);
        sentences.push((start, start + length - 1));
        start += length;
    }
    SourceText {
        markdown: text.clone(),
        text,
        sentences,
        boxes: None,
        pages: Vec::new(),
        segmenter: String::new(),
        segmenter_hash: String::new(),
    }
}

/// What ours would send, but for what does not matter to the server.
fn body(n: usize) -> String {
    let text = text(n);
    let cut = Text::new(&text.text, &text.sentences);
    let chunk = &chunks(&cut, 2_000, 200)[..1];
    let promptset = Promptset::builtin();
    let question = fact_questions(&promptset, None, &cut, chunk).next().expect("a chunk has a question");
    json!({
        "model": "m", "temperature": 0, "max_tokens": question.max_tokens,
        "messages": [{"role": "system", "content": question.system}, {"role": "user", "content": question.user}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "strict": true, "schema": question.schema}},
    })
    .to_string()
}

/// Sources that have been fetched, with the outbox entries of their jobs.
async fn plant(config: &okt_config::Config, wanted: usize) -> anyhow::Result<()> {
    let databases = Databases::open(config, &[Purpose::Worker]).await?;
    let tenants: Vec<RepositoryId> = (0..TENANTS).map(|_| RepositoryId::mint()).collect();
    for (at, tenant) in tenants.iter().enumerate() {
        let mut tx = databases[0].begin("default", *tenant).await?;
        for n in (at..wanted).step_by(TENANTS) {
            let (source, job) = (SourceId::mint(), JobId::mint());
            let new = NewSource {
                locator: Some(format!("https://example.org/{n}")),
                ..NewSource::new(source, job, format!("https://example.org/{n}"))
            };
            sources::insert(&mut tx, *tenant, &new).await?;
            sources::mark(&mut tx, *tenant, source, job, SourceStatus::Fetching).await?;
            sources::mark_fetched(&mut tx, *tenant, source, job, &Fetched::default()).await?;
            source_texts::put(&mut tx, *tenant, source, &text(n)).await?;
            outbox::push(&mut tx, *tenant, job, &SourceDecomposition { source }, When::default()).await?;
        }
        tx.commit().await?;
    }
    databases[0].close().await;
    Ok(())
}

async fn most_connections(url: &str, watching: &AtomicBool) -> anyhow::Result<i64> {
    let mut conn = PgConnection::connect(url).await?;
    let mut most = 0;
    while watching.load(Ordering::Relaxed) {
        let now: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
        )
        .fetch_one(&mut conn)
        .await?;
        most = most.max(now);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Ok(most)
}
