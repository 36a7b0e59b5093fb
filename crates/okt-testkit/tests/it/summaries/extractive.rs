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

/// What many sources state is weighed however old it is, and each context of a name has its share.
#[tokio::test]
async fn what_many_sources_state_is_not_passed_over() {
    let mut app = TestApp::builder().start().await;
    app.work().await;
    let (place, device) = (super::deeds("A", 1, 260), SAID[5..].iter().map(|said| (*said).to_owned()));
    let device: Vec<String> = device.collect();
    // The older ones first: of those that come together nobody knows the order.
    say(&app, &device).await;
    say(&app, &place[..1]).await;
    say(&app, &place[1..]).await;
    let concept = link(&app, "Hive A", "Place", &place).await;
    link(&app, "hive a", "Device", &device).await;
    let stated = "UPDATE okt_repository.facts SET source_count = 50 WHERE text = ANY ($1)";
    let strong = [place[0].clone(), device[0].clone()];
    let done = sqlx::query(stated).bind(&strong[..]).execute(&mut app.connect().await).await.unwrap();
    assert_eq!(done.rows_affected(), 2);
    settle(&app).await;
    let slices = app.read(&format!("/concepts/{concept}/summaries")).await;
    let shown = cited(slices["data"][0]["content"].as_str().unwrap());
    assert!(shown.contains(&fact_id(&app, &place[0]).await.uuid()), "{slices:#}");
    let definition = app.read(&format!("/concepts/{concept}/definition")).await;
    let shown = cited(definition["content"].as_str().unwrap());
    for text in &strong {
        assert!(shown.contains(&fact_id(&app, text).await.uuid()), "{text}: {definition:#}");
    }
}
