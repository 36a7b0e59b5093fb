//! Environment variable → setting: one table for the names with a history, one rule for all others.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::error::Problem;
use crate::layer::Layer;
use crate::origin::Origin;
use crate::schema;
use crate::suggest;
use crate::tree::Path;

/// A variable with a name of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EnvVar {
    pub name: &'static str,
    pub(crate) path: &'static str,
    pub(crate) kind: Kind,
}

/// How the text of a variable is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Secret,
    Whole,
    Number,
    /// `true`, `false`, `1` or `0`, in any case.
    Switch,
    /// Separated by commas.
    List,
    /// The word `all`, or a list.
    AllOrList,
}

/// The variables with names of their own. They beat the general form.
pub(crate) const TABLE: &[EnvVar] = &[
    var("SEARCH_WEB_API_KEY", "providers.search.web.api_key", Kind::Secret),
    var("SEARCH_ACADEMIC_EMAIL", "providers.search.academic.email", Kind::Text),
    var("SEARCH_ACADEMIC_API_KEY", "providers.search.academic.api_key", Kind::Secret),
    var("LLM_GATEWAY_API_KEY", "providers.ai.gateway.api_key", Kind::Secret),
    var("LLM_CLOUD_API_KEY", "providers.ai.cloud.api_key", Kind::Secret),
    var("LLM_LOCAL_BASE_URL", "providers.ai.local.base_url", Kind::Text),
    var("OA_RESOLVER_EMAIL", "providers.resolution.open_access.email", Kind::Text),
    var("SVC_FETCH_IMPERSONATE", "providers.resolution.tls.impersonate", Kind::Text),
    var("CHALLENGE_SOLVER_URL", "providers.resolution.challenge_solver.url", Kind::Text),
    var("CHALLENGE_SOLVER_ENDPOINTS", "providers.resolution.challenge_solver.endpoints", Kind::List),
    var(
        "CHALLENGE_SOLVER_MAX_CONCURRENCY",
        "providers.resolution.challenge_solver.max_concurrency",
        Kind::Whole,
    ),
    var("VECTOR_STORE_HOST", "providers.vector_store.host", Kind::Text),
    var("VECTOR_STORE_PORT", "providers.vector_store.port", Kind::Whole),
    var("VECTOR_STORE_API_KEY", "providers.vector_store.api_key", Kind::Secret),
    var("REGISTRY_URL", "providers.registry.url", Kind::Text),
    var("REGISTRY_AUTH_MODE", "providers.registry.auth_mode", Kind::Text),
    var("REGISTRY_API_KEY", "providers.registry.api_key", Kind::Secret),
    var("REGISTRY_READ_API_KEY", "providers.registry.read_api_key", Kind::Secret),
    var("AUTH_JWTSECRET", "auth.jwt_secret", Kind::Secret),
    var("SVC_OAUTH_ISSUER", "oauth.issuer", Kind::Text),
    var("SVC_BOOTSTRAP_AUTO_PROMOTE", "bootstrap.auto_promote_first_user", Kind::Switch),
    var("SVC_BOOTSTRAP_DEFAULT_ADMIN_EMAIL", "bootstrap.default_admin_email", Kind::Text),
    var("SVC_BOOTSTRAP_DEFAULT_ADMIN_PASSWORD", "bootstrap.default_admin_password", Kind::Secret),
    var("SVC_BOOTSTRAP_DEFAULT_ADMIN_DISPLAY_NAME", "bootstrap.default_admin_display_name", Kind::Text),
    var("SVC_AUDIT_RETENTION_DAYS", "audit.retention_days", Kind::Whole),
];

const GENERAL: &str = "SVC__";

/// Whether a variable of this name is meant for us.
pub fn is_setting(name: &str) -> bool {
    name.starts_with("SVC_") || TABLE.iter().any(|known| known.name == name)
}

/// The layer of the environment. An empty variable counts as not set: that is how compose files and unit files
/// say "nothing".
pub(crate) fn layer(
    env: &BTreeMap<String, String>,
    problems: &mut Vec<Problem>,
    notes: &mut Vec<String>,
) -> Layer {
    let mut layer = Layer::empty();
    for (name, text) in env.iter().filter(|(_, text)| !text.is_empty()) {
        if let Some(rest) = name.strip_prefix(GENERAL) {
            general(name, rest, text, &mut layer, problems);
        } else if name.starts_with("SVC_") && TABLE.iter().all(|known| known.name != name) {
            // Some other program's, perhaps; so it is said and not refused.
            let suggestion = suggest::closest(name, TABLE.iter().map(|known| known.name));
            notes.push(format!(
                "environment {name}: no setting has this name{}",
                suggest::did_you_mean(suggestion)
            ));
        }
    }
    for known in TABLE {
        let Some(text) = env.get(known.name).filter(|text| !text.is_empty()) else {
            continue;
        };
        let path = Path::dotted(known.path);
        if let Some(Origin::Environment(other)) = layer.places.get(&path) {
            notes.push(format!("environment {other}: ignored, since {} is set", known.name));
        }
        layer.set(path, known.kind.read(text), Origin::Environment(known.name.to_owned()));
    }
    layer
}

/// The general name of a setting; `None` for what only a file can say.
pub(crate) fn general_name(path: &str) -> Option<String> {
    if path.contains('[') {
        return None;
    }
    Some(format!("{GENERAL}{}", path.to_uppercase().replace('.', "__")))
}

impl Kind {
    /// How a setting with this schema is read; `None` for tables and lists of tables.
    pub(crate) fn of(schema: &Value) -> Option<Self> {
        if schema.get("anyOf").is_some() {
            return Some(Self::AllOrList);
        }
        match schema["type"].as_str()? {
            "string" if schema::is_secret(schema) => Some(Self::Secret),
            "string" => Some(Self::Text),
            "integer" => Some(Self::Whole),
            "number" => Some(Self::Number),
            "boolean" => Some(Self::Switch),
            "array" if schema["items"].get("properties").is_none() => Some(Self::List),
            _ => None,
        }
    }

    /// What can't be read stays a text, and is refused by the one check that all layers go through.
    fn read(self, text: &str) -> Value {
        let trimmed = text.trim();
        let read = match self {
            Self::Text | Self::Secret => None,
            Self::Whole => trimmed.parse::<i64>().ok().map(Value::from),
            Self::Number => trimmed.parse::<f64>().ok().filter(|number| number.is_finite()).map(Value::from),
            Self::Switch => match trimmed.to_ascii_lowercase().as_str() {
                "true" | "1" => Some(true.into()),
                "false" | "0" => Some(false.into()),
                _ => None,
            },
            Self::AllOrList if trimmed == "all" => None,
            Self::List | Self::AllOrList => {
                let items = trimmed.split(',').map(str::trim).filter(|item| !item.is_empty());
                Some(items.map(Value::from).collect())
            }
        };
        read.unwrap_or_else(|| text.into())
    }
}

const fn var(name: &'static str, path: &'static str, kind: Kind) -> EnvVar {
    EnvVar { name, path, kind }
}

fn general(name: &str, rest: &str, text: &str, layer: &mut Layer, problems: &mut Vec<Problem>) {
    let lower = rest.to_lowercase();
    let keys: Vec<&str> = lower.split("__").collect();
    let path = Path::of(keys.iter().copied());
    let origin = Origin::Environment(name.to_owned());
    let message = match schema::at(&keys).map(|found| (Kind::of(found), found)) {
        Some((Some(kind), _)) => return layer.set(path, kind.read(text), origin),
        Some((None, found)) if found["type"] == "array" => {
            "a list of tables can be set in a file only".to_owned()
        }
        Some((None, _)) => "a table can't be set as a whole; name one of its keys".to_owned(),
        None => format!("unknown key{}", suggest::did_you_mean(suggestion(&keys).as_deref())),
    };
    problems.push(Problem { key: path.to_string(), message, origin: Some(origin) });
}

/// The variable that was meant by one that names no setting.
fn suggestion(keys: &[&str]) -> Option<String> {
    let (word, above) = keys.split_last()?;
    let siblings = schema::at(above).into_iter().flat_map(schema::known_keys);
    let found = suggest::setting(&keys.join("."), word, siblings)?;
    let is_sibling = !found.contains('.');
    let path = if is_sibling { Path::of(above.iter().copied()).key(&found).to_string() } else { found };
    general_name(&path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_names_a_setting_and_reads_it_rightly() {
        for known in TABLE {
            let keys: Vec<&str> = known.path.split('.').collect();
            assert_eq!(schema::at(&keys).and_then(Kind::of), Some(known.kind), "{}", known.name);
        }
    }

    #[test]
    fn switches_and_lists_are_read_leniently() {
        for (text, value) in [("TRUE", true), ("1", true), ("False", false), ("0", false)] {
            assert_eq!(Kind::Switch.read(text), Value::from(value));
        }
        assert_eq!(Kind::Switch.read("yes"), Value::from("yes"));
        assert_eq!(Kind::List.read(" a, b ,,c"), serde_json::json!(["a", "b", "c"]));
        assert_eq!(Kind::AllOrList.read("all"), Value::from("all"));
    }
}
