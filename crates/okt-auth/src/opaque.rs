//! Opaque secrets: a prefix that scanners recognise, 238 random bits, and a checksum that catches typing errors.
//!
//! Only the hash of one is ever kept. It needs no salt and no slow hashing, because nobody can guess 238 bits.

use std::fmt;

use okt_config::Secret;
use okt_model::{Error, Result};
use rand::TryRng;
use rand::rngs::SysRng;
use sha2::{Digest, Sha256};

/// What a secret is for. Its hash covers the prefix, so that one kind can't be found among another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefix {
    ApiKey,
    SessionRefresh,
    /// The refresh token of an OAuth client.
    ClientRefresh,
    /// An authorization code.
    Code,
    ClientSecret,
    /// By which a client reads, changes and deletes its registration.
    ClientRegistration,
    /// The cookie of a browser in which somebody is asked for an authorization.
    Browser,
    /// By which somebody joins a repository.
    Invitation,
}

impl Prefix {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ApiKey => "okt_",
            Self::SessionRefresh => "oktr_",
            Self::ClientRefresh => "okto_",
            Self::Code => "oktc_",
            Self::ClientSecret => "okts_",
            Self::ClientRegistration => "oktm_",
            Self::Browser => "oktb_",
            Self::Invitation => "okti_",
        }
    }
}

/// SHA-256 of a whole secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Hash([u8; 32]);

impl Hash {
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    fn of(raw: &str) -> Self {
        Self(Sha256::digest(raw).into())
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hash(…)")
    }
}

/// Makes a new one: the text to hand out once, and the hash to keep.
pub fn mint(prefix: Prefix) -> Result<(Secret, Hash)> {
    let mut raw = String::with_capacity(prefix.as_str().len() + RANDOM + CHECKSUM);
    raw.push_str(prefix.as_str());
    push_random(&mut raw)?;
    let checksum = checksum(&raw);
    raw.extend(checksum.map(char::from));
    let hash = Hash::of(&raw);
    Ok((Secret::from(raw), hash))
}

/// The hash to look up; `None` when no secret of this kind can read like that.
pub fn parse(prefix: Prefix, raw: &str) -> Option<Hash> {
    let rest = raw.strip_prefix(prefix.as_str())?;
    if rest.len() != RANDOM + CHECKSUM || !rest.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let (body, sum) = raw.split_at(raw.len() - CHECKSUM);
    (sum.as_bytes() == checksum(body)).then(|| Hash::of(raw))
}

/// A password for somebody to read and type: 120 random bits in characters that can't be mistaken for each other.
pub fn password() -> Result<Secret> {
    let mut bytes = [0; LEGIBLE];
    SysRng.try_fill_bytes(&mut bytes).map_err(Error::internal)?;
    Ok(legible(&bytes))
}

/// As many characters as there are bytes, in groups. Every character is as likely as any other.
pub fn legible(bytes: &[u8; LEGIBLE]) -> Secret {
    let characters = bytes.iter().map(|byte| char::from(PLAIN32[usize::from(byte % 32)]));
    let mut text = String::with_capacity(LEGIBLE + LEGIBLE / GROUP);
    for (at, character) in characters.enumerate() {
        if at > 0 && at % GROUP == 0 {
            text.push('-');
        }
        text.push(character);
    }
    Secret::from(text)
}

/// How many characters of a legible secret are random: five bits each.
pub const LEGIBLE: usize = 24;
const GROUP: usize = 6;
/// Without o, i and l, which look like 0 and 1, and without u.
const PLAIN32: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// The beginning, by which the owner knows a secret in a list; what is left out is still far beyond guessing.
pub fn display_prefix(raw: &str) -> String {
    raw.chars().take(12).collect()
}

const RANDOM: usize = 40;
const CHECKSUM: usize = 6;
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

fn push_random(raw: &mut String) -> Result<()> {
    let end = raw.len() + RANDOM;
    let mut bytes = [0; 64];
    while raw.len() < end {
        SysRng.try_fill_bytes(&mut bytes).map_err(Error::internal)?;
        // Bytes from 248 on are thrown away: they would make the first eight characters likelier than the others.
        let fair = bytes.iter().filter(|byte| **byte < 248);
        raw.extend(fair.map(|byte| char::from(BASE62[usize::from(byte % 62)])).take(end - raw.len()));
    }
    Ok(())
}

/// CRC32 in base 62, most significant digit first; six digits hold any 32 bits.
fn checksum(body: &str) -> [u8; CHECKSUM] {
    let mut rest = crc32fast::hash(body.as_bytes());
    let mut digits = [0; CHECKSUM];
    for digit in digits.iter_mut().rev() {
        *digit = BASE62[(rest % 62) as usize];
        rest /= 62;
    }
    digits
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const PREFIXES: [Prefix; 8] = [
        Prefix::ApiKey,
        Prefix::SessionRefresh,
        Prefix::ClientRefresh,
        Prefix::Code,
        Prefix::ClientSecret,
        Prefix::ClientRegistration,
        Prefix::Browser,
        Prefix::Invitation,
    ];

    #[test]
    fn what_is_minted_parses_to_its_hash_and_to_nothing_of_another_kind() {
        let mut seen = HashSet::new();
        for prefix in PREFIXES {
            for _ in 0..500 {
                let (secret, hash) = mint(prefix).unwrap();
                let raw = secret.expose();
                assert!(raw.starts_with(prefix.as_str()));
                assert_eq!(raw.len(), prefix.as_str().len() + 46);
                assert_eq!(parse(prefix, raw), Some(hash));
                assert!(PREFIXES.iter().all(|other| *other == prefix || parse(*other, raw).is_none()));
                assert!(seen.insert(*hash.as_bytes()), "no two alike");
            }
        }
    }

    #[test]
    fn any_single_wrong_character_is_noticed() {
        let (secret, _) = mint(Prefix::ApiKey).unwrap();
        let raw = secret.expose();
        for at in 0..raw.len() {
            for wrong in BASE62.iter().map(|byte| char::from(*byte)).chain(['_', ' ', '-', 'é']) {
                let typo = format!("{}{wrong}{}", &raw[..at], &raw[at + 1..]);
                assert_eq!(parse(Prefix::ApiKey, &typo).is_some(), typo == raw, "at {at}: {wrong}");
            }
        }
    }

    #[test]
    fn swapped_neighbours_are_noticed() {
        let (secret, _) = mint(Prefix::ApiKey).unwrap();
        let raw = secret.expose();
        for at in 0..raw.len() - 1 {
            let mut bytes = raw.as_bytes().to_vec();
            bytes.swap(at, at + 1);
            let typo = String::from_utf8(bytes).unwrap();
            assert_eq!(parse(Prefix::ApiKey, &typo).is_some(), typo == raw, "at {at}");
        }
    }

    fn checked(body: &str) -> String {
        format!("{body}{}", String::from_utf8_lossy(&checksum(body)))
    }

    #[test]
    fn other_shapes_are_refused() {
        let (secret, _) = mint(Prefix::ApiKey).unwrap();
        let raw = secret.expose();
        let wrong = [
            String::new(),
            "okt_".to_owned(),
            raw[4..].to_owned(),
            raw[..raw.len() - 1].to_owned(),
            format!("{raw}0"),
            format!(" {raw}"),
            format!("{raw}\n"),
            raw.replace("okt_", "ghp_"),
            raw.replace("okt_", "OKT_"),
            raw.to_uppercase(),
            format!("okt_{}", "é".repeat(23)),
            format!("okt_0{}0", "é".repeat(22)),
            checked(&format!("okt_{}", "-".repeat(40))),
            checked(&format!("okt_{}", "é".repeat(20))),
            checked(&format!("okt_{}", "0".repeat(39))),
            format!("okt_{}", "0".repeat(46)),
            format!("okt_{}", "0".repeat(100_000)),
        ];
        for text in wrong {
            assert_eq!(parse(Prefix::ApiKey, &text), None, "{text:.60}");
        }
    }

    /// A known one, computed by other means, so that the format can't drift from what was handed out.
    #[test]
    fn the_format_stays() {
        let raw = format!("okt_{}0mywNu", "0123456789".repeat(4));
        let hash = parse(Prefix::ApiKey, &raw).unwrap();
        assert_eq!(hash.as_bytes()[..4], [0xf7, 0x47, 0x4a, 0x30]);
    }

    #[test]
    fn a_password_can_be_read_and_typed() {
        let mut seen = HashSet::new();
        for _ in 0..500 {
            let secret = password().unwrap();
            assert!(secret.expose().split('-').all(|group| group.len() == 6), "{}", secret.expose());
            assert_eq!(secret.expose().len(), 27);
            assert!(!secret.expose().contains(['o', 'i', 'l', 'O', 'I', 'L']), "{}", secret.expose());
            assert!(seen.insert(secret.expose().to_owned()), "no two alike");
        }
        assert_eq!(legible(&[0xff; LEGIBLE]).expose(), "zzzzzz-zzzzzz-zzzzzz-zzzzzz");
    }

    #[test]
    fn every_character_is_about_as_likely() {
        const SECRETS: u32 = 5_000;
        let mut counts = [0_u32; 128];
        for _ in 0..SECRETS {
            let (secret, _) = mint(Prefix::ApiKey).unwrap();
            secret.expose()[4..44].bytes().for_each(|byte| counts[usize::from(byte)] += 1);
        }
        let mean = SECRETS * 40 / 62;
        for byte in BASE62 {
            let count = counts[usize::from(*byte)];
            // Seven standard deviations; taking bytes modulo 62 without throwing any away would be twelve off.
            assert!(count.abs_diff(mean) < 400, "{}: {count} of {mean}", char::from(*byte));
        }
    }

    #[test]
    fn a_list_shows_twelve_characters_and_debug_shows_none() {
        let (secret, hash) = mint(Prefix::ApiKey).unwrap();
        assert_eq!(display_prefix(secret.expose()), secret.expose()[..12]);
        assert_eq!(display_prefix("ä"), "ä");
        assert_eq!(format!("{hash:?}"), "Hash(…)");
    }
}
