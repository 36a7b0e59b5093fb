//! Extractors whose refusals are problems.

use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http_body_util::BodyExt;
use okt_model::Error;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::body;
use crate::edge::Edge;
use crate::problem::{Code, Problem};

/// A JSON body, in or out. The edge has read it within its bounds; unknown fields are the type's business.
pub struct Json<T>(pub T);

/// A form, as it came: a name may be there more than once.
pub struct Form(pub Vec<(String, String)>);

/// Typed path segments; one that can't be read names nothing, so it answers 404.
pub struct Path<T>(pub T);

/// Typed query.
pub struct Query<T>(pub T);

impl Edge {
    /// The edge of the request at hand; every line of the table puts it there.
    pub(crate) fn of(parts: &Parts) -> Result<Arc<Self>, Problem> {
        let edge = parts.extensions.get::<Arc<Self>>().cloned();
        edge.ok_or_else(|| Error::internal("a request came in beside the route table").into())
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        // Asked again, because a request without any body passes the edge.
        if !body::is_json(request.headers()) {
            return Err(Problem::new(Code::UnsupportedMediaType, "the body must be application/json"));
        }
        let bytes = request.into_body().collect().await.map_err(Error::internal)?.to_bytes();
        // A list of values in the order of a type's fields would be read as if it named them.
        if bytes.trim_ascii_start().first().is_some_and(|byte| *byte != b'{') && is_json_value(&bytes) {
            return Err(Error::invalid("body", "must be an object").into());
        }
        let mut reader = serde_json::Deserializer::from_slice(&bytes);
        let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let field = error.path().to_string();
            let cause = error.into_inner();
            if cause.is_data() {
                // The position says nothing that the field does not say better.
                let message = cause.to_string();
                let message = message.split(" at line ").next().unwrap_or_default().to_owned();
                Problem::from(Error::invalid(if field == "." { "body".to_owned() } else { field }, message))
            } else {
                Problem::new(Code::Malformed, format!("not well-formed JSON: {cause}"))
            }
        })?;
        reader
            .end()
            .map_err(|error| Problem::new(Code::Malformed, format!("not well-formed JSON: {error}")))?;
        Ok(Self(value))
    }
}

impl<S: Send + Sync> FromRequest<S> for Form {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        if !body::is_form(request.headers()) {
            let detail = "the body must be application/x-www-form-urlencoded";
            return Err(Problem::new(Code::UnsupportedMediaType, detail));
        }
        let bytes = request.into_body().collect().await.map_err(Error::internal)?.to_bytes();
        Ok(Self(url::form_urlencoded::parse(&bytes).into_owned().collect()))
    }
}

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        axum::Json(self.0).into_response()
    }
}

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match axum::extract::Path::from_request_parts(parts, state).await {
            Ok(path) => Ok(Self(path.0)),
            Err(_) => Err(Problem::new(Code::NotFound, "there is nothing at this address")),
        }
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        match axum::extract::Query::try_from_uri(&parts.uri) {
            Ok(query) => Ok(Self(query.0)),
            Err(rejection) => Err(Error::invalid("query", rejection.body_text()).into()),
        }
    }
}

fn is_json_value(bytes: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok()
}
