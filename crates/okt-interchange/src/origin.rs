//! Who vouches for a package or a bundle: Ed25519 signatures over its SHA-256.
//!
//! A key is called by what it is: the id of a key is its public half. So anybody can verify a signature, and whether the key is one to
//! be trusted is for each repository to say.

use std::fmt;

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};

/// What carries a signature, beside the package or the bundle.
pub const HEADER: &str = "x-okt-signature";

const PUBLIC: &str = "okp_";
const SECRET: &str = "oks_";
/// 32 bytes as 43 characters, the last of which says more than is needed.
const BASE64: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

/// With what an installation signs.
pub struct SigningKey {
    pair: Ed25519KeyPair,
    id: String,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("id", &self.id).finish_non_exhaustive()
    }
}

impl SigningKey {
    /// Reads one as [`written`] writes it.
    pub fn read(text: &str) -> Option<Self> {
        let seed = decoded::<32>(text.strip_prefix(SECRET)?)?;
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).ok()?;
        let id = format!("{PUBLIC}{}", BASE64.encode(pair.public_key()));
        Some(Self { pair, id })
    }

    /// What it is called by: its public half.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The value of [`HEADER`] for what has this SHA-256.
    pub fn sign(&self, sha256: &[u8; 32]) -> String {
        format!("keyid={},sig={}", self.id, BASE64.encode(self.pair.sign(sha256)))
    }
}

/// A new key out of random bytes, to be kept.
pub fn written(seed: &[u8; 32]) -> String {
    format!("{SECRET}{}", BASE64.encode(seed))
}

/// Whether it is the id of a key.
pub fn is_key_id(text: &str) -> bool {
    text.strip_prefix(PUBLIC).and_then(decoded::<32>).is_some()
}

/// The key that a signature names; whether it made it is another question.
pub fn named(signature: &str) -> Option<&str> {
    signature.split(',').find_map(|part| part.trim().strip_prefix("keyid=")).filter(|id| is_key_id(id))
}

/// The id of the key that made this signature over what has this SHA-256. `None` if it is none, or not over that.
pub fn verified(signature: &str, sha256: &[u8; 32]) -> Option<String> {
    let (mut key, mut bytes) = (None, None);
    for part in signature.split(',') {
        match part.trim().split_once('=')? {
            ("keyid", id) if key.is_none() => key = Some(id),
            ("sig", sig) if bytes.is_none() => bytes = Some(decoded::<64>(sig)?),
            _ => return None,
        }
    }
    let (key, bytes) = (key?, bytes?);
    let public = decoded::<32>(key.strip_prefix(PUBLIC)?)?;
    // As we would write it, so that one key has one name.
    let id = format!("{PUBLIC}{}", BASE64.encode(public));
    UnparsedPublicKey::new(&ED25519, public).verify(sha256, &bytes).ok().map(|()| id)
}

fn decoded<const N: usize>(text: &str) -> Option<[u8; N]> {
    BASE64.decode(text).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_names_its_key_and_is_over_one_hash() {
        let key = SigningKey::read(&written(&[7; 32])).unwrap();
        let signature = key.sign(&[1; 32]);
        assert_eq!(verified(&signature, &[1; 32]).as_deref(), Some(key.id()));
        assert_eq!(verified(&signature, &[2; 32]), None);
        let other = SigningKey::read(&written(&[8; 32])).unwrap();
        assert_eq!(verified(&signature.replace(key.id(), other.id()), &[1; 32]), None, "another key");
        for bad in ["", "keyid=x", "sig=x", "keyid=okp_,sig=", &format!("{signature},x=1"), &signature[1..]] {
            assert_eq!(verified(bad, &[1; 32]), None, "{bad}");
        }
        assert!(is_key_id(key.id()) && !is_key_id("okp_x") && !is_key_id("okg_1"));
        assert!(SigningKey::read("oks_").is_none() && SigningKey::read(key.id()).is_none());
        assert!(!format!("{key:?}").contains("oks_"));
    }

    /// RFC 8032, section 7.1, test 1.
    #[test]
    fn keys_are_those_of_rfc_8032() {
        let seed = [
            0x9d, 0x61, 0xb1, 0x9d, 0xef, 0xfd, 0x5a, 0x60, 0xba, 0x84, 0x4a, 0xf4, 0x92, 0xec, 0x2c, 0xc4,
            0x44, 0x49, 0xc5, 0x69, 0x7b, 0x32, 0x69, 0x19, 0x70, 0x3b, 0xac, 0x03, 0x1c, 0xae, 0x7f, 0x60,
        ];
        let public = [
            0xd7, 0x5a, 0x98, 0x01, 0x82, 0xb1, 0x0a, 0xb7, 0xd5, 0x4b, 0xfe, 0xd3, 0xc9, 0x64, 0x07, 0x3a,
            0x0e, 0xe1, 0x72, 0xf3, 0xda, 0xa6, 0x23, 0x25, 0xaf, 0x02, 0x1a, 0x68, 0xf7, 0x07, 0x51, 0x1a,
        ];
        let key = SigningKey::read(&written(&seed)).unwrap();
        assert_eq!(key.id(), format!("okp_{}", BASE64.encode(public)));
    }
}
