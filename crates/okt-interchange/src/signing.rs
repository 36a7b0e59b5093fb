//! How a request to a registry is signed: HTTP Message Signatures (RFC 9421) with `hmac-sha256` over method, target and the
//! digest of the body (RFC 9530).

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

/// Headers of a signed request.
pub const CONTENT_DIGEST: &str = "content-digest";
pub const SIGNATURE_INPUT: &str = "signature-input";
pub const SIGNATURE: &str = "signature";

const COVERED: &str = "(\"@method\" \"@request-target\" \"content-digest\")";

/// A key as it is shown once, in its two parts: what it is called by, and the secret.
pub fn split_key(key: &str) -> Option<(&str, &str)> {
    let (id, secret) = key.split_once('.')?;
    let plain = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    };
    (plain(id) && plain(secret)).then_some((id, secret))
}

/// What is signed.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    pub method: &'a str,
    /// Path and query.
    pub target: &'a str,
    /// The value of `Content-Digest`.
    pub digest: &'a str,
}

/// What a signature says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// In seconds since 1970.
    pub created: i64,
    pub nonce: String,
    pub keyid: String,
}

impl Stamp {
    /// The value of `Signature-Input`, without the label.
    fn parameters(&self) -> String {
        let Self { created, nonce, keyid } = self;
        format!("{COVERED};created={created};nonce=\"{nonce}\";keyid=\"{keyid}\";alg=\"hmac-sha256\"")
    }
}

/// The digest of a body.
pub fn digest(body: &[u8]) -> String {
    digest_of(Sha256::digest(body).into())
}

/// The digest of a body whose SHA-256 is known.
pub fn digest_of(sha256: [u8; 32]) -> String {
    format!("sha-256=:{}:", STANDARD.encode(sha256))
}

/// The values of `Signature-Input` and `Signature`.
pub fn sign(secret: &str, message: Message<'_>, stamp: &Stamp) -> (String, String) {
    let parameters = stamp.parameters();
    let signature = mac(secret, message, &parameters).finalize().into_bytes();
    (format!("okt={parameters}"), format!("okt=:{}:", STANDARD.encode(signature)))
}

/// A signature that was sent, not verified yet.
#[derive(Clone, Debug)]
pub struct Sent {
    pub stamp: Stamp,
    parameters: String,
    signature: Vec<u8>,
}

impl Sent {
    /// Reads the two headers. `None` if they are not what [`sign`] makes, with any label and any order of parameters.
    pub fn read(input: &str, signature: &str) -> Option<Self> {
        let (label, parameters) = input.trim().split_once('=')?;
        let rest = parameters.strip_prefix(COVERED)?;
        let (mut created, mut nonce, mut keyid) = (None, None, None);
        for parameter in rest.split(';').skip(1) {
            let (name, value) = parameter.split_once('=')?;
            let text = || value.strip_prefix('"')?.strip_suffix('"').filter(|text| !text.contains('"'));
            match name {
                "created" if created.is_none() => created = Some(value.parse().ok()?),
                "nonce" if nonce.is_none() => nonce = Some(text()?.to_owned()),
                "keyid" if keyid.is_none() => keyid = Some(text()?.to_owned()),
                "alg" if text()? == "hmac-sha256" => {}
                _ => return None,
            }
        }
        let signature = signature.trim().strip_prefix(label)?.strip_prefix("=:")?.strip_suffix(':')?;
        Some(Self {
            stamp: Stamp {
                created: created?,
                nonce: nonce.filter(|nonce| (8..=100).contains(&nonce.len()))?,
                keyid: keyid.filter(|id| id.len() <= 100)?,
            },
            parameters: parameters.to_owned(),
            signature: STANDARD.decode(signature).ok()?,
        })
    }

    /// Whether it was made with this secret over this message.
    pub fn is_valid(&self, secret: &str, message: Message<'_>) -> bool {
        mac(secret, message, &self.parameters).verify_slice(&self.signature).is_ok()
    }
}

fn mac(secret: &str, message: Message<'_>, parameters: &str) -> Hmac<Sha256> {
    let Message { method, target, digest } = message;
    let mut base = String::new();
    // Writing to a string never fails.
    let _ = write!(
        base,
        "\"@method\": {method}\n\"@request-target\": {target}\n\"content-digest\": {digest}\n\"@signature-params\": {parameters}"
    );
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("a key of any length is valid");
    mac.update(base.as_bytes());
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP: (i64, &str, &str) = (1_700_000_000, "b3k2pp5k7z-50gnwp", "okg_1");

    fn stamp() -> Stamp {
        Stamp { created: STAMP.0, nonce: STAMP.1.to_owned(), keyid: STAMP.2.to_owned() }
    }

    #[test]
    fn what_was_signed_is_valid_and_nothing_else_is() {
        let digest = digest(b"{}");
        let message = Message { method: "POST", target: "/api/v1/sources?x=1", digest: &digest };
        let (input, signature) = sign("secret", message, &stamp());
        let sent = Sent::read(&input, &signature).unwrap();
        assert_eq!(sent.stamp, stamp());
        assert!(sent.is_valid("secret", message));
        assert!(!sent.is_valid("other", message));
        let other = super::digest(b"[]");
        for altered in [
            Message { method: "GET", ..message },
            Message { target: "/api/v1/sources?x=2", ..message },
            Message { digest: &other, ..message },
        ] {
            assert!(!sent.is_valid("secret", altered), "{altered:?}");
        }
        let later = input.replace("1700000000", "1700000001");
        assert!(
            !Sent::read(&later, &signature).unwrap().is_valid("secret", message),
            "the time is signed too"
        );
    }

    #[test]
    fn headers_that_cover_less_are_not_read() {
        let (input, signature) = sign("s", Message { method: "GET", target: "/", digest: "" }, &stamp());
        for (from, to) in [
            (" \"content-digest\"", ""),
            ("hmac-sha256", "none"),
            ("created=1700000000;", ""),
            ("nonce=\"b3k2pp5k7z-50gnwp\";", ""),
            ("okt=", "x="),
            (";alg", ";created=1;alg"),
        ] {
            assert!(Sent::read(&input.replace(from, to), &signature).is_none(), "{from}");
        }
        assert!(Sent::read(&input, "okt=:not base64:").is_none());
    }

    #[test]
    fn the_digest_is_that_of_rfc_9530() {
        // The example of the RFC, appendix B.1.
        let body = b"{\"hello\": \"world\"}\n";
        assert_eq!(digest(body), "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:");
    }

    #[test]
    fn keys_have_two_parts() {
        assert_eq!(split_key("okg_a.b-c_d"), Some(("okg_a", "b-c_d")));
        for bad in ["", "a", ".b", "a.", "a.b.c", "a\".b"] {
            assert_eq!(split_key(bad), None, "{bad}");
        }
    }
}
