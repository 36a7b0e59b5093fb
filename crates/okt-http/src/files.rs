//! Static files, such as those of a web page: bytes in memory, sent with the headers that let browsers keep them.

use std::collections::HashMap;

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use okt_model::Error;
use rand::TryRng;
use rand::rngs::SysRng;
use sha2::{Digest, Sha256};

use crate::problem::{Code, Problem};
use crate::sending::Budget;

/// Bytes of a file that one reader can keep waiting: all answers share the file itself, so only buffers of the
/// connection count.
const HELD: usize = 64 * 1024;
/// Files up to this size are not counted.
const SMALL: usize = 16 * 1024;

/// What the entry page may load, `NONCE` standing for that of the answer: what is served beside it, styles that its
/// script adds under the nonce, pictures that it was given. Strings become scripts only by the policy `okt`.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-NONCE'; \
    img-src 'self' blob: data:; font-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; \
    base-uri 'self'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
    trusted-types okt";
/// What stands for the nonce, in the policy and in the page.
const NONCE: &str = "NONCE";

/// Where no page of the web interface lives: programs that ask there want to be told that there is nothing.
const NEVER_A_PAGE: [&str; 7] =
    ["/api", "/.well-known", "/mcp", "/assets", "/healthz", "/readyz", "/metrics"];

/// A file that is served as it is.
pub struct StaticFile {
    bytes: Bytes,
    /// The same, compressed, the shortest first.
    encoded: Vec<(&'static str, Bytes)>,
    content_type: HeaderValue,
    /// None for a file whose name changes with its content.
    etag: Option<HeaderValue>,
}

/// The page that finds out by itself what to show at a path.
pub struct EntryPage {
    /// What stands between the places of the nonce.
    parts: Vec<String>,
}

/// Files by their path below the line that serves them, and the page that is answered for every other path.
pub struct StaticFiles {
    entry: EntryPage,
    files: HashMap<String, StaticFile>,
}

impl StaticFile {
    /// The type follows from the end of `name`. `immutable`: the name contains a hash of the content, so that browsers
    /// never have to ask again.
    pub fn new(name: &str, bytes: Bytes, immutable: bool) -> Self {
        let etag = (!immutable).then(|| etag(&bytes));
        Self { bytes, encoded: Vec::new(), content_type: HeaderValue::from_static(content_type(name)), etag }
    }

    /// Adds the same file in this encoding, such as `br`; for a request that takes several, the one added first is sent.
    #[must_use]
    pub fn encoded(mut self, encoding: &'static str, bytes: Bytes) -> Self {
        self.encoded.push((encoding, bytes));
        self
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
        if !self.encoded.is_empty() {
            headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        }
        if self.is_known_to(request.headers()) {
            return Ok((StatusCode::NOT_MODIFIED, headers).into_response());
        }
        let taken = self.encoded.iter().find(|(encoding, _)| takes(request.headers(), encoding));
        let bytes = match taken {
            Some((encoding, bytes)) => {
                headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding));
                bytes
            }
            None => &self.bytes,
        };
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(bytes.len()));
        if request.method() == Method::HEAD {
            return Ok(headers.into_response());
        }
        let response = (headers, bytes.clone());
        match request.extensions().get::<Budget>() {
            Some(budget) if bytes.len() > SMALL => {
                Ok(budget.reserve(bytes.len().min(HELD))?.answer(response))
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

impl EntryPage {
    /// `html` says `NONCE` where the nonce of its styles belongs, and has no script of its own.
    pub fn new(html: &str) -> Self {
        Self { parts: html.split(NONCE).map(str::to_owned).collect() }
    }

    fn answer(&self, request: &Request) -> Result<Response, Problem> {
        let mut bytes = [0; 16];
        SysRng.try_fill_bytes(&mut bytes).map_err(Error::internal)?;
        let nonce = URL_SAFE_NO_PAD.encode(bytes);
        let policy = HeaderValue::from_str(&PAGE_POLICY.replace(NONCE, &nonce)).map_err(Error::internal)?;
        let html =
            if request.method() == Method::HEAD { String::new() } else { self.parts.join(nonce.as_str()) };
        let headers = [
            (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
            // Each answer has its own nonce.
            (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
            (header::CONTENT_SECURITY_POLICY, policy),
            (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
            (
                HeaderName::from_static("permissions-policy"),
                HeaderValue::from_static("camera=(), geolocation=(), microphone=()"),
            ),
        ];
        Ok((headers, html).into_response())
    }
}

impl StaticFiles {
    pub fn new(entry: EntryPage, files: impl IntoIterator<Item = (String, StaticFile)>) -> Self {
        Self { entry, files: files.into_iter().collect() }
    }

    /// `prefix` is the path of the line, empty for the root.
    pub(crate) fn answer(&self, prefix: &str, request: &Request) -> Response {
        let path = request.uri().path();
        let name = path.strip_prefix(prefix).unwrap_or(path).trim_start_matches('/');
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        let answer = match self.files.get(name) {
            Some(file) if reads => file.answer(request),
            None if name.is_empty() && reads => self.entry.answer(request),
            file if file.is_some() || name.is_empty() => {
                let detail = "a file can only be read: send GET or HEAD";
                let refused = Problem::new(Code::MethodNotAllowed, detail).into_response();
                return ([(header::ALLOW, "GET, HEAD")], refused).into_response();
            }
            // A script that is missing must not be answered with a page.
            _ if reads && asks_for_a_page(request.headers()) && !is_never_a_page(path) => {
                self.entry.answer(request)
            }
            _ => Err(Problem::new(Code::NotFound, "there is nothing at this address")),
        };
        answer.unwrap_or_else(Problem::into_response)
    }
}

/// Whether this encoding is named and not refused (`br;q=0`).
fn takes(asked: &HeaderMap, encoding: &str) -> bool {
    let Some(accepted) = asked.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok()) else {
        return false;
    };
    accepted.split(',').any(|one| {
        let (name, weight) = one.split_once(';').unwrap_or((one, ""));
        let refused = matches!(weight.trim(), "q=0" | "q=0.0" | "q=0.00" | "q=0.000");
        name.trim().eq_ignore_ascii_case(encoding) && !refused
    })
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
        "pdf" => "application/pdf",
        _ => "application/octet-stream",
    }
}
