//! Which texts have a word: a list as it is kept.
//!
//! A list is a run of variable-length numbers, three for each text: how far its number is from the one before,
//! how often the word is in it, and how many words it has. So a list needs about four bytes for each text, and
//! with the number of texts in all it is everything that BM25 asks for.

/// A text that has a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Posting {
    pub unit: i64,
    /// How often the word is in it.
    pub count: u32,
    /// How many words it has.
    pub length: u32,
}

/// Lists are cut into blocks of so many numbers of texts, as a power of two: what is written often stays small.
pub(crate) const BLOCK_BITS: u32 = 12;

/// The block of a text.
pub const fn block(unit: i64) -> i64 {
    unit >> BLOCK_BITS
}

/// The first text of a block.
pub const fn first_of(block: i64) -> i64 {
    block << BLOCK_BITS
}

/// A list as it is kept. The texts are in the order of their numbers, each once, all of one block.
pub fn encode(postings: &[Posting]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(postings.len() * 4);
    let mut before = postings.first().map_or(0, |first| block(first.unit) << BLOCK_BITS);
    for posting in postings {
        put(&mut bytes, posting.unit.abs_diff(before));
        put(&mut bytes, u64::from(posting.count));
        put(&mut bytes, u64::from(posting.length));
        before = posting.unit;
    }
    bytes
}

/// Reads a list of a block. `None` if it is none.
pub fn decode(block: i64, bytes: &[u8]) -> Option<Vec<Posting>> {
    let mut postings = Vec::with_capacity(bytes.len() / 4);
    each(block, bytes, |posting| postings.push(posting))?;
    Some(postings)
}

/// Goes through a list of a block. `None` if it is none.
pub(crate) fn each(block: i64, mut bytes: &[u8], mut see: impl FnMut(Posting)) -> Option<()> {
    let mut unit = block << BLOCK_BITS;
    while !bytes.is_empty() {
        unit = unit.checked_add(i64::try_from(take(&mut bytes)?).ok()?)?;
        let count = u32::try_from(take(&mut bytes)?).ok()?;
        let length = u32::try_from(take(&mut bytes)?).ok()?;
        see(Posting { unit, count, length });
    }
    Some(())
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(u8::try_from(number & 0x7f).unwrap_or(0) | 0x80);
        number >>= 7;
    }
    bytes.push(u8::try_from(number).unwrap_or(0));
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7f).checked_shl(shift)?;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn posting(unit: i64, count: u32, length: u32) -> Posting {
        Posting { unit, count, length }
    }

    #[test]
    fn a_list_comes_back_as_it_was() {
        let mut random = Random::new(3);
        for _ in 0..2_000 {
            let first = i64::try_from(random.below(1 << 40)).unwrap();
            let end = (block(first) + 1) << BLOCK_BITS;
            let mut list = Vec::new();
            let mut unit = first;
            while unit < end && list.len() < random.below(50) {
                let count = u32::try_from(1 + random.below(400)).unwrap();
                list.push(posting(unit, count, u32::try_from(random.below(1 << 20)).unwrap()));
                unit += 1 + i64::try_from(random.below(300)).unwrap();
            }
            assert_eq!(decode(block(first), &encode(&list)), Some(list));
        }
        assert_eq!(encode(&[posting(4_100, 1, 20), posting(4_101, 2, 30)]).len(), 6);
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for bytes in [&[0x80][..], &[1], &[1, 2], &[0xff; 11], &[1, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1]] {
            assert_eq!(decode(0, bytes), None, "{bytes:?}");
        }
        assert_eq!(decode(7, &[]), Some(Vec::new()));
    }
}
