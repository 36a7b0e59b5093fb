//! What takes the whole machine: overload, outages.

mod busy;
mod logins;
mod outage;
mod overload;

use std::time::{Duration, Instant};

use okt_testkit::client::{Answer, client};

/// The notes service, as a process.
const SERVER: &str = env!("CARGO_BIN_EXE_okt-test");

/// One request of a load: when it was sent, counted from the start, how long it took and what came back.
pub(crate) struct Shot {
    at: Duration,
    took: Duration,
    /// `None` when the connection failed.
    pub answer: Option<Answer>,
}

impl Shot {
    pub(crate) fn status(&self) -> u16 {
        self.answer.as_ref().map_or(0, |answer| answer.status.as_u16())
    }
}

/// An open loop: `rate` requests a second for `time`, whether or not the ones before have been answered.
pub(crate) async fn open_loop(url: String, rate: u32, time: Duration) -> Vec<Shot> {
    let (client, started) = (client(), Instant::now());
    let mut tick = tokio::time::interval(Duration::from_secs(1) / rate);
    let mut shots = tokio::task::JoinSet::new();
    while started.elapsed() < time {
        tick.tick().await;
        let (request, at) = (client.get(&url), started.elapsed());
        shots.spawn(async move {
            let sent = Instant::now();
            let answer = Answer::try_of(request).await.ok();
            Shot { at, took: sent.elapsed(), answer }
        });
    }
    shots.join_all().await
}

/// A closed loop: `clients` that each send the next request when the one before was answered; returns how many
/// succeeded per second.
async fn closed_loop(url: String, clients: usize, time: Duration) -> f64 {
    let started = Instant::now();
    let mut loops = tokio::task::JoinSet::new();
    for _ in 0..clients {
        let (client, url) = (client(), url.clone());
        loops.spawn(async move {
            let mut good = 0_usize;
            while started.elapsed() < time {
                if Answer::of(client.get(&url)).await.status.is_success() {
                    good += 1;
                }
            }
            good
        });
    }
    let good = loops.join_all().await.into_iter().sum();
    per_second(good, started.elapsed())
}

fn per_second(count: usize, time: Duration) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX)) / time.as_secs_f64()
}
