//! How soon a job runs again whose process was killed.

use std::path::Path;
use std::time::{Duration, Instant};

use okt_model::RepositoryId;

use super::kinds::Step;
use super::{TestWorkers, percentile};

/// Seconds from each kill until the job of the dead process ran again; the 99th percentile, and the longest.
pub async fn run(program: &Path, url: &str, kills: usize) -> (f64, f64) {
    let mut workers = TestWorkers::new(program, url, &[], &["--slots", "4"]).await;
    workers.spawn();
    workers.spawn();
    let repository = RepositoryId::mint();
    let mut seconds = Vec::new();
    for n in 0..kills {
        let step = Step { n: i64::try_from(n).expect("a few"), step: 1, steps: 1, work_ms: 1500 };
        let id = workers.push(repository, &[step]).await.expect("the database is up")[0];
        let runs = format!("SELECT count(*) FROM okt_soak.runs WHERE job_id = '{id}'");
        assert!(workers.wait_for(&runs, 1, Duration::from_secs(20)).await, "it did not start");
        let pid = workers.count(&format!("SELECT pid FROM okt_soak.runs WHERE job_id = '{id}'")).await;
        let killed = Instant::now();
        workers.kill_pid(pid);
        workers.spawn();
        assert!(workers.wait_for(&runs, 2, Duration::from_mins(1)).await, "it was not given back");
        seconds.push(killed.elapsed().as_secs_f64());
        assert!(workers.finish(Duration::from_secs(30)).await, "it did not end");
    }
    assert_eq!(
        workers.count("SELECT count(*) FROM okt_soak.effects").await,
        i64::try_from(kills).expect("a few")
    );
    let p99 = percentile(&mut seconds, 0.99);
    (p99, percentile(&mut seconds, 1.0))
}
