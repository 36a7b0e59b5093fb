//! Sources: what they are named by.

use okt_http::{Json, Problem};
use okt_model::{Action, Locator, Object, Permission};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::admin::Scope;

pub(crate) const SOURCE_PROVIDER_EXECUTE: Permission =
    Permission::new(Object::SourceProvider, Action::Execute);

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Classify {
    /// A web address, a DOI, or the number of a paper (`arXiv:…`, `PMID:…`).
    #[schema(example = "https://doi.org/10.1000/182")]
    value: String,
}

/// What a text names, and where to look for it.
#[derive(Serialize, ToSchema)]
pub struct Classified {
    /// `url`, `pdf_url`, `doi`, `arxiv` or `pmid`.
    #[schema(example = "doi")]
    resource_type: &'static str,
    /// Texts that name the same have the same one.
    #[schema(example = "10.1000/182")]
    normalized: String,
    #[schema(example = "https://doi.org/10.1000/182")]
    url: String,
    #[schema(required, example = "10.1000/182")]
    doi: Option<String>,
}

/// Say what a text names: an address, a DOI, or the number of a paper. Nothing is fetched.
#[utoipa::path(post, path = "/api/v1/sources/classify", tag = "Sources", request_body = Classify,
    responses((status = 200, body = Classified, description = "What it names")))]
pub async fn classify(_: Scope, Json(body): Json<Classify>) -> Result<Json<Classified>, Problem> {
    let found = Locator::parse(&body.value)?;
    Ok(Json(Classified {
        resource_type: found.resource_type.as_str(),
        normalized: found.normalized,
        url: found.url,
        doi: found.doi,
    }))
}
