//! Without a model every page has content all the same, and nothing is stored.

use okt_testkit::app::TestApp;

use super::{cited, fact_id, link, say, settle};

const SAID: [&str; 8] = [
    "Hive A stands on the roof of the town hall.",
    "The bees of Hive A fly to the lime trees of the park in June.",
    "Volunteers of the school take care of Hive A at weekends.",
    "In the winter of 2019 half of the colonies of Hive A died of mites.",
    "Visitors may look into Hive A through a pane of glass.",
    "Hive A weighs its honey with an electronic scale.",
    "A thermometer in Hive A sends a message when it is too cold.",
    "Hive A was made of cedar wood by a carpenter from Lund.",
];

#[tokio::test]
async fn without_a_model_the_facts_speak_for_themselves() {
    let mut app = TestApp::builder().vectors().start().await;
    app.work().await;
    let texts = SAID.map(str::to_owned);
    say(&app, &texts).await;
    let concept = link(&app, "Hive A", "Place", &texts[..5]).await;
    let other = link(&app, "hive a", "Device", &texts[5..]).await;
    let lonely = link(&app, "Hive B", "Place", &[]).await;
    settle(&app).await;

    let slices = app.read(&format!("/concepts/{concept}/summaries")).await;
    let slices = slices["data"].as_array().unwrap();
    assert_eq!(slices.len(), 1, "{slices:#?}");
    let slice = &slices[0];
    assert_eq!((&slice["method"], &slice["id"]), (&"extractive".into(), &serde_json::Value::Null));
    let content = slice["content"].as_str().unwrap();
    let shown = cited(content);
    assert!((2..=5).contains(&shown.len()), "{content}");
    for text in &texts[5..] {
        assert!(!shown.contains(&fact_id(&app, text).await.uuid()), "of this context alone");
    }

    // One definition of the name, over both contexts.
    let definition = app.read(&format!("/concepts/{other}/definition")).await;
    assert_eq!(
        (&definition["method"], &definition["synthesis"]),
        (&"extractive".into(), &serde_json::Value::Null)
    );
    let facts: Vec<&str> =
        definition["facts"].as_array().unwrap().iter().map(|fact| fact["text"].as_str().unwrap()).collect();
    assert!(!facts.is_empty() && facts.iter().all(|fact| texts.iter().any(|text| text == fact)), "{facts:?}");
    assert_eq!(cited(definition["content"].as_str().unwrap()).len(), facts.len());
    assert_eq!(app.read(&format!("/concepts/{concept}")).await["synthesis"], serde_json::Value::Null);

    // Nothing to say.
    let nothing = app.read(&format!("/concepts/{lonely}/summaries")).await;
    assert_eq!(nothing["data"].as_array().unwrap().len(), 0);
    assert_eq!(app.read(&format!("/concepts/{lonely}/definition")).await["content"], "");

    // Nor can anybody be asked.
    let refused = app.post(&format!("/concepts/{concept}/resynthesize"), &serde_json::Value::Null).await;
    assert_eq!(
        (refused.status.as_u16(), &refused.json()["code"]),
        (503, &"not_configured".into()),
        "{refused:?}"
    );
    let missing = app.get(&format!("/concepts/{concept}/definition?version=1")).await;
    assert_eq!(missing.status, 404, "{missing:?}");
    for table in ["summary_states", "concept_summaries", "summary_facts", "concept_syntheses"] {
        assert_eq!(app.count(&format!("SELECT count(*) FROM okt_repository.{table}")).await, 0, "{table}");
    }
}
