#!/usr/bin/env python3
"""Reads and writes Graph Bundles with the standard library alone, from what docs/api/bundles.md says of them.

    bundle.py read FILE          checks a bundle, and tells its rows and its hash as JSON
    bundle.py write FILE [--old] writes a small one, without any optional field and with some that nobody knows

It shares no code with okt: where the two disagree, one of them has misread the format.
"""

import gzip
import hashlib
import json
import re
import sys
import unicodedata

SECTIONS = [
    "sources", "images", "bodies", "source_images", "source_bodies", "facts", "fact_sources", "fact_references",
    "concepts", "concept_aliases", "fact_concepts", "concept_summaries", "concept_syntheses", "investigations",
    "investigation_sources", "reports", "report_annotations", "curation", "embeddings",
]

# The fields of the canonical form, in their order. A field with `*` is always there; the others only where they are not
# empty. What is not listed is not hashed.
FIELDS = {
    "metadata": "name* description tags promptset_hashes source_count* fact_count* concept_count* summary_count*"
                " synthesis_count* report_count* investigation_count* exported_at*",
    "sources": "idx* url doi kind status parsed_title parsed_text parsed_markdown published_at sha256 has_stored_body*",
    "facts": "idx* text* fact_kind* image_url content_hash* promptset_hash status* source_image_idx*",
    "fact_sources": "fact_idx* source_idx* chunk_index*",
    "concepts": "idx* canonical_name* context* ontology_class description promptset_hash",
    "concept_aliases": "concept_idx* alias_text*",
    "fact_concepts": "fact_idx* concept_idx* promptset_hash",
    "concept_summaries": "idx* concept_idx* sequence_num* is_complete* fact_count* content* covered_fact_idxs* model*",
    "concept_syntheses": "canonical_name* content* covered_summary_idxs* covered_concept_idxs* embedded_image_idxs* model*",
    "investigations": "idx* title* topic",
    "investigation_sources": "investigation_idx* source_idx*",
    "reports": "idx* title* topic body_md* status* parent_idx* similarity_threshold embedded_model sentence_count",
    "report_annotations": "report_idx* sentence_index* sentence_text* fact_idx* score* posture*",
}
MISSING = {"has_stored_body": False, "source_image_idx": -1, "parent_idx": -1, "chunk_index": -1, "model": "",
           "covered_fact_idxs": [], "covered_summary_idxs": [], "covered_concept_idxs": [], "embedded_image_idxs": []}
FLOATS = {"score", "similarity_threshold"}
CITING = {"concept_summaries": "content", "concept_syntheses": "content", "reports": "body_md"}
LINK = re.compile(r"\]\(<(fact|image):([0-9a-fA-F-]{36})>\)")


def content_hash(text):
    text = unicodedata.normalize("NFC", " ".join(text.split()))
    return hashlib.sha256(text.encode()).hexdigest()


def number(value):
    """The shortest form that reads back as the same number, with a point or an exponent."""
    mantissa, _, exponent = repr(float(value)).partition("e")
    return mantissa.removesuffix(".0") + "e" + str(int(exponent)) if exponent else mantissa


def compact(value, name=""):
    if name in FLOATS:
        return number(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def row(section, given, facts):
    images = dict(zip(given.get("image_uuids") or [], given.get("embedded_image_idxs") or []))

    def target(link):
        known = facts if link[1] == "fact" else images
        idx = known.get(link[2])
        return link[0] if idx is None else f"](<{link[1]}:#{idx}>)"

    parts = []
    for field in FIELDS[section].split():
        always, name = field.endswith("*"), field.rstrip("*")
        value = given.get(name)
        if value is None and always:
            value = MISSING.get(name, "")
        if name == CITING.get(section):
            value = LINK.sub(target, value)
        if always or value not in (None, "", []):
            parts.append(json.dumps(name) + ":" + compact(value, name))
    return "{" + ",".join(parts) + "}"


def canonical_hash(bundle):
    metadata = dict(bundle["metadata"], exported_at="0001-01-01T00:00:00Z")
    digest = hashlib.sha256()
    digest.update(b'{"schema_version":2,"metadata":' + row("metadata", metadata, {}).encode())
    facts = {fact["uuid"]: fact["idx"] for fact in bundle["facts"] if fact.get("uuid")}
    for section in SECTIONS:
        if section == "source_images":
            digest.update(b',"source_images":[]')
        elif section in FIELDS:
            rows = ",".join(row(section, given, facts) for given in bundle[section])
            digest.update(f',"{section}":[{rows}]'.encode())
    digest.update(b"}")
    return digest.hexdigest()


def load(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        bundle = json.load(file)
    assert bundle["schema_version"] in (1, 2), "schema_version"
    order = [key for key in bundle if key in SECTIONS]
    if bundle["schema_version"] == 2:
        assert order == sorted(order, key=SECTIONS.index), f"sections are in the order {order}"
    return bundle


def check(bundle):
    numbers = {name: {one["idx"] for one in bundle[name]}
               for name in ["sources", "source_images", "facts", "concepts", "concept_summaries", "investigations", "reports"]}
    for name, there in numbers.items():
        assert len(there) == len(bundle[name]), f"{name} has a number twice"
    refer = [("fact_sources", "fact_idx", "facts"), ("fact_sources", "source_idx", "sources"),
             ("fact_concepts", "fact_idx", "facts"), ("fact_concepts", "concept_idx", "concepts"),
             ("concept_aliases", "concept_idx", "concepts"), ("concept_summaries", "concept_idx", "concepts"),
             ("source_images", "source_idx", "sources"), ("investigation_sources", "source_idx", "sources"),
             ("investigation_sources", "investigation_idx", "investigations"),
             ("report_annotations", "report_idx", "reports"), ("report_annotations", "fact_idx", "facts")]
    for section, field, of in refer:
        for one in bundle[section]:
            assert one[field] in numbers[of], f"{section}.{field} is {one[field]}"
    for fact in bundle["facts"]:
        assert fact["content_hash"] == content_hash(fact["text"]), f"fact {fact['idx']}"
    metadata = bundle["metadata"]
    for name, section in [("source", "sources"), ("fact", "facts"), ("concept", "concepts"), ("summary", "concept_summaries"),
                          ("synthesis", "concept_syntheses"), ("report", "reports"), ("investigation", "investigations")]:
        assert metadata[name + "_count"] == len(bundle[section]), f"{name}_count"


def read(path):
    bundle = load(path)
    check(bundle)
    computed = canonical_hash(bundle)
    stated = bundle["metadata"].get("sha256", "")
    if bundle["schema_version"] == 2:
        assert stated in ("", computed), f"sha256 is {stated}, and the content has {computed}"
    json.dump({"sha256": computed, "stated": stated,
               "rows": {section: len(bundle.get(section, ())) for section in SECTIONS if section != "embeddings"},
               "vectors": {kind: len(bundle.get("embeddings", {}).get(kind, ())) for kind in ("fact_vectors", "concept_vectors")},
               "facts": [fact["text"] for fact in bundle["facts"]],
               "sources": [source.get("url", "") for source in bundle["sources"]],
               "concepts": [[one["canonical_name"], one["context"]] for one in bundle["concepts"]]},
              sys.stdout, ensure_ascii=False)


def small():
    texts = ["Arctic terns fly from pole to pole every year.", "Gulls nest on cliffs.", "Gulls nest on roofs in Bristol."]
    texts.sort(key=content_hash)
    facts = [{"idx": idx, "text": text, "fact_kind": "text", "content_hash": content_hash(text), "status": "stable",
              "source_image_idx": -1, "confidence_of_mine": 0.25} for idx, text in enumerate(texts)]
    gulls = [fact["idx"] for fact in facts if fact["text"].startswith("Gulls")]
    tern = next(fact["idx"] for fact in facts if "terns" in fact["text"])
    bundle = {
        "schema_version": 2,
        "metadata": {"name": "Sea birds", "source_count": 1, "fact_count": 3, "concept_count": 2, "summary_count": 1,
                     "synthesis_count": 1, "report_count": 1, "investigation_count": 1,
                     "exported_at": "2026-05-06T07:08:09+02:00", "mood": "fine"},
        "sources": [{"idx": 0, "url": "https://example.org/sea-birds", "status": "processed", "parsed_title": "Sea birds",
                     "parsed_text": "Gulls nest on cliffs. Gulls nest on roofs in Bristol. Arctic terns fly from pole to pole every year.",
                     "has_stored_body": False}],
        "source_images": [],
        "facts": facts,
        "fact_sources": [{"fact_idx": idx, "source_idx": 0, "chunk_index": 0} for idx in range(3)],
        "my_own_section": [{"whatever": [1, 2, {"three": None}]}],
        "concepts": [{"idx": 0, "canonical_name": "Arctic tern", "context": "Species"},
                     {"idx": 1, "canonical_name": "Gull", "context": "Species"}],
        "concept_aliases": [{"concept_idx": 1, "alias_text": "Seagull"}],
        "fact_concepts": [{"fact_idx": idx, "concept_idx": 0 if idx == tern else 1} for idx in range(3)],
        "concept_summaries": [{"idx": 0, "concept_idx": 1, "sequence_num": 1, "is_complete": False, "fact_count": 2,
                               "content": "They nest on cliffs and [roofs](<fact:0197a3c0-0000-7000-8000-000000000001>).",
                               "covered_fact_idxs": gulls, "model": "by-hand"}],
        "concept_syntheses": [{"canonical_name": "Gull", "content": "A bird of coasts and towns.", "covered_summary_idxs": [0],
                               "covered_concept_idxs": [1], "embedded_image_idxs": [], "model": "by-hand"}],
        "investigations": [{"idx": 0, "title": "Coasts"}],
        "investigation_sources": [{"investigation_idx": 0, "source_idx": 0}],
        "reports": [{"idx": 0, "title": "Gulls", "body_md": "Gulls nest on roofs in the city of Bristol.", "status": "annotated",
                     "parent_idx": -1}],
        "report_annotations": [{"report_idx": 0, "sentence_index": 0, "sentence_text": "Gulls nest on roofs in the city of Bristol.",
                                "fact_idx": next(fact["idx"] for fact in facts if "Bristol" in fact["text"]), "score": 0.9,
                                "posture": "supports"}],
    }
    return bundle


def write(path, old):
    bundle = small()
    if old:
        bundle["schema_version"] = 1
        keys = [key for key in bundle if key != "source_images"]
        keys.insert(keys.index("facts") + 1, "source_images")
        bundle = {key: bundle[key] for key in keys}
    else:
        bundle["metadata"]["sha256"] = canonical_hash(bundle)
    check(bundle)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        json.dump(bundle, file)


if __name__ == "__main__":
    if sys.argv[1] == "read":
        read(sys.argv[2])
    else:
        write(sys.argv[2], "--old" in sys.argv)
