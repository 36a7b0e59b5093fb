//! What programs that read the document rely on.

use std::collections::BTreeSet;

use okt_http::Code;
use okt_testkit::served::TestService;
use serde_json::Value;

/// What an operation may begin with: what it does.
const VERBS: &str = "accept add annotate assign call cancel change check classify contribute create decide delete end estimate \
    export find get import invite judge issue list log mark merge migrate process pull refresh register \
    reject remove rescue resynthesize retrieve retry revoke rotate search set show sign split test undo unmark \
    update upload watch withdraw";

async fn document() -> Value {
    TestService::product(&[]).await.get("/api/v1/openapi.json").await.json()
}

/// Method and path, and the operation there.
fn operations(document: &Value) -> impl Iterator<Item = (String, &Value)> {
    let paths = document["paths"].as_object().unwrap().iter();
    paths.flat_map(|(path, item)| {
        let methods = item.as_object().unwrap().iter();
        methods.map(move |(method, operation)| (format!("{} {path}", method.to_uppercase()), operation))
    })
}

fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[tokio::test]
async fn operations_are_named_by_what_they_do() {
    let document = document().await;
    let verbs: BTreeSet<&str> = VERBS.split_whitespace().collect();
    let wrong = operations(&document).filter_map(|(place, operation)| {
        let id = operation["operationId"].as_str().unwrap();
        let (verb, noun) = id.split_at(id.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(id.len()));
        let sound = noun.starts_with(|c: char| c.is_ascii_uppercase())
            && noun.chars().all(|c| c.is_ascii_alphanumeric());
        (!verbs.contains(verb) || !sound).then(|| format!("{place}: {id}"))
    });
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "give each an operation_id such as listFacts: {wrong:#?}");
}

#[tokio::test]
async fn every_operation_is_in_a_group_that_is_described() {
    let document = document().await;
    assert_eq!(document["servers"][0]["url"], "/");
    let tags: Vec<&str> = items(&document["tags"]).map(|tag| tag["name"].as_str().unwrap()).collect();
    assert!(items(&document["tags"]).all(|tag| tag["description"].is_string()));
    for (place, operation) in operations(&document) {
        let tag = operation["tags"][0].as_str().unwrap_or_default();
        assert!(tags.contains(&tag), "{place}: the tag {tag:?} is not in openapi.rs");
    }
    let order = ["Accounts", "Repositories", "Sources", "Facts", "Jobs", "OAuth", "Discovery"];
    let places: Vec<_> = order.iter().map(|name| tags.iter().position(|tag| tag == name)).collect();
    assert!(places.is_sorted() && places.iter().all(Option::is_some), "{tags:?}");
}

#[tokio::test]
async fn everything_is_described() {
    let document = document().await;
    for (place, operation) in operations(&document) {
        assert!(operation["summary"].is_string(), "{place}");
        for parameter in items(&operation["parameters"]) {
            let told = parameter["description"].is_string();
            assert!(told, "{place}: the parameter {} has no description", parameter["name"]);
        }
    }
    for (name, schema) in entries(&document["components"]["schemas"]) {
        assert!(schema["description"].is_string(), "the type {name} has no description");
    }
}

/// They are composed of those of the fields, so each text that is always there needs one.
#[tokio::test]
async fn every_body_and_every_answer_has_an_example() {
    let document = document().await;
    let mut missing = Vec::new();
    for (name, schema) in entries(&document["components"]["schemas"]) {
        for part in items(&schema["allOf"]).chain([schema]) {
            for (field, property) in entries(&part["properties"]) {
                let of = if property["type"] == "array" { &property["items"] } else { property };
                let free = of["type"] == "string" && of["format"].is_null() && of["enum"].is_null();
                let required = items(&part["required"]).any(|name| name == field.as_str());
                if free && required && property["example"].is_null() {
                    missing.push(format!("{name}.{field}"));
                }
            }
        }
    }
    assert!(missing.is_empty(), "give these fields #[schema(example = …)]: {missing:#?}");

    for (place, operation) in operations(&document) {
        let answers = entries(&operation["responses"]).filter(|(status, _)| status.starts_with('2'));
        let answers = answers.map(|(status, answer)| (status.as_str(), answer));
        for (what, value) in answers.chain([("body", &operation["requestBody"])]) {
            for (kind, media) in entries(&value["content"]) {
                // A page and a file are no examples of anything.
                let exempt = kind == "text/html" || media["schema"]["format"] == "binary";
                assert!(exempt || !media["example"].is_null(), "{place}: {what} {kind} has no example");
            }
        }
    }
    let sources = &document["paths"]["/api/v1/repositories/{repoID}/sources"];
    let listed = &sources["get"]["responses"]["200"]["content"]["application/json"]["example"];
    let added = &sources["post"]["responses"]["202"]["content"]["application/json"]["example"];
    assert_eq!(listed["data"][0]["id"], added["source_id"], "examples speak of the same source");
}

#[tokio::test]
async fn refusals_are_those_that_can_be_met() {
    let document = document().await;
    for (place, operation) in operations(&document) {
        let takes = |name: &str| items(&operation["parameters"]).any(|parameter| parameter["name"] == name);
        let mut told = BTreeSet::new();
        for (status, answer) in entries(&operation["responses"]) {
            let text = answer["description"].as_str().unwrap();
            let Some((_, codes)) = text.split_once("Problem: ") else {
                assert!(
                    !answer["content"]["application/problem+json"].is_object(),
                    "{place} {status}: {text}"
                );
                continue;
            };
            for word in codes.split(", ") {
                let code = Code::ALL.iter().find(|code| code.as_str() == word);
                let code = code.unwrap_or_else(|| panic!("{place} {status}: {word:?} is no code"));
                assert_eq!(code.status().as_str(), status, "{place}: {word}");
                told.insert(word);
            }
        }
        assert_eq!(told.contains("bad_cursor"), takes("cursor"), "{place}");
        for code in ["idempotency_mismatch", "idempotency_in_flight", "idempotency_lost"] {
            assert_eq!(told.contains(code), takes("Idempotency-Key"), "{place}: {code}");
        }
        // Also where there is nothing to ask: a parameter that a route does not know is refused.
        let asked = items(&operation["parameters"]).any(|parameter| parameter["in"] != "path");
        assert!(told.contains("invalid") || !(asked || operation["requestBody"].is_object()), "{place}");
    }
    let facts = &document["paths"]["/api/v1/repositories/{repoID}/facts"]["get"];
    assert_eq!(
        facts["parameters"][0]["name"], "repoID",
        "the table adds what every path of a repository has"
    );
}

#[tokio::test]
async fn files_are_files_and_words_are_listed() {
    let document = document().await;
    let text = document.to_string();
    assert!(!text.contains("\"items\":false") && !text.contains("prefixItems"), "no tuples");
    assert!(
        !text.contains("\"format\":\"int32\",\"minimum\":0,\"type\":\"integer\"}},\"image"),
        "no numbers for bytes"
    );
    let schemas = &document["components"]["schemas"];
    for form in ["SourceUpload", "ReferenceList"] {
        let file = &schemas[form]["properties"]["file"];
        assert_eq!((&file["type"], &file["format"]), (&"string".into(), &"binary".into()), "{form}");
    }
    for (path, kind) in [("body", "application/pdf"), ("images/{imageID}", "image/jpeg")] {
        let path = format!("/api/v1/repositories/{{repoID}}/sources/{{sourceID}}/{path}");
        for kind in [kind, "application/octet-stream"] {
            let schema = &document["paths"][&path]["get"]["responses"]["200"]["content"][kind]["schema"];
            assert_eq!(schema["format"], "binary", "{path} {kind}");
        }
    }
    let words =
        |name: &str| items(&schemas[name]["enum"]).map(|word| word.as_str().unwrap()).collect::<Vec<_>>();
    assert_eq!(
        words("SourceStatus"),
        ["pending", "fetching", "fetched", "processing", "processed", "failed"]
    );
    assert_eq!(words("RepositoryRole"), ["repoadmin", "editor", "curator", "viewer"]);
    assert_eq!(words("UsageGroup"), ["day", "model", "operation", "source"]);
    let facts = &document["paths"]["/api/v1/repositories/{repoID}/facts"]["get"]["parameters"];
    let status = items(facts).find(|parameter| parameter["name"] == "status").unwrap();
    assert_eq!(status["schema"]["$ref"], "#/components/schemas/FactStatus", "{status}");
    // Whatever is referred to is there.
    for reference in text.split("\"$ref\":\"#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap();
        assert!(schemas[name].is_object(), "{name}");
    }
}

/// What people see of it: the first things first.
#[tokio::test]
async fn the_document_begins_with_the_first_steps() {
    let document = TestService::product(&[]).await.get("/api/v1/openapi.json").await.json();
    let about = document["info"]["description"].as_str().unwrap();
    let at = |text: &str| about.find(text).unwrap_or_else(|| panic!("no {text}"));
    assert!(
        [
            "## Getting started",
            "/auth/register",
            "/repositories ",
            "/sources/upload",
            "/facts",
            "## Authentication"
        ]
        .map(at)
        .is_sorted()
    );
    let tags: Vec<_> = items(&document["tags"]).map(|tag| tag["name"].as_str().unwrap()).collect();
    let place = |name: &str| tags.iter().position(|tag| *tag == name).unwrap_or_else(|| panic!("no {name}"));
    assert!(["Accounts", "Repositories", "Sources", "Facts", "OAuth", "Discovery"].map(place).is_sorted());
}
