//! What is not found yet is found after a sweep; what is deleted leaves the lists later.

use std::time::Duration;

use okt_jobs::SweepSearch;
use okt_queue::jobs;
use okt_testkit::app::TestApp;
use okt_testkit::wait::eventually;

use super::{add, rows, search, settled, sources};

pub(super) async fn swept(app: &TestApp) {
    jobs::push(app.service.api.app.databases(), &SweepSearch {}, Duration::ZERO).await.unwrap();
    eventually(Duration::from_mins(1), "the sweep has ended", async || {
        let open = "SELECT count(*) FROM okt_tasks.jobs WHERE kind = 'sweep_search' AND finished_at IS NULL";
        let open = app.count(open).await;
        if open == 0 { Ok(()) } else { Err(open) }
    })
    .await;
    settled(app, &[]).await;
}

const RUNS: &str = "SELECT count(*) FROM okt_tasks.jobs WHERE kind = 'index_source'";

#[tokio::test]
async fn a_sweep_has_read_what_was_never_read_and_what_was_read_by_other_words() {
    let mut app = TestApp::start().await;
    app.work().await;
    let ids = [
        add(&app, "one", "Tides", "The Moon causes the tides of the sea.").await,
        add(&app, "two", "Bergen", "The harbour of Bergen knows no high tides.").await,
    ];
    settled(&app, &ids).await;
    let found = async || {
        let mut found = sources(&search(&app, "tides", "&types=facts,passages,sources").await);
        found.sort();
        found
    };
    let mut both = ids.to_vec();
    both.sort();
    assert_eq!(found().await, both);
    let runs = app.count(RUNS).await;
    swept(&app).await;
    assert_eq!(app.count(RUNS).await, runs, "all is as it should be");

    // As it was before there were lists, and what was read by the words of an older version.
    for table in ["search_units", "search_lists", "search_totals"] {
        app.sql(&format!("DELETE FROM okt_repository.{table}")).await;
    }
    assert!(rows(&search(&app, "tides", "&types=facts,passages,sources").await).is_empty());
    swept(&app).await;
    assert_eq!(found().await, both);
    let old = "UPDATE okt_repository.search_units SET version = version - 1 WHERE kind = 3 AND no = (SELECT min(no) FROM okt_repository.sources)";
    app.sql(old).await;
    let runs = app.count(RUNS).await;
    swept(&app).await;
    assert_eq!(app.count(RUNS).await, runs + 1, "only that one is read again");
    swept(&app).await;
    assert_eq!(app.count(RUNS).await, runs + 1, "and has the words of this version");
}

/// Lists of a large source are long, and somebody else may be writing: who deletes waits for neither.
#[tokio::test]
async fn what_is_deleted_leaves_the_lists_later_and_is_not_shown_meanwhile() {
    let mut app = TestApp::start().await;
    app.work().await;
    let one =
        add(&app, "one", "Tides", "The Moon causes the tides of the sea. Tides are high in Fundy.").await;
    let two = add(&app, "two", "Bergen", "The harbour of Bergen knows no high tides.").await;
    settled(&app, &[one.clone(), two.clone()]).await;
    let mut writer = app.connect().await;
    let lock = format!("SELECT pg_advisory_lock(1869771879, hashtext('{}'))", app.repository);
    sqlx::query(sqlx::AssertSqlSafe(lock)).execute(&mut writer).await.unwrap();
    assert_eq!(app.delete(&format!("/sources/{one}")).await.status, 204);
    for rest in ["&types=facts,passages,sources", "&types=facts,passages,sources&facets=true&kind=text"] {
        let found = search(&app, "moon tides sea", rest).await;
        assert!(!sources(&found).contains(&one), "{found:#}");
    }
    assert_eq!(sources(&search(&app, "tides", "&types=facts,passages,sources").await), [two]);
    assert_eq!(app.read("/facts?q=moon").await["data"], serde_json::json!([]));
    assert_eq!(app.read("/sources?q=moon").await["data"], serde_json::json!([]));
    let kept = "SELECT count(*) FROM okt_repository.search_lists WHERE word = 'moon'";
    assert!(app.count(kept).await > 0, "nobody could write");
    drop(writer);
    settled(&app, &[]).await;
    assert_eq!(app.count(kept).await, 0);
    let left = "SELECT count(*) FROM okt_repository.search_units WHERE 'moon' = ANY (words)";
    assert_eq!(app.count(left).await, 0);
}
