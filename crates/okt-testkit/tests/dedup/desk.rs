//! A service with a repository that somebody adds facts to, and the settings for other processes on the same things.

use http::Method;
use okt_model::{FactKind, FactStatus, NewFact, RepositoryId, SourceId, content_hash};
use okt_store::facts::{self, Made};
use okt_store::sources::{self, NewSource};
use okt_store::{Databases, Purpose};
use okt_testkit::accounts::{Person, register, send};
use okt_testkit::client::Answer;
use okt_testkit::served::TestService;
use serde_json::{Value, json};

pub(crate) struct Desk {
    pub service: TestService,
    pub owner: Person,
    pub repository: RepositoryId,
    pub databases: Databases,
}

impl Desk {
    pub(crate) async fn open(settings: &[(&str, &str)]) -> Self {
        let mut all =
            vec![("SVC__RATE_LIMITS__API_PER_MINUTE", "0"), ("SVC__BOOTSTRAP__DEFAULT_REPOSITORY", "false")];
        all.extend_from_slice(settings);
        let service = TestService::product(&all).await;
        let owner = register(&service, "owner").await;
        let name = json!({"name": "Bees"});
        let made = send(&service, &owner.token, Method::POST, "/api/v1/repositories", &name).await;
        let repository: uuid::Uuid = made.json()["id"].as_str().unwrap().parse().unwrap();
        let config = service.api.app.config().clone();
        let databases = Databases::open(&config, &[Purpose::Worker]).await.unwrap().remove(0);
        Self { service, owner, repository: repository.into(), databases }
    }

    pub(crate) async fn ask(&self, method: Method, rest: &str, body: &Value) -> Answer {
        let path = format!("/api/v1/repositories/{}{rest}", self.repository);
        send(&self.service, &self.owner.token, method, &path, body).await
    }

    pub(crate) async fn get(&self, rest: &str) -> Answer {
        let path = format!("/api/v1/repositories/{}{rest}", self.repository);
        Answer::of(self.service.request(Method::GET, &path).bearer_auth(&self.owner.token)).await
    }

    /// A source that makes these facts, which were not compared yet.
    pub(crate) async fn say(&self, texts: &[String]) -> SourceId {
        let id = SourceId::mint();
        let new = NewSource {
            locator: Some(id.to_string()),
            ..NewSource::new(id, okt_model::JobId::mint(), format!("https://example.org/{id}"))
        };
        let facts = texts.iter().map(|text| NewFact {
            text: text.clone(),
            hash: content_hash(text),
            kind: FactKind::Text,
            model: "model".to_owned(),
            chunk: Some(0),
            sentences: vec![0],
            image: None,
        });
        let facts: Vec<NewFact> = facts.collect();
        let mut tx = self.databases.begin("default", self.repository).await.unwrap();
        assert!(sources::insert(&mut tx, self.repository, &new).await.unwrap());
        let made = Made { promptset: None, status: FactStatus::New };
        facts::replace(&mut tx, self.repository, id, &facts, false, made).await.unwrap();
        tx.commit().await.unwrap();
        id
    }
}

/// Statements about things that have nothing to do with each other.
pub(crate) fn statements(count: usize) -> Vec<String> {
    let things = [
        "bees", "bridges", "comets", "violins", "glaciers", "clocks", "orchids", "engines", "whales", "coins",
    ];
    let places =
        ["Norway", "Peru", "Japan", "Kenya", "Canada", "Italy", "Nepal", "Chile", "Iceland", "Ghana"];
    let deeds =
        ["are kept", "were drawn", "are studied", "were lost", "are repaired", "were counted", "are sold"];
    let whom = [
        "by monks",
        "by students",
        "by the navy",
        "by weavers",
        "by farmers",
        "by two brothers",
        "by miners",
    ];
    (0..count)
        .map(|n| {
            let (thing, place) = (things[n % 10], places[n / 10 % 10]);
            let (deed, who) = (deeds[n / 100 % 7], whom[n / 700 % 7]);
            format!("In the north of {place} {thing} {deed} {who}.")
        })
        .collect()
}
