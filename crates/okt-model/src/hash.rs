//! What a text is called by, however it was typed.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// The SHA-256 of a text as [`content_hash`] sees it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContentHash(pub [u8; 32]);

/// The hash of what a text says. Installations compare it with each other, so this is a contract:
///
/// 1. white space at both ends is taken away;
/// 2. every run of white space inside becomes one space (U+0020);
/// 3. the text is brought into Normalization Form C;
/// 4. SHA-256 over its UTF-8.
///
/// White space is what has the property `White_Space` in Unicode: no-break and ideographic spaces are, U+200B is not.
pub fn content_hash(text: &str) -> ContentHash {
    // ASCII is in every normal form, and most facts are tidy.
    if text.is_ascii() && is_tidy(text.as_bytes()) {
        return ContentHash(sha256(text));
    }
    let text = collapsed(text);
    if is_nfc_quick(text.chars()) == IsNormalized::Yes {
        return ContentHash(sha256(&text));
    }
    ContentHash(sha256(&text.nfc().collect::<String>()))
}

/// Whether ASCII has no white space at its ends and only single spaces inside.
fn is_tidy(text: &[u8]) -> bool {
    let mut after_space = true;
    for &byte in text {
        if byte == b' ' {
            if after_space {
                return false;
            }
            after_space = true;
        } else if matches!(byte, b'\t'..=b'\r') {
            return false;
        } else {
            after_space = false;
        }
    }
    !after_space || text.is_empty()
}

fn collapsed(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

fn sha256(text: &str) -> [u8; 32] {
    Sha256::digest(text).into()
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The text is no SHA-256 in lower-case hexadecimal.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a SHA-256 of 64 lower-case hexadecimal digits")]
pub struct NotAHash;

impl FromStr for ContentHash {
    type Err = NotAHash;

    fn from_str(text: &str) -> Result<Self, NotAHash> {
        from_hex(text).map(Self)
    }
}

impl TryFrom<&[u8]> for ContentHash {
    type Error = NotAHash;

    fn try_from(bytes: &[u8]) -> Result<Self, NotAHash> {
        bytes.try_into().map(Self).map_err(|_| NotAHash)
    }
}

/// The 32 bytes that 64 lower-case hexadecimal digits stand for.
pub(crate) fn from_hex(text: &str) -> Result<[u8; 32], NotAHash> {
    let mut hash = [0; 32];
    if text.bytes().any(|digit| digit.is_ascii_uppercase()) {
        return Err(NotAHash);
    }
    hex::decode_to_slice(text, &mut hash).map_err(|_| NotAHash)?;
    Ok(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The contract, step by step, with no way around any of it.
    fn plain(text: &str) -> ContentHash {
        let trimmed = text.trim_matches(char::is_whitespace);
        let mut single = String::new();
        for c in trimmed.chars() {
            if !c.is_whitespace() {
                single.push(c);
            } else if !single.ends_with(' ') {
                single.push(' ');
            }
        }
        let normal: String = single.nfc().collect();
        ContentHash(Sha256::digest(normal.as_bytes()).into())
    }

    /// A small generator of our own; the same texts every time.
    struct Dice(u64);

    impl Dice {
        fn roll(&mut self, sides: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(self.0 >> 33).unwrap() % sides
        }
    }

    const ASCII: [&str; 13] =
        ["a", "B", "7", ".", " ", " ", "  ", "\t", "\n", "\u{b}", "\r\n", "\0", "\u{1f}"];
    /// What is joined, parted, put in order or left alone by Normalization Form C, and spaces that look like others.
    const OTHER: [&str; 52] = [
        // Letters with one mark, as one character and as two, and marks that stand alone.
        "é",
        "e\u{301}",
        "ö",
        "o",
        "E",
        "\u{301}",
        "\u{327}",
        "\u{338}",
        "\u{345}",
        // Two marks, above and below, in both orders, and two of one place whose order must stay.
        "o\u{302}\u{323}",
        "o\u{323}\u{302}",
        "\u{1ed9}",
        "\u{1ecd}\u{302}",
        "u\u{308}\u{304}",
        "u\u{304}\u{308}",
        "q\u{307}\u{323}",
        "\u{323}\u{307}",
        "\u{3b1}\u{313}\u{301}\u{345}",
        "\u{3b1}\u{345}\u{301}",
        // Characters that are never kept: ångström, ohm, kelvin, Greek question mark and tonos, an angle bracket.
        "\u{212b}",
        "\u{2126}",
        "\u{212a}",
        "\u{37e}",
        "\u{1fbe}",
        "\u{2329}",
        "\u{1f71}",
        // Marks that fall apart.
        "\u{344}",
        "\u{340}",
        "\u{343}",
        "\u{f73}",
        // What falls apart and is not put together again.
        "\u{958}",
        "\u{915}\u{93c}",
        "\u{fb1d}",
        "\u{2adc}",
        "\u{1d15e}",
        "\u{f43}",
        // Compatibility characters, which stay.
        "ﬁ",
        "²",
        // Hangul: syllables of two and three, whole and in parts, and parts alone.
        "한",
        "\u{1112}\u{1161}\u{11ab}",
        "하\u{11ab}",
        "가",
        "\u{1100}",
        "\u{1161}",
        "\u{11a7}",
        "漢",
        "\u{f900}",
        // Spaces, and two that are none.
        "\u{a0}",
        "\u{3000}",
        "\u{2000}",
        "\u{200b}",
        "\u{85}",
    ];

    /// How many of so many texts took the way of tidy ASCII, and how many changed their form.
    fn compare_random_texts(seed: u64, rounds: u32) -> (usize, usize) {
        let mut dice = Dice(seed);
        let (mut tidy, mut composed) = (0, 0);
        let mut text = String::new();
        for round in 0..rounds {
            text.clear();
            for _ in 0..dice.roll(12) {
                let ascii = round % 4 == 0 || dice.roll(4) == 0;
                text.push_str(if ascii {
                    ASCII[dice.roll(ASCII.len())]
                } else {
                    OTHER[dice.roll(OTHER.len())]
                });
            }
            tidy += usize::from(text.is_ascii() && is_tidy(text.as_bytes()));
            composed += usize::from(is_nfc_quick(text.chars()) != IsNormalized::Yes);
            assert_eq!(content_hash(&text), plain(&text), "{text:?}");
        }
        (tidy, composed)
    }

    #[test]
    fn the_fast_ways_say_what_the_plain_one_says() {
        let (mut tidy, mut composed) = (0, 0);
        std::thread::scope(|scope| {
            let halves = [7, 8].map(|seed| scope.spawn(move || compare_random_texts(seed, 500_000)));
            for half in halves {
                let counts = half.join().unwrap();
                tidy += counts.0;
                composed += counts.1;
            }
        });
        assert!(tidy > 20_000, "the way of tidy ASCII was hardly taken: {tidy}");
        assert!(composed > 500_000, "few texts changed their form: {composed}");
    }

    #[test]
    fn known_texts_have_known_hashes() {
        // As `printf '%s' TEXT | sha256sum` has them.
        for (text, expected) in [
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            (" \t\u{3000}\n", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            ("Water boils at 100 °C.", "69466472c68db1ed8233b669e41a146f753c5c0374cf4b95b62adb58e93ca741"),
            (
                "  Water\u{a0}boils \n at 100\t°C. ",
                "69466472c68db1ed8233b669e41a146f753c5c0374cf4b95b62adb58e93ca741",
            ),
            ("Caf\u{e9}", "73473dcc12b763085904a5279d048c4d5b3b008c46f1f32443b99de04aa83a14"),
            ("Cafe\u{301}", "73473dcc12b763085904a5279d048c4d5b3b008c46f1f32443b99de04aa83a14"),
        ] {
            assert_eq!(content_hash(text).to_string(), expected, "{text:?}");
        }
    }

    #[test]
    fn a_hash_reads_back_as_written_and_nothing_else_is_one() {
        let hash = content_hash("abc");
        assert_eq!(hash.to_string().parse(), Ok(hash));
        assert_eq!(ContentHash::try_from(&hash.0[..]), Ok(hash));
        assert_eq!("abc".parse::<ContentHash>(), Err(NotAHash));
        assert_eq!(ContentHash::try_from(&hash.0[1..]), Err(NotAHash));
    }
}
