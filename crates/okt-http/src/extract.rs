//! Extractors whose refusals are problems.

use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http_body_util::BodyExt;
use okt_model::{Error, FieldError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use utoipa::ToSchema;

use crate::body;
use crate::edge::Edge;
use crate::fields;
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

impl<T: DeserializeOwned + ToSchema, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        // Asked again, because a request without any body passes the edge.
        if !body::is_json(request.headers()) {
            return Err(Problem::new(Code::UnsupportedMediaType, "the body must be application/json"));
        }
        let bytes = request.into_body().collect().await.map_err(Error::internal)?.to_bytes();
        if bytes.trim_ascii_start().is_empty() {
            return Err(Problem::new(Code::Malformed, "not well-formed JSON: the body is empty"));
        }
        // A list of values in the order of a type's fields would be read as if it named them.
        if bytes.trim_ascii_start().first().is_some_and(|byte| *byte != b'{') && is_json_value(&bytes) {
            return Err(Error::invalid("body", "must be an object").into());
        }
        let malformed = |error| Problem::new(Code::Malformed, format!("not well-formed JSON: {error}"));
        let mut reader = serde_json::Deserializer::from_slice(&bytes);
        let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let field = error.path().to_string();
            let cause = error.into_inner();
            // It may be broken further on, too; then that is what is wrong with it.
            match serde_json::from_slice(&bytes) {
                Ok(read) if cause.is_data() => Error::Invalid(faults::<T>(&read, &field, &cause)).into(),
                Ok(_) => malformed(cause),
                Err(error) => malformed(error),
            }
        })?;
        reader.end().map_err(malformed)?;
        Ok(Self(value))
    }
}

/// What serde stumbled over, with everything else that is wrong.
fn faults<T: ToSchema>(body: &Value, field: &str, cause: &serde_json::Error) -> Vec<FieldError> {
    let mut found = fields::faults::<T>(body);
    // What it misses or does not know in an object, it says of the object.
    let is_known = |fault: &FieldError| field == "." || fault.field.starts_with(field);
    if !found.iter().any(is_known) {
        // The position says nothing that the field does not say better.
        let message = cause.to_string();
        let message = message.split(" at line ").next().unwrap_or_default().to_owned();
        let field = if field == "." { "body".to_owned() } else { field.to_owned() };
        found.insert(0, FieldError { field: field.into(), message: message.into() });
    }
    found
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
        // The edge has refused what is unknown or of another kind than the route declares.
        match axum::extract::Query::try_from_uri(&parts.uri) {
            Ok(query) => Ok(Self(query.0)),
            Err(_) => Err(Error::invalid("query", "has a value that is out of bounds").into()),
        }
    }
}

fn is_json_value(bytes: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok()
}
