//! A source without facts says why.

use okt_model::EXTRACTIVE_MODEL;
use okt_testkit::llm::Behaviour;
use serde_json::{Value, json};

use okt_testkit::app::MODEL;

use crate::facts::{test_app, test_app_with};

const GEORGIAN: &str = "თბილისი საქართველოს დედაქალაქია. ის მდინარე მტკვრის ნაპირებზე მდებარეობს. \
                        ქალაქის მოსახლეობა მილიონზე მეტია.";
const THAI: &str = "กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย ตั้งอยู่ริมแม่น้ำเจ้าพระยา";
const TABLE: &str = "Year Hives Honey\n2019 12 140\n2020 15 180\n2021 11 95\n2022 17 201\n";
const LEANING: &str =
    "It was built by them in that year. This made it larger than before. They did so again.";

#[tokio::test]
async fn without_a_model_a_source_without_facts_says_why() {
    let model = ("SVC__PROVIDERS__DECOMPOSITION__FACT_EXTRACTION__MODEL", EXTRACTIVE_MODEL);
    let mut app = test_app(&[model]).await;
    app.work().await;
    for (name, text, code) in [
        ("ka.txt", GEORGIAN, "no_language_rules"),
        ("th.txt", THAI, "no_language_rules"),
        ("table.txt", TABLE, "no_statements"),
        ("leaning.txt", LEANING, "nothing_stands_alone"),
        ("numbers.txt", "12 140. 15 180. 11 95. 17 201.", "no_sentences"),
    ] {
        let id = app.add_text(name, text).await;
        let seen = app.settled(&id).await;
        let reason = &seen["extraction"]["reason"];
        println!("{name}: {reason}");
        assert_eq!(
            (&seen["status"], &seen["fact_count"]),
            (&json!("processed"), &json!(0)),
            "{name}: {seen:#}"
        );
        assert_eq!(reason["code"], code, "{name} ({}): {reason}", seen["language"]);
        assert!(reason["message"].as_str().unwrap().len() > 20, "{name}: {reason}");
    }
    let id = app.add_text("whole.txt", "Honey bees live in colonies of several thousand workers. ").await;
    let seen = app.settled(&id).await;
    assert_eq!((&seen["fact_count"], &seen["extraction"]["reason"]), (&json!(1), &Value::Null), "{seen:#}");
}

#[tokio::test]
async fn with_a_model_or_with_none_at_all_too() {
    let silent = Behaviour { most_facts: 0, ..Behaviour::default() };
    let mut app = test_app_with(silent, "", &[]).await;
    app.work().await;
    let id = app.add_text("bees.txt", "Honey bees live in colonies of several thousand workers.").await;
    let seen = app.settled(&id).await;
    assert_eq!(seen["extraction"]["model"], MODEL);
    assert_eq!(seen["extraction"]["reason"]["code"], "nothing_found", "{seen:#}");
    let mut config = app.service.api.app.config().clone();
    config.providers.decomposition.fact_extraction.model = String::new();
    app.work_as(&config).await;
    let id = app.add_text("wasps.txt", "Wasps live in colonies of several hundred workers.").await;
    let seen = app.settled(&id).await;
    assert_eq!(seen["extraction"]["reason"]["code"], "extraction_off", "{seen:#}");
}

/// One stream, from the file to its facts; and nothing that nobody cancelled is shown as cancelled.
#[tokio::test]
async fn one_stream_leads_from_an_upload_to_its_facts() {
    let settings = [
        ("SVC__PROVIDERS__DECOMPOSITION__FACT_EXTRACTION__MODEL", EXTRACTIVE_MODEL),
        ("SVC__PROVIDERS__EMBEDDING__MODEL", okt_model::EMBEDDING_MODEL),
    ];
    let mut app = test_app(&settings).await;
    app.work().await;
    for (name, text) in [
        ("bees.txt", "Honey bees live in colonies of several thousand workers."),
        ("wasps.txt", "Paper wasps build their nests from chewed wood fibres."),
        ("ants.txt", "Leafcutter ants grow a fungus in their underground nests."),
    ] {
        let id = app.add_text(name, text).await;
        let job = app.source(&id).await["job_id"].as_str().unwrap().to_owned();
        let first = app.read(&format!("/jobs?source_id={id}")).await;
        let first = first["data"]
            .as_array()
            .unwrap()
            .last()
            .map_or(job, |job| job["id"].as_str().unwrap().to_owned());
        let request = app.service.request(http::Method::GET, &app.path(&format!("/jobs/{first}/events")));
        let stream = request.bearer_auth(&app.owner.token).send().await.unwrap();
        let text = tokio::time::timeout(std::time::Duration::from_mins(1), stream.text()).await;
        let text = text.expect("it ends by itself").unwrap();
        let kinds = ["retrieve_source", "source_decomposition", "embed_facts", "deduplicate_facts"];
        let ended: Vec<&str> = kinds
            .into_iter()
            .filter(|kind| {
                text.lines().filter_map(|line| line.strip_prefix("data: ")).any(|data| {
                    let job: Value = serde_json::from_str(data).unwrap();
                    job["kind"] == *kind && job["state"] == "completed"
                })
            })
            .collect();
        assert_eq!(ended, kinds, "{text}");
        let facts = app.facts(&id).await;
        assert_eq!(facts.len(), 1);
        assert_eq!(facts[0]["status"], "stable", "{facts:?}");
    }
    let jobs = app.read("/jobs?limit=200").await;
    let jobs = jobs["data"].as_array().unwrap();
    assert!(jobs.iter().all(|job| job["state"] != "cancelled"), "{jobs:#?}");
    let upkeep = jobs.iter().filter(|job| job["kind"] == "cleanup_facts").count();
    assert_eq!(upkeep, 1, "{jobs:#?}");
}
