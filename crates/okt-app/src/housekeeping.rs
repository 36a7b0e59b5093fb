//! What has to be swept up now and then.

use std::time::Duration;

use okt_model::Result;
use okt_store::idempotency;

use crate::App;

const EVERY: Duration = Duration::from_mins(10);
const BATCH: i64 = 1000;

impl App {
    /// Sweeps until dropped. Any number of processes may do so at once.
    pub async fn keep_house(&self) {
        let mut timer = tokio::time::interval(EVERY);
        loop {
            timer.tick().await;
            match self.forget_old_answers().await {
                Ok(0) => {}
                Ok(count) => tracing::info!(count, "forgot old idempotent answers"),
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "can't sweep, will try again");
                }
            }
        }
    }

    /// Deletes answers that are kept no longer; returns how many.
    pub async fn forget_old_answers(&self) -> Result<u64> {
        let mut total = 0;
        loop {
            let mut conn = self.databases().acquire_system().await?;
            let count = idempotency::delete_expired(&mut conn, BATCH).await?;
            total += count;
            if count < BATCH.unsigned_abs() {
                return Ok(total);
            }
        }
    }
}
