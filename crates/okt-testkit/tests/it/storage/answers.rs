//! What models answered.

use okt_model::{JobId, RepositoryId, SourceId, Subject, content_hash};
use okt_store::model_answers::{self, ModelAnswer};
use okt_store::sources::{self, NewSource};
use okt_store::{Databases, Purpose};
use okt_testkit::answers::answer;
use okt_testkit::db::TestDatabase;

const SOURCES: usize = 400;

#[tokio::test]
async fn answers_are_kept_for_the_sources_that_are_there_without_a_look_at_the_others() {
    let database = TestDatabase::migrated().await;
    let databases = Databases::open(&database.config(&[]), &[Purpose::Worker]).await.unwrap().remove(0);
    let repository = RepositoryId::mint();
    // In one transaction, so that nobody has counted the sources when the plans are made.
    let mut tx = databases.begin("default", repository).await.unwrap();
    let mut there = Vec::new();
    for n in 0..SOURCES {
        let (id, url) = (SourceId::mint(), format!("https://example.org/{n}"));
        let new = NewSource { locator: Some(url.clone()), ..NewSource::new(id, JobId::mint(), url) };
        sources::insert(&mut tx, repository, &new).await.unwrap();
        there.push(id);
    }
    let before = read(&mut tx).await;
    let mut keys = Vec::new();
    // More often than PostgreSQL makes a plan for each call of a statement.
    for round in 0..10 {
        let answers: Vec<ModelAnswer> = [there[round], there[round + 100], SourceId::mint()]
            .into_iter()
            .map(|source| answer(repository, source, content_hash(&source.to_string())))
            .collect();
        keys.extend(answers.iter().map(|answer| answer.key));
        let answers: Vec<&ModelAnswer> = answers.iter().collect();
        model_answers::insert(&mut tx, repository, &answers).await.unwrap();
    }
    let rows = read(&mut tx).await - before;
    assert!(rows <= 40, "twenty sources were meant, and {rows} were read");
    let kept = model_answers::list(&mut tx, repository, &keys).await.unwrap();
    assert_eq!(kept.len(), 20, "and none of a source that is not there");
    let there: Vec<Subject> = there.into_iter().map(Subject::from).collect();
    let mut kept = kept.values().filter_map(|answer| answer.call.subject);
    assert!(kept.all(|subject| there.contains(&subject)));
    let plans = plans_of_inserts(&mut tx).await;
    assert!(plans <= 5, "ten batches of one kind took {plans} plans of their own");
    tx.commit().await.unwrap();
}

/// How many sources this transaction has read.
async fn read(conn: &mut okt_store::Connection) -> i64 {
    let rows = sqlx::query_scalar(
        "SELECT coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) FROM pg_stat_xact_user_tables
          WHERE schemaname = 'okt_repository' AND relname = 'sources'",
    );
    rows.fetch_one(conn).await.unwrap()
}

/// How often this connection made a plan for one batch of answers alone.
async fn plans_of_inserts(conn: &mut okt_store::Connection) -> i64 {
    let plans = sqlx::query_scalar(
        "SELECT custom_plans FROM pg_prepared_statements WHERE statement LIKE 'WITH there AS%'",
    );
    plans.fetch_one(conn).await.unwrap()
}
