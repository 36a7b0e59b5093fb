//! The service on two named databases, with a sysadmin and with Ada, who may make repositories.

use std::ops::Deref;
use std::time::Duration;

use http::Method;
use okt_queue::{Kinds, Worker};
use okt_testkit::accounts::{Person, register};
use okt_testkit::app::{self, TestApp};
use okt_testkit::client::Answer;
use okt_testkit::jobs::worker;
use okt_testkit::wait::eventually;
use serde_json::{Value, json};
use uuid::Uuid;

pub const REPOSITORIES: &str = "/api/v1/repositories";

pub struct TwoDatabases {
    app: TestApp,
    pub admin: Person,
    pub ada: Person,
}

impl Deref for TwoDatabases {
    type Target = TestApp;

    fn deref(&self) -> &TestApp {
        &self.app
    }
}

impl TwoDatabases {
    pub async fn new() -> Self {
        Self::with(&[]).await
    }

    pub async fn with(settings: &[(&str, &str)]) -> Self {
        let own = [
            // A name for the same place as the default one.
            ("SVC__DATABASES__ALIAS__MAX_CONNS", "100"),
            ("SVC__DATABASES__UNLISTED__MAX_CONNS", "100"),
            ("SVC__ISOLATION__ALLOWED_DATABASES", "second, alias"),
            ("SVC__BOOTSTRAP__DEFAULT_REPOSITORY", "true"),
        ];
        let app = TestApp::builder().owner("admin").without_repository().second_database();
        let app = app.settings(&own).settings(settings).start().await;
        let (admin, ada) = (app.owner.clone(), register(&app.service, "ada").await);
        Self { app, admin, ada }
    }

    pub async fn get(&self, who: &Person, path: &str) -> Answer {
        self.app.get_as(who, path).await
    }

    pub async fn delete(&self, who: &Person, path: &str) -> Answer {
        self.app.delete_as(who, path).await
    }

    pub async fn create(&self, who: &Person, body: &Value) -> Answer {
        self.send(who, Method::POST, REPOSITORIES, body).await
    }

    /// Makes a repository and returns its record.
    pub async fn make(&self, who: &Person, body: &Value) -> Value {
        let made = self.create(who, body).await;
        assert_eq!(made.status, 201, "{made:?}");
        made.json()
    }

    /// Ada's, in the default database.
    pub async fn repository(&self) -> Uuid {
        id_of(&self.make(&self.ada, &json!({"name": "Bees"})).await)
    }

    /// Runs the jobs of the product.
    pub async fn worker(&self) -> Worker {
        let config = self.service.api.app.config();
        worker(config, okt_testkit::jobs::kinds(config).await, Vec::new(), |_| {}).await
    }

    /// A process that runs these.
    pub async fn worker_for(&self, kinds: Kinds) -> Worker {
        worker(self.service.api.app.config(), kinds, Vec::new(), |_| {}).await
    }

    /// The number that a statement yields in a database, past row-level security.
    pub async fn count(&self, database: &str, statement: &str) -> i64 {
        let mut conn =
            if database == "second" { self.second().connect().await } else { self.connect().await };
        app::count(&mut conn, statement).await
    }

    /// Waits for a statement to yield a number.
    pub async fn until(&self, database: &str, statement: &str, expected: i64) {
        eventually(Duration::from_secs(20), statement, async || {
            let found = self.count(database, statement).await;
            if found == expected { Ok(()) } else { Err(format!("{found}, not {expected}")) }
        })
        .await;
    }
}

pub fn id_of(record: &Value) -> Uuid {
    record["id"].as_str().unwrap().parse().unwrap()
}

pub fn path(repository: Uuid, rest: &str) -> String {
    let slash = if rest.is_empty() { "" } else { "/" };
    format!("{REPOSITORIES}/{repository}{slash}{rest}")
}
