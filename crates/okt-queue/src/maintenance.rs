//! Queue maintenance, done by every worker without a leader: due jobs, periodic jobs, rescue, sweep.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use okt_model::Result;
use tokio_util::sync::CancellationToken;

use crate::backoff::about;
use crate::rescue::{any_suspect, rescue};
use crate::schedule::{Periodic, promote, tick};
use crate::sweep::{OutboxScan, delete_old_jobs};
use crate::worker::{POLL, Shared, log_transition};

/// How often a part of everything is looked through.
const SWEEP: Duration = Duration::from_secs(10);

impl Shared {
    /// Promotes, ticks and rescues every second, and sweeps now and then.
    pub(crate) async fn maintenance_loop(self: Arc<Self>, periodic: Vec<Periodic>, stop: CancellationToken) {
        let (mut trouble, mut scan) = (false, OutboxScan::default());
        let mut sweeps = tokio::time::interval(SWEEP);
        sweeps.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut rescuing = self.settings.rescue_on_startup;
        loop {
            let done = self.maintain(&periodic, rescuing).await;
            log_transition(
                &mut trouble,
                done.err().as_ref(),
                "queue maintenance failed; will retry",
                "queue maintenance recovered",
            );
            rescuing = true;
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(about(POLL)) => {}
                _ = sweeps.tick() => self.sweep(&mut scan).await,
            }
        }
    }

    async fn maintain(&self, periodic: &[Periodic], rescuing: bool) -> Result<()> {
        let mut conn = self.queue_databases.acquire_tasks().await?;
        promote(&mut conn).await?;
        tick(&mut conn, periodic).await?;
        if any_suspect(&mut conn).await? {
            self.suspects.store(true, Ordering::Relaxed);
            self.wake.notify_one();
        }
        drop(conn);
        if rescuing {
            let count = rescue(&self.queue_databases, self.id, self.settings.heartbeat_timeout).await?;
            if count > 0 {
                metrics::counter!("okt_jobs_rescued_total").increment(count);
                tracing::warn!(
                    jobs = count,
                    "released jobs of workers that died or stopped sending heartbeats"
                );
            }
        }
        Ok(())
    }

    async fn sweep(&self, scan: &mut OutboxScan) {
        let jobs = scan.find_lost(&self.queue_databases).await;
        if jobs > 0 {
            tracing::warn!(
                jobs,
                "jobs were missing from the queue; their outbox entries will be relayed again"
            );
        }
        if let Err(error) = delete_old_jobs(&self.queue_databases).await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "failed to delete old jobs; will retry");
        }
    }
}
