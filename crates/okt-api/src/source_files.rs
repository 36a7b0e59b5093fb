//! Files of sources: bringing one along, and getting originals and images back.
//!
//! What is in a file was written by strangers. It is handed out in a way in which no browser runs any of it.

use std::ops::Range;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use okt_app::{Upload as NewUpload, is_reference_list};
use okt_auth::RepoScope;
use okt_auth::permissions::{SourceRead, SourceWrite};
use okt_http::{Code, Json, Path, Problem, Upload};
use okt_model::{Blob, Error, InvestigationId, SourceFile, SourceId};
use okt_store::blobs::Incoming;
use okt_wire::source_import::ImportedList;
use okt_wire::sources::SourceAccepted;
use serde::Deserialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::Api;
use crate::extract::Repository;
use crate::source_import::List;
use crate::sources::{SourcePath, answer};

/// Types that a browser shows without running anything in them.
const SHOWN: [&str; 5] = ["application/pdf", "image/gif", "image/jpeg", "image/png", "image/webp"];

/// As much of a file as tells a list of references from a text.
const HEAD: usize = 64 * 1024;

/// Bytes as they are, for the document: a program gets a file, not a list of numbers.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[expect(dead_code, reason = "only its form is told")]
pub struct File(Vec<u8>);

/// A file and its metadata.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its form is told; it is read piece by piece")]
pub struct SourceUpload {
    /// PDF, HTML, text or Markdown; or a list of references.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
    /// A title that replaces the one in the file.
    #[schema(example = "On bees")]
    title: Option<String>,
    /// The investigation that the source is for; also for all sources of a list of references.
    investigation_id: Option<Uuid>,
    /// The most that processing the source may cost, in US dollars.
    max_cost_usd: Option<f64>,
}

/// The image of a path.
#[derive(Deserialize)]
pub struct ImagePath {
    #[serde(rename = "sourceID")]
    source: Uuid,
    #[serde(rename = "imageID")]
    image: Uuid,
}

/// Upload a file as a source.
///
/// A file with the same bytes is answered with 200 and not added again, so sending one twice does no harm. A list of references
/// (`BibTeX`, RIS, CSL-JSON; known by its name, its type or its first entry) is imported as by `…/sources/import`, and
/// answered with 207.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/sources/upload", tag = "Sources",
    operation_id = "uploadSource", request_body(content = SourceUpload, content_type = "multipart/form-data"),
    responses((status = 202, body = SourceAccepted, description = "It will be processed"),
              (status = 200, body = SourceAccepted, description = "It existed already"),
              (status = 207, body = ImportedList, description = "A list of references: the result for each entry"),
              (status = 507, description = "storage_full")))]
pub async fn upload(
    State(api): State<Api>,
    repository: Repository<SourceWrite>,
    form: Upload,
) -> Result<Response, Problem> {
    let (source, incoming) = api.app.begin_upload(&repository.0);
    match read_form(form, source, incoming).await {
        Ok(Brought::File(file)) => {
            let accepted = api.app.add_upload(&repository.0, file).await?;
            Ok(answer(repository.0.repository(), accepted))
        }
        Ok(Brought::References(list, investigation)) => {
            let imported = list.import(&api, &repository, investigation).await?;
            Ok((StatusCode::MULTI_STATUS, Json(imported)).into_response())
        }
        Err(refused) => {
            api.app.give_up_upload(&repository.0, source).await;
            Err(refused)
        }
    }
}

/// What an upload contains.
enum Brought {
    File(NewUpload),
    /// Nothing of it is kept as a file.
    References(List, Option<InvestigationId>),
}

async fn read_form(mut form: Upload, source: SourceId, incoming: Incoming) -> Result<Brought, Problem> {
    let (mut title, mut max_cost_usd, mut incoming) = (None, None, Some(incoming));
    let (mut file, mut list, mut investigation) = (None, None, None);
    while let Some(mut part) = form.next().await? {
        match &*part.name {
            "file" => {
                let mut incoming =
                    incoming.take().ok_or_else(|| Error::invalid("file", "send one file at a time"))?;
                let mut head = Vec::new();
                while head.len() < HEAD
                    && let Some(piece) = part.chunk().await?
                {
                    head.extend_from_slice(&piece);
                }
                if is_reference_list(&head, part.file_name.as_deref(), part.content_type.as_deref()) {
                    list = Some(List::read(part, head).await?);
                    continue;
                }
                incoming.write(head.into()).await?;
                while let Some(piece) = part.chunk().await? {
                    incoming.write(piece).await?;
                }
                if incoming.size() == 0 {
                    return Err(Error::invalid("file", "is empty").into());
                }
                file = Some((incoming.finish().await?, part.file_name.take(), part.content_type.take()));
            }
            "title" => title = Some(part.text().await?).filter(|title| !title.trim().is_empty()),
            "investigation_id" => {
                let id: Result<InvestigationId, _> = part.text().await?.trim().parse();
                investigation = Some(id.map_err(|_| Error::invalid("investigation_id", "must be an id"))?);
            }
            "max_cost_usd" => {
                let usd = part.text().await?.trim().parse();
                max_cost_usd = Some(usd.map_err(|_| Error::invalid("max_cost_usd", "must be a number"))?);
            }
            name => return Err(Error::invalid(name.to_owned(), "is not a part of this form").into()),
        }
    }
    if let Some(list) = list {
        let given = [("title", title.is_some()), ("max_cost_usd", max_cost_usd.is_some())];
        if let Some((field, _)) = given.into_iter().find(|(_, given)| *given) {
            let why = "is for one source, and the file is a list of references; send the list without it";
            return Err(Error::invalid(field, why).into());
        }
        return Ok(Brought::References(list, investigation));
    }
    let (blob, file_name, content_type) = file.ok_or_else(|| Error::invalid("file", "must be given"))?;
    Ok(Brought::File(NewUpload { source, blob, file_name, content_type, title, max_cost_usd, investigation }))
}

/// The original of a source, as it was fetched or uploaded.
///
/// Takes `Range` with one range of bytes.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/sources/{sourceID}/body", tag = "Sources",
    operation_id = "getSourceBody",
    responses((status = 200, content((inline(File) = "application/octet-stream"), (inline(File) = "application/pdf")), description = "All of it"),
              (status = 206, content((inline(File) = "application/octet-stream"), (inline(File) = "application/pdf")), description = "The part asked for"),
              (status = 304, description = "You have it"),
              (status = 416, description = "bad_range")))]
pub async fn body(
    State(api): State<Api>,
    scope: Repository<SourceRead>,
    Path(path): Path<SourcePath>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (file, source, blob) = api.app.find_body(&scope.0, path.source.into()).await?;
    let content_type = source.content_type.as_deref();
    send(api, scope.0, file, blob, content_type, source.file_name.as_deref(), &headers).await
}

/// An image of a source, or a page of a PDF as a picture.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/sources/{sourceID}/images/{imageID}", tag = "Sources",
    operation_id = "getSourceImage",
    responses((status = 200, content((inline(File) = "application/octet-stream"), (inline(File) = "image/png"), (inline(File) = "image/jpeg"), (inline(File) = "image/gif"), (inline(File) = "image/webp")), description = "The image"),
              (status = 206, content((inline(File) = "application/octet-stream"), (inline(File) = "image/png"), (inline(File) = "image/jpeg"), (inline(File) = "image/gif"), (inline(File) = "image/webp")), description = "The part asked for"),
              (status = 304, description = "You have it"),
              (status = 416, description = "bad_range")))]
pub async fn image(
    State(api): State<Api>,
    scope: Repository<SourceRead>,
    Path(path): Path<ImagePath>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let found = api.app.find_image(&scope.0, path.source.into(), path.image.into());
    let (file, image, blob) = found.await?;
    send(api, scope.0, file, blob, image.content_type.as_deref(), None, &headers).await
}

async fn send(
    api: Api,
    scope: RepoScope<SourceRead>,
    file: SourceFile,
    blob: Blob,
    content_type: Option<&str>,
    name: Option<&str>,
    asked: &HeaderMap,
) -> Result<Response, Problem> {
    let read = async |range| Ok(Body::from_stream(api.app.read_file(&scope, file, range).await?.bytes));
    let mut response = ranged(&blob.hash.to_string(), blob.size, asked, read).await?;
    let headers = response.headers_mut();
    // Whatever a server or an uploader called it: what is not on the list is a file to be saved.
    let essence = content_type.and_then(|kind| kind.split(';').next()).unwrap_or_default().trim();
    let shown = SHOWN.iter().find(|shown| essence.eq_ignore_ascii_case(shown));
    let kind = shown.copied().unwrap_or("application/octet-stream");
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    let disposition = if shown.is_some() { "inline" } else { "attachment" };
    headers.insert(header::CONTENT_DISPOSITION, value(&format!("{disposition}{}", file_name(name)))?);
    Ok(response)
}

/// Something of this size with this hash: all of it, the part that is asked for, or that they have it. What is in it was
/// written by strangers, and no browser runs any of it.
pub(crate) async fn ranged(
    hash: &str,
    size: u64,
    asked: &HeaderMap,
    read: impl AsyncFnOnce(Option<Range<u64>>) -> Result<Body, Problem>,
) -> Result<Response, Problem> {
    let etag = format!("\"{hash}\"");
    let text = |name| asked.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let has_it = text(header::IF_NONE_MATCH)
        .is_some_and(|tags| tags.split(',').any(|tag| tag.trim().trim_start_matches("W/") == etag));
    let mut response = if has_it {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        // A part of another version would not fit.
        let same = text(header::IF_RANGE).is_none_or(|tag| tag == etag);
        let range = text(header::RANGE).filter(|_| same).map(|range| parse_range(range, size));
        match range {
            Some(Asked::Nothing) => {
                let detail = format!("the file has {size} bytes; ask for one range within them");
                return Err(Problem::new(Code::BadRange, detail));
            }
            Some(Asked::Part(range)) => {
                let told = format!("bytes {}-{}/{size}", range.start, range.end - 1);
                let headers = [(header::CONTENT_RANGE, told), (header::CONTENT_LENGTH, length(&range))];
                (StatusCode::PARTIAL_CONTENT, headers, read(Some(range)).await?).into_response()
            }
            Some(Asked::Everything) | None => {
                let headers = [(header::CONTENT_LENGTH, size.to_string())];
                (headers, read(None).await?).into_response()
            }
        }
    };
    let headers = response.headers_mut();
    headers.insert(header::ETAG, value(&etag)?);
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    let policy = "sandbox; default-src 'none'; frame-ancestors 'none'";
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    Ok(response)
}

#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Everything,
    Part(Range<u64>),
    /// What is asked for is not there.
    Nothing,
}

/// One range of bytes; whoever asks for several, or in another way, gets everything.
fn parse_range(text: &str, size: u64) -> Asked {
    let Some(spec) = text.strip_prefix("bytes=").filter(|spec| !spec.contains(',')) else {
        return Asked::Everything;
    };
    let Some((first, last)) = spec.trim().split_once('-') else { return Asked::Everything };
    let range = match (first.parse::<u64>(), last.parse::<u64>()) {
        (Ok(first), Ok(last)) if first <= last => first..last.saturating_add(1).min(size),
        (Ok(first), Err(_)) if last.is_empty() => first..size,
        (Err(_), Ok(last)) if first.is_empty() && last > 0 => size.saturating_sub(last)..size,
        (Err(_), Ok(0)) if first.is_empty() => return Asked::Nothing,
        _ => return Asked::Everything,
    };
    if range.start >= range.end { Asked::Nothing } else { Asked::Part(range) }
}

fn length(range: &Range<u64>) -> String {
    (range.end - range.start).to_string()
}

/// By RFC 6266, for names in any script.
pub(crate) fn file_name(name: Option<&str>) -> String {
    let Some(name) = name else { return String::new() };
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ' ');
    let ascii: String = name.chars().map(|c| if plain(c) { c } else { '_' }).collect();
    let encoded = name.bytes().fold(String::new(), |mut text, byte| {
        use std::fmt::Write as _;
        if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_') {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
        text
    });
    format!("; filename=\"{ascii}\"; filename*=UTF-8''{encoded}")
}

pub(crate) fn value(text: &str) -> Result<HeaderValue, Error> {
    HeaderValue::from_str(text).map_err(Error::internal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_a_part_of_the_file_or_everything() {
        let part = |range| Asked::Part(range);
        for (text, expected) in [
            ("bytes=0-0", part(0..1)),
            ("bytes=2-4", part(2..5)),
            ("bytes=5-", part(5..10)),
            ("bytes=-3", part(7..10)),
            ("bytes=-30", part(0..10)),
            ("bytes=8-200", part(8..10)),
            ("bytes=10-", Asked::Nothing),
            ("bytes=10-20", Asked::Nothing),
            ("bytes=-0", Asked::Nothing),
            ("bytes=4-2", Asked::Everything),
            ("bytes=0-1,3-4", Asked::Everything),
            ("bytes=", Asked::Everything),
            ("bytes=a-b", Asked::Everything),
            ("lines=1-2", Asked::Everything),
            ("bytes=0-18446744073709551615", part(0..10)),
        ] {
            assert_eq!(parse_range(text, 10), expected, "{text}");
        }
        assert_eq!(parse_range("bytes=0-", 0), Asked::Nothing);
    }

    #[test]
    fn a_name_can_say_nothing_but_itself() {
        assert_eq!(file_name(Some("a b.pdf")), "; filename=\"a b.pdf\"; filename*=UTF-8''a%20b.pdf");
        assert_eq!(
            file_name(Some("\"; x=\r\né")),
            "; filename=\"___x____\"; filename*=UTF-8''%22%3B%20x%3D%0D%0A%C3%A9"
                .replace("___x____", "__ x____")
        );
    }
}
