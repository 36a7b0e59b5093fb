//! Nested values, and names for the places in them.
//!
//! Layers are kept as JSON values: the schema speaks of those, and text, numbers, lists and tables are all that
//! configuration needs. The `config` crate is not used, because it stops at the first problem, says neither the
//! line nor the variable for a wrong type, and repeats the wrong value, which may be a secret.

use std::fmt;

use serde_json::{Map, Value};

/// Where a value stands: `providers.registries[0].url`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Path(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Key(String),
    Index(usize),
}

impl Path {
    pub fn of<'a>(keys: impl IntoIterator<Item = &'a str>) -> Self {
        Self(keys.into_iter().map(|key| Step::Key(key.to_owned())).collect())
    }

    /// Reads a path of plain keys, as they stand in tables of this crate.
    pub fn dotted(keys: &str) -> Self {
        Self::of(keys.split('.'))
    }

    pub fn key(&self, key: &str) -> Self {
        self.with(Step::Key(key.to_owned()))
    }

    pub fn index(&self, index: usize) -> Self {
        self.with(Step::Index(index))
    }

    fn with(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }

    pub fn parent(&self) -> Option<Self> {
        let (_, above) = self.0.split_last()?;
        Some(Self(above.to_vec()))
    }

    /// Whether this is the other place, or a place inside of it.
    pub fn is_within(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// The list that this place is inside of, else this place itself: lists are replaced as a whole.
    pub fn outermost_list(&self) -> Self {
        let plain = self.0.iter().take_while(|step| matches!(step, Step::Key(_)));
        Self(plain.cloned().collect())
    }

    pub fn is_in_list(&self) -> bool {
        self.0.iter().any(|step| matches!(step, Step::Index(_)))
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.0.iter().enumerate() {
            match step {
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Key(key) => {
                    if position > 0 {
                        f.write_str(".")?;
                    }
                    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '<' | '>');
                    if !key.is_empty() && key.chars().all(plain) {
                        f.write_str(key)?;
                    } else {
                        write!(f, "{key:?}")?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Puts `upper` over `lower`: tables are merged, everything else is replaced.
pub(crate) fn merge(lower: &mut Value, upper: Value) {
    match (lower, upper) {
        (Value::Object(lower), Value::Object(upper)) => {
            for (key, value) in upper {
                merge(lower.entry(key).or_insert(Value::Null), value);
            }
        }
        (lower, upper) => *lower = upper,
    }
}

/// Every value with its place: scalars, lists of scalars, and empty tables. Lists of tables are opened.
pub(crate) fn leaves(root: &Value) -> Vec<(Path, &Value)> {
    let mut found = Vec::new();
    collect(root, &Path::default(), &mut found);
    found
}

fn collect<'v>(value: &'v Value, path: &Path, found: &mut Vec<(Path, &'v Value)>) {
    match value {
        Value::Object(table) if !table.is_empty() => {
            for (key, inner) in table {
                collect(inner, &path.key(key), found);
            }
        }
        Value::Array(list) if list.iter().any(Value::is_object) => {
            for (index, inner) in list.iter().enumerate() {
                collect(inner, &path.index(index), found);
            }
        }
        leaf => found.push((path.clone(), leaf)),
    }
}

pub(crate) fn find<'v>(root: &'v Value, path: &Path) -> Option<&'v Value> {
    path.0.iter().try_fold(root, |value, step| match step {
        Step::Key(key) => value.get(key),
        Step::Index(index) => value.get(index),
    })
}

/// Sets a value, or removes it when there is none. Places inside of lists are left alone.
pub(crate) fn set(root: &mut Value, path: &Path, value: Option<Value>) {
    let Some((Step::Key(last), above)) = path.0.split_last() else {
        return;
    };
    let mut table = root;
    for step in above {
        let (Value::Object(map), Step::Key(key)) = (table, step) else {
            return;
        };
        table = map.entry(key.clone()).or_insert_with(|| Value::Object(Map::new()));
    }
    if let Value::Object(map) = table {
        match value {
            Some(value) => map.insert(last.clone(), value),
            None => map.remove(last),
        };
    }
}
