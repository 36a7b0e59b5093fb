//! Jobs under every accident we could think of: each file is one, with a seed that it prints. The long forms are run by
//! `okt-test soak`, the short ones by the tests.

pub mod fairness;
pub mod frozen;
pub mod kills;
pub mod kinds;
pub mod outages;
pub mod poison;
pub mod recovery;
pub mod ticks;
mod workers;

pub use workers::{TestWorkers, start, work as worker};

/// Numbers that look random and come again with the same seed.
pub struct Dice(u64);

impl Dice {
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// One of these.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.index(of.len())]
    }

    /// From 0 to below `limit`, for a list of so many.
    pub fn index(&mut self, limit: usize) -> usize {
        usize::try_from(self.below(limit as u64)).unwrap_or(0)
    }

    /// From 0 to below `limit`.
    pub const fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }
}

/// A seed that differs from run to run.
pub fn new_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0_u8) % 1_000_000
}

/// The value below which this share of them lies.
pub fn percentile(values: &mut [f64], share: f64) -> f64 {
    assert!(!values.is_empty(), "nothing was measured");
    values.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a few thousand"
    )]
    let at = ((values.len() as f64 * share).ceil() as usize).clamp(1, values.len());
    values[at - 1]
}
