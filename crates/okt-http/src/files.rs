//! Static files, such as those of a web page: bytes in memory, sent with the headers that let browsers keep them.

use std::collections::HashMap;

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use sha2::{Digest, Sha256};

use crate::problem::{Code, Problem};
use crate::sending::Budget;

/// Bytes of a file that one reader can keep waiting: all answers share the file itself, so only buffers of the
/// connection count.
const HELD: usize = 64 * 1024;
/// Files up to this size are not counted.
const SMALL: usize = 16 * 1024;

/// What a page may load: what is served beside it. No inline scripts, no other origins, no frames around it.
const PAGE_POLICY: &str = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; \
    form-action 'self'; frame-ancestors 'none'";

/// Where no page of the web interface lives: programs that ask there want to be told that there is nothing.
const NEVER_A_PAGE: [&str; 2] = ["/api", "/.well-known"];

/// A file that is served as it is.
pub struct StaticFile {
    bytes: Bytes,
    content_type: HeaderValue,
    /// None for a file whose name changes with its content.
    etag: Option<HeaderValue>,
}

/// Files by their path below the line that serves them, and the page that is answered for every other path.
pub struct StaticFiles {
    entry: StaticFile,
    files: HashMap<String, StaticFile>,
}

impl StaticFile {
    /// The type follows from the end of `name`. `immutable`: the name contains a hash of the content, so that browsers
    /// never have to ask again.
    pub fn new(name: &str, bytes: Bytes, immutable: bool) -> Self {
        let etag = (!immutable).then(|| etag(&bytes));
        Self { bytes, content_type: HeaderValue::from_static(content_type(name)), etag }
    }

    fn answer(&self, request: &Request) -> Result<Response, Problem> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, self.content_type.clone());
        let cache = match &self.etag {
            Some(etag) => {
                headers.insert(header::ETAG, etag.clone());
                "no-cache"
            }
            None => "public, max-age=31536000, immutable",
        };
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
        if self.content_type.as_bytes().starts_with(b"text/html") {
            headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(PAGE_POLICY));
        }
        if self.is_known_to(request.headers()) {
            return Ok((StatusCode::NOT_MODIFIED, headers).into_response());
        }
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(self.bytes.len()));
        if request.method() == Method::HEAD {
            return Ok(headers.into_response());
        }
        let response = (headers, self.bytes.clone());
        match request.extensions().get::<Budget>() {
            Some(budget) if self.bytes.len() > SMALL => {
                Ok(budget.reserve(self.bytes.len().min(HELD))?.answer(response))
            }
            _ => Ok(response.into_response()),
        }
    }

    fn is_known_to(&self, asked: &HeaderMap) -> bool {
        let Some(etag) = self.etag.as_ref().and_then(|etag| etag.to_str().ok()) else { return false };
        let known = asked.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
        known.is_some_and(|tags| tags.split(',').any(|tag| tag.trim().trim_start_matches("W/") == etag))
    }
}

impl StaticFiles {
    /// `entry` is the page that finds out by itself what to show at a path.
    pub fn new(entry: StaticFile, files: impl IntoIterator<Item = (String, StaticFile)>) -> Self {
        Self { entry, files: files.into_iter().collect() }
    }

    /// `prefix` is the path of the line, empty for the root.
    pub(crate) fn answer(&self, prefix: &str, request: &Request) -> Response {
        let path = request.uri().path();
        let name = path.strip_prefix(prefix).unwrap_or(path).trim_start_matches('/');
        let file = if name.is_empty() { Some(&self.entry) } else { self.files.get(name) };
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        let answer = match file {
            Some(file) if reads => file.answer(request),
            Some(_) => {
                let detail = "a file can only be read: send GET or HEAD";
                let refused = Problem::new(Code::MethodNotAllowed, detail).into_response();
                return ([(header::ALLOW, "GET, HEAD")], refused).into_response();
            }
            // A script that is missing must not be answered with a page.
            None if reads && asks_for_a_page(request.headers()) && !is_never_a_page(path) => {
                self.entry.answer(request)
            }
            None => Err(Problem::new(Code::NotFound, "there is nothing at this address")),
        };
        answer.unwrap_or_else(Problem::into_response)
    }
}

/// As browsers do where somebody follows a link.
fn asks_for_a_page(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|kinds| kinds.contains("text/html"))
}

fn is_never_a_page(path: &str) -> bool {
    NEVER_A_PAGE
        .iter()
        .any(|kept| path.strip_prefix(kept).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

fn etag(bytes: &[u8]) -> HeaderValue {
    let hash = URL_SAFE_NO_PAD.encode(&Sha256::digest(bytes)[..18]);
    HeaderValue::from_str(&format!("\"{hash}\"")).expect("letters and digits in quotes")
}

fn content_type(name: &str) -> &'static str {
    let end = name.rsplit('/').next().and_then(|file| file.rsplit_once('.')).map_or("", |(_, end)| end);
    match end {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "txt" => "text/plain; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "avif" => "image/avif",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "woff" => "font/woff",
        "wasm" => "application/wasm",
        _ => "application/octet-stream",
    }
}
