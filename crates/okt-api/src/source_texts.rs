//! The texts of sources alone, piece by piece: none is ever whole in memory.

use std::ops::Range;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use futures_util::stream;
use http::{HeaderMap, HeaderValue, header};
use okt_auth::RepoScope;
use okt_auth::permissions::SourceRead;
use okt_http::{Path, Problem};
use okt_model::{Error, SourceId, TextFile};

use crate::Api;
use crate::extract::Repository;
use crate::source_files::ranged;
use crate::sources::SourcePath;

/// What is read of a text at once.
const PIECE: u32 = 128 * 1024;

/// The text of a source.
///
/// As `parsed_text` has it. Takes `Range` with one range of bytes.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/sources/{sourceID}/text", tag = "Sources",
    operation_id = "getSourceText",
    responses((status = 200, content_type = "text/plain", body = String, description = "All of it",
               example = "Honey bees tell each other where food is by a dance on the comb."),
              (status = 206, content_type = "text/plain", body = String, description = "The part asked for",
               example = "Honey bees tell each other where food is by a dance on the comb."),
              (status = 304, description = "You have it"),
              (status = 416, description = "bad_range")))]
pub async fn text(
    State(api): State<Api>,
    scope: Repository<SourceRead>,
    Path(path): Path<SourcePath>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    send(api, scope.0, path.source.into(), false, &headers).await
}

/// The text of a source as Markdown.
///
/// As `parsed_markdown` has it. Takes `Range` with one range of bytes.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/sources/{sourceID}/markdown", tag = "Sources",
    operation_id = "getSourceMarkdown",
    responses((status = 200, content_type = "text/markdown", body = String, description = "All of it",
               example = "Honey bees tell each other where food is by a dance on the comb."),
              (status = 206, content_type = "text/markdown", body = String, description = "The part asked for",
               example = "Honey bees tell each other where food is by a dance on the comb."),
              (status = 304, description = "You have it"),
              (status = 416, description = "bad_range")))]
pub async fn markdown(
    State(api): State<Api>,
    scope: Repository<SourceRead>,
    Path(path): Path<SourcePath>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    send(api, scope.0, path.source.into(), true, &headers).await
}

async fn send(
    api: Api,
    scope: RepoScope<SourceRead>,
    source: SourceId,
    markdown: bool,
    asked: &HeaderMap,
) -> Result<Response, Problem> {
    let file = api.app.find_text(&scope, source, markdown).await?;
    let (hash, size) = (file.sha256.clone(), file.size);
    let read = async |range: Option<Range<u64>>| {
        Ok(Body::from_stream(pieces(api, scope, source, file, range.unwrap_or(0..size))))
    };
    let mut response = ranged(&hash, size, asked, read).await?;
    let kind = if markdown { "text/markdown; charset=utf-8" } else { "text/plain; charset=utf-8" };
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    Ok(response)
}

/// The bytes of a range, each piece read when the one before has been taken.
fn pieces(
    api: Api,
    scope: RepoScope<SourceRead>,
    source: SourceId,
    file: TextFile,
    range: Range<u64>,
) -> impl stream::Stream<Item = Result<Vec<u8>, Error>> + Send + 'static {
    stream::try_unfold((api, scope, file, range), move |(api, scope, file, range)| async move {
        let left = range.end.saturating_sub(range.start);
        if left == 0 {
            return Ok(None);
        }
        let bytes = u32::try_from(left).unwrap_or(PIECE).min(PIECE);
        let piece = api.app.read_text(&scope, source, &file, range.start, bytes).await?;
        let next = range.start + piece.len() as u64..range.end;
        Ok(Some((piece, (api, scope, file, next))))
    })
}
