//! The schemas of arguments and results, made from the types that read and write them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Of arguments. A field may be left out, so it need not be null; some clients can't read a field of two types.
pub(super) fn input<T: ToSchema>() -> Value {
    let mut schema = resolved::<T>();
    without_null(&mut schema);
    schema
}

/// Of results.
pub(super) fn output<T: ToSchema>() -> Value {
    resolved::<T>()
}

/// With what it refers to in its place: a client reads one tool at a time.
fn resolved<T: ToSchema>() -> Value {
    let mut named = Vec::new();
    T::schemas(&mut named);
    let named: BTreeMap<String, Value> = named
        .into_iter()
        .map(|(name, schema)| (name, serde_json::to_value(schema).unwrap_or_default()))
        .collect();
    inlined(serde_json::to_value(T::schema()).unwrap_or_default(), &named)
}

fn inlined(schema: Value, named: &BTreeMap<String, Value>) -> Value {
    match schema {
        Value::Object(object) => {
            if let Some(name) = object.get("$ref").and_then(Value::as_str) {
                let name = name.rsplit('/').next().unwrap_or_default();
                return inlined(named.get(name).cloned().unwrap_or_default(), named);
            }
            // Formats are checked by few clients and unknown to some, which then refuse the schema.
            let kept = object.into_iter().filter(|(key, value)| key != "format" || !value.is_string());
            Value::Object(kept.map(|(key, value)| (key, inlined(value, named))).collect())
        }
        Value::Array(items) => items.into_iter().map(|item| inlined(item, named)).collect(),
        other => other,
    }
}

fn without_null(schema: &mut Value) {
    let Value::Object(object) = schema else { return };
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
    let properties = object.get_mut("properties").and_then(Value::as_object_mut);
    properties.into_iter().flat_map(Map::values_mut).for_each(without_null);
}
