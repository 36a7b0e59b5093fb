//! Files that are on their way for a while.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::stream;
use http::Method;
use okt_testkit::accounts::{Person, access_token, api_key, give, register, send, session};
use okt_testkit::app::TestApp;
use okt_testkit::client::Answer;
use okt_testkit::multipart::{CONTENT_TYPE, form};
use okt_testkit::served::TestService;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::sources::blobs::files_below;
use crate::sources::test_app;

/// A file that is being sent: what goes into `rest` comes after the first half.
struct Sending {
    rest: mpsc::UnboundedSender<Bytes>,
    second: Bytes,
    answer: JoinHandle<Answer>,
}

impl Sending {
    fn begin(service: &TestService, token: &str, path: &str) -> Self {
        let whole = form(&[], "a.txt", "text/plain", b"Bees dance. They do so on the comb.");
        let (first, second) = whole.split_at(whole.len() - 20);
        let (rest, mut comes) = mpsc::unbounded_channel::<Bytes>();
        rest.send(Bytes::copy_from_slice(first)).unwrap();
        let pieces =
            stream::poll_fn(move |cx| comes.poll_recv(cx).map(|piece| piece.map(Ok::<_, std::io::Error>)));
        let request = service.request(Method::POST, path).bearer_auth(token).timeout(Duration::from_mins(2));
        let request = request.header("content-type", CONTENT_TYPE);
        let answer = tokio::spawn(Answer::of(request.body(reqwest::Body::wrap_stream(pieces))));
        Self { rest, second: Bytes::copy_from_slice(second), answer }
    }

    async fn end(self) -> Answer {
        let _ = self.rest.send(self.second);
        drop(self.rest);
        self.answer.await.unwrap()
    }
}

/// An editor who is about to lose something.
async fn editor(app: &TestApp, name: &str) -> Person {
    let person = register(&app.service, name).await;
    give(&app.service, person.id, &app.repository.to_string(), "editor").await;
    person
}

#[tokio::test]
async fn who_loses_the_right_while_sending_has_sent_nothing() {
    let app = test_app(&[]).await;
    let (service, admin) = (&app.service, &app.owner.token);
    let own = "/api/v1/users/me";
    for (case, status) in [("left", 404), ("signed out", 401), ("key revoked", 401), ("grant revoked", 401)] {
        let person = editor(&app, &case.replace(' ', "-")).await;
        let (token, method, path, body, by) = match case {
            "left" => {
                let path = format!("/api/v1/repositories/{}/members", app.repository);
                let body = json!({"user_id": person.id});
                (person.token.clone(), Method::DELETE, path, body, admin.clone())
            }
            "signed out" => {
                let path = "/api/v1/auth/logout".to_owned();
                (person.token.clone(), Method::POST, path, json!({}), person.token.clone())
            }
            "key revoked" => {
                let (id, key) = api_key(service, &person, &["source:write"]).await;
                (key, Method::DELETE, format!("{own}/api-keys/{id}"), json!({}), person.token.clone())
            }
            _ => {
                let token = access_token(service, person.id, "source:write").await;
                let grants =
                    send(service, &person.token, Method::GET, &format!("{own}/grants"), &json!({})).await;
                let id = grants.json()["data"][0]["id"].as_str().unwrap().to_owned();
                (token, Method::DELETE, format!("{own}/grants/{id}"), json!({}), person.token.clone())
            }
        };
        for rest in ["/upload", "/import"] {
            let begun = Sending::begin(service, &token, &app.path(rest));
            if rest == "/upload" {
                // It was let in, and waits for the rest.
                tokio::time::sleep(Duration::from_secs(1)).await;
                assert!(!begun.answer.is_finished(), "{case}");
                let lost = send(service, &by, method.clone(), &path, &body).await;
                assert_eq!(lost.status, 204, "{case}: {lost:?}");
            }
            let refused = begun.end().await;
            assert_eq!(refused.status, status, "{case} {rest}: {refused:?}");
            refused.problem();
        }
        let root = &service.api.app.config().providers.storage.root;
        let deadline = Instant::now() + Duration::from_secs(10);
        while !files_below(root).is_empty() {
            assert!(Instant::now() < deadline, "{case}: {:?}", files_below(root));
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(app.get("").await.json()["data"], json!([]), "{case}");
    }
    let stays = Sending::begin(service, admin, &app.path("/upload"));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(stays.end().await.status, 202, "who keeps the right is not held up");
}

/// With as many credentials as they like.
#[tokio::test]
async fn one_person_takes_eight_places_and_strangers_still_send() {
    // Sixteen places for files.
    let app = test_app(&[("SVC__SERVER__MAX_IN_FLIGHT", "64")]).await;
    let service = &app.service;
    let ada = editor(&app, "ada").await;
    let mut tokens = vec![ada.token.clone(), session(service, ada.id).await];
    for _ in 0..4 {
        tokens.push(api_key(service, &ada, &["source:write"]).await.1);
    }
    tokens.push(access_token(service, ada.id, "source:write").await);
    let mut held = Vec::new();
    for token in &tokens {
        held.extend((0..4).map(|_| Sending::begin(service, token, &app.path("/upload"))));
    }
    // Those that found no place are told at once.
    let deadline = Instant::now() + Duration::from_secs(20);
    while held.iter().filter(|sending| sending.answer.is_finished()).count() < held.len() - 8 {
        assert!(Instant::now() < deadline, "{}", held.iter().filter(|one| !one.answer.is_finished()).count());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let (refused, sending): (Vec<_>, Vec<_>) = held.into_iter().partition(|one| one.answer.is_finished());
    assert_eq!(sending.len(), 8);
    for one in refused {
        let answer = one.answer.await.unwrap();
        assert_eq!((answer.status.as_u16(), &*answer.problem()), (429, "rate_limited"), "{answer:?}");
    }
    let stranger = editor(&app, "stranger").await;
    let others = Sending::begin(service, &stranger.token, &app.path("/upload"));
    assert_eq!(others.end().await.status, 202);
    for one in sending {
        assert!(one.end().await.status.is_success());
    }
    let again = Sending::begin(service, &tokens[3], &app.path("/upload"));
    assert_eq!(again.end().await.status, 200, "the places are given back");
}

/// A byte now and then is enough for every pause, and holds a place all the same.
#[tokio::test]
async fn a_file_that_drips_in_is_given_up_after_half_a_minute() {
    let app = test_app(&[]).await;
    let begun = Sending::begin(&app.service, &app.owner.token, &app.path("/upload"));
    let started = Instant::now();
    while !begun.answer.is_finished() {
        assert!(started.elapsed() < Duration::from_secs(45), "it goes on and on");
        let _ = begun.rest.send(Bytes::from_static(&[b'x'; 64]));
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert!(started.elapsed() > Duration::from_secs(28), "{:?}", started.elapsed());
    let answer = begun.answer.await.unwrap();
    assert_eq!((answer.status.as_u16(), &*answer.problem()), (408, "body_too_slow"), "{answer:?}");
}
