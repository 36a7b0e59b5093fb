//! Answers that are left lying, and what others get meanwhile.

use std::time::{Duration, Instant};

use okt_testkit::client::{Answer, client};
use serde_json::json;
use tokio::io::AsyncReadExt;

use super::shelf::Shelf;

const DOCUMENT: &str = "/api/v1/openapi.json";

/// Each from a network of its own, and each takes all it can get.
#[tokio::test]
async fn nine_strangers_keep_neither_a_tenth_nor_anybody_with_an_account_from_answers() {
    let shelf = Shelf::start(&[
        ("SVC__SERVER__LIMITS__ANSWER_BYTES", "134217728"),
        ("SVC__SERVER__TRUSTED_PROXIES", "127.0.0.0/8"),
        ("SVC__RATE_LIMITS__ANONYMOUS_PER_MINUTE", "0"),
    ])
    .await;
    let mut held = Vec::new();
    for stranger in 1..=9 {
        let from = format!("x-forwarded-for: 2001:db8:0:{stranger}::1");
        for _ in 0..11 {
            held.push(shelf.ask(DOCUMENT, &from).await);
        }
        assert!(held.iter().rev().take(11).any(|(status, _)| *status == 200), "{stranger} got nothing");
    }
    let served = held.iter().filter(|(status, _)| *status == 200).count();
    println!("{served} of {} were served", held.len());
    let tenth = client().get(format!("{}{DOCUMENT}", shelf.process.url));
    let tenth = Answer::of(tenth.header("x-forwarded-for", "2001:db8:0:a::1")).await;
    assert_eq!(tenth.status, 200, "{:?}", tenth.status);
    assert_eq!(shelf.whole().await.status, 200);
}

/// However well they keep the pace that everybody has to keep.
#[tokio::test]
async fn a_large_answer_has_to_be_read_in_time() {
    // Twenty times of it are ten seconds.
    let shelf = Shelf::start(&[("SVC__SERVER__WRITE_STALL_TIMEOUT", "500ms")]).await;
    let (status, mut stream) = shelf.ask_as_owner(&shelf.path).await;
    assert_eq!(status, 200);
    let (started, mut read, mut buffer) = (Instant::now(), 0, vec![0; 16 * 1024]);
    let ended = tokio::time::timeout(Duration::from_secs(30), async {
        while let Ok(bytes @ 1..) = stream.read(&mut buffer).await {
            read += bytes;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    assert!(ended.await.is_ok(), "it goes on after {read} bytes");
    assert!(started.elapsed() > Duration::from_secs(9), "{:?}", started.elapsed());
    assert!(read < 6_500_000, "{read} bytes");
}

/// Nobody knows their length, and each holds a piece.
#[tokio::test]
async fn texts_that_are_left_lying_are_counted() {
    let shelf = Shelf::start(&[
        ("SVC__SERVER__LIMITS__ANSWER_BYTES", "4194304"),
        ("SVC__SERVER__WRITE_STALL_TIMEOUT", "3s"),
    ])
    .await;
    let text = format!("{}/text", shelf.path);
    let mut held = Vec::new();
    for _ in 0..6 {
        held.push(shelf.ask_as_owner(&text).await);
    }
    let statuses: Vec<_> = held.iter().map(|(status, _)| *status).collect();
    assert_eq!(statuses, [200, 200, 429, 429, 429, 429]);
    let until = Instant::now() + Duration::from_secs(15);
    while shelf.ask_as_owner(&text).await.0 != 200 {
        assert!(Instant::now() < until, "those who stand still are let go");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

#[tokio::test]
async fn nothing_is_done_for_who_has_too_much_on_its_way() {
    let shelf = Shelf::start(&[("SVC__SERVER__LIMITS__ANSWER_BYTES", "1048576")]).await;
    let repositories = format!("{}/api/v1/repositories", shelf.process.url);
    let make = async || {
        let request = client().post(&repositories).bearer_auth(&shelf.token).json(&json!({"name": "More"}));
        Answer::of(request).await
    };
    let (status, held) = shelf.ask_as_owner(&shelf.path).await;
    assert_eq!(status, 200);
    let refused = make().await;
    assert_eq!((refused.status.as_u16(), refused.problem().as_str()), (429, "rate_limited"));
    assert_eq!(refused.header("retry-after"), "5");
    drop(held);
    let until = Instant::now() + Duration::from_secs(10);
    while make().await.status != 201 {
        assert!(Instant::now() < until, "nothing is on its way any more");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let listed = Answer::of(client().get(&repositories).bearer_auth(&shelf.token)).await.json();
    let names: Vec<_> = listed["data"].as_array().unwrap().iter().map(|it| it["name"].clone()).collect();
    assert_eq!(names.iter().filter(|name| **name == "More").count(), 1, "{names:?}");
}

#[tokio::test]
async fn a_text_ends_when_its_reader_loses_the_right_to_it() {
    let shelf = Shelf::start(&[]).await;
    for part in ["text", "markdown"] {
        let request = client().get(format!("{}{}/{part}", shelf.process.url, shelf.path));
        assert!(Answer::of(request.bearer_auth(&shelf.token)).await.text.len() > 2_900_000);
    }
    let mut readers = Vec::new();
    for part in ["text", "markdown"] {
        readers.push((part, shelf.ask_as_owner(&format!("{}/{part}", shelf.path)).await.1));
    }
    let logout = client().post(format!("{}/api/v1/auth/logout", shelf.process.url)).bearer_auth(&shelf.token);
    assert!(Answer::of(logout).await.status.is_success());
    tokio::time::sleep(Duration::from_secs(6)).await;
    for (part, mut stream) in readers {
        let mut rest = Vec::new();
        let ended = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut rest)).await;
        assert!(ended.is_ok(), "{part} goes on after {} bytes", rest.len());
        assert!(rest.len() < 2_000_000, "{part}: {} bytes", rest.len());
    }
}
