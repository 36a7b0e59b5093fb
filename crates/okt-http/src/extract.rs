//! Extractors whose refusals are problems.

use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use okt_model::Error;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::edge::Edge;
use crate::problem::{Code, Problem};

/// A JSON body, in or out. In: bounded in size, depth and time; unknown fields are the type's business.
pub struct Json<T>(pub T);

/// The bytes of a JSON body, with the same bounds, for code that must see the body before its handler does.
pub struct RawJson(pub Bytes);

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

impl<S: Send + Sync> FromRequest<S> for RawJson {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let edge = Edge::of(&parts)?;
        if !is_json(&parts.headers) {
            return Err(Problem::new(Code::UnsupportedMediaType, "the body must be application/json"));
        }
        let limits = &edge.server.limits;
        let too_large = || Problem::new(Code::TooLarge, format!("the limit is {} bytes", limits.json_bytes));
        let announced =
            parts.headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        if announced.is_some_and(|length: usize| length > limits.json_bytes) {
            return Err(too_large());
        }
        let read = Limited::new(body, limits.json_bytes).collect();
        let whole = match tokio::time::timeout(edge.server.read_timeout.duration(), read).await {
            Err(_) => return Err(Problem::new(Code::BodyTooSlow, "the body did not arrive in time")),
            Ok(Err(error)) if error.is::<LengthLimitError>() => return Err(too_large()),
            Ok(Err(_)) => return Err(Problem::new(Code::Malformed, "the body broke off")),
            Ok(Ok(whole)) => whole.to_bytes(),
        };
        scan(&whole, limits.json_depth).map_err(|detail| Problem::new(Code::Malformed, detail))?;
        Ok(Self(whole))
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let RawJson(bytes) = RawJson::from_request(request, state).await?;
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

fn is_json(headers: &HeaderMap) -> bool {
    let essence = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .map(|value| value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
    essence.is_some_and(|essence| {
        essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
    })
}

/// Refuses brackets that nest deeper than `limit`, and NUL characters, which PostgreSQL can't hold. Looks at bytes
/// only, so hostile depth costs no stack.
fn scan(json: &[u8], limit: usize) -> Result<(), String> {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for (at, byte) in json.iter().enumerate() {
        match byte {
            b'u' if escaped && json[at..].starts_with(b"u0000") => {
                return Err("the body contains a NUL character".to_owned());
            }
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                if depth > limit {
                    return Err(format!("the body is nested deeper than {limit} levels"));
                }
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_brackets_outside_of_strings() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(scan(nested(64).as_bytes(), 64).is_ok());
        assert!(scan(nested(65).as_bytes(), 64).is_err());
        assert!(scan(br#"["[[[[", "\"[[[["]"#, 1).is_ok());
        assert!(scan(br#"{"a":{"b":1}}"#, 1).is_err());
        assert!(scan(b"[{},{},[]]", 2).is_ok());
    }

    #[test]
    fn nul_characters_are_found_and_their_look_alikes_are_not() {
        assert!(scan(br#"["a\u0000"]"#, 9).is_err());
        assert!(scan(br#"["\\\u0000"]"#, 9).is_err());
        assert!(
            scan(br#"["\\u0000", "u0000", "\u00001", "\u0001"]"#, 9).is_err(),
            "followed by a digit it is still one"
        );
        assert!(scan(br#"["\\u0000", "u0000", "\u0001"]"#, 9).is_ok());
    }
}
