//! What the facts say of a claim or of a text, without keeping anything.

use axum::extract::State;
use okt_auth::permissions::FactRead;
use okt_http::{Json, Problem};
use okt_wire::reports::{CheckRequest, CheckedTextView, EvidenceRequest, EvidenceView};

use crate::Api;
use crate::extract::Repository;

/// Find the facts that support or contradict a claim.
///
/// Nothing is kept. Facts are judged by rules, and by the configured model if you may write reports.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/evidence", tag = "Reports", operation_id = "findEvidence",
    request_body = EvidenceRequest,
    responses((status = 200, body = EvidenceView, description = "The facts near it, and how it stands")))]
pub async fn find(
    State(api): State<Api>,
    repository: Repository<FactRead>,
    Json(body): Json<EvidenceRequest>,
) -> Result<Json<EvidenceView>, Problem> {
    Ok(Json(api.app.find_evidence(&repository.0, &body.claim).await?.into()))
}

/// Check a text sentence by sentence.
///
/// As a report is checked, without keeping anything; at most 200 sentences.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/check", tag = "Reports", operation_id = "checkText",
    request_body = CheckRequest,
    responses((status = 200, body = CheckedTextView, description = "The sentences, and how each stands")))]
pub async fn check(
    State(api): State<Api>,
    repository: Repository<FactRead>,
    Json(body): Json<CheckRequest>,
) -> Result<Json<CheckedTextView>, Problem> {
    Ok(Json(api.app.check_text(&repository.0, &body.text).await?.into()))
}
