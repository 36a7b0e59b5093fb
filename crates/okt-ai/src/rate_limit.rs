//! The rate limit of a model, kept by all processes together.

use std::time::Duration;

use okt_model::{Error, Result};
use okt_providers::ai::Model;
use okt_store::ai_turns;
use tokio::time::sleep;

use crate::Ai;

/// After which a caller tries again whom the limit did not let through in time.
pub(crate) const PAUSE: Duration = Duration::from_mins(1);

const TIMEOUT: &str = "no request to the model was allowed within providers.ai.rate_limit_wait_timeout";

/// Waits for the next call that `rate_limit_rpm` allows, for so long at most, where somebody waits for the answer; a turn that
/// would come later is not taken.
pub(crate) async fn wait(ai: &Ai, model: &Model, patience: Option<Duration>) -> Result<()> {
    let per_minute = model.rate_limit_rpm();
    if per_minute == 0 {
        return Ok(());
    }
    let longest = patience.unwrap_or(Duration::MAX).min(ai.0.rate_limit_wait);
    let mut conn = ai.databases().acquire_system().await?;
    let wait = ai_turns::take(&mut conn, model.id(), per_minute, longest).await?;
    drop(conn);
    sleep(wait.ok_or(Error::Overloaded(TIMEOUT))?).await;
    Ok(())
}

/// Whether [`wait`] gave up.
pub(crate) fn is_timeout(error: &Error) -> bool {
    matches!(error, Error::Overloaded(TIMEOUT))
}
