//! What is complete of an answer that is truncated.

use std::collections::HashMap;

use serde_json::{Deserializer, Value};

/// An entry that stands so often in an answer shows that the model repeats itself without end.
const LOOP: usize = 3;
/// Braces in prose before the object that are tried.
const MOST_TRIES: usize = 16;

/// The complete entries of the list of a truncated answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// An answer with these entries, each once, which says of itself that it was truncated: whoever reads it again, knows.
    pub answer: String,
    /// The model repeats itself: asked again, it would do the same.
    pub loops: bool,
}

impl Closed {
    /// `None` if no entry is complete.
    pub fn of(truncated: &str) -> Option<Self> {
        let mut braces = truncated.match_indices('{').take(MOST_TRIES);
        let (key, entries) = braces.find_map(|(at, _)| list(&truncated[at..]))?;
        let mut times: HashMap<String, usize> = HashMap::new();
        let mut complete = Vec::new();
        for (entry, value) in Entries(entries) {
            let text =
                value.get("text").and_then(Value::as_str).map_or_else(|| value.to_string(), str::to_owned);
            let times = times.entry(text).or_default();
            *times += 1;
            if *times == 1 {
                complete.push(entry);
            }
        }
        let answer = format!(r#"{{"{key}":[{}],"truncated":true}}"#, complete.join(","));
        let loops = times.into_values().any(|times| times >= LOOP);
        (!complete.is_empty()).then_some(Self { answer, loops })
    }
}

/// The name of the list with which an object begins, and what follows its bracket.
fn list(object: &str) -> Option<(&str, &str)> {
    let (key, rest) = object.strip_prefix('{')?.trim_start().strip_prefix('"')?.split_once('"')?;
    let rest = rest.trim_start().strip_prefix(':')?.trim_start().strip_prefix('[')?;
    Some((key, rest)).filter(|_| !key.contains('\\'))
}

/// The entries of a list up to the first that is not complete, as they are written and as they are read.
struct Entries<'a>(&'a str);

impl<'a> Iterator for Entries<'a> {
    type Item = (&'a str, Value);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.0.trim_start();
        // Numbers may go on behind the end.
        if !rest.starts_with('{') {
            return None;
        }
        let mut values = Deserializer::from_str(rest).into_iter();
        let value = values.next()?.ok()?;
        let (entry, behind) = rest.split_at(values.byte_offset());
        let behind = behind.trim_start();
        self.0 = behind.strip_prefix(',').unwrap_or_default();
        Some((entry, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_complete_of_a_truncated_answer_is_kept_once() {
        let (a, b) =
            (r#"{"text":"A, {b} \"c\"]","sentences":[1, 2]}"#, r#"{ "text": "B", "sentences": [3] }"#);
        let a_again = r#"{"text":"A, {b} \"c\"]","sentences":[7]}"#;
        let all = |entries: &str| format!(r#"{{"facts":[{entries}],"truncated":true}}"#);
        for (truncated, entries, loops) in [
            (format!(r#"{{"facts":[{a},{b},{{"text":"C, wh"#), format!("{a},{b}"), false),
            (format!(r#"{{"facts":[{a},{b},{{"text":"C","sentences":[1"#), format!("{a},{b}"), false),
            (format!("Facts {{so far}}:\n{{ \"facts\" :\n[ {a} ,\n{b}"), format!("{a},{b}"), false),
            (format!(r#"{{"facts":[{a}],"#), a.to_owned(), false),
            (format!(r#"{{"facts":[{a}]}}  {{"facts":[{b}"#), a.to_owned(), false),
            (format!(r#"{{"facts":[{a},{a_again},{b},{{"tex"#), format!("{a},{b}"), false),
            (format!(r#"{{"facts":[{a},{b},{a_again},{b},{a},{{"tex"#), format!("{a},{b}"), true),
        ] {
            let closed = Closed::of(&truncated).unwrap();
            assert_eq!(closed, Closed { answer: all(&entries), loops }, "{truncated}");
        }
    }

    #[test]
    fn nothing_is_made_of_an_answer_without_a_complete_entry() {
        for truncated in [
            "",
            "Sure! Here are",
            r#"{"facts":["#,
            r#"{"facts":[{"text":"A","sentences":[1]"#,
            r#"{"facts":[12, 1"#,
            r#"{"facts":"A"#,
            r#"{"fa"#,
        ] {
            assert_eq!(Closed::of(truncated), None, "{truncated}");
        }
    }
}
