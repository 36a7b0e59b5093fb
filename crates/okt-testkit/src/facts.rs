//! Facts as jobs write them, for tests that are not about reading a source.

use okt_model::{FactKind, FactStatus, JobId, NewFact, RepositoryId, SourceId, content_hash};
use okt_store::Databases;
use okt_store::facts::{self, Made};
use okt_store::sources::{self, NewSource};

pub fn new_fact(text: &str) -> NewFact {
    NewFact {
        text: text.to_owned(),
        hash: content_hash(text),
        kind: FactKind::Text,
        model: "model".to_owned(),
        chunk: Some(0),
        sentences: vec![0],
        image: None,
    }
}

/// An English source that says nothing yet.
pub async fn insert_source(databases: &Databases, repository: RepositoryId) -> SourceId {
    let id = SourceId::mint();
    let new = NewSource {
        locator: Some(id.to_string()),
        ..NewSource::new(id, JobId::mint(), format!("https://example.org/{id}"))
    };
    let mut tx = databases.begin("default", repository).await.expect("a transaction");
    assert!(sources::insert(&mut tx, repository, &new).await.expect("a source is added"));
    let english =
        sqlx::query("UPDATE okt_repository.sources SET language = 'en' WHERE repository_id = $1 AND id = $2");
    let english = english.bind(repository.uuid()).bind(id.uuid());
    english.execute(&mut *tx).await.expect("its language is set");
    tx.commit().await.expect("a source is added");
    id
}

/// What a source says from now on, in place of what it said before. Comes again when it is told to, as a job does.
pub async fn replace_facts(
    databases: &Databases,
    repository: RepositoryId,
    source: SourceId,
    facts: &[NewFact],
    status: FactStatus,
) {
    loop {
        let mut tx = databases.begin("default", repository).await.expect("a transaction");
        let made = Made { promptset: None, status };
        match facts::replace(&mut tx, repository, source, facts, false, made).await {
            Ok(_) => return tx.commit().await.expect("facts are written"),
            Err(error) => assert!(error.retryable(), "{error:?}"),
        }
    }
}

/// Takes away everything that a source says.
pub async fn forget_source(databases: &Databases, repository: RepositoryId, source: SourceId) {
    loop {
        let mut tx = databases.begin("default", repository).await.expect("a transaction");
        match facts::forget_source(&mut tx, repository, source).await {
            Ok(()) => return tx.commit().await.expect("facts are removed"),
            Err(error) => assert!(error.retryable(), "{error:?}"),
        }
    }
}
