//! How a request says whose it is.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue};
use okt_config::{AuthMode, Secret};
use okt_interchange::signing::{self, Message, Stamp};
use okt_model::Cause;
use rand::TryRng as _;
use rand::rngs::SysRng;
use url::Url;

use crate::guarded::Request;

pub(super) struct Auth {
    mode: AuthMode,
    write: Secret,
    read: Secret,
}

impl Auth {
    pub(super) fn new(mode: AuthMode, write: &Secret, read: &Secret) -> Self {
        let read = if read.is_empty() { write } else { read };
        Self { mode, write: write.clone(), read: read.clone() }
    }

    pub(super) fn read(&self, request: Request, url: &Url) -> Result<Request, Cause> {
        self.sign(request, url, &self.read, "GET", &signing::digest(b""))
    }

    pub(super) fn write(&self, request: Request, url: &Url, body: &[u8]) -> Result<Request, Cause> {
        self.write_digest(request, url, &signing::digest(body))
    }

    /// As [`Self::write`], for a body of this digest.
    pub(super) fn write_digest(&self, request: Request, url: &Url, digest: &str) -> Result<Request, Cause> {
        self.sign(request, url, &self.write, "POST", digest)
    }

    fn sign(
        &self,
        request: Request,
        url: &Url,
        key: &Secret,
        method: &str,
        digest: &str,
    ) -> Result<Request, Cause> {
        match self.mode {
            AuthMode::None => Ok(request),
            AuthMode::Bearer if key.is_empty() => Ok(request),
            AuthMode::Bearer => {
                let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose()))?;
                value.set_sensitive(true);
                Ok(request.header(AUTHORIZATION, value))
            }
            AuthMode::Hmac => {
                let (id, secret) = signing::split_key(key.expose()).ok_or(
                    "its key is none for auth_mode hmac, which has two parts with a dot between them",
                )?;
                let target = match url.query() {
                    Some(query) => format!("{}?{query}", url.path()),
                    None => url.path().to_owned(),
                };
                let mut nonce = [0; 18];
                SysRng.try_fill_bytes(&mut nonce)?;
                let stamp =
                    Stamp { created: now(), nonce: URL_SAFE_NO_PAD.encode(nonce), keyid: id.to_owned() };
                let message = Message { method, target: &target, digest };
                let (input, signature) = signing::sign(secret, message, &stamp);
                Ok(request
                    .header(HeaderName::from_static(signing::CONTENT_DIGEST), HeaderValue::from_str(digest)?)
                    .header(HeaderName::from_static(signing::SIGNATURE_INPUT), HeaderValue::from_str(&input)?)
                    .header(HeaderName::from_static(signing::SIGNATURE), HeaderValue::from_str(&signature)?))
            }
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a signature says when it was made, by the clock of this machine"
)]
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}
