//! `GraphML`: concepts, facts and sources as nodes; what a fact is about, what it is from, and how many facts two concepts share as
//! edges.

use std::fmt::{Display, Write};

use okt_app::{ExportPage, GraphExport};

use super::is_control;

pub(super) const END: &str = "</graph>\n</graphml>\n";

/// What nodes and edges say: whose it is, its name, its type.
const KEYS: &[(&str, &str, &str)] = &[
    ("node", "type", "string"),
    ("node", "label", "string"),
    ("node", "context", "string"),
    ("node", "fact_count", "long"),
    ("node", "source_count", "long"),
    ("node", "retracted", "boolean"),
    ("node", "superseded", "boolean"),
    ("node", "url", "string"),
    ("node", "doi", "string"),
    ("node", "author", "string"),
    ("node", "published_at", "string"),
    ("edge", "relation", "string"),
    ("edge", "sentences", "string"),
    ("edge", "shared_fact_count", "long"),
];

pub(super) fn begin(export: &GraphExport) -> String {
    let mut out = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\"\n    \
         xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"\n    \
         xsi:schemaLocation=\"http://graphml.graphdrawing.org/xmlns http://graphml.graphdrawing.org/xmlns/1.1/graphml.xsd\">\n",
    );
    for (of, name, kind) in KEYS {
        let _ = writeln!(
            out,
            "<key id=\"{}\" for=\"{of}\" attr.name=\"{name}\" attr.type=\"{kind}\"/>",
            key(of, name)
        );
    }
    let _ = writeln!(out, "<graph id=\"{}\" edgedefault=\"directed\">", export.repository);
    out
}

pub(super) fn page(page: &ExportPage) -> String {
    let mut out = String::new();
    match page {
        ExportPage::Sources(sources) => {
            for source in sources {
                let mark = source.mark.as_ref().map(|mark| mark.kind);
                let mut node = Element::node(&mut out, source.id);
                node.say("type", "source");
                node.say("label", source.title.as_deref().unwrap_or(&source.url));
                node.say("url", &source.url);
                node.say_if_known("doi", source.doi.as_deref());
                node.say_if_known("author", source.author.as_deref());
                node.say_if_known(
                    "published_at",
                    source.published_at.map(|date| date.to_string()).as_deref(),
                );
                node.say("fact_count", source.fact_count);
                node.say("retracted", mark == Some(okt_model::MarkKind::Retracted));
                node.say("superseded", mark == Some(okt_model::MarkKind::Superseded));
                node.end();
            }
        }
        ExportPage::Concepts(concepts) => {
            for exported in concepts {
                let mut node = Element::node(&mut out, exported.concept.id);
                node.say("type", "concept");
                node.say("label", &exported.concept.canonical_name);
                node.say("context", &exported.concept.context);
                node.say("fact_count", exported.concept.fact_count);
                node.end();
            }
        }
        ExportPage::Facts(facts) => {
            for exported in facts.iter() {
                let fact = &exported.fact;
                let mut node = Element::node(&mut out, fact.id);
                node.say("type", "fact");
                node.say("label", &fact.text);
                node.say("source_count", fact.source_count);
                node.say("retracted", fact.marked.is_retracted());
                node.say("superseded", fact.marked.is_superseded());
                node.end();
                for (concept, _) in &exported.concepts {
                    let mut edge = Element::edge(&mut out, fact.id, concept);
                    edge.say("relation", "about");
                    edge.end();
                }
            }
        }
        ExportPage::Links(_, links) => {
            for link in links {
                let places = link.sentences.iter().map(|at| format!("{}-{}", at.start, at.end));
                let places = places.collect::<Vec<_>>().join(" ");
                let mut edge = Element::edge(&mut out, link.fact, link.source);
                edge.say("relation", "from");
                edge.say_if_known("sentences", Some(&*places).filter(|places| !places.is_empty()));
                edge.end();
            }
        }
        ExportPage::Relations(relations) => {
            for relation in relations {
                let mut edge = Element::edge(&mut out, relation.one, relation.other);
                edge.say("relation", "shares_facts");
                edge.say("shared_fact_count", relation.shared_fact_count);
                edge.end();
            }
        }
    }
    out
}

/// A node or an edge that is being written.
struct Element<'a> {
    out: &'a mut String,
    of: &'static str,
}

impl<'a> Element<'a> {
    fn node(out: &'a mut String, id: impl Display) -> Self {
        let _ = write!(out, "<node id=\"{id}\">");
        Self { out, of: "node" }
    }

    fn edge(out: &'a mut String, from: impl Display, to: impl Display) -> Self {
        let _ = write!(out, "<edge source=\"{from}\" target=\"{to}\">");
        Self { out, of: "edge" }
    }

    fn say(&mut self, name: &str, value: impl Display) {
        let _ = write!(self.out, "<data key=\"{}\">{}</data>", key(self.of, name), text(&value.to_string()));
    }

    fn say_if_known(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.say(name, value);
        }
    }

    fn end(self) {
        let _ = writeln!(self.out, "</{}>", self.of);
    }
}

fn key(of: &str, name: &str) -> String {
    format!("{of}_{name}")
}

/// A text between two tags. XML has no way to write control characters, so they are blanks.
fn text(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\n' | '\t' => out.push(c),
            c if is_control(c) => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exports::citation::tests::HOSTILE;

    #[test]
    fn no_text_ends_its_element() {
        for hostile in HOSTILE {
            let mut out = String::new();
            let mut node = Element::node(&mut out, 1);
            node.say("label", hostile);
            node.end();
            assert_eq!(out.matches('<').count(), 4, "{out}");
            assert_eq!(out.matches('>').count(), 4, "{out}");
        }
        assert_eq!(text("a\u{0}b\u{1b}c\r\nd\u{ffff}e\u{fdd0}"), "a b c \nd e ");
    }

    #[test]
    fn all_that_is_said_is_declared() {
        let mut out = String::new();
        for name in ["type", "label", "context", "fact_count", "source_count", "retracted", "superseded"] {
            Element::node(&mut out, 1).say(name, "x");
            assert!(KEYS.iter().any(|(of, key, _)| (*of, *key) == ("node", name)), "{name}");
        }
    }
}
