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

/// Facts that an open slice got one after the other: no answer of any of its revisions is kept when one is deleted.
#[tokio::test]
async fn no_answer_outlives_a_deleted_fact() {
    let mut app = app(Behaviour::default(), &[]).await;
    app.work().await;
    let (kept, gone) = (deeds("A", 1, 2), deeds("A", 50, 1));
    say(&app, &kept).await;
    let source = say(&app, &gone).await;
    link(&app, "Hive A", "Place", &[&kept[..1], &gone].concat()).await;
    settle(&app).await;
    link(&app, "Hive A", "Place", &kept[1..]).await;
    settle(&app).await;
    check(&app).await;
    let words = "SELECT count(*) FROM okt_repository.model_answers WHERE answer LIKE '%gave 50 jars%'";
    assert_eq!(app.count(words).await, 4, "two revisions of the slice, and a definition of each");
    assert_eq!(app.delete(&format!("/sources/{source}")).await.status, 204);
    settle(&app).await;
    check(&app).await;
    assert_eq!(app.count(words).await, 0);
}

/// What was deleted goes also where nothing is written any more, and a page that said nothing else is made of what is there.
#[tokio::test]
async fn with_the_stages_off_words_of_deleted_facts_go_too() {
    let mut app = app(Behaviour::default(), &[]).await;
    app.work().await;
    let (kept, gone) = (deeds("A", 1, 3), deeds("A", 50, 2));
    let source = say(&app, &gone).await;
    let concept = link(&app, "Hive A", "Place", &gone).await;
    settle(&app).await;
    check(&app).await;
    let off = app.put("/settings/stages", &json!({"summarization": false, "synthesis": false})).await;
    assert_eq!(off.status, 200, "{off:?}");
    say(&app, &kept).await;
    link(&app, "Hive A", "Place", &kept).await;
    assert_eq!(app.delete(&format!("/sources/{source}")).await.status, 204);
    let shown = async || {
        let definition = app.read(&format!("/concepts/{concept}/definition")).await;
        assert_eq!((&definition["method"], &definition["synthesis"]), (&json!("extractive"), &json!(null)));
        assert_eq!(definition["versions"].as_array().unwrap().len(), 1, "{definition:#}");
        assert!(!cited(definition["content"].as_str().unwrap()).is_empty(), "a page has content");
    };
    shown().await;
    let paid = app.models.stats().requests;
    settle(&app).await;
    shown().await;
    let left = "SELECT (SELECT count(*) FROM okt_repository.concept_syntheses WHERE content LIKE '%gave 50 jars%')
                     + (SELECT count(*) FROM okt_repository.concept_summaries WHERE content LIKE '%gave 50 jars%')
                     + (SELECT count(*) FROM okt_repository.model_answers WHERE answer LIKE '%gave 50 jars%')";
    assert_eq!(app.count(left).await, 0, "words of what was deleted");
    assert_eq!(app.models.stats().requests, paid, "nobody is asked");

    // On again, what came meanwhile is written.
    let on = app.put("/settings/stages", &json!({"summarization": true, "synthesis": true})).await;
    assert_eq!(on.status, 200, "{on:?}");
    settle(&app).await;
    check(&app).await;
    let definition = app.read(&format!("/concepts/{concept}/definition")).await;
    assert_eq!(definition["synthesis"]["is_current"], true, "{definition:#}");
    assert_eq!(cited(definition["content"].as_str().unwrap()).len(), 3);
}

/// A rejected fact is not shown from then on, nor written of, whether or not anybody looks at its slice again.
#[tokio::test]
async fn a_rejected_fact_is_neither_shown_nor_cited() {
    let mut app = app(Behaviour::default(), &[]).await;
    app.work().await;
    let texts = deeds("A", 1, 4);
    say(&app, &texts).await;
    let concept = link(&app, "Hive A", "Place", &texts).await;
    settle(&app).await;
    let off = app.put("/settings/stages", &json!({"summarization": false})).await;
    assert_eq!(off.status, 200, "{off:?}");
    let rejected = fact_id(&app, &texts[2]).await;
    let done = app.put(&format!("/facts/{rejected}"), &json!({"status": "rejected"})).await;
    assert!(done.status.is_success(), "{done:?}");
    settle(&app).await;
    let slice = app.read(&format!("/concepts/{concept}/summaries")).await["data"][0].clone();
    assert_eq!(slice["is_current"], false, "{slice:#}");
    assert_eq!(slice["fact_ids"].as_array().unwrap().len(), 3, "{slice:#}");
    let shown = cited(slice["content"].as_str().unwrap());
    assert!(shown.len() == 3 && !shown.contains(&rejected.uuid()), "{slice:#}");

    let job = app.post(&format!("/concepts/{concept}/resynthesize"), &json!(null)).await.json();
    let ended = app.ended(job["job_id"].as_str().unwrap()).await;
    assert_eq!((&ended["state"], &ended["output"]["facts"]), (&json!("completed"), &json!(3)), "{ended:#}");
    let told = "SELECT count(*) FROM okt_repository.concept_syntheses WHERE version = 2 AND content LIKE '%gave 3 jars%'";
    assert_eq!(app.count(told).await, 0, "a new version cites it");
}
