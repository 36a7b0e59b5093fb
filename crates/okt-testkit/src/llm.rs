//! A model server on loopback: it answers by rule, counts what it is asked, and misbehaves on command.
//!
//! It speaks `/v1/chat/completions`, `/v1/embeddings`, `/v1/rerank` and `/v1/models`; `GET /stats` tells what it counted. The binary
//! `okt-test model` is the same as a process of its own.

mod answers;
mod fate;
mod serve;
#[cfg(test)]
mod tests;
mod texts;

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::Instant;

pub use answers::{copied, sentences, tokens};

use crate::wait::eventually;

/// How the server behaves; what it does to a request depends on nothing else, and on how often the request came before.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fault of its own, and any may come together")]
pub struct Behaviour {
    pub latency: Latency,
    pub faults: Faults,
    /// Does what the text says: the rest of a line behind `OBEY:` is all that it answers.
    pub obedient: bool,
    /// It tells of sentences with so many words or more.
    pub fewest_words: usize,
    /// Of a text it tells no more than this, the first.
    pub most_facts: usize,
    /// Asked about more sentences than this, it gives all of them back as one fact, as small models do.
    pub copies_above: usize,
    /// It tells everything eight times; cut off (`truncated`), it is a model that repeats itself without end.
    pub loops: bool,
    /// What it says of a pair of statements, in the order in which they are shown; nothing if it is empty.
    pub verdict: fn(&str, &str) -> &'static str,
    /// How it says that a fact stands to a sentence, which is given first.
    pub posture: fn(&str, &str) -> &'static str,
    /// The answer to what users ask, as another model gave it before; what has none is answered by rule.
    pub recorded: fn(&str) -> Option<String>,
    /// What it names in a fact: names with their contexts.
    pub concepts: fn(&str) -> Vec<(String, &'static str)>,
    /// How well a text answers a question.
    pub relevance: fn(&str, &str) -> f64,
    /// Beside that it names what no fact says: places that do not exist, pronouns, numbers, facts that it was not shown.
    pub inventive: bool,
    /// What its texts about concepts cite.
    pub citing: Citing,
    /// How much a fact, by its text, helps to answer a question: 0 to 10.
    pub helps: fn(&str, &str) -> u64,
    /// What it answers to a question, from facts by their keys and lines.
    pub writes: fn(&str, &[(&str, &str)]) -> String,
    /// What becomes of sentences that did not hold.
    pub repairs: fn(&str) -> String,
    /// Between the pieces of an answer that comes piece by piece, in milliseconds.
    pub pace_ms: u64,
    pub seed: u64,
    /// What a request is told that was too much.
    pub retry_after_secs: u64,
    /// Numbers in a vector; as many as `providers.embedding.dimensions`.
    pub dimensions: usize,
    /// Keeps the texts that were asked.
    pub keep: bool,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            latency: Latency::Fixed(0),
            faults: Faults::default(),
            obedient: false,
            fewest_words: 4,
            most_facts: usize::MAX,
            copies_above: usize::MAX,
            loops: false,
            verdict: |_, _| "different",
            posture: |_, _| "related",
            recorded: |_| None,
            concepts: answers::names,
            relevance: answers::shared_words,
            inventive: false,
            citing: Citing::Faithful,
            helps: |_, _| 8,
            writes: answers::copied,
            repairs: |_| r#"{"sentences":[]}"#.to_owned(),
            pace_ms: 0,
            seed: 0,
            retry_after_secs: 1,
            dimensions: 1_024,
            keep: false,
        }
    }
}

/// What sentences about facts rest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Citing {
    /// The facts that say so.
    Faithful,
    /// Others, none, facts that nobody showed; and some sentences say what no fact says.
    Wild,
    /// Of facts that contradict each other only one.
    OneSided,
    /// There are no sentences.
    Silent,
}

/// What begins so gets a vector of zeros, as some models give for what they can't read.
pub const NOWHERE: &str = "Nowhere: ";

/// How long an answer takes.
#[derive(Clone, Copy, Debug)]
pub enum Latency {
    /// In milliseconds.
    Fixed(u64),
    /// Half of the answers take up to the median; a larger sigma means a longer tail.
    LogNormal { median_ms: f64, sigma: f64 },
}

/// How many of the requests meet which fate, from 0 to 1; together at most 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Faults {
    /// 429 with Retry-After.
    pub rate_limited: f64,
    /// 401.
    pub refused: f64,
    /// 500.
    pub error: f64,
    /// No answer until the client leaves.
    pub hang: f64,
    /// An answer whose content is not what was asked for.
    pub garbage: f64,
    /// An answer that was cut off in the middle.
    pub truncated: f64,
    /// 200 and a web page.
    pub html: f64,
    /// The connection ends without an answer.
    pub down: f64,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    Good,
    RateLimited,
    Refused,
    Error,
    Hang,
    Garbage,
    Truncated,
    Html,
    Down,
}

/// What the server counted.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Stats {
    pub connections: u64,
    pub requests: u64,
    pub fates: BTreeMap<Fate, u64>,
    /// When good answers were sent in full, in milliseconds since the start, for each thing that was asked
    /// about: the first message of the user. What is there more than once was paid for more than once. Counted a moment after the client has the answer.
    pub good: BTreeMap<u64, Vec<u64>>,
    /// Of good answers.
    pub tokens_in: u64,
    pub tokens_out: u64,
    pub in_flight: u64,
    pub most_in_flight: u64,
    /// Clients that left before their answer.
    pub left: u64,
    /// What users asked, as far as it was kept.
    pub asked: Vec<String>,
}

/// Runs until it is dropped; its connections end with it.
pub struct ModelServer {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

struct Shared {
    begun: Instant,
    state: Mutex<State>,
}

struct State {
    behaviour: Arc<Behaviour>,
    stats: Stats,
    /// How often each body came, by its hash.
    times: HashMap<u64, u64>,
}

impl ModelServer {
    pub async fn start(behaviour: Behaviour) -> Self {
        Self::start_at(0, behaviour).await
    }

    /// On this port of loopback.
    pub async fn start_at(port: u16, behaviour: Behaviour) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let state = State { behaviour: Arc::new(behaviour), stats: Stats::default(), times: HashMap::new() };
        let shared = Arc::new(Shared { begun: Instant::now(), state: Mutex::new(state) });
        let serving = tokio::spawn(serve::accept(listener, Arc::clone(&shared)));
        Self { address, shared, serving }
    }

    /// For `base_url` of an endpoint under `providers.ai`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// By the clock of [`Stats::good`].
    pub fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.shared.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// From now on, also for requests that are on their way.
    pub fn behave(&self, behaviour: Behaviour) {
        self.shared.with(|state| state.behaviour = Arc::new(behaviour));
    }

    pub fn stats(&self) -> Stats {
        self.shared.with(|state| state.stats.clone())
    }

    /// Waits until what was counted is so, up to a minute.
    pub async fn await_stats(&self, so: impl Fn(&Stats) -> bool) -> Stats {
        eventually(Duration::from_mins(1), "the server counts as expected", async || {
            let stats = self.stats();
            if so(&stats) { Ok(stats) } else { Err(format!("{stats:?}")) }
        })
        .await
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Shared {
    fn with<T>(&self, what: impl FnOnce(&mut State) -> T) -> T {
        what(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Stats {
    /// Good answers, those of repeated requests included.
    pub fn good_answers(&self) -> usize {
        self.good.values().map(Vec::len).sum()
    }

    pub fn fate(&self, fate: Fate) -> u64 {
        self.fates.get(&fate).copied().unwrap_or(0)
    }
}

impl Faults {
    fn shares(self) -> [(Fate, f64); 8] {
        [
            (Fate::RateLimited, self.rate_limited),
            (Fate::Refused, self.refused),
            (Fate::Error, self.error),
            (Fate::Hang, self.hang),
            (Fate::Garbage, self.garbage),
            (Fate::Truncated, self.truncated),
            (Fate::Html, self.html),
            (Fate::Down, self.down),
        ]
    }
}

/// `rate=0.1,error=0.05`.
impl FromStr for Faults {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut faults = Self::default();
        for pair in text.split(',').filter(|pair| !pair.is_empty()) {
            let (name, share) = pair.split_once('=').ok_or_else(|| format!("{pair:?} is not name=share"))?;
            let share: f64 = share.parse().map_err(|_| format!("{share:?} is not a share from 0 to 1"))?;
            let field = match name {
                "rate" | "rate_limited" => &mut faults.rate_limited,
                "refused" => &mut faults.refused,
                "error" => &mut faults.error,
                "hang" => &mut faults.hang,
                "garbage" => &mut faults.garbage,
                "truncated" => &mut faults.truncated,
                "html" => &mut faults.html,
                "down" => &mut faults.down,
                _ => return Err(format!("{name:?} is no fault")),
            };
            *field = share;
        }
        let shares = faults.shares().map(|(_, share)| share);
        let fits = shares.iter().all(|share| *share >= 0.0) && shares.iter().sum::<f64>() <= 1.0;
        if fits { Ok(faults) } else { Err("shares are from 0 to 1, and at most 1 together".into()) }
    }
}
