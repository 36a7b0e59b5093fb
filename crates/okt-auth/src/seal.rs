//! Encryption of what has to lie in the database and is nobody else's business.
#![expect(clippy::missing_panics_doc, reason = "the lengths are constants")]

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use hkdf::Hkdf;
use okt_model::{Error, Result};
use sha2::Sha256;

/// Bytes for one use, derived from the service's signing secret.
pub fn derived<const LENGTH: usize>(secret: &[u8], purpose: &str) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    let hkdf = Hkdf::<Sha256>::new(None, secret);
    hkdf.expand(purpose.as_bytes(), &mut bytes).expect("a few bytes are a valid length");
    bytes
}

/// A key for one use, derived from the service's signing secret; all processes with the same secret share it.
pub struct Seal(LessSafeKey);

impl Seal {
    /// `purpose` keeps the keys of different uses apart.
    pub fn derive(secret: &[u8], purpose: &str) -> Self {
        let key: [u8; 32] = derived(secret, purpose);
        Self(LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &key).expect("32 bytes are a valid key")))
    }

    /// `place` binds the result to where it is kept.
    pub fn seal(&self, place: &[u8], plain: &[u8]) -> Result<Vec<u8>> {
        let mut nonce = [0; NONCE_LEN];
        aws_lc_rs::rand::fill(&mut nonce).map_err(Error::internal)?;
        let mut sealed = plain.to_vec();
        let tag = Nonce::assume_unique_for_key(nonce);
        self.0.seal_in_place_append_tag(tag, Aad::from(place), &mut sealed).map_err(Error::internal)?;
        Ok([&nonce[..], &sealed].concat())
    }

    /// `None` when it was altered, moved, or sealed with another secret.
    pub fn open(&self, place: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = sealed.split_at_checked(NONCE_LEN)?;
        let mut sealed = sealed.to_vec();
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        Some(self.0.open_in_place(nonce, Aad::from(place), &mut sealed).ok()?.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_opens_whole_in_its_place_with_its_secret_only() {
        let seal = Seal::derive(b"secret", "a use");
        let sealed = seal.seal(b"here", b"plain").unwrap();
        assert!(!sealed.windows(5).any(|window| window == b"plain"));
        assert_ne!(sealed, seal.seal(b"here", b"plain").unwrap(), "no two alike");
        assert_eq!(seal.open(b"here", &sealed).as_deref(), Some(&b"plain"[..]));
        assert_eq!(seal.open(b"there", &sealed), None);
        assert_eq!(Seal::derive(b"secret", "another use").open(b"here", &sealed), None);
        assert_eq!(Seal::derive(b"other", "a use").open(b"here", &sealed), None);
        for at in 0..sealed.len() {
            let mut altered = sealed.clone();
            altered[at] ^= 1;
            assert_eq!(seal.open(b"here", &altered), None);
        }
        assert_eq!(seal.open(b"here", b"short"), None);
    }
}
