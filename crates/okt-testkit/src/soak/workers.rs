//! Processes that run jobs, to be started, stopped, killed and counted.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use okt_config::Config;
use okt_model::{JobId, Payload, RepositoryId, Result};
use okt_queue::{Periodic, Worker};
use okt_store::outbox::{self, When};
use okt_store::{Databases, Purpose};
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use super::kinds::{TABLES, Tick, kinds};
use crate::db::{config, run};
use crate::jobs::worker;
use crate::wait::eventually;

/// A database, and the processes that work on it.
pub struct TestWorkers {
    program: PathBuf,
    url: String,
    settings: Vec<(String, String)>,
    pub databases: Databases,
    pub shard: String,
    children: Vec<Child>,
    arguments: Vec<String>,
}

impl TestWorkers {
    /// On a database that is empty or migrated; `settings` and `arguments` are for the processes.
    pub async fn new(program: &Path, url: &str, settings: &[(&str, &str)], arguments: &[&str]) -> Self {
        let own = [("SVC__DATABASES__DEFAULT__URL", url), ("SVC__DATABASES__DEFAULT__MAX_CONNS", "6")];
        let all: Vec<(&str, &str)> = own.iter().chain(settings).copied().collect();
        let loaded = config(&all);
        Databases::migrate(&loaded).await.expect("migrations apply");
        run(&mut PgConnection::connect(url).await.expect("the database answers"), TABLES).await;
        let databases =
            Databases::open(&loaded, &[Purpose::Api]).await.expect("the databases open").remove(0);
        let shard = databases.shards()[0].clone();
        let settings = all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let arguments = arguments.iter().map(|text| (*text).to_owned()).collect();
        Self {
            program: program.to_owned(),
            url: url.to_owned(),
            settings,
            databases,
            shard,
            children: vec![],
            arguments,
        }
    }

    /// Starts one more process.
    pub fn spawn(&mut self) {
        let child = Command::new(&self.program)
            .args(["soak", "worker"])
            .args(&self.arguments)
            .env_clear()
            .envs(self.settings.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(if std::env::var_os("OKT_SOAK_LOG").is_some() { Stdio::inherit() } else { Stdio::null() })
            .spawn()
            .expect("the worker starts");
        self.children.push(child);
    }

    pub fn running(&self) -> usize {
        self.children.len()
    }

    /// The process with this number dies without a word.
    pub fn kill(&mut self, at: usize) {
        let mut child = self.children.swap_remove(at);
        child.kill().expect("a child of ours");
        child.wait().expect("a child of ours");
    }

    /// Kills the process with this id.
    pub fn kill_pid(&mut self, pid: i64) {
        let at = self.children.iter().position(|child| i64::from(child.id()) == pid);
        self.kill(at.expect("a child of ours"));
    }

    /// Whether a process with this id is there.
    pub fn has(&self, pid: i64) -> bool {
        self.children.iter().any(|child| i64::from(child.id()) == pid)
    }

    /// Replaces those who died by themselves; returns how many.
    pub fn replace_dead(&mut self) -> usize {
        let before = self.children.len();
        self.children.retain_mut(|child| child.try_wait().expect("a child of ours").is_none());
        let died = before - self.children.len();
        for _ in 0..died {
            self.spawn();
        }
        died
    }

    /// `STOP` or `CONT`.
    pub fn signal(&self, pid: i64, signal: &str) {
        assert!(self.has(pid), "a child of ours");
        let sent = Command::new("kill").args([&format!("-{signal}"), &pid.to_string()]).status();
        assert!(sent.expect("kill runs").success());
    }

    /// Asks for jobs in one transaction; when it returns, they have been promised.
    pub async fn push<P: Payload>(&self, repository: RepositoryId, payloads: &[P]) -> Result<Vec<JobId>> {
        let mut tx = self.databases.begin(&self.shard, repository).await?;
        let mut ids = Vec::new();
        for payload in payloads {
            let id = JobId::mint();
            outbox::push(&mut tx, repository, id, payload, When::default()).await?;
            ids.push(id);
        }
        tx.commit().await?;
        Ok(ids)
    }

    /// The number that a query yields; tries again while the database is away.
    pub async fn count(&self, query: &str) -> i64 {
        eventually(Duration::from_secs(30), query, async || {
            let mut conn = PgConnection::connect(&self.url).await?;
            let number = sqlx::query_scalar(AssertSqlSafe(query.to_owned())).fetch_one(&mut conn).await?;
            conn.close().await?;
            Ok::<i64, sqlx::Error>(number)
        })
        .await
    }

    /// Rows of two texts and a number, for looking at.
    pub async fn rows(&self, query: &str) -> Vec<(String, String, i64)> {
        let mut conn = PgConnection::connect(&self.url).await.expect("the database answers");
        sqlx::query_as(AssertSqlSafe(query.to_owned())).fetch_all(&mut conn).await.expect("rows")
    }

    /// Waits until a query yields at least this number.
    pub async fn wait_for(&mut self, query: &str, number: i64, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        while self.count(query).await < number {
            if Instant::now() > deadline {
                return false;
            }
            self.replace_dead();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        true
    }

    /// Jobs that have not ended, and outbox entries that have not been used.
    pub async fn left(&self) -> i64 {
        self.count(
            "SELECT (SELECT count(*) FROM okt_tasks.jobs
                      WHERE state IN ('scheduled', 'available', 'running', 'retryable') AND kind <> 'soak_tick')
                  + (SELECT count(*) FROM okt_repository.outbox o
                      WHERE NOT EXISTS (SELECT FROM okt_tasks.jobs j
                                         WHERE j.id = o.job_id AND j.state IN ('discarded', 'cancelled')))",
        )
        .await
    }

    /// Waits until nothing is left; jobs that wait for their next attempt need not wait for long.
    pub async fn finish(&mut self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        while self.left().await > 0 {
            if Instant::now() > deadline {
                return false;
            }
            self.replace_dead();
            self.hurry().await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        true
    }

    async fn hurry(&self) {
        if let Ok(mut conn) = PgConnection::connect(&self.url).await {
            let now = "UPDATE okt_tasks.jobs SET scheduled_at = clock_timestamp() WHERE state = 'retryable'";
            let _ = sqlx::query(now).execute(&mut conn).await;
        }
    }

    /// Tries again what was set aside, as an operator would; returns how many.
    pub async fn retry_discarded(&self) -> usize {
        let rows =
            self.rows("SELECT id::text, kind, 0::bigint FROM okt_tasks.jobs WHERE state = 'discarded'").await;
        for (id, ..) in &rows {
            let id = id.parse().expect("an id");
            let tenant = okt_queue::jobs::TenantFilter::All;
            okt_queue::jobs::retry(&self.databases, tenant, id).await.expect("it can be tried again");
        }
        rows.len()
    }
}

impl Drop for TestWorkers {
    fn drop(&mut self) {
        while !self.children.is_empty() {
            self.kill(0);
        }
    }
}

/// What such a process does until it is killed. Its settings come by the environment.
pub async fn work(
    slots: u32,
    naive: bool,
    tick: Option<Duration>,
    limit: Option<Duration>,
) -> anyhow::Result<()> {
    let variables: Vec<(String, String)> =
        std::env::vars().filter(|(name, _)| name.starts_with("SVC__")).collect();
    let variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (&**name, &**value)).collect();
    let _worker = start(&config(&variables), slots, naive, tick, limit).await?;
    std::future::pending().await
}

/// A worker for the jobs of a soak.
pub async fn start(
    config: &Config,
    slots: u32,
    naive: bool,
    tick: Option<Duration>,
    limit: Option<Duration>,
) -> anyhow::Result<Worker> {
    let kinds = kinds(naive);
    let limit = limit.unwrap_or(config.task.job_timeout.duration());
    let names: Vec<String> = kinds.names().map(str::to_owned).collect();
    let periodic = tick.map(|every| Periodic::new(&Tick {}, every)).transpose()?;
    let worker = worker(config, kinds, periodic.into_iter().collect(), |settings| {
        settings.slots = names.iter().map(|kind| (kind.clone(), slots)).collect();
        settings.timeouts = names.iter().map(|kind| (kind.clone(), limit)).collect();
    });
    Ok(worker.await)
}
