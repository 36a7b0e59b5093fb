//! By which address this service is known.

use axum::extract::FromRequestParts;
use http::header;
use http::request::Parts;
use okt_config::Mode;
use okt_http::{Code, Problem, ServerAddress};
use url::Url;

use crate::Api;

/// The base address of the service, without a slash at its end. It stands in tokens and documents, so it is never taken
/// from what a stranger writes into a header: it is `oauth.issuer`, or in development the address of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Issuer(pub(crate) String);

impl Issuer {
    /// `None` where OAuth is off.
    pub(crate) fn of(api: &Api, parts: &Parts) -> Option<Self> {
        let config = api.app.config();
        match &config.oauth.issuer {
            Some(url) => Some(Self(url.as_str().trim_end_matches('/').to_owned())),
            None if config.mode == Mode::Development => Some(Self::of_this_machine(parts)),
            None => None,
        }
    }

    pub(crate) fn is_https(&self) -> bool {
        self.0.starts_with("https://")
    }

    pub(crate) fn origin(&self) -> String {
        Url::parse(&self.0).map_or_else(|_| String::new(), |url| url.origin().ascii_serialization())
    }

    /// Which of its names for itself the client used; of any other name nothing is believed.
    fn of_this_machine(parts: &Parts) -> Self {
        let port = parts.extensions.get::<ServerAddress>().map_or(0, |server| server.0.port());
        let host = parts.headers.get(header::HOST).and_then(|value| value.to_str().ok());
        let host =
            host.or_else(|| parts.uri.authority().map(http::uri::Authority::as_str)).unwrap_or_default();
        let known = ["127.0.0.1", "localhost", "[::1]"];
        let host = known.into_iter().find(|name| host == format!("{name}:{port}")).unwrap_or("127.0.0.1");
        Self(format!("http://{host}:{port}"))
    }
}

impl FromRequestParts<Api> for Issuer {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Problem> {
        Self::of(api, parts).ok_or_else(|| {
            Problem::new(Code::NotConfigured, "OAuth is off on this installation: oauth.issuer is not set")
        })
    }
}
