//! Facts that go take what was written of them along.

use serde_json::json;

use okt_testkit::llm::Behaviour;

use super::{app, calls, check, cited, deeds, fact_id, link, say, settle, stored};

#[tokio::test]
async fn a_deleted_source_leaves_no_sentence_behind() {
    let mut app = app(Behaviour::default(), &[]).await;
    app.work().await;
    let (kept, gone) = (deeds("A", 1, 6), deeds("A", 50, 3));
    say(&app, &kept).await;
    let source = say(&app, &gone).await;
    let concept = link(&app, "Hive A", "Place", &[kept.clone(), gone.clone()].concat()).await;
    settle(&app).await;
    check(&app).await;
    let ids: Vec<_> = {
        let mut ids = Vec::new();
        for text in &gone {
            ids.push(fact_id(&app, text).await.uuid());
        }
        ids
    };
    let before = stored(&mut app.connect().await).await;
    let paid = calls(&app, "concept_summary").await;
    assert_eq!(app.delete(&format!("/sources/{source}")).await.status, 204);

    // At once, before anything is written again.
    let slices = app.read(&format!("/concepts/{concept}/summaries")).await;
    for slice in slices["data"].as_array().unwrap() {
        let shown = cited(slice["content"].as_str().unwrap());
        assert!(ids.iter().all(|id| !shown.contains(id)), "{slice:#}");
    }
    let definition = app.read(&format!("/concepts/{concept}/definition")).await;
    assert!(ids.iter().all(|id| !definition["content"].as_str().unwrap().contains(&id.to_string())));
    settle(&app).await;
    check(&app).await;
    let after = stored(&mut app.connect().await).await;
    let touched = before.iter().filter(|(_, slice)| ids.iter().any(|id| slice.facts.contains(id))).count();
    for (place, slice) in &before {
        if ids.iter().all(|id| !slice.facts.contains(id)) {
            assert_eq!(after.get(place), Some(slice), "what lost nothing stays");
        }
    }
    // One slice had nothing else and is gone.
    let emptied = u64::try_from(before.len() - after.len()).unwrap();
    assert_eq!(calls(&app, "concept_summary").await - paid, u64::try_from(touched).unwrap() - emptied);
    for id in &ids {
        let left = format!(
            "SELECT (SELECT count(*) FROM okt_repository.concept_syntheses WHERE content LIKE '%{id}%')
                  + (SELECT count(*) FROM okt_repository.concept_summaries WHERE content LIKE '%{id}%')"
        );
        assert_eq!(app.count(&left).await, 0, "nor in an earlier version");
    }
    let words = "SELECT count(*) FROM okt_repository.model_answers WHERE answer LIKE '%gave 50 jars%'";
    assert_eq!(app.count(words).await, 0, "nor in what models answered");
    let versions = app.read(&format!("/concepts/{concept}/definition?diff=1")).await;
    assert_eq!(versions["synthesis"]["version"], 2, "{versions:#}");
    let removed = versions["diff"]["facts_removed"].as_array().unwrap();
    assert!(removed.iter().all(|fact| fact["text"] != json!(gone[0])), "{versions:#}");
}

/// All that is left of a concept goes, and its slices with it; a merge brings its facts to the other one.
#[tokio::test]
async fn merged_concepts_have_one_set_of_slices() {
    let mut app = app(Behaviour::default(), &[]).await;
    app.work().await;
    let (one, other) = (deeds("A", 1, 5), deeds("B", 1, 3));
    say(&app, &[one.clone(), other.clone()].concat()).await;
    let into = link(&app, "Hive A", "Place", &one).await;
    let part = link(&app, "Hive B", "Place", &other).await;
    settle(&app).await;
    check(&app).await;
    let slices = stored(&mut app.connect().await).await;
    assert_eq!(slices.len(), 3, "{slices:#?}");
    let paid = calls(&app, "concept_summary").await;
    let merged = app.post(&format!("/concepts/{part}/merge"), &json!({"into": into})).await;
    assert!(merged.status.is_success(), "{merged:?}");
    settle(&app).await;
    check(&app).await;
    let after = stored(&mut app.connect().await).await;
    assert_eq!(after.len(), 2, "{after:#?}");
    assert_eq!(calls(&app, "concept_summary").await - paid, 1, "the open slice, with three more");
    let gone = "SELECT count(*) FROM okt_repository.concept_syntheses WHERE name_key = 'hive b'";
    assert_eq!(app.count(gone).await, 0);

    // Undone, it is as before, and was paid for before.
    let paid = calls(&app, "concept_summary").await;
    let step = merged.json()["curation_id"].as_str().unwrap().to_owned();
    let undone = app.post(&format!("/curation/{step}/undo"), &json!(null)).await;
    assert_eq!(undone.status, 200, "{undone:?}");
    settle(&app).await;
    check(&app).await;
    assert_eq!(calls(&app, "concept_summary").await, paid);
}
