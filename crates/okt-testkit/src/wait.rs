//! Waiting for something to become so: the one way to poll in tests.

use std::fmt::Display;
use std::time::{Duration, Instant};

/// How long nobody looks.
const PAUSE: Duration = Duration::from_millis(20);

/// Looks again and again until there is a value. `Err` is what was seen instead; after the limit the test fails with the
/// last of it.
pub async fn eventually<T, S: Display>(
    limit: Duration,
    what: &str,
    mut look: impl AsyncFnMut() -> Result<T, S>,
) -> T {
    let deadline = Instant::now() + limit;
    loop {
        match look().await {
            Ok(found) => return found,
            Err(seen) => {
                assert!(Instant::now() < deadline, "not within {limit:?}: {what}; last seen: {seen:#}");
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}
