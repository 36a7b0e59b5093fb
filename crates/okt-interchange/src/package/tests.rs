use okt_model::content_hash;
use serde_json::{Value, json};

use super::*;

const FACT: &str = "0197a3c0-0000-7000-8000-000000000001";
const OTHER: &str = "0197a3c0-0000-7000-8000-000000000002";
const CONCEPT: &str = "0197a3c0-0000-7000-8000-0000000000c1";
const SUMMARY: &str = "0197a3c0-0000-7000-8000-0000000000a1";
const HASH: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0bef2c3d2f1f6d1c2a0e4b";

/// One of every kind, as somebody else might write it.
fn document() -> Value {
    let fact = |id: &str, text: &str| json!({"id": id, "content": text, "content_hash": content_hash(text).to_string()});
    let mut document = json!({
        "schema_version": 1,
        "model_id": "some/model",
        "decomposed_by": "okt 0.1",
        "decomposed_at": "2026-01-02T03:04:05Z",
        "promptset_hash": HASH,
        "facts": [fact(FACT, "Gulls nest."), fact(OTHER, "Terns nest.")],
        "concepts": [{"id": CONCEPT, "canonical_name": "Gull", "context": "Species", "aliases": ["Seagull"]}],
        "summaries": [{"id": SUMMARY, "concept_id": CONCEPT, "slice_number": 1, "is_open": false,
                       "content": format!("[They nest.](<fact:{FACT}>)"), "fact_ids": [FACT]}],
        "embeddings": {"model": "e", "dimensions": 2, "vectors": {FACT: [0.6, 0.8]}},
        "concept_embeddings": {"model": "e", "dimensions": 2, "vectors": {CONCEPT: [1.0, 0.0]}},
        "cost": {"calls": 3, "tokens_in": 1_000, "tokens_out": 200, "usd": 0.5},
        "source": {"url": "https://example.org/gulls", "doi": "10.1000/gulls"},
    });
    document["facts"][0]["concept_ids"] = json!([CONCEPT]);
    document["facts"][0]["source_text"] = "Gulls nest on cliffs.".into();
    document
}

fn parse(document: &Value) -> Result<Package, Refused> {
    Package::parse(document.to_string().as_bytes())
}

#[test]
fn what_is_written_is_what_was_read() {
    let package = parse(&document()).unwrap();
    let written = package.clone().write(u64::MAX).unwrap();
    assert_eq!(Package::parse(&written).unwrap(), package);
    let written: Value = serde_json::from_slice(&written).unwrap();
    let numbers = |mut value: Value| {
        value.as_object_mut().unwrap().remove("embeddings");
        value.as_object_mut().unwrap().remove("concept_embeddings");
        value
    };
    assert_eq!(numbers(written), numbers(document()), "and not a field more");
}

#[test]
fn optional_parts_may_be_missing_or_null_and_what_is_unknown_is_ignored() {
    let mut document = document();
    for field in
        ["decomposed_by", "promptset_hash", "summaries", "embeddings", "concept_embeddings", "source"]
    {
        document[field] = Value::Null;
    }
    document["facts"][0]["concept_ids"] = Value::Null;
    document["later"] = json!({"deep": [[[[]]]]});
    let package = parse(&document).unwrap();
    assert_eq!(
        (package.promptset_hash.as_str(), package.summaries(), &package.embeddings),
        ("", &[][..], &None)
    );
    let empty = json!({"schema_version": 1, "model_id": "m", "decomposed_at": "2026-01-02T03:04:05+01:00",
                       "facts": [], "concepts": []});
    assert!(parse(&empty).is_ok());
}

#[test]
fn the_level_facts_has_facts_and_their_vectors_only() {
    let package = parse(&document()).unwrap();
    assert_eq!(package.clone().at(PushLevel::Concepts), package);
    let facts: Value =
        serde_json::from_slice(&package.at(PushLevel::Facts).write(u64::MAX).unwrap()).unwrap();
    let mut keys: Vec<&str> = facts.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    let expected = [
        "concepts",
        "cost",
        "decomposed_at",
        "decomposed_by",
        "embeddings",
        "facts",
        "model_id",
        "promptset_hash",
        "schema_version",
        "source",
    ];
    assert_eq!(keys, expected);
    assert_eq!(facts["concepts"], json!([]));
    assert!(facts["facts"].as_array().unwrap().iter().all(|fact| fact.get("concept_ids").is_none()));
}

/// What is wrong, and where it is found.
#[test]
fn hostile_packages_are_refused_whole_with_the_place() {
    let dangling = "0197a3c0-0000-7000-8000-00000000dead";
    let long = "x".repeat(4_001);
    let cases: Vec<(&str, Value, &str)> = vec![
        ("/schema_version", json!(2), "schema_version: is 2, and this version of okt reads up to 1"),
        ("/schema_version", json!(0), "schema_version"),
        ("/model_id", json!(""), "model_id: is empty"),
        ("/model_id", json!("x".repeat(301)), "model_id"),
        ("/decomposed_at", json!("yesterday"), "decomposed_at"),
        ("/promptset_hash", json!("abc"), "promptset_hash"),
        ("/facts/1/id", json!(FACT), "facts[1].id"),
        ("/facts/0/id", json!("no uuid"), "UUID"),
        (
            "/facts/0/content",
            json!("Gulls do not nest."),
            "facts[0].content_hash: is not the hash of the content",
        ),
        ("/facts/0/content_hash", json!(HASH), "facts[0].content_hash"),
        ("/facts/0/content", json!(long), "facts[0].content: has more than 4000 characters"),
        ("/facts/0/content", json!("a\u{0}b"), "facts[0].content: has the character U+0000"),
        ("/facts/0/source_text", json!("x".repeat(100_001)), "facts[0].source_text"),
        ("/facts/0/concept_ids/0", json!(dangling), "facts[0].concept_ids[0]"),
        ("/concepts/0/id", json!(dangling), "facts[0].concept_ids[0]"),
        ("/concepts/0/canonical_name", json!(" \u{200b} "), "concepts[0].canonical_name"),
        ("/concepts/0/context", json!("x".repeat(101)), "concepts[0].context"),
        ("/concepts/0/aliases/0", json!(""), "concepts[0].aliases[0]"),
        ("/summaries/0/concept_id", json!(dangling), "summaries[0].concept_id"),
        ("/summaries/0/slice_number", json!(0), "summaries[0].slice_number"),
        ("/summaries/0/fact_ids/0", json!(dangling), "summaries[0].fact_ids"),
        ("/embeddings/dimensions", json!(3), "has 2 numbers instead of 3"),
        ("/embeddings/vectors", json!({dangling: [0.6, 0.8]}), "is a vector of nothing in this package"),
        ("/embeddings/vectors", json!({FACT: [1e39, 0.0]}), "embeddings"),
        ("/embeddings/vectors", json!({FACT: ["NaN", 0.0]}), "invalid type"),
        ("/embeddings/dimensions", json!(0), "embeddings.dimensions"),
        ("/cost/usd", json!(-1.0), "cost.usd"),
        ("/cost/calls", json!(1_000_000_001), "cost.calls: is more than any source takes"),
        ("/cost/tokens_in", json!(u64::MAX), "cost.tokens_in: is more than any source takes"),
        ("/cost/tokens_out", json!(u64::MAX), "cost.tokens_out"),
        ("/source/url", json!("x".repeat(4_097)), "source.url: has more than 4096 characters"),
        ("/concept_embeddings/vectors", json!({FACT: [0.6, 0.8]}), "concept_embeddings.vectors"),
    ]
    .into_iter()
    .collect();
    assert!(parse(&document()).is_ok());
    for (pointer, value, place) in cases {
        let mut document = document();
        *document.pointer_mut(pointer).unwrap() = value.clone();
        let refused = parse(&document).expect_err(pointer).to_string();
        assert!(refused.contains(place), "{pointer} = {:.60}: {refused}", value.to_string());
    }
    for missing in ["schema_version", "model_id", "decomposed_at", "facts", "concepts"] {
        let mut document = document();
        document.as_object_mut().unwrap().remove(missing);
        assert!(parse(&document).expect_err(missing).to_string().contains(missing));
    }
}

#[test]
fn a_later_version_is_named_even_if_nothing_else_of_it_is_known() {
    let refused = Package::parse(br#"{"atoms": 3, "schema_version": 9, "facts": {}}"#).unwrap_err();
    assert_eq!(refused.place, "schema_version");
}

#[test]
fn deep_nesting_and_large_documents_end_in_an_error() {
    for document in [
        format!("{{\"later\":{}", "[".repeat(2_000_000)),
        format!("{{\"facts\":{}", "[".repeat(2_000_000)),
        format!("{{\"schema_version\":1,\"x\":{}{}}}", "[".repeat(500_000), "]".repeat(500_000)),
        "{\"schema_version\":1,\"facts\":[NaN]}".to_owned(),
        String::new(),
        "null".to_owned(),
        "[]".to_owned(),
        "\u{feff}{}".to_owned(),
    ] {
        assert!(Package::parse(document.as_bytes()).is_err(), "{document:.60}");
    }
    let nested = |levels: usize| {
        let (open, close) = ("[".repeat(levels), "]".repeat(levels));
        document().to_string().replacen('{', &format!("{{\"later\":{open}{close},\"text\":\"\\\"[[[[\","), 1)
    };
    assert!(Package::parse(nested(63).as_bytes()).is_ok());
    let refused = Package::parse(nested(64).as_bytes()).unwrap_err();
    assert_eq!(refused.reason, "has more than 64 levels of nesting");
    let twice = format!("{{\"model\":\"e\",\"dimensions\":1,\"vectors\":{{\"{FACT}\":[1],\"{FACT}\":[2]}}}}");
    assert!(serde_json::from_str::<EmbeddingData>(&twice).unwrap_err().to_string().contains("twice"));
}

/// Bytes that were changed at random never panic, and what is still taken is what was checked.
#[test]
fn whatever_is_changed_it_is_a_good_package_or_an_error() {
    let good = document().to_string().into_bytes();
    let (mut dice, mut taken) = (7_u64, 0);
    let mut roll = |sides: usize| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(dice >> 33).unwrap() % sides
    };
    for _ in 0..100_000 {
        let mut bytes = good.clone();
        for _ in 0..=roll(3) {
            if bytes.is_empty() {
                break;
            }
            let at = roll(bytes.len());
            match roll(4) {
                0 => bytes[at] = u8::try_from(roll(256)).unwrap(),
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, b"0-9e\"[]{},:\\\x00"[roll(13)]),
                _ => bytes.truncate(at.max(1)),
            }
        }
        if let Ok(package) = Package::parse(&bytes) {
            assert_eq!(check::package(&package), Ok(()));
            taken += 1;
        }
    }
    assert!(taken > 0, "some changes are harmless");
}

#[test]
fn vectors_are_left_out_of_what_would_be_too_large() {
    let mut package = parse(&document()).unwrap();
    let data = package.embeddings.as_mut().unwrap();
    data.dimensions = 60_000;
    data.vectors.clear();
    for at in 0..100_u128 {
        let text = format!("Gull {at} nests.");
        let content_hash = content_hash(&text).to_string();
        let id = Uuid::from_u128(at);
        package.facts.push(FactData { id, content: text, content_hash, ..FactData::default() });
        let data = package.embeddings.as_mut().unwrap();
        data.vectors.insert(id, vec![0.123_456_7; 60_000]);
    }
    let written = Package::parse(&package.clone().write(32 << 20).unwrap()).unwrap();
    assert_eq!((written.embeddings, written.facts.len()), (None, 102));
    let refused = package.write(1_000).unwrap_err();
    assert_eq!(refused.reason, "has more than 1000 bytes");
}

/// Every case of the rule.
#[test]
fn the_rule_of_promptsets_is_this_table() {
    let (default, listed, other) = ("d".repeat(64), "a".repeat(64), "b".repeat(64));
    let none: [String; 0] = [];
    let some = [listed.clone()];
    let cases = [
        // What is listed, the promptset of the package, whether it is admitted.
        (&none[..], "", true),
        (&none[..], default.as_str(), true),
        (&none[..], other.as_str(), true),
        (&some[..], "", true),
        (&some[..], default.as_str(), true),
        (&some[..], listed.as_str(), true),
        (&some[..], other.as_str(), false),
    ];
    for (listed, hash, admitted) in cases {
        let accepted = Accepted { default: &default, listed };
        assert_eq!(accepted.admits(hash), admitted, "{listed:?} {hash}");
        assert_eq!(accepted.admits(&hash.to_uppercase()), admitted, "in capitals");
    }
}

#[test]
fn a_source_is_the_one_that_shares_a_name_with_it() {
    let names = |url: Option<&str>, doi: Option<&str>| SourceData {
        url: url.map(str::to_owned),
        doi: doi.map(str::to_owned),
    };
    let page = names(Some("https://example.org/gulls"), Some("10.1000/gulls"));
    assert!(page.is(Some("HTTPS://EXAMPLE.org/gulls#part"), None), "the same address");
    assert!(page.is(Some("https://example.org/copy"), Some("10.1000/Gulls")), "the same DOI");
    assert!(page.is(Some("https://doi.org/10.1000/gulls"), None), "the DOI as an address");
    assert!(!page.is(Some("https://example.org/terns"), Some("10.1000/terns")));
    assert!(!page.is(None, None) && !names(None, None).is(None, None), "without a name it is nobody's");
}

#[test]
fn models_are_allowed_by_name_or_all_of_them() {
    let (all, two, none) = (["*".to_owned()], ["a".to_owned(), "b".to_owned()], []);
    assert!(is_allowed_model("anything", &all));
    assert!(is_allowed_model("b", &two));
    assert!(!is_allowed_model("c", &two) && !is_allowed_model("a", &none));
}

#[test]
fn no_package_has_more_facts_than_can_be_taken_in_at_once() {
    let mut document = document();
    let fact = |at: u128| {
        let text = format!("Gull {at} nests.");
        json!({"id": Uuid::from_u128(at), "content": text, "content_hash": content_hash(&text).to_string()})
    };
    for field in ["summaries", "embeddings", "concept_embeddings"] {
        document[field] = Value::Null;
    }
    document["facts"] = (0..20_000).map(fact).collect();
    parse(&document).unwrap();
    document["facts"].as_array_mut().unwrap().push(fact(20_000));
    assert!(parse(&document).unwrap_err().to_string().starts_with("facts: are more than"));
}

#[test]
fn a_concept_with_too_many_names_is_read_no_further() {
    let mut document = document();
    document["concepts"][0]["aliases"] = vec!["a"; 1_000].into();
    parse(&document).unwrap();
    document["concepts"][0]["aliases"] = vec!["a"; 1_001].into();
    let refused = parse(&document).unwrap_err().to_string();
    assert!(refused.contains("more than 1000") && refused.contains("column"), "while it is read: {refused}");
    document["concepts"][0]["aliases"] = Value::Null;
    assert!(parse(&document).unwrap().concepts[0].aliases.is_empty());
}
