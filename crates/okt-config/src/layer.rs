//! One layer of configuration: its values, and the place of each.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path as FilePath;

use serde_json::{Map, Number, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::Problem;
use crate::origin::{Origin, Sources};
use crate::tree::{self, Path};

#[derive(Debug)]
pub(crate) struct Layer {
    pub tree: Value,
    /// Tables, too, so that a missing member can be blamed on the table.
    pub places: BTreeMap<Path, Origin>,
}

impl Layer {
    pub fn empty() -> Self {
        Self { tree: Value::Object(Map::new()), places: BTreeMap::new() }
    }

    /// Sets one value.
    pub fn set(&mut self, path: Path, value: Value, origin: Origin) {
        tree::set(&mut self.tree, &path, Some(value));
        self.places.insert(path, origin);
    }

    /// Puts this layer over what is below.
    pub fn apply(self, below: &mut Value, sources: &mut Sources) {
        for (path, origin) in self.places {
            let is_table = tree::find(&self.tree, &path).is_some_and(Value::is_object);
            sources.note(&path, origin, is_table);
        }
        tree::merge(below, self.tree);
    }
}

/// Reads a TOML file's text. Syntax errors are told by line and column only: the line itself may hold a secret.
pub(crate) fn parse(text: &str, file: &FilePath) -> Result<Layer, Vec<Problem>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        return Err(errors.iter().map(|error| syntax_problem(error, text, file)).collect());
    }
    let mut reader = Reader { text, file, places: BTreeMap::new() };
    let tree = reader.table(table.get_ref(), &Path::default());
    Ok(Layer { tree, places: reader.places })
}

struct Reader<'t> {
    text: &'t str,
    file: &'t FilePath,
    places: BTreeMap<Path, Origin>,
}

impl Reader<'_> {
    fn table(&mut self, table: &DeTable<'_>, path: &Path) -> Value {
        let mut map = Map::new();
        for (key, value) in table {
            let below = path.key(key.get_ref());
            self.mark(&below, &key.span());
            map.insert(key.get_ref().to_string(), self.value(value, &below));
        }
        Value::Object(map)
    }

    fn value(&mut self, value: &Spanned<DeValue<'_>>, path: &Path) -> Value {
        match value.get_ref() {
            DeValue::String(text) => Value::String(text.to_string()),
            DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix())
                .map_or_else(|_| Value::String(integer.to_string()), Value::from),
            // What JSON has no number for (inf, nan) stays a text, and is refused where a number belongs.
            DeValue::Float(float) => float
                .as_str()
                .parse()
                .ok()
                .and_then(Number::from_f64)
                .map_or_else(|| Value::String(float.to_string()), Value::Number),
            DeValue::Boolean(flag) => Value::Bool(*flag),
            DeValue::Datetime(time) => Value::String(time.to_string()),
            DeValue::Table(table) => self.table(table, path),
            DeValue::Array(list) => {
                let mut items = Vec::new();
                for (index, item) in list.iter().enumerate() {
                    let below = path.index(index);
                    self.mark(&below, &item.span());
                    items.push(self.value(item, &below));
                }
                Value::Array(items)
            }
        }
    }

    fn mark(&mut self, path: &Path, span: &Range<usize>) {
        let (line, _) = position(self.text, span.start);
        self.places.insert(path.clone(), Origin::File { path: self.file.to_owned(), line: Some(line) });
    }
}

fn syntax_problem(error: &toml::de::Error, text: &str, file: &FilePath) -> Problem {
    let message = error.message().replace('\n', ", ");
    let message = match error.span() {
        Some(span) => {
            let (line, column) = position(text, span.start);
            format!("line {line}, column {column}: {message}")
        }
        None => message,
    };
    Problem { key: file.display().to_string(), message, origin: None }
}

/// Line and column of a byte, both from 1.
fn position(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte.min(text.len())).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}
