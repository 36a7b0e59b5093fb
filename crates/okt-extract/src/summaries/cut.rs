//! What is left of a text when facts that it cites are gone.

use okt_model::FactId;

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

#[cfg(test)]
mod tests {
    use super::super::{citations, cite};
    use super::*;

    #[test]
    fn a_sentence_goes_with_a_fact_that_it_cites() {
        let (a, b, c) = (FactId::mint(), FactId::mint(), FactId::mint());
        let text = format!(
            "## Nests\n\n{} {}\n\n{}",
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
        assert_eq!(only_citing(&text, |_| false), "## Nests");
    }
}
