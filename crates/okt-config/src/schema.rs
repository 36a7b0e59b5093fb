//! The JSON schema: made from the types, with the defaults filled in from `defaults.toml`.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use crate::defaults;
use crate::sections::Config;
use crate::tree::Path;

/// The schema of an override file. No key is required, except inside of lists and new entries.
pub fn json_schema() -> Value {
    root().clone()
}

pub(crate) fn root() -> &'static Value {
    static ROOT: LazyLock<Value> = LazyLock::new(|| {
        let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
        let mut schema = settings.into_generator().into_root_schema_for::<Config>().to_value();
        fill_in_defaults(&mut schema, defaults::tree());
        unfold_descriptions(&mut schema);
        sorted(schema)
    });
    &ROOT
}

/// One setting, with `<name>` for a key that people choose and `[]` for a member of a list.
pub(crate) struct Leaf {
    pub path: String,
    pub schema: &'static Value,
}

impl Leaf {
    /// Whether the setting stands in every configuration, not only in entries that people add.
    pub fn is_fixed(&self) -> bool {
        !self.path.contains(['<', '['])
    }
}

/// Every setting there is, in the order of the keys.
pub(crate) fn leaves() -> &'static [Leaf] {
    static LEAVES: LazyLock<Vec<Leaf>> = LazyLock::new(|| {
        let mut leaves = Vec::new();
        collect(root(), String::new(), &mut leaves);
        leaves
    });
    &LEAVES
}

/// The paths of all settings that have exactly one.
pub(crate) fn paths() -> &'static [String] {
    static PATHS: LazyLock<Vec<String>> = LazyLock::new(|| {
        leaves().iter().filter(|leaf| leaf.is_fixed()).map(|leaf| leaf.path.clone()).collect()
    });
    &PATHS
}

/// The schema at a path of keys.
pub(crate) fn at(keys: &[&str]) -> Option<&'static Value> {
    keys.iter().try_fold(root(), |schema, key| property(schema, key))
}

/// The schema of one key of a table.
pub(crate) fn property<'s>(table: &'s Value, key: &str) -> Option<&'s Value> {
    table["properties"].get(key).or_else(|| entries(table))
}

/// The schema of the entries of a table whose keys people choose.
pub(crate) fn entries(table: &Value) -> Option<&Value> {
    table.get("additionalProperties").filter(|entries| entries.is_object())
}

/// The keys that a table may have, as far as they are fixed.
pub(crate) fn known_keys(table: &Value) -> impl Iterator<Item = &str> {
    let properties = table["properties"].as_object().into_iter().flat_map(Map::keys).map(String::as_str);
    let names = table["propertyNames"]["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
    properties.chain(names)
}

/// Whether the value must never be shown.
pub(crate) fn is_secret(schema: &Value) -> bool {
    schema["writeOnly"] == true
}

fn fill_in_defaults(schema: &mut Value, defaults: &Value) {
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|key| key.as_str().is_none_or(|key| defaults.get(key).is_none()));
        if required.is_empty() {
            schema.as_object_mut().map(|schema| schema.remove("required"));
        }
    }
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    for (key, property) in properties {
        let Some(default) = defaults.get(key) else {
            continue;
        };
        if property.get("properties").is_some() {
            fill_in_defaults(property, default);
        } else if entries(property).is_none() {
            property["default"] = default.clone();
        }
    }
}

/// Doc comments are broken into lines for the reader of the code; other readers have windows of their own width.
fn unfold_descriptions(schema: &mut Value) {
    match schema {
        Value::Object(table) => {
            if let Some(Value::String(text)) = table.get_mut("description") {
                *text = text.replace('\n', " ");
            }
            table.values_mut().for_each(unfold_descriptions);
        }
        Value::Array(list) => list.iter_mut().for_each(unfold_descriptions),
        _ => {}
    }
}

/// The same value with the keys of every table in order, whatever order the map type keeps: another crate may
/// switch on `preserve_order`, and the written schema must not depend on that.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(table) => {
            let mut pairs: Vec<(String, Value)> = table.into_iter().collect();
            pairs.sort_by(|(left, _), (right, _)| left.cmp(right));
            Value::Object(pairs.into_iter().map(|(key, inner)| (key, sorted(inner))).collect())
        }
        Value::Array(list) => Value::Array(list.into_iter().map(sorted).collect()),
        scalar => scalar,
    }
}

fn collect(schema: &'static Value, path: String, leaves: &mut Vec<Leaf>) {
    let below = |key: &str| {
        if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
    };
    if let Some(properties) = schema["properties"].as_object() {
        for (key, property) in properties {
            collect(property, below(&Path::of([key.as_str()]).to_string()), leaves);
        }
    } else if let Some(entry) = entries(schema) {
        collect(entry, below("<name>"), leaves);
    } else if schema["items"].get("properties").is_some() {
        collect(&schema["items"], format!("{path}[]"), leaves);
    } else {
        leaves.push(Leaf { path, schema });
    }
}
