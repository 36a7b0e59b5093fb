//! What a worker says and hears while jobs run: that it lives, how far they are, what became of them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use okt_model::{Error, JobId, Result};
use tokio::sync::mpsc;

use crate::backoff::about;
use crate::heartbeat::{Report, beat, report};
use crate::minder::Order;
use crate::settle::{Settled, settle, settle_each};
use crate::worker::{RECONNECT, SETTLED, Shared, changed};
use crate::workers;

/// How often what jobs say of themselves is written down; less often where many do, up to once in a second.
const REPORT: Duration = Duration::from_millis(250);
const REPORT_OF_MANY: Duration = Duration::from_secs(1);
/// So much of that for each of them.
const REPORT_OF_ONE: Duration = Duration::from_millis(5);
/// How long a silent connection is trusted.
const SILENCE: Duration = Duration::from_secs(20);

/// How long what became of one job may wait for others.
const COMPANY: Duration = Duration::from_millis(1);

impl Shared {
    /// Hears of waiting jobs and of those to cancel, and holds the lock by which others know that this process lives.
    pub(crate) async fn keep_listening(self: Arc<Self>) {
        let kinds: Vec<String> = self.settings.slots.keys().cloned().collect();
        loop {
            let heard: Result<()> = async {
                let mut listener =
                    self.keeper.listen_to_tasks(&["okt_jobs_waiting", "okt_jobs_cancel"]).await?;
                listener.lock(self.id).await?;
                let mut conn = self.keeper.acquire_tasks().await?;
                workers::register(&mut conn, self.id, &self.settings.name, &kinds).await?;
                conn.done();
                self.alive.store(true, Ordering::Relaxed);
                // Something may have been said meanwhile, and somebody may have taken our jobs.
                self.beat.notify_one();
                self.orphans.store(true, Ordering::Relaxed);
                self.wake.notify_one();
                loop {
                    tokio::select! {
                        heard = listener.hear() => {
                            let (channel, message) = heard?;
                            self.heed(&channel, &message);
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
                    "the connection to listen on is gone"
                );
            }
            tokio::time::sleep(about(RECONNECT)).await;
        }
    }

    fn heed(&self, channel: &str, message: &str) {
        if channel == "okt_jobs_cancel" {
            if let Ok(id) = message.parse::<JobId>()
                && let Some(running) = self.running().get_mut(&id)
            {
                running.tell(Order::Cancel);
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

    pub(crate) async fn keep_beating(self: Arc<Self>) {
        loop {
            tokio::select! {
                () = self.beat.notified() => {}
                () = tokio::time::sleep(about(self.settings.heartbeat_interval)) => {}
            }
            if let Err(error) = self.beat().await {
                tracing::debug!(error = &error as &dyn std::error::Error, "can't say that jobs are alive");
                tokio::time::sleep(about(RECONNECT)).await;
                self.beat.notify_one();
            }
        }
    }

    async fn beat(&self) -> Result<()> {
        let running: Vec<(JobId, i32)> =
            self.running().iter().map(|(id, running)| (*id, running.claims)).collect();
        metrics::gauge!("okt_jobs_running").set(u32::try_from(running.len()).unwrap_or(u32::MAX));
        metrics::gauge!("okt_jobs_stuck")
            .set(u32::try_from(self.stuck.load(Ordering::Relaxed)).unwrap_or(u32::MAX));
        if running.is_empty() {
            return Ok(());
        }
        let mut conn = self.keeper.acquire_tasks().await?;
        let beats = beat(&mut conn, self.id, &running).await?;
        conn.done();
        let ours: HashMap<JobId, bool> = beats.into_iter().map(|beat| (beat.id, beat.cancelled)).collect();
        let mut all = self.running();
        for (id, claims) in running {
            let Some(running) = all.get_mut(&id).filter(|running| running.claims == claims) else { continue };
            match ours.get(&id) {
                Some(false) => {}
                Some(true) => running.tell(Order::Cancel),
                None => running.tell(Order::Lost),
            }
        }
        Ok(())
    }

    pub(crate) async fn keep_reporting(self: Arc<Self>) {
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
                let mut conn = self.keeper.acquire_tasks().await?;
                report(&mut conn, self.id, &reports).await?;
                conn.done();
                Ok::<_, Error>(())
            };
            if let Err(error) = told.await {
                tracing::debug!(error = &error as &dyn std::error::Error, "can't say how far jobs are");
                let running = self.running();
                reports
                    .iter()
                    .filter_map(|report| running.get(&report.id))
                    .for_each(|job| job.said.say_again());
            }
        }
    }

    /// Of jobs that said something, or that nobody has heard of yet.
    fn reports(&self) -> Vec<Report> {
        let mut reports = Vec::new();
        for (id, running) in &mut *self.running() {
            let said = running.said.anything();
            if said || !running.announced {
                let (progress, cost) = if said { running.said.as_json() } else { (None, None) };
                let (claims, repository) = (running.claims, running.repository);
                reports.push(Report { id: *id, claims, repository, progress, cost });
            }
            running.announced = true;
        }
        reports
    }

    pub(crate) async fn keep_settling(self: Arc<Self>, mut receiver: mpsc::Receiver<Settled>) {
        let mut batch = Vec::with_capacity(SETTLED);
        while receiver.recv_many(&mut batch, SETTLED).await > 0 {
            // Where jobs end by the dozen, they are told by the dozen.
            if !self.running().is_empty() {
                tokio::time::sleep(COMPANY).await;
                while batch.len() < SETTLED
                    && let Ok(settled) = receiver.try_recv()
                {
                    batch.push(settled);
                }
            }
            let mut trouble = false;
            loop {
                let told = self.tell(&batch).await;
                changed(
                    &mut trouble,
                    told.as_ref().err(),
                    "what became of jobs can't be told",
                    "what became of jobs was told",
                );
                if told.is_ok() {
                    break;
                }
                tokio::time::sleep(about(RECONNECT)).await;
            }
            let mut untold = self.untold();
            for settled in batch.drain(..) {
                untold.remove(&settled.id());
            }
        }
    }

    async fn tell(&self, batch: &[Settled]) -> Result<()> {
        let mut conn = self.keeper.acquire_tasks().await?;
        let settled = match settle(&mut conn, self.id, batch).await {
            Err(error) if !error.retryable() => settle_each(&mut conn, self.id, batch).await,
            settled => settled,
        }?;
        conn.done();
        metrics::counter!("okt_jobs_settled_total").increment(settled.len() as u64);
        let refused = batch.len() - settled.len();
        if refused > 0 {
            metrics::counter!("okt_jobs_refused_total").increment(refused as u64);
            tracing::warn!(
                jobs = refused,
                "jobs had been taken over by somebody else; what became of them here was refused"
            );
        }
        Ok(())
    }
}
