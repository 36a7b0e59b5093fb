//! The queue without the service: a database, workers, and a kind of job that does what each test wants.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use okt_model::{Job, JobId, JobState, Payload, RepositoryId};
use okt_queue::{Finished, JobContext, JobError, Kinds, Periodic, Worker, jobs};
use okt_store::outbox::When;
use okt_store::{Databases, Purpose};
use okt_testkit::app;
use okt_testkit::db::{TestDatabase, run};
use okt_testkit::jobs::{push, worker};
use okt_testkit::wait::eventually;
use serde::{Deserialize, Serialize};

/// Whatever the test says.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Errand {
    pub n: i64,
    pub key: Option<String>,
}

impl Payload for Errand {
    const KIND: &'static str = "errand";

    fn unique_key(&self) -> Option<String> {
        self.key.clone()
    }
}

pub fn errand(n: i64) -> Errand {
    Errand { n, key: None }
}

pub struct TestQueue {
    pub database: TestDatabase,
    pub databases: Databases,
    pub repository: RepositoryId,
}

type Body = Arc<dyn Fn(Errand, JobContext) -> BoxFuture<'static, Result<Finished, JobError>> + Send + Sync>;

impl TestQueue {
    pub async fn open() -> Self {
        let database = TestDatabase::migrated().await;
        let table = "CREATE TABLE done (n bigint, at timestamptz DEFAULT clock_timestamp());
                     DO $$ BEGIN GRANT ALL ON done TO okt_service; EXCEPTION WHEN undefined_object THEN NULL; END $$";
        run(&mut database.connect().await, table).await;
        let databases =
            Databases::open(&database.config(&[]), &[Purpose::Api]).await.expect("it works").remove(0);
        Self { database, databases, repository: RepositoryId::mint() }
    }

    /// A worker for errands, with as many slots.
    pub async fn worker<F, R>(&self, slots: u32, body: F) -> Worker
    where
        F: Fn(Errand, JobContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Finished, JobError>> + Send + 'static,
    {
        self.worker_with(&[], slots, Arc::new(move |errand, ctx| Box::pin(body(errand, ctx)))).await
    }

    pub async fn worker_with(&self, settings: &[(&str, &str)], slots: u32, body: Body) -> Worker {
        let kinds = Kinds::default().repository(move |errand: Errand, ctx| body(errand, ctx));
        let slots = [(Errand::KIND.to_owned(), slots)].into();
        self.start(settings, kinds, Some(slots), vec![]).await
    }

    /// A worker for other kinds.
    pub async fn start(
        &self,
        settings: &[(&str, &str)],
        kinds: Kinds,
        slots: Option<std::collections::BTreeMap<String, u32>>,
        periodic: Vec<Periodic>,
    ) -> Worker {
        let config = self.database.config(settings);
        let limit = config.task.job_timeout.duration();
        worker(&config, kinds, periodic, |settings| {
            if let Some(slots) = slots {
                settings.timeouts = slots.keys().map(|kind| (kind.clone(), limit)).collect();
                settings.slots = slots;
            }
        })
        .await
    }

    /// Asks for an errand; it is promised when this returns.
    pub async fn push(&self, errand: &Errand) -> JobId {
        self.push_for(self.repository, errand, When::default()).await
    }

    pub async fn push_for(&self, repository: RepositoryId, errand: &Errand, when: When) -> JobId {
        push(&self.databases, repository, errand, when).await
    }

    pub async fn find(&self, id: JobId) -> Option<Job> {
        jobs::find(&self.databases, jobs::TenantFilter::All, id).await.expect("it works")
    }

    /// Waits until a job is in this state.
    pub async fn until(&self, id: JobId, state: JobState) -> Job {
        eventually(Duration::from_secs(20), state.as_str(), async || match self.find(id).await {
            Some(job) if job.state == state => Ok(job),
            job => Err(format!("{job:?}")),
        })
        .await
    }

    /// Waits until nothing is known of a job.
    pub async fn until_forgotten(&self, id: JobId) {
        eventually(Duration::from_secs(20), "the job is forgotten", async || match self.find(id).await {
            None => Ok(()),
            Some(job) => Err(format!("{job:?}")),
        })
        .await;
    }

    pub async fn count(&self, query: &str) -> i64 {
        app::count(&mut self.database.connect().await, query).await
    }

    /// Waits until a query counts nothing any more.
    pub async fn until_none(&self, query: &str) {
        eventually(Duration::from_secs(20), query, async || match self.count(query).await {
            0 => Ok(()),
            number => Err(number),
        })
        .await;
    }

    /// Waits until a query yields at least this number.
    pub async fn until_count(&self, query: &str, least: i64) {
        eventually(Duration::from_secs(20), query, async || match self.count(query).await {
            number if number >= least => Ok(()),
            number => Err(number),
        })
        .await;
    }

    pub async fn sql(&self, statement: &str) {
        run(&mut self.database.connect().await, statement).await;
    }

    /// How often the effect of an errand has happened.
    pub async fn effects(&self, n: i64) -> i64 {
        self.count(&format!("SELECT count(*) FROM done WHERE n = {n}")).await
    }
}

/// Writes a row in the one transaction.
pub async fn deliver(errand: Errand, ctx: JobContext) -> Result<Finished, JobError> {
    let mut tx = ctx.begin().await?;
    write(&mut tx, errand.n).await?;
    tx.commit(None).await
}

pub async fn write(conn: &mut okt_store::Connection, n: i64) -> okt_pg::Result<()> {
    let row = sqlx::query("INSERT INTO done (n) VALUES ($1)").bind(n);
    row.execute(conn).await?;
    Ok(())
}
