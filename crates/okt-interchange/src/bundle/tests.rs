use std::collections::BTreeMap;
use std::io::{Cursor, Write as _};

use flate2::Compression;
use flate2::write::GzEncoder;
use okt_model::content_hash;
use serde_json::{Value, json};

use super::hash::{Cited, rewrite_facts};
use super::*;

const ONE: &str = "0197a3c0-0000-7000-8000-000000000001";
const OTHER: &str = "0197a3c0-0000-7000-8000-000000000002";

/// A small bundle with a row of every kind, as somebody else might write it: counts, hashes and references are right.
fn document() -> Value {
    let fact = |idx: u32, text: &str, uuid: &str| {
        json!({"idx": idx, "text": text, "fact_kind": "text", "content_hash": content_hash(text).to_string(),
               "status": "stable", "source_image_idx": -1, "uuid": uuid})
    };
    json!({
        "schema_version": 2,
        "metadata": {"name": "Gulls", "source_count": 1, "fact_count": 2, "concept_count": 2, "summary_count": 1,
                     "synthesis_count": 1, "report_count": 2, "investigation_count": 1,
                     "exported_at": "2026-01-02T03:04:05Z"},
        "sources": [{"idx": 0, "url": "https://example.org/a", "status": "processed", "parsed_title": "On gulls",
                     "parsed_text": "Gulls nest. Terns too.", "has_stored_body": true,
                     "sentence_offsets": [[0, 11], [12, 22]], "sentence_boxes": [[1, 2.0, 3.5, 4.0, 5.0]]}],
        "images": {"a": {"content_type": "image/png", "data": "iVBORw=="}},
        "bodies": {"b": {"content_type": "text/html", "data": "PGI+"}},
        "source_images": [{"idx": 0, "source_idx": 0, "kind": "inline", "position": 0, "image_ref": "a"}],
        "source_bodies": [{"source_idx": 0, "body_ref": "b", "content_type": "text/html"}],
        "facts": [fact(0, "Gulls nest.", ONE), fact(1, "Terns nest.", OTHER)],
        "fact_sources": [{"fact_idx": 0, "source_idx": 0, "chunk_index": 0},
                         {"fact_idx": 1, "source_idx": 0, "chunk_index": 0}],
        "fact_references": [{"fact_idx": 0, "source_idx": 0, "sentence_index": 0}],
        "concepts": [{"idx": 0, "canonical_name": "Gull", "context": "Species"},
                     {"idx": 1, "canonical_name": "Tern", "context": "Species"}],
        "concept_aliases": [{"concept_idx": 0, "alias_text": "Seagull"}],
        "fact_concepts": [{"fact_idx": 0, "concept_idx": 0}, {"fact_idx": 1, "concept_idx": 1}],
        "concept_summaries": [{"idx": 0, "concept_idx": 0, "sequence_num": 1, "is_complete": false, "fact_count": 1,
                               "content": format!("[They nest.](<fact:{ONE}>)"), "covered_fact_idxs": [0], "model": "m"}],
        "concept_syntheses": [{"canonical_name": "Gull", "content": format!("A [bird](<fact:{OTHER}>)."),
                               "covered_summary_idxs": [0], "covered_concept_idxs": [0], "embedded_image_idxs": [0],
                               "model": "m"}],
        "investigations": [{"idx": 0, "title": "Coasts"}],
        "investigation_sources": [{"investigation_idx": 0, "source_idx": 0}],
        "reports": [{"idx": 0, "title": "Birds", "body_md": "Gulls nest.", "status": "annotated", "parent_idx": -1},
                    {"idx": 1, "title": "Nests", "body_md": "Terns nest.", "status": "pending", "parent_idx": 0}],
        "report_annotations": [{"report_idx": 0, "sentence_index": 0, "sentence_text": "Gulls nest.", "fact_idx": 0,
                                "score": 0.87, "posture": "supports"}],
        "curation": [{"kind": "rejected_link", "content_hash": content_hash("Gulls nest.").to_string(), "concept_idx": 1}],
        "embeddings": {"model": "e", "dimensions": 2, "fact_vectors": {"0": [0.6, 0.8]}, "concept_vectors": {"1": [1.0, 0.0]}},
    })
}

/// Keys in the order in which they are to be written; `serde_json` may sort them.
const ORDER: [&str; 21] = [
    "schema_version",
    "metadata",
    "sources",
    "images",
    "bodies",
    "source_images",
    "source_bodies",
    "facts",
    "fact_sources",
    "fact_references",
    "concepts",
    "concept_aliases",
    "fact_concepts",
    "concept_summaries",
    "concept_syntheses",
    "investigations",
    "investigation_sources",
    "reports",
    "report_annotations",
    "curation",
    "embeddings",
];

fn text(document: &Value, order: &[&str]) -> String {
    let mut fields = Vec::new();
    for key in order {
        if let Some(value) = document.get(*key) {
            let value = if *key == "embeddings" { embeddings(value) } else { value.to_string() };
            fields.push(format!("{key:?}:{value}"));
        }
    }
    format!("{{{}}}", fields.join(","))
}

fn embeddings(value: &Value) -> String {
    let fields = ["model", "dimensions", "fact_vectors", "concept_vectors"]
        .map(|key| value.get(key).map(|value| format!("{key:?}:{value}")));
    format!("{{{}}}", fields.into_iter().flatten().collect::<Vec<_>>().join(","))
}

fn gz(text: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    out.write_all(text).unwrap();
    out.finish().unwrap()
}

fn read_bytes(bytes: &[u8], limits: &Limits) -> (Result<Read, Refused>, BTreeMap<String, u64>) {
    let mut rows = BTreeMap::new();
    let read = read(bytes, limits, &mut |row| {
        let name = format!("{row:?}");
        let name = name.split(['(', ' ']).next().unwrap_or_default();
        *rows.entry(name.to_owned()).or_insert(0) += 1;
        Ok(())
    });
    (read, rows)
}

fn read_text(text: &str) -> Result<Read, Refused> {
    read_bytes(&gz(text.as_bytes()), &Limits::default()).0
}

fn read_document(document: &Value) -> Result<Read, Refused> {
    read_text(&text(document, &ORDER))
}

fn changed(change: impl FnOnce(&mut Value)) -> Value {
    let mut document = document();
    change(&mut document);
    document
}

#[test]
fn every_row_is_read() {
    let (read, rows) = read_bytes(&gz(text(&document(), &ORDER).as_bytes()), &Limits::default());
    let read = read.unwrap();
    assert_eq!((read.schema_version, read.metadata.name.as_str()), (2, "Gulls"));
    let expected = [
        ("Alias", 1),
        ("Annotation", 1),
        ("Body", 1),
        ("Concept", 2),
        ("ConceptVector", 1),
        ("Curation", 1),
        ("Fact", 2),
        ("FactConcept", 2),
        ("FactSource", 2),
        ("FactVector", 1),
        ("Image", 1),
        ("Investigation", 1),
        ("InvestigationSource", 1),
        ("Metadata", 1),
        ("Reference", 1),
        ("Report", 2),
        ("Source", 1),
        ("SourceBody", 1),
        ("SourceImage", 1),
        ("Summary", 1),
        ("Synthesis", 1),
        ("Vectors", 1),
    ];
    assert_eq!(rows, BTreeMap::from(expected.map(|(name, count)| (name.to_owned(), count))));
}

#[test]
fn what_is_written_reads_back_with_the_same_hash() {
    let mut owned = Vec::new();
    let metadata = Metadata {
        owner: "somebody".to_owned(),
        embedding_model: "e".to_owned(),
        embedding_dimensions: 2,
        exported_at: "2026-02-03T04:05:06Z".to_owned(),
        ..read_document(&document()).unwrap().metadata
    };
    let mut spool = Spool::new(Cursor::new(Vec::<u8>::new()), &metadata);
    read(gz(text(&document(), &ORDER).as_bytes()).as_slice(), &Limits::default(), &mut |row| {
        match row {
            Row::Source(row) => owned.push(OwnedRow::Source(row.clone())),
            Row::SourceImage(row) => owned.push(OwnedRow::SourceImage(row.clone())),
            Row::Fact(row) => owned.push(OwnedRow::Fact(row.clone())),
            Row::FactSource(row) => owned.push(OwnedRow::FactSource(row.clone())),
            Row::Reference(row) => owned.push(OwnedRow::Reference(row.clone())),
            Row::Concept(row) => owned.push(OwnedRow::Concept(row.clone())),
            Row::Alias(row) => owned.push(OwnedRow::Alias(row.clone())),
            Row::FactConcept(row) => owned.push(OwnedRow::FactConcept(row.clone())),
            Row::Summary(row) => owned.push(OwnedRow::Summary(row.clone())),
            Row::Synthesis(row) => owned.push(OwnedRow::Synthesis(row.clone())),
            Row::Investigation(row) => owned.push(OwnedRow::Investigation(row.clone())),
            Row::InvestigationSource(row) => owned.push(OwnedRow::InvestigationSource(row.clone())),
            Row::Report(row) => owned.push(OwnedRow::Report(row.clone())),
            Row::Annotation(row) => owned.push(OwnedRow::Annotation(row.clone())),
            _ => {}
        }
        Ok(())
    })
    .unwrap();
    for row in &owned {
        spool.put(&row.as_row()).unwrap();
    }
    let mut spooled = spool.finish().unwrap();
    let hash = spooled.sha256.clone();
    assert_eq!(
        hash,
        read_document(&document()).unwrap().sha256,
        "without files and vectors, at another time"
    );
    let metadata = Metadata { sha256: hash.clone(), ..metadata };
    let mut writer = Writer::new(Vec::<u8>::new(), &metadata).unwrap();
    for section in Section::ALL {
        match section {
            Section::Images => {
                writer.begin_files(section).unwrap();
                writer.begin_file("a", "image/png").unwrap();
                writer.file_piece("iVBORw==").unwrap();
                writer.end_file().unwrap();
                writer.end_files().unwrap();
            }
            Section::Embeddings => {
                writer.begin_vectors("e", 2).unwrap();
                writer.vector(0, &[0.6, 0.8]).unwrap();
                writer.begin_concept_vectors().unwrap();
                writer.end_vectors().unwrap();
            }
            Section::Bodies => {}
            section => writer.section(section, &mut spooled).unwrap(),
        }
    }
    let bytes = writer.finish().unwrap();
    let (read, _) = read_bytes(&bytes, &Limits::default());
    let read = read.unwrap();
    assert_eq!((read.sha256.as_str(), read.metadata), (hash.as_str(), metadata));
}

#[test]
fn the_hash_is_that_of_the_graph() {
    let hash = |document: &Value| read_document(document).unwrap().sha256;
    let same = hash(&document());
    let without = changed(|document| {
        let fields = document.as_object_mut().unwrap();
        for key in ["images", "bodies", "source_bodies", "embeddings", "fact_references", "curation"] {
            fields.remove(key);
        }
        fields["source_images"][0].as_object_mut().unwrap().remove("image_ref");
        fields["sources"][0].as_object_mut().unwrap().remove("sentence_offsets");
        fields["metadata"]["owner"] = json!("me");
        fields["metadata"]["exported_at"] = json!("2020-01-01T00:00:00Z");
        fields["sources"][0]["unknown"] = json!({"deep": [1, 2]});
    });
    assert_eq!(hash(&without), same);
    // Ids of another producer.
    let renamed = text(&document(), &ORDER).replace(ONE, "aaaaaaaa-0000-7000-8000-000000000001");
    assert_eq!(read_text(&renamed).unwrap().sha256, same);
    let changes: [fn(&mut Value); 5] = [
        |document| document["metadata"]["name"] = json!("Terns"),
        |document| document["sources"][0]["parsed_title"] = json!("On terns"),
        |document| document["report_annotations"][0]["score"] = json!(0.88),
        |document| {
            document["concept_summaries"][0]["content"] = json!(format!("[They nest.](<fact:{OTHER}>)"));
        },
        |document| document["reports"][1]["parent_idx"] = json!(-1),
    ];
    for change in changes {
        assert_ne!(hash(&changed(change)), same);
    }
    let stated = changed(|document| document["metadata"]["sha256"] = json!(same.clone()));
    assert_eq!(hash(&stated), same);
    let wrong = changed(|document| document["metadata"]["sha256"] = json!("0".repeat(64)));
    assert_eq!(read_document(&wrong).unwrap_err().place, "metadata.sha256");
}

#[test]
fn the_canonical_form_is_pinned() {
    // Computed by scripts/bundle-python from the same document.
    let read = read_document(&document()).unwrap();
    assert_eq!(read.sha256, PINNED);
}

const PINNED: &str = "9c2e4dc18ae6fc1e774a857d35ea5819afbbe5d41f6d5fa33ec64ef3a22eea87";

#[test]
fn the_first_version_is_read_with_its_files_behind_the_facts() {
    let mut order: Vec<&str> = ORDER.to_vec();
    order.retain(|key| !["images", "bodies", "source_images", "source_bodies"].contains(key));
    let at = order.iter().position(|key| *key == "facts").unwrap() + 1;
    for (n, key) in ["images", "bodies", "source_images", "source_bodies"].into_iter().enumerate() {
        order.insert(at + n, key);
    }
    let old = changed(|document| {
        document["schema_version"] = json!(1);
        document["facts"][0]["source_image_idx"] = json!(0);
        document["metadata"]["sha256"] = json!("0".repeat(64));
    });
    assert_eq!(read_text(&text(&old, &order)).unwrap().schema_version, 1);
    let refused = read_text(&text(&old, &ORDER)).unwrap_err();
    assert!(refused.reason.contains("one order"), "{refused}");
    let dangling = changed(|document| {
        document["schema_version"] = json!(1);
        document["facts"][0]["source_image_idx"] = json!(7);
    });
    assert!(read_text(&text(&dangling, &order)).unwrap_err().reason.contains("image 7"));
}

#[test]
fn what_is_wrong_is_refused_with_its_place() {
    type Change = fn(&mut Value);
    let cases: [(&str, &str, Change); 39] = [
        ("schema_version", "bring it up to date", |d| d["schema_version"] = json!(3)),
        ("schema_version", "at least 1", |d| d["schema_version"] = json!(0)),
        ("metadata.fact_count", "is 3", |d| d["metadata"]["fact_count"] = json!(3)),
        ("metadata", "RFC 3339", |d| d["metadata"]["exported_at"] = json!("yesterday")),
        ("metadata", "name", |d| d["metadata"]["name"] = json!("")),
        ("sources[0]", "in order", |d| d["sources"][0]["sentence_offsets"] = json!([[5, 2]])),
        ("sources[0]", "beyond", |d| d["sources"][0]["sentence_offsets"] = json!([[0, 99]])),
        ("sources[0]", "sentence_boxes", |d| d["sources"][0]["sentence_boxes"] = json!("<script>")),
        ("sources[0]", "no date", |d| d["sources"][0]["published_at"] = json!("someday")),
        ("sources[0]", "no date", |d| d["sources"][0]["published_at"] = json!("0000-05-06")),
        ("sources[0]", "no date", |d| d["sources"][0]["published_at"] = json!("+12024-05-06")),
        ("sources[0]", "no date", |d| d["sources"][0]["published_at"] = json!("2024-5-006")),
        ("sources[0]", "SHA-256", |d| d["sources"][0]["sha256"] = json!("xyz")),
        ("source_images[0]", "neither", |d| d["source_images"][0]["kind"] = json!("../etc")),
        ("source_images[0]", "not in images", |d| {
            d["source_images"][0]["image_ref"] = json!("../../etc/passwd");
        }),
        ("source_bodies[0]", "not in bodies", |d| d["source_bodies"][0]["body_ref"] = json!("nope")),
        ("images[0]", "base64", |d| d["images"]["a"]["data"] = json!("<<<<")),
        ("facts[1]", "twice", |d| d["facts"][1]["idx"] = json!(0)),
        ("facts[0]", "content_hash", |d| d["facts"][0]["text"] = json!("Gulls do not nest.")),
        ("facts[0]", "text is empty", |d| d["facts"][0]["text"] = json!("")),
        ("facts[0]", "no UUID", |d| d["facts"][0]["uuid"] = json!("me")),
        ("facts", "image 9", |d| d["facts"][0]["source_image_idx"] = json!(9)),
        ("facts[0]", "number of no row", |d| d["facts"][0]["source_image_idx"] = json!(-2)),
        ("facts[0]", "itself", |d| d["facts"][0]["duplicate_of_idx"] = json!(0)),
        ("facts", "fact 12", |d| d["facts"][0]["duplicate_of_idx"] = json!(12)),
        ("fact_sources[0]", "no such row", |d| d["fact_sources"][0]["source_idx"] = json!(5)),
        ("fact_sources[0]", "expected u32", |d| d["fact_sources"][0]["fact_idx"] = json!(-1)),
        ("fact_references[0]", "below 0", |d| d["fact_references"][0]["sentence_index"] = json!(-4)),
        ("concepts[0]", "canonical_name", |d| d["concepts"][0]["canonical_name"] = json!("x".repeat(501))),
        ("concept_summaries[0]", "covered_fact_idxs", |d| {
            d["concept_summaries"][0]["covered_fact_idxs"] = json!([4]);
        }),
        ("concept_summaries[0]", "content has more", |d| {
            d["concept_summaries"][0]["content"] = json!("x".repeat(1_000_001));
        }),
        ("concept_syntheses[0]", "content has more", |d| {
            d["concept_syntheses"][0]["content"] = json!("x".repeat(1_000_001));
        }),
        ("concept_syntheses[0]", "embedded_image", |d| {
            d["concept_syntheses"][0]["embedded_image_idxs"] = json!([4]);
        }),
        ("reports", "own ancestor", |d| d["reports"][0]["parent_idx"] = json!(1)),
        ("reports", "no such row", |d| d["reports"][0]["parent_idx"] = json!(6)),
        ("report_annotations[0]", "posture", |d| d["report_annotations"][0]["posture"] = json!("proves")),
        ("embeddings[0]", "number of no row", |d| d["embeddings"]["fact_vectors"] = json!({"17": [1, 2]})),
        ("embeddings[0]", "dimensions", |d| d["embeddings"]["fact_vectors"] = json!({"0": [1]})),
        ("concept_aliases", "is missing", |d| drop(d.as_object_mut().unwrap().remove("concept_aliases"))),
    ];
    for (place, reason, change) in cases {
        let refused = read_document(&changed(change)).unwrap_err();
        assert!(
            refused.reason.contains(reason) || refused.to_string().contains(reason),
            "{refused} lacks {reason}"
        );
        assert_eq!(refused.place, place, "{refused}");
    }
}

#[test]
fn a_report_is_as_long_as_the_api_takes_it() {
    let packed = Limits { ratio: u64::MAX, ..Limits::default() };
    let refused = |place: [&str; 2], length: usize| {
        let long = changed(|d| d[place[0]][0][place[1]] = json!("x".repeat(length)));
        read_bytes(&gz(text(&long, &ORDER).as_bytes()), &packed).0.err().map(|refused| refused.to_string())
    };
    for place in [["reports", "body_md"], ["report_annotations", "sentence_text"]] {
        assert_eq!(refused(place, 8 << 20), None);
        let told = refused(place, (8 << 20) + 1).unwrap();
        assert!(told.contains(place[1]) && told.contains("8388608 bytes"), "{told}");
    }
}

#[test]
fn a_great_number_takes_little_memory() {
    let mut numbers = super::read::Numbers::default();
    let last = super::read::MOST_ROWS - 1;
    for number in [last, 0, 4_095, 4_096] {
        assert!(numbers.add(number) && !numbers.add(number) && numbers.has(number), "{number}");
    }
    assert!(!numbers.has(1) && !numbers.has(last - 1));
    assert!(numbers.bytes() < 1 << 19, "{}", numbers.bytes());
    let mut others = super::read::Numbers::default();
    assert_eq!(numbers.first_without(&others), Some(0));
    for number in [0, 4_095] {
        others.add(number);
    }
    assert_eq!(numbers.first_without(&others), Some(4_096));
    others.add(4_096);
    assert_eq!(numbers.first_without(&others), Some(u64::from(last)));
    others.add(last);
    assert_eq!(numbers.first_without(&others), None);
}

#[test]
fn numbers_that_no_vector_has_are_refused() {
    for number in ["1e999", "1e39", "NaN", "null", "\"1\""] {
        let bad = text(&document(), &ORDER).replace("[0.6,0.8]", &format!("[0.6,{number}]"));
        assert!(read_text(&bad).is_err(), "{number}");
    }
    let long = text(&document(), &ORDER).replace("[0.6,0.8]", "[0.6,0.8,0.1]");
    assert!(read_text(&long).unwrap_err().to_string().contains("more than 2 dimensions"));
    let twice = text(&document(), &ORDER).replace("{\"0\":[0.6,0.8]}", "{\"0\":[0.6,0.8],\"00\":[0.6,0.8]}");
    assert!(read_text(&twice).unwrap_err().to_string().contains("two vectors"));
}

#[test]
fn what_is_no_bundle_is_refused() {
    for bad in [
        "",
        "{",
        "[]",
        "null",
        "{}",
        "{\"metadata\":{}}",
        "{\"schema_version\":2}",
        "{\"schema_version\":2,\"schema_version\":2}",
    ] {
        assert!(read_text(bad).is_err(), "{bad}");
    }
    let whole = text(&document(), &ORDER);
    for behind in ["{}", "x", ","] {
        assert!(read_text(&format!("{whole}{behind}")).is_err(), "{behind}");
    }
    assert!(read_bytes(whole.as_bytes(), &Limits::default()).0.unwrap_err().reason.contains("gzip"));
    let packed = gz(whole.as_bytes());
    assert!(read_bytes(&packed[..packed.len() - 9], &Limits::default()).0.is_err(), "cut off");
    let nul = whole.replace("On gulls", "On \\u0000gulls");
    assert!(read_text(&nul).unwrap_err().reason.contains("U+0000"));
    let fine = whole.replace("On gulls", "On \\\\u0000 \\u0041gulls");
    assert!(read_text(&fine).is_ok());
}

#[test]
fn bombs_are_refused_while_they_are_read() {
    let whole = text(&document(), &ORDER);
    let spaces = format!("{}{}", " ".repeat(8 << 20), whole);
    let refused = read_text(&spaces).unwrap_err();
    assert!(refused.reason.contains("times as large"), "{refused}");
    let deep = whole
        .replace("\"metadata\":", &format!("\"x\":{}{},\"metadata\":", "[".repeat(100), "]".repeat(100)));
    assert!(read_text(&deep).unwrap_err().reason.contains("nested"));
    let small = Limits { bytes: 100, ..Limits::default() };
    assert!(read_bytes(&gz(whole.as_bytes()), &small).0.unwrap_err().reason.contains("decompressed"));
    let small = Limits { compressed_bytes: 100, ..Limits::default() };
    assert!(read_bytes(&gz(whole.as_bytes()), &small).0.unwrap_err().reason.contains("more than 100 bytes"));
    let small = Limits { row_bytes: 10_000, ratio: u64::MAX, ..Limits::default() };
    let large = whole.replace("Terns too.", &"Terns too. ".repeat(20_000));
    assert!(read_bytes(&gz(large.as_bytes()), &small).0.unwrap_err().reason.contains("a row has more"));
}

#[test]
fn a_citation_that_is_lost_keeps_its_text() {
    let lost = |text: &str| rewrite_facts(text, |_| Cited::Lost);
    assert_eq!(lost(&format!("A [bird](<fact:{ONE}>) flies.")), "A bird flies.");
    assert_eq!(lost(&format!(r"A [bird \] b](<fact:{ONE}>)")), r"A bird \] b");
    assert_eq!(lost(&format!("[a [b] c](<fact:{ONE}>)[²](<fact:{OTHER}>)")), "a [b] c²");
    assert_eq!(lost("[a](<fact:nobody>) b"), "[a](<fact:nobody>) b");
    assert_eq!(lost(&format!("](<fact:{ONE}>)")), "");
    let renamed = rewrite_facts(&format!("[a](<fact:{ONE}>)!"), |_| Cited::As(OTHER.to_owned()));
    assert_eq!(renamed, format!("[a](<fact:{OTHER}>)!"));
}

/// Pieces of a bundle, put together wrongly: it is refused or read, and never anything else. `OKT_BUNDLE_MUTATIONS` says how many.
#[test]
fn any_document_is_read_or_refused() {
    let count =
        std::env::var("OKT_BUNDLE_MUTATIONS").ok().and_then(|count| count.parse().ok()).unwrap_or(3_000);
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (whole, good) = (document(), gz(text(&document(), &ORDER).as_bytes()));
    let (mut taken, mut refused) = (0, 0);
    for round in 0..count {
        let bytes = if round % 4 == 0 {
            let mut bytes = good.clone();
            for _ in 0..=random.below(4) {
                let at = random.below(bytes.len());
                bytes[at] ^= 1 << random.below(8);
            }
            bytes
        } else if round % 4 == 1 {
            let mut bytes = text(&whole, &ORDER).into_bytes();
            for _ in 0..=random.below(6) {
                let at = random.below(bytes.len());
                match random.below(3) {
                    0 => bytes[at] = b"{}[]\",:0-9eE\\u\n"[random.below(15)],
                    1 => drop(bytes.remove(at)),
                    _ => bytes.insert(at, b"{}[]\",:0-9eE\\u\n"[random.below(15)]),
                }
            }
            gz(&bytes)
        } else {
            let mut changed = whole.clone();
            for _ in 0..=random.below(3) {
                mutate(&mut changed, &mut random);
            }
            let mut order = ORDER.to_vec();
            if random.below(5) == 0 {
                let (one, other) = (random.below(order.len()), random.below(order.len()));
                order.swap(one, other);
            }
            gz(text(&changed, &order).as_bytes())
        };
        match read_bytes(&bytes, &Limits::default()).0 {
            Ok(_) => taken += 1,
            Err(error) => {
                assert!(!error.reason.is_empty());
                refused += 1;
            }
        }
    }
    assert!(refused > count / 4, "{refused} of {count} were refused");
    assert!(taken > 0, "none was read");
}

struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % most.max(1) as u64).unwrap()
    }
}

/// Changes something somewhere in a value.
fn mutate(value: &mut Value, random: &mut Random) {
    let strange = |random: &mut Random| {
        let all = [
            json!(null),
            json!(-1),
            json!(-2),
            json!(0),
            json!(1),
            json!(99),
            json!(4_294_967_296_u64),
            json!(1e300),
            json!(0.5),
            json!(""),
            json!("x"),
            json!("../../x"),
            json!([]),
            json!({}),
            json!(true),
            json!([[1, 2]]),
            json!({"a": 1}),
        ];
        all[random.below(all.len())].clone()
    };
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            let key = fields.keys().nth(random.below(fields.len())).cloned().unwrap();
            match random.below(8) {
                0 => drop(fields.remove(&key)),
                1 => fields[&key] = strange(random),
                _ => mutate(&mut fields[&key], random),
            }
        }
        Value::Array(rows) if !rows.is_empty() => {
            let at = random.below(rows.len());
            match random.below(6) {
                0 => drop(rows.remove(at)),
                1 => rows.push(rows[at].clone()),
                2 => rows[at] = strange(random),
                _ => mutate(&mut rows[at], random),
            }
        }
        value => *value = strange(random),
    }
}
