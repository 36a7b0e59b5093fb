//! What any worker does for the whole queue: due jobs, ticks, rescues, sweeps. None leads; whoever comes first does it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use okt_model::Result;
use tokio_util::sync::CancellationToken;

use crate::backoff::about;
use crate::rescue::{any_suspect, rescue};
use crate::schedule::{Periodic, promote, tick};
use crate::sweep::{Walk, forget};
use crate::worker::{POLL, Shared, changed};

/// How often a part of everything is looked through.
const SWEEP: Duration = Duration::from_secs(10);

impl Shared {
    /// Promotes, ticks and rescues every second, and sweeps now and then.
    pub(crate) async fn keep_order(self: Arc<Self>, periodic: Vec<Periodic>, stop: CancellationToken) {
        let (mut trouble, mut walk) = (false, Walk::default());
        let mut sweeps = tokio::time::interval(SWEEP);
        sweeps.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut rescuing = self.settings.rescue_on_startup;
        loop {
            let done = self.order(&periodic, rescuing).await;
            changed(
                &mut trouble,
                done.err().as_ref(),
                "the queue can't be looked after, will try again",
                "the queue is looked after again",
            );
            rescuing = true;
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(about(POLL)) => {}
                _ = sweeps.tick() => self.sweep(&mut walk).await,
            }
        }
    }

    async fn order(&self, periodic: &[Periodic], rescuing: bool) -> Result<()> {
        let mut conn = self.keeper.acquire_tasks().await?;
        promote(&mut conn).await?;
        tick(&mut conn, periodic).await?;
        if any_suspect(&mut conn).await? {
            self.suspects.store(true, Ordering::Relaxed);
            self.wake.notify_one();
        }
        conn.done();
        if rescuing {
            let count = rescue(&self.keeper, self.id, self.settings.heartbeat_timeout).await?;
            if count > 0 {
                metrics::counter!("okt_jobs_rescued_total").increment(count);
                tracing::warn!(jobs = count, "jobs whose process died or fell silent were given back");
            }
        }
        Ok(())
    }

    async fn sweep(&self, walk: &mut Walk) {
        let jobs = walk.find_lost(&self.keeper).await;
        if jobs > 0 {
            tracing::warn!(jobs, "the queue had lost jobs; their notes are carried to it again");
        }
        if let Err(error) = forget(&self.keeper).await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "can't forget old jobs, will try again");
        }
    }
}
