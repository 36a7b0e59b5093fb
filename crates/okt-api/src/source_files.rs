//! Files of sources: bringing one along, and getting originals and images back.
//!
//! What is in a file was written by strangers. It is handed out in a way in which no browser runs any of it.

use std::ops::Range;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use okt_app::Upload as NewUpload;
use okt_http::{Code, Path, Problem, Upload};
use okt_model::{Blob, Error, SourceFile, SourceId};
use okt_store::blobs::Incoming;
use serde::Deserialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::Api;
use crate::repositories::Repository;
use crate::sources::{SourceAccepted, SourcePath, answer, refuse_investigation};

/// Types that a browser shows without running anything in them.
const SHOWN: [&str; 5] = ["application/pdf", "image/gif", "image/jpeg", "image/png", "image/webp"];

/// A file, with what is said of it.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its form is told; it is read piece by piece")]
pub struct SourceUpload {
    /// PDF, HTML, text or Markdown.
    #[schema(format = Binary, content_media_type = "application/octet-stream")]
    file: Vec<u8>,
    title: Option<String>,
    investigation_id: Option<Uuid>,
    /// The most that may be spent on it.
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

/// Bring a file along as a source.
///
/// A file with the same bytes is answered with 200 and not added again, so sending one twice does no harm.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/sources/upload", tag = "Sources",
    params(("repoID" = String, Path, description = "Its id or its slug")),
    request_body(content = SourceUpload, content_type = "multipart/form-data"),
    responses((status = 202, body = SourceAccepted, description = "It will be processed"),
              (status = 200, body = SourceAccepted, description = "It was there before"),
              (status = 507, body = okt_http::ProblemBody, content_type = "application/problem+json",
               description = "Problem: storage_full")))]
pub async fn upload(
    State(api): State<Api>,
    repository: Repository,
    form: Upload,
) -> Result<Response, Problem> {
    let (source, incoming) = api.app.begin_upload(&repository.0);
    match read_form(form, source, incoming).await {
        Ok(file) => {
            let accepted = api.app.add_upload(&repository.0, file).await?;
            Ok(answer(repository.0.repository(), accepted))
        }
        Err(refused) => {
            api.app.give_up_upload(&repository.0, source).await;
            Err(refused)
        }
    }
}

async fn read_form(mut form: Upload, source: SourceId, incoming: Incoming) -> Result<NewUpload, Problem> {
    let (mut title, mut max_cost_usd, mut file, mut incoming) = (None, None, None, Some(incoming));
    while let Some(mut part) = form.next().await? {
        match &*part.name {
            "file" => {
                let mut incoming =
                    incoming.take().ok_or_else(|| Error::invalid("file", "send one file at a time"))?;
                let (file_name, content_type) = (part.file_name.take(), part.content_type.take());
                while let Some(piece) = part.chunk().await? {
                    incoming.write(piece).await?;
                }
                if incoming.size() == 0 {
                    return Err(Error::invalid("file", "is empty").into());
                }
                file = Some((incoming.finish().await?, file_name, content_type));
            }
            "title" => title = Some(part.text().await?).filter(|title| !title.trim().is_empty()),
            "investigation_id" => refuse_investigation(!part.text().await?.trim().is_empty())?,
            "max_cost_usd" => {
                let usd = part.text().await?.trim().parse();
                max_cost_usd = Some(usd.map_err(|_| Error::invalid("max_cost_usd", "must be a number"))?);
            }
            name => return Err(Error::invalid(name.to_owned(), "is not a part of this form").into()),
        }
    }
    let (blob, file_name, content_type) = file.ok_or_else(|| Error::invalid("file", "must be given"))?;
    Ok(NewUpload { source, blob, file_name, content_type, title, max_cost_usd })
}

/// The original of a source, as it was fetched or brought along.
///
/// Takes `Range` with one range of bytes.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/sources/{sourceID}/body", tag = "Sources",
    params(("repoID" = String, Path, description = "Its id or its slug"), ("sourceID" = Uuid, Path)),
    responses((status = 200, content_type = "application/octet-stream", body = Vec<u8>, description = "All of it"),
              (status = 206, content_type = "application/octet-stream", body = Vec<u8>, description = "The part asked for"),
              (status = 304, description = "You have it"),
              (status = 416, body = okt_http::ProblemBody, content_type = "application/problem+json",
               description = "Problem: bad_range")))]
pub async fn body(
    State(api): State<Api>,
    repository: Repository,
    Path(path): Path<SourcePath>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (file, source, blob) = api.app.find_body(&repository.0, path.source.into()).await?;
    let content_type = source.content_type.as_deref();
    send(&api, file, blob, content_type, source.file_name.as_deref(), &headers).await
}

/// An image of a source, or a page of a PDF as a picture.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/sources/{sourceID}/images/{imageID}", tag = "Sources",
    params(("repoID" = String, Path, description = "Its id or its slug"), ("sourceID" = Uuid, Path),
           ("imageID" = Uuid, Path)),
    responses((status = 200, content_type = "image/png", body = Vec<u8>, description = "The image"),
              (status = 206, content_type = "image/png", body = Vec<u8>, description = "The part asked for"),
              (status = 304, description = "You have it"),
              (status = 416, body = okt_http::ProblemBody, content_type = "application/problem+json",
               description = "Problem: bad_range")))]
pub async fn image(
    State(api): State<Api>,
    repository: Repository,
    Path(path): Path<ImagePath>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let found = api.app.find_image(&repository.0, path.source.into(), path.image.into());
    let (file, image, blob) = found.await?;
    send(&api, file, blob, image.content_type.as_deref(), None, &headers).await
}

async fn send(
    api: &Api,
    file: SourceFile,
    blob: Blob,
    content_type: Option<&str>,
    name: Option<&str>,
    asked: &HeaderMap,
) -> Result<Response, Problem> {
    let etag = format!("\"{}\"", blob.hash);
    let text = |name| asked.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let has_it = text(header::IF_NONE_MATCH)
        .is_some_and(|tags| tags.split(',').any(|tag| tag.trim().trim_start_matches("W/") == etag));
    let mut response = if has_it {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        // A part of another version would not fit.
        let same = text(header::IF_RANGE).is_none_or(|tag| tag == etag);
        let range = text(header::RANGE).filter(|_| same).map(|range| parse_range(range, blob.size));
        match range {
            Some(Asked::Nothing) => {
                let detail = format!("the file has {} bytes; ask for one range within them", blob.size);
                return Err(Problem::new(Code::BadRange, detail));
            }
            Some(Asked::Part(range)) => {
                let reading = api.app.read_file(file, Some(range.clone())).await?;
                let told = format!("bytes {}-{}/{}", range.start, range.end - 1, blob.size);
                let headers = [(header::CONTENT_RANGE, told), (header::CONTENT_LENGTH, length(&range))];
                (StatusCode::PARTIAL_CONTENT, headers, Body::from_stream(reading.bytes)).into_response()
            }
            Some(Asked::Everything) | None => {
                let reading = api.app.read_file(file, None).await?;
                let headers = [(header::CONTENT_LENGTH, blob.size.to_string())];
                (headers, Body::from_stream(reading.bytes)).into_response()
            }
        }
    };
    let headers = response.headers_mut();
    headers.insert(header::ETAG, value(&etag)?);
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    let policy = "sandbox; default-src 'none'; frame-ancestors 'none'";
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    // Whatever a server or an uploader called it: what is not on the list is a file to be saved.
    let essence = content_type.and_then(|kind| kind.split(';').next()).unwrap_or_default().trim();
    let shown = SHOWN.iter().find(|shown| essence.eq_ignore_ascii_case(shown));
    let kind = shown.copied().unwrap_or("application/octet-stream");
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    let disposition = if shown.is_some() { "inline" } else { "attachment" };
    headers.insert(header::CONTENT_DISPOSITION, value(&format!("{disposition}{}", file_name(name)))?);
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
fn file_name(name: Option<&str>) -> String {
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

fn value(text: &str) -> Result<HeaderValue, Error> {
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
