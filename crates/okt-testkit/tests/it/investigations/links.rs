//! Sources of investigations: how they come there, and how they go.

use std::time::Duration;

use futures_util::future::join_all;
use http::Method;
use okt_testkit::app::TestApp;
use okt_testkit::db::run;
use okt_testkit::multipart::form;
use okt_testkit::wait::eventually;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{add, begin, column, investigation, say};

async fn sources(app: &TestApp, id: &str) -> Vec<String> {
    column(app, &format!("/investigations/{id}/sources"), 2, "id").await
}

fn source_of(added: &Value) -> String {
    added["source_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_source_is_added_by_its_id_with_its_address_and_as_a_file() {
    let app = TestApp::start().await;
    let (bees, wax) = (begin(&app, "Bees").await, begin(&app, "Wax").await);
    let by_id = say(&app, &["Bees dance."]).await;
    assert!(add(&app, &bees, by_id).await);
    assert!(!add(&app, &bees, by_id).await, "it is there once");
    let by_id = by_id.to_string();

    let url = json!({"url": "https://example.org/bees", "investigation_id": bees});
    let added = app.post("/sources", &url).await;
    assert_eq!(added.status, 202, "{added:?}");
    let by_url = source_of(&added.json());
    let text = b"Bees make wax of honey. It takes a lot of it.";
    let file = form(&[("investigation_id", &bees)], "wax.txt", "text/plain", text);
    let added = app.upload_form(file).await;
    assert_eq!(added.status, 202, "{added:?}");
    let by_file = source_of(&added.json());
    let newest_first = [by_file.clone(), by_url.clone(), by_id.clone()];
    assert_eq!(sources(&app, &bees).await, newest_first);
    assert_eq!(investigation(&app, &bees).await["source_count"], 3);

    // What the repository has is added as well.
    let again =
        app.post("/sources", &json!({"url": "https://example.org/bees", "investigation_id": wax})).await;
    assert_eq!((again.status.as_u16(), &again.json()["existing"]), (200, &json!(true)), "{again:?}");
    let file = form(&[("investigation_id", &wax)], "copy.txt", "text/plain", text);
    let again = app.upload_form(file).await;
    assert_eq!((again.status.as_u16(), &again.json()["existing"]), (200, &json!(true)), "{again:?}");
    assert_eq!(sources(&app, &wax).await, newest_first[..2]);

    // Lists of references bring all of theirs along.
    let list = b"@article{a, doi = {10.1000/182}}\n@article{b, doi = {10.1000/183}}";
    let list = form(&[("investigation_id", &wax)], "list.bib", "application/x-bibtex", list);
    assert_eq!(app.upload_form(list).await.status, 207);
    assert_eq!(sources(&app, &wax).await.len(), 4);

    // The list of sources can be narrowed.
    assert_eq!(column(&app, &format!("/sources?investigation_id={bees}"), 1, "id").await, newest_first);
    let oldest = format!("/sources?investigation_id={bees}&sort=oldest&status=pending");
    assert_eq!(column(&app, &oldest, 2, "id").await, [by_id, by_url, by_file]);
    let found =
        column(&app, &format!("/sources?investigation_id={bees}&q=example.org%2Fbees"), 2, "id").await;
    assert_eq!(found, newest_first[1..2]);
    let other = column(&app, &format!("/sources?investigation_id={wax}&q=10.1000%2F182"), 2, "id").await;
    assert_eq!(other.len(), 1);
}

#[tokio::test]
async fn an_unknown_investigation_is_refused_before_anything_is_stored() {
    let app = TestApp::start().await;
    let unknown = Uuid::nil().to_string();
    let by_url = app.post("/sources", &json!({"doi": "10.1000/182", "investigation_id": unknown})).await;
    let text = form(&[("investigation_id", &unknown)], "a.txt", "text/plain", b"Bees dance. They do so.");
    let by_file = app.upload_form(text).await;
    let list = b"@article{a, doi = {10.1000/182}}";
    let list = form(&[("investigation_id", &unknown)], "list.bib", "application/x-bibtex", list);
    let by_list = app.upload_form(list).await;
    let word = form(&[("investigation_id", "bees")], "a.txt", "text/plain", b"Bees dance. They do so.");
    let by_word = app.upload_form(word).await;
    let listed = app.get(&format!("/sources?investigation_id={unknown}")).await;
    for refused in [by_url, by_file, by_list, by_word, listed] {
        assert_eq!(refused.status, 422, "{refused:?}");
        assert_eq!(refused.json()["errors"][0]["field"], "investigation_id");
    }
    let missing =
        app.post(&format!("/investigations/{unknown}/sources"), &json!({"source_id": unknown})).await;
    assert_eq!(missing.status, 404, "{missing:?}");
    let candidates = json!({"candidates": [{"doi": "10.1000/182"}]});
    let missing = app.post(&format!("/investigations/{unknown}/sources"), &candidates).await;
    assert_eq!(missing.status, 404, "{missing:?}");
    for table in ["okt_repository.sources", "okt_repository.outbox", "okt_system.uploads"] {
        assert_eq!(app.count(&format!("SELECT count(*) FROM {table}")).await, 0, "{table}");
    }
    let root = &app.service.api.app.config().providers.storage.root;
    assert!(crate::sources::blobs::files_below(root).is_empty());
}

#[tokio::test]
async fn a_source_leaves_its_investigations_and_a_deleted_one_all_of_them() {
    let app = TestApp::start().await;
    let (bees, wax) = (begin(&app, "Bees").await, begin(&app, "Wax").await);
    let (one, two) = (say(&app, &["Bees dance."]).await, say(&app, &["Wax melts."]).await);
    for id in [&bees, &wax] {
        for source in [one, two] {
            assert!(add(&app, id, source).await);
        }
    }
    let path = format!("/investigations/{bees}/sources/{one}");
    assert_eq!(app.delete(&path).await.status, 204);
    assert_eq!(app.delete(&path).await.status, 404, "it is not there any more");
    assert_eq!(sources(&app, &bees).await, [two.to_string()]);
    assert_eq!(sources(&app, &wax).await, [two.to_string(), one.to_string()]);
    assert_eq!(app.source(&one.to_string()).await["id"], json!(one), "it stays in the repository");

    assert_eq!(app.delete(&format!("/sources/{two}")).await.status, 204);
    assert_eq!(sources(&app, &bees).await, [""; 0]);
    assert_eq!(sources(&app, &wax).await, [one.to_string()]);
    assert_eq!(investigation(&app, &bees).await["source_count"], 0);
    assert_eq!(investigation(&app, &wax).await["source_count"], 1);
    assert_eq!(app.delete(&format!("/investigations/{wax}/sources/{two}")).await.status, 404);
}

/// However many add a source at once, and however many take it out again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_that_many_add_at_once_is_there_once() {
    let app = TestApp::start().await;
    let id = begin(&app, "Bees").await;
    let source = say(&app, &["Bees dance."]).await;
    // None of them is done before others have begun.
    let mut barrier = app.connect().await;
    run(&mut barrier, "BEGIN; LOCK TABLE okt_repository.investigation_sources IN SHARE MODE").await;
    let open = async {
        let waiting = "SELECT count(*) FROM pg_stat_activity
                        WHERE datname = current_database() AND wait_event_type = 'Lock'";
        eventually(Duration::from_mins(1), "several add it", async || {
            let waiting = app.count(waiting).await;
            if waiting >= 3 { Ok(()) } else { Err(waiting) }
        })
        .await;
        run(&mut barrier, "COMMIT").await;
    };
    let (new, ()) = tokio::join!(join_all((0..20).map(|_| add(&app, &id, source))), open);
    assert_eq!(new.iter().filter(|new| **new).count(), 1, "{new:?}");
    assert_eq!(app.count("SELECT count(*) FROM okt_repository.investigation_sources").await, 1);
    assert_eq!(investigation(&app, &id).await["source_count"], 1);

    let body = json!({"doi": "10.1000/182", "investigation_id": id});
    let all = join_all((0..20).map(|_| app.post("/sources", &body))).await;
    assert_eq!(all.iter().filter(|answer| answer.status == 202).count(), 1);
    assert!(all.iter().all(|answer| answer.status.is_success()), "{all:?}");
    assert_eq!(investigation(&app, &id).await["source_count"], 2);

    let path = format!("/investigations/{id}/sources/{source}");
    let gone = join_all((0..10).map(|_| app.delete(&path))).await;
    assert_eq!(gone.iter().filter(|answer| answer.status == 204).count(), 1, "{gone:?}");
    assert_eq!(investigation(&app, &id).await["source_count"], 1);
}

/// Sources and investigations that go while others are linked leave no link behind, and nobody waits in a circle.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleting_while_linking_leaves_nothing_behind() {
    let app = TestApp::start().await;
    for round in 0..5 {
        let (kept, gone) = (begin(&app, "Kept").await, begin(&app, "Gone").await);
        let mut made = Vec::new();
        for n in 0..4 {
            made.push(say(&app, &[&format!("Hive {round}.{n} is full.")]).await);
        }
        let links = made.iter().flat_map(|source| [(&kept, source), (&gone, source)]).map(|(id, source)| {
            let path = format!("/investigations/{id}/sources");
            let (app, body) = (&app, json!({"source_id": source}));
            async move { app.ask(Method::POST, &path, &body).await.status.as_u16() }
        });
        let deletions = [format!("/investigations/{gone}"), format!("/sources/{}", made[0])];
        let deletions = deletions.iter().map(|path| async { app.delete(path).await.status.as_u16() });
        let (linked, deleted) = tokio::join!(join_all(links), join_all(deletions));
        assert!(linked.iter().all(|status| [200, 404, 422].contains(status)), "{linked:?}");
        assert_eq!(deleted, [204, 204]);
        let left: Vec<String> = made[1..].iter().rev().map(ToString::to_string).collect();
        assert_eq!(sources(&app, &kept).await, left);
        assert_eq!(investigation(&app, &kept).await["source_count"], 3);
    }
    let dangling = "SELECT count(*) FROM okt_repository.investigation_sources l
                     WHERE NOT EXISTS (SELECT FROM okt_repository.sources s WHERE s.no = l.source_no)
                        OR NOT EXISTS (SELECT FROM okt_repository.investigations i WHERE i.no = l.investigation_no)";
    assert_eq!(app.count(dangling).await, 0);
}

#[tokio::test]
async fn an_investigation_has_no_more_sources_than_can_be_looked_at() {
    let app = TestApp::start().await;
    let id = begin(&app, "Everything").await;
    let there = say(&app, &["Bees dance."]).await;
    add(&app, &id, there).await;
    app.sql("UPDATE okt_repository.investigations SET source_count = 10000").await;
    assert!(!add(&app, &id, there).await, "what is there may be added again");
    let more = say(&app, &["Wax melts."]).await;
    let path = format!("/investigations/{id}/sources");
    let refused = app.post(&path, &json!({"source_id": more})).await;
    assert_eq!((refused.status.as_u16(), refused.problem().as_str()), (409, "conflict"));
    let refused = app.post("/sources", &json!({"doi": "10.1000/182", "investigation_id": id})).await;
    assert_eq!(refused.status, 409, "{refused:?}");
    assert_eq!(app.count("SELECT count(*) FROM okt_repository.sources").await, 2, "nothing was stored");
    let candidates = app.post(&path, &json!({"candidates": [{"doi": "10.1000/182"}]})).await.json();
    assert_eq!(candidates["data"][0]["outcome"], "skipped", "{candidates}");
}
