//! Secrets of webhooks and what they sign, after [Standard Webhooks](https://www.standardwebhooks.com).
//!
//! Unlike every other secret that we give out, these are needed again, so they are kept: encrypted, and bound to their webhook.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use okt_config::{Config, Secret};
use okt_model::{Error, Result, WebhookId};
use rand::TryRng;
use rand::rngs::SysRng;

use crate::seal::Seal;

const PURPOSE: &str = "okt webhook secrets v1";
/// Receivers' libraries know a secret by it.
const PREFIX: &str = "whsec_";
const BYTES: usize = 32;

/// Makes secrets, and opens those that are kept.
pub struct WebhookSecrets {
    /// That of the present signing secret of the service first, then that of the one before.
    seals: Vec<Seal>,
}

impl WebhookSecrets {
    /// `secret` is the service's signing secret.
    pub fn new(config: &Config, secret: &[u8]) -> Self {
        let previous = &config.auth.jwt_secret_previous;
        let previous = (!previous.is_empty()).then(|| previous.expose().as_bytes());
        let seals = [secret].into_iter().chain(previous).map(|secret| Seal::derive(secret, PURPOSE));
        Self { seals: seals.collect() }
    }

    /// A new one: the text to hand out once, and what to keep.
    pub fn mint(&self, webhook: WebhookId) -> Result<(Secret, Vec<u8>)> {
        let mut bytes = [0; BYTES];
        SysRng.try_fill_bytes(&mut bytes).map_err(Error::internal)?;
        let sealed = self.seals[0].seal(webhook.uuid().as_bytes(), &bytes)?;
        Ok((Secret::from(format!("{PREFIX}{}", BASE64.encode(bytes))), sealed))
    }

    /// `None` when it was kept under a signing secret that the service does not have any more.
    pub fn open(&self, webhook: WebhookId, sealed: &[u8]) -> Option<WebhookSigner> {
        let bytes = self.seals.iter().find_map(|seal| seal.open(webhook.uuid().as_bytes(), sealed))?;
        Some(WebhookSigner(hmac::Key::new(hmac::HMAC_SHA256, &bytes)))
    }
}

/// An opened secret.
pub struct WebhookSigner(hmac::Key);

impl WebhookSigner {
    /// A part of the header `webhook-signature`. `timestamp` is in seconds since 1970.
    pub fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(format!("{id}.{timestamp}.").as_bytes());
        context.update(body);
        format!("v1,{}", BASE64.encode(context.sign()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(of: &[&[u8]]) -> WebhookSecrets {
        WebhookSecrets { seals: of.iter().map(|secret| Seal::derive(secret, PURPOSE)).collect() }
    }

    /// The example of the standard.
    #[test]
    fn signatures_are_those_of_the_standard() {
        let secret = BASE64.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signer = WebhookSigner(hmac::Key::new(hmac::HMAC_SHA256, &secret));
        let signature =
            signer.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_secret_is_kept_for_its_webhook_and_outlives_a_change_of_the_signing_secret() {
        let (id, other) = (WebhookId::mint(), WebhookId::mint());
        let (told, sealed) = secrets(&[b"one"]).mint(id).unwrap();
        let key = BASE64.decode(told.expose().strip_prefix("whsec_").unwrap()).unwrap();
        assert_eq!(key.len(), BYTES);
        assert!(!sealed.windows(BYTES).any(|window| window == key));
        let signed = |secrets: &WebhookSecrets| Some(secrets.open(id, &sealed)?.sign("id", 1, b"body"));
        let expected = WebhookSigner(hmac::Key::new(hmac::HMAC_SHA256, &key)).sign("id", 1, b"body");
        assert_eq!(signed(&secrets(&[b"one"])), Some(expected.clone()));
        assert_eq!(signed(&secrets(&[b"two", b"one"])), Some(expected));
        assert_eq!(signed(&secrets(&[b"two"])), None);
        assert!(secrets(&[b"one"]).open(other, &sealed).is_none());
    }
}
