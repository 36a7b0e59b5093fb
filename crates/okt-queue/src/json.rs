//! JSON that PostgreSQL can keep.

use serde::Serialize;
use serde_json::Value;

/// As text, without NUL, for which `jsonb` has no place. Taken out of the strings and not of the text: there a backslash
/// before it may be a character of its own.
pub(crate) fn storable(value: &impl Serialize) -> serde_json::Result<String> {
    let text = serde_json::to_string(value)?;
    if !text.contains("\\u0000") {
        return Ok(text);
    }
    let mut value = serde_json::from_str(&text)?;
    strip(&mut value);
    serde_json::to_string(&value)
}

fn strip(value: &mut Value) {
    match value {
        Value::String(text) => text.retain(|character| character != '\0'),
        Value::Array(values) => values.iter_mut().for_each(strip),
        Value::Object(fields) => {
            *fields = std::mem::take(fields)
                .into_iter()
                .map(|(name, mut value)| {
                    strip(&mut value);
                    (name.replace('\0', ""), value)
                })
                .collect();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_character_goes_and_not_what_looks_like_it() {
        let value = json!({"a\0b": ["x\0", {"deep": "\0"}], "text": "\\u0000", "n": 1});
        let kept: Value = serde_json::from_str(&storable(&value).unwrap()).unwrap();
        assert_eq!(kept, json!({"ab": ["x", {"deep": ""}], "text": "\\u0000", "n": 1}));
    }
}
