//! Unpacking, with both sides counted.

use bytes::{Buf as _, Bytes};
use flate2::{Decompress, FlushDecompress, Status};

use super::error::FetchError;

/// Honest text packs 3 to 20 to 1; zeros pack 1,000 to 1.
const MAX_RATIO: u64 = 100;
/// What little answers unpack to is not worth an argument.
const RATIO_FREE: u64 = 1024 * 1024;
const PIECE: usize = 64 * 1024;

pub(super) struct Gunzip {
    inflate: Decompress,
    packed: Bytes,
    ended: bool,
}

impl Gunzip {
    pub(super) fn new() -> Self {
        Self { inflate: Decompress::new_gzip(15), packed: Bytes::new(), ended: false }
    }

    /// Takes what arrived; to be called when [`Self::next`] has nothing left.
    pub(super) fn feed(&mut self, packed: Bytes) {
        self.packed = packed;
    }

    /// The next piece, as long as what was fed yields one.
    pub(super) fn next(&mut self) -> Result<Option<Bytes>, FetchError> {
        if self.ended {
            return if self.packed.is_empty() { Ok(None) } else { Err(FetchError::Damaged) };
        }
        let mut piece = Vec::with_capacity(PIECE);
        let before = self.inflate.total_in();
        let status = self
            .inflate
            .decompress_vec(&self.packed, &mut piece, FlushDecompress::None)
            .map_err(|_| FetchError::Damaged)?;
        let (packed, unpacked) = (self.inflate.total_in(), self.inflate.total_out());
        self.packed.advance(usize::try_from(packed - before).unwrap_or(usize::MAX));
        self.ended = status == Status::StreamEnd;
        if unpacked > RATIO_FREE && unpacked > packed * MAX_RATIO {
            return Err(FetchError::Bomb { limit: MAX_RATIO });
        }
        if piece.is_empty() { Ok(None) } else { Ok(Some(piece.into())) }
    }

    /// Called when nothing more arrives. An answer without a body has no end either.
    pub(super) fn finish(&self) -> Result<(), FetchError> {
        if self.ended || self.inflate.total_in() == 0 { Ok(()) } else { Err(FetchError::Damaged) }
    }
}
