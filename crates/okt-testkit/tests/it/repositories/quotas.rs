//! Nobody has more than the operator allows, also when they ask for it many times at once.

use std::time::Duration;

use futures_util::future::join_all;
use http::Method;
use okt_jobs::cleanup_files;
use okt_store::Blobs;
use okt_testkit::accounts::{Person, register, sql};
use okt_testkit::client::Answer;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::repositories::two_databases::{TwoDatabases, id_of, path};

const FREE: (&str, &str) = ("SVC__RATE_LIMITS__API_PER_MINUTE", "0");

fn refused(answer: &Answer, setting: &str, limit: u64) {
    assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (409, "quota_exceeded"), "{answer:?}");
    let why = answer.json()["detail"].as_str().unwrap().to_owned();
    assert!(why.contains(setting) && why.contains(&format!("allows {limit}.")), "{why}");
}

async fn upload(fixture: &TwoDatabases, who: &Person, id: Uuid, text: &str) -> Answer {
    let form = format!(
        "--line\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\ncontent-type: \
         text/plain\r\n\r\n{text}\r\n--line--\r\n"
    );
    let request = fixture.service.request(Method::POST, &path(id, "sources/upload")).bearer_auth(&who.token);
    Answer::of(request.header("content-type", "multipart/form-data; boundary=line").body(form)).await
}

/// What is counted for somebody.
async fn bytes(fixture: &TwoDatabases, who: &Person) -> i64 {
    let bytes = format!(
        "SELECT coalesce(sum(bytes), 0)::bigint FROM okt_system.user_usage WHERE user_id = '{}'",
        who.id
    );
    fixture.count("default", &bytes).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_owns_more_repositories_than_they_may() {
    let fixture = TwoDatabases::with(&[FREE, ("SVC__LIMITS__REPOSITORIES_PER_USER", "3")]).await;
    let body = json!({"name": "One more"});
    for who in [&fixture.ada, &fixture.admin] {
        let all = join_all((0..10).map(|_| fixture.create(who, &body))).await;
        let (made, other): (Vec<_>, Vec<_>) = all.iter().partition(|answer| answer.status == 201);
        assert_eq!(made.len(), 3, "{all:?}");
        for answer in other {
            refused(answer, "limits.repositories_per_user", 3);
        }
        let id = id_of(&made[0].json());
        assert_eq!(fixture.delete(who, &path(id, "")).await.status, 204);
        assert_eq!(fixture.create(who, &body).await.status, 201, "there is room for another one");
        refused(&fixture.create(who, &body).await, "limits.repositories_per_user", 3);
    }
    // The number is what can be counted.
    let wrong = "SELECT count(*) FROM okt_system.user_usage u
                  WHERE repositories <> (SELECT count(*) FROM okt_system.repositories r
                                          WHERE r.owner_id = u.user_id AND state IN ('creating', 'active'))";
    assert_eq!(fixture.count("default", wrong).await, 0);
    // One that is never finished does not count for ever.
    sql(&fixture.service, "UPDATE okt_system.repositories SET state = 'abandoned' WHERE state = 'active'")
        .await;
    assert_eq!(fixture.create(&fixture.ada, &body).await.status, 201);
    assert_eq!(fixture.count("default", wrong).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repository_has_no_more_sources_than_it_may() {
    let fixture = TwoDatabases::with(&[FREE, ("SVC__LIMITS__SOURCES_PER_REPOSITORY", "3")]).await;
    let id = fixture.repository().await;
    let add = async |n: usize| {
        let body = json!({"url": format!("https://example.org/{n}")});
        fixture.send(&fixture.ada, Method::POST, &path(id, "sources"), &body).await
    };
    let all = join_all((0..10).map(add)).await;
    let (made, other): (Vec<_>, Vec<_>) =
        all.iter().enumerate().partition(|(_, answer)| answer.status == 202);
    assert_eq!(made.len(), 3, "{all:?}");
    for (_, answer) in other {
        refused(answer, "limits.sources_per_repository", 3);
    }
    refused(&upload(&fixture, &fixture.ada, id, "Bees fly.").await, "limits.sources_per_repository", 3);
    assert_eq!(bytes(&fixture, &fixture.ada).await, 0, "what was not taken is not counted");
    let (known, first) = made[0];
    let again = add(known).await;
    assert_eq!(
        (again.status.as_u16(), &again.json()["existing"]),
        (200, &json!(true)),
        "what is there is there"
    );

    let source = first.json()["source_id"].as_str().unwrap().to_owned();
    assert_eq!(fixture.delete(&fixture.ada, &path(id, &format!("sources/{source}"))).await.status, 204);
    let list = "@article{a, doi={10.1000/1}}\n@article{b, doi={10.1000/2}}";
    let form = format!(
        "--line\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.bib\"\r\n\r\n{list}\r\n--line--\r\n"
    );
    let request =
        fixture.service.request(Method::POST, &path(id, "sources/import")).bearer_auth(&fixture.ada.token);
    let imported =
        Answer::of(request.header("content-type", "multipart/form-data; boundary=line").body(form)).await;
    assert!(imported.text.contains("\"added\"") && imported.text.contains("\"skipped\""), "{imported:?}");
    assert!(imported.text.contains("limits.sources_per_repository"), "{imported:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_uploads_more_bytes_than_they_may_wherever_to() {
    let fixture = TwoDatabases::with(&[FREE, ("SVC__LIMITS__BYTES_PER_USER", "1000")]).await;
    let here = fixture.repository().await;
    let there = id_of(&fixture.make(&fixture.admin, &json!({"name": "There", "database": "second"})).await);
    let eve = register(&fixture.service, "eve").await;
    for (who, id) in [(&fixture.ada, there), (&eve, here)] {
        let member = json!({"user_id": who.id, "role": "editor"});
        assert_eq!(
            fixture.send(&fixture.admin, Method::PUT, &path(id, "members"), &member).await.status,
            204
        );
    }
    // As many of 300 bytes at once as one person may send, to two databases: three fit.
    let texts: Vec<String> = (0..8).map(|n| format!("{n:0300}")).collect();
    let sent = texts
        .iter()
        .enumerate()
        .map(|(n, text)| upload(&fixture, &fixture.ada, if n % 2 == 0 { here } else { there }, text));
    let all = join_all(sent).await;
    let taken: Vec<_> = all
        .iter()
        .zip(&texts)
        .zip([here, there].into_iter().cycle())
        .filter(|((answer, _), _)| answer.status == 202)
        .collect();
    assert_eq!(taken.len(), 3, "{all:?}");
    for answer in all.iter().filter(|answer| answer.status != 202) {
        refused(answer, "limits.bytes_per_user", 1_000);
    }
    assert_eq!(bytes(&fixture, &fixture.ada).await, 900);
    let ((first, text), id) = taken[0];
    let again = upload(&fixture, &eve, here, &texts[0]).await;
    assert!(again.status == 202 || again.status == 200, "others have their own: {again:?}");
    let same = fixture
        .send(
            &fixture.admin,
            Method::PUT,
            &path(id, "members"),
            &json!({"user_id": eve.id, "role": "editor"}),
        )
        .await;
    assert_eq!(same.status, 204);
    let before = bytes(&fixture, &eve).await;
    assert_eq!(upload(&fixture, &eve, id, text).await.json()["existing"], true);
    assert_eq!(bytes(&fixture, &eve).await, before, "what is there already takes no room");

    let source = first.json()["source_id"].as_str().unwrap().to_owned();
    assert_eq!(fixture.delete(&fixture.ada, &path(id, &format!("sources/{source}"))).await.status, 204);
    assert_eq!(bytes(&fixture, &fixture.ada).await, 600);
    assert_eq!(upload(&fixture, &fixture.ada, here, &"x".repeat(400)).await.status, 202);
    refused(&upload(&fixture, &fixture.ada, there, "y").await, "limits.bytes_per_user", 1_000);

    // With their repositories goes what they took.
    for (who, id) in [(&fixture.ada, here), (&fixture.admin, there)] {
        assert_eq!(fixture.delete(who, &path(id, "")).await.status, 204);
    }
    let worker = fixture.worker().await;
    fixture.until("default", "SELECT coalesce(sum(bytes), 0)::bigint FROM okt_system.user_usage", 0).await;
    worker.stop().await;
}

/// The process died between the bytes and the source.
#[tokio::test]
async fn what_an_upload_left_behind_is_given_back_by_the_sweep() {
    let fixture = TwoDatabases::new().await;
    let id = fixture.repository().await;
    let kept = upload(&fixture, &fixture.ada, id, "Bees fly.").await;
    let lost = upload(&fixture, &fixture.ada, id, "Wasps fly.").await.json();
    assert_eq!((kept.status.as_u16(), bytes(&fixture, &fixture.ada).await), (202, 19));
    let gone =
        format!("DELETE FROM okt_repository.sources WHERE id = '{}'", lost["source_id"].as_str().unwrap());
    sql(&fixture.service, &gone).await;
    let app = &fixture.service.api.app;
    let blobs = Blobs::open(&app.config().providers.storage).unwrap();
    let removed = cleanup_files(app.databases(), &blobs, Duration::ZERO, |_| {}).await.unwrap();
    assert_eq!((removed, bytes(&fixture, &fixture.ada).await), (1, 9));
    let _: Value = kept.json();
}
