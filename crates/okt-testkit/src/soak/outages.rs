//! PostgreSQL stops as in a crash, again and again, while jobs are asked for and run.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use okt_model::RepositoryId;

use super::kinds::Step;
use super::{Dice, TestWorkers, percentile};
use crate::cluster::Cluster;

#[derive(Debug)]
pub struct Outcome {
    pub stops: usize,
    /// Requests for a job that were acknowledged.
    pub promised: usize,
    /// Of these, how many had no effect.
    pub lost: usize,
    /// Effects that happened more than once.
    pub twice: i64,
    /// Seconds from the database's return to the next effect: the longest.
    pub back_within: f64,
}

pub async fn run(program: &Path, seed: u64, stops: usize) -> Outcome {
    let mut dice = Dice::new(seed);
    let cluster = Arc::new(Cluster::start());
    let mut workers = TestWorkers::new(program, &cluster.url(), &[], &["--slots", "4"]).await;
    for _ in 0..2 {
        workers.spawn();
    }
    let stop = Arc::new(AtomicBool::new(false));
    let asking = tokio::spawn(ask(workers.databases.clone(), workers.shard.clone(), Arc::clone(&stop)));
    assert!(
        workers.wait_for("SELECT count(*) FROM okt_soak.effects", 20, Duration::from_secs(30)).await,
        "no work"
    );
    let mut back = Vec::new();
    for _ in 0..stops {
        tokio::time::sleep(Duration::from_millis(300 + dice.below(1200))).await;
        on_cluster(&cluster, Cluster::down).await;
        tokio::time::sleep(Duration::from_millis(dice.below(800))).await;
        on_cluster(&cluster, Cluster::up).await;
        let up = Instant::now();
        let before = workers.count("SELECT count(*) FROM okt_soak.effects").await;
        let query = "SELECT count(*) FROM okt_soak.effects";
        assert!(workers.wait_for(query, before + 1, Duration::from_mins(1)).await, "nobody works any more");
        back.push(up.elapsed().as_secs_f64());
    }
    stop.store(true, Ordering::Relaxed);
    let promised = asking.await.expect("the asking ends");
    assert!(workers.finish(Duration::from_mins(3)).await, "it did not end: {} left", workers.left().await);
    workers.retry_discarded().await;
    assert!(workers.finish(Duration::from_mins(1)).await, "it did not end");
    let mut lost = 0;
    for n in &promised {
        lost += usize::from(
            workers.count(&format!("SELECT count(*) FROM okt_soak.effects WHERE n = {n}")).await == 0,
        );
    }
    let twice = "SELECT count(*) FROM (SELECT n FROM okt_soak.effects GROUP BY n HAVING count(*) > 1) AS e";
    Outcome {
        stops,
        promised: promised.len(),
        lost,
        twice: workers.count(twice).await,
        back_within: percentile(&mut back, 1.0),
    }
}

/// Asks for a job now and then; returns those that were promised. One whose answer got lost is not.
async fn ask(databases: okt_store::Databases, shard: String, stop: Arc<AtomicBool>) -> Vec<i64> {
    let (repository, mut n, mut promised) = (RepositoryId::mint(), 0, Vec::new());
    while !stop.load(Ordering::Relaxed) {
        n += 1;
        let asked = async {
            let mut tx = databases.begin(&shard, repository).await?;
            let wish = Step { n, step: 1, steps: 1, work_ms: 5 };
            let id = okt_model::JobId::mint();
            okt_store::outbox::push(&mut tx, repository, id, &wish, okt_store::outbox::When::default())
                .await?;
            tx.commit().await
        };
        match asked.await {
            Ok(()) => promised.push(n),
            Err(error) => assert!(error.retryable(), "{error:?}"),
        }
        tokio::time::sleep(Duration::from_millis(15)).await;
    }
    promised
}

async fn on_cluster(cluster: &Arc<Cluster>, action: fn(&Cluster)) {
    let cluster = Arc::clone(cluster);
    tokio::task::spawn_blocking(move || action(&cluster)).await.expect("the cluster obeys");
}
