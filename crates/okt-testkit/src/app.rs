//! The product in the test's own process, with everything around it that a test may need: a database, a small web, a
//! model server, a worker, and a repository with its owner.
//!
//! `TestApp::start()` for the plain one, `TestApp::builder()` for another. Paths are those below the repository, or whole
//! ones that begin with `/api/`.

mod builder;

use std::time::Duration;

use http::Method;
use okt_config::Config;
use okt_model::RepositoryId;
use okt_queue::Periodic;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, PgConnection};

pub use builder::TestAppBuilder;

use crate::accounts::{self, Person};
use crate::client::Answer;
use crate::db::{TestDatabase, run};
use crate::jobs::TestWorker;
use crate::llm::ModelServer;
use crate::multipart::{CONTENT_TYPE, form};
use crate::served::TestService;
use crate::wait::eventually;
use crate::web::Web;

/// The one model of an app with models.
pub const MODEL: &str = "test-model";

/// How long a source or a job may take on a slow machine that does other things as well.
const LIMIT: Duration = Duration::from_mins(2);

pub struct TestApp {
    /// Works for as long as it is there, and no longer than the rest.
    worker: Option<TestWorker>,
    pub service: TestService,
    pub web: Web,
    pub models: ModelServer,
    second: Option<TestDatabase>,
    /// The first account of the service, and so a sysadmin.
    pub owner: Person,
    /// The owner's; the nil id if there is none.
    pub repository: RepositoryId,
    paths_below: &'static str,
    process_settings: Vec<(String, String)>,
}

/// Starting.
impl TestApp {
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    pub fn builder<'a>() -> TestAppBuilder<'a> {
        TestAppBuilder::new()
    }

    /// Runs jobs from now on.
    pub async fn work(&mut self) {
        let config = self.service.api.app.config().clone();
        self.work_as(&config).await;
    }

    /// Runs jobs as another configuration says, in place of the worker before.
    pub async fn work_as(&mut self, config: &Config) {
        self.worker = None;
        let settle = Periodic::new(&okt_jobs::SettleSources {}, Duration::from_secs(1));
        self.worker = Some(TestWorker::start(config, vec![settle.expect("plain data")]).await);
    }

    /// Runs no more jobs.
    pub fn rest(&mut self) {
        self.worker = None;
    }

    /// What tells a process of its own about the same database, files, web and models.
    pub fn process_settings(&self) -> Vec<(&str, &str)> {
        self.process_settings.iter().map(|(name, value)| (&**name, &**value)).collect()
    }
}

/// Requests.
impl TestApp {
    pub fn path(&self, rest: &str) -> String {
        if rest.starts_with("/api/") {
            return rest.to_owned();
        }
        format!("/api/v1/repositories/{}{}{rest}", self.repository, self.paths_below)
    }

    pub async fn get(&self, rest: &str) -> Answer {
        self.get_as(&self.owner, rest).await
    }

    pub async fn get_as(&self, who: &Person, rest: &str) -> Answer {
        self.service.get_as(&who.token, &self.path(rest)).await
    }

    /// The body of an answer that has to be good.
    pub async fn read(&self, rest: &str) -> Value {
        let answer = self.get(rest).await;
        assert_eq!(answer.status, 200, "{rest}: {answer:?}");
        answer.json()
    }

    pub async fn post(&self, rest: &str, body: &Value) -> Answer {
        self.ask(Method::POST, rest, body).await
    }

    pub async fn put(&self, rest: &str, body: &Value) -> Answer {
        self.ask(Method::PUT, rest, body).await
    }

    pub async fn delete(&self, rest: &str) -> Answer {
        self.delete_as(&self.owner, rest).await
    }

    pub async fn delete_as(&self, who: &Person, rest: &str) -> Answer {
        let request = self.service.request(Method::DELETE, &self.path(rest));
        Answer::of(request.bearer_auth(&who.token)).await
    }

    pub async fn ask(&self, method: Method, rest: &str, body: &Value) -> Answer {
        self.send(&self.owner, method, rest, body).await
    }

    pub async fn send(&self, who: &Person, method: Method, rest: &str, body: &Value) -> Answer {
        accounts::send(&self.service, &who.token, method, &self.path(rest), body).await
    }
}

/// Sources and their facts.
impl TestApp {
    pub async fn upload(&self, name: &str, content_type: &str, bytes: &[u8]) -> Answer {
        self.upload_form(form(&[], name, content_type, bytes)).await
    }

    pub async fn upload_form(&self, form: Vec<u8>) -> Answer {
        self.send_form("/sources/upload", form).await
    }

    /// Sends a form to a path below the repository.
    pub async fn send_form(&self, rest: &str, form: Vec<u8>) -> Answer {
        let path = format!("/api/v1/repositories/{}{rest}", self.repository);
        let request = self.service.request(Method::POST, &path).bearer_auth(&self.owner.token);
        Answer::of(request.header("content-type", CONTENT_TYPE).body(form)).await
    }

    /// Adds a text as a file; returns the id of its source.
    pub async fn add_text(&self, name: &str, text: &str) -> String {
        source_of(&self.upload(name, "text/plain", text.as_bytes()).await)
    }

    /// As [`Self::add_text`], with the most that it may cost.
    pub async fn add_text_within(&self, name: &str, text: &str, max_cost_usd: f64) -> String {
        let cost = max_cost_usd.to_string();
        let form = form(&[("max_cost_usd", &cost)], name, "text/plain", text.as_bytes());
        source_of(&self.upload_form(form).await)
    }

    /// Adds a page of the small web; returns the id of its source.
    pub async fn add_page(&self, path: &str) -> String {
        let sources = format!("/api/v1/repositories/{}/sources", self.repository);
        source_of(&self.post(&sources, &json!({"url": self.web.url(path)})).await)
    }

    pub async fn source(&self, id: &str) -> Value {
        self.read(&format!("/api/v1/repositories/{}/sources/{id}", self.repository)).await
    }

    /// Waits for a source to go no further.
    pub async fn settled(&self, id: &str) -> Value {
        self.until(id, |seen| ["processed", "failed"].iter().any(|end| seen["status"] == *end)).await
    }

    /// Waits for a source to look like this.
    pub async fn until(&self, id: &str, so: impl Fn(&Value) -> bool) -> Value {
        eventually(LIMIT, "the source changes as expected", async || {
            let seen = self.source(id).await;
            if so(&seen) { Ok(seen) } else { Err(seen) }
        })
        .await
    }

    /// Waits for a job to end.
    pub async fn ended(&self, job: &str) -> Value {
        let path = format!("/api/v1/repositories/{}/jobs/{job}", self.repository);
        eventually(LIMIT, "the job ends", async || {
            let seen = self.read(&path).await;
            if seen["finished_at"].is_null() { Err(seen) } else { Ok(seen) }
        })
        .await
    }

    /// Waits until no job waits or runs, but for those that come back by themselves.
    pub async fn quiet(&self) {
        eventually(Duration::from_mins(4), "all jobs have ended", async || {
            let open = "SELECT (SELECT count(*) FROM okt_repository.outbox o
                                 WHERE NOT EXISTS (SELECT FROM okt_tasks.jobs j WHERE j.id = o.job_id
                                                    AND (j.finished_at IS NOT NULL OR j.scheduled_at > now() + interval '5 minutes')))
                             + (SELECT count(*) FROM okt_tasks.jobs WHERE repository_id IS NOT NULL AND finished_at IS NULL
                                   AND scheduled_at < now() + interval '5 minutes')";
            let open = self.count(open).await;
            if open == 0 { Ok(()) } else { Err(open) }
        })
        .await;
    }

    /// All facts of a source.
    pub async fn facts(&self, id: &str) -> Vec<Value> {
        let path = format!("/api/v1/repositories/{}/sources/{id}/facts?limit=200", self.repository);
        let page = self.read(&path).await;
        assert_eq!(page["next_cursor"], Value::Null, "more than a page");
        page["data"].as_array().expect("a list").clone()
    }
}

/// SQL as the owner of the database, past row-level security.
impl TestApp {
    pub async fn connect(&self) -> PgConnection {
        self.service.database.connect().await
    }

    pub async fn sql(&self, statement: &str) {
        run(&mut self.connect().await, statement).await;
    }

    /// The number that a statement yields.
    pub async fn count(&self, statement: &str) -> i64 {
        count(&mut self.connect().await, statement).await
    }

    /// The database beside the default one.
    pub fn second(&self) -> &TestDatabase {
        self.second.as_ref().expect("an app that was built with a second database")
    }
}

/// The number that a statement yields on a connection.
pub async fn count(conn: &mut PgConnection, statement: &str) -> i64 {
    let number = sqlx::query_scalar(AssertSqlSafe(statement.to_owned())).fetch_one(conn).await;
    number.unwrap_or_else(|error| panic!("{statement}: {error}"))
}

fn source_of(added: &Answer) -> String {
    assert_eq!(added.status, 202, "{added:?}");
    added.json()["source_id"].as_str().expect("an id").to_owned()
}
