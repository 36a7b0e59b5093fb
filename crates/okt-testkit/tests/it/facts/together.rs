//! Sources that say the same and change at the same moment: facts, links and counts stay true.

use okt_model::{FactStatus, NewFact, RepositoryId, SourceId};
use okt_store::{Databases, Purpose};
use okt_testkit::db::TestDatabase;
use okt_testkit::facts::{forget_source, insert_source, new_fact, replace_facts};

const ROUNDS: usize = 15;

struct SharedFacts {
    database: TestDatabase,
    databases: Databases,
    repository: RepositoryId,
}

impl SharedFacts {
    async fn open() -> Self {
        let database = TestDatabase::migrated().await;
        let databases = Databases::open(&database.config(&[]), &[Purpose::Worker]).await.unwrap().remove(0);
        Self { database, databases, repository: RepositoryId::mint() }
    }

    async fn source(&self) -> SourceId {
        insert_source(&self.databases, self.repository).await
    }

    async fn say(&self, source: SourceId, numbers: std::ops::Range<usize>) {
        let facts: Vec<NewFact> =
            numbers.map(|number| new_fact(&format!("Hive {number} has {number} bees."))).collect();
        replace_facts(&self.databases, self.repository, source, &facts, FactStatus::Stable).await;
    }

    async fn forget(&self, source: SourceId) {
        forget_source(&self.databases, self.repository, source).await;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_sources_that_go_together_leave_nothing() {
    let shared = SharedFacts::open().await;
    for _ in 0..ROUNDS {
        let (one, two) = (shared.source().await, shared.source().await);
        shared.say(one, 0..20).await;
        shared.say(two, 10..30).await;
        assert_eq!(shared.check().await, 30);
        tokio::join!(shared.forget(one), shared.forget(two));
        assert_eq!(shared.check().await, 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_that_comes_keeps_what_one_that_goes_would_have_taken() {
    let shared = SharedFacts::open().await;
    for _ in 0..ROUNDS {
        let (goes, comes) = (shared.source().await, shared.source().await);
        shared.say(goes, 0..20).await;
        tokio::join!(shared.forget(goes), shared.say(comes, 5..25));
        assert_eq!(shared.check().await, 20);
        shared.forget(comes).await;
        assert_eq!(shared.check().await, 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sources_that_change_places_do_not_wait_in_a_circle() {
    let shared = SharedFacts::open().await;
    let (one, two) = (shared.source().await, shared.source().await);
    for round in 0..ROUNDS {
        let (here, there) = if round % 2 == 0 { (0..15, 10..25) } else { (10..25, 0..15) };
        tokio::join!(shared.say(one, here), shared.say(two, there));
        assert_eq!(shared.check().await, 25);
    }
}
