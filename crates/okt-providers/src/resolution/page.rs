//! An answer on its way to whoever keeps it.

use std::collections::VecDeque;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, ETAG, LAST_MODIFIED};
use http::{HeaderName, StatusCode};
use okt_config::ResolutionProvider as Provider;
use okt_model::Error;
use serde::{Deserialize, Serialize};
use url::Url;

use super::hosts::Turn;
use crate::guarded::{FetchError, Response};

/// What tells one state of a page from another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Validators {
    pub etag: Option<String>,
    pub last_modified: Option<String>,
}

/// A page whose body is still arriving. Nothing of it is kept here but its beginning.
pub struct Page {
    pub provider: Provider,
    /// Where it came from, after redirects.
    pub final_url: Url,
    pub status: u16,
    pub content_type: Option<String>,
    pub validators: Validators,
    beginning: VecDeque<Bytes>,
    rest: Rest,
    failure: Option<FetchError>,
    /// As long as the body arrives, the host is busy with us.
    _turn: Turn,
}

enum Rest {
    Arriving(Box<Response>),
    None,
}

/// Takes pages in: reads them to the end, keeps what they hold, and says whether it is enough.
pub trait Taker: Send {
    /// An error of its own ends the resolution. One from [`Page::chunk`] is passed on with `?` and only ends the
    /// attempt. It may be called again with a page from another provider, and then starts afresh.
    fn take(&mut self, page: &mut Page) -> impl Future<Output = Result<PageQuality, Error>> + Send;
}

/// Whether a page can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageQuality {
    /// The document.
    Enough,
    /// Less than `providers.resolution.min_content_chars`: another provider may find more. The taker keeps the best of
    /// these, if it wants to use it when no provider finds more.
    TooLittle,
    /// It can't be used, for a reason that the source will show unless a later provider succeeds or fails with a better one.
    Unusable { code: &'static str, message: String },
}

impl Page {
    pub(super) fn new(provider: Provider, response: Response, turn: Turn) -> Self {
        let text = |name: HeaderName| Some(response.headers.get(name)?.to_str().ok()?.to_owned());
        Self {
            provider,
            content_type: text(CONTENT_TYPE),
            validators: Validators { etag: text(ETAG), last_modified: text(LAST_MODIFIED) },
            final_url: response.final_url.clone(),
            status: response.status.as_u16(),
            beginning: VecDeque::new(),
            rest: Rest::Arriving(Box::new(response)),
            failure: None,
            _turn: turn,
        }
    }

    /// A page that somebody else has read for us.
    pub(super) fn whole(
        provider: Provider,
        final_url: Url,
        status: StatusCode,
        html: String,
        turn: Turn,
    ) -> Self {
        Self {
            provider,
            final_url,
            status: status.as_u16(),
            content_type: Some("text/html; charset=utf-8".to_owned()),
            validators: Validators::default(),
            beginning: VecDeque::from([Bytes::from(html)]),
            rest: Rest::None,
            failure: None,
            _turn: turn,
        }
    }

    /// The next piece of the body; `None` at its end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        if let Some(piece) = self.beginning.pop_front() {
            return Ok(Some(piece));
        }
        if let Some(piece) = self.receive().await {
            return Ok(Some(piece));
        }
        match &self.failure {
            None => Ok(None),
            Some(error) => Err(Error::Unavailable {
                service: "the address of the source",
                cause: error.to_string().into(),
            }),
        }
    }

    /// The first `limit` bytes or a little more, and whether that is all. They are handed out again.
    pub(super) async fn peek(&mut self, limit: usize) -> (Vec<u8>, bool) {
        let mut length: usize = self.beginning.iter().map(Bytes::len).sum();
        let mut all = false;
        while length <= limit && !all {
            match self.receive().await {
                Some(piece) => {
                    length += piece.len();
                    self.beginning.push_back(piece);
                }
                None => all = true,
            }
        }
        let beginning: Vec<u8> = self.beginning.iter().flatten().take(limit + 1).copied().collect();
        let all = all && beginning.len() <= limit;
        (beginning, all)
    }

    /// Why the body broke off, if it did. Counts more than what the taker made of it.
    pub(super) const fn failure(&mut self) -> Option<FetchError> {
        self.failure.take()
    }

    async fn receive(&mut self) -> Option<Bytes> {
        let Rest::Arriving(response) = &mut self.rest else { return None };
        match response.chunk().await {
            Ok(Some(piece)) => Some(piece),
            Ok(None) => {
                self.rest = Rest::None;
                None
            }
            Err(error) => {
                self.failure = Some(error);
                self.rest = Rest::None;
                None
            }
        }
    }
}
