//! A database, a worker, and a kind of job that does what each test wants.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use okt_model::{Job, JobId, JobState, Payload, RepositoryId};
use okt_queue::{Finished, JobContext, JobError, Kinds, Periodic, Worker, jobs};
use okt_store::outbox::{self, When};
use okt_store::{Databases, Purpose};
use okt_testkit::db::{TestDatabase, run};
use okt_testkit::jobs::worker;
use serde::{Deserialize, Serialize};
use sqlx::AssertSqlSafe;

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

pub struct Shop {
    pub database: TestDatabase,
    pub databases: Databases,
    pub repository: RepositoryId,
}

type Deed = Arc<dyn Fn(Errand, JobContext) -> BoxFuture<'static, Result<Finished, JobError>> + Send + Sync>;

impl Shop {
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
    pub async fn worker<F, R>(&self, slots: u32, deed: F) -> Worker
    where
        F: Fn(Errand, JobContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Finished, JobError>> + Send + 'static,
    {
        self.worker_with(&[], slots, Arc::new(move |errand, ctx| Box::pin(deed(errand, ctx)))).await
    }

    pub async fn worker_with(&self, settings: &[(&str, &str)], slots: u32, deed: Deed) -> Worker {
        let kinds = Kinds::default().repository(move |errand: Errand, ctx| deed(errand, ctx));
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
        let id = JobId::mint();
        let mut tx = self.databases.begin("default", repository).await.expect("it works");
        outbox::push(&mut tx, repository, id, errand, when).await.expect("it works");
        tx.commit().await.expect("it works");
        id
    }

    pub async fn find(&self, id: JobId) -> Option<Job> {
        jobs::find(&self.databases, jobs::Whose::Everybodys, id).await.expect("it works")
    }

    /// Waits until a job is in this state.
    pub async fn until(&self, id: JobId, state: JobState) -> Job {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let job = self.find(id).await;
            if let Some(job) = &job
                && job.state == state
            {
                return job.clone();
            }
            assert!(Instant::now() < deadline, "it did not become {state:?}: {job:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub async fn count(&self, query: &str) -> i64 {
        let mut conn = self.database.connect().await;
        sqlx::query_scalar(AssertSqlSafe(query.to_owned())).fetch_one(&mut conn).await.expect("it works")
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
    let mut effect = ctx.begin().await?;
    write(&mut effect, errand.n).await?;
    effect.commit(None).await
}

pub async fn write(conn: &mut okt_store::Connection, n: i64) -> okt_model::Result<()> {
    let row = sqlx::query("INSERT INTO done (n) VALUES ($1)").bind(n);
    row.execute(conn).await.map_err(okt_store::from_sqlx)?;
    Ok(())
}
