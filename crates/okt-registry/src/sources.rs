//! Sources, and looking one up.

use axum::extract::State;
use http::StatusCode;
use okt_http::{Json, Page, PageRequest, Path, Problem, Query};
use okt_model::{Error, JobId, Locator, Result};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use utoipa::IntoParams;
use uuid::Uuid;

use crate::Registry;
use crate::auth::{Caller, Signed};
use crate::decompositions::too_much;
use crate::store::{self, Names, SourceRow};
use crate::views::{Created, Found, NewSource, SourceView};

/// What a source takes at most, with its indexes, of what a key may fill the registry with in a day.
const ROW: i64 = 4 << 10;

/// A source by its names.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct SearchQuery {
    /// The address of the source.
    #[param(example = "https://example.org/bees")]
    url: Option<String>,
    /// The DOI of the source.
    #[param(example = "10.1000/182")]
    doi: Option<String>,
    /// SHA-256 of the content of the source.
    #[param(example = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0bef2c3d2f1f6d1c2a0e4b")]
    sha256: Option<String>,
}

#[derive(Deserialize)]
pub struct SourcePath {
    #[serde(rename = "sid")]
    pub source: Uuid,
}

/// Look a source up.
///
/// By `url`, `doi` or `sha256`, or several of them; the first that is known counts, in this order.
#[utoipa::path(get, path = "/api/v1/search", tag = "Registry", operation_id = "search", params(SearchQuery),
    responses((status = 200, body = Found, description = "The source with its packages, or that there is none")))]
pub async fn search(
    State(registry): State<Registry>,
    Query(query): Query<SearchQuery>,
) -> Result<Json<Found>, Problem> {
    let names = names(query.url.as_deref(), query.doi.as_deref(), query.sha256.as_deref())?;
    let mut conn = registry.acquire().await?;
    let source = store::find_source(&mut conn, &names).await.map_err(Error::from)?;
    let mut decompositions = Vec::new();
    if let Some(source) = &source {
        decompositions = store::list_decompositions(&mut conn, source.id).await.map_err(Error::from)?;
    }
    Ok(Json(Found {
        is_known: !decompositions.is_empty(),
        source: source.map(SourceView::from),
        decompositions: decompositions.into_iter().map(Into::into).collect(),
    }))
}

/// Make a source known.
///
/// A source with one of these names that this key made known already gets the others, unless they are another source's.
#[utoipa::path(post, path = "/api/v1/sources", tag = "Registry", operation_id = "createSource", request_body = NewSource,
    responses((status = 201, body = Created, description = "The source is known")))]
pub async fn create(
    State(registry): State<Registry>,
    caller: Caller,
    Signed(Json(body)): Signed<Json<NewSource>>,
) -> Result<(StatusCode, Json<Created>), Problem> {
    let names = names(body.url.as_deref(), body.doi.as_deref(), body.sha256.as_deref())?;
    let row = SourceRow {
        id: JobId::mint().uuid(),
        url: None,
        doi: None,
        sha256: None,
        title: text("title", body.title, 500)?,
        author: text("author", body.author, 500)?,
        kind: text("kind", body.kind, 50)?,
        language: text("language", body.language, 50)?,
        published_at: body.published_at,
        created_at: chrono::DateTime::UNIX_EPOCH,
    };
    let mut conn = registry.acquire().await?;
    let mut is_counted = false;
    // Once more where somebody else has just added it.
    for _ in 0..3 {
        if let Some(known) = store::find_source(&mut conn, &names).await.map_err(Error::from)? {
            let done = store::complete_source(&mut conn, known.id, &names, caller.name()).await;
            done.map_err(Error::from)?;
            return Ok((StatusCode::CREATED, Json(Created { source_id: known.id })));
        }
        if !is_counted {
            let counted = store::count_bytes(&mut conn, caller.name(), ROW, registry.daily_bytes).await;
            is_counted = counted.map_err(Error::from)?;
            if !is_counted {
                return Err(too_much());
            }
        }
        if store::insert_source(&mut conn, &names, &row, caller.name()).await.map_err(Error::from)? {
            return Ok((StatusCode::CREATED, Json(Created { source_id: row.id })));
        }
    }
    Err(Error::Overloaded("the same source is just being added").into())
}

/// List all sources.
#[utoipa::path(get, path = "/api/v1/sources", tag = "Registry", operation_id = "listSources", params(PageRequest),
    responses((status = 200, body = Page<SourceView>, description = "In the order in which they were made known")))]
pub async fn list(State(registry): State<Registry>, page: PageRequest) -> Result<Page<SourceView>, Problem> {
    let after: Option<Uuid> = page.after()?;
    let mut conn = registry.acquire().await?;
    let rows = store::list_sources(&mut conn, after, page.rows()).await.map_err(Error::from)?;
    page.page(rows.into_iter().map(SourceView::from).collect(), |row| row.source_id)
}

/// Show a source.
#[utoipa::path(get, path = "/api/v1/sources/{sid}", tag = "Registry", operation_id = "getSource",
    params(("sid" = Uuid, Path, description = "The id of the source")),
    responses((status = 200, body = SourceView, description = "The source")))]
pub async fn show(
    State(registry): State<Registry>,
    Path(path): Path<SourcePath>,
) -> Result<Json<SourceView>, Problem> {
    let mut conn = registry.acquire().await?;
    let row = store::get_source(&mut conn, path.source).await.map_err(Error::from)?;
    Ok(Json(row.ok_or(Error::NotFound("source"))?.into()))
}

/// Names as they are compared, as installations compare them.
pub(crate) fn names(url: Option<&str>, doi: Option<&str>, sha256: Option<&str>) -> Result<Names> {
    let hashed = |text: &str| Sha256::digest(text).to_vec();
    let mut names = Names::default();
    if let Some(url) = url {
        let locator = Locator::parse(url).map_err(|error| about("url", &error))?;
        names.url_hash = Some(hashed(&locator.normalized));
        names.url = Some(locator.url);
        names.doi = locator.doi;
    }
    if let Some(doi) = doi {
        let locator = Locator::parse(doi).map_err(|error| about("doi", &error))?;
        names.doi = Some(locator.doi.ok_or_else(|| Error::invalid("doi", "is not a DOI"))?);
    }
    names.doi_hash = names.doi.as_deref().map(hashed);
    if let Some(sha256) = sha256 {
        let bytes = hex::decode(sha256).ok().filter(|bytes| bytes.len() == 32);
        names.sha256 = Some(bytes.ok_or_else(|| Error::invalid("sha256", "is no SHA-256 in hexadecimal"))?);
    }
    if names.url.is_none() && names.doi.is_none() && names.sha256.is_none() {
        return Err(Error::invalid("url", "is needed, or doi, or sha256"));
    }
    Ok(names)
}

fn about(field: &'static str, error: &Error) -> Error {
    Error::invalid(field, error.to_string())
}

/// A text that can be stored; `None` for an empty one.
pub(crate) fn text(field: &'static str, text: Option<String>, most: usize) -> Result<Option<String>> {
    let Some(text) = text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    if text.chars().count() > most || text.chars().any(|c| c == '\0') {
        return Err(Error::invalid(
            field,
            format!("must have at most {most} characters, none of them U+0000"),
        ));
    }
    Ok(Some(text))
}
