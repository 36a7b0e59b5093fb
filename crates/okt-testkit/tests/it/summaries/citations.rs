//! Whatever a model cites: nothing is stored that rests on nothing.

use okt_testkit::llm::{Behaviour, Citing};

use super::{app, calls, check_kept, deeds, link, say, settle};

#[tokio::test]
async fn no_text_cites_what_it_does_not_cover() {
    let mut app = app(Behaviour { citing: Citing::Wild, ..Behaviour::default() }, &[]).await;
    app.work().await;
    let mut concepts = Vec::new();
    for hive in ["A", "B", "C", "D", "E", "F"] {
        let texts = deeds(hive, 1, 11);
        say(&app, &texts).await;
        concepts.push(link(&app, &format!("Hive {hive}"), "Place", &texts).await);
    }
    settle(&app).await;
    // What no answer could be had for says so, and the rest is as it should be.
    let (mut dropped, mut written, mut failed) = (0, 0, 0);
    for concept in &concepts {
        let slices = app.read(&format!("/concepts/{concept}/summaries")).await;
        for slice in slices["data"].as_array().unwrap() {
            if slice["is_current"] == true {
                written += 1;
                dropped += slice["dropped_sentences"].as_i64().unwrap();
            } else {
                failed += 1;
                assert!(slice["failure"].is_string(), "{slice:#}");
            }
            assert!(!slice["content"].as_str().unwrap().is_empty(), "a page has content: {slice:#}");
        }
    }
    let mut defined = 0;
    for concept in &concepts {
        let definition = app.read(&format!("/concepts/{concept}/definition")).await;
        defined += definition["synthesis"]["dropped_sentences"].as_i64().unwrap_or(0);
    }
    println!("{written} slices written, {failed} not, {dropped} sentences dropped, {defined} of definitions");
    assert!(written > 0 && dropped > 0 && defined > 0, "the model was wild, and of use");
    check_kept(&app).await;
    assert!(calls(&app, "concept_summary").await >= written);
    assert!(calls(&app, "concept_synthesis").await > 0);
    let foreign = "SELECT count(*) FROM (SELECT content FROM okt_repository.concept_summaries
                                          UNION ALL SELECT content FROM okt_repository.concept_syntheses) AS texts
                    WHERE content LIKE '%Atlantis%' OR content LIKE '%<b>%' OR content LIKE '%00000000-0000-70%'";
    assert_eq!(app.count(foreign).await, 0, "what a model makes up is not stored");
}
