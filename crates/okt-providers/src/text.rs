//! Texts of strangers, made plain.

/// What a person would see of a piece of HTML, in one line, up to `limit` characters: no tags, no scripts, no control
/// characters, and the usual entities read. Good enough to look at; nothing is parsed with it.
pub(crate) fn plain(html: &str, limit: usize) -> String {
    let mut seen = String::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        let (before, tag) = rest.split_at(at);
        seen.push_str(before);
        rest = if tag[1..].starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?')) {
            seen.push(' ');
            after_tag(tag)
        } else {
            // Less than, and no tag.
            seen.push('<');
            &tag[1..]
        };
    }
    seen.push_str(rest);
    one_line(&entities(&seen), limit)
}

/// Text that is no HTML, in one line, up to `limit` characters.
pub(crate) fn one_line(text: &str, limit: usize) -> String {
    let mut line = String::new();
    let mut length = 0;
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        // Marks that turn the direction of what follows, and other characters that nobody sees.
        let word = word.chars().filter(|c| !is_hidden(*c));
        let gap = (!line.is_empty()).then_some(' ');
        for c in gap.into_iter().chain(word) {
            if length == limit {
                return line.trim_end().to_owned();
            }
            line.push(c);
            length += 1;
        }
    }
    line
}

const fn is_hidden(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// What comes after a tag, and after the end of a script or style that it begins.
fn after_tag(tag: &str) -> &str {
    if let Some(comment) = tag.strip_prefix("<!--") {
        return comment.split_once("-->").map_or("", |(_, rest)| rest);
    }
    let rest = tag.split_once('>').map_or("", |(_, rest)| rest);
    for name in ["script", "style"] {
        let begins = tag.get(1..=name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name));
        if begins && tag[1 + name.len()..].starts_with(|c: char| c == '>' || c.is_whitespace()) {
            let end = find_ignoring_case(rest, &format!("</{name}"));
            return end.and_then(|end| rest[end..].split_once('>')).map_or("", |(_, rest)| rest);
        }
    }
    rest
}

pub(crate) fn find_ignoring_case(text: &str, what: &str) -> Option<usize> {
    text.as_bytes().windows(what.len()).position(|window| window.eq_ignore_ascii_case(what.as_bytes()))
}

fn entities(text: &str) -> String {
    let mut read = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        read.push_str(&rest[..at]);
        let named = rest[at + 1..].split_once(';').filter(|(name, _)| name.len() <= 8);
        if let Some((character, after)) = named.and_then(|(name, after)| Some((entity(name)?, after))) {
            read.push(character);
            rest = after;
        } else {
            read.push('&');
            rest = &rest[at + 1..];
        }
    }
    read.push_str(rest);
    read
}

fn entity(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        "nbsp" => Some(' '),
        "ndash" => Some('–'),
        "mdash" => Some('—'),
        "hellip" => Some('…'),
        "lsquo" => Some('‘'),
        "rsquo" => Some('’'),
        "ldquo" => Some('“'),
        "rdquo" => Some('”'),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_scripts_and_control_characters_go_and_words_stay() {
        for (html, seen) in [
            ("a <b>bold</b> word", "a bold word"),
            ("<title>Just&nbsp;a moment&hellip;</title>", "Just a moment…"),
            ("x<script>alert('<p>')</script>y<STYLE a>p{}</STYLE >z", "x y z"),
            ("<!-- <b>no</b> -->yes<br/>no&#116;e &#x41;&amp;B", "yes note A&B"),
            ("1 < 2 & 3 > 2 &unknown; &", "1 < 2 & 3 > 2 &unknown; &"),
            ("\u{0}\u{1b}[31mred\u{202e}der\r\n  tabs\t.", "[31mredder tabs ."),
            ("&lt;script&gt;", "<script>"),
            ("cut <off", "cut"),
            ("<script>never ends", ""),
            ("", ""),
        ] {
            assert_eq!(plain(html, 100), seen, "{html}");
        }
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(plain("äöü äöü", 4), "äöü");
        assert_eq!(plain("äöü äöü", 5), "äöü ä");
        assert_eq!(one_line(&"x".repeat(1_000), 10).len(), 10);
    }
}
