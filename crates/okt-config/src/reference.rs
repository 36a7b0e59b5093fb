//! The reference page: every setting, made from the schema and the table of environment variables.

use std::fmt::Write as _;

use serde_json::Value;

use crate::env;
use crate::format;
use crate::schema::{self, Leaf};

const HEAD: &str = include_str!("reference.md");

/// The page `docs/CONFIGURATION.md`.
pub fn reference_page() -> String {
    let mut page = HEAD.to_owned();
    let mut section = None;
    let (plain, nested): (Vec<&Leaf>, Vec<&Leaf>) =
        schema::leaves().iter().partition(|leaf| !leaf.path.contains('.'));
    page.push_str("\n### Top level\n\n");
    begin_table(&mut page);
    for leaf in plain {
        row(&mut page, leaf);
    }
    for leaf in nested {
        let own = section_of(&leaf.path);
        if section != Some(own) {
            section = Some(own);
            let keys: Vec<&str> = own.split('.').collect();
            let about = schema::at(&keys).map(description).unwrap_or_default();
            let _ = write!(page, "\n### `{own}`\n\n{about}\n\n");
            begin_table(&mut page);
        }
        row(&mut page, leaf);
    }
    page
}

/// The heading that a setting stands under. Providers are many, so each has one of its own.
fn section_of(path: &str) -> &str {
    let depth = if path.starts_with("providers.") { 2 } else { 1 };
    let end = path.match_indices(['.', '[']).nth(depth - 1).map_or(path.len(), |(end, _)| end);
    &path[..end]
}

fn begin_table(page: &mut String) {
    page.push_str("| Key | Type | Default | Environment | Meaning |\n|---|---|---|---|---|\n");
}

fn row(page: &mut String, leaf: &Leaf) {
    let cells = [
        format!("`{}`", leaf.path),
        kind(leaf.schema),
        default(leaf),
        variables(&leaf.path),
        description(leaf.schema).to_owned(),
    ];
    let cells = cells.map(|cell| cell.replace('|', "\\|"));
    let _ = writeln!(page, "| {} |", cells.join(" | "));
}

fn kind(schema: &Value) -> String {
    if let Some(branches) = schema["anyOf"].as_array() {
        return branches.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    if let Some(allowed) = schema["enum"].as_array() {
        let words = allowed.iter().filter_map(Value::as_str).map(|word| format!("`{word}`"));
        return words.collect::<Vec<_>>().join(", ");
    }
    match schema["type"].as_str() {
        Some("boolean") => "switch".into(),
        Some("integer") => format!("whole number{}", range(schema)),
        Some("number") => format!("number{}", range(schema)),
        Some("array") => format!("list: {}", kind(&schema["items"])),
        _ => match schema["format"].as_str().and_then(format::find) {
            Some(format) => {
                let least = if schema["x-positive"] == true { ", not 0s" } else { "" };
                let most = schema["x-at-most"].as_str().map(|most| format!(", at most {most}"));
                format!("{}{least}{}", format.short, most.unwrap_or_default())
            }
            None => "text".into(),
        },
    }
}

fn range(schema: &Value) -> String {
    match (schema["minimum"].as_f64(), schema["maximum"].as_f64()) {
        (Some(least), Some(most)) => format!(", {least} to {most}"),
        (Some(least), None) if least > 0.0 => format!(", at least {least}"),
        _ => String::new(),
    }
}

fn default(leaf: &Leaf) -> String {
    match leaf.schema.get("default") {
        Some(Value::String(text)) if text.is_empty() => "empty".into(),
        Some(Value::String(text)) => format!("`{text}`"),
        Some(Value::Array(list)) if list.is_empty() => "empty".into(),
        Some(value) => format!("`{value}`"),
        None if leaf.path == "task.timeouts.<name>" => "`task.job_timeout`".into(),
        None => "required".into(),
    }
}

fn variables(path: &str) -> String {
    let own = env::TABLE.iter().filter(|known| known.path == path).map(|known| known.name.to_owned());
    let names: Vec<String> = own.chain(env::general_name(path)).map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "file only".into() } else { names.join(", ") }
}

fn description(schema: &Value) -> &str {
    schema["description"].as_str().unwrap_or_default()
}
