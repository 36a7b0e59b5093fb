//! Who may pass a line of the table.

use axum::body::{Body, to_bytes};
use axum::extract::{FromRequest, FromRequestParts, Request};
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, HeaderName};
use okt_config::RegistryAccess;
use okt_http::{Code, Gate, Guard, Principal, Problem, WellFormed};
use okt_interchange::signing::{self, Message, Sent};
use okt_model::{Action, Error};
use sha2::{Digest as _, Sha256};

use crate::{Registry, keys, store};

/// How far a signature's time may be from ours, in seconds.
const WINDOW: i64 = 300;

/// Whoever sent the request, as handlers know them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caller {
    /// `None` for somebody without a key.
    pub key: Option<String>,
    pub daily_pushes: Option<i32>,
    /// What the body's digest was said to be by whoever signed it.
    pub digest: Option<String>,
}

impl Caller {
    pub(crate) fn name(&self) -> &str {
        self.key.as_deref().unwrap_or("anonymous")
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_default())
    }
}

impl Gate for Registry {
    async fn admit(&self, guard: Guard, parts: &mut Parts) -> Result<Option<Principal>, Problem> {
        let Guard::Needs(permission) = guard else { return Ok(None) };
        let writes = permission.action != Action::Read;
        // One that is asked about again was identified before; its signature is used up.
        let before = parts.extensions.get::<Caller>().cloned();
        let found = match before {
            Some(Caller { key: Some(id), digest, .. }) => Some((self.live(&id).await?, digest)),
            _ => self.identify(parts).await?,
        };
        let open = match self.access {
            RegistryAccess::Open => true,
            RegistryAccess::ReadOpen => !writes,
            RegistryAccess::Closed => false,
        };
        let Some((key, digest)) = found else {
            if open {
                return Ok(None);
            }
            return Err(Problem::new(Code::Unauthenticated, "this needs a key of the registry"));
        };
        parts.extensions.insert(WellFormed);
        if writes && !key.may_write {
            return Err(Problem::new(Code::Forbidden, "this key may only read"));
        }
        let principal =
            Principal { person: key.id.as_str().into(), credential: format!("key:{}", key.id).into() };
        parts.extensions.insert(Caller { key: Some(key.id), daily_pushes: key.daily_pushes, digest });
        Ok(Some(principal))
    }
}

impl Registry {
    async fn live(&self, id: &str) -> Result<store::LiveKey, Problem> {
        let mut conn = self.acquire().await?;
        let found = store::find_key(&mut conn, id).await.map_err(Error::from)?;
        let invalid = || Problem::new(Code::Unauthenticated, "the key is not valid any more");
        found.map(|(key, _)| key).ok_or_else(invalid)
    }

    /// The key that a request was sent with, if it was sent with one. A signed one says what the digest of its body is.
    async fn identify(&self, parts: &Parts) -> Result<Option<(store::LiveKey, Option<String>)>, Problem> {
        let invalid = || Problem::new(Code::Unauthenticated, "the key is not valid, or not valid any more");
        if let Some(value) = parts.headers.get(AUTHORIZATION) {
            let whole = value
                .to_str()
                .ok()
                .and_then(|value| value.strip_prefix("Bearer "))
                .unwrap_or_default()
                .trim();
            let (id, _) = signing::split_key(whole).ok_or_else(invalid)?;
            let mut conn = self.acquire().await?;
            let (key, _) = store::find_key(&mut conn, id).await.map_err(Error::from)?.ok_or_else(invalid)?;
            return if keys::is_key(whole, &key.hash) { Ok(Some((key, None))) } else { Err(invalid()) };
        }
        let (input, signature) =
            (header(&parts.headers, signing::SIGNATURE_INPUT), header(&parts.headers, signing::SIGNATURE));
        let (input, signature) = match (input, signature) {
            (None, None) => return Ok(None),
            (Some(input), Some(signature)) => (input, signature),
            _ => {
                return Err(Problem::new(
                    Code::Unauthenticated,
                    "a signature needs Signature-Input and Signature",
                ));
            }
        };
        let unreadable = || {
            let detail = "the signature is not one of hmac-sha256 over \"@method\", \"@request-target\" and \"content-digest\"";
            Problem::new(Code::Unauthenticated, detail)
        };
        let sent = Sent::read(input, signature).ok_or_else(unreadable)?;
        let digest = header(&parts.headers, signing::CONTENT_DIGEST).ok_or_else(unreadable)?;
        let mut conn = self.acquire().await?;
        let found = store::find_key(&mut conn, &sent.stamp.keyid).await.map_err(Error::from)?;
        let (key, now) = found.ok_or_else(invalid)?;
        let secret = self.seal.open(key.id.as_bytes(), &key.sealed).ok_or_else(invalid)?;
        let target = parts.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        let message = Message { method: parts.method.as_str(), target, digest };
        if !sent.is_valid(&secret, message) {
            return Err(Problem::new(Code::Unauthenticated, "the signature is not valid"));
        }
        if (now - sent.stamp.created).abs() > WINDOW {
            let detail = format!(
                "the signature was made more than {WINDOW} seconds before or after now; check the clock"
            );
            return Err(Problem::new(Code::Unauthenticated, detail));
        }
        if !store::remember_nonce(&mut conn, &key.id, &sent.stamp.nonce).await.map_err(Error::from)? {
            return Err(Problem::new(Code::Unauthenticated, "the signature was used before"));
        }
        Ok(Some((key, Some(digest.to_owned()))))
    }
}

fn header<'h>(headers: &'h HeaderMap, name: &'static str) -> Option<&'h str> {
    headers.get(HeaderName::from_static(name))?.to_str().ok()
}

/// A body of JSON that is the one that was signed, if it was signed.
pub(crate) struct Signed<T>(pub T);

impl<T: FromRequest<S, Rejection = Problem>, S: Send + Sync> FromRequest<S> for Signed<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let caller = parts.extensions.get::<Caller>().cloned().unwrap_or_default();
        // The edge has read it within its bounds.
        let bytes = to_bytes(body, usize::MAX).await.map_err(Error::internal)?;
        check_digest(&caller, Sha256::digest(&bytes).into())?;
        T::from_request(Request::from_parts(parts, Body::from(bytes)), state).await.map(Self)
    }
}

/// Whether a body is the one that was signed; one that was not signed may be any.
pub(crate) fn check_digest(caller: &Caller, sha256: [u8; 32]) -> Result<(), Problem> {
    match &caller.digest {
        Some(digest) if *digest != signing::digest_of(sha256) => {
            Err(Problem::new(Code::Unauthenticated, "the body is not the one that was signed"))
        }
        _ => Ok(()),
    }
}
