//! Worker loops: LISTEN, heartbeats, progress, outcomes.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use okt_model::{Error, JobId, Result};
use tokio::sync::mpsc;

use crate::backoff::about;
use crate::heartbeat::{Report, beat, report};
use crate::outcome::{JobOutcome, record, record_each};
use crate::supervisor::StopReason;
use crate::worker::{OUTCOME_BATCH, RECONNECT, Shared, log_transition};
use crate::worker_registration;

/// How often what jobs say of themselves is written down; less often where many do, up to once in a second.
const REPORT: Duration = Duration::from_millis(250);
const REPORT_OF_MANY: Duration = Duration::from_secs(1);
/// So much of that for each of them.
const REPORT_OF_ONE: Duration = Duration::from_millis(5);
/// How long a silent connection is trusted.
const SILENCE: Duration = Duration::from_secs(20);

/// How long what became of one job may wait for others.
const BATCH_DELAY: Duration = Duration::from_millis(1);

impl Shared {
    /// Hears of waiting jobs and of those to cancel, and holds the lock by which others know that this process lives.
    pub(crate) async fn listen_loop(self: Arc<Self>) {
        let kinds: Vec<String> = self.settings.slots.keys().cloned().collect();
        loop {
            let heard: Result<()> = async {
                let mut listener =
                    self.queue_databases.listen_to_tasks(&["okt_jobs_waiting", "okt_jobs_cancel"]).await?;
                listener.lock(self.id).await?;
                let mut conn = self.queue_databases.acquire_tasks().await?;
                worker_registration::register(&mut conn, self.id, &self.settings.name, &kinds).await?;
                drop(conn);
                self.alive.store(true, Ordering::Relaxed);
                // Something may have been said meanwhile, and somebody may have taken our jobs.
                self.beat.notify_one();
                self.orphans.store(true, Ordering::Relaxed);
                self.wake.notify_one();
                loop {
                    tokio::select! {
                        heard = listener.hear() => {
                            let (channel, message) = heard?;
                            self.handle_notification(&channel, &message);
                        }
                        () = tokio::time::sleep(SILENCE) => listener.ping().await?,
                    }
                }
            }
            .await;
            self.alive.store(false, Ordering::Relaxed);
            if let Err(error) = heard {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "the LISTEN connection of this worker was lost; will reconnect"
                );
            }
            tokio::time::sleep(about(RECONNECT)).await;
        }
    }

    fn handle_notification(&self, channel: &str, message: &str) {
        if channel == "okt_jobs_cancel" {
            if let Ok(id) = message.parse::<JobId>()
                && let Some(running) = self.running().get_mut(&id)
            {
                running.stop(StopReason::Cancel);
            }
            return;
        }
        let mut any = false;
        for kind in message.split(',') {
            any |= self.slots.offer(kind);
        }
        if any {
            self.wake.notify_one();
        }
    }

    pub(crate) async fn heartbeat_loop(self: Arc<Self>) {
        loop {
            tokio::select! {
                () = self.beat.notified() => {}
                () = tokio::time::sleep(about(self.settings.heartbeat_interval)) => {}
            }
            if let Err(error) = self.beat().await {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "failed to record heartbeats; will retry"
                );
                tokio::time::sleep(about(RECONNECT)).await;
                self.beat.notify_one();
            }
        }
    }

    async fn beat(&self) -> Result<()> {
        let running: Vec<(JobId, i32)> =
            self.running().iter().map(|(id, running)| (*id, running.fencing_token)).collect();
        metrics::gauge!("okt_jobs_running").set(u32::try_from(running.len()).unwrap_or(u32::MAX));
        metrics::gauge!("okt_jobs_stuck")
            .set(u32::try_from(self.stuck.load(Ordering::Relaxed)).unwrap_or(u32::MAX));
        if running.is_empty() {
            return Ok(());
        }
        let mut conn = self.queue_databases.acquire_tasks().await?;
        let beats = beat(&mut conn, self.id, &running).await?;
        let ours: HashMap<JobId, bool> = beats.into_iter().map(|beat| (beat.id, beat.cancelled)).collect();
        let mut all = self.running();
        for (id, fencing_token) in running {
            let Some(running) = all.get_mut(&id).filter(|running| running.fencing_token == fencing_token)
            else {
                continue;
            };
            match ours.get(&id) {
                Some(false) => {}
                Some(true) => running.stop(StopReason::Cancel),
                None => running.stop(StopReason::Lost),
            }
        }
        Ok(())
    }

    pub(crate) async fn progress_loop(self: Arc<Self>) {
        let mut told_of = 0;
        loop {
            let pause = REPORT_OF_ONE.saturating_mul(u32::try_from(told_of).unwrap_or(u32::MAX));
            tokio::time::sleep(pause.clamp(REPORT, REPORT_OF_MANY)).await;
            let reports = self.reports();
            told_of = reports.len();
            if reports.is_empty() {
                continue;
            }
            let told = async {
                let mut conn = self.queue_databases.acquire_tasks().await?;
                report(&mut conn, self.id, &reports).await?;
                Ok::<_, Error>(())
            };
            if let Err(error) = told.await {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "failed to record job progress; will retry"
                );
                let running = self.running();
                reports
                    .iter()
                    .filter_map(|report| running.get(&report.id))
                    .for_each(|job| job.tracker.mark_changed());
            }
        }
    }

    /// Of jobs that said something, or that nobody has heard of yet.
    fn reports(&self) -> Vec<Report> {
        let mut reports = Vec::new();
        for (id, running) in &mut *self.running() {
            let changed = running.tracker.take_changed();
            if changed || !running.announced {
                let (progress, cost) = if changed { running.tracker.as_json() } else { (None, None) };
                let (fencing_token, repository) = (running.fencing_token, running.repository);
                reports.push(Report { id: *id, fencing_token, repository, progress, cost });
            }
            running.announced = true;
        }
        reports
    }

    pub(crate) async fn outcome_loop(self: Arc<Self>, mut receiver: mpsc::Receiver<JobOutcome>) {
        let mut batch = Vec::with_capacity(OUTCOME_BATCH);
        while receiver.recv_many(&mut batch, OUTCOME_BATCH).await > 0 {
            // Where jobs end by the dozen, they are told by the dozen.
            if !self.running().is_empty() {
                tokio::time::sleep(BATCH_DELAY).await;
                while batch.len() < OUTCOME_BATCH
                    && let Ok(outcome) = receiver.try_recv()
                {
                    batch.push(outcome);
                }
            }
            let mut trouble = false;
            loop {
                let told = self.record_batch(&batch).await;
                log_transition(
                    &mut trouble,
                    told.as_ref().err(),
                    "failed to record job outcomes; will retry",
                    "recording job outcomes recovered",
                );
                if told.is_ok() {
                    break;
                }
                tokio::time::sleep(about(RECONNECT)).await;
            }
            let mut unrecorded = self.unrecorded();
            for outcome in batch.drain(..) {
                unrecorded.remove(&outcome.id());
            }
        }
    }

    async fn record_batch(&self, batch: &[JobOutcome]) -> Result<()> {
        let mut conn = self.queue_databases.acquire_tasks().await?;
        let recorded = match record(&mut conn, self.id, batch).await {
            Err(error) if !error.retryable() => record_each(&mut conn, self.id, batch).await,
            recorded => recorded,
        }?;
        metrics::counter!("okt_jobs_settled_total").increment(recorded.len() as u64);
        let refused = batch.len() - recorded.len();
        if refused > 0 {
            metrics::counter!("okt_jobs_refused_total").increment(refused as u64);
            tracing::warn!(
                jobs = refused,
                "dropped the outcomes of jobs that another worker has claimed since"
            );
        }
        Ok(())
    }
}
