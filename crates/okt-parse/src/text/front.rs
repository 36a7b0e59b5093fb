//! What stands before a Markdown text: `key: value` between lines of `---`, or `key = value` between lines of `+++`.
//!
//! Only single values and short lists are understood. Front matter is written by hand, and a strict reader would refuse
//! half of it; nothing here depends on more than these few fields.

use crate::{Read, clean, language};

/// Longer is no front matter.
const LONGEST: usize = 64 * 1024;

/// The front matter and the rest.
pub fn split(source: &str) -> (&str, &str) {
    let source = source.trim_start_matches('\u{feff}').trim_start_matches('\n');
    for fence in ["---", "+++"] {
        let Some(rest) = source
            .strip_prefix(fence)
            .and_then(|rest| rest.trim_start_matches([' ', '\t']).strip_prefix('\n'))
        else {
            continue;
        };
        let mut at = 0;
        for line in rest.split_inclusive('\n') {
            let closing = line.trim_end();
            if closing == fence || (fence == "---" && closing == "...") {
                return (&rest[..at], &rest[at + line.len()..]);
            }
            at += line.len();
            if at > LONGEST {
                break;
            }
        }
    }
    ("", source)
}

pub fn apply(front: &str, read: &mut Read) {
    let mut lines = front.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with([' ', '\t', '#', '-', '[']) {
            continue;
        }
        let Some(at) = line.find([':', '=']) else { continue };
        let key = line[..at].trim().trim_matches('"').to_ascii_lowercase();
        let mut values = list(line[at + 1..].trim());
        while values.is_empty() || lines.peek().is_some_and(|next| next.trim_start().starts_with("- ")) {
            let Some(next) = lines.peek() else { break };
            let Some(item) = next.trim_start().strip_prefix("- ") else { break };
            // A list of people may give each of them several fields.
            let item = item.strip_prefix("name:").unwrap_or(item);
            values.extend(value(item));
            lines.next();
        }
        if !values.is_empty() {
            set(&key, &values, read);
        }
    }
}

fn set(key: &str, values: &[String], read: &mut Read) {
    let first = &values[0];
    match key {
        "title" => read.title = clean::line(first, 500),
        "author" | "authors" | "by" => read.author = clean::line(&values.join(", "), 500),
        "date" | "published" | "publishdate" | "pubdate" => read.published_at = clean::date(first),
        "lang" | "language" => read.language = language::code(first),
        "license" | "licence" => read.license = clean::line(first, 300),
        "doi" => read.doi = clean::doi(first),
        "site" | "site_name" => read.site_name = clean::line(first, 200),
        _ => {}
    }
}

fn list(text: &str) -> Vec<String> {
    match text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        Some(items) => items.split(',').filter_map(value).collect(),
        None => value(text).into_iter().collect(),
    }
}

/// A value without its quotes and without a comment behind it.
fn value(text: &str) -> Option<String> {
    let text = text.trim();
    for quote in ['"', '\''] {
        if let Some(rest) = text.strip_prefix(quote)
            && let Some(end) = rest.rfind(quote)
        {
            return Some(rest[..end].replace("\\\"", "\"").replace("''", "'"))
                .filter(|text| !text.is_empty());
        }
    }
    let text = text.split(" #").next().unwrap_or_default().trim();
    (!text.is_empty() && !matches!(text, "|" | ">" | ">-" | "null" | "~")).then(|| text.to_owned())
}
