//! Written-out files, and the defaults, agree with the types.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use super::crate_file;
use crate::{Config, Contexts, Database, defaults, json_schema, ontology, reference_page, schema, tree};

#[test]
fn the_schema_is_the_one_written_out() {
    let schema = serde_json::to_string_pretty(&json_schema()).unwrap() + "\n";
    same_as_file(&crate_file("config.schema.json"), &schema);
}

#[test]
fn the_reference_page_is_the_one_written_out() {
    same_as_file(&crate_file("../../docs/CONFIGURATION.md"), &reference_page());
}

fn same_as_file(path: &Path, made: &str) {
    if std::env::var_os("OKT_BLESS").is_some() {
        std::fs::write(path, made).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(written == made, "{} is out of date: run `just bless`", path.display());
}

#[test]
fn the_defaults_hold_every_setting_and_no_other() {
    let written: BTreeSet<String> = tree::leaves(defaults::tree())
        .into_iter()
        .map(|(path, _)| path.to_string())
        .filter(|path| !path.starts_with("databases.") && !path.starts_with("repository_presets."))
        .filter(|path| path != "task.timeouts")
        .collect();
    let fixed = schema::leaves().iter().filter(|leaf| leaf.is_fixed()).map(|leaf| leaf.path.clone());
    // Two settings are lists of tables, empty as shipped.
    let lists = ["providers.ai.models", "providers.registries"].map(str::to_owned);
    assert_eq!(written, fixed.chain(lists).collect());
}

#[test]
fn a_new_database_has_the_values_of_the_shipped_one() {
    let shipped = serde_json::to_value(&Config::default().databases["default"]).unwrap();
    let mut added = serde_json::to_value(Database::default()).unwrap();
    assert_eq!(added["url"], "");
    added["url"] = shipped["url"].clone();
    assert_eq!(added, shipped);

    let entry = schema::entries(&schema::root()["properties"]["databases"]).unwrap();
    for (key, property) in entry["properties"].as_object().unwrap() {
        let typed = if key == "url" { &json!("") } else { &shipped[key] };
        assert_eq!(&property["default"], typed, "{key}");
    }
}

#[test]
fn every_default_in_the_schema_is_the_typed_one() {
    let typed = serde_json::to_value(Config::default()).unwrap();
    let mut count = 0;
    for leaf in schema::leaves().iter().filter(|leaf| leaf.is_fixed()) {
        let value = tree::find(&typed, &tree::Path::dotted(&leaf.path));
        assert_eq!(leaf.schema.get("default"), value, "{}", leaf.path);
        count += 1;
    }
    assert!(count > 150, "only {count} settings were compared");
}

#[test]
fn every_setting_says_what_it_means() {
    for leaf in schema::leaves() {
        let described = leaf.schema["description"].as_str().is_some_and(|text| !text.is_empty());
        assert!(described, "{}", leaf.path);
    }
}

#[test]
fn nothing_is_required_of_an_override_file() {
    fn required(schema: &Value, path: &str, found: &mut Vec<String>) {
        for key in schema["required"].as_array().into_iter().flatten() {
            found.push(format!("{path}.{}", key.as_str().unwrap()));
        }
        for (key, property) in schema["properties"].as_object().into_iter().flatten() {
            required(property, &format!("{path}.{key}"), found);
        }
    }
    let mut found = Vec::new();
    required(schema::root(), "", &mut found);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn the_shipped_presets_are_the_three_promised_ones() {
    let presets = Config::default().repository_presets;
    assert_eq!(presets.keys().collect::<Vec<_>>(), ["enterprise", "general", "scientific"]);
    assert_eq!(presets["general"].contexts, Contexts::All);
    assert_eq!(presets["enterprise"].contexts, Contexts::Labels(vec![]));
    let custom: Vec<&str> =
        presets["enterprise"].custom_contexts.iter().map(|context| context.label.as_str()).collect();
    assert_eq!(custom, ["Product", "Application", "Role"]);
    assert!(matches!(&presets["scientific"].contexts, Contexts::Labels(labels) if labels.len() > 30));
}

#[test]
fn the_shipped_presets_spell_contexts_as_the_ontology_does() {
    for (id, preset) in Config::default().repository_presets {
        let Contexts::Labels(labels) = preset.contexts else {
            continue;
        };
        for label in labels {
            assert_eq!(ontology::find(&label).map(|class| class.label), Some(label.as_str()), "{id}");
        }
    }
}
