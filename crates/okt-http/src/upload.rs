//! Files that somebody sends as `multipart/form-data`, read piece by piece: none is ever whole in memory.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use futures_util::StreamExt as _;
use http::header;

use crate::edge::Edge;
use crate::problem::{Code, Problem};

/// Texts beside the file.
const TEXT_LIMIT: usize = 16 * 1024;
/// A form of ours has a handful of parts.
const MOST_PARTS: usize = 20;

/// A form with a file in it.
pub struct Upload {
    parts: multer::Multipart<'static>,
    seen: usize,
    limit: u64,
    idle: Duration,
}

/// One part of a form.
pub struct Part {
    pub name: String,
    /// The last part of what the sender calls it, never a path.
    pub file_name: Option<String>,
    pub content_type: Option<String>,
    field: multer::Field<'static>,
    limit: u64,
    idle: Duration,
}

impl<S: Send + Sync> FromRequest<S> for Upload {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let edge: Arc<Edge> = Edge::of(&parts)?;
        let wrong = || {
            Problem::new(Code::UnsupportedMediaType, "the body must be multipart/form-data with a boundary")
        };
        let content_type = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let boundary = multer::parse_boundary(content_type.ok_or_else(wrong)?).map_err(|_| wrong())?;
        let limit = edge.server.limits.upload_bytes;
        let announced = parts.headers.get(header::CONTENT_LENGTH);
        let announced = announced.and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        if announced.is_some_and(|length| length > limit) {
            return Err(too_large(limit));
        }
        let constraints = multer::Constraints::new()
            .size_limit(multer::SizeLimit::new().whole_stream(limit).for_field("title", TEXT_LIMIT as u64));
        let stream = body.into_data_stream().map(|piece| piece.map_err(std::io::Error::other));
        let idle = edge.server.read_timeout.duration();
        let parts = multer::Multipart::with_constraints(stream, boundary, constraints);
        Ok(Self { parts, seen: 0, limit, idle })
    }
}

impl Upload {
    /// The next part; the one before has to be read or dropped.
    pub async fn next(&mut self) -> Result<Option<Part>, Problem> {
        self.seen += 1;
        if self.seen > MOST_PARTS {
            return Err(Problem::new(Code::TooLarge, format!("the limit is {MOST_PARTS} parts")));
        }
        let next = in_time(self.idle, self.parts.next_field()).await?;
        let Some(field) = next.map_err(|error| refused(&error, self.limit))? else { return Ok(None) };
        let name = field.name().unwrap_or_default().to_owned();
        let file_name = field.file_name().map(plain_name).filter(|name| !name.is_empty());
        let content_type = field.content_type().map(ToString::to_string);
        Ok(Some(Part { name, file_name, content_type, field, limit: self.limit, idle: self.idle }))
    }
}

impl Part {
    /// The next piece; `None` at the end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Problem> {
        let piece = in_time(self.idle, self.field.chunk()).await?;
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

async fn in_time<T>(idle: Duration, next: impl Future<Output = T>) -> Result<T, Problem> {
    let next = tokio::time::timeout(idle, next).await;
    next.map_err(|_| Problem::new(Code::BodyTooSlow, "nothing more of the body arrived in time"))
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
