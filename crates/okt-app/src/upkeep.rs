//! What every process does now and then for all of them, because whoever began it may have died.

use std::time::Duration;

use crate::App;

/// How often it is looked for moves that were cut off: until then nobody can write to the repository.
const MOVES: Duration = Duration::from_secs(3);
/// Every so many times also for entries of the audit.
const AUDIT: u32 = 3;

impl App {
    /// Never ends.
    pub async fn keep_up(&self) {
        let mut timer = tokio::time::interval(MOVES);
        timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let (mut round, mut trouble) = (0_u32, false);
        loop {
            timer.tick().await;
            let reopened = self.reopen_abandoned().await;
            if let Err(error) = &reopened
                && !trouble
            {
                let error = error as &dyn std::error::Error;
                tracing::warn!(error, "failed to look for interrupted moves; will retry");
            }
            trouble = reopened.is_err();
            if round.is_multiple_of(AUDIT) {
                self.carry_audit().await;
            }
            round = round.wrapping_add(1);
        }
    }
}
