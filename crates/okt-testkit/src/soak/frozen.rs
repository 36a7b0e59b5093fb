//! A process that is stopped for longer than it may be silent, and then goes on as if nothing had happened.

use std::path::Path;
use std::time::Duration;

use okt_model::RepositoryId;

use super::Yard;
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
    let mut yard = Yard::new(program, url, &silence, &["--slots", "4"]).await;
    yard.hire();
    yard.hire();
    let repository = RepositoryId::mint();
    let mut refused = 0;
    for n in 0..times {
        let step = Step { n: i64::try_from(n).expect("a few"), step: 1, steps: 1, work_ms: 400 };
        let id = yard.push(repository, &[step]).await.expect("the database is up")[0];
        let runs = format!("SELECT count(*) FROM okt_soak.runs WHERE job_id = '{id}'");
        assert!(yard.wait_for(&runs, 1, Duration::from_secs(20)).await, "it did not start");
        let pid = yard.count(&format!("SELECT pid FROM okt_soak.runs WHERE job_id = '{id}'")).await;
        yard.signal(pid, "STOP");
        let state = format!("SELECT count(*) FROM okt_tasks.jobs WHERE id = '{id}' AND state = 'completed'");
        assert!(yard.wait_for(&state, 1, Duration::from_secs(30)).await, "nobody took it over");
        let row = format!("SELECT md5(j::text), '', claims::bigint FROM okt_tasks.jobs j WHERE id = '{id}'");
        let before = yard.rows(&row).await;
        assert!(before[0].2 >= 2, "somebody else ended it");
        yard.signal(pid, "CONT");
        // Longer than it takes the one to finish its work and to try to say so.
        tokio::time::sleep(Duration::from_millis(900)).await;
        refused += usize::from(yard.rows(&row).await == before);
    }
    let wrong = "SELECT count(*) FROM (SELECT n FROM okt_soak.effects GROUP BY n HAVING count(*) <> 1) AS e";
    let missing = i64::try_from(times).expect("a few")
        - yard.count("SELECT count(DISTINCT n) FROM okt_soak.effects").await;
    Outcome { times, refused, wrong: yard.count(wrong).await + missing }
}
