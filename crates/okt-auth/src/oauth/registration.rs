//! What a client says about itself (RFC 7591), checked.

use okt_model::{Scope, plain};
use serde_json::{Map, Value};
use url::Url;

use super::redirect;

/// A client's description of itself, as we take it. What it says beyond that is not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    pub name: String,
    pub uri: Option<String>,
    pub redirect_uris: Vec<String>,
    pub grant_types: Vec<String>,
    pub scope: Option<Scope>,
    pub auth_method: String,
}

/// How a client came to describe itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registration {
    /// It registered itself, and may be given a secret.
    Dynamic,
    /// It is described by a public document, so it has no secret.
    Document,
}

/// One of the errors of RFC 7591, and what is wrong in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRegistration {
    pub error: &'static str,
    pub description: String,
}

const NAME_LIMIT: usize = 64;
const REDIRECT_LIMIT: usize = 10;

impl Metadata {
    pub fn parse(document: &Value, by: Registration) -> Result<Self, BadRegistration> {
        let Some(document) = document.as_object() else { return Err(bad("the body must be a JSON object")) };
        let redirect_uris = redirect_uris(document)?;
        let auth_method = auth_method(document, by)?;
        let grant_types = grant_types(document)?;
        if let Some(types) = list(document, "response_types")?
            && types != ["code"]
        {
            return Err(bad("response_types: only code is supported"));
        }
        let mut uri = None;
        for field in ["client_uri", "logo_uri", "tos_uri", "policy_uri", "jwks_uri"] {
            let Some(text) = text(document, field)? else { continue };
            if !is_web_address(&text) {
                return Err(bad(format!("{field}: must be an https address")));
            }
            if field == "client_uri" {
                uri = Some(text);
            }
        }
        let scope = text(document, "scope")?.map(|text| Scope::asked(&text)).transpose();
        let scope = scope.map_err(|error| bad(format!("scope: {error}")))?.filter(|scope| !scope.is_empty());
        let name = text(document, "client_name")?.map(|name| plain(&name)).filter(|name| !name.is_empty());
        let name = name.map(|name| name.chars().take(NAME_LIMIT).collect());
        let name = name.unwrap_or_else(|| host_of(&redirect_uris[0]));
        Ok(Self { name, uri, redirect_uris, grant_types, scope, auth_method })
    }
}

fn redirect_uris(document: &Map<String, Value>) -> Result<Vec<String>, BadRegistration> {
    let refused = |description: String| BadRegistration { error: "invalid_redirect_uri", description };
    let uris = match list(document, "redirect_uris") {
        Ok(Some(uris)) => uris,
        Ok(None) => Vec::new(),
        Err(wrong) => return Err(refused(wrong.description)),
    };
    if uris.is_empty() || uris.len() > REDIRECT_LIMIT {
        return Err(refused(format!("redirect_uris: 1 to {REDIRECT_LIMIT} are needed")));
    }
    for uri in &uris {
        if let Some(objection) = redirect::objection(uri) {
            return Err(refused(format!("redirect_uris: each {objection}")));
        }
    }
    Ok(uris)
}

fn auth_method(document: &Map<String, Value>, by: Registration) -> Result<String, BadRegistration> {
    let given = text(document, "token_endpoint_auth_method")?;
    match (given.as_deref(), by) {
        (None, Registration::Dynamic) => Ok("client_secret_basic".to_owned()),
        (None, Registration::Document) | (Some("none"), _) => Ok("none".to_owned()),
        (Some("client_secret_basic" | "client_secret_post"), Registration::Dynamic) => {
            Ok(given.unwrap_or_default())
        }
        (Some(_), Registration::Dynamic) => {
            Err(bad("token_endpoint_auth_method: none, client_secret_basic or client_secret_post"))
        }
        (Some(_), Registration::Document) => Err(bad(
            "token_endpoint_auth_method: a client that is described by a document has no secret; say none",
        )),
    }
}

fn grant_types(document: &Map<String, Value>) -> Result<Vec<String>, BadRegistration> {
    let Some(types) = list(document, "grant_types")? else {
        return Ok(vec!["authorization_code".to_owned()]);
    };
    let known = types.iter().all(|kind| ["authorization_code", "refresh_token"].contains(&kind.as_str()));
    if !known || !types.iter().any(|kind| kind == "authorization_code") {
        return Err(bad("grant_types: authorization_code, and refresh_token if you like"));
    }
    Ok(types)
}

fn text(document: &Map<String, Value>, field: &str) -> Result<Option<String>, BadRegistration> {
    match document.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.len() <= 2000 => Ok(Some(text.clone())),
        Some(_) => Err(bad(format!("{field}: must be a text of at most 2000 bytes"))),
    }
}

fn list(document: &Map<String, Value>, field: &str) -> Result<Option<Vec<String>>, BadRegistration> {
    let wrong = || bad(format!("{field}: must be a list of texts"));
    match document.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(values)) => {
            let texts = values.iter().map(|value| value.as_str().map(str::to_owned).ok_or_else(wrong));
            texts.collect::<Result<_, _>>().map(Some)
        }
        Some(_) => Err(wrong()),
    }
}

/// Readers of addresses leave control characters out; who shows the text would not.
fn is_web_address(text: &str) -> bool {
    !text.contains(|c: char| c.is_control() || c.is_whitespace())
        && Url::parse(text)
            .is_ok_and(|url| url.scheme() == "https" && url.username().is_empty() && url.password().is_none())
}

fn host_of(uri: &str) -> String {
    Url::parse(uri).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default()
}

fn bad(description: impl Into<String>) -> BadRegistration {
    BadRegistration { error: "invalid_client_metadata", description: description.into() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(document: &Value) -> Result<Metadata, BadRegistration> {
        Metadata::parse(document, Registration::Dynamic)
    }

    #[test]
    fn what_is_left_out_has_the_standards_defaults() {
        let metadata = parse(&json!({"redirect_uris": ["https://app.example.org/callback"]})).unwrap();
        assert_eq!(metadata.grant_types, ["authorization_code"]);
        assert_eq!(metadata.auth_method, "client_secret_basic");
        assert_eq!(metadata.name, "app.example.org");
        assert_eq!(metadata.scope, None);
        let document = json!({"redirect_uris": ["https://app.example.org/callback"]});
        assert_eq!(Metadata::parse(&document, Registration::Document).unwrap().auth_method, "none");
    }

    #[test]
    fn a_name_shows_what_it_is() {
        for (given, shown) in [
            ("Ada's Agent", "Ada's Agent"),
            ("  Ada's \n\t Agent ", "Ada's Agent"),
            ("evil\u{202e}gnp.exe", "evilgnp.exe"),
            ("zero\u{200b}width\u{feff}", "zerowidth"),
            ("\u{2066}isolated\u{2069}", "isolated"),
            ("\u{0}\u{7}", "app.example.org"),
            ("\u{3164}\u{115f}\u{2800}", "app.example.org"),
            (&"x".repeat(100), &"x".repeat(64)),
        ] {
            let document = json!({"redirect_uris": ["https://app.example.org/"], "client_name": given});
            assert_eq!(parse(&document).unwrap().name, shown, "{given:?}");
        }
    }

    #[test]
    fn a_document_has_no_secret() {
        for method in ["client_secret_basic", "client_secret_post", "private_key_jwt"] {
            let document =
                json!({"redirect_uris": ["https://app.example.org/"], "token_endpoint_auth_method": method});
            assert!(Metadata::parse(&document, Registration::Document).is_err(), "{method}");
        }
    }
}
