//! JSON-LD: sources and facts in the words of PROV-O, concepts in those of SKOS, sentences in those of the Web Annotation
//! vocabulary. A node on each line; what is said of one thing may be in several nodes.

use std::fmt::Write;

use chrono::{DateTime, SecondsFormat, Utc};
use okt_app::{ExportPage, GraphExport};
use okt_model::{
    Context, ExportedConcept, ExportedFact, ExportedLink, ExportedRelation, MarkKind, RepositoryId, Source,
};
use pulldown_cmark::{Event, Parser, Tag, TagEnd};
use serde_json::{Value, json};

/// The names of our own words. No address: nothing is to be fetched to understand them.
const OWN: &str = "urn:okt:vocabulary:";

pub(super) const END: &str = "\n]}\n";

pub(super) fn begin(export: &GraphExport) -> String {
    let id = json!({"@type": "@id"});
    let time = json!({"@type": "xsd:dateTime"});
    let context = json!({
        "dct": "http://purl.org/dc/terms/",
        "bibo": "http://purl.org/ontology/bibo/",
        "oa": "http://www.w3.org/ns/oa#",
        "okt": OWN,
        "prov": "http://www.w3.org/ns/prov#",
        "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
        "skos": "http://www.w3.org/2004/02/skos/core#",
        "xsd": "http://www.w3.org/2001/XMLSchema#",
        "dct:created": time,
        "dct:issued": {"@type": "xsd:date"},
        "dct:subject": id,
        "oa:end": {"@type": "xsd:nonNegativeInteger"},
        "oa:start": {"@type": "xsd:nonNegativeInteger"},
        "okt:address": {"@type": "xsd:anyURI"},
        "okt:supersededBy": id,
        "prov:agent": id,
        "prov:atTime": time,
        "prov:entity": id,
        "prov:generatedAtTime": time,
        "prov:hadPlan": id,
        "prov:hadPrimarySource": id,
        "prov:wasAssociatedWith": id,
        "prov:wasDerivedFrom": id,
        "prov:wasRevisionOf": id,
        "skos:inScheme": id,
        "skos:related": id,
    });
    let itself = json!({
        "@id": format!("{}#export", urn(export.repository)),
        "@type": "prov:Entity",
        "dct:title": export.name,
        "prov:generatedAtTime": time_of(export.as_of),
    });
    let mut out = format!("{{\"@context\": {context},\n\"@graph\": [\n{itself}");
    for one in &export.contexts {
        add(&mut out, &scheme(export.repository, one));
    }
    out
}

pub(super) fn page(export: &GraphExport, page: &ExportPage) -> String {
    let mut out = String::new();
    match page {
        ExportPage::Sources(sources) => {
            for node in sources.iter().flat_map(source) {
                add(&mut out, &node);
            }
        }
        ExportPage::Concepts(concepts) => {
            for one in concepts {
                add(&mut out, &concept(export.repository, one));
            }
        }
        ExportPage::Facts(facts) => {
            for one in facts.iter() {
                add(&mut out, &fact(one));
            }
        }
        ExportPage::Links(_, links) => {
            for one in links {
                add(&mut out, &link(one));
            }
        }
        ExportPage::Relations(relations) => {
            // What shares a fact by chance is not said to belong together, as nowhere else.
            for one in relations.iter().filter(|one| one.shared_fact_count >= export.related_from) {
                add(&mut out, &relation(one));
            }
        }
    }
    out
}

/// A node comes after another one always: the export itself is the first.
fn add(out: &mut String, node: &Value) {
    out.push_str(",\n");
    out.push_str(&node.to_string());
}

fn scheme(repository: RepositoryId, context: &Context) -> Value {
    let mut node = json!({
        "@id": scheme_id(repository, &context.label),
        "@type": "skos:ConceptScheme",
        "dct:title": context.label,
    });
    if !context.description.is_empty() {
        node["dct:description"] = json!(context.description);
    }
    let class = context.ontology_class.as_deref().and_then(|class| class.strip_prefix("dbo:"));
    if let Some(class) = class {
        node["rdfs:seeAlso"] = json!({"@id": format!("http://dbpedia.org/ontology/{}", escaped(class))});
    }
    node
}

fn scheme_id(repository: RepositoryId, label: &str) -> String {
    format!("{}#context:{}", urn(repository), escaped(label))
}

/// A source, and what it supersedes is said of the other one.
fn source(source: &Source) -> Vec<Value> {
    let id = urn(source.id);
    let mut node = json!({
        "@id": id,
        "@type": ["prov:Entity", "okt:Source"],
        "okt:address": source.url,
        "okt:status": source.status.as_str(),
        "dct:created": time_of(source.created_at),
    });
    let said = [
        ("dct:title", &source.title),
        ("dct:creator", &source.author),
        ("dct:publisher", &source.site_name),
        ("dct:language", &source.language),
        ("dct:format", &source.content_type),
        ("dct:license", &source.license),
        ("bibo:doi", &source.doi),
    ];
    for (word, value) in said {
        if let Some(value) = value {
            node[word] = json!(value);
        }
    }
    if let Some(published) = source.published_at {
        node["dct:issued"] = json!(published.to_string());
    }
    let mut nodes = Vec::new();
    if let Some(mark) = &source.mark {
        node["okt:mark"] = json!(mark.kind.as_str());
        match mark.kind {
            MarkKind::Retracted => {
                let mut event = json!({
                    "@type": "prov:Invalidation",
                    "rdfs:label": "retracted",
                    "prov:atTime": time_of(mark.marked_at),
                });
                if let Some(reason) = &mark.reason {
                    event["rdfs:comment"] = json!(reason);
                }
                node["prov:qualifiedInvalidation"] = event;
            }
            MarkKind::Superseded => {
                if let Some(by) = mark.by {
                    node["okt:supersededBy"] = json!(urn(by));
                    nodes.push(json!({"@id": urn(by), "prov:wasRevisionOf": id}));
                }
            }
        }
    }
    nodes.insert(0, node);
    nodes
}

fn concept(repository: RepositoryId, exported: &ExportedConcept) -> Value {
    let concept = &exported.concept;
    let mut node = json!({
        "@id": urn(concept.id),
        "@type": "skos:Concept",
        "skos:prefLabel": concept.canonical_name,
        "skos:inScheme": scheme_id(repository, &concept.context),
        "okt:factCount": concept.fact_count,
    });
    if !exported.aliases.is_empty() {
        node["skos:altLabel"] = json!(exported.aliases);
    }
    if let Some(description) = &concept.description {
        node["skos:scopeNote"] = json!(description);
    }
    if let Some(definition) = exported.definition.as_deref().map(words).filter(|text| !text.is_empty()) {
        node["skos:definition"] = json!(definition);
    }
    node
}

fn fact(exported: &ExportedFact) -> Value {
    let fact = &exported.fact;
    let agent = format!("urn:okt:model:{}", escaped(&fact.model));
    let mut association = json!({
        "@type": "prov:Association",
        "prov:agent": {"@id": agent, "@type": "prov:SoftwareAgent", "rdfs:label": fact.model},
    });
    if let Some(hash) = &fact.promptset_hash {
        let plan = json!({"@id": format!("urn:okt:promptset:{hash}"), "@type": "prov:Plan"});
        association["prov:hadPlan"] = plan;
    }
    let mut node = json!({
        "@id": urn(fact.id),
        "@type": ["prov:Entity", "okt:Fact"],
        "prov:value": fact.text,
        "okt:kind": fact.kind.as_str(),
        "prov:generatedAtTime": time_of(fact.created_at),
        "prov:wasGeneratedBy": {
            "@type": ["prov:Activity", "okt:Extraction"],
            "prov:wasAssociatedWith": agent,
            "prov:qualifiedAssociation": association,
        },
    });
    if !exported.concepts.is_empty() {
        let subjects: Vec<String> = exported.concepts.iter().map(|(id, _)| urn(*id)).collect();
        node["dct:subject"] = json!(subjects);
    }
    if fact.marked.is_retracted() {
        node["okt:retracted"] = json!(true);
    }
    node
}

fn link(link: &ExportedLink) -> Value {
    let source = urn(link.source);
    let mut primary = json!({"@type": "prov:PrimarySource", "prov:entity": source});
    if !link.sentences.is_empty() {
        let sentences = link.sentences.iter().map(|sentence| {
            json!({
                "@type": ["oa:TextPositionSelector", "oa:TextQuoteSelector"],
                "oa:start": sentence.start.to_string(),
                "oa:end": sentence.end.to_string(),
                "oa:exact": sentence.text,
            })
        });
        primary["oa:hasSelector"] = sentences.collect();
    }
    json!({
        "@id": urn(link.fact),
        "prov:wasDerivedFrom": source,
        "prov:hadPrimarySource": source,
        "prov:qualifiedPrimarySource": primary,
    })
}

fn relation(relation: &ExportedRelation) -> Value {
    json!({"@id": urn(relation.one), "skos:related": urn(relation.other)})
}

fn urn(id: impl std::fmt::Display) -> String {
    format!("urn:uuid:{id}")
}

fn time_of(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Micros, true)
}

/// A text as a part of a name.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// The words of a definition, without the marks of Markdown and the numbers of its citations.
fn words(markdown: &str) -> String {
    let (mut out, mut linked) = (String::new(), None::<String>);
    for event in Parser::new(markdown) {
        let to = linked.as_mut().unwrap_or(&mut out);
        match event {
            Event::Text(text) | Event::Code(text) => to.push_str(&text),
            Event::SoftBreak | Event::HardBreak => to.push(' '),
            Event::Start(Tag::Link { .. }) => linked = Some(String::new()),
            Event::End(TagEnd::Link) => {
                let text = linked.take().unwrap_or_default();
                if !text.chars().all(|c| "⁰¹²³⁴⁵⁶⁷⁸⁹".contains(c)) {
                    out.push_str(&text);
                }
            }
            Event::End(TagEnd::Paragraph | TagEnd::Heading(_) | TagEnd::Item) => to.push('\n'),
            _ => {}
        }
    }
    out.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_its_words() {
        let markdown = "**Bees** [dance.](<fact:0197a3c0-0000-7000-8000-00000000000a>)\
                        [²](<fact:0197a3c0-0000-7000-8000-00000000000b>)\n\nThey \\*fly\\*.\n";
        assert_eq!(words(markdown), "Bees dance.\nThey *fly*.");
    }

    #[test]
    fn a_name_is_one_whatever_it_is_made_of() {
        assert_eq!(escaped("a b/<c>\"é"), "a%20b%2F%3Cc%3E%22%C3%A9");
    }
}
