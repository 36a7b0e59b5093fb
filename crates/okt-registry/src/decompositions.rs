//! Packages: taken, handed out, and withdrawn.

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use okt_http::{Code, Json, Page, PageRequest, Path, Problem, Query, RawUpload};
use okt_interchange::origin;
use okt_interchange::package::Package;
use okt_model::{Error, content_hash};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::Registry;
use crate::auth::{Caller, check_digest};
use crate::files::Kind;
use crate::sources::SourcePath;
use crate::store::{self, DecompositionRow, WithdrawalPlace};
use crate::views::{DecompositionView, Pushed, WithdrawalView};

/// Handed on with a package, as it came.
pub(crate) const SIGNATURE: HeaderName = HeaderName::from_static(origin::HEADER);
const LONGEST_SIGNATURE: usize = 500;
/// How far the clock of whoever made a package may be ahead.
const AHEAD: TimeDelta = TimeDelta::days(1);

#[derive(Deserialize)]
pub struct ModelPath {
    #[serde(rename = "sid")]
    source: Uuid,
    model: String,
}

/// Which one of a model.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct VersionQuery {
    /// A version; the latest without.
    #[param(example = 1)]
    version: Option<i32>,
}

/// Since when.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct SinceQuery {
    /// Only those that were withdrawn at this time or later.
    #[param(example = "2026-01-02T03:04:05Z")]
    since: Option<DateTime<Utc>>,
}

/// A Decomposition Package.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only that it is an object is told; its form is in docs/api/registries.md")]
pub struct PackageBody {
    schema_version: u32,
    model_id: String,
    decomposed_at: DateTime<Utc>,
    facts: Vec<serde_json::Value>,
    concepts: Vec<serde_json::Value>,
}

/// List the packages of a source.
///
/// The latest of each model, signer and key that pushed it.
#[utoipa::path(get, path = "/api/v1/sources/{sid}/decompositions", tag = "Registry", operation_id = "listDecompositions",
    params(("sid" = Uuid, Path, description = "The id of the source")),
    responses((status = 200, body = Page<DecompositionView>, description = "All of them")))]
pub async fn list(
    State(registry): State<Registry>,
    Path(path): Path<SourcePath>,
) -> Result<Page<DecompositionView>, Problem> {
    let mut conn = registry.acquire().await?;
    let source = store::get_source(&mut conn, path.source).await.map_err(Error::from)?;
    source.ok_or(Error::NotFound("source"))?;
    let rows = store::list_decompositions(&mut conn, path.source).await.map_err(Error::from)?;
    Ok(Page::whole(rows.into_iter().map(DecompositionView::from).collect()))
}

/// Push a package.
///
/// It is read whole and refused whole: hashes of facts are computed anew, and references have to lead somewhere. A package that is
/// not the same as the latest becomes the next version.
#[utoipa::path(post, path = "/api/v1/sources/{sid}/decompositions/{model}", tag = "Registry", operation_id = "pushDecomposition",
    params(("sid" = Uuid, Path, description = "The id of the source"),
           ("model" = String, Path, description = "The model, percent-encoded"),
           ("X-Okt-Signature" = Option<String>, Header, description = "`keyid=…,sig=…`: Ed25519 over the SHA-256 of the body")),
    request_body = PackageBody,
    responses((status = 201, body = Pushed, description = "It is here"),
              (status = 400, description = "malformed: promptset_hash required when validation enabled"),
              (status = 409, description = "conflict"),
              (status = 422, description = "invalid: what is wrong, and where")))]
pub async fn push(
    State(registry): State<Registry>,
    Path(path): Path<ModelPath>,
    caller: Caller,
    headers: HeaderMap,
    mut body: RawUpload,
) -> Result<(StatusCode, Json<Pushed>), Problem> {
    media_type(&headers, "application/json")?;
    count(&registry, &caller).await?;
    // Held until the end: what is made of a package takes more memory than its bytes.
    let mut room = None;
    let mut bytes = Vec::new();
    while let Some(piece) = body.chunk(registry.package_bytes).await? {
        registry.take_room(&mut room, bytes.len() + piece.len()).await?;
        bytes.extend_from_slice(&piece);
    }
    let bytes = Bytes::from(bytes);
    let sha256: [u8; 32] = Sha256::digest(&bytes).into();
    check_digest(&caller, sha256)?;
    let (signature, key_id) = signature(&headers, &sha256)?.unzip();
    let parsed = bytes.clone();
    let parsed = tokio::task::spawn_blocking(move || {
        Package::parse(&parsed).map(|package| {
            let keys: Vec<i64> = package.facts.iter().map(|fact| key(&fact.content)).collect();
            (package, keys)
        })
    });
    let (package, mut keys) = parsed
        .await
        .map_err(Error::internal)?
        .map_err(|refused| Error::invalid("package", refused.to_string()))?;
    if registry.validates && package.promptset_hash.is_empty() {
        return Err(Problem::new(Code::Malformed, "promptset_hash required when validation enabled"));
    }
    if package.model_id != path.model {
        return Err(Error::invalid("model_id", "is not the model of the address").into());
    }
    keys.sort_unstable();
    keys.dedup();
    let number = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    let decomposed_at = DateTime::parse_from_rfc3339(&package.decomposed_at).map_err(Error::internal)?;
    let row = DecompositionRow {
        model_id: package.model_id.clone(),
        version: 0,
        package_sha256: sha256.to_vec(),
        bytes: i64::try_from(bytes.len()).map_err(Error::internal)?,
        fact_count: number(package.facts.len()),
        concept_count: number(package.concepts.len()),
        promptset_hash: Some(package.promptset_hash.to_lowercase()).filter(|hash| !hash.is_empty()),
        embedding_model: package.embeddings.as_ref().map(|data| data.model.clone()),
        decomposed_by: package.decomposed_by.clone(),
        decomposed_at: decomposed_at.with_timezone(&Utc),
        pushed_by: caller.name().to_owned(),
        pushed_at: DateTime::UNIX_EPOCH,
        signature,
        key_id,
    };
    let told = package.source.clone();
    drop(package);
    // Neither is worth anything to anybody, and would be in the way of others that are.
    if row.fact_count == 0 {
        return Err(Error::invalid("package", "facts: are none").into());
    }
    let mut conn = registry.acquire().await?;
    if row.decomposed_at > store::now(&mut conn).await.map_err(Error::from)? + AHEAD {
        return Err(Error::invalid("package", "decomposed_at: is in the future").into());
    }
    let known = store::get_source(&mut conn, path.source).await.map_err(Error::from)?;
    drop(conn);
    let known = known.ok_or(Error::NotFound("source"))?;
    if let Some(told) = told
        && (known.url.is_some() || known.doi.is_some())
        && !told.is(known.url.as_deref(), known.doi.as_deref())
    {
        return Err(Error::invalid("package", "source: is another one than that of the address").into());
    }
    count_bytes(&registry, &caller, row.bytes).await?;
    registry.files.put(Kind::Package, sha256, bytes).await?;
    let mut tx = registry.begin_with_file(Kind::Package, &sha256).await?;
    let kept = store::insert_decomposition(&mut tx, path.source, &row, &keys).await.map_err(Error::from)?;
    tx.commit().await.map_err(Error::from)?;
    let kept = kept.ok_or(Error::NotFound("source"))?;
    let pushed =
        Pushed { source_id: path.source, facts_new: kept.facts_new, facts_linked: kept.facts_linked };
    Ok((StatusCode::CREATED, Json(pushed)))
}

/// Pull a package.
///
/// The latest of a model or one version, as it was pushed, with the signature that it was pushed with.
#[utoipa::path(get, path = "/api/v1/sources/{sid}/decompositions/{model}", tag = "Registry", operation_id = "pullDecomposition",
    params(("sid" = Uuid, Path, description = "The id of the source"),
           ("model" = String, Path, description = "The model, percent-encoded"), VersionQuery),
    responses((status = 200, body = PackageBody, description = "The package"),
              (status = 404, description = "not_found; `detail` says if it was withdrawn, and why")))]
pub async fn pull(
    State(registry): State<Registry>,
    Path(path): Path<ModelPath>,
    Query(query): Query<VersionQuery>,
) -> Result<Response, Problem> {
    let mut conn = registry.acquire().await?;
    let found = store::find_decomposition(&mut conn, path.source, &path.model, query.version);
    let found = found.await.map_err(Error::from)?;
    drop(conn);
    let (row, withdrawn) = found.ok_or(Error::NotFound("decomposition"))?;
    if let Some(why) = withdrawn {
        return Err(Problem::new(Code::NotFound, format!("this package was withdrawn: {why}")));
    }
    let bytes = registry.files.read(Kind::Package, &row.package_sha256, None).await?;
    let bytes = bytes.ok_or_else(|| Error::internal("the file of a package is not there"))?;
    let mut response = Body::from_stream(bytes).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CONTENT_LENGTH, row.bytes.into());
    let tag = format!("\"{}\"", hex::encode(&row.package_sha256));
    headers.insert(header::ETAG, HeaderValue::from_str(&tag).map_err(Error::internal)?);
    if let Some(signature) = row.signature.as_deref().and_then(|text| HeaderValue::from_str(text).ok()) {
        headers.insert(SIGNATURE, signature);
    }
    Ok(response)
}

/// List withdrawals.
///
/// Packages and bundles that are not handed out any more, the oldest first: whoever has imported one learns of it here.
#[utoipa::path(get, path = "/api/v1/withdrawals", tag = "Registry", operation_id = "listWithdrawals",
    params(SinceQuery, PageRequest),
    responses((status = 200, body = Page<WithdrawalView>, description = "The oldest first")))]
pub async fn withdrawals(
    State(registry): State<Registry>,
    Query(query): Query<SinceQuery>,
    page: PageRequest,
) -> Result<Page<WithdrawalView>, Problem> {
    let after: Option<WithdrawalPlace> = page.after()?;
    let mut conn = registry.acquire().await?;
    let rows =
        store::list_withdrawals(&mut conn, query.since, after, page.rows()).await.map_err(Error::from)?;
    page.page(rows.into_iter().map(WithdrawalView::from).collect(), |row| {
        let id = row.source_id.or(row.graph_id).unwrap_or_default();
        (row.withdrawn_at, id, row.model_id.clone().unwrap_or_default(), row.version.unwrap_or_default())
    })
}

/// Counts a push against the quota of its key, or of all who have none.
pub(crate) async fn count(registry: &Registry, caller: &Caller) -> Result<(), Problem> {
    let (most, told) = match caller.key {
        Some(_) => (caller.daily_pushes, "this key has no more pushes today"),
        None => (Some(registry.anonymous_pushes), "there are no more pushes without a key today"),
    };
    let mut conn = registry.acquire().await?;
    if store::count_push(&mut conn, caller.name(), most).await.map_err(Error::from)? {
        return Ok(());
    }
    Err(Problem::new(Code::RateLimited, told).retry_after(3_600))
}

/// Counts what came with a push against what a key may fill the storage with in a day, and all without one together.
pub(crate) async fn count_bytes(registry: &Registry, caller: &Caller, bytes: i64) -> Result<(), Problem> {
    let most = registry.daily_bytes;
    let mut conn = registry.acquire().await?;
    if store::count_bytes(&mut conn, caller.name(), bytes, most).await.map_err(Error::from)? {
        return Ok(());
    }
    Err(too_much())
}

pub(crate) fn too_much() -> Problem {
    Problem::new(Code::RateLimited, "that is more than can be pushed in a day").retry_after(3_600)
}

/// What came along to be handed on: a signature over what has this hash, and the key that made it.
pub(crate) fn signature(headers: &HeaderMap, sha256: &[u8; 32]) -> Result<Option<(String, String)>, Problem> {
    let Some(value) = headers.get(SIGNATURE) else { return Ok(None) };
    let text = value.to_str().ok().filter(|text| text.len() <= LONGEST_SIGNATURE);
    let found = text.and_then(|text| Some((text.to_owned(), origin::verified(text, sha256)?)));
    let invalid =
        || Error::invalid("X-Okt-Signature", "is not a valid signature (Ed25519) of what was pushed");
    Ok(Some(found.ok_or_else(invalid)?))
}

/// Refuses a body of another type.
pub(crate) fn media_type(headers: &HeaderMap, expected: &'static str) -> Result<(), Problem> {
    let told = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if told.split(';').next().is_some_and(|told| told.trim().eq_ignore_ascii_case(expected)) {
        return Ok(());
    }
    Err(Problem::new(Code::UnsupportedMediaType, format!("the body must be {expected}")))
}

/// What a fact is told from others by, of the same source.
fn key(content: &str) -> i64 {
    let hash = content_hash(content).0;
    hash[..8].iter().fold(0, |key, byte| (key << 8) | i64::from(*byte))
}
