//! A person decides while a machine writes.

use std::time::Duration;

use okt_model::{AliasBy, ConceptMergedBy, FoundBy, NewConcept, NewConceptMerge};
use okt_store::concept_aliases::{self, NewAlias};
use okt_store::concepts::{self, NewLink};
use okt_store::curation;
use okt_testkit::wait::eventually;

use crate::curation::repository::Repository;

async fn others_wait(repository: &Repository, count: i64) {
    let mut conn = repository.database.connect().await;
    eventually(Duration::from_secs(30), "the second waits for the first", async || {
        let waiting = "SELECT count(*) FROM pg_stat_activity
                        WHERE datname = current_database() AND wait_event_type = 'Lock'";
        let waiting: i64 = sqlx::query_scalar(waiting).fetch_one(&mut conn).await.unwrap();
        if waiting == count { Ok(()) } else { Err(format!("{waiting} wait")) }
    })
    .await;
}

/// Whoever comes second waits for the first, and then sees what that one did.
#[tokio::test]
async fn a_machine_that_writes_at_the_same_time_does_not_get_past_a_person() {
    let mut repository = Repository::empty().await;
    repository.say(&["Bees sting.".to_owned()]).await;
    repository.find("Bee", "Animal", "Bees sting.", Some("Apis"));
    repository.run_machine().await;
    let bee = repository.concept("Bee", "Animal").await;
    let (fact, id) = repository.fact("Bees sting.").await.unwrap();
    let (link, alias) = (
        NewLink { concept: bee, fact, found_by: FoundBy::Model },
        NewAlias { concept: bee, text: "Apis".to_owned(), by: AliasBy::Model },
    );

    // The person first.
    let mut person = repository.begin().await;
    let decided = repository.decided();
    let rejected =
        curation::reject_link(&mut person, repository.id, decided, bee, id).await.unwrap().unwrap();
    curation::remove_alias(&mut person, repository.id, decided, bee, "Apis").await.unwrap().unwrap();
    let (databases, repository_id) = (repository.databases.clone(), repository.id);
    let linking = tokio::spawn(async move {
        let mut tx = databases.begin("default", repository_id).await.unwrap();
        let linked = concepts::link(&mut tx, repository_id, &[link]).await.unwrap();
        tx.commit().await.unwrap();
        linked
    });
    let databases = repository.databases.clone();
    let naming = tokio::spawn(async move {
        let mut tx = databases.begin("default", repository_id).await.unwrap();
        let named = concept_aliases::insert(&mut tx, repository_id, &[alias]).await.unwrap();
        tx.commit().await.unwrap();
        named
    });
    others_wait(&repository, 2).await;
    person.commit().await.unwrap();
    assert_eq!((linking.await.unwrap(), naming.await.unwrap()), (0, 0));

    // The machine first.
    repository.undo(rejected).await.unwrap();
    let mut tx = repository.begin().await;
    concepts::unlink(&mut tx, repository.id, bee, &[fact]).await.unwrap();
    tx.commit().await.unwrap();
    let mut machine = repository.begin().await;
    assert_eq!(concepts::link(&mut machine, repository.id, &[link]).await.unwrap(), 1);
    let (databases, repository_id) = (repository.databases.clone(), repository.id);
    let person = tokio::spawn(async move {
        let mut tx = databases.begin("default", repository_id).await.unwrap();
        let step = curation::reject_link(&mut tx, repository_id, decided, bee, id).await.unwrap();
        tx.commit().await.unwrap();
        step
    });
    others_wait(&repository, 1).await;
    machine.commit().await.unwrap();
    assert!(person.await.unwrap().is_some());
    let links = repository.numbers("SELECT count(*) FROM okt_repository.fact_concepts").await;
    assert_eq!(links, [0]);
}

/// Both count concepts; whoever counts holds that until the end, and must not wait for anything else then.
#[tokio::test]
async fn a_machine_that_files_and_a_person_who_merges_do_not_wait_for_each_other() {
    let mut repository = Repository::empty().await;
    repository.say(&["Bees sting.".to_owned(), "Wasps sting.".to_owned()]).await;
    repository.find("Bee", "Animal", "Bees sting.", None);
    repository.find("Wasp", "Animal", "Wasps sting.", None);
    repository.run_machine().await;
    let (bee, wasp) = (repository.concept("Bee", "Animal").await, repository.concept("Wasp", "Animal").await);
    let mut machine = repository.begin().await;
    let new = [NewConcept::new("Sting", "Concept")];
    let filed = concepts::file(&mut machine, repository.id, &new).await.unwrap();

    let by = ConceptMergedBy::Rule;
    let merge = NewConceptMerge { concept: wasp, into: bee, by, job: None, person: None, reason: None };
    let (databases, repository_id) = (repository.databases.clone(), repository.id);
    let person = tokio::spawn(async move {
        let mut tx = databases.begin("default", repository_id).await.unwrap();
        let step = curation::merge(&mut tx, repository_id, &merge).await.unwrap();
        tx.commit().await.unwrap();
        step
    });
    // Long enough for the person to hold the concepts.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let alias = NewAlias { concept: bee, text: "Apis".to_owned(), by: AliasBy::Model };
    concept_aliases::insert(&mut machine, repository.id, &[alias]).await.unwrap();
    filed.count(&mut machine, repository.id).await.unwrap();
    machine.commit().await.unwrap();
    assert!(person.await.unwrap().is_some());
    assert_eq!(
        repository.numbers("SELECT value FROM okt_repository.counters WHERE name = 'concepts'").await,
        [2]
    );
}
