//! What becomes of a request, drawn from numbers that come again.

use std::f64::consts::TAU;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use super::{Behaviour, Fate, Latency};

/// Names a request by its body.
pub(super) fn name(body: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(body);
    hasher.finish()
}

/// The fate of a request that came so often before, and how long its answer takes.
pub(super) fn draw(behaviour: &Behaviour, name: u64, before: u64) -> (Fate, Duration) {
    let chance = |lane: u8| chance((behaviour.seed, name, before, lane));
    let mut rest = chance(0);
    let mut fate = Fate::Good;
    for (fault, share) in behaviour.faults.shares() {
        if rest < share {
            fate = fault;
            break;
        }
        rest -= share;
    }
    let wait = match behaviour.latency {
        Latency::Fixed(milliseconds) => Duration::from_millis(milliseconds),
        Latency::LogNormal { median_ms, sigma } => {
            // Box and Muller: two even numbers make a normal one. The first is never 0.
            let normal = (-2.0 * (1.0 - chance(1)).ln()).sqrt() * (TAU * chance(2)).cos();
            Duration::from_secs_f64((median_ms * (sigma * normal).exp() / 1_000.0).clamp(0.0, 3_600.0))
        }
    };
    (fate, wait)
}

/// From 0 up to but not 1.
fn chance(of: (u64, u64, u64, u8)) -> f64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    let bits = u32::try_from(hasher.finish() >> 32).unwrap_or(0);
    f64::from(bits) / (f64::from(u32::MAX) + 1.0)
}
