//! Without any key or model: sentences that stand on their own are facts.

use std::path::Path;

use okt_model::EXTRACTIVE_MODEL;
use serde_json::json;

use crate::desk::Desk;

/// Three articles of the project.
const ARTICLES: [&str; 3] = ["honey.txt", "lighthouse.txt", "tides.txt"];

#[tokio::test]
async fn three_articles_become_facts_for_nothing() {
    let model = ("SVC__PROVIDERS__DECOMPOSITION__FACT_EXTRACTION__MODEL", EXTRACTIVE_MODEL);
    let mut desk = Desk::open(&[model]).await;
    desk.work().await;
    for name in ARTICLES {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/facts/articles").join(name);
        let id = desk.add(name, &std::fs::read_to_string(file).unwrap()).await;
        let seen = desk.settled(&id).await;
        assert_eq!(
            (&seen["status"], &seen["extraction"]["model"]),
            (&json!("processed"), &json!(EXTRACTIVE_MODEL))
        );
        assert_eq!(seen["cost"], json!({"tokens_in": 0, "tokens_out": 0, "usd": 0.0}));
        let facts = desk.facts(&id).await;
        assert!(facts.len() >= 5, "{name}: {}", facts.len());
        let text = seen["parsed_text"].as_str().unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        for fact in &facts {
            println!("{name}: {}", fact["text"].as_str().unwrap());
            assert!(text.contains(fact["text"].as_str().unwrap()), "word for word: {fact}");
            // Labelled wherever it is shown.
            assert_eq!(fact["model"], EXTRACTIVE_MODEL);
            assert_eq!(fact["promptset_hash"], json!(okt_extract::extractive::promptset_hash().to_string()));
            let shown = desk.get(&format!("/facts/{}", fact["id"].as_str().unwrap())).await;
            assert_eq!(shown["model"], EXTRACTIVE_MODEL);
            assert!(!shown["sources"][0]["sentences"].as_array().unwrap().is_empty());
        }
        let coverage = seen["extraction"]["coverage"].as_f64().unwrap();
        println!("{name}: {} facts, {:.0} % of the sentences", facts.len(), coverage * 100.0);
    }
    assert_eq!(desk.models.stats().requests, 0, "nobody was asked");
}

/// It is what there is without a model, and never instead of one.
#[test]
fn it_is_the_default_and_no_model_can_bear_its_name() {
    let config = okt_testkit::db::config(&[]);
    assert_eq!(config.providers.decomposition.fact_extraction.model, EXTRACTIVE_MODEL);
}
