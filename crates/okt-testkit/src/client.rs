//! An HTTP client for tests; loopback only.

use std::time::Duration;

use http::{HeaderMap, StatusCode};
use serde_json::Value;

/// The one raw HTTP client of the tests.
#[expect(
    clippy::disallowed_methods,
    reason = "the guard would refuse loopback, and tests talk to nothing else"
)]
pub fn client() -> reqwest::Client {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(Duration::from_secs(30))
        .build()
        .expect("a client")
}

/// An answer, read whole.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
}

impl Answer {
    pub async fn of(request: reqwest::RequestBuilder) -> Self {
        Self::try_of(request).await.expect("an answer")
    }

    pub async fn try_of(request: reqwest::RequestBuilder) -> reqwest::Result<Self> {
        let response = request.send().await?;
        let (status, headers) = (response.status(), response.headers().clone());
        Ok(Self { status, headers, text: response.text().await? })
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("text"))
    }

    /// Checks that this is a whole problem and returns its code.
    pub fn problem(&self) -> String {
        assert_eq!(self.header("content-type"), "application/problem+json", "{self:?}");
        let body = self.json();
        for field in ["type", "title", "status", "detail", "code", "request_id"] {
            assert!(!body[field].is_null(), "{field} is missing in {body}");
        }
        assert_eq!(body["status"], self.status.as_u16());
        assert_eq!(body["request_id"], self.header("x-request-id"));
        body["code"].as_str().expect("a code").to_owned()
    }
}
