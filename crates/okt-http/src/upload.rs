//! Files that somebody sends as `multipart/form-data`, read piece by piece: none is ever whole in memory.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::BodyDataStream;
use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use futures_util::StreamExt as _;
use http::header;
use okt_config::BodyLimits;
use tokio::time::Instant;

use crate::edge::Edge;
use crate::problem::{Code, Problem};
use crate::recheck::Recheck;

/// Texts beside the file.
const TEXT_LIMIT: usize = 16 * 1024;
/// A form of ours has a handful of parts.
const MOST_PARTS: usize = 20;
/// Whoever sends less than this, for as long as we wait for them, takes a place from somebody who sends.
const SLOWEST: u64 = 1024;
const WINDOW: Duration = Duration::from_secs(30);

/// A form with a file in it.
pub struct Upload {
    parts: multer::Multipart<'static>,
    seen: usize,
    limit: u64,
    pace: Pace,
    recheck: Option<Recheck>,
}

/// One part of a form.
pub struct Part {
    pub name: String,
    /// The last part of what the sender calls it, never a path.
    pub file_name: Option<String>,
    pub content_type: Option<String>,
    field: multer::Field<'static>,
    limit: u64,
    pace: Pace,
}

/// How fast a body comes. Only the time that we wait for it counts.
#[derive(Clone)]
struct Pace {
    idle: Duration,
    /// Bytes so far.
    arrived: Arc<AtomicU64>,
    window: Arc<Mutex<Window>>,
}

#[derive(Default)]
struct Window {
    waited: Duration,
    /// Bytes when it began.
    from: u64,
}

impl<S: Send + Sync> FromRequest<S> for Upload {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        Self::read(request, |limits| limits.upload_bytes)
    }
}

/// As [`Upload`], for a file as large as a Graph Bundle may be.
pub struct BundleUpload(pub Upload);

impl<S: Send + Sync> FromRequest<S> for BundleUpload {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        Upload::read(request, |limits| limits.bundle_bytes).map(Self)
    }
}

/// A body as it is, read piece by piece.
pub struct RawUpload {
    stream: BodyDataStream,
    seen: u64,
    pace: Pace,
    recheck: Option<Recheck>,
}

impl<S: Send + Sync> FromRequest<S> for RawUpload {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let edge: Arc<Edge> = Edge::of(&parts)?;
        let pace = Pace::new(edge.server.read_timeout.duration());
        let recheck = parts.extensions.get::<Recheck>().cloned();
        Ok(Self { stream: body.into_data_stream(), seen: 0, pace, recheck })
    }
}

impl RawUpload {
    /// The next piece of a body of at most `limit` bytes. `None` at its end, for those who may still send it.
    pub async fn chunk(&mut self, limit: u64) -> Result<Option<Bytes>, Problem> {
        let Some(piece) = self.pace.keep(self.stream.next()).await? else {
            if let Some(recheck) = &self.recheck {
                recheck.check().await?;
            }
            return Ok(None);
        };
        let piece = piece.map_err(|_| Problem::new(Code::Malformed, "the body broke off"))?;
        self.pace.arrived.fetch_add(piece.len() as u64, Ordering::Relaxed);
        self.seen += piece.len() as u64;
        if self.seen > limit {
            return Err(too_large(limit));
        }
        Ok(Some(piece))
    }
}

impl Upload {
    fn read(request: Request, limit: impl Fn(&BodyLimits) -> u64) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let edge: Arc<Edge> = Edge::of(&parts)?;
        let wrong = || {
            Problem::new(Code::UnsupportedMediaType, "the body must be multipart/form-data with a boundary")
        };
        let content_type = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let boundary = multer::parse_boundary(content_type.ok_or_else(wrong)?).map_err(|_| wrong())?;
        let limit = limit(&edge.server.limits);
        let announced = parts.headers.get(header::CONTENT_LENGTH);
        let announced = announced.and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        if announced.is_some_and(|length| length > limit) {
            return Err(too_large(limit));
        }
        let constraints = multer::Constraints::new()
            .size_limit(multer::SizeLimit::new().whole_stream(limit).for_field("title", TEXT_LIMIT as u64));
        let pace = Pace::new(edge.server.read_timeout.duration());
        let arrived = Arc::clone(&pace.arrived);
        let stream = body.into_data_stream().map(move |piece| {
            let piece = piece.map_err(std::io::Error::other)?;
            arrived.fetch_add(piece.len() as u64, Ordering::Relaxed);
            Ok::<_, std::io::Error>(piece)
        });
        let recheck = parts.extensions.get::<Recheck>().cloned();
        let parts = multer::Multipart::with_constraints(stream, boundary, constraints);
        Ok(Self { parts, seen: 0, limit, pace, recheck })
    }
}

impl Upload {
    /// The next part; the one before has to be read or dropped. `None` at the end of the form, for those who may still send
    /// it: a form may take minutes, and nothing of it counts when the right to send it was lost meanwhile.
    pub async fn next(&mut self) -> Result<Option<Part>, Problem> {
        self.seen += 1;
        if self.seen > MOST_PARTS {
            return Err(Problem::new(Code::TooLarge, format!("the limit is {MOST_PARTS} parts")));
        }
        let next = self.pace.keep(self.parts.next_field()).await?;
        let Some(field) = next.map_err(|error| refused(&error, self.limit))? else {
            if let Some(recheck) = &self.recheck {
                recheck.check().await?;
            }
            return Ok(None);
        };
        let name = field.name().unwrap_or_default().to_owned();
        let file_name = field.file_name().map(plain_name).filter(|name| !name.is_empty());
        let content_type = field.content_type().map(ToString::to_string);
        Ok(Some(Part { name, file_name, content_type, field, limit: self.limit, pace: self.pace.clone() }))
    }
}

impl Part {
    /// The next piece; `None` at the end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Problem> {
        let piece = self.pace.keep(self.field.chunk()).await?;
        piece.map_err(|error| refused(&error, self.limit))
    }

    /// The whole of a short text.
    pub async fn text(mut self) -> Result<String, Problem> {
        let mut whole = Vec::new();
        while let Some(piece) = self.chunk().await? {
            if whole.len() + piece.len() > TEXT_LIMIT {
                return Err(too_large(TEXT_LIMIT as u64));
            }
            whole.extend_from_slice(&piece);
        }
        let text = String::from_utf8(whole).ok().filter(|text| !text.contains('\0'));
        text.ok_or_else(|| Problem::new(Code::Malformed, format!("part {:?} is not text", self.name)))
    }
}

impl Pace {
    fn new(idle: Duration) -> Self {
        Self { idle, arrived: Arc::default(), window: Arc::default() }
    }

    /// Waits for what comes next, as long as it comes fast enough.
    async fn keep<T>(&self, next: impl Future<Output = T>) -> Result<T, Problem> {
        let too_slow = |detail| Err(Problem::new(Code::BodyTooSlow, detail));
        let ends = Instant::now() + self.idle;
        tokio::pin!(next);
        loop {
            let began = Instant::now();
            let wait = WINDOW.saturating_sub(self.window().waited).min(ends - began);
            let came = tokio::time::timeout(wait, &mut next).await;
            let now = Instant::now();
            let mut window = self.window();
            window.waited += now - began;
            match came {
                Ok(came) => return Ok(came),
                Err(_) if now >= ends => return too_slow("nothing more of the body arrived in time"),
                Err(_) if window.waited >= WINDOW => {
                    let arrived = self.arrived.load(Ordering::Relaxed);
                    if arrived - window.from < SLOWEST * WINDOW.as_secs() {
                        return too_slow("the body arrives at less than 1 KiB a second");
                    }
                    *window = Window { waited: Duration::ZERO, from: arrived };
                }
                Err(_) => {}
            }
        }
    }

    fn window(&self) -> MutexGuard<'_, Window> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn refused(error: &multer::Error, limit: u64) -> Problem {
    match error {
        multer::Error::StreamSizeExceeded { .. } | multer::Error::FieldSizeExceeded { .. } => {
            too_large(limit)
        }
        multer::Error::StreamReadFailed(_) | multer::Error::IncompleteStream => {
            Problem::new(Code::Malformed, "the body broke off")
        }
        error => Problem::new(Code::Malformed, format!("not a well-formed form: {error}")),
    }
}

fn too_large(limit: u64) -> Problem {
    Problem::new(Code::TooLarge, format!("the limit is {limit} bytes"))
}

/// What a sender calls a file is shown and never opened; a path in it is theirs alone.
fn plain_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    last.chars().filter(|c| !c.is_control()).take(255).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use axum::body::Body;
    use okt_config::Config;

    use super::*;

    const WHOLE: &str = "--a-line\r\ncontent-disposition: form-data; name=\"title\"\r\n\r\nBees\r\n\
        --a-line\r\ncontent-disposition: form-data; name=\"file\"; filename=\"../a\\\\b.pdf\"\r\n\
        content-type: application/pdf\r\n\r\n%PDF- and so on\r\n--a-line--\r\n";

    /// What a form is read as, in pieces of this size; an error is a refusal.
    async fn read(form: &[u8], piece: usize, content_type: &str) -> Result<Vec<(String, usize)>, Code> {
        let mut config = Config::default();
        config.server.limits.upload_bytes = 100_000;
        let pieces: Vec<_> = form
            .chunks(piece.max(1))
            .map(|piece| Ok::<_, std::io::Error>(Bytes::copy_from_slice(piece)))
            .collect();
        let body = Body::from_stream(futures_util::stream::iter(pieces));
        let mut request = Request::builder().header(header::CONTENT_TYPE, content_type).body(body).unwrap();
        request.extensions_mut().insert(Edge::new(&config, b"a secret that is long enough for tests"));
        let mut form = Upload::from_request(request, &()).await.map_err(|problem| problem.code())?;
        let mut found = Vec::new();
        while let Some(mut part) = form.next().await.map_err(|problem| problem.code())? {
            let mut length = 0;
            while let Some(piece) = part.chunk().await.map_err(|problem| problem.code())? {
                length += piece.len();
            }
            assert!(part.file_name.as_ref().is_none_or(|name| !name.contains(['/', '\\', '\0', '\n'])));
            found.push((part.name, length));
        }
        Ok(found)
    }

    #[tokio::test]
    async fn a_form_is_the_same_however_it_is_cut() {
        let expected = Ok(vec![("title".to_owned(), 4), ("file".to_owned(), 15)]);
        for piece in 1..WHOLE.len() {
            let found = read(WHOLE.as_bytes(), piece, "multipart/form-data; boundary=a-line").await;
            assert_eq!(found, expected, "in pieces of {piece}");
        }
    }

    /// Forms that nobody would write: each is read or refused, soon, and within its limits. `OKT_FUZZ_SECONDS` says for how
    /// long they are made up.
    #[tokio::test]
    async fn fuzzed_forms_are_read_or_refused() {
        let seconds = std::env::var("OKT_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
        let (started, mut state, mut count) = (Instant::now(), 7_u64, 0_u64);
        let mut random = move |below: usize| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            usize::try_from((mixed ^ (mixed >> 27)) % below.max(1) as u64).unwrap()
        };
        let words: [&[u8]; 9] = [
            b"--a-line",
            b"\r\n",
            b"\r\n\r\n",
            b"--",
            b"name=\"file\"",
            b"content-disposition: ",
            b"\0",
            b"\xff",
            b";",
        ];
        while started.elapsed().as_secs() < seconds {
            let mut form = WHOLE.as_bytes().to_vec();
            for _ in 0..=random(6) {
                let at = random(form.len() + 1);
                match random(6) {
                    0 => form.truncate(at),
                    1 => drop(form.splice(at..at, words[random(words.len())].iter().copied())),
                    2 if at < form.len() => form[at] = u8::try_from(random(256)).unwrap(),
                    3 => drop(form.splice(at..at, std::iter::repeat_n(b'x', random(3_000)))),
                    4 => {
                        let end = (at + random(60)).min(form.len());
                        let again = form[at..end].repeat(random(40));
                        drop(form.splice(at..at, again));
                    }
                    _ => drop(form.drain(at..(at + random(30)).min(form.len()))),
                }
            }
            let piece = 1 + random(form.len() + 1);
            let one = Instant::now();
            let found = read(&form, piece, "multipart/form-data; boundary=a-line").await;
            assert!(one.elapsed() < Duration::from_secs(5), "it takes too long: {form:?}");
            if let Ok(found) = found {
                let total: usize = found.iter().map(|(_, length)| length).sum();
                assert!(total <= form.len() && total <= 100_000, "more than there is: {form:?}");
            }
            count += 1;
        }
        println!("{count} forms, seed 7");
    }
}
