//! Which revision of the protocol a request speaks. The request says so itself: nothing is remembered.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use super::rpc::{Fault, INVALID_PARAMS, Message};

/// The revision without a handshake.
pub(super) const MODERN: &str = "2026-07-28";
/// Those that begin with `initialize`, the newest first.
pub(super) const WITH_HANDSHAKE: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// Of what stands in the headers and in the body.
const HEADER_MISMATCH: i64 = -32020;
const UNSUPPORTED_VERSION: i64 = -32022;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Era {
    Handshake,
    Modern,
}

pub(super) fn supported() -> Vec<&'static str> {
    [MODERN].into_iter().chain(WITH_HANDSHAKE).collect()
}

impl Era {
    pub(super) fn of(headers: &HeaderMap, message: &Message) -> Result<Self, Fault> {
        let declared = message.params["_meta"][VERSION].as_str();
        let header = header(headers, "mcp-protocol-version")?;
        match (declared, header) {
            (Some(declared), Some(header)) if declared == header => {}
            (Some(_), Some(_)) => {
                return Err(mismatch("MCP-Protocol-Version differs from the version in _meta"));
            }
            (Some(_), None) => return Err(mismatch("MCP-Protocol-Version is missing")),
            (None, Some(MODERN)) => {
                let detail = format!("params._meta[\"{VERSION}\"] is missing");
                return Err(Fault::new(StatusCode::BAD_REQUEST, INVALID_PARAMS, detail));
            }
            (None, _) => {}
        }
        match declared.or(header) {
            None => Ok(Self::Handshake),
            Some(version) if WITH_HANDSHAKE.contains(&version) => Ok(Self::Handshake),
            Some(MODERN) => {
                check_modern(headers, message)?;
                Ok(Self::Modern)
            }
            Some(version) => {
                let fault =
                    Fault::new(StatusCode::BAD_REQUEST, UNSUPPORTED_VERSION, "unsupported protocol version");
                Err(fault.with(json!({"supported": supported(), "requested": version})))
            }
        }
    }
}

fn check_modern(headers: &HeaderMap, message: &Message) -> Result<(), Fault> {
    if !message.params["_meta"][CAPABILITIES].is_object() {
        let detail = format!("params._meta[\"{CAPABILITIES}\"] is missing");
        return Err(Fault::new(StatusCode::BAD_REQUEST, INVALID_PARAMS, detail));
    }
    match header(headers, "mcp-method")? {
        Some(method) if method == message.method => {}
        Some(_) => return Err(mismatch("Mcp-Method differs from the method of the body")),
        None => return Err(mismatch("Mcp-Method is missing")),
    }
    let named = match message.method.as_str() {
        "tools/call" | "prompts/get" => &message.params["name"],
        "resources/read" => &message.params["uri"],
        _ => return Ok(()),
    };
    let Value::String(named) = named else { return Ok(()) };
    match header(headers, "mcp-name")? {
        Some(name) if decoded(name).is_some_and(|name| name == *named) => Ok(()),
        Some(_) => Err(mismatch("Mcp-Name differs from the name in the body")),
        None => Err(mismatch("Mcp-Name is missing")),
    }
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h str>, Fault> {
    let mut lines = headers.get_all(name).iter();
    match (lines.next(), lines.next()) {
        (None, _) => Ok(None),
        (Some(line), None) => match line.to_str() {
            Ok(text) => Ok(Some(text.trim_matches([' ', '\t']))),
            Err(_) => Err(mismatch(format!("{name} has characters that a header can't have"))),
        },
        _ => Err(mismatch(format!("{name} is there more than once"))),
    }
}

/// What a client could not write into a header comes in Base64.
fn decoded(text: &str) -> Option<String> {
    match text.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(encoded) => String::from_utf8(BASE64_STANDARD.decode(encoded).ok()?).ok(),
        None => Some(text.to_owned()),
    }
}

fn mismatch(message: impl Into<String>) -> Fault {
    Fault::new(StatusCode::BAD_REQUEST, HEADER_MISMATCH, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_plain_or_in_base64() {
        assert_eq!(decoded("get_fact").as_deref(), Some("get_fact"));
        assert_eq!(decoded("=?base64?w6TDtsO8?=").as_deref(), Some("äöü"));
        assert_eq!(decoded("=?base64?not base64?="), None);
    }
}
