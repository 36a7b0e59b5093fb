//! A repository whose facts have vectors that the test chooses, and a worker that compares them.

use std::time::Duration;

use okt_config::Config;
use okt_model::{
    DeduplicateFacts, EMBEDDING_MODEL, FactId, FactStatus, JobId, NewFact, Payload, RepositoryId, SourceId,
    SpaceKind,
};
use okt_store::fact_merges::{self, Merge};
use okt_store::outbox::When;
use okt_store::{Databases, Purpose, embedding_spaces, fact_vectors};
use okt_testkit::db::TestDatabase;
use okt_testkit::facts::{forget_source, insert_source, new_fact, replace_facts};
use okt_testkit::jobs::{TestWorker, push};
use okt_testkit::wait::eventually;
use okt_vectors::{Point, Space, Tenant, Vectors};
use sqlx::PgConnection;

pub(crate) const DIMENSIONS: usize = 384;

pub(crate) struct PlantedFacts {
    worker: Option<TestWorker>,
    pub databases: Databases,
    pub database: TestDatabase,
    pub config: Box<Config>,
    pub repository: RepositoryId,
    pub vectors: Vectors,
    pub space: Space,
    space_no: i16,
}

/// A fact to be said, with its vector and the sentences that it rests on.
#[derive(Clone)]
pub(crate) struct Said {
    pub text: String,
    pub vector: Vec<f32>,
    pub sentences: Vec<i32>,
}

impl PlantedFacts {
    /// Whatever is near and does not differ is merged, so that tests of merging need no texts that a rule permits.
    pub(crate) async fn open() -> Self {
        Self::open_with(&[("SVC__PROVIDERS__DEDUP__POLICY", "cosine")]).await
    }

    pub(crate) async fn open_with(settings: &[(&str, &str)]) -> Self {
        let database = TestDatabase::migrated().await;
        let mut all = vec![("SVC__PROVIDERS__EMBEDDING__MODEL", EMBEDDING_MODEL)];
        all.extend_from_slice(settings);
        let config = Box::new(database.config(&all));
        let databases = Databases::open(&config, &[Purpose::Worker]).await.unwrap().remove(0);
        let tools = okt_testkit::jobs::tools(&config, &databases).await;
        okt_jobs::spaces::start(&databases, &tools).await.unwrap();
        let vectors = Vectors::open(&config, &databases).await.unwrap().expect("a store");
        let mut conn = databases.acquire_system().await.unwrap();
        let space = embedding_spaces::find_current(&mut conn, SpaceKind::Facts).await.unwrap().unwrap();
        let (space_no, space) = (space.no, vectors.space(&space));
        let repository = RepositoryId::mint();
        Self { worker: None, databases, database, config, repository, vectors, space, space_no }
    }

    pub(crate) fn tenant(&self) -> Tenant {
        Tenant::new(self.repository, "default")
    }

    pub(crate) async fn source(&self) -> SourceId {
        insert_source(&self.databases, self.repository).await
    }

    /// What a source says, in place of what it said before; new facts have their vectors then.
    pub(crate) async fn say(&self, source: SourceId, said: &[Said]) {
        self.say_as(source, said, FactStatus::New).await;
    }

    pub(crate) async fn say_as(&self, source: SourceId, said: &[Said], status: FactStatus) {
        let facts: Vec<NewFact> = said
            .iter()
            .map(|said| NewFact { sentences: said.sentences.clone(), ..new_fact(&said.text) })
            .collect();
        replace_facts(&self.databases, self.repository, source, &facts, status).await;
        let mut conn = self.connect().await;
        let rows: Vec<(uuid::Uuid, i64, String)> = sqlx::query_as(
            "SELECT id, no, text FROM okt_repository.facts WHERE repository_id = $1 AND status IN ('new', 'stable')",
        )
        .bind(self.repository.uuid())
        .fetch_all(&mut conn)
        .await
        .unwrap();
        let vectors: std::collections::HashMap<&str, &Vec<f32>> =
            said.iter().map(|said| (said.text.as_str(), &said.vector)).collect();
        let ours = rows.into_iter().filter_map(|(id, no, text)| {
            let vector = (*vectors.get(text.as_str())?).clone();
            Some((no, Point { id, vector }))
        });
        let (numbers, points): (Vec<i64>, Vec<Point>) = ours.unzip();
        self.vectors.store().upsert(&self.tenant(), &self.space, &points).await.unwrap();
        let mut tx = self.databases.begin("default", self.repository).await.unwrap();
        fact_vectors::mark(&mut tx, self.repository, &numbers, Some(self.space_no)).await.unwrap();
        tx.commit().await.unwrap();
    }

    pub(crate) async fn forget(&self, source: SourceId) {
        forget_source(&self.databases, self.repository, source).await;
    }

    /// Runs jobs from now on.
    pub(crate) async fn work(&mut self) {
        if self.worker.is_none() {
            self.worker = Some(TestWorker::start(&self.config, Vec::new()).await);
        }
    }

    /// Compares what is new, and comes back when nothing is new any more.
    pub(crate) async fn compare(&mut self) {
        self.work().await;
        self.ask(DeduplicateFacts { source: None }).await;
        self.settled().await;
    }

    pub(crate) async fn ask<P: Payload>(&self, payload: P) {
        push(&self.databases, self.repository, &payload, When::default()).await;
    }

    /// The long form of what is planted takes a quarter of an hour.
    pub(crate) async fn settled(&self) {
        let mut conn = self.connect().await;
        eventually(Duration::from_mins(30), "every fact is compared", async || {
            let new = "SELECT text FROM okt_repository.facts WHERE status = 'new' LIMIT 1";
            let new: Option<String> = sqlx::query_scalar(new).fetch_optional(&mut conn).await.unwrap();
            new.map_or(Ok(()), Err)
        })
        .await;
    }

    pub(crate) async fn connect(&self) -> PgConnection {
        self.database.connect().await
    }

    /// Text, status, and the text of its canonical fact.
    pub(crate) async fn statuses(&self) -> Vec<(String, String, Option<String>)> {
        let query = "SELECT f.text, f.status, r.text FROM okt_repository.facts f
                       LEFT JOIN okt_repository.facts r ON r.repository_id = f.repository_id AND r.no = f.merged_into
                      ORDER BY f.no";
        sqlx::query_as(query).fetch_all(&mut self.connect().await).await.unwrap()
    }

    pub(crate) async fn id_of(&self, text: &str) -> FactId {
        let query = "SELECT id FROM okt_repository.facts WHERE text = $1";
        let id: uuid::Uuid =
            sqlx::query_scalar(query).bind(text).fetch_one(&mut self.connect().await).await.unwrap();
        id.into()
    }

    pub(crate) async fn number_of(&self, text: &str) -> i64 {
        let query = "SELECT no FROM okt_repository.facts WHERE text = $1";
        sqlx::query_scalar(query).bind(text).fetch_one(&mut self.connect().await).await.unwrap()
    }

    /// Makes one a part of the other, whatever they say.
    pub(crate) async fn merge(&self, fact: &str, into: &str) {
        let (fact, into) = (self.number_of(fact).await, self.number_of(into).await);
        let mut tx = self.databases.begin("default", self.repository).await.unwrap();
        let held = fact_merges::hold(&mut tx, self.repository, &[fact, into]).await.unwrap();
        let open = held.iter().filter(|held| held.open && [fact, into].contains(&held.no));
        assert_eq!(open.count(), 2);
        let merge = Merge { fact, into, cosine: 0.97, by: okt_model::MergedBy::Cosine };
        fact_merges::merge(&mut tx, self.repository, &[merge], JobId::mint()).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// Every canonical fact counts the sources of its duplicates with its own, none is without a source of either kind, and
    /// no canonical fact is a duplicate. Similar groups are stars of facts that are `new` or `stable`.
    pub(crate) async fn check(&self) {
        let wrong: Vec<String> = sqlx::query_scalar(
            "WITH says AS (
                 SELECT f.repository_id, canonical.no, l.source_no
                   FROM okt_repository.facts f
                   JOIN okt_repository.fact_sources l ON l.repository_id = f.repository_id AND l.fact_no = f.no
                  CROSS JOIN LATERAL (VALUES (f.no), (f.merged_into)) AS canonical (no)),
             counted AS (
                 SELECT repository_id, no, count(DISTINCT source_no) AS sources FROM says GROUP BY repository_id, no)
             SELECT f.text || ': ' || f.source_count || ' of ' || coalesce(counted.sources, 0)
               FROM okt_repository.facts f
               LEFT JOIN counted ON counted.repository_id = f.repository_id AND counted.no = f.no
              WHERE counted.sources IS NULL OR counted.sources <> f.source_count
              UNION ALL
             SELECT f.text || ' is merged into a duplicate' FROM okt_repository.facts f
               LEFT JOIN okt_repository.facts r ON r.repository_id = f.repository_id AND r.no = f.merged_into
              WHERE f.merged_into IS NOT NULL AND (r.no IS NULL OR r.merged_into IS NOT NULL)
              UNION ALL
             SELECT f.text || ' is represented by ' || coalesce(r.status || ' ' || r.text, 'nobody')
               FROM okt_repository.facts f
               LEFT JOIN okt_repository.facts r ON r.repository_id = f.repository_id AND r.no = f.similar_to
              WHERE f.similar_to IS NOT NULL
                AND (r.no IS NULL OR r.similar_to IS NOT NULL OR r.status NOT IN ('new', 'stable')
                     OR f.status NOT IN ('new', 'stable'))
              UNION ALL
             SELECT 'the counter says ' || c.value FROM okt_repository.counters c
              WHERE c.name = 'facts' AND c.value <> (SELECT count(*) FROM okt_repository.facts f
                                                      WHERE f.repository_id = c.repository_id)
              UNION ALL
             SELECT 'the journal names a fact that is gone: ' || m.fact_no || ' ' || m.into_no
               FROM okt_repository.fact_merges m
              WHERE m.undone_at IS NULL
                AND (NOT EXISTS (SELECT FROM okt_repository.facts f
                                  WHERE f.repository_id = m.repository_id AND f.no = m.fact_no)
                     OR NOT EXISTS (SELECT FROM okt_repository.facts f
                                     WHERE f.repository_id = m.repository_id AND f.no = m.into_no))",
        )
        .fetch_all(&mut self.connect().await)
        .await
        .unwrap();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}

pub(crate) fn said(text: &str, vector: Vec<f32>) -> Said {
    Said { text: text.to_owned(), vector, sentences: vec![0] }
}

/// A small generator of our own; the same numbers every time.
pub(crate) struct Dice(pub u64);

impl Dice {
    /// From -1 to 1, even.
    pub(crate) fn number(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            reason = "any number will do"
        )]
        let number = ((self.0 >> 40) as f64 / f64::from(1_u32 << 23) - 1.0) as f32;
        number
    }

    /// A direction of its own.
    pub(crate) fn vector(&mut self) -> Vec<f32> {
        let vector = (0..DIMENSIONS).map(|_| self.number()).collect();
        unit(vector)
    }

    /// A direction at exactly this cosine from another.
    pub(crate) fn beside(&mut self, vector: &[f32], cosine: f64) -> Vec<f32> {
        let noise = self.vector();
        let along = dot(&noise, vector);
        let across: Vec<f64> =
            noise.iter().zip(vector).map(|(n, v)| f64::from(*n) - along * f64::from(*v)).collect();
        let length = across.iter().map(|x| x * x).sum::<f64>().sqrt();
        let sine = (1.0 - cosine * cosine).sqrt();
        let mixed = vector.iter().zip(&across).map(|(v, a)| cosine * f64::from(*v) + sine * a / length);
        #[expect(clippy::cast_possible_truncation, reason = "vectors have no more digits")]
        unit(mixed.map(|x| x as f32).collect())
    }
}

pub(crate) fn dot(one: &[f32], other: &[f32]) -> f64 {
    one.iter().zip(other).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

fn unit(vector: Vec<f32>) -> Vec<f32> {
    let length = dot(&vector, &vector).sqrt();
    #[expect(clippy::cast_possible_truncation, reason = "vectors have no more digits")]
    vector.into_iter().map(|x| (f64::from(x) / length) as f32).collect()
}
