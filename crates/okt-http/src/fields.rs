//! What is wrong with a JSON body, all of it at once: the body is held against the schema that the documentation shows.
//!
//! Serde decides whether a body can be read, and stops at the first thing that it can't read. This only says more than
//! that; where it finds nothing, serde's own words stand. No message repeats a value, which may be a secret.

use std::collections::BTreeMap;

use okt_config::{closest, did_you_mean};
use okt_model::FieldError;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

/// A client that is wrong about everything learns enough from so many.
const MOST: usize = 20;

/// Every field that is missing, unknown or of another form than `T` has, by its path.
pub(crate) fn faults<T: ToSchema>(body: &Value) -> Vec<FieldError> {
    let mut schemas = Vec::new();
    T::schemas(&mut schemas);
    let components =
        schemas.into_iter().map(|(name, schema)| (name, serde_json::to_value(schema).unwrap_or_default()));
    let schema = serde_json::to_value(T::schema()).unwrap_or_default();
    let mut found = Faults { components: components.collect(), list: Vec::new() };
    found.look_at(&schema, body, "");
    found.list
}

struct Faults {
    components: BTreeMap<String, Value>,
    list: Vec<FieldError>,
}

impl Faults {
    fn add(&mut self, path: &str, message: impl Into<String>) {
        if self.list.len() < MOST {
            let field = if path.is_empty() { "body" } else { path }.to_owned();
            self.list.push(FieldError { field: field.into(), message: message.into().into() });
        }
    }

    fn look_at(&mut self, schema: &Value, value: &Value, path: &str) {
        if let Some(name) = schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next()) {
            // Taken out meanwhile, so that a schema that holds itself ends with the value.
            if let Some(schema) = self.components.get(name).cloned() {
                self.look_at(&schema, value, path);
            }
            return;
        }
        for part in list(&schema["allOf"]) {
            self.look_at(part, value, path);
        }
        let branches: Vec<&Value> = list(&schema["oneOf"]).chain(list(&schema["anyOf"])).collect();
        if !branches.is_empty() {
            let may_be_null = branches.iter().any(|branch| branch["type"] == "null");
            let mut others = branches.iter().filter(|branch| branch["type"] != "null");
            // With more than one there is no telling which was meant.
            if let (Some(only), None) = (others.next(), others.next())
                && !(may_be_null && value.is_null())
            {
                self.look_at(only, value, path);
            }
            return;
        }
        if let Some(allowed) = schema["enum"].as_array() {
            if !allowed.contains(value) {
                let words: Vec<&str> = allowed.iter().filter_map(Value::as_str).collect();
                self.add(path, format!("must be one of {}", words.join(", ")));
            }
            return;
        }
        let types: Vec<&str> = match &schema["type"] {
            Value::String(one) => vec![one],
            several => list(several).filter_map(Value::as_str).collect(),
        };
        if !types.is_empty() && !types.iter().any(|name| is_of_type(value, name)) {
            let words: Vec<&str> = types.iter().map(|name| in_words(name)).collect();
            return self.add(path, format!("must be {}", words.join(" or ")));
        }
        match value {
            Value::Object(_) => self.look_into(schema, value, path),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.look_at(&schema["items"], item, &format!("{path}[{index}]"));
                }
            }
            Value::String(text) if schema["format"] == "uuid" && Uuid::try_parse(text).is_err() => {
                self.add(path, "must be an id, which is a UUID");
            }
            _ => {}
        }
    }

    fn look_into(&mut self, schema: &Value, value: &Value, path: &str) {
        let Some(object) = value.as_object() else { return };
        let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        for key in list(&schema["required"]).filter_map(Value::as_str) {
            if !object.contains_key(key) {
                self.add(&below(key), "required");
            }
        }
        let properties = schema["properties"].as_object();
        // In order, whatever order the map type keeps.
        let mut pairs: Vec<(&String, &Value)> = object.iter().collect();
        pairs.sort_unstable_by_key(|(key, _)| *key);
        for (key, inner) in pairs {
            if let Some(schema) = properties.and_then(|properties| properties.get(key)) {
                self.look_at(schema, inner, &below(key));
            } else if schema["additionalProperties"] == false {
                let mut known: Vec<&str> =
                    properties.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
                known.sort_unstable();
                let message = match closest(key, known.iter().copied()) {
                    Some(near) => format!("unknown field{}", did_you_mean(Some(near))),
                    None => format!("unknown field; known are {}", known.join(", ")),
                };
                self.add(&below(key), message);
            } else {
                self.look_at(&schema["additionalProperties"], inner, &below(key));
            }
        }
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

fn in_words(name: &str) -> &str {
    match name {
        "boolean" => "true or false",
        "integer" => "a whole number",
        "number" => "a number",
        "string" => "text",
        "array" => "a list",
        "object" => "an object",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use serde_json::json;

    use super::*;

    #[derive(ToSchema)]
    #[expect(dead_code, reason = "only its form matters")]
    struct Order {
        name: String,
        count: u32,
        #[schema(required = false)]
        kind: Option<Kind>,
        parts: Vec<Part>,
        notes: Option<HashMap<String, String>>,
        owner: Option<Uuid>,
    }

    #[derive(ToSchema)]
    #[schema(rename_all = "snake_case")]
    #[expect(dead_code, reason = "only its form matters")]
    enum Kind {
        First,
        SecondClass,
    }

    #[derive(ToSchema)]
    #[expect(dead_code, reason = "only its form matters")]
    struct Part {
        id: Uuid,
        #[schema(no_recursion)]
        inner: Option<Box<Part>>,
    }

    fn said(body: &Value) -> Vec<String> {
        faults::<Order>(body).iter().map(|fault| format!("{}: {}", fault.field, fault.message)).collect()
    }

    #[test]
    fn everything_that_is_wrong_is_named_by_its_path() {
        assert_eq!(said(&json!({})), ["name: required", "count: required", "parts: required"]);
        assert_eq!(
            said(&json!({
                "name": 1, "count": 1.5, "kind": "third", "owner": "me", "notes": {"a": 1},
                "parts": [{"id": "0190b6a0-0000-7000-8000-000000000000", "inner": {"id": 7}}, {}, 3],
            })),
            [
                "count: must be a whole number",
                "kind: must be one of first, second_class",
                "name: must be text",
                "notes.a: must be text",
                "owner: must be an id, which is a UUID",
                "parts[0].inner.id: must be text",
                "parts[1].id: required",
                "parts[2]: must be an object",
            ]
        );
        let fine = json!({"name": "a", "count": 1, "parts": [], "kind": null, "notes": null, "owner": null});
        assert_eq!(said(&fine), [""; 0]);
        assert_eq!(said(&json!([])), ["body: must be an object"]);
    }

    #[test]
    fn a_flood_of_mistakes_is_cut_off() {
        let parts: Vec<Value> = (0..1_000).map(|_| json!(1)).collect();
        assert_eq!(said(&json!({"name": "a", "count": 1, "parts": parts})).len(), MOST);
    }
}
