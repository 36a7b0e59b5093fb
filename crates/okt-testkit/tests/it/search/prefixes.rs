//! Embedding models that tell questions from texts by what stands before them.

use okt_config::Config;
use okt_jobs::spaces;
use okt_model::EXTRACTIVE_MODEL;
use okt_store::{Databases, Purpose};
use okt_testkit::app::{MODEL, TestApp};
use okt_testkit::jobs::tools;
use okt_testkit::llm::Behaviour;
use serde_json::Value;

use super::{add, rows, search, settled};

const PREFIXES: &str = "query_prefix = \"query: \"\npassage_prefix = \"passage: \"";

#[tokio::test]
async fn questions_and_facts_have_prefixes_of_their_own_and_another_for_facts_makes_other_vectors() {
    let behaviour = Behaviour { dimensions: 64, keep: true, ..Behaviour::default() };
    let mut app = TestApp::builder()
        .models(behaviour, PREFIXES)
        .settings(&[
            ("SVC__PROVIDERS__DECOMPOSITION__FACT_EXTRACTION__MODEL", EXTRACTIVE_MODEL),
            ("SVC__PROVIDERS__EMBEDDING__MODEL", MODEL),
            ("SVC__PROVIDERS__EMBEDDING__DIMENSIONS", "64"),
        ])
        .start()
        .await;
    app.work().await;
    let fact = "The Moon causes the tides of the sea.";
    let id = add(&app, "one", "Tides", fact).await;
    settled(&app, std::slice::from_ref(&id)).await;
    let found = search(&app, "what causes tides", "&types=facts&mode=vector").await;
    assert_eq!((found["degraded_reason"].clone(), rows(&found).len()), (Value::Null, 1), "{found:#}");
    let asked = app.models.stats().asked;
    assert_eq!(asked, [format!("passage: {fact}"), "query: what causes tides".to_owned()]);

    let config = app.service.api.app.config().clone();
    let databases = Databases::open(&config, &[Purpose::Worker]).await.unwrap().remove(0);
    let mut changed = config.clone();
    changed.providers.ai.models[0].query_prefix = "question: ".to_owned();
    let reembed = async |config: &Config| {
        let tools = tools(config, &databases).await;
        spaces::reembed(&databases, &tools, |_, _| ()).await.unwrap().changed
    };
    assert!(!reembed(&changed).await, "the vectors of facts are the same");
    changed.providers.ai.models[0].passage_prefix = "text: ".to_owned();
    // As long as the old ones are searched, new ones are made like them, whatever the settings say.
    app.work_as(&changed).await;
    let other = add(&app, "two", "Tides", "Bergen has the highest tides of Norway.").await;
    settled(&app, std::slice::from_ref(&other)).await;
    assert!(reembed(&changed).await);
    let asked = app.models.stats().asked;
    let mut made: Vec<&str> = asked[2..].iter().flat_map(|asked| asked.lines()).collect();
    made[1..].sort_unstable();
    assert_eq!(
        made,
        [
            "passage: Bergen has the highest tides of Norway.",
            "text: Bergen has the highest tides of Norway.",
            "text: The Moon causes the tides of the sea."
        ]
    );
    assert!(!reembed(&changed).await, "once is enough");
    let prefix = "SELECT count(*) FROM okt_system.embedding_spaces WHERE passage_prefix = 'text: '";
    assert_eq!(app.count(prefix).await, 1);
}
