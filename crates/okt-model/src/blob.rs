//! Files that are kept: what they are called by.

use std::fmt;
use std::str::FromStr;

use crate::hash::{NotAHash, from_hex};

/// The SHA-256 of a file's bytes, and so its name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlobHash(pub [u8; 32]);

/// A file that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blob {
    pub hash: BlobHash,
    pub size: u64,
}

impl fmt::Display for BlobHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for BlobHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for BlobHash {
    type Err = NotAHash;

    fn from_str(text: &str) -> Result<Self, NotAHash> {
        from_hex(text).map(Self)
    }
}

impl TryFrom<&[u8]> for BlobHash {
    type Error = NotAHash;

    fn try_from(bytes: &[u8]) -> Result<Self, NotAHash> {
        bytes.try_into().map(Self).map_err(|_| NotAHash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_reads_back_as_written_and_nothing_else_is_one() {
        let hash = BlobHash(std::array::from_fn(|at| u8::try_from(at * 7).unwrap()));
        assert_eq!(hash.to_string().parse(), Ok(hash));
        let (short, upper) = ("ab".repeat(31), "AB".repeat(32));
        for text in ["", "../../etc/passwd", &short, &upper, &"+1".repeat(32), &"é".repeat(32)] {
            assert_eq!(text.parse::<BlobHash>(), Err(NotAHash), "{text}");
        }
    }
}
