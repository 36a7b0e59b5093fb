//! Refusals as OAuth clients read them.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use okt_app::oauth::{Refusal, plain};
use okt_http::{Json, Problem};
use serde::Serialize;
use utoipa::ToSchema;

/// A refusal on its way to a client.
#[derive(Debug)]
pub(crate) enum OAuthError {
    Refused {
        error: &'static str,
        description: String,
        /// Whether the client came with `Authorization: Basic`, and is told that it may do so again.
        basic: bool,
    },
    Problem(Problem),
}

/// What OAuth's own routes refuse with (RFC 6749, 7009, 7591).
#[derive(Serialize, ToSchema)]
#[schema(as = OAuthError)]
pub struct OAuthErrorBody {
    /// Stable, for programs.
    #[schema(example = "invalid_grant")]
    error: &'static str,
    /// What happened this time, in words.
    #[schema(example = "the code was used before, or is not valid any more")]
    error_description: String,
}

impl OAuthError {
    pub(crate) fn refused(error: &'static str, description: impl Into<String>) -> Self {
        Self::Refused { error, description: description.into(), basic: false }
    }
}

impl From<Refusal> for OAuthError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Protocol { error, description } => Self::refused(error, description),
            Refusal::Failed(error) => Self::Problem(error.into()),
        }
    }
}

impl From<Problem> for OAuthError {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl IntoResponse for OAuthError {
    fn into_response(self) -> Response {
        let (error, description, basic) = match self {
            Self::Problem(problem) => return problem.into_response(),
            Self::Refused { error, description, basic } => (error, description, basic),
        };
        let status =
            if error == "invalid_client" { StatusCode::UNAUTHORIZED } else { StatusCode::BAD_REQUEST };
        let body = OAuthErrorBody { error, error_description: plain(&description) };
        let mut response = (status, Json(body)).into_response();
        if basic && status == StatusCode::UNAUTHORIZED {
            let challenge = HeaderValue::from_static("Basic realm=\"okt\", charset=\"UTF-8\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}
