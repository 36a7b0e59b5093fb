//! Movers that lose their lock on the repository, and so the right to move it.

use std::time::Duration;

use http::Method;
use okt_app::Origin;
use okt_testkit::accounts::sql;
use okt_testkit::wait::eventually;
use serde_json::json;
use uuid::Uuid;

use crate::repositories::two_databases::{TwoDatabases, path};

/// A mover that is about to close the last write fence, because somebody still writes; and somebody who looks after what movers leave.
struct LateMover {
    fixture: TwoDatabases,
    id: Uuid,
    writer: okt_store::Tx,
    mover: tokio::task::JoinHandle<okt_model::Result<okt_app::Moved>>,
    _upkeep: tokio::task::JoinSet<()>,
}

impl LateMover {
    async fn start() -> Self {
        let fixture = TwoDatabases::with(&[("SVC__DATABASES__DEFAULT__LOCK_TIMEOUT", "30s")]).await;
        let id = fixture.repository().await;
        let app = fixture.service.api.app.clone();
        let writer = app.databases().begin("default", id.into()).await.unwrap();
        let (mut upkeep, looking_after) = (tokio::task::JoinSet::new(), app.clone());
        upkeep.spawn(async move { looking_after.keep_up().await });
        let mover = tokio::spawn(async move {
            app.move_repository(&Origin::service("test"), &id.to_string(), "second").await
        });
        let waits = "SELECT count(*) FROM pg_stat_activity
                      WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%shut%'";
        fixture.until("default", waits, 1).await;
        Self { fixture, id, writer, mover, _upkeep: upkeep }
    }

    /// The writer leaves; what the mover says in the end. Then everybody may write again.
    async fn end(self) -> String {
        self.writer.commit().await.unwrap();
        let refused = self.mover.await.unwrap().unwrap_err().to_string();
        eventually(Duration::from_secs(30), "the repository is open again", async || {
            let label = json!({"label": "Hive"});
            let path = path(self.id, "settings/contexts");
            let added = self.fixture.send(&self.fixture.ada, Method::POST, &path, &label).await;
            if added.status == 201 { Ok(()) } else { Err(format!("{added:?}")) }
        })
        .await;
        refused
    }
}

/// The repository was opened again before the write fence was closed by the one who lost the lock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mover_that_lost_the_lock_leaves_no_write_fence_closed() {
    let late = Box::pin(LateMover::start()).await;
    let lock = late.id.as_u64_pair().1.cast_signed();
    let lost = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_locks
          WHERE locktype = 'advisory' AND objsubid = 1 AND ((classid::bigint << 32) | objid::bigint) = {lock}"
    );
    sql(&late.fixture.service, &lost).await;
    let open = "SELECT count(*) FROM okt_system.repositories WHERE moving_to IS NOT NULL";
    late.fixture.until("default", open, 0).await;
    late.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_lost_the_lock_is_told_so() {
    let late = Box::pin(LateMover::start()).await;
    // As whoever opens it again says first.
    let given_up = "UPDATE okt_system.repositories SET moving_to = database WHERE moving_to IS NOT NULL";
    sql(&late.fixture.service, given_up).await;
    let refused = late.end().await;
    assert!(refused.contains("lost its lock") && refused.contains("run the move again"), "{refused}");
}
