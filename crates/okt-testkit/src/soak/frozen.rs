//! A process that is stopped for longer than it may be silent, and then goes on as if nothing had happened.

use std::path::Path;
use std::time::Duration;

use okt_model::RepositoryId;

use super::TestWorkers;
use super::kinds::Step;

#[derive(Debug)]
pub struct Outcome {
    pub times: usize,
    /// How often what the frozen process said afterwards was refused.
    pub refused: usize,
    /// Effects that did not happen exactly once.
    pub wrong: i64,
}

pub async fn run(program: &Path, url: &str, times: usize) -> Outcome {
    let silence = [("SVC__TASK__HEARTBEAT_INTERVAL", "300ms"), ("SVC__TASK__HEARTBEAT_TIMEOUT", "1500ms")];
    let mut workers = TestWorkers::new(program, url, &silence, &["--slots", "4"]).await;
    workers.spawn();
    workers.spawn();
    let repository = RepositoryId::mint();
    let mut refused = 0;
    let (mut frozen, mut asked) = (0, 0);
    while frozen < times {
        assert!(asked < times * 5, "the process ended its job before it was stopped in {asked} tries");
        let step = Step { n: i64::try_from(asked).expect("a few"), step: 1, steps: 1, work_ms: 400 };
        asked += 1;
        let id = workers.push(repository, &[step]).await.expect("the database is up")[0];
        let runs = format!("SELECT count(*) FROM okt_soak.runs WHERE job_id = '{id}'");
        assert!(workers.wait_for(&runs, 1, Duration::from_secs(20)).await, "it did not start");
        let pid = workers.count(&format!("SELECT pid FROM okt_soak.runs WHERE job_id = '{id}'")).await;
        workers.signal(pid, "STOP");
        let state = format!("SELECT count(*) FROM okt_tasks.jobs WHERE id = '{id}' AND state = 'completed'");
        assert!(workers.wait_for(&state, 1, Duration::from_secs(30)).await, "nobody took it over");
        let row = format!("SELECT md5(j::text), '', claims::bigint FROM okt_tasks.jobs j WHERE id = '{id}'");
        let before = workers.rows(&row).await;
        workers.signal(pid, "CONT");
        // On a busy machine it may have ended the job before the signal came; that proves nothing.
        if before[0].2 < 2 {
            continue;
        }
        frozen += 1;
        // Longer than it takes the one to finish its work and to try to say so.
        tokio::time::sleep(Duration::from_millis(900)).await;
        refused += usize::from(workers.rows(&row).await == before);
    }
    let wrong = "SELECT count(*) FROM (SELECT n FROM okt_soak.effects GROUP BY n HAVING count(*) <> 1) AS e";
    let missing = i64::try_from(asked).expect("a few")
        - workers.count("SELECT count(DISTINCT n) FROM okt_soak.effects").await;
    Outcome { times, refused, wrong: workers.count(wrong).await + missing }
}
