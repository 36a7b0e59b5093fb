//! Graph Bundles: files that are read while they arrive, and refused if anything in them is wrong; then kept and handed out as they are.

use std::io;
use std::ops::Range;
use std::sync::PoisonError;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use chrono::DateTime;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use okt_http::{Code, Json, Page, PageRequest, Path, Problem, Query, RawUpload};
use okt_interchange::bundle::{self, Limits, Read};
use okt_model::{ContentHash, Error, JobId};
use serde::Deserialize;
use tokio::sync::mpsc;
use utoipa::IntoParams;
use uuid::Uuid;

use crate::Registry;
use crate::auth::{Caller, check_digest};
use crate::decompositions::{SIGNATURE, count, count_bytes, media_type, signature};
use crate::files::{Incoming, Kind};
use crate::sources::text;
use crate::store::{self, GraphRow};
use crate::views::{GraphPushed, GraphView};

const MOST_TAGS: usize = 100;
/// Pieces that wait for whoever reads them.
const WAITING: usize = 8;

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
/// The body is the gzipped bundle; what it is called and says of itself is in headers, percent-encoded. It is read while it arrives:
/// its hash is computed anew, and nothing is kept of one that is wrong anywhere. A bundle of a name, hash and signer that are there is
/// not kept twice.
#[utoipa::path(post, path = "/api/v1/graphs", tag = "Registry", operation_id = "pushGraph",
    params(("X-Graph-Name" = String, Header, description = "Its name"),
           ("X-Graph-SHA256" = Option<String>, Header, description = "The canonical hash of the graph"),
           ("X-Graph-Description" = Option<String>, Header, description = "What it is about"),
           ("X-Graph-Tags" = Option<String>, Header, description = "Tags, with commas between them"),
           ("X-Graph-Source-Count" = Option<i64>, Header, description = "How many sources it has"),
           ("X-Graph-Fact-Count" = Option<i64>, Header, description = "How many facts it has"),
           ("X-Graph-Concept-Count" = Option<i64>, Header, description = "How many concepts it has"),
           ("X-Graph-Schema-Version" = Option<i32>, Header, description = "Version of the format"),
           ("X-Okt-Signature" = Option<String>, Header, description = "`keyid=…,sig=…`: Ed25519 over the SHA-256 of the body")),
    request_body(content = Vec<u8>, content_type = "application/gzip"),
    responses((status = 201, body = GraphPushed, description = "It is here"),
              (status = 409, description = "conflict"),
              (status = 422, description = "invalid: what is wrong, and where")))]
pub async fn push(
    State(registry): State<Registry>,
    caller: Caller,
    headers: HeaderMap,
    mut body: RawUpload,
) -> Result<(StatusCode, Json<GraphPushed>), Problem> {
    media_type(&headers, "application/gzip")?;
    let told = Told::read(&headers)?;
    let _place = Place::take(&registry, caller.name())?;
    let _reader =
        registry.readers.try_acquire().map_err(|_| Error::Overloaded("too many bundles are being pushed"))?;
    count(&registry, &caller).await?;
    let mut incoming = registry.files.begin(JobId::mint().uuid());
    let read = match receive(&registry, &caller, &mut body, &mut incoming).await {
        // Over all of it: the hash of a graph leaves out files, vectors, and what else a bundle may bring along.
        Ok(read) => told.check(&read).and_then(|()| Ok((read, signature(&headers, &incoming.sha256())?))),
        Err(problem) => Err(problem),
    };
    let (read, signature) = match read {
        Ok(read) => read,
        Err(problem) => {
            incoming.give_up().await;
            return Err(problem);
        }
    };
    let mut row = told.row(&read);
    (row.owner, row.signature) = (caller.name().to_owned(), signature.map(|(text, _)| text));
    row.file_sha256 = incoming.sha256().to_vec();
    row.bytes = i64::try_from(incoming.size()).map_err(Error::internal)?;
    if let Err(problem) = count_bytes(&registry, &caller, row.bytes).await {
        incoming.give_up().await;
        return Err(problem);
    }
    let pushed = keep(&registry, incoming, &row).await;
    if !matches!(pushed, Ok(GraphPushed { new: true, .. })) {
        registry.drop_unused(Kind::Graph, &row.file_sha256).await?;
    }
    Ok((StatusCode::CREATED, Json(pushed?)))
}

/// Somebody pushes a bundle.
struct Place<'r> {
    registry: &'r Registry,
    name: String,
}

impl<'r> Place<'r> {
    fn take(registry: &'r Registry, name: &str) -> Result<Self, Error> {
        if registry.pushing.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned()) {
            return Ok(Self { registry, name: name.to_owned() });
        }
        Err(Error::Overloaded("a bundle is being pushed with this key already"))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.registry.pushing.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.name);
    }
}

/// The file gets its name, and then its row.
async fn keep(registry: &Registry, incoming: Incoming, row: &GraphRow) -> Result<GraphPushed, Problem> {
    incoming.finish(Kind::Graph).await?;
    let mut tx = registry.begin_with_file(Kind::Graph, &row.file_sha256).await?;
    let (graph_id, new) = store::insert_graph(&mut tx, row).await.map_err(Error::from)?;
    tx.commit().await.map_err(Error::from)?;
    Ok(GraphPushed { graph_id, new })
}

/// Keeps a bundle while it is read in a thread of its own. What is wrong with it stops it at once.
async fn receive(
    registry: &Registry,
    caller: &Caller,
    body: &mut RawUpload,
    incoming: &mut Incoming,
) -> Result<Read, Problem> {
    let limits = Limits { compressed_bytes: registry.bundle_bytes, ..Limits::default() };
    let (pieces, taken) = mpsc::channel::<Bytes>(WAITING);
    let reading = tokio::task::spawn_blocking(move || {
        let mut pieces = Arriving { pieces: taken, piece: Bytes::new() };
        let read = bundle::read(&mut pieces, &limits, &mut |_| Ok(()));
        // What follows a document that is right is no part of it; it is kept as it was signed.
        while read.is_ok() && pieces.next().is_some() {}
        read
    });
    loop {
        let Some(piece) = body.chunk(registry.bundle_bytes).await? else { break };
        incoming.write(&piece).await?;
        if pieces.send(piece).await.is_err() {
            // It has stopped reading, and says why.
            break;
        }
    }
    drop(pieces);
    let read = reading.await.map_err(Error::internal)?;
    let read = read.map_err(|refused| Error::invalid("bundle", refused.to_string()))?;
    check_digest(caller, incoming.sha256())?;
    Ok(read)
}

/// A body that arrives, for whoever reads it in a thread.
struct Arriving {
    pieces: mpsc::Receiver<Bytes>,
    piece: Bytes,
}

impl Arriving {
    fn next(&mut self) -> Option<Bytes> {
        self.pieces.blocking_recv()
    }
}

impl io::Read for Arriving {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.next() {
                Some(piece) => self.piece = piece,
                None => return Ok(0),
            }
        }
        let count = buffer.len().min(self.piece.len());
        buffer[..count].copy_from_slice(&self.piece.split_to(count));
        Ok(count)
    }
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
    params(("id" = Uuid, Path, description = "The id of the bundle"),
           ("Range" = Option<String>, Header, description = "One range of bytes")),
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
    responses((status = 204, description = "It is gone"), (status = 403, description = "forbidden")))]
pub async fn delete(
    State(registry): State<Registry>,
    caller: Caller,
    Path(path): Path<GraphPath>,
) -> Result<StatusCode, Problem> {
    let row = registry.graph(path.id).await?;
    if row.owner != caller.name() || caller.key.is_none() {
        return Err(Error::Forbidden("only the key that pushed a bundle can delete it").into());
    }
    let mut conn = registry.acquire().await?;
    let gone = store::delete_graph(&mut conn, path.id, caller.name()).await.map_err(Error::from)?;
    drop(conn);
    if !gone {
        return Err(Error::NotFound("graph").into());
    }
    registry.drop_unused(Kind::Graph, &row.file_sha256).await?;
    Ok(StatusCode::NO_CONTENT)
}

impl Registry {
    async fn graph(&self, id: Uuid) -> Result<GraphRow, Problem> {
        let mut conn = self.acquire().await?;
        let row = store::get_graph(&mut conn, id).await.map_err(Error::from)?;
        let row = row.ok_or(Error::NotFound("graph"))?;
        match &row.withdrawn_why {
            Some(why) => Err(Problem::new(Code::NotFound, format!("this bundle was withdrawn: {why}"))),
            None => Ok(row),
        }
    }
}

/// What the headers say. What they leave out, the bundle says itself.
struct Told {
    name: String,
    description: Option<String>,
    tags: Option<Vec<String>>,
    sha256: Option<ContentHash>,
    schema_version: Option<u64>,
    sources: Option<u64>,
    facts: Option<u64>,
    concepts: Option<u64>,
}

impl Told {
    fn read(headers: &HeaderMap) -> Result<Self, Problem> {
        let told = |name: &str| -> Result<Option<String>, Problem> {
            let Some(value) = headers.get(name) else { return Ok(None) };
            let unreadable = || Problem::new(Code::Malformed, format!("{name} is not readable"));
            let text = value.to_str().map_err(|_| unreadable())?;
            let pair = format!("v={}", text.replace('+', "%2B").replace('&', "%26"));
            let mut decoded = url::form_urlencoded::parse(pair.as_bytes());
            Ok(decoded.next().map(|(_, value)| value.into_owned()))
        };
        let number = |name: &'static str| -> Result<Option<u64>, Problem> {
            let Some(text) = told(name)? else { return Ok(None) };
            let number = text.parse().ok().filter(|number: &u64| i64::try_from(*number).is_ok());
            Ok(Some(number.ok_or_else(|| Error::invalid(name, "must be a whole number"))?))
        };
        let name = text("X-Graph-Name", told("x-graph-name")?, 300)?;
        let hash = |text: String| -> Result<ContentHash, Problem> {
            let wrong = || Error::invalid("X-Graph-SHA256", "must be a SHA-256 in hexadecimal");
            Ok(text.to_ascii_lowercase().parse().map_err(|_| wrong())?)
        };
        Ok(Self {
            name: name.ok_or_else(|| Error::invalid("X-Graph-Name", "is required"))?,
            description: text("X-Graph-Description", told("x-graph-description")?, 10_000)?,
            tags: told("x-graph-tags")?.map(|tags| checked_tags(tags.split(','))).transpose()?,
            sha256: told("x-graph-sha256")?.map(hash).transpose()?,
            schema_version: number("x-graph-schema-version")?,
            sources: number("x-graph-source-count")?,
            facts: number("x-graph-fact-count")?,
            concepts: number("x-graph-concept-count")?,
        })
    }

    /// Whether the bundle is the one that the headers speak of.
    fn check(&self, read: &Read) -> Result<(), Problem> {
        if self.sha256.is_some_and(|hash| read.sha256 != hash.to_string()) {
            return Err(Error::invalid("X-Graph-SHA256", "is not the hash of the bundle").into());
        }
        let metadata = &read.metadata;
        for (name, told, counted) in [
            ("X-Graph-Schema-Version", self.schema_version, u64::from(read.schema_version)),
            ("X-Graph-Source-Count", self.sources, metadata.source_count),
            ("X-Graph-Fact-Count", self.facts, metadata.fact_count),
            ("X-Graph-Concept-Count", self.concepts, metadata.concept_count),
        ] {
            if told.is_some_and(|told| told != counted) {
                return Err(Error::invalid(name, format!("is not {counted}, as in the bundle")).into());
            }
        }
        Ok(())
    }

    fn row(self, read: &Read) -> GraphRow {
        let metadata = &read.metadata;
        let own = || {
            let text: String = metadata.description.chars().filter(|c| *c != '\0').take(10_000).collect();
            text.trim().to_owned()
        };
        let own_tags = || checked_tags(metadata.tags.iter().map(String::as_str)).unwrap_or_default();
        let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        GraphRow {
            id: JobId::mint().uuid(),
            name: self.name,
            description: self.description.unwrap_or_else(own),
            tags: self.tags.unwrap_or_else(own_tags),
            sha256: read.sha256.clone(),
            schema_version: i32::try_from(read.schema_version).unwrap_or(i32::MAX),
            source_count: signed(metadata.source_count),
            fact_count: signed(metadata.fact_count),
            concept_count: signed(metadata.concept_count),
            file_sha256: Vec::new(),
            bytes: 0,
            owner: String::new(),
            signature: None,
            created_at: DateTime::UNIX_EPOCH,
            withdrawn_why: None,
        }
    }
}

fn checked_tags<'t>(tags: impl Iterator<Item = &'t str>) -> Result<Vec<String>, Problem> {
    let tags: Vec<String> = tags.map(|tag| tag.trim().to_owned()).filter(|tag| !tag.is_empty()).collect();
    if tags.len() > MOST_TAGS || tags.iter().any(|tag| tag.chars().count() > 100 || tag.contains('\0')) {
        return Err(Error::invalid("X-Graph-Tags", "must be at most 100, of 100 characters each").into());
    }
    Ok(tags)
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
