//! Search, fetch, cite: what `ChatGPT` does, with every kind of thing.

use serde_json::{Value, json};

use super::{agent, furnished, refused, told};

#[tokio::test]
async fn what_was_found_is_fetched_and_cited() {
    let (app, known) = furnished().await;
    let key = agent(&app.service, &app.owner).await;
    let slug = app.read(&format!("/api/v1/repositories/{}", app.repository)).await["slug"]
        .as_str()
        .unwrap()
        .to_owned();
    let found = told(&app.service, &key, "search", &json!({"query": "bees"})).await;
    assert_eq!(found.as_object().unwrap().len(), 1, "{found}");
    let rows = found["results"].as_array().unwrap().clone();
    let mut kinds: Vec<_> =
        rows.iter().map(|row| row["id"].as_str().unwrap().split(':').next().unwrap().to_owned()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    for kind in ["fact", "report", "source"] {
        assert!(kinds.iter().any(|found| found == kind), "{kind} in {found}");
    }
    let mut ids: Vec<Value> = rows.iter().map(|row| row["id"].clone()).collect();
    ids.push(json!(format!("concept:{}@{slug}", known.concept)));
    ids.push(json!(format!("fact:{}", known.fact)));
    for row in &rows {
        assert_eq!(row.as_object().unwrap().len(), 3, "{row}");
        let title = row["title"].as_str().unwrap();
        assert!(!title.is_empty() && title.chars().count() <= 120, "{row}");
    }
    for id in ids {
        let text = id.as_str().unwrap();
        let document = told(&app.service, &key, "fetch", &json!({"id": id})).await;
        let mut names: Vec<_> = document.as_object().unwrap().keys().cloned().collect();
        names.sort_unstable();
        assert_eq!(names, ["id", "metadata", "text", "title", "url"]);
        assert_eq!(document["id"], id);
        let kind = text.split(':').next().unwrap();
        let expected = format!("{}/r/{slug}/{kind}s/", app.service.url);
        assert!(document["url"].as_str().unwrap().starts_with(&expected), "{document}");
        assert!(document["metadata"].as_object().unwrap().values().all(Value::is_string), "{document}");
        assert_eq!(document["metadata"]["repository"], slug);
        assert!(!document["text"].as_str().unwrap().is_empty(), "{document}");
    }
    let fact = told(&app.service, &key, "fetch", &json!({"id": format!("fact:{}", known.fact)})).await;
    assert!(fact["text"].as_str().unwrap().contains(&format!("“{}” — ", super::SUN)), "{fact}");
    let report = told(&app.service, &key, "fetch", &json!({"id": format!("report:{}", known.report)})).await;
    let text = report["text"].as_str().unwrap();
    assert!(text.contains(&format!("{} [supports]", super::SUN)), "{text}");
    assert!(text.contains(&format!("{} [contradicts]", super::NOT_SO)), "{text}");
    assert!(text.contains("[no evidence]") && text.contains("# Bees"), "{text}");

    // Filters narrow it.
    let narrow = json!({"query": format!("bees kind:fact repo:{slug}")});
    let facts = told(&app.service, &key, "search", &narrow).await;
    let rows = facts["results"].as_array().unwrap();
    assert!(
        !rows.is_empty() && rows.iter().all(|row| row["id"].as_str().unwrap().starts_with("fact:")),
        "{facts}"
    );
    for (tool, arguments, field) in [
        ("search", json!({"query": "kind:fact"}), "query"),
        ("search", json!({"query": "bees", "limit": 3}), "limit"),
        ("search", json!({}), "query"),
        ("fetch", json!({"id": "page:1"}), "id"),
    ] {
        let error = refused(&app.service, &key, tool, &arguments).await;
        assert_eq!(
            (&error["code"], &error["errors"][0]["field"]),
            (&json!("invalid"), &json!(field)),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_long_report_is_fetched_to_its_end() {
    let (mut app, _) = furnished().await;
    // Nothing is said of its sentences, so the text is that of the report.
    app.rest();
    let sentence = format!("Bees of the {} know the way to the hive.", "very ".repeat(80));
    let body = format!("# Long\n\n{}", format!("{sentence} ").repeat(250));
    let made = app.post("/reports", &json!({"title": "Long", "body_markdown": body})).await;
    assert_eq!(made.status, 201, "{made:?}");
    let key = agent(&app.service, &app.owner).await;
    let (mut id, mut read, mut ids) =
        (format!("report:{}", made.json()["id"].as_str().unwrap()), String::new(), Vec::new());
    while !id.is_empty() {
        let document = told(&app.service, &key, "fetch", &json!({ "id": id })).await;
        read.push_str(document["text"].as_str().unwrap());
        ids.push(std::mem::replace(&mut id, document["metadata"]["next_id"].as_str().unwrap().to_owned()));
    }
    assert_eq!(read.trim_end(), body.trim_end(), "{ids:?}");
    assert!(ids.len() >= 3 && ids[1].ends_with("#1.2"), "{ids:?}");
    let beyond = json!({"id": format!("{}#1.9", ids[0])});
    assert_eq!(refused(&app.service, &key, "fetch", &beyond).await["code"], "not_found");
}

#[tokio::test]
async fn a_long_source_is_fetched_part_by_part() {
    let (mut app, _) = furnished().await;
    app.rest();
    let line = "Jede Bienenkönigin lebt länger als eine Arbeiterin, und die größten Völker überwintern. ";
    let text = line.repeat(600);
    let source = app.add_text("lang.txt", &text).await;
    app.work().await;
    app.until(&source, |seen| seen["parsed_text"].is_string()).await;
    let whole = app.source(&source).await["parsed_text"].as_str().unwrap().to_owned();
    let key = agent(&app.service, &app.owner).await;
    let (mut id, mut read, mut parts) = (format!("source:{source}"), String::new(), 0);
    while !id.is_empty() {
        let document = told(&app.service, &key, "fetch", &json!({ "id": id })).await;
        read.push_str(document["text"].as_str().unwrap());
        document["metadata"]["next_id"].as_str().unwrap().clone_into(&mut id);
        parts += 1;
    }
    assert_eq!(read, whole);
    assert!(parts >= 2, "{parts}");
    let two = json!({"source_id": source, "include": ["text"], "part": 2});
    let part = told(&app.service, &key, "get_source", &two).await;
    assert_eq!(part["parts"], parts);
    assert!(whole.contains(part["text"].as_str().unwrap()));
    let beyond = json!({"source_id": source, "include": ["text"], "part": parts + 1});
    assert_eq!(refused(&app.service, &key, "get_source", &beyond).await["errors"][0]["field"], "part");
}
