//! Marks of sources: what was retracted, and what another source supersedes.

use axum::extract::State;
use http::StatusCode;
use okt_app::MarkImport;
use okt_auth::permissions::SourceUpdate;
use okt_http::{Json, Path, Problem, Query, Upload};
use okt_model::Error;
use okt_wire::source_marks::{ImportedMarksView, MarkImportQuery, MarkView, NewMark};
use utoipa::ToSchema;

use crate::Api;
use crate::extract::{Repository, RequestOrigin};
use crate::sources::SourcePath;

/// A list of retractions.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its form is told; it is read piece by piece")]
pub struct RetractionList {
    /// CSV whose first line names the columns: `OriginalPaperDOI` or `DOI`, and if there are `RetractionNature`,
    /// `RetractionDate`, `RetractionDOI` and `Reason`. At most 200,000 rows.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
}

/// Mark a source as retracted or superseded.
///
/// Facts, search results, summaries and definitions that rest on it say so when they are read. Nothing of them is changed, and
/// removing the mark brings everything back. What a person has said is not changed by lists and providers.
#[utoipa::path(put, path = "/api/v1/repositories/{repoID}/sources/{sourceID}/mark", tag = "Sources",
    operation_id = "markSource", request_body = NewMark,
    responses((status = 200, body = MarkView, description = "The mark as it is now"),
              (status = 409, description = "conflict")))]
pub async fn set(
    State(api): State<Api>,
    repository: Repository<SourceUpdate>,
    origin: RequestOrigin,
    Path(path): Path<SourcePath>,
    Json(body): Json<NewMark>,
) -> Result<Json<MarkView>, Problem> {
    let (mark, reason) = (body.parsed()?, body.reason.as_deref());
    let set = api.app.mark_source(&origin.into(), &repository.0, path.source.into(), mark, reason).await?;
    Ok(Json(set.into()))
}

/// Remove the mark of a source.
///
/// Lists and providers don't mark it again; a person may.
#[utoipa::path(delete, path = "/api/v1/repositories/{repoID}/sources/{sourceID}/mark", tag = "Sources",
    operation_id = "unmarkSource",
    responses((status = 204, description = "Removed")))]
pub async fn remove(
    State(api): State<Api>,
    repository: Repository<SourceUpdate>,
    origin: RequestOrigin,
    Path(path): Path<SourcePath>,
) -> Result<StatusCode, Problem> {
    api.app.unmark_source(&origin.into(), &repository.0, path.source.into()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Mark the sources that a list of retractions names by their DOIs.
///
/// Rows that are about something else than a retraction mark nothing. Sending the same list again marks nothing new.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/sources/marks", tag = "Sources",
    operation_id = "importSourceMarks", params(MarkImportQuery),
    request_body(content = RetractionList, content_type = "multipart/form-data"),
    responses((status = 200, body = ImportedMarksView, description = "What was marked, or would be")))]
pub async fn import(
    State(api): State<Api>,
    repository: Repository<SourceUpdate>,
    origin: RequestOrigin,
    Query(query): Query<MarkImportQuery>,
    mut form: Upload,
) -> Result<Json<ImportedMarksView>, Problem> {
    let dry_run = query.dry_run.unwrap_or(false);
    let mut list = None;
    while let Some(mut part) = form.next().await? {
        if part.name != "file" || list.is_some() {
            return Err(Error::invalid(part.name, "is not a part of this form").into());
        }
        let mut import = MarkImport::default();
        while let Some(piece) = part.chunk().await? {
            api.app.read_marks(&repository.0, &mut import, &piece).await?;
        }
        list = Some(import);
    }
    let list = list.ok_or_else(|| Error::invalid("file", "must be given"))?;
    let imported = api.app.finish_marks(&origin.into(), &repository.0, list, dry_run).await?;
    Ok(Json(ImportedMarksView::new(imported, dry_run)))
}
