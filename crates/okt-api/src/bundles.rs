//! Graph Bundles: a repository as one file, and such a file as a part of a repository.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use okt_app::{GraphExportRequest, GraphOf};
use okt_auth::permissions::{GraphExport, GraphWrite};
use okt_http::{BundleUpload, Json, Path, Problem, Upload};
use okt_model::Error;
use okt_store::blobs::Incoming;
use okt_wire::bundles::{GraphDestination, GraphExportBody, GraphImportBody, GraphUploaded};
use okt_wire::contexts::Enqueued;
use serde::Deserialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::Api;
use crate::extract::{Repository, RequestOrigin};
use crate::source_files::{File, file_name, ranged, value};

/// The job that has made a bundle.
#[derive(Deserialize)]
pub struct ExportPath {
    #[serde(rename = "jobID")]
    job: Uuid,
}

/// A Graph Bundle.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its form is told; it is read piece by piece")]
pub struct GraphUpload {
    /// The gzipped bundle.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
}

/// Export the repository as a Graph Bundle.
///
/// A job writes it, as the repository is when the job runs. It can be downloaded by the job's id for two days; with the destination
/// `registry` it is given to a registry, too.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/export-graph", tag = "Graph bundles",
    operation_id = "exportGraph", request_body = GraphExportBody,
    responses((status = 202, body = Enqueued, description = "The job that does it"),
              (status = 503, description = "not_configured: no registry is connected")))]
pub async fn export(
    State(api): State<Api>,
    scope: Repository<GraphExport>,
    origin: RequestOrigin,
    Json(body): Json<GraphExportBody>,
) -> Result<(StatusCode, Json<Enqueued>), Problem> {
    let to_registry = body.destination == GraphDestination::Registry;
    if body.registry_id.is_some() && !to_registry {
        return Err(Error::invalid("registry_id", "is for the destination registry").into());
    }
    let request = GraphExportRequest {
        name: body.name,
        description: body.description,
        tags: body.tags,
        include_bodies: body.include_bodies,
        include_images: body.include_images,
        registry: to_registry.then_some(body.registry_id),
    };
    let job = api.app.export_graph(&origin.into(), &scope.0, request).await?;
    Ok((StatusCode::ACCEPTED, Json(Enqueued { job_id: job.uuid() })))
}

/// Download a bundle that was exported.
///
/// Takes `Range` with one range of bytes.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/export-graph/{jobID}/file", tag = "Graph bundles",
    operation_id = "getExportedGraph",
    responses((status = 200, content((inline(File) = "application/gzip")), description = "All of it"),
              (status = 206, content((inline(File) = "application/gzip")), description = "The part asked for"),
              (status = 304, description = "You have it"),
              (status = 416, description = "bad_range")))]
pub async fn file(
    State(api): State<Api>,
    scope: Repository<GraphExport>,
    Path(path): Path<ExportPath>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let bundle = api.app.find_exported_graph(&scope.0, path.job.into()).await?;
    let read = async |range| {
        Ok(Body::from_stream(api.app.read_exported_graph(&scope.0, &bundle, range).await?.bytes))
    };
    let mut response = ranged(&bundle.blob.hash.to_string(), bundle.blob.size, &headers, read).await?;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/gzip"));
    let name = format!("{}.okt.json.gz", path.job);
    headers.insert(header::CONTENT_DISPOSITION, value(&format!("attachment{}", file_name(Some(&name))))?);
    Ok(response)
}

/// Upload a bundle to be imported.
///
/// Nothing is read of it yet. It is kept for two days, or until it is imported.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/graph-uploads", tag = "Graph bundles",
    operation_id = "uploadGraph", request_body(content = GraphUpload, content_type = "multipart/form-data"),
    responses((status = 201, body = GraphUploaded, description = "It is here"),
              (status = 507, description = "storage_full")))]
pub async fn upload(
    State(api): State<Api>,
    scope: Repository<GraphWrite>,
    form: BundleUpload,
) -> Result<(StatusCode, Json<GraphUploaded>), Problem> {
    let (id, incoming) = api.app.begin_graph_upload(&scope.0).await?;
    match read_form(form.0, incoming).await {
        Ok(blob) => {
            let uploaded = GraphUploaded { upload_id: id, bytes: blob.size, sha256: blob.hash.to_string() };
            Ok((StatusCode::CREATED, Json(uploaded)))
        }
        Err(refused) => {
            api.app.give_up_graph_upload(&scope.0, id).await;
            Err(refused)
        }
    }
}

async fn read_form(mut form: Upload, incoming: Incoming) -> Result<okt_model::Blob, Problem> {
    let (mut incoming, mut whole) = (Some(incoming), None);
    while let Some(mut part) = form.next().await? {
        if part.name != "file" {
            return Err(Error::invalid(part.name.clone(), "is not a part of this form").into());
        }
        let mut file = incoming.take().ok_or_else(|| Error::invalid("file", "send one file at a time"))?;
        while let Some(piece) = part.chunk().await? {
            file.write(piece).await?;
        }
        if file.size() == 0 {
            return Err(Error::invalid("file", "is empty").into());
        }
        whole = Some(file);
    }
    // Only when all of the form has come, and from somebody who may still send it.
    let file = whole.ok_or_else(|| Error::invalid("file", "must be given"))?;
    Ok(file.finish().await?)
}

/// Import a bundle.
///
/// It was uploaded, or is one of a registry, which the job downloads. The job reads all of it, and takes it in only when all of it is right. Nothing is fetched and no chat model is asked. What the
/// repository has already is kept, so that doing it again adds nothing. With `dry_run` the job's output tells what would be added.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/import-graph", tag = "Graph bundles",
    operation_id = "importGraph", request_body = GraphImportBody,
    responses((status = 202, body = Enqueued, description = "The job that does it"),
              (status = 503, description = "not_configured: no registry is connected")))]
pub async fn import(
    State(api): State<Api>,
    scope: Repository<GraphWrite>,
    origin: RequestOrigin,
    Json(body): Json<GraphImportBody>,
) -> Result<(StatusCode, Json<Enqueued>), Problem> {
    let of = match (body.upload_id, body.registry_graph_id) {
        (Some(upload), None) if body.registry_id.is_none() => GraphOf::Upload(upload),
        (None, Some(graph)) => GraphOf::Registry { registry: body.registry_id, graph },
        _ => return Err(Error::invalid("upload_id", "give either upload_id or registry_graph_id").into()),
    };
    let job = api.app.import_graph(&origin.into(), &scope.0, of, body.dry_run).await?;
    Ok((StatusCode::ACCEPTED, Json(Enqueued { job_id: job.uuid() })))
}
