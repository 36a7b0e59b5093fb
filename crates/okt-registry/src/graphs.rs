//! Graph Bundles: files that are kept and handed out as they are. Whoever imports one verifies it.

use std::ops::Range;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chrono::DateTime;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use okt_http::{Code, Json, Page, PageRequest, Path, Problem, Query, RawUpload};
use okt_model::{Error, JobId};
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use crate::Registry;
use crate::auth::{Caller, check_digest};
use crate::decompositions::{SIGNATURE, count, signature};
use crate::files::Kind;
use crate::sources::text;
use crate::store::{self, GraphRow};
use crate::views::{GraphPushed, GraphView};

const MOST_TAGS: usize = 100;

#[derive(Deserialize)]
pub struct GraphPath {
    id: Uuid,
}

/// Which bundles are wanted.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct GraphQuery {
    /// A part of the name or the description.
    #[param(example = "bees")]
    q: Option<String>,
    /// One of the tags.
    #[param(example = "bees")]
    tag: Option<String>,
}

/// Push a bundle.
///
/// The body is the gzipped bundle; what it is called and says of itself is in headers, percent-encoded. A bundle of a name and hash that
/// are there is not kept twice.
#[utoipa::path(post, path = "/api/v1/graphs", tag = "Registry", operation_id = "pushGraph",
    params(("X-Graph-Name" = String, Header, description = "Its name"),
           ("X-Graph-SHA256" = String, Header, description = "The canonical hash of the graph"),
           ("X-Graph-Description" = Option<String>, Header, description = "What it is about"),
           ("X-Graph-Tags" = Option<String>, Header, description = "Tags, with commas between them"),
           ("X-Graph-Source-Count" = Option<i64>, Header, description = "How many sources it has"),
           ("X-Graph-Fact-Count" = Option<i64>, Header, description = "How many facts it has"),
           ("X-Graph-Concept-Count" = Option<i64>, Header, description = "How many concepts it has"),
           ("X-Graph-Schema-Version" = Option<i32>, Header, description = "Version of the format")),
    request_body(content = Vec<u8>, content_type = "application/gzip"),
    responses((status = 201, body = GraphPushed, description = "It is here")))]
pub async fn push(
    State(registry): State<Registry>,
    caller: Caller,
    headers: HeaderMap,
    mut body: RawUpload,
) -> Result<(StatusCode, Json<GraphPushed>), Problem> {
    let mut row = described(&headers)?;
    row.owner = caller.name().to_owned();
    row.signature = signature(&headers)?;
    let mut incoming = registry.files.begin(row.id);
    let read = async {
        while let Some(bytes) = body.chunk(registry.bundle_bytes).await? {
            incoming.write(&bytes).await?;
        }
        Ok::<_, Problem>(())
    };
    if let Err(problem) = read.await {
        incoming.give_up().await;
        return Err(problem);
    }
    let (hash, size) = incoming.finish(Kind::Graph).await?;
    if let Err(problem) = check_digest(&caller, hash) {
        registry.files.remove(Kind::Graph, &hash).await?;
        return Err(problem);
    }
    row.file_sha256 = hash.to_vec();
    row.bytes = i64::try_from(size).map_err(Error::internal)?;
    count(&registry, &caller, row.bytes).await?;
    let mut conn = registry.acquire().await?;
    let (graph_id, new) = store::insert_graph(&mut conn, &row).await.map_err(Error::from)?;
    Ok((StatusCode::CREATED, Json(GraphPushed { graph_id, new })))
}

/// List bundles.
#[utoipa::path(get, path = "/api/v1/graphs", tag = "Registry", operation_id = "listGraphs", params(GraphQuery, PageRequest),
    responses((status = 200, body = Page<GraphView>, description = "The newest first")))]
pub async fn list(
    State(registry): State<Registry>,
    Query(query): Query<GraphQuery>,
    page: PageRequest,
) -> Result<Page<GraphView>, Problem> {
    let before: Option<Uuid> = page.after()?;
    let mut conn = registry.acquire().await?;
    let (text, tag) = (query.q.as_deref(), query.tag.as_deref());
    let rows = store::list_graphs(&mut conn, text, tag, before, page.rows()).await.map_err(Error::from)?;
    page.page(rows.into_iter().map(GraphView::from).collect(), |row| row.graph_id)
}

/// Show a bundle.
#[utoipa::path(get, path = "/api/v1/graphs/{id}", tag = "Registry", operation_id = "getGraph",
    params(("id" = Uuid, Path, description = "The id of the bundle")),
    responses((status = 200, body = GraphView, description = "What is known of it")))]
pub async fn show(
    State(registry): State<Registry>,
    Path(path): Path<GraphPath>,
) -> Result<Json<GraphView>, Problem> {
    Ok(Json(registry.graph(path.id).await?.into()))
}

/// Pull a bundle.
///
/// Takes `Range` with one range of bytes.
#[utoipa::path(get, path = "/api/v1/graphs/{id}/bundle", tag = "Registry", operation_id = "pullGraph",
    params(("id" = Uuid, Path, description = "The id of the bundle")),
    responses((status = 200, body = Vec<u8>, content_type = "application/gzip", description = "All of it"),
              (status = 206, body = Vec<u8>, content_type = "application/gzip", description = "The part asked for"),
              (status = 416, description = "bad_range")))]
pub async fn pull(
    State(registry): State<Registry>,
    Path(path): Path<GraphPath>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let row = registry.graph(path.id).await?;
    let size = u64::try_from(row.bytes).map_err(Error::internal)?;
    let range = range(&headers, size)?;
    let bytes = registry.files.read(Kind::Graph, &row.file_sha256, range.clone()).await?;
    let bytes = bytes.ok_or_else(|| Error::internal("the file of a bundle is not there"))?;
    let mut response = Body::from_stream(bytes).into_response();
    let value = |text: String| HeaderValue::from_str(&text).map_err(Error::internal);
    if let Some(range) = &range {
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        let part = format!("bytes {}-{}/{size}", range.start, range.end - 1);
        response.headers_mut().insert(header::CONTENT_RANGE, value(part)?);
    }
    let length = range.map_or(size, |range| range.end - range.start);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/gzip"));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(header::CONTENT_LENGTH, length.into());
    headers.insert(header::ETAG, value(format!("\"{}\"", hex::encode(&row.file_sha256)))?);
    if let Some(signature) = row.signature.as_deref().and_then(|text| HeaderValue::from_str(text).ok()) {
        headers.insert(SIGNATURE, signature);
    }
    Ok(response)
}

/// Delete a bundle.
///
/// Only with the key that pushed it.
#[utoipa::path(delete, path = "/api/v1/graphs/{id}", tag = "Registry", operation_id = "deleteGraph",
    params(("id" = Uuid, Path, description = "The id of the bundle")),
    responses((status = 204, description = "It is gone")))]
pub async fn delete(
    State(registry): State<Registry>,
    caller: Caller,
    Path(path): Path<GraphPath>,
) -> Result<StatusCode, Problem> {
    let row = registry.graph(path.id).await?;
    if row.owner != caller.name() || caller.key.is_none() {
        return Err(Error::Forbidden("only the key that pushed a bundle can delete it").into());
    }
    let mut tx = registry.begin().await?;
    let gone = store::delete_graph(&mut tx, path.id, caller.name()).await.map_err(Error::from)?;
    tx.commit().await.map_err(Error::from)?;
    let (file, used) = gone.ok_or(Error::NotFound("graph"))?;
    if !used {
        registry.files.remove(Kind::Graph, &file).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

impl Registry {
    async fn graph(&self, id: Uuid) -> Result<GraphRow, Problem> {
        let mut conn = self.acquire().await?;
        let row = store::get_graph(&mut conn, id).await.map_err(Error::from)?;
        Ok(row.ok_or(Error::NotFound("graph"))?)
    }
}

/// What the headers say.
fn described(headers: &HeaderMap) -> Result<GraphRow, Problem> {
    let told = |name: &str| -> Result<Option<String>, Problem> {
        let Some(value) = headers.get(name) else { return Ok(None) };
        let bytes =
            value.to_str().map_err(|_| Problem::new(Code::Malformed, format!("{name} is not readable")))?;
        let pair = format!("v={}", bytes.replace('+', "%2B"));
        let decoded =
            url::form_urlencoded::parse(pair.as_bytes()).next().map(|(_, value)| value.into_owned());
        Ok(decoded)
    };
    let number = |name: &'static str| -> Result<i64, Problem> {
        let Some(text) = told(name)? else { return Ok(0) };
        let number = text.parse().ok().filter(|number: &i64| *number >= 0);
        number.ok_or_else(|| Error::invalid(name, "must be a whole number").into())
    };
    let name = text("X-Graph-Name", told("x-graph-name")?, 300)?;
    let sha256 = told("x-graph-sha256")?.unwrap_or_default().to_lowercase();
    if sha256.len() != 64 || !sha256.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Error::invalid("X-Graph-SHA256", "must be a SHA-256 in hexadecimal").into());
    }
    let tags: Vec<String> = (told("x-graph-tags")?.unwrap_or_default().split(','))
        .map(|tag| tag.trim().to_owned())
        .filter(|tag| !tag.is_empty())
        .collect();
    if tags.len() > MOST_TAGS || tags.iter().any(|tag| tag.chars().count() > 100 || tag.contains('\0')) {
        return Err(Error::invalid("X-Graph-Tags", "must be at most 100, of 100 characters each").into());
    }
    Ok(GraphRow {
        id: JobId::mint().uuid(),
        name: name.ok_or_else(|| Error::invalid("X-Graph-Name", "is required"))?,
        description: text("X-Graph-Description", told("x-graph-description")?, 10_000)?.unwrap_or_default(),
        tags,
        sha256,
        schema_version: i32::try_from(number("x-graph-schema-version")?).unwrap_or(i32::MAX),
        source_count: number("x-graph-source-count")?,
        fact_count: number("x-graph-fact-count")?,
        concept_count: number("x-graph-concept-count")?,
        file_sha256: Vec::new(),
        bytes: 0,
        owner: String::new(),
        signature: None,
        created_at: DateTime::UNIX_EPOCH,
    })
}

/// The one range that is asked for.
fn range(headers: &HeaderMap, size: u64) -> Result<Option<Range<u64>>, Problem> {
    let Some(value) = headers.get(header::RANGE) else { return Ok(None) };
    let bad =
        || Problem::new(Code::BadRange, format!("the bundle has {size} bytes, and one range is handed out"));
    let text = value.to_str().ok().and_then(|text| text.strip_prefix("bytes=")).ok_or_else(bad)?;
    let (from, to) = text.split_once('-').ok_or_else(bad)?;
    let range = match (from.parse::<u64>(), to.parse::<u64>()) {
        (Ok(from), Ok(to)) => from..to.saturating_add(1).min(size),
        (Ok(from), Err(_)) if to.is_empty() => from..size,
        (Err(_), Ok(last)) if from.is_empty() => size.saturating_sub(last)..size,
        _ => return Err(bad()),
    };
    if range.start >= range.end { Err(bad()) } else { Ok(Some(range)) }
}
