//! Opaque cursors: the key of the last row, sealed and bound to the list it came from.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// 16 bytes: nobody gains anything from forging a cursor but a strange page of what they may read anyway.
const SEAL: usize = 16;

/// The key that seals cursors; all processes with the same service secret read each other's.
pub(crate) struct CursorKey([u8; 32]);

impl CursorKey {
    pub(crate) fn derive(secret: &[u8]) -> Self {
        let mut key = [0; 32];
        Hkdf::<Sha256>::new(None, secret)
            .expand(b"okt cursor v1", &mut key)
            .expect("32 bytes are a valid length");
        Self(key)
    }

    /// `scope` is the path and the filters of the list.
    pub(crate) fn seal(&self, scope: &str, position: &[u8]) -> String {
        let mut bytes = self.tag(scope, position).to_vec();
        bytes.extend_from_slice(position);
        BASE64_URL_SAFE_NO_PAD.encode(bytes)
    }

    /// `None` when the cursor was altered, made elsewhere, or made for another list.
    pub(crate) fn open(&self, scope: &str, cursor: &str) -> Option<Vec<u8>> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(cursor).ok()?;
        let (seal, position) = bytes.split_at_checked(SEAL)?;
        bool::from(self.tag(scope, position).ct_eq(seal)).then(|| position.to_vec())
    }

    fn tag(&self, scope: &str, position: &[u8]) -> [u8; SEAL] {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("any key length is valid");
        mac.update(&(scope.len() as u64).to_be_bytes());
        mac.update(scope.as_bytes());
        mac.update(position);
        let full = mac.finalize().into_bytes();
        full[..SEAL].try_into().expect("SHA-256 is longer than the seal")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_opens_only_whole_with_its_key_and_in_its_scope() {
        let key = CursorKey::derive(b"a secret");
        let cursor = key.seal("/a?q=1", b"[7]");
        assert_eq!(key.open("/a?q=1", &cursor).as_deref(), Some(&b"[7]"[..]));
        assert_eq!(key.open("/a?q=2", &cursor), None);
        assert_eq!(CursorKey::derive(b"another").open("/a?q=1", &cursor), None);
        for at in 0..cursor.len() {
            let mut altered = cursor.clone().into_bytes();
            altered[at] = if altered[at] == b'A' { b'B' } else { b'A' };
            let altered = String::from_utf8(altered).unwrap();
            let opened = key.open("/a?q=1", &altered);
            // The last character may carry bits that decode to the same bytes; then nothing was altered.
            assert!(opened.is_none() || opened.as_deref() == Some(b"[7]"), "{altered}");
        }
        assert_eq!(key.open("/a?q=1", ""), None);
    }
}
