use std::time::{Duration, Instant};

use okt_testkit::client::{Answer, client};
use okt_testkit::db::TestDatabase;
use okt_testkit::process::Process;

use crate::load::SERVER;

/// No route of the product computes for as long; one that did should cost one core and not everybody's answers.
#[tokio::test]
async fn a_request_that_computes_holds_up_no_other() {
    let database = TestDatabase::migrated().await;
    // As on a machine with two cores, however many this one has.
    let settings = [("SVC__DATABASES__DEFAULT__URL", database.url()), ("TOKIO_WORKER_THREADS", "2")];
    let server = Process::serve(SERVER, &settings);
    let busy = tokio::spawn(Answer::of(client().get(format!("{}/busy?ms=4000", server.url))));
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!busy.is_finished());

    let started = Instant::now();
    for _ in 0..20 {
        // Each on a connection of its own.
        let answer = Answer::of(client().get(format!("{}/slow?ms=0", server.url))).await;
        assert_eq!(answer.status, 204);
    }
    assert!(!busy.is_finished(), "the others were answered only after {:?}", started.elapsed());
    assert_eq!(busy.await.unwrap().status, 204);
}
