//! Without any key or model: sentences that stand on their own are facts.

use std::path::Path;

use okt_model::EXTRACTIVE_MODEL;
use serde_json::json;

use crate::facts::test_app;

/// Three articles of the project, and how many of their sentences can be understood alone at the least. The one about the
/// lighthouse says "the tower" and "the lamp" in most of its sentences.
const ARTICLES: [(&str, usize); 3] = [("honey.txt", 5), ("lighthouse.txt", 2), ("tides.txt", 5)];

#[tokio::test]
async fn three_articles_become_facts_for_nothing() {
    let model = ("SVC__PROVIDERS__DECOMPOSITION__FACT_EXTRACTION__MODEL", EXTRACTIVE_MODEL);
    let mut app = test_app(&[model]).await;
    app.work().await;
    for (name, fewest) in ARTICLES {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/facts/articles").join(name);
        let id = app.add_text(name, &std::fs::read_to_string(file).unwrap()).await;
        let seen = app.settled(&id).await;
        assert_eq!(
            (&seen["status"], &seen["extraction"]["model"]),
            (&json!("processed"), &json!(EXTRACTIVE_MODEL))
        );
        assert_eq!(seen["cost"], json!({"tokens_in": 0, "tokens_out": 0, "usd": 0.0}));
        let facts = app.facts(&id).await;
        assert!(facts.len() >= fewest, "{name}: {}", facts.len());
        // What was left out is counted, and nothing is lost between the two.
        let dropped = seen["extraction"]["dropped"].as_object().unwrap();
        let left_out: u64 = dropped.values().filter_map(serde_json::Value::as_u64).sum();
        let cited = seen["extraction"]["cited_sentences"].as_u64().unwrap();
        assert_eq!(seen["extraction"]["sentences"], left_out + cited, "{name}: {dropped:?}");
        assert!(dropped.contains_key("connective"), "{name}: {dropped:?}");
        let text = seen["parsed_text"].as_str().unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        for fact in &facts {
            println!("{name}: {}", fact["text"].as_str().unwrap());
            assert!(text.contains(fact["text"].as_str().unwrap()), "word for word: {fact}");
            // Labelled wherever it is shown.
            assert_eq!(fact["model"], EXTRACTIVE_MODEL);
            assert_eq!(fact["promptset_hash"], json!(okt_extract::extractive::promptset_hash().to_string()));
            let shown = app.read(&format!("/facts/{}", fact["id"].as_str().unwrap())).await;
            assert_eq!(shown["model"], EXTRACTIVE_MODEL);
            assert!(!shown["sources"][0]["sentences"].as_array().unwrap().is_empty());
        }
        let coverage = seen["extraction"]["coverage"].as_f64().unwrap();
        println!("{name}: {} facts, {:.0} % of the sentences", facts.len(), coverage * 100.0);
    }
    assert_eq!(app.models.stats().requests, 0, "nobody was asked");
}

/// It is what there is without a model, and never instead of one.
#[test]
fn it_is_the_default_and_no_model_can_bear_its_name() {
    let config = okt_testkit::db::config(&[]);
    assert_eq!(config.providers.decomposition.fact_extraction.model, EXTRACTIVE_MODEL);
}
