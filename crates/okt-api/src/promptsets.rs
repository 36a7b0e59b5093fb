//! Promptsets: the instructions that models get.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use chrono::{DateTime, Utc};
use http::{StatusCode, header};
use okt_app::SeenPromptset;
use okt_extract::Phase;
use okt_http::{Json, Page, PageRequest, Path, Problem};
use okt_model::{Action, ContentHash, Error, Object, Permission};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Api;
use crate::admin::Scope;
use crate::auth::Caught;

pub(crate) const PROMPTSET_READ: Permission = Permission::new(Object::Promptset, Action::Read);
pub(crate) const PROMPTSET_WRITE: Permission = Permission::new(Object::Promptset, Action::Write);

/// Instructions for every phase. They never change: another text is another promptset.
#[derive(Serialize, ToSchema)]
#[schema(as = Promptset)]
pub struct PromptsetView {
    /// SHA-256 over all phases.
    hash: String,
    /// SHA-256 over the four phases that are shared through a registry; facts carry it.
    registry_hash: String,
    name: String,
    built_in: bool,
    /// The text of each phase by its name.
    phases: BTreeMap<&'static str, String>,
    /// Null for the built-in one.
    #[schema(required)]
    created_at: Option<DateTime<Utc>>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPromptset {
    #[schema(example = "Terse facts", min_length = 1, max_length = 200)]
    name: String,
    /// `fact_extraction`, `image_fact_extraction`, `concept_extraction`, `refinement`, `summarization`, `synthesis`,
    /// `posture`, `image_picker`; a phase that is left out is as in the built-in promptset.
    phases: BTreeMap<String, String>,
}

#[derive(Deserialize)]
pub struct PromptsetPath {
    hash: String,
}

/// All promptsets, the built-in one first.
#[utoipa::path(get, path = "/api/v1/promptsets", tag = "Promptsets", params(PageRequest),
    responses((status = 200, body = Page<PromptsetView>, description = "With their texts")))]
pub async fn list(
    State(api): State<Api>,
    _: Scope,
    page: PageRequest,
) -> Result<Page<PromptsetView>, Problem> {
    let after: Option<String> = page.after()?;
    // The built-in one is the first of the first page, and the others follow by their hashes.
    let after = after.map(|hash| hash.parse::<ContentHash>()).transpose();
    let after = after.map_err(|_| Error::invalid("cursor", "is none of ours"))?;
    let rows = api.app.list_promptsets(after, page.rows()).await?;
    page.page(rows.into_iter().map(PromptsetView::from).collect(), |row| {
        if row.built_in { ContentHash([0; 32]).to_string() } else { row.hash.clone() }
    })
}

/// A promptset by its hash.
#[utoipa::path(get, path = "/api/v1/promptsets/{hash}", tag = "Promptsets", params(("hash" = String, Path)),
    responses((status = 200, body = PromptsetView, description = "With its texts")))]
pub async fn show(
    State(api): State<Api>,
    _: Scope,
    Path(path): Path<PromptsetPath>,
) -> Result<Json<PromptsetView>, Problem> {
    let hash = path.hash.parse().map_err(|_| Error::NotFound("promptset"))?;
    Ok(Json(api.app.find_promptset(hash).await?.into()))
}

/// Add a promptset. The same texts are the same promptset, and answered with 200.
#[utoipa::path(post, path = "/api/v1/promptsets", tag = "Promptsets", request_body = NewPromptset,
    responses((status = 201, body = PromptsetView, description = "It is there now"),
              (status = 200, body = PromptsetView, description = "It was there before")))]
pub async fn create(
    State(api): State<Api>,
    scope: Scope,
    origin: Caught,
    Json(body): Json<NewPromptset>,
) -> Result<Response, Problem> {
    let (seen, new) = api.app.add_promptset(&origin.into(), &scope.0, &body.name, &body.phases).await?;
    let status = if new { StatusCode::CREATED } else { StatusCode::OK };
    let location = [(header::LOCATION, format!("/api/v1/promptsets/{}", seen.hash))];
    Ok((status, location, Json(PromptsetView::from(seen))).into_response())
}

impl From<SeenPromptset> for PromptsetView {
    fn from(seen: SeenPromptset) -> Self {
        let phases =
            Phase::ALL.into_iter().map(|phase| (phase.as_str(), seen.promptset.text(phase).to_owned()));
        Self {
            hash: seen.hash.to_string(),
            registry_hash: seen.registry_hash.to_string(),
            name: seen.name,
            built_in: seen.built_in,
            phases: phases.collect(),
            created_at: seen.created_at,
        }
    }
}
