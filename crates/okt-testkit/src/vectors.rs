//! Vectors that lie as those of models do: in heaps, some of which are near each other. The same ones come with the same
//! seed.

pub mod measure;

use okt_vectors::Point;
use uuid::Uuid;

use crate::soak::Dice;

pub struct Cloud {
    dice: Dice,
    centres: Vec<Vec<f32>>,
}

/// How far from the middle of its heap a vector lies, for a middle whose numbers lie between -1 and 1.
const SPREAD: f32 = 0.5;

impl Cloud {
    pub fn new(seed: u64, dimensions: u32, heaps: usize) -> Self {
        let mut dice = Dice::new(seed);
        let centres = (0..heaps).map(|_| (0..dimensions).map(|_| number(&mut dice)).collect()).collect();
        Self { dice, centres }
    }

    /// The next vector.
    pub fn vector(&mut self) -> Vec<f32> {
        let heap = self.dice.index(self.centres.len());
        let Self { dice, centres } = self;
        centres[heap].iter().map(|centre| centre + SPREAD * number(dice)).collect()
    }

    pub fn vectors(&mut self, count: usize) -> Vec<Vec<f32>> {
        (0..count).map(|_| self.vector()).collect()
    }

    pub fn points(&mut self, count: usize) -> Vec<Point> {
        (0..count).map(|_| Point { id: self.id(), vector: self.vector() }).collect()
    }

    pub fn id(&mut self) -> Uuid {
        Uuid::from_u64_pair(self.dice.below(u64::MAX), self.dice.below(u64::MAX))
    }
}

/// Of the angle between two vectors, in the plainest way.
pub fn cosine(one: &[f32], other: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    dot(one, other) / (dot(one, one) * dot(other, other)).sqrt()
}

/// Between -1 and 1.
fn number(dice: &mut Dice) -> f32 {
    #[expect(clippy::cast_precision_loss, reason = "below a million")]
    let number = dice.below(1_000_000) as f32;
    number / 500_000.0 - 1.0
}
