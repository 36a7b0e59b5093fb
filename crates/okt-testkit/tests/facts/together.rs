//! Sources that say the same and change at the same moment: facts, links and counts stay true.

use okt_model::{FactKind, FactStatus, JobId, NewFact, RepositoryId, SourceId, content_hash};
use okt_store::facts::Made;
use okt_store::sources::{self, NewSource};
use okt_store::{Databases, Purpose, facts};
use okt_testkit::db::TestDatabase;

const ROUNDS: usize = 40;
const MADE: Made = Made { promptset: None, status: FactStatus::Stable };

struct Room {
    database: TestDatabase,
    databases: Databases,
    repository: RepositoryId,
}

impl Room {
    async fn open() -> Self {
        let database = TestDatabase::migrated().await;
        let databases = Databases::open(&database.config(&[]), &[Purpose::Worker]).await.unwrap().remove(0);
        Self { database, databases, repository: RepositoryId::mint() }
    }

    async fn source(&self) -> SourceId {
        let id = SourceId::mint();
        let new = NewSource {
            locator: Some(id.to_string()),
            ..NewSource::new(id, JobId::mint(), format!("https://example.org/{id}"))
        };
        let mut tx = self.databases.begin("default", self.repository).await.unwrap();
        assert!(sources::insert(&mut tx, self.repository, &new).await.unwrap());
        tx.commit().await.unwrap();
        id
    }

    /// As a job or a request would: whoever is told to come again comes again.
    async fn say(&self, source: SourceId, numbers: std::ops::Range<usize>) {
        let facts: Vec<NewFact> = numbers.map(fact).collect();
        loop {
            let mut tx = self.databases.begin("default", self.repository).await.unwrap();
            match facts::replace(&mut tx, self.repository, source, &facts, false, MADE).await {
                Ok(_) => return tx.commit().await.unwrap(),
                Err(error) => assert!(error.retryable(), "{error:?}"),
            }
        }
    }

    async fn forget(&self, source: SourceId) {
        loop {
            let mut tx = self.databases.begin("default", self.repository).await.unwrap();
            match facts::forget_source(&mut tx, self.repository, source).await {
                Ok(()) => return tx.commit().await.unwrap(),
                Err(error) => assert!(error.retryable(), "{error:?}"),
            }
        }
    }

    /// Every fact has as many links as it says, at least one, and the counter counts them.
    async fn check(&self) -> i64 {
        let mut conn = self.database.connect().await;
        let wrong: Vec<String> = sqlx::query_scalar(
            "SELECT f.text || ': ' || f.source_count || ' of ' || count(l.fact_no) FROM okt_repository.facts f
               LEFT JOIN okt_repository.fact_sources l ON l.repository_id = f.repository_id AND l.fact_no = f.no
              GROUP BY f.repository_id, f.id, f.text, f.source_count
             HAVING count(l.fact_no) <> f.source_count OR count(l.fact_no) = 0
              UNION ALL
             SELECT s.id || ' has ' || s.fact_count || ' of ' || count(l.fact_no) FROM okt_repository.sources s
               LEFT JOIN okt_repository.fact_sources l ON l.repository_id = s.repository_id AND l.source_no = s.no
              GROUP BY s.repository_id, s.id, s.fact_count
             HAVING count(l.fact_no) <> s.fact_count",
        )
        .fetch_all(&mut conn)
        .await
        .unwrap();
        assert!(wrong.is_empty(), "{wrong:?}");
        let counts: (i64, i64) = sqlx::query_as(
            "SELECT (SELECT count(*) FROM okt_repository.facts),
                    coalesce((SELECT value FROM okt_repository.counters WHERE name = 'facts'), 0)",
        )
        .fetch_one(&mut conn)
        .await
        .unwrap();
        assert_eq!(counts.0, counts.1, "the counter counts them");
        counts.0
    }
}

fn fact(number: usize) -> NewFact {
    let text = format!("Hive {number} has {number} bees.");
    NewFact {
        hash: content_hash(&text),
        text,
        kind: FactKind::Text,
        model: "model".to_owned(),
        chunk: None,
        sentences: vec![0],
        image: None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_sources_that_go_together_leave_nothing() {
    let room = Room::open().await;
    for _ in 0..ROUNDS {
        let (one, two) = (room.source().await, room.source().await);
        room.say(one, 0..20).await;
        room.say(two, 10..30).await;
        assert_eq!(room.check().await, 30);
        tokio::join!(room.forget(one), room.forget(two));
        assert_eq!(room.check().await, 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_that_comes_keeps_what_one_that_goes_would_have_taken() {
    let room = Room::open().await;
    for _ in 0..ROUNDS {
        let (goes, comes) = (room.source().await, room.source().await);
        room.say(goes, 0..20).await;
        tokio::join!(room.forget(goes), room.say(comes, 5..25));
        assert_eq!(room.check().await, 20);
        room.forget(comes).await;
        assert_eq!(room.check().await, 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sources_that_change_places_do_not_wait_in_a_circle() {
    let room = Room::open().await;
    let (one, two) = (room.source().await, room.source().await);
    for round in 0..ROUNDS {
        let (here, there) = if round % 2 == 0 { (0..15, 10..25) } else { (10..25, 0..15) };
        tokio::join!(room.say(one, here), room.say(two, there));
        assert_eq!(room.check().await, 25);
    }
}
