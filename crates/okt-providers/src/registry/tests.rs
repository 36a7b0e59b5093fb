//! Turns of downloads, without a registry and without waiting.

use std::time::Duration;

use okt_config::Config;
use tokio::time::{Instant, sleep};

use super::{Decomposition, PULLS, Registries, RegistryError, RegistrySource};
use crate::guarded::GuardedClient;

/// It never fails, and always takes nearly as long as it may: what it has is worth coming again for.
#[tokio::test(start_paused = true)]
async fn who_gets_no_turn_for_a_download_comes_again_later() {
    let mut config = Config::default();
    config.providers.registry.url = Some("https://registry.example.org/".parse().unwrap());
    let registries = Registries::new(&config, &GuardedClient::new(&[]).unwrap());
    let registry = registries.get(None).unwrap();
    let timeout = registry.timeout();
    let (source, chosen) = (RegistrySource::default(), Decomposition::default());
    let all = u32::try_from(PULLS).unwrap();
    let held = registry.0.pulls.acquire_many(all).await.unwrap();

    let (begun, mut left) = (Instant::now(), timeout);
    let ended = registry.pull(&source, &chosen, &mut left).await;
    let waited = begun.elapsed();
    assert!(2 * timeout <= waited && waited < 3 * timeout, "{waited:?}");
    assert!(matches!(&ended, Err(RegistryError::Busy { after, .. }) if *after == timeout), "{ended:?}");
    assert_eq!(left, timeout, "our own turn is not the time of the registry");
    assert!(registry.0.breaker.enter(timeout).is_some(), "nor its fault");

    // It fails those before us while we wait.
    let begun = Instant::now();
    let fails = async {
        sleep(timeout).await;
        registry.0.breaker.enter(timeout).unwrap().end(false);
        drop(held);
    };
    let (ended, ()) = tokio::join!(registry.pull(&source, &chosen, &mut left), fails);
    assert!(matches!(&ended, Err(RegistryError::Resting { .. })), "{ended:?}");
    assert!(begun.elapsed() < timeout + Duration::from_secs(1), "{:?}", begun.elapsed());
    assert_eq!(left, timeout);
}
