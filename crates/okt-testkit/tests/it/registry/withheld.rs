//! What is not given to a registry.

use std::time::Duration;

use okt_testkit::app::{MODEL, TestApp};
use okt_testkit::registry::StandIn;
use okt_testkit::wait::eventually;
use okt_testkit::web::Page;
use serde_json::{Value, json};

use super::contributions::pushed;
use super::{add, id, start};

/// The package of the page as it is given now.
async fn given(app: &TestApp, registry: &StandIn) -> Value {
    let before = registry.pushed().len();
    let asked = app.post("/settings/contribute-all", &json!({})).await;
    assert_eq!(asked.status, 202, "{asked:?}");
    let (_, package) = pushed(registry, before + 1).await.pop().unwrap();
    app.quiet().await;
    package
}

fn len(package: &Value, field: &str) -> usize {
    package[field].as_array().unwrap().len()
}

/// The page, taken apart here, with all that follows.
async fn processed() -> (TestApp, StandIn, String) {
    let (app, registry) = start().await;
    registry.take(MODEL);
    let source = id(&add(&app).await);
    app.quiet().await;
    (app, registry, source)
}

/// Whoever made the bundle would have us sign it.
#[tokio::test]
async fn what_a_bundle_says_of_a_source_is_not_contributed_as_our_own() {
    let (app, registry, _) = processed().await;
    let before = given(&app, &registry).await;
    assert!(len(&before, "facts") > 1 && len(&before, "concepts") > 0, "{before:#}");
    app.sql(&format!(
        "INSERT INTO okt_repository.imports (repository_id, no, kind, job_id, sha256, facts)
         VALUES ('{}', 77, 'bundle', gen_random_uuid(), sha256('x'), 1)",
        app.repository
    ))
    .await;
    let theirs = before["facts"][0]["id"].as_str().unwrap();
    app.sql(&format!(
        "UPDATE okt_repository.fact_sources SET import_no = 77
          WHERE fact_no = (SELECT no FROM okt_repository.facts WHERE id = '{theirs}')"
    ))
    .await;
    app.sql("UPDATE okt_repository.fact_concepts SET import_no = 77").await;
    let after = given(&app, &registry).await;
    assert_eq!(len(&after, "facts"), len(&before, "facts") - 1, "{after:#}");
    assert!(!after.to_string().contains(theirs), "{after:#}");
    assert_eq!(len(&after, "concepts"), 0, "links came with the bundle, too");
}

#[tokio::test]
async fn what_people_rejected_is_not_contributed_nor_what_only_that_speaks_of() {
    let (app, registry, _) = processed().await;
    let before = given(&app, &registry).await;
    let facts: Vec<&str> =
        before["facts"].as_array().unwrap().iter().map(|fact| fact["id"].as_str().unwrap()).collect();
    assert!(facts.len() > 2 && len(&before, "concepts") > 0, "{before:#}");
    // Everything but the last: one says the same as another, which is rejected.
    app.sql(&format!(
        "UPDATE okt_repository.facts f SET status = 'duplicate', merged_into = c.no, embedded_in = NULL
           FROM okt_repository.facts c WHERE f.id = '{}' AND c.id = '{}'",
        facts[1], facts[0]
    ))
    .await;
    for fact in facts[..facts.len() - 1].iter().filter(|fact| **fact != facts[1]) {
        let rejected =
            app.put(&format!("/facts/{fact}"), &json!({"status": "rejected", "reason": "no"})).await;
        assert!(rejected.status.is_success(), "{rejected:?}");
    }
    app.quiet().await;
    let after = given(&app, &registry).await;
    let last = after["facts"].as_array().unwrap();
    assert_eq!((last.len(), last[0]["id"].as_str()), (1, facts.last().copied()), "{after:#}");
    let spoken_of = last[0]["concept_ids"].as_array().map_or(0, Vec::len);
    assert_eq!(len(&after, "concepts"), spoken_of, "{after:#}");
}

/// Somebody's own notes say what a thing is called among themselves.
#[tokio::test]
async fn names_that_only_other_sources_tell_are_not_contributed() {
    let (app, registry, _) = processed().await;
    let before = given(&app, &registry).await;
    let concept = before["facts"]
        .as_array()
        .unwrap()
        .iter()
        .find_map(|fact| fact["concept_ids"].as_array()?.first()?.as_str())
        .unwrap();
    let name = |package: &Value| {
        let all = package["concepts"].as_array().unwrap();
        all.iter().find(|one| one["id"] == concept).unwrap()["canonical_name"].as_str().unwrap().to_owned()
    };
    let told = name(&before);
    app.sql(&format!(
        "INSERT INTO okt_repository.concept_aliases (repository_id, concept_no, alias_key, alias, added_by)
         SELECT repository_id, no, 'falcon', 'Falcon', 'model' FROM okt_repository.concepts WHERE id = '{concept}'"
    ))
    .await;
    let after = given(&app, &registry).await;
    assert!(!after.to_string().contains("Falcon"), "{after:#}");
    assert_eq!(name(&after), told);
    // Nor is a concept called so that it was merged into.
    // At once: a contribution may be on its way.
    app.sql(&format!(
        "UPDATE okt_repository.concepts SET canonical_name = 'Project Falcon', name_key = 'project falcon' WHERE id = '{concept}';
         INSERT INTO okt_repository.concepts (repository_id, id, context_no, canonical_name, name_key, merged_into)
         SELECT repository_id, gen_random_uuid(), context_no, '{told}', 'merged ' || name_key, no
           FROM okt_repository.concepts WHERE id = '{concept}'"
    ))
    .await;
    let after = given(&app, &registry).await;
    assert!(!after.to_string().contains("Falcon"), "{after:#}");
}

/// What a job of its own said of a source that it was to contribute.
async fn skipped(app: &TestApp, source: &str) -> Value {
    let asked = app.post("/settings/contribute-all", &json!({})).await;
    assert_eq!(asked.status, 202, "{asked:?}");
    let jobs = format!("/jobs?kind=contribute_source&source_id={source}");
    eventually(Duration::from_mins(1), "the job has ended", async || {
        let jobs = app.read(&jobs).await;
        let done =
            jobs["data"].as_array().unwrap().iter().find(|job| job["output"]["pushed"] == false).cloned();
        done.ok_or(jobs)
    })
    .await
}

/// Neither asked about nor given away: the registry would have the key to it.
#[tokio::test]
async fn an_address_that_holds_a_credential_is_not_told_to_a_registry() {
    let (app, registry) = start().await;
    registry.take(MODEL);
    let path = "/gulls?token=hush";
    app.web.page(path, Page::article("Gulls"));
    let source = app.add_page(path).await;
    assert_eq!(app.settled(&source).await["status"], "processed");
    let ended = skipped(&app, &source).await;
    assert_eq!(ended["state"], "completed", "{ended:#}");
    assert_eq!(ended["output"]["reason"], "its address holds a credential", "{ended:#}");
    // Nor by who only looks it up.
    let refused = app.get(&format!("/registry/search?url={}", app.web.url("/gulls%3Ftoken=hush"))).await;
    assert_eq!((refused.status.as_u16(), &*refused.problem()), (422, "invalid"), "{refused:?}");
    assert!(refused.text.contains("its address holds a credential"), "{refused:?}");
    assert_eq!(registry.web.asked(), [""; 0]);
}

/// What a repository may have longer than a registry takes it is cut, and what can't be sent fails no job.
#[tokio::test]
async fn what_is_too_long_for_a_registry_is_cut_and_what_can_not_be_sent_fails_nothing() {
    let (app, registry, source) = processed().await;
    app.sql("UPDATE okt_repository.sources SET author = repeat('x', 1000)").await;
    given(&app, &registry).await;
    let (about, _) = registry.pushed().pop().unwrap();
    assert_eq!(about["author"], "x".repeat(500));
    app.sql(
        "UPDATE okt_repository.sources SET extraction = jsonb_set(extraction, '{promptset_hash}', '\"x\"')",
    )
    .await;
    let ended = skipped(&app, &source).await;
    assert_eq!(ended["state"], "completed", "{ended:#}");
    let reason = ended["output"]["reason"].as_str().unwrap();
    assert!(reason.contains("promptset_hash"), "{reason}");
}
