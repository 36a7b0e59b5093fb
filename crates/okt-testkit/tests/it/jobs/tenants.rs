//! Two repositories side by side, and what it takes to have jobs in them.

use std::time::Duration;

use http::Method;
use okt_model::{JobId, NewJob, Payload, RepositoryId, Subject, SubjectKind};
use okt_queue::{Kinds, Worker};
use okt_store::outbox::{self, When};
use okt_testkit::accounts::{Person, give, register, repository, session};
use okt_testkit::client::Answer;
use okt_testkit::jobs::{waiting, worker};
use okt_testkit::served::TestService;
use okt_testkit::wait::eventually;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

/// A job that does what the test says.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Step {
    pub n: u32,
    pub source: Option<Uuid>,
}

impl Payload for Step {
    const KIND: &'static str = "embed_facts";

    fn subject(&self) -> Option<Subject> {
        self.source.map(|source| Subject::new(SubjectKind::Source, source))
    }
}

pub struct Tenant {
    pub id: RepositoryId,
    pub person: Person,
    /// Of an editor.
    pub token: String,
}

pub struct Tenants {
    pub service: TestService,
    /// Of the sysadmin.
    pub admin: String,
    pub ours: Tenant,
    pub theirs: Tenant,
}

impl Tenants {
    pub async fn new(settings: &[(&str, &str)]) -> Self {
        let service = TestService::product(settings).await;
        let admin = register(&service, "admin").await.token;
        let ours = Tenant::new(&service, "ada").await;
        let theirs = Tenant::new(&service, "eve").await;
        Self { service, admin, ours, theirs }
    }

    pub async fn get(&self, token: &str, path: &str) -> Answer {
        Answer::of(self.service.request(Method::GET, path).bearer_auth(token)).await
    }

    pub async fn post(&self, token: &str, path: &str) -> Answer {
        Answer::of(self.service.request(Method::POST, path).bearer_auth(token)).await
    }

    /// The job, as our editor sees it.
    pub async fn job(&self, id: JobId) -> Value {
        let answer = self.get(&self.ours.token, &self.ours.path(&format!("jobs/{id}"))).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// Waits for the job to look like this.
    pub async fn until(&self, id: JobId, expected: impl Fn(&Value) -> bool) -> Value {
        eventually(Duration::from_secs(20), "the job changes as expected", async || {
            let job = self.job(id).await;
            if expected(&job) { Ok(job) } else { Err(job) }
        })
        .await
    }

    /// Queues jobs without an outbox entry.
    pub async fn enqueue(&self, jobs: &[NewJob]) {
        let mut conn = self.service.api.app.databases().acquire_tasks().await.unwrap();
        okt_queue::enqueue(&mut conn, jobs).await.unwrap();
    }

    /// So many jobs of a repository that wait, oldest first.
    pub async fn waiting(&self, tenant: &Tenant, many: usize) -> Vec<JobId> {
        let jobs: Vec<_> = (0..many).map(|_| job(tenant)).collect();
        self.enqueue(&jobs).await;
        jobs.iter().map(|job| job.id).collect()
    }

    /// Writes an outbox entry, as a request would.
    pub async fn push(&self, tenant: &Tenant, step: &Step, delay_ms: i64) -> JobId {
        let (id, databases) = (JobId::mint(), self.service.api.app.databases());
        let mut tx = databases.begin(&databases.shards()[0], tenant.id).await.unwrap();
        outbox::push(&mut tx, tenant.id, id, step, When { priority: 0, delay_ms }).await.unwrap();
        tx.commit().await.unwrap();
        id
    }

    /// A process that runs so many of these at once.
    pub async fn worker(&self, slots: u32, kinds: Kinds) -> Worker {
        let names: Vec<&str> = kinds.names().collect();
        worker(self.service.api.app.config(), kinds, Vec::new(), |settings| {
            settings.slots = names.into_iter().map(|kind| (kind.to_owned(), slots)).collect();
            settings.drain = Duration::ZERO;
        })
        .await
    }
}

impl Tenant {
    async fn new(service: &TestService, name: &str) -> Self {
        let (id, person) = (repository(service).await, register(service, name).await);
        give(service, person.id, &id.to_string(), "editor").await;
        let token = session(service, person.id).await;
        Self { id, person, token }
    }

    pub fn path(&self, rest: &str) -> String {
        format!("/api/v1/repositories/{}/{rest}", self.id)
    }
}

/// A job that waits.
pub fn job(tenant: &Tenant) -> NewJob {
    waiting(tenant.id, &Step { n: 0, source: None })
}

/// What `list` shows, by id.
pub fn ids(list: &Answer) -> Vec<JobId> {
    assert_eq!(list.status, 200, "{list:?}");
    list.json()["data"].as_array().unwrap().iter().map(id).collect()
}

pub fn id(job: &Value) -> JobId {
    job["id"].as_str().unwrap().parse().unwrap()
}
