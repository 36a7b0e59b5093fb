//! Databases and helpers that go away: what the others notice of it.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use http::Method;
use okt_testkit::client::{Answer, client};
use okt_testkit::cluster::Cluster;
use okt_testkit::db::{TestDatabase, run, variables};
use okt_testkit::process::Process;
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};

use super::OKT;

const REPOSITORIES: &str = "/api/v1/repositories";

/// A process and somebody who may do everything there.
struct Served {
    process: Process,
    token: String,
}

impl Served {
    async fn start(settings: &[(&str, &str)]) -> Self {
        let process = Process::serve(&*OKT, settings);
        let account = json!({"email": "ada@example.org", "password": "correct horse"});
        let named = json!({"email": "ada@example.org", "password": "correct horse", "name": "Ada"});
        let mut token = None;
        for (route, body) in [("login", account), ("register", named)] {
            let url = format!("{}/api/v1/auth/{route}", process.url);
            let answer = Answer::of(client().post(url).json(&body)).await;
            if answer.status.is_success() {
                token = answer.json()["token"].as_str().map(str::to_owned);
                break;
            }
        }
        let token = token.expect("somebody who signs in or registers");
        Self { process, token }
    }

    async fn ask(&self, method: Method, path: &str, body: &Value) -> Answer {
        let url = format!("{}{path}", self.process.url);
        let request = client().request(method.clone(), url).bearer_auth(&self.token);
        Answer::of(if method == Method::GET { request } else { request.json(body) }).await
    }

    async fn readiness(&self) -> Value {
        let answer = Answer::of(client().get(format!("{}/readyz", self.process.url))).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// Asks until the answer has this status.
    async fn until(&self, status: u16, limit: Duration, method: Method, path: &str, body: &Value) -> Answer {
        let started = Instant::now();
        loop {
            let answer = self.ask(method.clone(), path, body).await;
            if answer.status == status {
                return answer;
            }
            assert!(started.elapsed() < limit, "{path}: {answer:?}\n{}", self.process.log());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

#[tokio::test]
async fn a_database_that_only_holds_repositories_holds_up_nobody() {
    let (database, cluster) = (TestDatabase::empty().await, Cluster::start());
    let pdfium = std::env::var("OKT_PDFIUM").unwrap();
    let url = cluster.url();
    cluster.down();
    let mut settings = database.settings().to_vec();
    // Vectors are on, and are kept beside the facts.
    settings.pop();
    settings.extend([
        ("SVC__DATABASES__TENANT__URL", &*url),
        ("SVC__ISOLATION__ALLOWED_DATABASES", "tenant"),
        ("SVC__RATE_LIMITS__API_PER_MINUTE", "0"),
        ("SVC__PROVIDERS__PARSING__PDFIUM", &*pdfium),
    ]);
    let there = json!({"name": "There", "database": "tenant"});
    let half_a_minute = Duration::from_secs(30);

    // It was never there: the process starts, serves the others, and says which one is missing.
    let served = Served::start(&settings).await;
    let log = served.process.log();
    let told = log.lines().find(|line| line.contains("can't be opened")).unwrap_or_else(|| panic!("{log}"));
    for part in ["tenant", "127.0.0.1", url.rsplit_once(':').unwrap().1.split('/').next().unwrap(), "refused"]
    {
        assert!(told.contains(part), "{part}: {told}");
    }
    let ready = served.readiness().await;
    assert_eq!(ready["status"], "degraded");
    let status = |name: &str| ready["checks"][name]["status"].clone();
    assert_eq!(
        (status("database:default"), status("database:tenant")),
        (json!("ok"), json!("down")),
        "{ready}"
    );
    assert_eq!((status("vectors"), status("parser")), (json!("ok"), json!("ok")), "{ready}");
    let here = served.ask(Method::POST, REPOSITORIES, &json!({"name": "Here"})).await;
    assert_eq!(here.status, 201, "{here:?}");
    let here = format!("{REPOSITORIES}/{}/sources", here.json()["id"].as_str().unwrap());
    let refused = served.ask(Method::POST, REPOSITORIES, &there).await;
    assert_eq!((refused.status.as_u16(), refused.problem().as_str()), (503, "unavailable"), "{refused:?}");

    // It comes up empty: it is migrated, opened and used without a restart.
    cluster.up();
    let made = served.until(201, half_a_minute, Method::POST, REPOSITORIES, &there).await;
    let there = format!("{REPOSITORIES}/{}/sources", made.json()["id"].as_str().unwrap());
    assert_eq!(served.readiness().await["status"], "ready");
    let (mut spaces, started) = (0, Instant::now());
    while spaces == 0 {
        let mut conn = PgConnection::connect(&url).await.unwrap();
        spaces =
            sqlx::query_scalar("SELECT count(*) FROM okt_vectors.spaces").fetch_one(&mut conn).await.unwrap();
        assert!(started.elapsed() < half_a_minute, "there is no place for vectors: {}", served.process.log());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(spaces, 1_i64);

    // It is away at the next start: its repositories are refused at once, and come back with it.
    drop(served);
    cluster.down();
    let served = Served::start(&settings).await;
    let asked = Instant::now();
    let refused = served.ask(Method::GET, &there, &json!(null)).await;
    assert_eq!((refused.status.as_u16(), refused.problem().as_str()), (503, "unavailable"), "{refused:?}");
    assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
    assert_eq!(served.ask(Method::GET, &here, &json!(null)).await.status, 200);
    cluster.up();
    served.until(200, half_a_minute, Method::GET, &there, &json!(null)).await;
}

#[tokio::test]
async fn a_repository_whose_mover_was_killed_can_be_written_to_again() {
    let (database, second) = (TestDatabase::migrated().await, TestDatabase::migrated().await);
    let mut settings = database.settings().to_vec();
    settings
        .extend([("SVC__DATABASES__SECOND__URL", second.url()), ("SVC__RATE_LIMITS__API_PER_MINUTE", "0")]);
    let served = Served::start(&settings).await;
    let made = served.ask(Method::POST, REPOSITORIES, &json!({"name": "Bees"})).await;
    assert_eq!(made.status, 201, "{made:?}");
    let repository = format!("{REPOSITORIES}/{}", made.json()["id"].as_str().unwrap());
    let contexts = format!("{repository}/settings/contexts");

    // The mover gets no further than the first table.
    let mut holder = second.connect().await;
    run(&mut holder, "BEGIN; LOCK TABLE okt_repository.counters").await;
    let folder = tempfile::tempdir().unwrap();
    let mut mover = Command::new(&*OKT)
        .args(["admin", "move-repository", "bees", "--to", "second", "--config"])
        .arg(folder.path())
        .env_clear()
        .envs(variables(folder.path(), &settings))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let hive = json!({"label": "Hive"});
    let mut conn = database.connect().await;
    let started = Instant::now();
    let mut closed = 0_i64;
    while closed == 0 {
        closed = sqlx::query_scalar("SELECT count(*) FROM okt_repository.closed")
            .fetch_one(&mut conn)
            .await
            .unwrap();
        assert!(started.elapsed() < Duration::from_secs(30), "the mover does not begin");
    }
    mover.kill().unwrap();
    mover.wait().unwrap();
    let killed = Instant::now();
    let refused = served.ask(Method::POST, &contexts, &hive).await;
    assert_eq!((refused.status.as_u16(), refused.problem().as_str()), (503, "repository_moving"));
    run(&mut holder, "COMMIT").await;

    let limit = Duration::from_secs(15);
    served.until(201, limit, Method::POST, &contexts, &hive).await;
    assert!(killed.elapsed() < limit);
    assert_eq!(served.ask(Method::GET, &repository, &json!(null)).await.json()["database"], "default");
    let moving = "SELECT count(*) FROM okt_system.repositories WHERE moving_to IS NOT NULL";
    let moving: i64 = sqlx::query_scalar(moving).fetch_one(&mut conn).await.unwrap();
    assert_eq!(moving, 0, "the move is over");
}
