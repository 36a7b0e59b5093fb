//! What is left of a text when facts that it cites, or images that it shows, are gone.

use okt_model::{FactId, ImageId};

use super::claims::claims;

/// A Markdown text without the sentences that cite a fact which is not there any more.
pub fn only_citing(markdown: &str, is_there: impl Fn(FactId) -> bool) -> String {
    let (mut out, mut end) = (String::with_capacity(markdown.len()), 0);
    for claim in claims(markdown) {
        if claim.facts.iter().all(|fact| is_there(*fact)) || claim.range.start < end {
            continue;
        }
        out.push_str(&markdown[end..claim.range.start]);
        end = claim.range.end;
    }
    if end == 0 {
        return markdown.to_owned();
    }
    out.push_str(&markdown[end..]);
    // Nothing but citations may be left of a sentence, and nothing of a paragraph.
    let paragraphs = out.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty());
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

/// A Markdown text without the images that are not there any more. Each is a paragraph of its own.
pub fn only_showing(markdown: &str, is_there: impl Fn(ImageId) -> bool) -> String {
    let gone = |paragraph: &&str| image(paragraph).is_some_and(|image| !is_there(image));
    markdown.split("\n\n").filter(|paragraph| !gone(paragraph)).collect::<Vec<_>>().join("\n\n")
}

fn image(paragraph: &str) -> Option<ImageId> {
    let (_, id) = paragraph.strip_prefix("![")?.rsplit_once("](<image:")?;
    id.strip_suffix(">)")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::{citations, cite};
    use super::*;

    #[test]
    fn a_sentence_goes_with_a_fact_that_it_cites() {
        let (a, b, c) = (FactId::mint(), FactId::mint(), FactId::mint());
        let text = format!(
            "{} {}\n\n{}",
            cite("Gulls nest on Skomer.", &[a]),
            cite("Gulls left Skokholm in 1950.", &[b, c]),
            cite("Puffins stayed there.", &[c]),
        );
        assert_eq!(only_citing(&text, |_| true), text);
        let left = only_citing(&text, |fact| fact != b);
        assert!(left.contains("Skomer") && left.contains("Puffins") && !left.contains("Skokholm"), "{left}");
        let left = only_citing(&text, |fact| fact == a);
        let cited: Vec<FactId> = citations(&left).into_iter().map(|citation| citation.fact).collect();
        assert_eq!(cited, [a], "{left}");
        assert_eq!(only_citing(&text, |_| false), "");
    }

    #[test]
    fn an_image_goes_with_its_words() {
        let (kept, gone) = (ImageId::mint(), ImageId::mint());
        let text = cite("Gulls nest on Skomer.", &[FactId::mint()]);
        let shown =
            format!("{text}\n\n![A gull \\[1\\]](<image:{kept}>)\n\n![A nest](<image:{gone}>)\n\n{text}");
        assert_eq!(only_showing(&shown, |_| true), shown);
        let left = format!("{text}\n\n![A gull \\[1\\]](<image:{kept}>)\n\n{text}");
        assert_eq!(only_showing(&shown, |image| image == kept), left);
        assert_eq!(only_showing(&shown, |_| false), format!("{text}\n\n{text}"));
    }
}
