//! Signed tokens: HS256 JWTs of two kinds under one secret.
//!
//! A token of one kind must never pass for the other, so they differ in three signed places: `typ`, `aud`, and the
//! claims they must have. A verifier takes exactly the header that we write; nothing in it is a choice of the sender.

use std::time::Duration;

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header, decode_header, encode};
use okt_model::{GrantId, SessionId, TokenId, UserId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use url::Url;

/// What a session's token says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionClaims {
    pub iss: String,
    pub sub: UserId,
    pub aud: String,
    pub sid: SessionId,
    pub iat: u64,
    pub exp: u64,
    pub jti: TokenId,
}

/// What an OAuth access token says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessClaims {
    pub iss: String,
    pub sub: UserId,
    pub aud: String,
    pub client_id: String,
    pub scope: String,
    /// What the person gave, which they can take back: the token is worth nothing without it.
    pub grant: GrantId,
    pub iat: u64,
    pub exp: u64,
    pub jti: TokenId,
}

/// An access token to be signed.
#[derive(Clone, Copy, Debug)]
pub struct NewAccess<'a> {
    pub issuer: &'a str,
    pub user: UserId,
    /// The resource it is for (RFC 8707).
    pub audience: &'a str,
    pub client: &'a str,
    pub scope: &'a str,
    pub grant: GrantId,
    pub id: TokenId,
}

/// Signs tokens and verifies them. Times are seconds since 1970, by a clock that all processes share.
pub struct Tokens {
    /// The first signs; the second is the secret before the last change.
    keys: Vec<Key>,
    issuer: String,
}

impl Tokens {
    /// Without an issuer, tokens are `okt`'s. An empty `previous` is none: anybody can sign with an empty secret.
    pub fn new(secret: &[u8], previous: Option<&[u8]>, issuer: Option<&Url>) -> Self {
        let previous = previous.filter(|previous| !previous.is_empty());
        Self {
            keys: [secret].into_iter().chain(previous).map(Key::new).collect(),
            // As metadata documents show it; `Url` puts a slash behind a bare host.
            issuer: issuer.map_or("okt", |url| url.as_str().trim_end_matches('/')).to_owned(),
        }
    }

    pub fn sign_session(
        &self,
        user: UserId,
        session: SessionId,
        id: TokenId,
        now: u64,
        ttl: Duration,
    ) -> String {
        let claims = SessionClaims {
            iss: self.issuer.clone(),
            sub: user,
            aud: SESSION_AUDIENCE.to_owned(),
            sid: session,
            iat: now,
            exp: now.saturating_add(ttl.as_secs()),
            jti: id,
        };
        self.sign(Kind::Session, &claims)
    }

    pub fn sign_access(&self, new: &NewAccess<'_>, now: u64, ttl: Duration) -> String {
        let claims = AccessClaims {
            iss: new.issuer.to_owned(),
            sub: new.user,
            aud: new.audience.to_owned(),
            client_id: new.client.to_owned(),
            scope: new.scope.to_owned(),
            grant: new.grant,
            iat: now,
            exp: now.saturating_add(ttl.as_secs()),
            jti: new.id,
        };
        self.sign(Kind::Access, &claims)
    }

    /// `None` for whatever is not a session token of ours, in force. Whether the session is alive, only the database
    /// knows.
    pub fn verify_session(&self, token: &str, now: u64) -> Option<SessionClaims> {
        let claims: SessionClaims = self.verify(Kind::Session, token)?;
        let ours = claims.iss == self.issuer && claims.aud == SESSION_AUDIENCE;
        (ours && in_force(claims.iat, claims.exp, now)).then_some(claims)
    }

    /// `None` for whatever is not an access token of ours, in force, from this issuer for this audience. Whether its
    /// grant is alive, only the database knows.
    pub fn verify_access(&self, token: &str, issuer: &str, audience: &str, now: u64) -> Option<AccessClaims> {
        let claims: AccessClaims = self.verify(Kind::Access, token)?;
        let ours = claims.iss == issuer && claims.aud == audience;
        (ours && in_force(claims.iat, claims.exp, now)).then_some(claims)
    }

    /// What an access token of ours says, for whatever audience and however old: enough to revoke it.
    pub fn read_access(&self, token: &str, issuer: &str) -> Option<AccessClaims> {
        self.verify(Kind::Access, token).filter(|claims: &AccessClaims| claims.iss == issuer)
    }

    fn sign(&self, kind: Kind, claims: &impl Serialize) -> String {
        self.keys[0].sign(kind, claims)
    }

    /// Whether it came from us as this kind, unaltered. The header is compared, not read: one that we did not write
    /// has nothing to say. Claims that are missing or of another type fail to parse.
    fn verify<C: DeserializeOwned>(&self, kind: Kind, token: &str) -> Option<C> {
        if token.len() > LONGEST {
            return None;
        }
        let (message, signature) = token.rsplit_once('.')?;
        let (header, claims) = message.split_once('.')?;
        let key = self.keys.iter().find(|key| key.header(kind) == header)?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        hmac::verify(&key.verifying, message.as_bytes(), &signature).ok()?;
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
    }
}

/// Whether it has the form of a token of either kind, whoever signed it and when.
pub(crate) fn is_well_formed(token: &str) -> bool {
    let kinds = [Kind::Session, Kind::Access].map(Kind::typ);
    let header = (token.len() <= LONGEST).then(|| decode_header(token).ok()).flatten();
    header.and_then(|header| header.typ).is_some_and(|typ| kinds.contains(&&*typ))
}

const SESSION_AUDIENCE: &str = "okt:session";

/// Ours with every scope and the longest id of a client stay below it. What is longer is refused before anything is
/// decoded.
const LONGEST: usize = 8192;

/// How far clocks may be apart.
const LEEWAY: u64 = 30;

fn in_force(iat: u64, exp: u64, now: u64) -> bool {
    iat <= now.saturating_add(LEEWAY) && now < exp.saturating_add(LEEWAY)
}

#[derive(Clone, Copy)]
enum Kind {
    Session,
    Access,
}

impl Kind {
    const fn typ(self) -> &'static str {
        match self {
            Self::Session => "session+jwt",
            Self::Access => "at+jwt",
        }
    }
}

struct Key {
    id: String,
    encoding: EncodingKey,
    verifying: hmac::Key,
    /// The encoded headers of our tokens.
    session: String,
    access: String,
}

impl Key {
    /// Its id follows from the secret, so that processes that share one agree on it without being told.
    fn new(secret: &[u8]) -> Self {
        let digest = Sha256::new().chain_update(b"okt jwt key id\0").chain_update(secret).finalize();
        let mut key = Self {
            id: hex::encode(&digest[..8]),
            encoding: EncodingKey::from_secret(secret),
            verifying: hmac::Key::new(hmac::HMAC_SHA256, secret),
            session: String::new(),
            access: String::new(),
        };
        let header = |kind| key.sign(kind, &()).split('.').next().unwrap_or_default().to_owned();
        (key.session, key.access) = (header(Kind::Session), header(Kind::Access));
        key
    }

    fn sign(&self, kind: Kind, claims: &impl Serialize) -> String {
        let header = Header {
            typ: Some(kind.typ().to_owned()),
            kid: Some(self.id.clone()),
            ..Header::new(Algorithm::HS256)
        };
        encode(&header, claims, &self.encoding).expect("plain claims can be signed")
    }

    fn header(&self, kind: Kind) -> &str {
        match kind {
            Kind::Session => &self.session,
            Kind::Access => &self.access,
        }
    }
}

#[cfg(test)]
mod tests;
