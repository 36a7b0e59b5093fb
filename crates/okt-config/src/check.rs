//! Holds a tree of values against the schema and lists all that does not fit, so that a person can mend
//! everything in one go. Values of secrets, and of whatever may hold one, are not repeated.

use serde_json::Value;

use crate::format::{self, Format};
use crate::period::Period;
use crate::schema;
use crate::suggest;
use crate::tree::Path;

/// Something that does not fit.
#[derive(Debug)]
pub(crate) struct Finding {
    pub path: Path,
    pub message: String,
}

/// Everything in `tree` that the schema does not allow.
pub(crate) fn check(tree: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    check_value(schema::root(), tree, &Path::default(), &mut findings);
    findings
}

/// What the schema asks for, in words that follow "expected".
pub(crate) fn expected(schema: &Value) -> String {
    if let Some(branches) = schema["anyOf"].as_array() {
        return branches.iter().map(expected).collect::<Vec<_>>().join(" or ");
    }
    if let Some(allowed) = schema["enum"].as_array() {
        let words: Vec<String> =
            allowed.iter().filter_map(Value::as_str).map(|word| format!("`{word}`")).collect();
        return if words.len() == 1 { words.concat() } else { format!("one of {}", words.join(", ")) };
    }
    match schema["type"].as_str() {
        Some("boolean") => "true or false".into(),
        Some("integer") => format!("a whole number{}", range(schema)),
        Some("number") => format!("a number{}", range(schema)),
        Some("array") => format!("a list, each {}", expected(&schema["items"])),
        Some("object") => "a table".into(),
        _ => match format_of(schema) {
            Some(format) => format!("{}{}", format.expected, period_range(schema)),
            None => "text".into(),
        },
    }
}

fn check_value(schema: &Value, value: &Value, path: &Path, findings: &mut Vec<Finding>) {
    if let Some(branches) = schema["anyOf"].as_array() {
        check_branches(schema, branches, value, path, findings);
        return;
    }
    let fits = match (schema["type"].as_str(), value) {
        (Some("object"), Value::Object(_)) => return check_table(schema, value, path, findings),
        (Some("array"), Value::Array(list)) => {
            for (index, item) in list.iter().enumerate() {
                check_value(&schema["items"], item, &path.index(index), findings);
            }
            return;
        }
        (Some("boolean"), Value::Bool(_)) => true,
        (Some("integer"), Value::Number(number)) => {
            let (least, most) = whole_range(schema);
            let number = number.as_i64().map(i128::from).or(number.as_u64().map(i128::from));
            number.is_some_and(|number| (least..=most).contains(&number))
        }
        (Some("number"), Value::Number(number)) => number.as_f64().is_some_and(|number| {
            schema["minimum"].as_f64().is_none_or(|least| number >= least)
                && schema["maximum"].as_f64().is_none_or(|most| number <= most)
        }),
        (Some("string"), Value::String(text)) => text_fits(schema, text),
        _ => false,
    };
    if !fits {
        let message = format!("expected {}, got {}", expected(schema), got(schema, value));
        findings.push(Finding { path: path.clone(), message });
    }
}

/// One branch must fit. When the kind of value decides which one is meant, its own findings say more.
fn check_branches(
    schema: &Value,
    branches: &[Value],
    value: &Value,
    path: &Path,
    findings: &mut Vec<Finding>,
) {
    let mut meant = None;
    for branch in branches {
        let mut inner = Vec::new();
        check_value(branch, value, path, &mut inner);
        if inner.is_empty() {
            return;
        }
        if branch["type"] == "array" && value.is_array() {
            meant = Some(inner);
        }
    }
    findings.extend(meant.unwrap_or_else(|| {
        let message = format!("expected {}, got {}", expected(schema), got(schema, value));
        vec![Finding { path: path.clone(), message }]
    }));
}

fn check_table(schema: &Value, value: &Value, path: &Path, findings: &mut Vec<Finding>) {
    let Some(table) = value.as_object() else { return };
    for (key, inner) in table {
        let place = path.key(key);
        let names = &schema["propertyNames"];
        let is_listed = names["enum"].as_array().is_none_or(|names| names.iter().any(|name| name == key));
        let message = match schema::property(schema, key).filter(|_| is_listed) {
            None => {
                let suggestion = suggest::setting(&place.to_string(), key, schema::known_keys(schema));
                format!("unknown key{}", suggest::did_you_mean(suggestion.as_deref()))
            }
            Some(property) => {
                let Some(format) = format_of(names).filter(|format| !(format.fits)(key)) else {
                    check_value(property, inner, &place, findings);
                    continue;
                };
                format!("a name here has {}", format.expected)
            }
        };
        findings.push(Finding { path: place, message });
    }
    for key in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !table.contains_key(key) {
            findings.push(Finding { path: path.key(key), message: "is required".into() });
        }
    }
}

fn text_fits(schema: &Value, text: &str) -> bool {
    if let Some(allowed) = schema["enum"].as_array() {
        return allowed.iter().any(|allowed| allowed == text);
    }
    let length = text.chars().count() as u64;
    let least = schema["minLength"].as_u64().unwrap_or(0);
    if length < least || schema["maxLength"].as_u64().is_some_and(|most| length > most) {
        return false;
    }
    let Some(format) = format_of(schema) else {
        return true;
    };
    let may_be_empty = least == 0 && format.name != "period";
    if text.is_empty() && may_be_empty {
        return true;
    }
    (format.fits)(text) && text.parse().map_or(true, |period| period_fits(schema, period))
}

/// JSON schema has no bounds for periods, so these two are our own.
fn period_fits(schema: &Value, period: Period) -> bool {
    let is_too_short = schema["x-positive"] == true && period.is_zero();
    let most = schema["x-at-most"].as_str().and_then(|most| most.parse::<Period>().ok());
    !is_too_short && most.is_none_or(|most| period <= most)
}

fn period_range(schema: &Value) -> String {
    match (schema["x-positive"] == true, schema["x-at-most"].as_str()) {
        (true, Some(most)) => format!(", longer than 0s and at most {most}"),
        (true, None) => ", longer than 0s".into(),
        (false, Some(most)) => format!(", at most {most}"),
        (false, None) => String::new(),
    }
}

fn format_of(schema: &Value) -> Option<&'static Format> {
    schema["format"].as_str().and_then(format::find)
}

fn whole_range(schema: &Value) -> (i128, i128) {
    let most_of_type = match schema["format"].as_str() {
        Some("uint16") => u64::from(u16::MAX),
        Some("uint32") => u64::from(u32::MAX),
        // Numbers in TOML end here.
        _ => i64::MAX.unsigned_abs(),
    };
    let bound = |name: &str| schema[name].as_i64().map(i128::from);
    (bound("minimum").unwrap_or(0), bound("maximum").unwrap_or(i128::from(most_of_type)))
}

fn range(schema: &Value) -> String {
    match (schema["minimum"].as_f64(), schema["maximum"].as_f64()) {
        (Some(least), Some(most)) => format!(" from {least} to {most}"),
        (Some(least), None) if schema["type"] == "integer" => {
            let (_, most) = whole_range(schema);
            if most == i128::from(i64::MAX) {
                format!(" of at least {least}")
            } else {
                format!(" from {least} to {most}")
            }
        }
        (Some(least), None) => format!(" of at least {least}"),
        (None, Some(most)) => format!(" of at most {most}"),
        (None, None) => String::new(),
    }
}

/// The value that was found, as far as it may be repeated. A text where a table belongs is often a password or
/// an address with one, so only plain settings are repeated.
fn got(schema: &Value, value: &Value) -> String {
    let plain = if schema["type"] == "array" { &schema["items"] } else { schema };
    let may_repeat_text = plain["type"] != "object"
        && !schema::is_secret(plain)
        && format_of(plain).is_none_or(|format| format.may_be_repeated);
    match value {
        Value::String(text) if text.is_empty() => "an empty text".into(),
        Value::String(text) if may_repeat_text => {
            let short: String = text.chars().take(60).collect();
            format!("{short:?}{}", if short.len() < text.len() { "…" } else { "" })
        }
        Value::String(_) => "a text".into(),
        Value::Number(number) if !schema::is_secret(schema) => number.to_string(),
        Value::Number(_) => "a number".into(),
        Value::Bool(flag) => flag.to_string(),
        Value::Array(_) => "a list".into(),
        Value::Object(_) => "a table".into(),
        Value::Null => "nothing".into(),
    }
}
