//! A service with a worker, a model that answers by rule, and a repository with somebody who adds to it.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use http::Method;
use okt_config::Config;
use okt_testkit::accounts::{Person, register, send};
use okt_testkit::client::Answer;
use okt_testkit::db::FILE;
use okt_testkit::jobs::Hired;
use okt_testkit::llm::{Behaviour, ModelServer};
use okt_testkit::served::TestService;
use serde_json::{Value, json};

pub(crate) const MODEL: &str = "test-model";

pub(crate) struct Desk {
    /// Works for as long as it is there, and no longer than the rest.
    worker: Option<Hired>,
    pub service: TestService,
    pub models: ModelServer,
    pub owner: Person,
    pub repository: String,
}

impl Desk {
    /// Short waits.
    pub(crate) const SETTINGS: [(&str, &str); 8] = [
        ("SVC__RATE_LIMITS__API_PER_MINUTE", "0"),
        ("SVC__BOOTSTRAP__DEFAULT_REPOSITORY", "false"),
        ("SVC__PROVIDERS__LLM_RETRY__BASE_DELAY", "20ms"),
        ("SVC__PROVIDERS__LLM_RETRY__MAX_DELAY", "2s"),
        ("SVC__PROVIDERS__LLM_RETRY__PER_CALL_TIMEOUT", "2s"),
        ("SVC__PROVIDERS__DECOMPOSITION__FACT_EXTRACTION__MODEL", MODEL),
        ("SVC__TASK__QUEUES__SOURCE_DECOMPOSITION", "8"),
        ("SVC__TASK__QUEUES__RETRIEVE_SOURCE", "4"),
    ];

    /// With a model that behaves, a dollar for a million tokens read and four for a million written.
    pub(crate) async fn open(settings: &[(&str, &str)]) -> Self {
        Self::open_with(Behaviour::default(), "input_cost_per_1m = 1.0\noutput_cost_per_1m = 4.0", settings)
            .await
    }

    pub(crate) async fn open_with(behaviour: Behaviour, model: &str, settings: &[(&str, &str)]) -> Self {
        let models = ModelServer::start(behaviour).await;
        let (url, catalogue) = (models.base_url(), catalogue(model));
        let mut all = Self::SETTINGS.to_vec();
        all.push(("LLM_LOCAL_BASE_URL", &url));
        all.push((FILE, &catalogue));
        all.extend_from_slice(settings);
        let service = TestService::product(&all).await;
        let owner = register(&service, "owner").await;
        let name = json!({"name": "Bees"});
        let made = send(&service, &owner.token, Method::POST, "/api/v1/repositories", &name).await;
        let repository = made.json()["id"].as_str().unwrap().to_owned();
        Self { service, models, owner, repository, worker: None }
    }

    /// Runs jobs from now on.
    pub(crate) async fn work(&mut self) {
        let config = self.service.api.app.config().clone();
        self.work_as(&config).await;
    }

    /// Runs jobs as another configuration says, in place of whoever did before.
    pub(crate) async fn work_as(&mut self, config: &Config) {
        self.worker = None;
        let settle = okt_queue::Periodic::new(&okt_jobs::SettleSources {}, Duration::from_secs(1));
        let periodic = vec![settle.expect("plain data")];
        self.worker = Some(Hired::start(config, periodic).await);
    }

    pub(crate) fn path(&self, rest: &str) -> String {
        format!("/api/v1/repositories/{}{rest}", self.repository)
    }

    pub(crate) async fn ask(&self, method: Method, rest: &str, body: &Value) -> Answer {
        send(&self.service, &self.owner.token, method, &self.path(rest), body).await
    }

    pub(crate) async fn get(&self, rest: &str) -> Value {
        let request = self.service.request(Method::GET, &self.path(rest));
        let answer = Answer::of(request.bearer_auth(&self.owner.token)).await;
        assert_eq!(answer.status, 200, "{rest}: {answer:?}");
        answer.json()
    }

    /// Adds a text as a file; returns the id of its source.
    pub(crate) async fn add(&self, name: &str, text: &str) -> String {
        self.add_within(name, text, None).await
    }

    /// As [`Self::add`], with the most that it may cost.
    pub(crate) async fn add_within(&self, name: &str, text: &str, max_cost_usd: Option<f64>) -> String {
        let mut form = String::new();
        if let Some(most) = max_cost_usd {
            let _ = write!(
                form,
                "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"max_cost_usd\"\r\n\r\n{most}\r\n"
            );
        }
        let _ = write!(
            form,
            "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
             content-type: text/plain\r\n\r\n{text}\r\n--{BOUNDARY}--\r\n"
        );
        let request = self.service.request(Method::POST, &self.path("/sources/upload"));
        let request = request.bearer_auth(&self.owner.token);
        let request = request.header("content-type", format!("multipart/form-data; boundary={BOUNDARY}"));
        let answer = Answer::of(request.body(form)).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        answer.json()["source_id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn source(&self, id: &str) -> Value {
        self.get(&format!("/sources/{id}")).await
    }

    /// Waits for a source to go no further.
    pub(crate) async fn settled(&self, id: &str) -> Value {
        self.until(id, |seen| ["processed", "failed"].iter().any(|end| seen["status"] == *end)).await
    }

    pub(crate) async fn until(&self, id: &str, so: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + Duration::from_mins(2);
        loop {
            let seen = self.source(id).await;
            if so(&seen) {
                return seen;
            }
            assert!(Instant::now() < deadline, "it is stuck: {seen:#}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// The job of a source, once it has been put to sleep: the source says so a moment earlier.
    pub(crate) async fn asleep(&self, seen: &Value) -> Value {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let job = self.get(&format!("/jobs/{}", seen["job_id"].as_str().unwrap())).await;
            if job["state"] == "scheduled" {
                return job;
            }
            assert!(Instant::now() < deadline, "it does not sleep: {job:#}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// All facts of a source.
    pub(crate) async fn facts(&self, id: &str) -> Vec<Value> {
        let page = self.get(&format!("/sources/{id}/facts?limit=200")).await;
        assert_eq!(page["next_cursor"], Value::Null, "more than a page");
        page["data"].as_array().unwrap().clone()
    }
}

/// The one model there is, with what is said of it.
pub(crate) fn catalogue(model: &str) -> String {
    format!("[[providers.ai.models]]\nid = \"{MODEL}\"\nprovider = \"local\"\n{model}\n")
}

/// A text of so many sentences that no other number has.
pub(crate) fn essay(number: usize, sentences: usize) -> String {
    let mut text = String::new();
    for n in 0..sentences {
        let (month, count) = (n % 12 + 1, number * 1_000 + n);
        let _ = write!(
            text,
            "In month {month} of the survey the keepers of apiary {number} counted {count} bees at the entrance of hive {n}. "
        );
        if n % 6 == 5 {
            text.push_str("\n\n");
        }
    }
    text
}

const BOUNDARY: &str = "a-line-between";
