//! Requests that look like a browser's, down to the TLS handshake.
//!
//! Only the sending is another's: addresses are looked up, checked and pinned before, redirects and packed bodies are dealt
//! with after, by the same code as for every other request.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http_body_util::BodyExt as _;
use serde_json::Value;
use url::Url;
use wreq::dns::{Addrs, Name, Resolve, Resolving};
use wreq::tls::trust::CertStore;

use super::address;
use super::error::{FetchError, Wait};
use super::response::{Body, Head};

/// The browser to look like.
#[derive(Clone, Copy, Debug)]
pub struct Profile(wreq_util::Profile);

impl Profile {
    /// By its name with a version, such as `firefox_128`, or without one for the newest that is known.
    pub fn named(name: &str) -> Result<Self, String> {
        let newest = format!("{name}_");
        let is_version = |known: &str| {
            known
                .strip_prefix(&newest)
                .is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit()))
        };
        let known = |profile: &wreq_util::Profile| match serde_json::to_value(profile) {
            Ok(Value::String(known)) => known,
            _ => String::new(),
        };
        let mut oldest_last = wreq_util::Profile::VARIANTS.iter().rev();
        oldest_last.find(|profile| known(profile) == name || is_version(&known(profile))).map(|found| Self(*found)).ok_or_else(
            || {
                format!(
                    "no browser {name:?} is known; name chrome, edge, firefox, opera or safari, with a version such as \
                     chrome_149 or without one"
                )
            },
        )
    }
}

/// Who vouches for certificates: the authorities of the system, as for all other requests. Read when first needed.
#[derive(Clone, Default)]
pub(super) struct Authorities(Arc<OnceLock<CertStore>>);

impl Authorities {
    fn get(&self) -> Result<CertStore, FetchError> {
        if let Some(store) = self.0.get() {
            return Ok(store.clone());
        }
        let found = rustls_native_certs::load_native_certs();
        if found.certs.is_empty() {
            return Err(FetchError::NoAuthorities("there are none".into()));
        }
        // One that can't be read is left out, as it is for all other requests.
        let store = CertStore::from_der_certs(found.certs.iter().map(AsRef::as_ref))
            .map_err(|error| FetchError::NoAuthorities(error.into()))?;
        Ok(self.0.get_or_init(|| store).clone())
    }

    #[cfg(test)]
    pub(super) fn only(certificate: &[u8]) -> Self {
        let store = CertStore::from_der_certs([certificate]).expect("a certificate");
        Self(Arc::new(OnceLock::from(store)))
    }
}

pub(super) struct Answer(wreq::Response);

/// One request over a connection of its own to one of the `checked` addresses.
#[expect(clippy::disallowed_methods, reason = "this is the guarded client")]
pub(super) async fn get(
    authorities: &Authorities,
    profile: Profile,
    url: &Url,
    checked: Vec<SocketAddr>,
    headers: HeaderMap,
    connect: Duration,
) -> Result<Head, FetchError> {
    let client = wreq::Client::builder()
        .emulation(wreq_util::Emulation::builder().profile(profile.0).build())
        .tls_cert_store(authorities.get()?)
        .dns_resolver(Pinned(checked))
        .no_proxy()
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
        .redirect(wreq::redirect::Policy::none())
        .retry(wreq::retry::Policy::never())
        .connect_timeout(connect)
        .pool_max_idle_per_host(0)
        .build();
    let sent = match client {
        // As `url` writes it, a host can be read in one way only.
        Ok(client) => client.get(url.as_str()).headers(headers).send().await,
        Err(error) => Err(error),
    };
    let mut answer = sent.map_err(|error| of_sending(error, url, connect))?;
    let headers = std::mem::take(answer.headers_mut());
    Ok(Head { status: answer.status(), headers, body: Body::Browser(Answer(answer)) })
}

impl Answer {
    pub(super) fn length(&self) -> Option<u64> {
        self.0.content_length()
    }

    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, FetchError> {
        loop {
            let Some(frame) = self.0.frame().await else { return Ok(None) };
            let frame = frame.map_err(|error| FetchError::Interrupted(error.without_uri().into()))?;
            if let Ok(piece) = frame.into_data() {
                return Ok(Some(piece));
            }
        }
    }
}

fn of_sending(error: wreq::Error, url: &Url, connect: Duration) -> FetchError {
    if error.is_builder() {
        return FetchError::malformed();
    }
    if error.is_connect() && error.is_timeout() {
        return FetchError::TimedOut { wait: Wait::Connect, limit: connect };
    }
    let (place, error) = (address::place(url), error.without_uri());
    // The handshake is a part of connecting here. What fails in it for another reason than the network is TLS itself.
    if error.is_tls() || (error.is_connect() && url.scheme() == "https" && !is_io(&error)) {
        FetchError::Tls { place, cause: error.into() }
    } else if error.is_connect() {
        FetchError::Unreachable { place, cause: error.into() }
    } else {
        FetchError::Interrupted(error.into())
    }
}

fn is_io(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<io::Error>() {
            return true;
        }
        next = error.source();
    }
    false
}

/// Answers every look-up with the addresses that were checked.
struct Pinned(Vec<SocketAddr>);

impl Resolve for Pinned {
    fn resolve(&self, _: Name) -> Resolving {
        let addresses: Addrs = Box::new(self.0.clone().into_iter());
        Box::pin(std::future::ready(Ok(addresses)))
    }
}
