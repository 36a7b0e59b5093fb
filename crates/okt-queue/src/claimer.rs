//! The claim loop of a worker: claims jobs into free slots, an express slot for a tenant without a running job, and
//! suspects (jobs that were running at two crashes) alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use okt_model::Result;
use tokio_util::sync::CancellationToken;

use crate::backoff::about;
use crate::claim_query::{begin_suspect, claim, claim_express, claim_suspect};
use crate::supervisor::{SlotKind, supervise};
use crate::worker::{POLL, RECONNECT, Shared, log_transition};
use crate::worker_registration::release;

/// How long a suspect waits for other jobs, and other jobs for it.
const IDLE_WAIT: Duration = Duration::from_secs(5);

impl Shared {
    /// Whether this worker may claim more jobs.
    fn may_claim(&self) -> bool {
        self.alive.load(Ordering::Relaxed) && self.stuck.load(Ordering::Relaxed) + 1 < self.threads
    }

    /// Claims whenever slots are free and jobs may wait, until `stop`.
    pub(crate) async fn claim_loop(self: Arc<Self>, stop: CancellationToken) {
        let mut trouble = false;
        while !stop.is_cancelled() {
            let more = if self.may_claim() { self.claim_round().await } else { Ok(false) };
            let pause = match &more {
                Ok(true) => continue,
                Ok(false) => POLL,
                Err(_) => RECONNECT,
            };
            log_transition(
                &mut trouble,
                more.err().as_ref(),
                "failed to claim jobs; will retry",
                "claiming jobs recovered",
            );
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.wake.notified() => {}
                () = self.slots.freed() => {}
                () = tokio::time::sleep(about(pause)) => {}
            }
        }
    }

    async fn claim_round(self: &Arc<Self>) -> Result<bool> {
        let taken = async {
            if self.orphans.swap(false, Ordering::Relaxed) {
                self.release_orphans().await?;
            }
            // One suspect, and then ordinary jobs again.
            if self.suspects.load(Ordering::Relaxed) && !self.suspect_runs.load(Ordering::Relaxed) {
                self.run_suspect().await?;
            }
            self.claim().await
        };
        // If the answer was lost, the queue may list jobs for this worker that it does not run.
        taken.await.inspect_err(|_| self.orphans.store(true, Ordering::Relaxed))
    }

    async fn release_orphans(&self) -> Result<()> {
        let mut ours: Vec<_> = self.running().keys().copied().collect();
        ours.extend(self.unrecorded().iter());
        let mut conn = self.queue_databases.acquire_tasks().await?;
        let any = release(&mut conn, self.id, &ours).await?;
        if any {
            tracing::warn!(
                worker.id = self.id,
                "released jobs that the queue lists for this worker and that it does not run: the answer to a claim was \
                 lost"
            );
        }
        Ok(())
    }

    /// Claims jobs for the free slots; true when another claim may find more at once.
    async fn claim(self: &Arc<Self>) -> Result<bool> {
        // First the express slot, whose tenant has nothing running.
        let crowded = self.slots.crowded();
        if !crowded.is_empty() {
            let busy: BTreeSet<_> =
                self.running().values().map(|running| (running.kind.clone(), running.repository)).collect();
            let busy: Vec<_> = busy.into_iter().collect();
            let mut conn = self.queue_databases.acquire_tasks().await?;
            let claimed = claim_express(&mut conn, self.id, &crowded, &busy).await?;
            for job in claimed {
                self.slots.occupy_express(&job.kind);
                self.supervisors.spawn(supervise(Arc::clone(self), job, SlotKind::Express));
            }
        }
        let free = self.slots.free();
        let mut more = false;
        if !free.is_empty() {
            let mut conn = self.queue_databases.acquire_tasks().await?;
            let claimed = claim(&mut conn, self.id, &free).await?;
            let mut counts = BTreeMap::new();
            for job in &claimed {
                *counts.entry(job.kind.as_str()).or_insert(0) += 1;
            }
            more = self.slots.occupy(&free, &counts);
            for job in claimed {
                self.supervisors.spawn(supervise(Arc::clone(self), job, SlotKind::Regular));
            }
        }
        Ok(more)
    }

    /// Runs a suspect, as far as possible alone: at a third crash it is discarded, which must not happen to a job that only
    /// ran beside the one that crashes.
    async fn run_suspect(self: &Arc<Self>) -> Result<()> {
        let kinds: Vec<String> = self.settings.slots.keys().cloned().collect();
        let mut conn = self.queue_databases.acquire_tasks().await?;
        let suspect = claim_suspect(&mut conn, self.id, &kinds).await?;
        drop(conn);
        let Some(suspect) = suspect else {
            self.suspects.store(false, Ordering::Relaxed);
            return Ok(());
        };
        self.wait_until_idle().await;
        let mut conn = self.queue_databases.acquire_tasks().await?;
        let ours = begin_suspect(&mut conn, &suspect).await?;
        drop(conn);
        if !ours {
            return Ok(());
        }
        self.suspect_runs.store(true, Ordering::Relaxed);
        self.slots.occupy_one(&suspect.kind);
        self.supervisors.spawn(supervise(Arc::clone(self), suspect, SlotKind::Suspect));
        self.wait_until_idle().await;
        Ok(())
    }

    /// Waits until nothing runs here, up to [`IDLE_WAIT`].
    async fn wait_until_idle(&self) {
        let empty = async {
            while !self.supervisors.is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        drop(tokio::time::timeout(IDLE_WAIT, empty).await);
    }
}
