//! Exports in the formats of other programs, piece by piece: none is ever whole in memory, and no connection is held while
//! somebody reads.

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt, stream};
use http::{HeaderValue, header};
use okt_app::{GraphExport, ReportExport};
use okt_auth::RepoScope;
use okt_auth::permissions::{GraphExport as MayExport, InvestigationRead, ReportRead};
use okt_http::{Path, Problem, Query};
use okt_model::{CitationFormat, Error, InvestigationId, ReportFormat, Source};
use okt_wire::exports::report::{PrintedReport, html, html_policy, markdown};
use okt_wire::exports::{
    Citation, CitationExportQuery, CitationList, GraphExportQuery, GraphWriter, ReportExportQuery, graph,
    list,
};

use crate::Api;
use crate::extract::{Repository, RequestOrigin};
use crate::investigations::InvestigationPath;
use crate::reports::ReportPath;
use crate::source_files::{File, file_name, value};

/// Export a repository: its sources, facts and concepts.
///
/// Duplicates and rejected facts are left out, and so is what is added while the export is read. It is written as it is read: if
/// it can't be finished the connection breaks off, so a file that was received whole is complete.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/export", tag = "Exports",
    operation_id = "exportRepository", params(GraphExportQuery),
    responses((status = 200, content((inline(File) = "application/ld+json"), (inline(File) = "application/graphml+xml"), (inline(File) = "text/csv")), description = "The file")))]
pub async fn repository(
    State(api): State<Api>,
    scope: Repository<MayExport>,
    origin: RequestOrigin,
    Query(query): Query<GraphExportQuery>,
) -> Result<Response, Problem> {
    let format = query.parsed()?;
    let export = api.app.begin_export(&origin.into(), &scope.0, format).await?;
    let name = format!("{}.{}", export.slug, graph::extension(format));
    let writer = GraphWriter::new(format);
    let begin = stream::once(std::future::ready(Ok(writer.begin(&export))));
    let end = stream::once(std::future::ready(Ok(writer.end().to_owned())));
    let body = begin.chain(pages(api, scope.0, export, writer)).chain(end);
    send(Body::from_stream(body), graph::media_type(format), &name)
}

/// Export the sources of an investigation as references.
///
/// The newest first. The keys are stable: `okt-` and the id of the source.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/investigations/{investigationID}/export", tag = "Exports",
    operation_id = "exportInvestigation", params(CitationExportQuery),
    responses((status = 200, content((inline(File) = "application/x-bibtex"), (inline(File) = "application/x-research-info-systems"), (inline(File) = "application/vnd.citationstyles.csl+json")), description = "The file")))]
pub async fn references(
    State(api): State<Api>,
    scope: Repository<InvestigationRead>,
    Path(path): Path<InvestigationPath>,
    Query(query): Query<CitationExportQuery>,
) -> Result<Response, Problem> {
    let (format, id): (_, InvestigationId) = (query.parsed()?, path.investigation.into());
    // Before the answer begins, so that one that is not there is told in time.
    let first = api.app.read_investigation_sources(&scope.0, id, None).await?;
    let name = format!("{id}.{}", list::extension(format));
    let body = entries(api, scope.0, id, first, CitationList::new(format));
    send(Body::from_stream(body), list::media_type(format), &name)
}

/// Export a report, or the sources that its claims rest on.
///
/// `md` has footnotes, `html` is a page that needs nothing but itself and prints well; both say of each claim what supports and what
/// contradicts it. `bibtex`, `ris` and `csl` have the sources of these facts, in the order of the text.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/reports/{reportID}/export", tag = "Exports",
    operation_id = "exportReport", params(ReportExportQuery),
    responses((status = 200, content((inline(File) = "text/markdown"), (inline(File) = "text/html"), (inline(File) = "application/x-bibtex"), (inline(File) = "application/x-research-info-systems"), (inline(File) = "application/vnd.citationstyles.csl+json")), description = "The file")))]
pub async fn report(
    State(api): State<Api>,
    scope: Repository<ReportRead>,
    Path(path): Path<ReportPath>,
    Query(query): Query<ReportExportQuery>,
) -> Result<Response, Problem> {
    let format = query.parsed()?;
    let found = api.app.export_report(&scope.0, path.report.into()).await?;
    let title = found.report.title.clone();
    let list = |format: CitationFormat| {
        let citations: Vec<Citation> =
            found.sources.iter().map(|(_, source)| source.clone().into()).collect();
        let mut list = CitationList::new(format);
        let text = list.add(&citations) + list.end();
        (text, list::media_type(format), list::extension(format))
    };
    let (text, media_type, extension) = match format {
        ReportFormat::Bibtex => list(CitationFormat::Bibtex),
        ReportFormat::Ris => list(CitationFormat::Ris),
        ReportFormat::Csl => list(CitationFormat::Csl),
        ReportFormat::Markdown => (written(found, markdown).await?, "text/markdown; charset=utf-8", "md"),
        ReportFormat::Html => (written(found, html).await?, "text/html; charset=utf-8", "html"),
    };
    let mut response = send(Body::from(text), media_type, &format!("{title}.{extension}"))?;
    if format == ReportFormat::Html {
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, value(&html_policy())?);
    }
    Ok(response)
}

/// Writing a long report keeps a core busy.
async fn written(found: ReportExport, write: fn(&PrintedReport) -> String) -> Result<String, Error> {
    tokio::task::spawn_blocking(move || write(&found.into())).await.map_err(Error::internal)
}

/// What is written of each page, each read when what is written of the one before has been taken.
fn pages(
    api: Api,
    scope: RepoScope<MayExport>,
    export: GraphExport,
    writer: GraphWriter,
) -> impl Stream<Item = Result<String, Error>> + Send + 'static {
    stream::try_unfold((api, scope, export), move |(api, scope, mut export)| async move {
        let page = api.app.read_export(&scope, &mut export).await?;
        Ok(page.map(|page| (writer.page(&export, &page), (api, scope, export))))
    })
}

/// The entries of a list of references, and its end after the last page.
fn entries(
    api: Api,
    scope: RepoScope<InvestigationRead>,
    id: InvestigationId,
    first: Vec<Source>,
    list: CitationList,
) -> impl Stream<Item = Result<String, Error>> + Send + 'static {
    stream::try_unfold(Some((api, scope, first, list)), move |state| async move {
        let Some((api, scope, found, mut list)) = state else { return Ok(None) };
        let Some(oldest) = found.last().map(|source| source.id) else {
            return Ok(Some((list.end().to_owned(), None)));
        };
        let citations: Vec<Citation> = found.into_iter().map(Citation::from).collect();
        let text = list.add(&citations);
        let next = api.app.read_investigation_sources(&scope, id, Some(oldest)).await?;
        Ok(Some((text, Some((api, scope, next, list)))))
    })
}

/// A file to be saved. What is in it was written by strangers, and no browser runs any of it.
fn send(body: Body, media_type: &'static str, name: &str) -> Result<Response, Problem> {
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(header::CONTENT_DISPOSITION, value(&format!("attachment{}", file_name(Some(name))))?);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    let policy = "sandbox; default-src 'none'; frame-ancestors 'none'";
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    Ok(response)
}
