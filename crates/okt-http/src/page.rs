//! Lists page by key: `?limit=` and an opaque `cursor`; never by offset.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, header};
use okt_model::Error;
use serde::Serialize;
use serde::de::DeserializeOwned;
use utoipa::{IntoParams, ToSchema};

use crate::edge::Edge;
use crate::problem::{Code, Problem};

const DEFAULT_LIMIT: u32 = 50;
const MAX_LIMIT: u32 = 200;

/// A page of a list.
#[derive(Serialize, ToSchema)]
pub struct Page<T> {
    /// The rows of this page.
    pub data: Vec<T>,
    /// Where the next page starts; null on the last one.
    #[schema(required = true)]
    pub next_cursor: Option<String>,
    #[serde(skip)]
    link: Option<HeaderValue>,
}

/// Which page is asked for.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PageRequest {
    /// How many rows, 1 to 200.
    #[param(required = false, minimum = 1, maximum = 200, default = 50)]
    limit: u32,
    /// `next_cursor` of the page before.
    #[param(required = false)]
    cursor: Option<String>,
    #[param(ignore)]
    edge: Arc<Edge>,
    /// Path and filters: what a cursor is bound to, and what the link to the next page repeats.
    #[param(ignore)]
    scope: String,
}

impl<T> Page<T> {
    /// A list that is always whole.
    pub const fn whole(data: Vec<T>) -> Self {
        Self { data, next_cursor: None, link: None }
    }

    /// Taken apart, for an answer that says more than its rows: its headers, the rows, and where the next page starts.
    pub fn into_parts(self) -> (HeaderMap, Vec<T>, Option<String>) {
        let headers = self.link.map(|link| (header::LINK, link)).into_iter().collect();
        (headers, self.data, self.next_cursor)
    }
}

impl PageRequest {
    /// How many rows the page may hold.
    pub fn limit(&self) -> i64 {
        i64::from(self.limit)
    }

    /// How many rows to read: one more than the page holds, to know whether another follows.
    pub fn rows(&self) -> i64 {
        i64::from(self.limit) + 1
    }

    /// The key of the last row of the page before, as the list gave it to [`Self::page`].
    pub fn after<K: DeserializeOwned>(&self) -> Result<Option<K>, Problem> {
        let Some(cursor) = &self.cursor else {
            return Ok(None);
        };
        let position = self.edge.cursor_key.open(&self.scope, cursor);
        let key = position.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        key.map(Some).ok_or_else(|| Problem::new(Code::BadCursor, "the cursor does not belong to this list"))
    }

    /// Makes the page of what was read with [`Self::rows`] as its bound.
    pub fn page<T, K: Serialize>(&self, mut rows: Vec<T>, key: impl Fn(&T) -> K) -> Result<Page<T>, Problem> {
        let limit = self.limit as usize;
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| more).map(key);
        self.page_until(rows, next)
    }

    /// Makes a page of these rows; the next one begins after this key, if there is a next one.
    pub fn page_until<T, K: Serialize>(&self, rows: Vec<T>, next: Option<K>) -> Result<Page<T>, Problem> {
        let Some(next) = next else {
            return Ok(Page::whole(rows));
        };
        let position = serde_json::to_vec(&next).map_err(Error::internal)?;
        let cursor = self.edge.cursor_key.seal(&self.scope, &position);
        let separator = if self.scope.contains('?') { '&' } else { '?' };
        let link = format!("<{}{separator}limit={}&cursor={cursor}>; rel=\"next\"", self.scope, self.limit);
        Ok(Page { data: rows, next_cursor: Some(cursor), link: HeaderValue::from_str(&link).ok() })
    }
}

impl<T: Serialize> IntoResponse for Page<T> {
    fn into_response(mut self) -> Response {
        let link = self.link.take();
        let mut response = axum::Json(self).into_response();
        if let Some(link) = link {
            response.headers_mut().insert(header::LINK, link);
        }
        response
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PageRequest {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let edge = Edge::of(parts)?;
        let (mut limit, mut cursor, mut filters) = (DEFAULT_LIMIT, None, Vec::new());
        for pair in parts.uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            // As the edge has read it: a name may be written in more than one way.
            match url::form_urlencoded::parse(pair.as_bytes()).next() {
                Some((name, value)) if name == "limit" => limit = parse_limit(&value)?,
                Some((name, value)) if name == "cursor" => cursor = Some(value.into_owned()),
                _ => filters.push(pair),
            }
        }
        // The order in which a client writes its filters does not make another list.
        filters.sort_unstable();
        let question = if filters.is_empty() { "" } else { "?" };
        let scope = format!("{}{question}{}", parts.uri.path(), filters.join("&"));
        Ok(Self { limit, cursor, edge, scope })
    }
}

fn parse_limit(text: &str) -> Result<u32, Problem> {
    text.parse().ok().filter(|limit| (1..=MAX_LIMIT).contains(limit)).ok_or_else(|| {
        Error::invalid("limit", format!("must be a whole number from 1 to {MAX_LIMIT}")).into()
    })
}
