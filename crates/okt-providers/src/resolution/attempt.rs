//! What a request came to, in words that are kept with the source.

use std::time::Duration;

use http::{HeaderMap, StatusCode};
use okt_config::ResolutionProvider as Provider;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::guarded::FetchError;
use crate::retry_after::retry_after;

/// One request, as it is told to people.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Attempt {
    pub provider: Provider,
    /// What was asked for. Addresses of services that only the operator knows are not named.
    pub url: String,
    /// The status of the answer, when there was one.
    pub status: Option<u16>,
    pub ms: u64,
    pub outcome: Outcome,
    /// Who answered in the end, where somebody did.
    #[serde(skip)]
    pub(super) answered_by: Option<String>,
}

impl Attempt {
    /// The host whose pages the provider can or can't get. One that only leads on to others, such as that of DOIs, answers
    /// for none of them.
    pub fn host(&self) -> Option<String> {
        let asked = || {
            let url = Url::parse(&self.url).ok()?;
            url.host_str().filter(|host| !host.ends_with("doi.org")).map(str::to_owned)
        };
        self.answered_by.clone().or_else(asked)
    }

    /// Whether it speaks against the provider for this host (`Some(true)`) or for it (`Some(false)`). `None` when it
    /// says nothing about the pair: nobody was asked, the document is not there, or the provider itself was ill.
    pub const fn failed(&self) -> Option<bool> {
        match self.outcome {
            Outcome::Taken | Outcome::NotModified => Some(false),
            Outcome::Challenge
            | Outcome::Forbidden
            | Outcome::RateLimited
            | Outcome::ServerError
            | Outcome::TimedOut
            | Outcome::Unreachable
            | Outcome::Untrusted
            | Outcome::Interrupted => Some(true),
            Outcome::TooLittle
            | Outcome::Rejected
            | Outcome::Unusable
            | Outcome::NotFound
            | Outcome::TooLarge
            | Outcome::Unresolvable
            | Outcome::Robots
            | Outcome::AddressRefused
            | Outcome::NoCopy
            | Outcome::ProviderFailed => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The document is there.
    Taken,
    /// It is the one that we have.
    NotModified,
    /// A page, with too little in it.
    TooLittle,
    /// A document that can't be read, or an answer that can't.
    Unusable,
    /// A page that wants to see a browser or a person.
    Challenge,
    /// 401, 402, 403, 451.
    Forbidden,
    /// 404, 410.
    NotFound,
    /// Any other refusal.
    Rejected,
    /// 429.
    RateLimited,
    /// 5xx.
    ServerError,
    TimedOut,
    /// No connection.
    Unreachable,
    /// A name without an address.
    Unresolvable,
    /// No TLS that can be trusted.
    Untrusted,
    /// The answer broke off, is shorter or longer than it said, or is no HTTP.
    Interrupted,
    /// More than is taken, or a bomb.
    TooLarge,
    /// The site's robots.txt does not want it.
    Robots,
    /// It is, or leads to, an address that is not fetched.
    AddressRefused,
    /// No free copy is known.
    NoCopy,
    /// The service behind the provider did not do its part.
    ProviderFailed,
}

impl Outcome {
    /// The code of a source that failed for this.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Taken => "taken",
            Self::NotModified => "not_modified",
            Self::TooLittle => "too_little_content",
            Self::Unusable => "unusable",
            Self::Challenge => "challenge",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not_found",
            Self::Rejected => "rejected",
            Self::RateLimited => "rate_limited",
            Self::ServerError => "server_error",
            Self::TimedOut => "timed_out",
            Self::Unreachable => "unreachable",
            Self::Unresolvable => "unresolvable",
            Self::Untrusted => "untrusted",
            Self::Interrupted => "interrupted",
            Self::TooLarge => "too_large",
            Self::Robots => "disallowed_by_robots",
            Self::AddressRefused => "address_refused",
            Self::NoCopy => "no_copy",
            Self::ProviderFailed => "provider_failed",
        }
    }

    /// Whether it may be gone in a moment.
    const fn passes(self) -> bool {
        matches!(
            self,
            Self::RateLimited | Self::ServerError | Self::TimedOut | Self::Unreachable | Self::Interrupted
        )
    }
}

/// Why an attempt failed, and what follows from it.
#[derive(Debug)]
pub(super) struct Trouble {
    pub outcome: Outcome,
    pub status: Option<u16>,
    pub code: &'static str,
    pub message: String,
    /// Whether the same request is worth making again at once.
    pub again: bool,
    /// Whether it may go better another time.
    pub retryable: bool,
    pub retry_after: Option<Duration>,
}

impl Trouble {
    pub(super) fn new(outcome: Outcome, message: impl Into<String>) -> Self {
        Self {
            outcome,
            status: None,
            code: outcome.code(),
            message: message.into(),
            again: outcome.passes(),
            retryable: outcome.passes() || matches!(outcome, Outcome::Unresolvable),
            retry_after: None,
        }
    }

    /// The service behind a provider failed, for now.
    pub(super) fn of_service(message: impl Into<String>) -> Self {
        Self { again: true, retryable: true, ..Self::new(Outcome::ProviderFailed, message) }
    }

    pub(super) const fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// An answer that is no page. `place` is who gave it, in words.
    pub(super) fn of_status(status: StatusCode, headers: &HeaderMap, place: &str) -> Self {
        let (outcome, words) = match status.as_u16() {
            401 | 402 | 403 | 451 => (Outcome::Forbidden, "access is denied"),
            404 | 410 => (Outcome::NotFound, "there is nothing at this address; check it"),
            429 => (Outcome::RateLimited, "it limits the rate of requests; try again later"),
            500..=599 => (Outcome::ServerError, "the server failed; try again later"),
            _ => (Outcome::Rejected, "the request was rejected"),
        };
        let mut trouble = Self::new(outcome, format!("{place} answered {}: {words}", status.as_u16()));
        trouble.retry_after = retry_after(headers).filter(|_| outcome.passes());
        trouble.with_status(status.as_u16())
    }

    /// Whether `provider` may still be asked for the same address. The others go to the same place with other means, and
    /// where that is no help or no good manners, only a copy elsewhere is.
    pub(super) fn lets(&self, provider: Provider, patience: Duration) -> bool {
        match self.outcome {
            // Nothing that leads inside is touched, whoever knows another way.
            Outcome::AddressRefused => false,
            Outcome::NotFound
            | Outcome::Robots
            | Outcome::TooLarge
            | Outcome::Unresolvable
            | Outcome::Untrusted => provider == Provider::OpenAccess,
            _ if self.retry_after.is_some_and(|wait| wait > patience) => provider == Provider::OpenAccess,
            _ => true,
        }
    }
}

impl From<FetchError> for Trouble {
    fn from(error: FetchError) -> Self {
        let outcome = match &error {
            FetchError::Refused { .. } => Outcome::AddressRefused,
            FetchError::Unresolvable { .. } => Outcome::Unresolvable,
            FetchError::TooManyRedirects { .. } | FetchError::Encoding { .. } => Outcome::Unusable,
            FetchError::TooLarge { .. } | FetchError::Bomb { .. } => Outcome::TooLarge,
            FetchError::Damaged | FetchError::Interrupted(_) => Outcome::Interrupted,
            FetchError::TimedOut { .. } => Outcome::TimedOut,
            FetchError::Tls { .. } => Outcome::Untrusted,
            FetchError::NoAuthorities(_) | FetchError::Unreachable { .. } => Outcome::Unreachable,
        };
        Self::new(outcome, error.to_string())
    }
}
