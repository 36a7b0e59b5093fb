//! What models answered.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use okt_ai::{Ai, Asker, Billing, RepositoryBudget, SubjectBudget};
use okt_extract::{read_verdicts, same_question};
use okt_model::{Cost, JobId, Operation, RepositoryId, SourceId, Subject, content_hash};
use okt_providers::GuardedClient;
use okt_store::model_answers::{self, ModelAnswer};
use okt_store::sources::{self, NewSource};
use okt_store::{Databases, Purpose};
use okt_testkit::answers::answer;
use okt_testkit::db::{FILE, TestDatabase};
use okt_testkit::facts::insert_source;
use okt_testkit::llm::{Behaviour, ModelServer};
use okt_testkit::wait::eventually;
use tokio::runtime::Builder;

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

/// Whoever dies now pays for it again.
#[tokio::test]
async fn an_answer_is_stored_while_its_reader_is_busy_and_others_have_every_connection() {
    let (database, models) = (TestDatabase::migrated().await, ModelServer::start(Behaviour::default()).await);
    let base_url = models.base_url();
    let config = database.config(&[
        ("SVC__DATABASES__DEFAULT__MAX_CONNS", "2"),
        ("SVC__DATABASES__DEFAULT__ACQUIRE_TIMEOUT", "1m"),
        ("LLM_LOCAL_BASE_URL", &base_url),
        (FILE, "[[providers.ai.models]]\nid = \"m\"\nprovider = \"local\""),
    ]);
    let databases = Databases::open(&config, &[Purpose::Worker]).await.unwrap().remove(0);
    let repository = RepositoryId::mint();
    let source = insert_source(&databases, repository).await;
    let ai = Ai::new(&config, &databases, Some(&GuardedClient::new(&[]).unwrap()));
    let budget = Arc::new(RepositoryBudget::open(&ai, repository).await.unwrap());
    let _others = [databases.acquire_system().await.unwrap(), databases.acquire_system().await.unwrap()];

    let (go_on, told) = mpsc::channel();
    // A job that does not come to an end of what it does with its thread.
    let job = std::thread::spawn(move || {
        let billing = Billing {
            repository,
            database: "default".to_owned(),
            subject: Some(source.into()),
            job: Some(JobId::mint()),
        };
        let on_cost = |_: Cost| {};
        let asker = Asker::new(&ai, billing, SubjectBudget::unlimited(), budget, &on_cost);
        let question = same_question(&[("Bees dance.", "Bees sing.")]);
        let read = |answer: &str| {
            told.recv().unwrap();
            read_verdicts(answer, 1)
        };
        let model = ai.model("m").unwrap();
        let asked = asker.ask(&model, Operation::FactComparison, &question, None, read);
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(asked).unwrap();
        runtime.block_on(asker.stored()).unwrap();
    });
    let mut conn = database.connect().await;
    let mut kept = async || -> i64 {
        let kept = sqlx::query_scalar("SELECT count(*) FROM okt_repository.model_answers");
        kept.fetch_one(&mut conn).await.unwrap()
    };
    eventually(Duration::from_secs(20), "the answer is stored", async || match kept().await {
        1 => Ok(()),
        other => Err(other),
    })
    .await;
    go_on.send(()).unwrap();
    job.join().unwrap();
    // Read at last: it is the same answer, and its call is written down as what it was.
    assert_eq!(kept().await, 1);
    let outcomes: Vec<String> =
        sqlx::query_scalar("SELECT outcome FROM okt_system.ai_calls").fetch_all(&mut conn).await.unwrap();
    assert_eq!(outcomes, ["ok"]);
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
