//! Promptsets: the instructions that models get.

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::{StatusCode, header};
use okt_auth::permissions::{PromptsetRead, PromptsetWrite};
use okt_http::{Json, Page, PageRequest, Path, Problem};
use okt_model::{ContentHash, Error};
use okt_wire::promptsets::{NewPromptset, PromptsetView};
use serde::Deserialize;

use crate::Api;
use crate::extract::{RequestOrigin, System};

#[derive(Deserialize)]
pub struct PromptsetPath {
    hash: String,
}

/// All promptsets, the built-in one first.
#[utoipa::path(get, path = "/api/v1/promptsets", tag = "Promptsets",
    operation_id = "listPromptsets", params(PageRequest),
    responses((status = 200, body = Page<PromptsetView>, description = "With their texts")))]
pub async fn list(
    State(api): State<Api>,
    scope: System<PromptsetRead>,
    page: PageRequest,
) -> Result<Page<PromptsetView>, Problem> {
    let after: Option<String> = page.after()?;
    // The built-in one is the first of the first page, and the others follow by their hashes.
    let after = after.map(|hash| hash.parse::<ContentHash>()).transpose();
    let after = after.map_err(|_| Error::invalid("cursor", "is none of ours"))?;
    let rows = api.app.list_promptsets(&scope.0, after, page.rows()).await?;
    page.page(rows.into_iter().map(PromptsetView::from).collect(), |row| {
        if row.built_in { ContentHash([0; 32]).to_string() } else { row.hash.clone() }
    })
}

/// A promptset by its hash.
#[utoipa::path(get, path = "/api/v1/promptsets/{hash}", tag = "Promptsets",
    operation_id = "getPromptset", params(("hash" = String, Path, description = "SHA-256, in hexadecimal digits")),
    responses((status = 200, body = PromptsetView, description = "With its texts")))]
pub async fn show(
    State(api): State<Api>,
    scope: System<PromptsetRead>,
    Path(path): Path<PromptsetPath>,
) -> Result<Json<PromptsetView>, Problem> {
    let hash = path.hash.parse().map_err(|_| Error::NotFound("promptset"))?;
    Ok(Json(api.app.find_promptset(&scope.0, hash).await?.into()))
}

/// Add a promptset. The same texts are the same promptset, and answered with 200.
#[utoipa::path(post, path = "/api/v1/promptsets", tag = "Promptsets",
    operation_id = "addPromptset", request_body = NewPromptset,
    responses((status = 201, body = PromptsetView, description = "Created"),
              (status = 200, body = PromptsetView, description = "It existed already")))]
pub async fn create(
    State(api): State<Api>,
    scope: System<PromptsetWrite>,
    origin: RequestOrigin,
    Json(body): Json<NewPromptset>,
) -> Result<Response, Problem> {
    let (seen, new) = api.app.add_promptset(&origin.into(), &scope.0, &body.name, &body.phases).await?;
    let status = if new { StatusCode::CREATED } else { StatusCode::OK };
    let location = [(header::LOCATION, format!("/api/v1/promptsets/{}", seen.hash))];
    Ok((status, location, Json(PromptsetView::from(seen))).into_response())
}
