//! A service on two named databases, and people in it.

use http::Method;
use okt_queue::{Kinds, Worker};
use okt_testkit::accounts::{Person, register, send};
use okt_testkit::client::Answer;
use okt_testkit::db::TestDatabase;
use okt_testkit::jobs::worker;
use okt_testkit::served::TestService;
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

pub const REPOSITORIES: &str = "/api/v1/repositories";

pub struct House {
    pub service: TestService,
    /// Where repositories may live besides the default database.
    pub second: TestDatabase,
    pub admin: Person,
    pub ada: Person,
}

impl House {
    pub async fn new() -> Self {
        Self::with(&[]).await
    }

    pub async fn with(settings: &[(&str, &str)]) -> Self {
        let second = TestDatabase::migrated().await;
        let own = [
            ("SVC__DATABASES__SECOND__URL", second.url()),
            // A name for the same place as the default one.
            ("SVC__DATABASES__ALIAS__MAX_CONNS", "100"),
            ("SVC__DATABASES__UNLISTED__MAX_CONNS", "100"),
            ("SVC__ISOLATION__ALLOWED_DATABASES", "second, alias"),
        ];
        let all: Vec<_> = own.iter().chain(settings).copied().collect();
        let service = TestService::product(&all).await;
        let (admin, ada) = (register(&service, "admin").await, register(&service, "ada").await);
        Self { service, second, admin, ada }
    }

    pub async fn send(&self, who: &Person, method: Method, path: &str, body: &Value) -> Answer {
        send(&self.service, &who.token, method, path, body).await
    }

    pub async fn get(&self, who: &Person, path: &str) -> Answer {
        Answer::of(self.service.request(Method::GET, path).bearer_auth(&who.token)).await
    }

    pub async fn delete(&self, who: &Person, path: &str) -> Answer {
        Answer::of(self.service.request(Method::DELETE, path).bearer_auth(&who.token)).await
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
        worker(config, okt_testkit::jobs::kinds(config), Vec::new(), |_| {}).await
    }

    /// A process that runs these.
    pub async fn worker_for(&self, kinds: Kinds) -> Worker {
        worker(self.service.api.app.config(), kinds, Vec::new(), |_| {}).await
    }

    /// The number that a statement yields in a database, past row-level security.
    pub async fn count(&self, database: &str, statement: &str) -> i64 {
        let mut conn = if database == "second" {
            self.second.connect().await
        } else {
            self.service.database.connect().await
        };
        let number = sqlx::query_scalar(AssertSqlSafe(statement.to_owned())).fetch_one(&mut conn).await;
        number.unwrap_or_else(|error| panic!("{statement}: {error}"))
    }

    /// Waits for a statement to yield a number.
    pub async fn until(&self, database: &str, statement: &str, expected: i64) {
        let mut found = -1;
        for _ in 0..200 {
            found = self.count(database, statement).await;
            if found == expected {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        panic!("{statement}: {found}, not {expected}");
    }
}

pub fn id_of(record: &Value) -> Uuid {
    record["id"].as_str().unwrap().parse().unwrap()
}

pub fn path(repository: Uuid, rest: &str) -> String {
    let slash = if rest.is_empty() { "" } else { "/" };
    format!("{REPOSITORIES}/{repository}{slash}{rest}")
}
