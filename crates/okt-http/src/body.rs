//! Reading of bodies: bounded in size, time, depth and form.

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};

use crate::edge::Edge;
use crate::problem::{Code, Problem};

/// The whole of a body of at most `limit` bytes: JSON, or a form where the route takes one.
pub(crate) async fn read(
    edge: &Edge,
    headers: &HeaderMap,
    body: Body,
    limit: usize,
) -> Result<Bytes, Problem> {
    if !is_json(headers) && !is_form(headers) {
        return Err(Problem::new(Code::UnsupportedMediaType, "the body must be application/json"));
    }
    let limits = &edge.server.limits;
    let too_large = || Problem::new(Code::TooLarge, format!("the limit is {limit} bytes"));
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    if announced.is_some_and(|length: usize| length > limit) {
        return Err(too_large());
    }
    let read = Limited::new(body, limit).collect();
    let whole = match tokio::time::timeout(edge.server.read_timeout.duration(), read).await {
        Err(_) => return Err(Problem::new(Code::BodyTooSlow, "the body did not arrive in time")),
        Ok(Err(error)) if error.is::<LengthLimitError>() => return Err(too_large()),
        Ok(Err(_)) => return Err(Problem::new(Code::Malformed, "the body broke off")),
        Ok(Ok(whole)) => whole.to_bytes(),
    };
    if is_json(headers) {
        scan(&whole, limits.json_depth)?;
    } else if whole.windows(3).any(|text| text == b"%00") || whole.contains(&0) {
        return Err(Problem::new(Code::Malformed, "the body contains a NUL character"));
    }
    Ok(whole)
}

pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    essence(headers).is_some_and(|essence| {
        essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
    })
}

pub(crate) fn is_form(headers: &HeaderMap) -> bool {
    essence(headers).is_some_and(|essence| essence == "application/x-www-form-urlencoded")
}

fn essence(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    Some(value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

/// Refuses brackets that nest deeper than `limit`, and NUL characters, which PostgreSQL can't hold. Looks at bytes
/// only, so hostile depth costs no stack.
fn scan(json: &[u8], limit: usize) -> Result<(), Problem> {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for (at, byte) in json.iter().enumerate() {
        match byte {
            b'u' if escaped && json[at..].starts_with(b"u0000") => {
                return Err(Problem::new(Code::Malformed, "the body contains a NUL character"));
            }
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                if depth > limit {
                    return Err(Problem::new(
                        Code::TooLarge,
                        format!("the limit is {limit} levels of nesting"),
                    ));
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
        assert!(scan(br#"["\u00001"]"#, 9).is_err(), "followed by a digit it is still one");
        assert!(scan(br#"["\\u0000", "u0000", "\u0001"]"#, 9).is_ok());
    }
}
