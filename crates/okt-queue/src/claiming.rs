//! Taking on jobs: when there is room, when somebody else's turn has come, and when one of them may be dangerous.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use okt_model::Result;
use tokio_util::sync::CancellationToken;

use crate::backoff::about;
use crate::claim::{begin_suspect, claim, claim_express, claim_suspect};
use crate::minder::{Place, mind};
use crate::worker::{POLL, RECONNECT, Shared, changed};
use crate::workers::give_back;

/// How long the others may hold up a suspect, and it the others.
const QUIET: Duration = Duration::from_secs(5);

impl Shared {
    /// Whether this process should take on more.
    fn may_claim(&self) -> bool {
        self.alive.load(Ordering::Relaxed) && self.stuck.load(Ordering::Relaxed) + 1 < self.threads
    }

    /// Claims whenever there is room and reason to, until told to stop.
    pub(crate) async fn keep_claiming(self: Arc<Self>, stop: CancellationToken) {
        let mut trouble = false;
        while !stop.is_cancelled() {
            let more = if self.may_claim() { self.take_on().await } else { Ok(false) };
            let pause = match &more {
                Ok(true) => continue,
                Ok(false) => POLL,
                Err(_) => RECONNECT,
            };
            changed(
                &mut trouble,
                more.err().as_ref(),
                "jobs can't be claimed, will try again",
                "jobs are claimed again",
            );
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.wake.notified() => {}
                () = self.slots.freed() => {}
                () = tokio::time::sleep(about(pause)) => {}
            }
        }
    }

    async fn take_on(self: &Arc<Self>) -> Result<bool> {
        let taken = async {
            if self.orphans.swap(false, Ordering::Relaxed) {
                self.give_back_orphans().await?;
            }
            // One of them, and then again everybody else.
            if self.suspects.load(Ordering::Relaxed) && !self.suspect_runs.load(Ordering::Relaxed) {
                self.try_suspect().await?;
            }
            self.claim().await
        };
        // When the answer got lost, the queue believes that we have jobs of which we know nothing.
        taken.await.inspect_err(|_| self.orphans.store(true, Ordering::Relaxed))
    }

    async fn give_back_orphans(&self) -> Result<()> {
        let mut ours: Vec<_> = self.running().keys().copied().collect();
        ours.extend(self.untold().iter());
        let mut conn = self.keeper.acquire_tasks().await?;
        let any = give_back(&mut conn, self.id, &ours).await?;
        conn.done();
        if any {
            tracing::warn!("jobs that were claimed without our hearing of it were given back");
        }
        Ok(())
    }

    /// Claims what there is room for; true when more could be had at once.
    async fn claim(self: &Arc<Self>) -> Result<bool> {
        // First of all, because somebody may have come for it this moment, and everybody else is used to waiting.
        let crowded = self.slots.crowded();
        if !crowded.is_empty() {
            let busy: BTreeSet<_> =
                self.running().values().map(|running| (running.kind.clone(), running.repository)).collect();
            let busy: Vec<_> = busy.into_iter().collect();
            let mut conn = self.keeper.acquire_tasks().await?;
            let claimed = claim_express(&mut conn, self.id, &crowded, &busy).await?;
            conn.done();
            for job in claimed {
                self.slots.take_express(&job.kind);
                self.minders.spawn(mind(Arc::clone(self), job, Place::Express));
            }
        }
        let free = self.slots.free();
        let mut more = false;
        if !free.is_empty() {
            let mut conn = self.keeper.acquire_tasks().await?;
            let claimed = claim(&mut conn, self.id, &free).await?;
            conn.done();
            let mut counts = BTreeMap::new();
            for job in &claimed {
                *counts.entry(job.kind.as_str()).or_insert(0) += 1;
            }
            more = self.slots.take(&free, &counts);
            for job in claimed {
                self.minders.spawn(mind(Arc::clone(self), job, Place::Ordinary));
            }
        }
        Ok(more)
    }

    /// Runs a job that was there at two crashes, as far as possible alone: when it is there at a third one, it will be
    /// set aside, and that must not happen to one that merely stood beside the culprit.
    async fn try_suspect(self: &Arc<Self>) -> Result<()> {
        let kinds: Vec<String> = self.settings.slots.keys().cloned().collect();
        let mut conn = self.keeper.acquire_tasks().await?;
        let suspect = claim_suspect(&mut conn, self.id, &kinds).await?;
        conn.done();
        let Some(suspect) = suspect else {
            self.suspects.store(false, Ordering::Relaxed);
            return Ok(());
        };
        self.quiet().await;
        let mut conn = self.keeper.acquire_tasks().await?;
        let ours = begin_suspect(&mut conn, &suspect).await?;
        conn.done();
        if !ours {
            return Ok(());
        }
        self.suspect_runs.store(true, Ordering::Relaxed);
        self.slots.take_one(&suspect.kind);
        self.minders.spawn(mind(Arc::clone(self), suspect, Place::Suspect));
        self.quiet().await;
        Ok(())
    }

    /// Waits until nothing runs here, for a while.
    async fn quiet(&self) {
        let empty = async {
            while !self.minders.is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        drop(tokio::time::timeout(QUIET, empty).await);
    }
}
