//! Proof of possession of a code (RFC 7636), S256 only.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// 43 to 128 unreserved characters, as verifiers are; ours are base64 of a hash, so 43.
pub fn is_challenge(text: &str) -> bool {
    is_verifier(text)
}

pub fn is_verifier(text: &str) -> bool {
    (43..=128).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte))
}

/// Whether the verifier is the one that the challenge was made of.
pub fn proves(verifier: &str, challenge: &str) -> bool {
    let made = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier));
    is_verifier(verifier) && bool::from(made.as_bytes().ct_eq(challenge.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7636, appendix B.
    const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

    #[test]
    fn the_example_of_the_standard_proves_itself() {
        assert!(is_challenge(CHALLENGE));
        assert!(proves(VERIFIER, CHALLENGE));
        assert!(!proves(CHALLENGE, CHALLENGE), "plain");
        assert!(!proves(&VERIFIER.replace('d', "e"), CHALLENGE));
        assert!(!proves(VERIFIER, &CHALLENGE.to_lowercase()));
    }

    #[test]
    fn lengths_and_characters_are_those_of_the_standard() {
        for (text, expected) in [
            ("a".repeat(42), false),
            ("a".repeat(43), true),
            ("a".repeat(128), true),
            ("a".repeat(129), false),
            (format!("{}-._~", "A9".repeat(20)), true),
            (format!("{}=", "a".repeat(43)), false),
            (format!("{} ", "a".repeat(43)), false),
            (format!("{}é", "a".repeat(43)), false),
        ] {
            assert_eq!(is_verifier(&text), expected, "{text}");
        }
    }
}
