//! Exports: the sources of an investigation as references, and repositories in the formats of other programs. That these can be
//! read by tools of their formats is tested by `scripts/exports`.

mod references;
mod repository;

use okt_model::{FactStatus, JobId, RepositoryId, SourceId};
use okt_store::sources::{self, NewSource};
use okt_testkit::app::TestApp;
use okt_testkit::facts::{new_fact, replace_facts};

/// A source of this title that says this.
async fn say(app: &TestApp, repository: RepositoryId, title: &str, texts: &[&str]) -> SourceId {
    let databases = app.service.api.app.databases();
    let id = SourceId::mint();
    let new = NewSource {
        locator: Some(id.to_string()),
        title: Some(title.to_owned()),
        author: Some("Moss, Ada; Ode, Ben".to_owned()),
        doi: Some(format!("10.5555/{id}")),
        published_at: chrono::NaiveDate::from_ymd_opt(2020, 3, 14),
        ..NewSource::new(id, JobId::mint(), format!("https://example.org/{id}"))
    };
    let mut tx = databases.begin("default", repository).await.unwrap();
    assert!(sources::insert(&mut tx, repository, &new).await.unwrap());
    tx.commit().await.unwrap();
    let facts: Vec<_> = texts.iter().map(|text| new_fact(text)).collect();
    replace_facts(databases, repository, id, &facts, FactStatus::Stable).await;
    id
}
