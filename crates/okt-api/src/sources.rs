//! Sources: what the knowledge of a repository rests on.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chrono::NaiveDate;
use http::{HeaderName, StatusCode, header};
use okt_app::{Accepted, Resting, Sentence, SourceRequest};
use okt_http::{Json, Page, PageRequest, Path, Problem, Query};
use okt_model::{
    Action, Error, Locator, Object, Permission, RepositoryId, SourceFilter, SourceId, SourceStatus,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::Api;
use crate::auth::Caught;
use crate::contexts::Enqueued;
use crate::repositories::Repository;
use crate::source_views::{SourceRow, SourceView};

pub(crate) const SOURCE_READ: Permission = Permission::new(Object::Source, Action::Read);
pub(crate) const SOURCE_WRITE: Permission = Permission::new(Object::Source, Action::Write);
pub(crate) const SOURCE_UPDATE: Permission = Permission::new(Object::Source, Action::Update);
pub(crate) const SOURCE_DELETE: Permission = Permission::new(Object::Source, Action::Delete);

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSource {
    /// A web address; also the number of a paper (`arXiv:…`, `PMID:…`).
    #[schema(example = "https://example.org/bees")]
    pub(crate) url: Option<String>,
    /// In place of the address.
    pub(crate) doi: Option<String>,
    /// The investigation that it belongs to.
    pub(crate) investigation_id: Option<Uuid>,
    /// The most that may be spent on it.
    #[schema(minimum = 0.0)]
    pub(crate) max_cost_usd: Option<f64>,
}

/// A source that was added, or was there already.
#[derive(Serialize, ToSchema)]
pub struct SourceAccepted {
    source_id: Uuid,
    job_id: Uuid,
    /// `url`, `pdf_url`, `doi`, `arxiv`, `pmid` or `upload`.
    #[schema(example = "url")]
    resource_type: &'static str,
    /// Whether the repository had it before.
    existing: bool,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct SourceQuery {
    /// `pending`, `fetching`, `fetched`, `processing`, `processed` or `failed`.
    status: Option<String>,
    /// `html`, `pdf`, `text` or `markdown`.
    kind: Option<String>,
    /// A part of the title or the address, in any case.
    q: Option<String>,
    /// There are none yet, so none can be right.
    investigation_id: Option<Uuid>,
    /// A date such as `2026-03-01`.
    published_from: Option<NaiveDate>,
    published_to: Option<NaiveDate>,
    /// `newest` (the default) or `oldest`, by when they were added.
    sort: Option<String>,
}

/// The source of a path; its repository is the gate's business.
#[derive(Deserialize)]
pub struct SourcePath {
    #[serde(rename = "sourceID")]
    pub(crate) source: Uuid,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct SourceDeletion {
    /// Only says what would go.
    dry_run: Option<bool>,
}

/// What goes with a source.
#[derive(Serialize, ToSchema)]
pub struct SourceWouldBeDeleted {
    dry_run: bool,
    /// Facts that no other source supports.
    facts: i64,
    images: usize,
    /// Of its stored files.
    bytes: u64,
}

/// A sentence of a source, and what rests on it.
#[derive(Serialize, ToSchema)]
pub struct Reference {
    sentence_index: usize,
    /// In Unicode code points of the parsed text.
    start: i32,
    end: i32,
    text: String,
    /// For PDFs, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<u32>,
    facts: Vec<ReferencedFact>,
}

/// A fact that rests on a sentence.
#[derive(Serialize, ToSchema)]
struct ReferencedFact {
    fact_id: Uuid,
    text: String,
    /// Who put it into words.
    model: String,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ReferenceQuery {
    /// `true` for sentences that some fact rests on, `false` for those that none does.
    cited: Option<bool>,
}

/// The sources of a repository.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/sources", tag = "Sources",
    params(("repoID" = String, Path, description = "Its id or its slug"), SourceQuery, PageRequest),
    responses((status = 200, body = Page<SourceRow>, description = "In the order asked for")))]
pub async fn list(
    State(api): State<Api>,
    repository: Repository,
    Query(query): Query<SourceQuery>,
    page: PageRequest,
) -> Result<Page<SourceRow>, Problem> {
    let (filter, oldest) = query.parsed()?;
    let after: Option<Uuid> = page.after()?;
    let after = after.map(SourceId::from);
    let rows = api.app.list_sources(&repository.0, &filter, oldest, after, page.rows()).await?;
    page.page(rows.into_iter().map(SourceRow::from).collect(), |row| row.id)
}

/// Add a source by its address or DOI.
///
/// It is fetched and processed in the background. A source of the same address or DOI is answered with 200 and not added again.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/sources", tag = "Sources",
    params(("repoID" = String, Path, description = "Its id or its slug")), request_body = NewSource,
    responses((status = 202, body = SourceAccepted, description = "It will be fetched"),
              (status = 200, body = SourceAccepted, description = "It was there before")))]
pub async fn create(
    State(api): State<Api>,
    repository: Repository,
    Json(body): Json<NewSource>,
) -> Result<Response, Problem> {
    let accepted = api.app.add_source(&repository.0, &body.parsed()?).await?;
    Ok(answer(repository.0.repository(), accepted))
}

/// A source with its text, its sentences and its images.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/sources/{sourceID}", tag = "Sources",
    params(("repoID" = String, Path, description = "Its id or its slug"), ("sourceID" = Uuid, Path)),
    responses((status = 200, body = SourceView, description = "As it is now")))]
pub async fn show(
    State(api): State<Api>,
    repository: Repository,
    Path(path): Path<SourcePath>,
) -> Result<Response, Problem> {
    let seen = api.app.find_source(&repository.0, path.source.into()).await?;
    // It may have megabytes, and others wait for this thread.
    let written = tokio::task::spawn_blocking(move || {
        SourceView::try_from(seen).map(|view| Json(view).into_response())
    });
    Ok(written.await.map_err(Error::internal)??)
}

/// Remove a source with everything that only it supports.
///
/// What other sources support as well stays. With `dry_run=true` nothing is removed, and the answer says what would go.
#[utoipa::path(delete, path = "/api/v1/repositories/{repoID}/sources/{sourceID}", tag = "Sources",
    params(("repoID" = String, Path, description = "Its id or its slug"), ("sourceID" = Uuid, Path), SourceDeletion),
    responses((status = 204, description = "It is gone"),
              (status = 200, body = SourceWouldBeDeleted, description = "What would go, for a dry run")))]
pub async fn delete(
    State(api): State<Api>,
    repository: Repository,
    origin: Caught,
    Path(path): Path<SourcePath>,
    Query(query): Query<SourceDeletion>,
) -> Result<Response, Problem> {
    let id = path.source.into();
    if query.dry_run == Some(true) {
        let contents = api.app.source_contents(&repository.0, id).await?;
        let (facts, images, bytes) = (contents.facts, contents.images, contents.bytes);
        return Ok(Json(SourceWouldBeDeleted { dry_run: true, facts, images, bytes }).into_response());
    }
    api.app.delete_source(&origin.into(), &repository.0, id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Turn the text of a source into facts, again if need be.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/sources/{sourceID}/process", tag = "Sources",
    params(("repoID" = String, Path, description = "Its id or its slug"), ("sourceID" = Uuid, Path)),
    responses((status = 202, body = Enqueued, description = "The job that does it"),
              (status = 409, body = okt_http::ProblemBody, content_type = "application/problem+json",
               description = "Problem: conflict")))]
pub async fn process(
    State(api): State<Api>,
    repository: Repository,
    Path(path): Path<SourcePath>,
) -> Result<(StatusCode, Json<Enqueued>), Problem> {
    let job = api.app.process_source(&repository.0, path.source.into()).await?;
    Ok((StatusCode::ACCEPTED, Json(Enqueued { job_id: job.uuid() })))
}

/// Take up a failed source again where it failed.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/sources/{sourceID}/retry", tag = "Sources",
    params(("repoID" = String, Path, description = "Its id or its slug"), ("sourceID" = Uuid, Path)),
    responses((status = 202, body = Enqueued, description = "The job that does it"),
              (status = 409, body = okt_http::ProblemBody, content_type = "application/problem+json",
               description = "Problem: conflict")))]
pub async fn retry(
    State(api): State<Api>,
    repository: Repository,
    Path(path): Path<SourcePath>,
) -> Result<(StatusCode, Json<Enqueued>), Problem> {
    let job = api.app.retry_source(&repository.0, path.source.into()).await?;
    Ok((StatusCode::ACCEPTED, Json(Enqueued { job_id: job.uuid() })))
}

/// The sentences of a source, each with the facts that rest on it.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/sources/{sourceID}/references", tag = "Sources",
    params(("repoID" = String, Path, description = "Its id or its slug"), ("sourceID" = Uuid, Path), ReferenceQuery,
           PageRequest),
    responses((status = 200, body = Page<Reference>, description = "In the order of the text")))]
pub async fn references(
    State(api): State<Api>,
    repository: Repository,
    Path(path): Path<SourcePath>,
    Query(query): Query<ReferenceQuery>,
    page: PageRequest,
) -> Result<Page<Reference>, Problem> {
    let after: Option<usize> = page.after()?;
    let from = after.map_or(0, |after| after.saturating_add(1));
    let rows = usize::try_from(page.rows()).unwrap_or(usize::MAX);
    let found = api.app.list_sentences(&repository.0, path.source.into(), query.cited, from, rows).await?;
    page.page(found.into_iter().map(Reference::from).collect(), |row| row.sentence_index)
}

/// What was accepted, with where it is.
pub(crate) fn answer(repository: RepositoryId, accepted: Accepted) -> Response {
    let status = if accepted.existing { StatusCode::OK } else { StatusCode::ACCEPTED };
    let location = format!("/api/v1/repositories/{repository}/sources/{}", accepted.source);
    let headers: [(HeaderName, String); 1] = [(header::LOCATION, location)];
    let body = SourceAccepted {
        source_id: accepted.source.uuid(),
        job_id: accepted.job.uuid(),
        resource_type: accepted.resource_type.map_or("upload", okt_model::ResourceType::as_str),
        existing: accepted.existing,
    };
    (status, headers, Json(body)).into_response()
}

/// There are none yet, so no id can be right.
pub(crate) fn refuse_investigation(given: bool) -> Result<(), Error> {
    if given {
        return Err(Error::invalid("investigation_id", "no investigation has this id"));
    }
    Ok(())
}

impl NewSource {
    pub(crate) fn parsed(&self) -> Result<SourceRequest, Error> {
        refuse_investigation(self.investigation_id.is_some())?;
        let locator = match (&self.url, &self.doi) {
            (Some(url), None) => Locator::parse(url).map_err(|error| about("url", error)),
            (None, Some(doi)) => Locator::parse(doi)
                .ok()
                .filter(|found| found.doi.is_some())
                .ok_or_else(|| Error::invalid("doi", "is no DOI; it looks like 10.1000/182")),
            _ => Err(Error::invalid("url", "give either url or doi")),
        }?;
        Ok(SourceRequest { locator, max_cost_usd: self.max_cost_usd })
    }
}

/// The same refusal, about the field that the caller knows.
fn about(field: &'static str, error: Error) -> Error {
    match error {
        Error::Invalid(mut errors) => {
            for error in &mut errors {
                error.field = field.into();
            }
            Error::Invalid(errors)
        }
        other => other,
    }
}

impl SourceQuery {
    fn parsed(self) -> Result<(SourceFilter, bool), Error> {
        refuse_investigation(self.investigation_id.is_some())?;
        let status = self.status.map(|text| {
            let found = SourceStatus::ALL.iter().find(|status| status.as_str() == text).copied();
            found.ok_or_else(|| Error::invalid("status", "no source has this status"))
        });
        let oldest = match self.sort.as_deref() {
            None | Some("newest") => false,
            Some("oldest") => true,
            Some(_) => return Err(Error::invalid("sort", "must be newest or oldest")),
        };
        if self.q.as_ref().is_some_and(|q| q.chars().count() > 200) {
            return Err(Error::invalid("q", "must be at most 200 characters"));
        }
        let filter = SourceFilter {
            status: status.transpose()?,
            kind: self.kind,
            q: self.q.filter(|q| !q.is_empty()),
            published_from: self.published_from,
            published_to: self.published_to,
        };
        Ok((filter, oldest))
    }
}

impl From<Sentence> for Reference {
    fn from(sentence: Sentence) -> Self {
        Self {
            sentence_index: sentence.index,
            start: sentence.start,
            end: sentence.end,
            text: sentence.text,
            page: sentence.page,
            facts: sentence.facts.into_iter().map(ReferencedFact::from).collect(),
        }
    }
}

impl From<Resting> for ReferencedFact {
    fn from(fact: Resting) -> Self {
        Self { fact_id: fact.id.uuid(), text: fact.text, model: fact.model }
    }
}
