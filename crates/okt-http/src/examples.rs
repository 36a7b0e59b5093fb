//! Examples of bodies and answers, composed from those of the fields: each is written once, beside its field, and whatever
//! is made of it has one.
//!
//! A text that is neither an enumeration nor of a known format needs an example of its own; a body with one that has none
//! gets none, and a test says so.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::{Content, OpenApi, RefOr};
use uuid::Builder;

/// How deep types may be made of types.
const DEPTH: u32 = 16;

/// Gives every body, and every answer to a request that went well, an example where it has none.
pub(crate) fn compose(document: &mut OpenApi) {
    let schemas = document.components.as_ref().map(|components| &components.schemas);
    let schemas = serde_json::to_value(schemas).unwrap_or_default();
    let composer = Composer { schemas: &schemas };
    for operation in document.paths.paths.values_mut().flat_map(operations) {
        let body =
            operation.request_body.iter_mut().filter_map(whole).flat_map(|body| body.content.values_mut());
        let answers = operation.responses.responses.iter_mut().filter(|(status, _)| status.starts_with('2'));
        let answers = answers.filter_map(|(_, answer)| whole(answer));
        let answers = answers.flat_map(|answer| answer.content.values_mut());
        body.chain(answers).filter_map(whole).for_each(|content| composer.complete(content));
    }
}

fn whole<T>(part: &mut RefOr<T>) -> Option<&mut T> {
    match part {
        RefOr::T(part) => Some(part),
        RefOr::Ref(_) => None,
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.put, &mut item.post, &mut item.delete, &mut item.patch].into_iter().flatten()
}

struct Composer<'a> {
    schemas: &'a Value,
}

impl Composer<'_> {
    fn complete(&self, content: &mut Content) {
        if content.example.is_some() || !content.examples.is_empty() {
            return;
        }
        let schema = serde_json::to_value(&content.schema).unwrap_or_default();
        // A whole file is no example of anything.
        if schema["format"] != "binary" {
            content.example = self.value(&schema, "", DEPTH);
        }
    }

    /// `name` is what ids are told apart by.
    fn value(&self, schema: &Value, name: &str, depth: u32) -> Option<Value> {
        let depth = depth.checked_sub(1)?;
        if let Some(own) = own_example(schema) {
            return Some(own.clone());
        }
        if let Some(named) = referred(schema) {
            return self.value(&self.schemas[named], named, depth);
        }
        if let Some(word) = schema["enum"].get(0) {
            return Some(word.clone());
        }
        if let Some(parts) = schema["allOf"].as_array() {
            let mut whole = Map::new();
            for part in parts {
                whole.extend(self.value(part, name, depth)?.as_object()?.clone());
            }
            return Some(whole.into());
        }
        if let Some(choices) = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array()) {
            let example = choices.iter().find_map(|choice| own_example(&self.schemas[referred(choice)?]));
            let null = choices.iter().any(|choice| choice["type"] == "null").then_some(&Value::Null);
            return match example.or(null) {
                Some(value) => Some(value.clone()),
                None => choices.iter().find_map(|choice| self.value(choice, name, depth)),
            };
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) if kinds.iter().any(|kind| kind == "null") => return Some(Value::Null),
            Value::String(kind) => kind,
            _ => return Some(json!({})),
        };
        match kind.as_str() {
            "object" => self.object(schema, name, depth),
            "array" => {
                let item = self.value(&schema["items"], name, depth)?;
                let least = schema["minItems"].as_u64().and_then(|least| usize::try_from(least).ok());
                Some(vec![item; least.unwrap_or(1).max(1)].into())
            }
            "string" => text(schema, name),
            "integer" => Some(schema.get("minimum").cloned().unwrap_or(json!(1))),
            "number" => Some(json!(0.25)),
            "boolean" => Some(json!(false)),
            _ => None,
        }
    }

    /// What may be left out is left out, unless it has an example of its own.
    fn object(&self, schema: &Value, owner: &str, depth: u32) -> Option<Value> {
        let required = |field: &str| items(&schema["required"]).any(|name| name == field);
        let mut object = Map::new();
        for (field, property) in schema["properties"].as_object().into_iter().flatten() {
            if required(field) {
                // `id` of a Source and `source_id` elsewhere are the same one.
                let own = || format!("{}_id", owner.to_lowercase().trim_end_matches("summary"));
                let name = match field.as_str() {
                    "id" => own(),
                    // The rows of a page are written out there.
                    "data" => owner.trim_start_matches("Page_").to_owned(),
                    _ => field.clone(),
                };
                object.insert(field.clone(), self.value(property, &name, depth)?);
            } else if let Some(example) = own_example(property) {
                object.insert(field.clone(), example.clone());
            }
        }
        Some(object.into())
    }
}

fn own_example(schema: &Value) -> Option<&Value> {
    schema.get("example").or_else(|| schema["examples"].get(0))
}

fn referred(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.rsplit('/').next()
}

fn items(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn text(schema: &Value, name: &str) -> Option<Value> {
    Some(match schema["format"].as_str()? {
        "uuid" => json!(id(name)),
        "date" => json!("2026-03-01"),
        "date-time" => json!("2026-03-01T09:30:00Z"),
        "password" => json!("correct horse battery staple"),
        "binary" => json!("Honey bees dance on the comb to tell each other where food is."),
        _ => return None,
    })
}

/// The same for the same name: of the form that our ids have, and of the day that examples speak of.
fn id(name: &str) -> uuid::Uuid {
    const MILLISECONDS: u64 = 1_772_357_400_000;
    let digest = Sha256::digest(name);
    let mut random = [0; 10];
    random.copy_from_slice(&digest[..10]);
    Builder::from_unix_timestamp_millis(MILLISECONDS, &random).into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_of_fields_with_examples_has_one() {
        let schemas = json!({
            "Status": {"type": "string", "enum": ["new", "stable"], "example": "stable"},
            "Quote": {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}},
            "FactSummary": {"type": "object", "required": ["id", "text", "status", "kind", "near"], "properties": {
                "id": {"type": "string", "format": "uuid"},
                "text": {"type": "string", "example": "Bees dance."},
                "status": {"$ref": "#/components/schemas/Status"},
                "kind": {"oneOf": [{"type": "null"}, {"$ref": "#/components/schemas/Status"}]},
                "near": {"oneOf": [{"type": "null"}, {"$ref": "#/components/schemas/Quote"}]},
                "left_out": {"type": "string"},
                "page": {"type": ["integer", "null"], "example": 3},
            }},
        });
        let composer = Composer { schemas: &schemas };
        let of = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
        let list = json!({"type": "array", "items": of("FactSummary")});
        assert_eq!(
            composer.value(&list, "", DEPTH),
            Some(json!([{
                "id": id("fact_id"), "text": "Bees dance.", "status": "stable", "kind": "stable", "near": null, "page": 3,
            }]))
        );
        assert_eq!(composer.value(&of("Quote"), "", DEPTH), None, "its text has no example");
        let both = json!({"allOf": [of("FactSummary"), {"type": "object", "required": ["cosine"],
            "properties": {"cosine": {"type": "number"}}}]});
        assert_eq!(composer.value(&both, "", DEPTH).unwrap()["cosine"], 0.25);
    }
}
