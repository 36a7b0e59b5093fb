use std::time::Duration;

use okt_testkit::db::TestDatabase;
use okt_testkit::process::Process;

use crate::load::{SERVER, closed_loop, open_loop, per_second};

/// Eight connections that each work for 50 ms: 160 requests a second are possible, ten times as many are sent.
/// `OKT_OVERLOAD_SECONDS` makes it last as long as one likes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_times_the_load_is_refused_politely_and_the_rest_served_as_before() {
    let seconds = std::env::var("OKT_OVERLOAD_SECONDS").map_or(8, |text| text.parse().unwrap());
    let database = TestDatabase::migrated().await;
    let server = Process::serve(
        SERVER,
        &[
            ("SVC__DATABASES__DEFAULT__URL", database.url()),
            ("SVC__DATABASES__DEFAULT__MAX_CONNS", "8"),
            ("SVC__SERVER__MAX_IN_FLIGHT", "32"),
        ],
    );
    let url = format!("{}/slow?ms=50", server.url);
    let peak = closed_loop(url.clone(), 16, Duration::from_secs(5)).await;
    // Of 160; a machine that still writes out what was just built does 85.
    assert!(peak > 50.0, "the server does its work: {peak:.0}/s");

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small positive number")]
    let offered = (peak * 10.0) as u32;
    // Warm: sockets and buffers for this many callers exist before memory is compared.
    open_loop(url.clone(), offered, Duration::from_secs(5)).await;
    let before = server.memory();
    let shots = open_loop(url, offered, Duration::from_secs(seconds)).await;
    let after = server.memory();

    let mut accepted: Vec<_> =
        shots.iter().filter(|shot| shot.status() == 204).map(|shot| shot.took).collect();
    accepted.sort_unstable();
    let refused: Vec<_> = shots.iter().filter(|shot| shot.status() == 503).collect();
    let goodput = per_second(accepted.len(), Duration::from_secs(seconds));
    let sent = per_second(shots.len(), Duration::from_secs(seconds));
    let p99 = accepted[accepted.len() * 99 / 100];
    println!(
        "peak {peak:.0}/s; offered {sent:.0}/s: goodput {goodput:.0}/s ({:.0} %), refused {}, p99 {} ms, memory {before} -> {after} KiB",
        100.0 * goodput / peak,
        refused.len(),
        p99.as_millis(),
    );

    assert!(sent > peak * 9.0, "the load was there: {sent:.0}/s");
    assert_eq!(accepted.len() + refused.len(), shots.len(), "nothing but an answer or a refusal");
    for shot in &refused {
        let answer = shot.answer.as_ref().unwrap();
        assert_eq!((answer.problem().as_str(), answer.header("retry-after")), ("overloaded", "1"));
    }
    assert!(goodput >= 0.8 * peak, "goodput {goodput:.0}/s of {peak:.0}/s");
    assert!(p99 < Duration::from_secs(2), "{p99:?}");
    assert!(after < before + before / 5 + 8 * 1024, "memory grew from {before} to {after} KiB");
}
