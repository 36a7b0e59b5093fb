//! Texts of others as plain text inside of Markdown.

/// The same text for whoever reads the Markdown: nothing in it makes a link, an image, HTML, code or emphasis. It is on one
/// line, and stands behind a mark of ours.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(
            c,
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '&' | '~' | '|' | '$' | '#' | '^' | '!'
        ) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Whether a text has an address that some pages turn into a link by themselves.
pub fn has_address(text: &str) -> bool {
    let text = text.to_lowercase();
    let mail = |word: &str| {
        word.split_once('@').is_some_and(|(name, host)| {
            name.ends_with(char::is_alphanumeric) && host.starts_with(char::is_alphanumeric)
        })
    };
    text.contains("://")
        || text.contains("www.")
        || ["javascript:", "data:text", "mailto:"].iter().any(|scheme| text.contains(scheme))
        || text.split_whitespace().any(mail)
}

#[cfg(test)]
mod tests {
    use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

    use super::*;

    #[test]
    fn a_text_reads_the_same_and_is_nothing_but_text() {
        for text in [
            "plain",
            "[a](<fact:x>) ![b](c) [d][e] [^1]",
            "<script>alert(1)</script> <!-- x --> <https://example.org>",
            "a *b* __c__ ~~d~~ `e` ``f`` $g$ &amp; &#60; \\ \\[ | x | y |",
            "# no heading ##",
            "a ] b [ c ]( d",
            "![[x]]",
        ] {
            for around in [("[", "](<fact:0197a3c0-0000-7000-8000-00000000000a>)", 1), ("## ", "", 0)] {
                let (before, after, links) = around;
                let markdown = format!("{before}{}{after}", escaped(text));
                let (mut read, mut found) = (String::new(), 0);
                let every = Options::all().difference(Options::ENABLE_SMART_PUNCTUATION);
                for event in Parser::new_ext(&markdown, every) {
                    match event {
                        Event::Text(part) => read.push_str(&part),
                        Event::Start(Tag::Link { .. }) => found += 1,
                        Event::Start(Tag::Paragraph | Tag::Heading { .. })
                        | Event::End(TagEnd::Paragraph | TagEnd::Heading(_) | TagEnd::Link) => {}
                        other => panic!("{markdown}: {other:?}"),
                    }
                }
                assert_eq!((read.as_str(), found), (text, links), "{markdown}");
            }
        }
    }

    #[test]
    fn addresses_are_known() {
        for text in ["see https://x.org", "WWW.x.org", "a@b.org wrote", "mailto:x", "JavaScript:alert(1)"] {
            assert!(has_address(text), "{text}");
        }
        for text in ["12 @ 3 kg", "a fact: it rains", "rates: 3/4", "@ home", "In fact it rains."] {
            assert!(!has_address(text), "{text}");
        }
    }
}
