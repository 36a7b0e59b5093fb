//! An answer whose body is read piece by piece, under a limit of size and of time.

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http::{HeaderMap, StatusCode};
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::error::{FetchError, Wait};
use super::gzip::Gunzip;
use super::{Request, Timeouts, browser, redirect};

pub struct Response {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// Where the answer came from, after redirects.
    pub final_url: Url,
    body: Body,
    packing: Packing,
    max_bytes: u64,
    arrived: u64,
    handed_out: u64,
    timeouts: Timeouts,
    deadline: Instant,
}

/// Whoever sent the request, as it came back.
pub(super) struct Head {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Body,
}

pub(super) enum Body {
    Plain(reqwest::Response),
    #[cfg_attr(
        not(feature = "impersonate"),
        expect(dead_code, reason = "nobody looks like a browser in that build")
    )]
    Browser(browser::Answer),
}

impl From<reqwest::Response> for Head {
    fn from(mut answer: reqwest::Response) -> Self {
        let headers = std::mem::take(answer.headers_mut());
        Self { status: answer.status(), headers, body: Body::Plain(answer) }
    }
}

impl Body {
    fn length(&self) -> Option<u64> {
        match self {
            Self::Plain(answer) => answer.content_length(),
            Self::Browser(answer) => answer.length(),
        }
    }

    async fn chunk(&mut self) -> Result<Option<Bytes>, FetchError> {
        match self {
            Self::Plain(answer) => answer.chunk().await.map_err(FetchError::of_reading),
            Self::Browser(answer) => answer.chunk().await,
        }
    }
}

enum Packing {
    None,
    Gzip(Gunzip),
    /// It was not asked for. Said when the body is read: whoever only looks at the head has no use for it.
    Unknown(String),
}

impl Response {
    pub(super) fn new(head: Head, final_url: Url, request: &Request, deadline: Instant) -> Self {
        let Head { status, mut headers, body } = head;
        let packing = packing(&headers);
        if matches!(packing, Packing::Gzip(_)) {
            headers.remove(CONTENT_ENCODING);
            headers.remove(CONTENT_LENGTH);
        }
        Self {
            status,
            headers,
            final_url,
            body,
            packing,
            max_bytes: request.max_bytes,
            arrived: 0,
            handed_out: 0,
            timeouts: request.timeouts,
            deadline,
        }
    }

    /// Where it sends us, if it does.
    pub fn redirect(&self) -> Result<Option<Url>, FetchError> {
        redirect(&self.final_url, self.status, &self.headers)
    }

    /// The whole body.
    pub async fn bytes(mut self) -> Result<Vec<u8>, FetchError> {
        let mut whole = Vec::new();
        while let Some(piece) = self.chunk().await? {
            whole.extend_from_slice(&piece);
        }
        Ok(whole)
    }

    /// The next piece of the body; `None` at its end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, FetchError> {
        loop {
            match &mut self.packing {
                Packing::None => {}
                Packing::Gzip(gunzip) => {
                    if let Some(piece) = gunzip.next()? {
                        self.handed_out += piece.len() as u64;
                        self.fits(self.handed_out)?;
                        return Ok(Some(piece));
                    }
                }
                Packing::Unknown(encoding) => {
                    return Err(FetchError::Encoding { encoding: encoding.clone() });
                }
            }
            let arrived = self.receive().await?;
            match (&mut self.packing, arrived) {
                (Packing::Gzip(gunzip), Some(packed)) => gunzip.feed(packed),
                (Packing::Gzip(gunzip), None) => return gunzip.finish().map(|()| None),
                (_, arrived) => return Ok(arrived),
            }
        }
    }

    async fn receive(&mut self) -> Result<Option<Bytes>, FetchError> {
        // What is announced to be too large is not even begun.
        self.fits(self.body.length().unwrap_or(0))?;
        let patience = Instant::now() + self.timeouts.idle;
        let arrived = timeout_at(patience.min(self.deadline), self.body.chunk()).await;
        let arrived = arrived.map_err(|_| {
            if patience < self.deadline {
                FetchError::TimedOut { wait: Wait::Idle, limit: self.timeouts.idle }
            } else {
                FetchError::TimedOut { wait: Wait::Total, limit: self.timeouts.total }
            }
        })?;
        let arrived = arrived?;
        self.arrived += arrived.as_ref().map_or(0, |piece| piece.len() as u64);
        self.fits(self.arrived)?;
        Ok(arrived)
    }

    const fn fits(&self, bytes: u64) -> Result<(), FetchError> {
        if bytes > self.max_bytes { Err(FetchError::TooLarge { limit: self.max_bytes }) } else { Ok(()) }
    }
}

fn packing(headers: &HeaderMap) -> Packing {
    let mut encodings = headers.get_all(CONTENT_ENCODING).iter();
    match (encodings.next().map(http::HeaderValue::as_bytes), encodings.next()) {
        (None | Some(b"" | b"identity"), None) => Packing::None,
        (Some(gzip), None) if gzip.eq_ignore_ascii_case(b"gzip") => Packing::Gzip(Gunzip::new()),
        (encoding, _) => {
            Packing::Unknown(String::from_utf8_lossy(encoding.unwrap_or_default()).chars().take(40).collect())
        }
    }
}
