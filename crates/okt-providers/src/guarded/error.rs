//! Why there is no answer. The words are for whoever gave the address: no text repeats more of it than scheme, host
//! and port, and none tells what a name leads to inside the network.

use std::error::Error;
use std::io;
use std::time::Duration;

use url::Url;

use super::{MAX_REDIRECTS, address};

type Cause = Box<dyn Error + Send + Sync>;

#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// It was not even tried.
    #[error("{place} is not fetched: {rule}")]
    Refused { place: String, rule: Rule },

    #[error("{place} does not resolve to an address; check the spelling, or try again later")]
    Unresolvable {
        place: String,
        #[source]
        cause: Cause,
    },

    #[error("more than {limit} redirects, the last to {place}; use the address where the document really is")]
    TooManyRedirects { place: String, limit: usize },

    #[error("the response is larger than the limit of {limit} bytes")]
    TooLarge { limit: u64 },

    #[error(
        "the response decompresses to more than {limit} times its size; it looks like a decompression bomb"
    )]
    Bomb { limit: u64 },

    #[error(
        "the response has the content encoding {encoding:?}, which was not requested; only gzip is supported"
    )]
    Encoding { encoding: String },

    #[error("the response cannot be decompressed; it is corrupt or truncated")]
    Damaged,

    #[error("{wait} took more than {limit:?}; try again later")]
    TimedOut { wait: Wait, limit: Duration },

    #[error("the TLS certificate or settings of {place} are not trusted")]
    Tls {
        place: String,
        #[source]
        cause: Cause,
    },

    /// About this machine; no client can be made.
    #[error("no root CA certificates are installed; install them, or name the file in SSL_CERT_FILE")]
    NoAuthorities(#[source] Cause),

    #[error("cannot connect to {place}; try again later")]
    Unreachable {
        place: String,
        #[source]
        cause: Cause,
    },

    #[error("the response was interrupted or is not valid HTTP; try again later")]
    Interrupted(#[source] Cause),
}

/// What an address has to be like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rule {
    #[error("it is not a valid URL; check the spelling")]
    Malformed,
    #[error("only http and https are fetched")]
    Scheme,
    #[error("only https is accepted here")]
    Https,
    #[error(
        "only the ports 80 and 443 are fetched; an operator can allow an address with its port under \
         providers.resolution.fetch.allow_private"
    )]
    Port,
    #[error("it contains a user name or password; remove them")]
    Credentials,
    #[error(
        "it is, or leads to, an address that is not public; an operator can allow one with its port under \
         providers.resolution.fetch.allow_private"
    )]
    Private,
    #[error("only the configured service may be called")]
    Elsewhere,
    #[error(
        "this installation is offline: it asks nobody outside of its machine (`okt up --offline`, providers.offline)"
    )]
    Offline,
}

/// What was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wait {
    #[error("connecting")]
    Connect,
    #[error("the next part of the response")]
    Idle,
    #[error("the whole request")]
    Total,
}

impl FetchError {
    pub(super) fn malformed() -> Self {
        Self::Refused { place: "the address".into(), rule: Rule::Malformed }
    }

    pub(crate) fn too_many_redirects(last: &Url) -> Self {
        Self::TooManyRedirects { place: address::place(last), limit: MAX_REDIRECTS }
    }

    pub(super) fn of_sending(error: reqwest::Error, url: &Url, connect: Duration) -> Self {
        if error.is_builder() {
            return Self::malformed();
        }
        if error.is_connect() && error.is_timeout() {
            return Self::TimedOut { wait: Wait::Connect, limit: connect };
        }
        // Queries hold keys at times; causes are logged.
        let (place, error) = (address::place(url), error.without_url());
        if has_cause::<Unresolved>(&error) {
            Self::Unresolvable { place, cause: error.into() }
        } else if has_cause::<rustls::Error>(&error) {
            Self::Tls { place, cause: error.into() }
        } else if error.is_connect() {
            Self::Unreachable { place, cause: error.into() }
        } else {
            Self::Interrupted(error.into())
        }
    }

    pub(super) fn of_reading(error: reqwest::Error) -> Self {
        Self::Interrupted(error.without_url().into())
    }
}

/// A name that led nowhere when a connection was made; to be found among the causes.
#[derive(Debug, thiserror::Error)]
#[error("no address was found")]
pub(super) struct Unresolved(#[source] pub io::Error);

fn has_cause<T: Error + 'static>(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<T>() {
            return true;
        }
        // The source of an I/O error is the source of what it wraps; what it wraps would be passed over.
        next = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    false
}
