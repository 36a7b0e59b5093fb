//! A value that must not be read in logs, dumps or error messages.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize, Serializer};

/// What is shown in place of a secret.
pub(crate) const MASK: &str = "***";

/// Text that shows itself as `***` (or as nothing, when empty) and is wiped from memory when dropped.
///
/// There is no `==`: whoever compares secrets should think about time.
#[derive(Clone, Default, Deserialize)]
#[serde(transparent)]
pub struct Secret(SecretString);

impl Secret {
    /// The secret itself. Call it where it is used, and keep the answer no longer than that.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    pub fn is_empty(&self) -> bool {
        self.expose().is_empty()
    }

    fn masked(&self) -> &'static str {
        if self.is_empty() { "" } else { MASK }
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.masked())
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.masked())
    }
}

impl JsonSchema for Secret {
    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "password", "writeOnly": true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_shows_only_whether_it_is_set() {
        let set = Secret::from("hunter2".to_owned());
        let unset = Secret::default();
        assert_eq!(format!("{set:?} {unset:?}"), r#""***" """#);
        assert_eq!(serde_json::to_string(&[set.clone(), unset]).unwrap(), r#"["***",""]"#);
        assert_eq!(set.expose(), "hunter2");
    }
}
