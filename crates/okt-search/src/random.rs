//! A small deterministic generator: what is drawn with a seed today is drawn with it on every machine.

/// Xorshift with 64 bits of state and a multiplication of what it gives. Not for secrets.
pub struct Random(u64);

impl Random {
    /// Zero is no state of the generator; every seed is mixed, so that small ones differ from the first draw
    /// on.
    pub fn new(seed: u64) -> Self {
        let mixed = (seed ^ 0x9E37_79B9_7F4A_7C15).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        Self(if mixed == 0 { 1 } else { mixed })
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below a bound; 0 for the bound 0.
    pub fn below(&mut self, bound: usize) -> usize {
        // The upper half of a product is even enough for bounds far below 2^64.
        let wide = u128::from(self.next()) * (bound as u128);
        usize::try_from(wide >> 64).unwrap_or_default()
    }
}
